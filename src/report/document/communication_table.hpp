// Collectives and messages of a parallel job as tables, for the formats that have tables.
#pragma once

#include <string>
#include <vector>

#include "model/report.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

struct CommunicationTable {
  std::string what;  ///< "collective": what a row is
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;
  std::size_t hidden = 0;  ///< rows that were left out
};

/// Only those with rows, each of at most `most` rows, the most waiting first.
[[nodiscard]] std::vector<CommunicationTable> communication_tables(const model::Report& report, std::size_t most);

/// For the terminal.
void write_communication(const model::Report& report, const Style& style, Sink& sink);

}  // namespace rangescope::report
