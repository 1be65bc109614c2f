// The rows of a query, for `rangescope query` and `rangescope export`.
#pragma once

#include <string>

#include "base/sqlite.hpp"
#include "report/exporter.hpp"

namespace rangescope::report::sqlite {

/// All rows of a statement as "table" (`width` columns at most, 0 for no limit), "csv" or "jsonl"; finishes the sink.
[[nodiscard]] base::Result<void> print_rows(base::Statement& statement, const std::string& format, Sink& sink,
                                            std::size_t width);

}  // namespace rangescope::report::sqlite
