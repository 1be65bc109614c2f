// The comparison as one offline page, largest change first, with a flame graph of differences. It
// loads nothing from elsewhere; names are always text.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/text.hpp"
#include "model/comparison.hpp"
#include "report/compare/document.hpp"
#include "report/compare/formats.hpp"
#include "report/document/flame.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/web_pages.hpp"
#include "report/exporter.hpp"
#include "report/sink.hpp"

namespace rangescope::report {
namespace {

// The flame graph shows how the CPU time of one region's functions changed from the first side to
// the last.

/// Nodes that are drawn; samples of others count for their callers.
constexpr std::size_t kMaxDrawnNodes = 30'000;

using model::kNone;

struct FlameNode {
  std::uint32_t parent = kNone, name = 0;
  std::int64_t self[2] = {}, total[2] = {};  ///< samples of the first side and the last
};

/// Callers precede their callees.
std::vector<FlameNode> flame_nodes(const model::Comparison& comparison,
                                   const model::ComparedRegion& shown,
                                   std::size_t last_side) {
  std::vector<FlameNode> nodes;
  std::unordered_map<std::uint64_t, std::uint32_t> index_of;
  const auto add_chain = [&](const model::ComparedChain& chain) {
    std::uint32_t node = kNone;
    for (const std::uint32_t frame : chain.frames) {
      const auto next = static_cast<std::uint32_t>(nodes.size());
      const auto [entry, is_new] = index_of.try_emplace(std::uint64_t{node} << 32 | frame, next);
      if (is_new)
        nodes.push_back({node, frame});
      node = entry->second;
    }
    if (node == kNone)
      return;
    nodes[node].self[0] += chain.samples.front();
    nodes[node].self[1] += chain.samples[last_side];
  };
  for (const auto* regions : {&comparison.regions, &comparison.missing}) {
    for (const model::ComparedRegion& region : *regions) {
      if (!model::is_within(region, shown))
        continue;
      for (const model::ComparedChain& chain : region.chains)
        add_chain(chain);
    }
  }
  for (FlameNode& node : nodes)
    std::copy(node.self, node.self + 2, node.total);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i].parent == kNone)
      continue;
    FlameNode& parent = nodes[nodes[i].parent];
    for (int side = 0; side < 2; ++side)
      parent.total[side] += nodes[i].total[side];
  }
  return nodes;
}

/// Keeps the heaviest nodes; returns how many samples now count for a caller.
std::int64_t drop_light_nodes(std::vector<FlameNode>& nodes) {
  if (nodes.size() <= kMaxDrawnNodes)
    return 0;
  std::vector<std::uint32_t> heaviest(nodes.size());
  std::iota(heaviest.begin(), heaviest.end(), std::uint32_t{0});
  std::ranges::stable_sort(heaviest, std::ranges::greater(), [&](std::uint32_t node) {
    return nodes[node].total[0] + nodes[node].total[1];
  });
  heaviest.resize(kMaxDrawnNodes);
  std::ranges::sort(heaviest);
  std::vector<std::uint32_t> new_index(nodes.size(), kNone);
  std::vector<FlameNode> kept;
  for (const std::uint32_t node : heaviest) {
    new_index[node] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(nodes[node]);
    std::uint32_t& parent = kept.back().parent;
    if (parent != kNone)
      parent = new_index[parent];
  }
  std::int64_t moved_samples = 0;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    if (new_index[node] != kNone)
      continue;
    const std::int64_t* self = nodes[node].self;
    moved_samples += self[0] + self[1];
    std::uint32_t caller = nodes[node].parent;
    while (caller != kNone && new_index[caller] == kNone)
      caller = nodes[caller].parent;
    if (caller == kNone)
      continue;
    for (int side = 0; side < 2; ++side)
      kept[new_index[caller]].self[side] += self[side];
  }
  nodes = std::move(kept);
  return moved_samples;
}

