// CPU samples of a program (format: wire/cpu.hpp) into a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/session.hpp"

namespace rangescope::read::native {

/// Damage is counted as losses; kBadData where it is no such stream. The session's threads are
/// known already.
[[nodiscard]] base::Result<void> read_cpu(std::span<const std::byte> file,
                                          const std::string& where,
                                          model::Session& session,
                                          const std::set<std::uint32_t>& left_out = {});

/// What lies in the folder `cpu` of a folder of captures or of a run. `left_out`: ids of processes
/// whose samples and waits are not taken.
void read_cpu_files(const std::filesystem::path& folder,
                    const std::set<std::uint32_t>& left_out,
                    model::Session& session);

}  // namespace rangescope::read::native
