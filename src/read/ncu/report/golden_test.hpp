// Recorded reports and ncu output for the tests of this folder; stored as zstd in tests/golden/ncu.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "read/ncu/report/unpack.hpp"

namespace rangescope::read::ncu_report {

inline std::string golden_path(const std::string& name) {
  return (std::string(base::source_dir) + "/tests/golden/ncu/") + name;
}

/// The unpacked bytes of tests/golden/ncu/<name>.
inline std::string golden(const std::string& name) {
  const auto packed = base::read_file(golden_path(name));
  EXPECT_TRUE(packed.has_value()) << name;
  if (!packed)
    return {};
  auto unpacked = unpack(*packed, name);
  EXPECT_TRUE(unpacked.has_value()) << name;
  return unpacked ? std::move(unpacked->bytes) : std::string();
}

/// Every recorded report: kernel, range and application-range replay of ncu 2025.3.1.
inline const std::vector<std::string>& golden_reports() {
  static const std::vector<std::string> all{"ar_async",
                                            "ar_decode",
                                            "k_decode",
                                            "k_dom",
                                            "k_exc",
                                            "k_kern",
                                            "k_nested",
                                            "k_re",
                                            "k_roof",
                                            "k_se",
                                            "k_workerp",
                                            "r_alloc",
                                            "r_async",
                                            "r_decode",
                                            "lar",
                                            "lk",
                                            "lr"};
  return all;
}

/// RFC 4180, for the tests only.
inline std::vector<std::vector<std::string>> csv_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string cell;
  bool quoted = false, any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"')
        cell += '"', ++i;
      else if (c == '"')
        quoted = false;
      else
        cell += c;
    } else if (c == '"')
      quoted = any = true;
    else if (c == ',')
      row.push_back(std::move(cell)), cell.clear(), any = true;
    else if (c == '\n') {
      if (any)
        row.push_back(std::move(cell)), rows.push_back(std::move(row));
      cell.clear(), row.clear(), any = false;
    } else if (c != '\r')
      cell += c, any = true;
  }
  return rows;
}

}  // namespace rangescope::read::ncu_report
