// One line of comma-separated values (RFC 4180 quoting), as nsys stats prints it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rangescope::read::nsys_csv {

/// The fields of the record at the head of `text`, which is advanced beyond it (line break included). Quoted fields may
/// hold commas, doubled quotes and line breaks. A quote that never closes ends at the end of its line, so that one
/// stray quote in a program's output does not swallow the table behind it.
[[nodiscard]] std::vector<std::string> take_record(std::string_view& text);

}  // namespace rangescope::read::nsys_csv
