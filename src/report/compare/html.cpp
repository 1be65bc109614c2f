// The comparison as one offline page without scripts of others: side by side, what changed most
// first. Names are text everywhere. The only script filters the tables by what is typed.
#include <algorithm>
#include <array>
#include <map>
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

// The flame graph of a comparison: how the CPU time of one region's functions grew, from the first
// side to the last.

inline constexpr std::size_t kFlameMost =
    30'000;  ///< functions that are drawn; samples of others count for callers

using model::kNone;

struct FlameNode {
  std::uint32_t parent = kNone, name = 0;
  std::int64_t own[2] = {}, total[2] = {};
};

/// Callers come before what they call.
std::vector<FlameNode> nodes_of(const model::Comparison& comparison,
                                const model::ComparedRegion& whole, std::size_t last) {
  std::vector<FlameNode> nodes;
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (const auto* list : {&comparison.regions, &comparison.missing}) {
    for (const model::ComparedRegion& region : *list) {
      if (!model::is_within(region, whole)) continue;
      for (const model::ComparedChain& chain : region.chains) {
        std::uint32_t node = kNone;
        for (const std::uint32_t frame : chain.frames) {
          const auto next = static_cast<std::uint32_t>(nodes.size());
          const auto [at, fresh] = known.try_emplace(std::uint64_t{node} << 32 | frame, next);
          if (fresh) nodes.push_back({node, frame});
          node = at->second;
        }
        if (node == kNone) continue;
        nodes[node].own[0] += chain.samples.front();
        nodes[node].own[1] += chain.samples[last];
      }
    }
  }
  for (FlameNode& node : nodes) std::copy(node.own, node.own + 2, node.total);
  for (std::size_t n = nodes.size(); n-- > 0;)
    for (int side = 0; side < 2 && nodes[n].parent != kNone; ++side)
      nodes[nodes[n].parent].total[side] += nodes[n].total[side];
  return nodes;
}

/// Keeps the heaviest; returns the samples that count for a caller instead.
std::int64_t shorten(std::vector<FlameNode>& nodes) {
  if (nodes.size() <= kFlameMost) return 0;
  const auto weight = [&](std::uint32_t n) { return nodes[n].total[0] + nodes[n].total[1]; };
  std::vector<std::uint32_t> order(nodes.size()), to(nodes.size(), kNone);
  for (std::uint32_t n = 0; n < nodes.size(); ++n) order[n] = n;
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return weight(a) > weight(b); });
  std::sort(order.begin(), order.begin() + kFlameMost);
  std::vector<FlameNode> kept;
  for (std::size_t i = 0; i < kFlameMost; ++i) {
    to[order[i]] = static_cast<std::uint32_t>(i);
    kept.push_back(nodes[order[i]]);
    if (kept.back().parent != kNone) kept.back().parent = to[kept.back().parent];
  }
  std::int64_t moved = 0;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (to[n] != kNone) continue;
    std::uint32_t up = nodes[n].parent;
    while (up != kNone && to[up] == kNone) up = nodes[up].parent;
    moved += nodes[n].own[0] + nodes[n].own[1];
    for (int side = 0; side < 2 && up != kNone; ++side)
      kept[to[up]].own[side] += nodes[n].own[side];
  }
  nodes = std::move(kept);
  return moved;
}

/// A part of the HTML page; the script draws it from
///   { region, sides: [A, B], sample_ns: [A, B], shortened, names: [[text, file]], nodes: [back,
///   name, A, B, ...] }
/// where a node is called by the one `back` nodes before it (0: by none), and A and B are the
/// samples that ended in it. sample_ns: the time of one sample, per occurrence of the region.
void write_flame(const model::Comparison& comparison, const model::ComparedRegion& region,
                 Sink& sink) {
  const std::size_t last = comparison.sides.size() - 1;
  std::vector<FlameNode> nodes = nodes_of(comparison, region, last);
  const std::int64_t shortened = shorten(nodes);
  if (nodes.empty()) return;
  std::unordered_map<std::uint32_t, std::uint32_t> name_to;
  std::vector<std::uint32_t> names;
  for (FlameNode& node : nodes) {
    const auto [at, fresh] =
        name_to.try_emplace(node.name, static_cast<std::uint32_t>(names.size()));
    if (fresh) names.push_back(node.name);
    node.name = at->second;
  }
  sink.write("<div id=\"flame\"></div><script type=\"application/json\" id=\"flame-data\">");
  JsonWriter json(sink, true);
  json.open_object();
  json.fields("region", region_label(region), "sides",
              std::array{side_letter(0), side_letter(last)}, "sample_ns",
              std::array{region.sample_ns.front(), region.sample_ns[last]}, "shortened", shortened);
  json.open_array("names");
  for (const std::uint32_t name : names)
    json.value(std::array{comparison.frames[name].name, comparison.frames[name].file});
  json.close();
  json.open_line_array("nodes");
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    json.value(nodes[n].parent == kNone ? 0 : n - nodes[n].parent);
    json.value(nodes[n].name);
    for (const std::int64_t own : nodes[n].own) json.value(own);
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
  if (standing == model::Standing::kMore) tone = "more";
  if (standing == model::Standing::kLess) tone = "less";
  return "<p class=\"answer " + std::string(tone) + "\">" +
         markup_escaped(comparison_headline(comparison)) + "</p>";
}

}  // namespace

void write_comparison_collapsed(const model::Comparison& comparison, const Style& style,
                                Sink& sink) {
  const model::ComparedRegion* only =
      style.cpu.empty() ? nullptr : chains_shown(comparison, style.cpu);
  std::vector<std::string> texts;
  for (const model::ChainFrame& frame : comparison.frames) texts.push_back(folded_word(frame.name));
  // flamegraph.pl loses the difference of a chain that comes twice: ranges of two domains may have
  // one path.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sums;
  for (const auto* list : {&comparison.regions, &comparison.missing}) {
    for (const model::ComparedRegion& region : *list) {
      if (only != nullptr && !model::is_within(region, *only)) continue;
      for (const model::ComparedChain& chain : region.chains) {
        std::vector<std::string> words;
        for (const std::string& range : region.path) words.push_back(folded_word(range));
        for (const std::uint32_t frame : chain.frames) words.push_back(texts[frame]);
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
             "", ""});
  if (const model::ComparedRegion* region = chains_shown(comparison, style.cpu)) {
    StringSink flame;
    write_flame(comparison, *region, flame);
    if (!flame.text().empty())
      page.begin("flame graph of " + region_label(*region))
          .blocks.emplace_back(Markup{flame.text(), "", ""});
  }
  const std::string_view around = html_comparison();
  const auto place = around.find(kPagePlace);
  sink.write(around.substr(0, place));
  render_html(page, sink);
  sink.write(around.substr(place + kPagePlace.size()));
}

}  // namespace rangescope::report
