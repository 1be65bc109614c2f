// Reader of Nsight Systems' SQLite exports, every schema from before 2022 to 3.25 (docs/formats/nsys-sqlite.md).
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::nsys_sqlite {

class NsysSqliteReader : public Reader {
 public:
  [[nodiscard]] std::string_view name() const override { return "nsys-sqlite"; }
  [[nodiscard]] bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) const override;
  [[nodiscard]] base::Result<model::Session> read(const std::filesystem::path& path,
                                                  const Options& options) const override;
  [[nodiscard]] base::Result<std::filesystem::path> database(const std::filesystem::path& path,
                                                             const Options& /*options*/) const override {
    return path;
  }
};

/// The same through the SQLite library alone: what tests compare the page decoder with.
[[nodiscard]] base::Result<model::Session> read_through_library(const std::filesystem::path& path,
                                                                const Options& options);

}  // namespace rangescope::read::nsys_sqlite
