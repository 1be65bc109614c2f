// Ranks of a parallel job for the page: heat map, what each did over time, collectives and
// messages.
#include <algorithm>
#include <cmath>

#include "report/document/json_writer.hpp"
#include "report/document/region_table.hpp"
#include "report/formats/html/data.hpp"

namespace rangescope::report {
namespace {

constexpr std::size_t kMostRegions = 50, kMostRows = 100;

/// Microseconds to four digits: more is not seen, and a thousand ranks have many.
void short_list(JsonWriter& json, std::string_view name, const std::vector<double>& ns) {
  json.open_line_array(name);
  for (const double value : ns) {
    if (std::isnan(value)) {
      json.null();
      continue;
    }
    const double us = value / 1000,
                 step = us > 0 ? std::pow(10.0, std::floor(std::log10(us)) - 3) : 1;
    json.number(step < 1 ? std::round(us / step) / std::round(1 / step) : std::round(us));
  }
  json.close();
}

void heat(JsonWriter& json, const model::Report& report) {
  std::vector<const model::Region*> largest;
  for (const model::Region& region : report.regions)
    if (region.ranks && region.domain != "NCCL" && region.domain != "MPI")
      largest.push_back(&region);
  const auto size = [](const model::Region* region) {
    return region->ranks->mean_ns * static_cast<double>(region->ranks->count);
  };
  std::stable_sort(largest.begin(), largest.end(),
                   [&](const auto* a, const auto* b) { return size(a) > size(b); });
  if (largest.size() > kMostRegions) largest.resize(kMostRegions);
  std::sort(largest.begin(), largest.end(),
            [](const auto* a, const auto* b) { return a->id < b->id; });
  json.line_objects("heat", largest, [&](const model::Region* region) {
    json.field("region", region->id);
    short_list(json, "own", region->ranks->own_by_rank);
    short_list(json, "all", region->ranks->by_rank);
  });
}

}  // namespace

std::string html_base64(std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : kLetters[three >> (18 - 6 * k) & 63];
  }
  return out;
}

void write_html_job(const model::Report& report, JsonWriter& json) {
  json.open_line_object();
  json.line_objects("ranks", report.ranks, [&](const model::Rank& rank) {
    json.fields("rank", rank.rank, "host", rank.host, "device", rank.device);
  });
  heat(json, report);
  json.open_line_array("activity");
  for (const model::RankActivity& of : report.activity) {
    std::string bytes;
    for (std::size_t i = 0; i < of.compute.size(); ++i)
      for (const float share : {of.compute[i], of.transfer[i], of.wait[i]})
        bytes += static_cast<char>(
            static_cast<unsigned char>(std::lround(255 * std::clamp(share, 0.0F, 1.0F))));
    json.text(html_base64(bytes));
  }
  json.close();
  write_html_tables(communication_sections(report, kMostRows), json);
  json.close();
}

void write_html_tables(const std::vector<Section>& sections, JsonWriter& json) {
  json.line_objects("tables", sections, [&](const Section& section) {
    const Grid& grid = std::get<Grid>(section.blocks.front());
    std::vector<std::string> heads;
    std::vector<bool> right;
    for (const base::Table::Column& column : grid.columns) {
      heads.push_back(column.title);
      right.push_back(column.right);
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : grid.rows)
      for (rows.emplace_back(); const GridCell& cell : row) rows.back().push_back(cell.text);
    json.fields("title", section.title, "heads", heads, "right", right, "rows", rows);
    json.field("more", grid.more);
  });
}

}  // namespace rangescope::report
