#include "cli/print/doctor_program.hpp"

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/document/view.hpp"

namespace rangescope::cli {
namespace {

constexpr std::size_t kMostRanges = 20;

std::string kind_text(const doctor::SeenRange& seen) {
  return seen.kind == model::RangeKind::kPushPop ? "push/pop" : "start/end";
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
  return range.occurrences > 1 ? "the same kernels each time" : "";
}

std::string about(const doctor::ProgramFacts& facts, const doctor::RangeFacts& range) {
  std::string text = "  " + base::printable(range.term.written) + "\n";
  if (range.seen.empty())
    return text + "    not seen\n";
  const doctor::SeenRange& first = facts.ranges[range.seen.front()];
  text += "    " + base::printable(first.shown());
  if (range.seen.size() > 1)
    text += " and " + base::counted(range.seen.size() - 1, "other path");
  const std::string domain =
      first.domain.empty() ? "default domain" : "domain " + base::printable(first.domain);
  const bool is_registered = range.registered == range.occurrences;
  text += ": " + kind_text(first) + ", " + domain + ", ";
  text += is_registered ? "registered string\n" : "no registered string\n";
  text += "    " + base::counted(range.occurrences, "instance") + " on " +
          base::counted(range.threads, "thread") + " of " +
          base::counted(range.processes, "process");
  if (range.occurrences > range.unclosed)
    text += ", median " + base::format_ns(static_cast<double>(range.median_ns)) + ", first " +
            base::format_ns(static_cast<double>(range.first_ns));
  if (range.nested > 0)
    text += "; " + std::to_string(range.nested) + " inside another range";
  if (range.unclosed > 0)
    text += "; " + std::to_string(range.unclosed) + " still open at the end";
  text += "\n";
  if (!facts.cuda || !facts.gpu_unavailable.empty())
    return text;
  text += "    inside: " + base::counted(range.kernels, "kernel") + ", " +
          base::counted(range.copies, "copy") + ", " + base::counted(range.memsets, "memset") +
          ", " + base::counted(range.graph_launches, "graph launch");
  if (range.contexts > 1)
    text += ", " + base::counted(range.contexts, "context");
  if (range.bare_kernels > 0 || (range.kernels == 0 && range.other_thread_kernels > 0))
    text += "; " + base::counted(range.other_thread_kernels, "kernel") + " by " +
            base::counted(range.other_threads, "other thread");
  if (range.child_kernels > 0)
    text += "; " + base::counted(range.child_kernels, "kernel") + " by child processes";
  if (const std::string same = alike(range); !same.empty())
    text += "; " + same;
  text += "\n";
  std::string calls;
  for (const auto& [api, count] : range.calls)
    calls += (calls.empty() ? "" : ", ") + api + " " + std::to_string(count);
  if (!calls.empty())
    text += "    calls: " + calls + "\n";
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

}  // namespace

std::string program_text(const doctor::ProgramLook& look, std::span<const doctor::Way> ways) {
  if (look.not_started)
    return {};
  std::string text = "\nThe program ";
  if (look.all_known)
    text += "was ended early: everything was known";
  else if (look.cut_short)
    text +=
        look.ended.timed_out ? "was ended by the time limit of the probe run" : "was interrupted";
  else
    text += "ended by " + base::describe(look.ended);
  text += " after " + base::format_ns(static_cast<double>(look.ended.wall_ns)) + "\n";
  const doctor::ProgramFacts& facts = look.facts;
  if (!facts.meant.empty()) {
    text += "\nSelected ranges:\n";
    for (const auto& range : facts.meant)
      text += about(facts, range);
  } else if (!facts.ranges.empty()) {
    text += "\nRanges (choose some with --include):\n";
    for (std::size_t i = 0; i < facts.ranges.size() && i < kMostRanges; ++i) {
      const doctor::SeenRange& seen = facts.ranges[i];
      text += "  " + base::printable(seen.shown()) + ": " +
              base::counted(seen.occurrences, "instance") +
              (facts.cuda ? ", " + base::counted(seen.kernels, "kernel") : "") + "; --include " +
              base::shell_quote(model::expression_of(seen.domain, seen.path, seen.kind)) + "\n";
    }
    if (facts.ranges.size() > kMostRanges)
      text += "  and " + std::to_string(facts.ranges.size() - kMostRanges) + " more\n";
  }
  text += "\nWays to measure:\n";
  for (const doctor::Way& way : ways) {
    text += std::string(way.works ? "  yes  " : "  no   ") + way.name + ": " +
            base::printable(way.reason) + "\n";
    for (const std::string& note : way.notes)
      text += "       " + base::printable(note) + "\n";
    if (!way.command.empty())
      text += "       $ " + in_lines(base::printable(way.command), "         ") + "\n";
  }
  return text + "\n";
}

void write_program(report::JsonWriter& json,
                   const doctor::ProgramLook& look,
                   std::span<const doctor::Way> ways) {
  const doctor::ProgramFacts& facts = look.facts;
  json.open_object("program");
  json.field("command", look.command);
  json.field("ended", look.not_started ? std::string("not started") : base::describe(look.ended));
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
  json.objects("ranges", facts.meant, [&](const auto& range) {
    json.field("written", range.term.written);
    json.field("expression", range.expression().text());
    json.field("seen", !range.seen.empty());
    json.line_objects("paths", range.seen, [&](const std::size_t index) {
      const doctor::SeenRange& seen = facts.ranges[index];
      json.field("domain", seen.domain);
      json.field("kind", report::kind_name(seen.kind));
      json.field("path", seen.path);
      json.field("occurrences", seen.occurrences);
    });
    json.field("nearest",
               range.seen.empty() ? doctor::nearest_expressions(facts, range.term.written)
                                  : std::vector<std::string>{});
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
    if (!facts.cuda || !facts.gpu_unavailable.empty())
      return json.null_field("gpu");
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