/// A part of the HTML page; the script draws it from
///   { region, sides: [A, B], sample_ns: [A, B], shortened, names: [[text, file]], nodes: [back,
///   name, A, B, ...] }
/// where a node's caller is `back` nodes before it (0: it has none), and A and B are the samples
/// that ended in it. sample_ns: the time of one sample, per instance of the region.
void write_flame(const model::Comparison& comparison,
                 const model::ComparedRegion& region,
                 Sink& sink) {
  const std::size_t last_side = comparison.sides.size() - 1;
  std::vector<FlameNode> nodes = flame_nodes(comparison, region, last_side);
  const std::int64_t shortened = drop_light_nodes(nodes);
  if (nodes.empty())
    return;
  std::unordered_map<std::uint32_t, std::uint32_t> index_of_name;
  std::vector<std::uint32_t> names;
  for (FlameNode& node : nodes) {
    const auto next = static_cast<std::uint32_t>(names.size());
    const auto [entry, is_new] = index_of_name.try_emplace(node.name, next);
    if (is_new)
      names.push_back(node.name);
    node.name = entry->second;
  }
  sink.write("<div id=\"flame\"></div><script type=\"application/json\" id=\"flame-data\">");
  JsonWriter json(sink, true);
  json.open_object();
  json.field("region", region_label(region));
  json.field("sides", std::array{side_letter(0), side_letter(last_side)});
  json.field("sample_ns", std::array{region.sample_ns.front(), region.sample_ns[last_side]});
  json.field("shortened", shortened);
  json.open_array("names");
  for (const std::uint32_t name : names)
    json.value(std::array{comparison.frames[name].name, comparison.frames[name].file});
  json.close();
  json.open_line_array("nodes");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const FlameNode& node = nodes[i];
    json.value(node.parent == kNone ? 0 : i - node.parent);
    json.value(node.name);
    for (const std::int64_t samples : node.self)
      json.value(samples);
  }
  json.close();
  json.close();
  json.finish();
  sink.write("</script>");
  sink.write(html_flame());
}

/// The answer, in the colour of its changes and larger than what follows.
std::string answer_markup(const model::Comparison& comparison) {
  std::string_view tone = "noise";
  const model::Standing standing = headline_standing(comparison);
  if (standing == model::Standing::kMore)
    tone = "more";
  if (standing == model::Standing::kLess)
    tone = "less";
  return "<p class=\"answer " + std::string(tone) + "\">" +
         markup_escaped(comparison_headline(comparison)) + "</p>";
}

}  // namespace

void write_comparison_collapsed(const model::Comparison& comparison,
                                const Style& style,
                                Sink& sink) {
  const model::ComparedRegion* shown = nullptr;
  if (!style.cpu.empty())
    shown = chains_shown(comparison, style.cpu);
  std::vector<std::string> texts;
  for (const model::ChainFrame& frame : comparison.frames)
    texts.push_back(folded_word(frame.name));
  // Chains are summed, since flamegraph.pl loses the difference of a chain that occurs twice:
  // ranges of two domains may have the same path.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sums;
  for (const auto* regions : {&comparison.regions, &comparison.missing}) {
    for (const model::ComparedRegion& region : *regions) {
      if (shown != nullptr && !model::is_within(region, *shown))
        continue;
      for (const model::ComparedChain& chain : region.chains) {
        std::vector<std::string> words;
        for (const std::string& range : region.path)
          words.push_back(folded_word(range));
        for (const std::uint32_t frame : chain.frames)
          words.push_back(texts[frame]);
        auto& sum = sums[base::join(words, ";")];
        sum.first += chain.samples.front();
        sum.second += chain.samples.back();
      }
    }
  }
  for (const auto& [chain, samples] : sums)
    sink.write(chain + " " + std::to_string(samples.first) + " " + std::to_string(samples.second) +
               "\n");
}

void write_comparison_html(const model::Comparison& comparison, const Style& style, Sink& sink) {
  Document page = comparison_document(comparison, style);
  page.sections.front().blocks.front() = Markup{answer_markup(comparison), "", ""};
  page.sections.front().blocks.emplace_back(
      Markup{"<p><label>Find <input id=\"find\" type=\"search\" placeholder=\"range or "
             "kernel\"></label></p>",
             "",
             ""});
  if (const model::ComparedRegion* region = chains_shown(comparison, style.cpu)) {
    StringSink flame;
    write_flame(comparison, *region, flame);
    if (!flame.text().empty())
      page.begin("flame graph of " + region_label(*region))
          .blocks.emplace_back(Markup{flame.text(), "", ""});
  }
  const std::string_view frame = html_comparison();
  const auto place = frame.find(kPagePlace);
  sink.write(frame.substr(0, place));
  render_html(page, sink);
  sink.write(frame.substr(place + kPagePlace.size()));
}

}  // namespace rangescope::report
