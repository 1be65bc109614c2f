// Finds Nsight Systems on this machine: the `nsys` command and the QdstrmImporter that belongs to it.
#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::read::nsys_rep {

/// 2024.6.2. Compared as numbers.
struct Version {
  int year = 0, release = 0, patch = 0;
  auto operator<=>(const Version&) const = default;
  [[nodiscard]] std::string text() const;
};

/// The first `N.N.N` in a text (also with '@' for '.', as reports write it).
[[nodiscard]] std::optional<Version> find_version(std::string_view text);

struct Nsys {
  std::filesystem::path path;
  Version version;
};

/// Every nsys that answers `--version`, in this order: `asked` alone when it is not empty, $RANGESCOPE_NSYS alone when
/// it is set, else PATH, /opt/nvidia, CUDA's folders and Debian's. kToolMissing when the one that was asked for does
/// not run.
[[nodiscard]] base::Result<std::vector<Nsys>> find_nsys(std::string_view asked);

/// The QdstrmImporter of the installation that `nsys` belongs to.
[[nodiscard]] std::optional<std::filesystem::path> find_importer(const std::filesystem::path& nsys);

/// Shared libraries that `program` needs and the system does not have, as the dynamic loader tells; empty when none.
[[nodiscard]] std::vector<std::string> missing_libraries(const std::filesystem::path& program);

}  // namespace rangescope::read::nsys_rep
