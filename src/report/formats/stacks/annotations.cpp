// The program's own functions with most CPU time, with that of the libraries that they call. Where
// none was sampled, the functions with most CPU time of their own that have a source line. Each at
// its line with most samples:
//
//   annotations  ::warning file=src/app.py,line=15,title=rangescope::red: 46.54 ms ...
//                GitHub's workflow commands
//   problems     src/app.py:15:1: warning: red: 46.54 ms ...
//                VS Code's problem matcher $gcc, vim's quickfix
//
// Files in the run's working directory have paths relative to it, as GitHub wants them; if there
// are any, no other files are listed. Without --top at most ten lines: GitHub shows no more per
// step.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "model/program.hpp"
#include "report/formats.hpp"

namespace rangescope::report {
namespace {

struct HotSelf {
  double ns = 0;           ///< CPU time in the whole run
  std::string region;      ///< the innermost range that has at least half of it; "" outside ranges
  std::size_t depth = 0;   ///< of that range
  bool in_folder = false;  ///< its file is in the run's working directory
};
using HotLine = std::tuple<std::string, std::uint32_t, std::string>;  ///< file, line, function
using HotLines = std::map<HotLine, HotSelf>;

/// The absolute path `file` relative to `folder`; empty if it is not in there.
std::filesystem::path in_folder_of(const std::string& folder, const std::filesystem::path& file) {
  if (folder.empty() || !file.is_absolute())
    return {};
  auto inside = file.lexically_relative(folder);
  if (inside.empty() || *inside.begin() == "..")
    return {};
  return inside;
}

using HotLineOf = std::map<std::pair<std::string, std::string>, std::uint32_t>;  ///< name, file

/// Where most samples of a function were taken, of those that are known.
HotLineOf known_hot_lines(const model::Report& report) {
  HotLineOf hot_lines;
  const auto add = [&](const base::Held<model::CpuWork>& cpu) {
    if (!cpu)
      return;
    for (const model::CpuFunction& function : cpu->functions)
      if (function.hot_line != 0)
        hot_lines[{function.name, function.file}] = function.hot_line;
  };
  for (const model::Region& region : report.regions)
    add(region.cpu);
  add(report.cpu_outside);
  return hot_lines;
}

using FunctionList = std::vector<model::CpuFunction> model::CpuWork::*;

/// The program's own functions if the report has any, else all.
FunctionList listed_functions(const model::Report& report) {
  const auto has_own = [](const base::Held<model::CpuWork>& cpu) {
    return cpu && !cpu->own_functions.empty();
  };
  const bool any = has_own(report.cpu_outside) ||
                   std::ranges::any_of(report.regions, has_own, &model::Region::cpu);
  if (any)
    return &model::CpuWork::own_functions;
  return &model::CpuWork::functions;
}

/// Calls `visit` with each function that has a source line and its entry in `lines`.
template <class Visit>
void visit_functions(const model::Report& report,
                     const model::CpuWork& cpu,
                     const HotLineOf& hot_line_of,
                     HotLines& lines,
                     Visit visit) {
  for (const model::CpuFunction& function : cpu.*listed_functions(report)) {
    std::uint32_t line = function.line;
    const auto hot_line = hot_line_of.find({function.name, function.file});
    if (hot_line != hot_line_of.end())
      line = hot_line->second;
    if (line == 0 || function.file.empty() || !(function.self_ns > 0))
      continue;
    const auto file = std::filesystem::path(function.file).lexically_normal();
    const auto relative = in_folder_of(report.run.cwd, file);
    bool in_folder = !relative.empty();
    // A relative name starts at the folder of the compilation: its library tells whether the code
    // is of the working directory.
    if (!file.is_absolute())
      in_folder = !in_folder_of(report.run.cwd, function.module).empty();
    const auto& shown_file = relative.empty() ? file : relative;
    HotSelf& hot = lines[{shown_file.string(), line, function.name}];
    hot.in_folder = in_folder;
    visit(hot, function.self_ns);
  }
}

/// Functions of a range include those of its inner ranges: the largest time of a function is that
/// of the whole run.
HotLines hot_lines(const model::Report& report) {
  const HotLineOf hot_line_of = known_hot_lines(report);
  HotLines lines;
  std::vector<const model::Region*> regions;
  for (const model::Region& region : report.regions)
    if (region.cpu && !region.process && !region.thread)
      regions.push_back(&region);

  const auto keep_largest = [](HotSelf& hot, double ns) { hot.ns = std::max(hot.ns, ns); };
  for (const model::Region* region : regions)
    visit_functions(report, *region->cpu, hot_line_of, lines, keep_largest);
  if (report.cpu_outside)
    visit_functions(report, *report.cpu_outside, hot_line_of, lines, keep_largest);

  if (model::is_program(report))
    return lines;  // its region says nothing
  for (const model::Region* region : regions) {
    visit_functions(report, *region->cpu, hot_line_of, lines, [&](HotSelf& hot, double ns) {
      const bool has_half = ns * 2 >= hot.ns;
      if (!has_half || region->path.size() <= hot.depth)
        return;
      hot.region = model::path_text(*region);
      hot.depth = region->path.size();
    });
  }
  return lines;
}

/// Escaped for a workflow command; in a property also ":" and ",".
std::string workflow_text(const std::string& text, bool is_property) {
  std::string escaped = base::replace_all(base::printable(text), "%", "%25");
  if (!is_property)
    return escaped;
  escaped = base::replace_all(escaped, ":", "%3A");
  return base::replace_all(escaped, ",", "%2C");
}

/// "red: 46.54 ms of CPU time with the libraries that it calls, 12.0 % of the run, most in step"
std::string hot_text(const std::string& name, const HotSelf& hot, bool is_own, double run_ns) {
  std::string text = name + ": " + base::format_ns(hot.ns) + " of CPU time ";
  if (is_own)
    text += "with the libraries that it calls";
  else
    text += "in its own code";
  if (run_ns > 0)
    text += ", " + base::format_share(hot.ns / run_ns) + " of the run";
  if (!hot.region.empty())
    text += ", most in " + hot.region;
  return text;
}

std::string github_line(const std::string& file, std::uint32_t line, const std::string& text) {
  return fmt::format("::warning file={},line={},title=rangescope::{}\n",
                     workflow_text(file, true),
                     line,
                     workflow_text(text, false));
}

std::string compiler_line(const std::string& file, std::uint32_t line, const std::string& text) {
  return fmt::format("{}:{}:1: warning: {}\n", base::printable(file), line, base::printable(text));
}

base::Result<void> export_hot_lines(const model::Report& report,
                                    const Style& style,
                                    Sink& sink,
                                    decltype(github_line) format_line) {
  constexpr std::size_t kDefaultLines = 10;
  const HotLines lines = hot_lines(report);
  if (lines.empty())
    return base::fail(
        base::Code::kNothingCaptured,
        "the input holds no functions with source lines",
        {},
        "Record with rangescope profile --cpu; native code needs debug information (-g)");
  const bool has_own_files =
      std::ranges::any_of(lines, [](const auto& line) { return line.second.in_folder; });
  const bool is_own = listed_functions(report) == &model::CpuWork::own_functions;
  std::vector<const HotLines::value_type*> order;
  for (const auto& line : lines)
    if (line.second.in_folder || !has_own_files)
      order.push_back(&line);
  std::ranges::stable_sort(
      order, std::ranges::greater(), [](const auto* line) { return line->second.ns; });
  const std::size_t max_lines = style.top != 0 ? style.top : kDefaultLines;
  order.resize(std::min(order.size(), max_lines));
  for (const auto* entry : order) {
    const auto& [file, line, name] = entry->first;
    const std::string text = hot_text(name, entry->second, is_own, report.run.duration_ns);
    sink.write(format_line(file, line, text));
  }
  return {};
}

}  // namespace

base::Result<void> export_annotations(const model::Report& report,
                                      const model::Session*,
                                      const Style& style,
                                      Sink& sink) {
  return export_hot_lines(report, style, sink, github_line);
}

base::Result<void> export_problems(const model::Report& report,
                                   const model::Session*,
                                   const Style& style,
                                   Sink& sink) {
  return export_hot_lines(report, style, sink, compiler_line);
}

}  // namespace rangescope::report
