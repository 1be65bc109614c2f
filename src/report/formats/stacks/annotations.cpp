// The functions that take most CPU time of their own, at the lines where most of it was sampled:
//
//   annotations  ::warning file=src/app.py,line=15,title=rangescope::red: 46.54 ms ...   GitHub's
//   workflow commands problems     src/app.py:15:1: warning: red: 46.54 ms ...   VS Code's problem
//   matcher $gcc, vim's quickfix
//
// Files in the run's working directory are named from there, as GitHub wants them; where there are
// any, no others are listed. Ten lines at most (--top N: another number): GitHub shows no more of
// one step.
#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/formats.hpp"

namespace rangescope::report {
namespace {

struct HotSelf {
  double ns = 0;           ///< of its own, in all ranges
  std::string where;       ///< the innermost range that has half of it or more; "" outside ranges
  std::size_t depth = 0;   ///< of that range
  bool in_folder = false;  ///< its file lies in the run's working directory
};
using HotLine = std::tuple<std::string, std::uint32_t, std::string>;  ///< file, line, function

/// The absolute path `file` as seen from `folder`; empty where it lies elsewhere.
std::filesystem::path in_folder_of(const std::string& folder, const std::filesystem::path& file) {
  if (folder.empty() || !file.is_absolute()) return {};
  auto inside = file.lexically_relative(folder);
  return inside.empty() || *inside.begin() == ".." ? std::filesystem::path() : inside;
}

/// A range's functions are those of the ranges inside as well, so the largest number is that of the
/// whole run.
std::map<HotLine, HotSelf> hot_lines(const model::Report& report) {
  std::map<HotLine, HotSelf> places;
  const auto each = [&](const model::CpuWork& work, const auto& visit) {
    for (const model::CpuFunction& function : work.functions) {
      const std::uint32_t line = function.hot_line != 0 ? function.hot_line : function.line;
      if (line == 0 || function.file.empty() || !(function.self_ns > 0)) continue;
      const auto file = std::filesystem::path(function.file).lexically_normal();
      const auto inside = in_folder_of(report.run.cwd, file);
      // A relative name is from where its code was compiled: ours where the code lies in the
      // folder.
      const bool in_folder = file.is_absolute()
                                 ? !inside.empty()
                                 : !in_folder_of(report.run.cwd, function.module).empty();
      HotSelf& hot = places[{(inside.empty() ? file : inside).string(), line, function.name}];
      hot.in_folder = in_folder;
      visit(hot, function.self_ns);
    }
  };
  const auto largest = [](HotSelf& hot, double ns) { hot.ns = std::max(hot.ns, ns); };
  for (const model::Region& region : report.regions)
    if (region.cpu && !region.process && !region.thread) each(*region.cpu, largest);
  if (report.cpu_outside) each(*report.cpu_outside, largest);
  for (const model::Region& region : report.regions) {
    if (!region.cpu || region.process || region.thread) continue;
    each(*region.cpu, [&](HotSelf& hot, double ns) {
      if (ns * 2 < hot.ns || region.path.size() <= hot.depth) return;
      hot.where = model::path_text(region);
      hot.depth = region.path.size();
    });
  }
  return places;
}

/// As GitHub's runner reads them back; of a property also ":" and ",".
std::string workflow_text(const std::string& text, bool property) {
  std::string out = base::replace_all(base::printable(text), "%", "%25");
  if (property) out = base::replace_all(base::replace_all(out, ":", "%3A"), ",", "%2C");
  return out;
}

base::Result<void> export_hot_lines(const model::Report& report, const Style& style, Sink& sink,
                                    bool github) {
  const auto places = hot_lines(report);
  if (places.empty())
    return base::fail(
        base::Code::kNothingCaptured, "the input holds no functions with source lines", {},
        "Record with rangescope profile --cpu; native code needs debug information (-g)");
  std::vector<const std::pair<const HotLine, HotSelf>*> order;
  const bool own = std::any_of(places.begin(), places.end(),
                               [](const auto& each) { return each.second.in_folder; });
  for (const auto& each : places)
    if (each.second.in_folder || !own) order.push_back(&each);
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return a->second.ns > b->second.ns; });
  constexpr std::size_t kMostLines = 10;
  order.resize(std::min(order.size(), style.top != 0 ? style.top : kMostLines));
  for (const auto* each : order) {
    const auto& [file, line, name] = each->first;
    std::string text =
        name + ": " + base::format_ns(each->second.ns) + " of CPU time in its own code";
    if (report.run.duration_ns > 0)
      text += ", " + base::format_share(each->second.ns / report.run.duration_ns) + " of the run";
    if (!each->second.where.empty()) text += ", most in " + each->second.where;
    const std::string at = std::to_string(line);
    sink.write(github ? "::warning file=" + workflow_text(file, true) + ",line=" + at +
                            ",title=rangescope::" + workflow_text(text, false) + "\n"
                      : base::printable(file) + ":" + at + ":1: warning: " + base::printable(text) +
                            "\n");
  }
  return {};
}

}  // namespace

base::Result<void> export_annotations(const model::Report& report, const model::Session*,
                                      const Style& style, Sink& sink) {
  return export_hot_lines(report, style, sink, true);
}

base::Result<void> export_problems(const model::Report& report, const model::Session*,
                                   const Style& style, Sink& sink) {
  return export_hot_lines(report, style, sink, false);
}

}  // namespace rangescope::report
