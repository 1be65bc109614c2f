#include "cli/print/doctor_program.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/document/view.hpp"

namespace rangescope::cli {
namespace {

constexpr std::size_t kMostRanges = 20;

std::string domain_text(const doctor::SeenRange& range) {
  if (range.domain.empty())
    return "default domain";
  return "domain " + base::printable(range.domain);
}

std::string alike(const doctor::RangeFacts& range) {
  if (range.sequences.empty() || range.kernels + range.graph_launches == 0)
    return {};
  if (range.only_first_differs)
    return "alike except for the first";
  if (range.sequences.size() > 1)
    return std::to_string(range.sequences.size()) + " different kernel sequences";
  if (range.shapes_differ)
    return "the same kernels each time, in different launch shapes";
  if (range.occurrences > 1)
    return "the same kernels each time";
  return {};
}

/// "step and 2 other paths: push/pop, default domain, registered string"
std::string paths_line(const doctor::ProgramFacts& facts, const doctor::RangeFacts& range) {
  const doctor::SeenRange& first = facts.ranges[range.seen.front()];
  std::string text = "    " + base::printable(first.shown());
  if (range.seen.size() > 1)
    text += " and " + base::counted(range.seen.size() - 1, "other path");
  text.append(": ").append(model::range_kind_text(first.kind));
  text += ", " + domain_text(first) + ", ";
  const bool is_registered = range.registered == range.occurrences;
  if (!is_registered)
    text += "no ";
  return text + "registered string\n";
}

/// "8 instances on 1 thread of 1 process, median 1.2 ms, first 3.4 ms"
std::string instances_line(const doctor::RangeFacts& range) {
  std::string text = "    " + base::counted(range.occurrences, "instance") + " on " +
                     base::counted(range.threads, "thread") + " of " +
                     base::counted(range.processes, "process");
  if (range.occurrences > range.unclosed)
    text += ", median " + base::format_ns(static_cast<double>(range.median_ns)) + ", first " +
            base::format_ns(static_cast<double>(range.first_ns));
  if (range.nested > 0)
    text += "; " + std::to_string(range.nested) + " inside another range";
  if (range.unclosed > 0)
    text += "; " + std::to_string(range.unclosed) + " still open at the end";
  return text + "\n";
}

/// "inside: 8 kernels, 2 copies, 0 memsets, 0 graph launches; the same kernels each time"
std::string gpu_work_line(const doctor::RangeFacts& range) {
  std::string text = "    inside: " + base::counted(range.kernels, "kernel") + ", " +
                     base::counted(range.copies, "copy") + ", " +
                     base::counted(range.memsets, "memset") + ", " +
                     base::counted(range.graph_launches, "graph launch");
  if (range.contexts > 1)
    text += ", " + base::counted(range.contexts, "context");
  if (range.bare_kernels > 0 || (range.kernels == 0 && range.other_thread_kernels > 0))
    text += "; " + base::counted(range.other_thread_kernels, "kernel") + " by " +
            base::counted(range.other_threads, "other thread");
  if (range.child_kernels > 0)
    text += "; " + base::counted(range.child_kernels, "kernel") + " by child processes";
  if (const std::string same = alike(range); !same.empty())
    text += "; " + same;
  return text + "\n";
}

/// "calls: cudaLaunchKernel 8, cudaMemcpyAsync 2"; "" without calls.
std::string calls_line(const doctor::RangeFacts& range) {
  std::vector<std::string> calls;
  for (const auto& [api, count] : range.calls)
    calls.push_back(api + " " + std::to_string(count));
  if (calls.empty())
    return {};
  return "    calls: " + base::join(calls, ", ") + "\n";
}

bool has_gpu_facts(const doctor::ProgramFacts& facts) {
  return facts.cuda && facts.gpu_unavailable.empty();
}

std::string about(const doctor::ProgramFacts& facts, const doctor::RangeFacts& range) {
  const std::string written = "  " + base::printable(range.term.written) + "\n";
  if (range.seen.empty())
    return written + "    not seen\n";
  std::string text = written + paths_line(facts, range) + instances_line(range);
  if (has_gpu_facts(facts))
    text += gpu_work_line(range) + calls_line(range);
  return text;
}

/// A shell command in lines of at most 100 columns where its words allow it: it can still be pasted
/// whole.
std::string in_lines(std::string_view command, std::string_view indent) {
  constexpr std::size_t kMost = 100;
  std::string out;
  std::size_t line = indent.size(), begin = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= command.size(); ++i) {
    if (i < command.size() && command[i] == '\'')
      quoted = !quoted;
    if (i < command.size() && command[i] == '\\' && !quoted)
      ++i;
    if (i < command.size() && (command[i] != ' ' || quoted))
      continue;
    const std::string_view word = command.substr(begin, i - begin);
    if (begin > 0 && line + 1 + word.size() > kMost - 2) {
      out += " \\\n" + std::string(indent);
      line = indent.size();
    } else if (begin > 0) {
      out += ' ';
      ++line;
    }
    out += word;
    line += word.size();
    begin = i + 1;
  }
  return out;
}

/// How the program ended: "ended by exit code 0".
std::string end_text(const doctor::ProgramLook& look) {
  if (look.all_known)
    return "was ended early: everything was known";
  if (!look.cut_short)
    return "ended by " + base::describe(look.ended);
  if (look.ended.timed_out)
    return "was ended by the time limit of the probe run";
  return "was interrupted";
}

/// The ranges of a program without --include, each with the option that selects it.
std::string unselected_text(const doctor::ProgramFacts& facts) {
  std::string text = "\nRanges (choose some with --include):\n";
  const std::size_t shown = std::min(facts.ranges.size(), kMostRanges);
  for (const doctor::SeenRange& range : std::span(facts.ranges).first(shown)) {
    text +=
        "  " + base::printable(range.shown()) + ": " + base::counted(range.occurrences, "instance");
    if (facts.cuda)
      text += ", " + base::counted(range.kernels, "kernel");
    const std::string expression = model::expression_of(range.domain, range.path, range.kind);
    text += "; --include " + base::shell_quote(expression) + "\n";
  }
  if (facts.ranges.size() > shown)
    text += "  and " + std::to_string(facts.ranges.size() - shown) + " more\n";
  return text;
}

std::string way_text(const doctor::Way& way) {
  std::string text = way.works ? "  yes  " : "  no   ";
  text += way.name + ": " + base::printable(way.reason) + "\n";
  for (const std::string& note : way.notes)
    text += "       " + base::printable(note) + "\n";
  if (!way.command.empty())
    text += "       $ " + in_lines(base::printable(way.command), "         ") + "\n";
  return text;
}

/// "program": {...}
void write_facts(report::JsonWriter& json, const doctor::ProgramLook& look) {
  const doctor::ProgramFacts& facts = look.facts;
  std::string ended = "not started";
  if (!look.not_started)
    ended = base::describe(look.ended);
  json.open_object("program");
  json.field("command", look.command);
  json.field("ended", ended);
  json.field("cut_short", look.cut_short);
  json.field("all_known", look.all_known);
  json.field("processes", facts.processes);
  json.field("nvtx", facts.nvtx);
  json.field("cuda", facts.cuda);
  json.field("ranges", facts.ranges.size());
  json.field("occurrences", facts.occurrences);
  json.field("kernels", facts.kernels);
  json.field("graph_launches", facts.graph_launches);
  json.close();
}

/// Fields of a selected range, up to its GPU work.
void write_range(report::JsonWriter& json,
                 const doctor::ProgramFacts& facts,
                 const doctor::RangeFacts& range) {
  json.field("written", range.term.written);
  json.field("expression", range.expression().text());
  json.field("seen", !range.seen.empty());
  json.line_objects("paths", range.seen, [&](const std::size_t index) {
    const doctor::SeenRange& path = facts.ranges[index];
    json.field("domain", path.domain);
    json.field("kind", model::range_kind_key(path.kind));
    json.field("path", path.path);
    json.field("occurrences", path.occurrences);
  });
  std::vector<std::string> nearest;
  if (range.seen.empty())
    nearest = doctor::nearest_expressions(facts, range.term.written);
  json.field("nearest", nearest);
  json.field("occurrences", range.occurrences);
  json.field("unclosed", range.unclosed);
  json.field("registered", range.registered);
  json.field("nested", range.nested);
  json.field("threads", range.threads);
  json.field("processes", range.processes);
  json.field("child_processes", range.child_processes);
  json.field("span_ns", range.span_ns);
  json.field("first_ns", range.first_ns);
  json.field("median_ns", range.median_ns);
}

void write_gpu_work(report::JsonWriter& json, const doctor::RangeFacts& range) {
  json.open_object("gpu");
  json.field("kernels", range.kernels);
  json.field("copies", range.copies);
  json.field("memsets", range.memsets);
  json.field("graph_launches", range.graph_launches);
  json.field("other_thread_kernels", range.other_thread_kernels);
  json.field("bare_kernels", range.bare_kernels);
  json.field("child_kernels", range.child_kernels);
  json.field("late_kernels", range.late_kernels);
  json.field("late_occurrences", range.late_occurrences);
  json.field("contexts", range.contexts);
  json.field("first_cuda_call_inside", range.first_cuda_call_inside);
  json.field("kernel_sequences", range.sequences.size());
  json.field("only_first_differs", range.only_first_differs);
  json.field("shapes_differ", range.shapes_differ);
  json.open_object("calls");
  for (const auto& [api, count] : range.calls)
    json.field(api, count);
  json.close();
  json.close();
}

}  // namespace

