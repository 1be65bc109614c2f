// Which table of nsys stats a header line begins, and its rows by column name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::read::nsys_csv {

enum class Table {
  kNone,
  kKernels,
  kRanges,
  kRangesByStyle,
  kRangeKernels,
  kProjection,
  kCopyTimes,
  kCopySizes,
  // With times, from here on:
  kRangeTrace,
  kProjectionTrace,
  kGpuTrace,
  kExecTrace,
  kCallTrace
};

/// Every row of it is one event.
[[nodiscard]] constexpr bool is_trace(Table table) {
  return table >= Table::kRangeTrace;
}

/// The cells of a row.
using Fields = std::vector<std::string_view>;

struct Column {
  std::size_t index = 0;
  double scale = 1;      ///< to nanoseconds or bytes
  bool rounded = false;  ///< bytes printed in a larger unit
};

struct Header {
  Table table = Table::kNone;
  std::map<std::string, Column, std::less<>> columns;
  std::size_t width = 0;
  bool bare_names = false;  ///< of 2020: `Average` without unit, ranges without domain
};

/// Column names become lower case, without unit, and those of old versions today's. kNone when it
/// is no header of a table that is read.
[[nodiscard]] Header parse_header(const Fields& fields);

/// Is it the header of some table of nsys stats? Recognized by a column like "Total Time (ns)".
[[nodiscard]] bool looks_like_header(const Fields& fields);

/// The column that a header lacks to be that of a table that is read, where it lacks only one; else
/// "".
[[nodiscard]] std::string missing_column(const Fields& fields);

/// A time as it was printed.
struct Moment {
  std::int64_t ns = 0;       ///< below 2^61 either way
  double resolution_ns = 1;  ///< what the last digit is worth, at least 1
};

/// One row, by column name. Numbers may have thousands separators.
class Row {
 public:
  Row(const Header& header, const Fields& fields) : header_(header), fields_(fields) {}
  [[nodiscard]] bool has(std::string_view column) const { return header_.columns.contains(column); }
  [[nodiscard]] std::string_view text(std::string_view column) const;
  /// Finite; nothing for an empty cell, `None`, or what is no number.
  [[nodiscard]] std::optional<double> number(std::string_view column) const;
  /// 0 where there is none.
  [[nodiscard]] std::int64_t count(std::string_view column) const;
  /// An id or size that fits.
  [[nodiscard]] std::optional<std::uint32_t> id(std::string_view column) const;
  [[nodiscard]] std::optional<Moment> moment(std::string_view column) const;
  /// The column holds bytes in a unit with more of them.
  [[nodiscard]] bool rounded(std::string_view column) const {
    return has(column) && find(column)->rounded;
  }

 private:
  [[nodiscard]] const Column* find(std::string_view column) const;

  const Header& header_;
  const Fields& fields_;
};

}  // namespace rangescope::read::nsys_csv
