#include "report/document/communication_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::report {
namespace {

constexpr std::size_t kCommunicationRows = 8;  // rows in a terminal

std::string rate_text(const std::optional<double>& bytes_per_s) {
  return bytes_per_s ? base::format_si(*bytes_per_s, "B/s") : "-";
}

std::string where_text(const std::vector<std::string>& path) {
  return path.empty() ? "-" : base::printable(base::join(path, " > "));
}

}  // namespace

std::vector<CommunicationTable> communication_tables(const model::Report& report, std::size_t most) {
  std::vector<CommunicationTable> tables;
  if (!report.collectives.empty()) {
    CommunicationTable table{
        "collective",
        {"collective", "in", "bytes", "ranks", "calls", "transfer", "wait", "hidden", "bus", "last"},
        {},
        0};
    for (const model::Collective& row : report.collectives) {
      if (table.rows.size() == most) break;
      const auto last = std::max_element(row.by_rank.begin(), row.by_rank.end(),
                                         [](const auto& a, const auto& b) { return a.last < b.last; });
      table.rows.push_back(
          {base::printable(row.operation), where_text(row.path),
           std::isnan(row.bytes) ? "-" : base::format_bytes(row.bytes), std::to_string(row.ranks),
           base::format_count(row.calls), base::format_ns(row.transfer_ns), base::format_ns(row.wait_ns),
           row.hidden_share ? base::format_share(*row.hidden_share) : "-", rate_text(row.bus_bytes_per_s),
           last == row.by_rank.end() ? "-"
                                     : fmt::format("rank {}, {} of {}", last->rank, base::format_count(last->last),
                                                   base::format_count(row.calls))});
    }
    table.hidden = report.collectives.size() - table.rows.size();
    tables.push_back(std::move(table));
  }
  if (!report.messages.empty()) {
    CommunicationTable table{
        "pair", {"messages", "in", "bytes", "calls", "transfer", "late sender", "late receiver", "bandwidth"}, {}, 0};
    for (const model::PointToPoint& row : report.messages) {
      if (table.rows.size() == most) break;
      table.rows.push_back({fmt::format("rank {} to {}", row.from, row.to), where_text(row.path),
                            base::format_bytes(row.bytes), base::format_count(row.calls),
                            base::format_ns(row.transfer_ns), base::format_ns(row.late_sender_ns),
                            base::format_ns(row.late_receiver_ns), rate_text(row.bytes_per_s)});
    }
    table.hidden = report.messages.size() - table.rows.size();
    tables.push_back(std::move(table));
  }
  return tables;
}

void write_communication(const model::Report& report, const Style& style, Sink& sink) {
  if (style.top_kernels == 0) return;
  for (const CommunicationTable& shown :
       communication_tables(report, std::min(kCommunicationRows, style.top_kernels))) {
    std::vector<base::Table::Column> heads;
    for (std::size_t i = 0; i < shown.heads.size(); ++i)
      heads.push_back({shown.heads[i], i > 1, i == 0, i == 0 ? 0 : static_cast<int>(i == 1 ? 1 : 2)});
    base::Table table(std::move(heads));
    for (const auto& row : shown.rows) {
      std::vector<base::Table::Cell> cells;
      for (const std::string& text : row) cells.push_back({text});
      table.add(std::move(cells));
    }
    sink.write("\n" + table.render(style.width, style.color));
    if (shown.hidden > 0)
      sink.write(base::toned("(" + base::counted(shown.hidden, "more " + shown.what) + ": -f json has all)\n",
                             base::Tone::kDim, style.color));
  }
}

}  // namespace rangescope::report
