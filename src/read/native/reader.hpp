// The reader `native`: one capture file, or a run's folder of captures (one for each process image) as one session on
// CLOCK_MONOTONIC. Format: docs/formats/native-trace.md.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::native {

class NativeReader : public Reader {
 public:
  [[nodiscard]] std::string_view name() const override { return "native"; }
  [[nodiscard]] bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) const override;
  [[nodiscard]] base::Result<model::Session> read(const std::filesystem::path& path,
                                                  const Options& options) const override;

 private:
  [[nodiscard]] base::Result<model::Session> read_windows(const std::vector<std::filesystem::path>& windows,
                                                          const Options& options) const;
};

}  // namespace rangescope::read::native
