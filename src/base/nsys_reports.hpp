// The reports of `nsys stats`, by name.
#pragma once

#include <span>
#include <string_view>

namespace rangescope::base {

struct NsysReport {
  std::string_view now, old;  ///< since 2023.1, and up to 2022.4; "" where a version has none
  bool read = false;          ///< rangescope reads its table
};
[[nodiscard]] std::span<const NsysReport> nsys_reports();

}  // namespace rangescope::base