std::string program_text(const doctor::ProgramLook& look, std::span<const doctor::Way> ways) {
  if (look.not_started)
    return {};
  std::string text = "\nThe program " + end_text(look) + " after " +
                     base::format_ns(static_cast<double>(look.ended.wall_ns)) + "\n";
  const doctor::ProgramFacts& facts = look.facts;
  if (!facts.meant.empty()) {
    text += "\nSelected ranges:\n";
    for (const auto& range : facts.meant)
      text += about(facts, range);
  } else if (!facts.ranges.empty()) {
    text += unselected_text(facts);
  }
  text += "\nWays to measure:\n";
  for (const doctor::Way& way : ways)
    text += way_text(way);
  return text + "\n";
}

void write_program(report::JsonWriter& json,
                   const doctor::ProgramLook& look,
                   std::span<const doctor::Way> ways) {
  const doctor::ProgramFacts& facts = look.facts;
  write_facts(json, look);
  json.objects("ranges", facts.meant, [&](const doctor::RangeFacts& range) {
    write_range(json, facts, range);
    if (has_gpu_facts(facts))
      write_gpu_work(json, range);
    else
      json.null_field("gpu");
  });
  json.objects("ways", ways, [&](const doctor::Way& way) {
    json.field("name", way.name);
    json.field("works", way.works);
    json.field("reason", way.reason);
    json.field("command", way.command);
    json.field("notes", way.notes);
  });
}

}  // namespace rangescope::cli
