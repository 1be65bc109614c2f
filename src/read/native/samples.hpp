// Streams of samples next to a native capture (format: wire/samples.hpp) into Session::samples.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/session.hpp"

namespace rangescope::read::native {

/// Every stream in `<folder>/samples` or `<folder>/native/samples`. What cannot be read becomes a
/// loss.
void read_sample_files(const std::filesystem::path& folder, model::Session& session);

/// One stream; `where` names it in losses. kBadData where it is none of rangescope's. Damage behind
/// the head is cut off and counted. Memory: what the samples take, at most 4,000 times the file.
[[nodiscard]] base::Result<void> read_samples(std::span<const std::byte> file,
                                              const std::string& where,
                                              model::Session& session);

}  // namespace rangescope::read::native
