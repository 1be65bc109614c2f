// Ranks of a parallel job for the page: heat map, activity over time, collectives and messages.
#include <algorithm>
#include <cmath>

#include "report/document/json_writer.hpp"
#include "report/document/region_table.hpp"
#include "report/formats/html/data.hpp"

namespace rangescope::report {
namespace {

constexpr std::size_t kMaxHeatRegions = 50, kMaxTableRows = 100;

/// Microseconds with four digits, which keeps the lists of a thousand ranks short.
void rounded_list(JsonWriter& json, std::string_view name, const std::vector<double>& ns) {
  json.open_line_array(name);
  for (const double value : ns) {
    if (std::isnan(value)) {
      json.null();
      continue;
    }
    const double us = value / 1000;
    double step = 1;
    if (us > 0)
      step = std::pow(10.0, std::floor(std::log10(us)) - 3);
    if (step < 1)
      json.number(std::round(us / step) / std::round(1 / step));
    else
      json.number(std::round(us));
  }
  json.close();
}

void page_heat_map(JsonWriter& json, const model::Report& report) {
  std::vector<const model::Region*> regions;
  for (const model::Region& region : report.regions) {
    const bool is_communication = region.domain == "NCCL" || region.domain == "MPI";
    if (region.ranks && !is_communication)
      regions.push_back(&region);
  }
  std::ranges::stable_sort(regions, std::ranges::greater(), [](const model::Region* region) {
    return region->ranks->mean_ns * static_cast<double>(region->ranks->count);
  });
  if (regions.size() > kMaxHeatRegions)
    regions.resize(kMaxHeatRegions);
  std::ranges::sort(regions, std::ranges::less(), &model::Region::id);
  json.line_objects("heat", regions, [&](const model::Region* region) {
    json.field("region", region->id);
    rounded_list(json, "own", region->ranks->own_by_rank);
    rounded_list(json, "all", region->ranks->by_rank);
  });
}

}  // namespace

std::string html_base64(std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string encoded;
  encoded.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;  // 24 bits
    for (std::size_t k = 0; k < 3; ++k) {
      group <<= 8;
      if (k < count)
        group |= static_cast<unsigned char>(bytes[i + k]);
    }
    for (std::size_t k = 0; k < 4; ++k)
      encoded += k > count ? '=' : kLetters[group >> (18 - 6 * k) & 63];
  }
  return encoded;
}

namespace {

/// A byte for each share 0..1 of compute, transfer and wait, in turn.
std::string activity_bytes(const model::RankActivity& activity) {
  std::string bytes;
  const auto add = [&](float share) {
    const long value = std::lround(255 * std::clamp(share, 0.0F, 1.0F));
    bytes += static_cast<char>(static_cast<unsigned char>(value));
  };
  for (std::size_t i = 0; i < activity.compute.size(); ++i) {
    add(activity.compute[i]);
    add(activity.transfer[i]);
    add(activity.wait[i]);
  }
  return bytes;
}

void page_table(JsonWriter& json, const Section& section) {
  const Grid& grid = std::get<Grid>(section.blocks.front());
  std::vector<std::string> heads;
  std::vector<bool> right;
  for (const base::Table::Column& column : grid.columns) {
    heads.push_back(column.title);
    right.push_back(column.right);
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& cells : grid.rows) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const GridCell& cell : cells)
      row.push_back(cell.text);
  }
  json.field("title", section.title);
  json.field("heads", heads);
  json.field("right", right);
  json.field("rows", rows);
  json.field("more", grid.omitted);
}

}  // namespace

void write_html_job(const model::Report& report, JsonWriter& json) {
  json.open_line_object();
  json.line_objects("ranks", report.ranks, [&](const model::Rank& rank) {
    json.field("rank", rank.rank);
    json.field("host", rank.host);
    json.field("device", rank.device);
  });
  page_heat_map(json, report);
  json.open_line_array("activity");
  for (const model::RankActivity& activity : report.activity)
    json.text(html_base64(activity_bytes(activity)));
  json.close();
  write_html_tables(communication_sections(report, kMaxTableRows), json);
  json.close();
}

void write_html_tables(const std::vector<Section>& sections, JsonWriter& json) {
  json.line_objects("tables", sections, [&](const Section& section) { page_table(json, section); });
}

}  // namespace rangescope::report
