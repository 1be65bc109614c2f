#include "collect/nsight/outcome.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

RANGESCOPE_EMBED(outcome, RANGESCOPE_TSV);

namespace rangescope::collect {
namespace {

using base::Code;

/// A message, and what its line must be besides holding the words.
struct MessageRow : Message {
  bool is_whole_line = false;  ///< the words are all that the line holds
  bool is_unfinished = false;  ///< the line shows progress that never reached 100 %
};

MessageRow row_of(const std::array<std::string_view, 9>& cells) {
  const auto& [table, id, words, code, trait, option, value, explanation, cure] = cells;
  MessageRow row;
  row.id = id;
  row.words = words;
  row.explanation = explanation;
  row.cure = cure;
  row.code = static_cast<Code>(base::to_int(code).value_or(70));
  row.transient = trait == "transient";
  row.fatal = trait == "fatal";
  row.option = option;
  row.value = value;
  row.is_whole_line = trait == "line";
  row.is_unfinished = trait == "unfinished";
  return row;
}

/// The rows of "ncu", "nsys", "hint" or "cuda".
std::vector<MessageRow> rows_of(std::string_view table) {
  std::vector<MessageRow> rows;
  for (const auto& row : base::rows<9>(rangescope_outcome))
    if (row[0] == table)
      rows.push_back(row_of(row));
  return rows;
}

/// The whole line around a position.
std::string line_at(std::string_view text, std::size_t position) {
  const auto previous_end = text.rfind('\n', position);
  const std::size_t begin = previous_end == std::string_view::npos ? 0 : previous_end + 1;
  const std::size_t end = std::min(text.find('\n', position), text.size());
  return base::printable(base::trim(text.substr(begin, end - begin)));
}

/// Messages that ncu prints after every failure: they explain nothing if there is another one.
bool is_consequence(std::string_view id) {
  return id == "ncu.nothing_matched" || id == "ncu.program_failed";
}

/// Is the line a message of the tool? The program may print the same words.
bool fits(const MessageRow& row, std::string_view line, std::string_view only_lines) {
  // ncu's own lines carry its mark (2020 and 2022 print option mistakes bare).
  const bool is_marked = line.find(only_lines) != std::string_view::npos;
  if (!is_marked && row.id != "ncu.usage")
    return false;
  if (row.is_whole_line && line != row.words)
    return false;
  return !row.is_unfinished || line.find("100%") == std::string_view::npos;
}

/// The line after a traceback of Python that names the exception; "" without one.
std::string python_exception(std::string_view text) {
  bool in_traceback = false;
  std::string exception;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with("Traceback (most recent call last)")) {
      in_traceback = true;
    } else if (in_traceback && !line.empty() && line.front() != ' ') {
      in_traceback = false;
      const std::size_t colon = std::min(line.find(':'), line.size());
      const bool has_name = line.substr(0, colon).find(' ') == std::string_view::npos;
      if (has_name)
        exception = base::printable(base::trim(line));
    }
  }
  return exception;
}

/// Puts a failure of the program first and names its exception; drops it if another complaint has
/// that exception as evidence.
void name_exception(std::string_view text, std::vector<Complaint>& complaints) {
  const auto failed = std::ranges::find(complaints, "cuda.program_failed", &Complaint::id);
  std::string exception = python_exception(text);
  if (failed == complaints.end() || exception.empty())
    return;
  if (std::ranges::find(complaints, exception, &Complaint::evidence) != complaints.end()) {
    complaints.erase(failed);
    return;
  }
  failed->evidence = std::move(exception);
  std::rotate(complaints.begin(), failed, failed + 1);
}

/// The first line of the text that the row describes; "" without one.
std::string find_message(const MessageRow& row,
                         std::string_view text,
                         std::string_view only_lines) {
  for (auto found = text.find(row.words); found != std::string_view::npos;
       found = text.find(row.words, found + 1)) {
    std::string line = line_at(text, found);
    if (fits(row, line, only_lines))
      return line;
  }
  return {};
}

/// Adds the messages of `rows` that are in the text; with `only_lines`, in lines with these words.
/// `code` becomes that of the first complaint.
void add_complaints(std::span<const MessageRow> rows,
                    std::string_view text,
                    std::string_view only_lines,
                    std::vector<Complaint>& complaints,
                    Code& code) {
  for (const MessageRow& row : rows) {
    if (!complaints.empty() && is_consequence(row.id))
      continue;
    std::string line = find_message(row, text, only_lines);
    if (line.empty())
      continue;
    // One problem has one cure: ncu reports some problems in several lines.
    const bool is_reported = std::ranges::any_of(complaints, [&](const Complaint& complaint) {
      return complaint.id == row.id || complaint.cure == row.cure;
    });
    if (is_reported)
      continue;
    if (complaints.empty())
      code = row.code;
    complaints.push_back({std::string(row.id),
                          std::move(line),
                          std::string(row.explanation),
                          std::string(row.cure),
                          row.transient,
                          row.fatal,
                          std::string(row.option),
                          std::string(row.value)});
  }
}

std::string ending(const Observed& run) {
  if (run.interrupted)
    return "it was interrupted";
  if (run.timed_out)
    return "it ran past the time limit";
  if (run.signal)
    return "it was ended by signal " + std::to_string(*run.signal);
  if (run.exit_code && *run.exit_code != 0)
    return "exit code " + std::to_string(*run.exit_code);
  return "exit code 0";
}

/// A tool and the words of its messages.
struct ToolWords {
  std::string tool;
  std::string_view only_lines;  ///< a part of each of its own lines; "" if they have no mark
  std::string_view result, results;
};

/// It was interrupted or ran past the time limit before it had results.
Complaint unfinished(const Observed& run, const std::string& tool) {
  Complaint complaint;
  complaint.evidence = ending(run);
  complaint.fatal = true;
  if (run.timed_out) {
    complaint.id = tool + ".timeout";
    complaint.explanation = "the time limit ended it before it had results";
    complaint.cure = "Raise run.timeout, or measure less (fewer launches, fewer metrics).";
  } else {
    complaint.id = tool + ".interrupted";
    complaint.explanation = "it was interrupted before it had results";
    complaint.cure = "Run it again.";
  }
  return complaint;
}

/// Does the complaint say that there was nothing to measure?
bool means_empty(const Complaint& complaint, const std::string& tool) {
  const std::string& id = complaint.id;
  return id == tool + ".nothing_matched" || id == "ncu.only_start_end" ||
         id == "ncu.only_push_pop" || id == "nsys.never_started";
}

std::string success_message(const Observed& run,
                            const ToolWords& words,
                            const std::vector<Complaint>& complaints) {
  std::string message = words.tool + ": " + base::counted(run.results, words.result, words.results);
  if (run.timed_out || run.interrupted)
    message += "; " + ending(run) + ", so the end is missing";
  if (!complaints.empty() && run.exit_code != 0)
    message += "; " + complaints.front().explanation;
  return message;
}

Outcome judge(const Observed& run, const ToolWords& words) {
  const std::string& tool = words.tool;
  Outcome outcome;
  outcome.code = Code::kNothingCaptured;
  add_complaints(rows_of(tool), run.text, words.only_lines, outcome.complaints, outcome.code);
  if (run.report && run.results > 0) {
    outcome.result = Result::kOk;
    outcome.message = success_message(run, words, outcome.complaints);
    return outcome;
  }
  if (run.interrupted || run.timed_out) {
    outcome.result = Result::kFailed;
    outcome.complaints.insert(outcome.complaints.begin(), unfinished(run, tool));
    outcome.fatal = true;
    outcome.code = Code::kNothingCaptured;
    outcome.message = tool + ": " + outcome.complaints.front().explanation;
    return outcome;
  }
  if (!outcome.complaints.empty()) {
    const Complaint& first = outcome.complaints.front();
    outcome.result = means_empty(first, tool) ? Result::kEmpty : Result::kFailed;
    outcome.transient = first.transient;
    outcome.fatal = first.fatal;
    outcome.message = tool + ": " + first.explanation;
    return outcome;
  }
  const bool is_empty = run.report || run.exit_code == 0;
  const std::string problem = run.report ? "the report holds nothing" : "it left no report";
  outcome.result = is_empty ? Result::kEmpty : Result::kFailed;
  outcome.code = Code::kNothingCaptured;
  outcome.message = tool + ": " + problem + " (" + ending(run) + ")";
  return outcome;
}

}  // namespace

std::string_view result_name(Result result) {
  switch (result) {
    case Result::kOk: return "ok";
    case Result::kEmpty: return "empty";
    default: return "failed";
  }
}

std::string Outcome::why() const {
  if (result == Result::kOk || complaints.empty())
    return std::string(result_name(result));
  return complaints.front().id;
}

std::vector<Message> messages(std::string_view tool) {
  std::vector<Message> messages;
  for (const Message& row : rows_of(tool))
    messages.push_back(row);
  for (const Message& row : rows_of("hint"))
    if (row.id.starts_with(tool))
      messages.push_back(row);
  return messages;
}

namespace {

bool is_consequence_of_another(const Complaint& complaint) {
  return is_consequence(complaint.id);
}

/// Adds what a log only hints at. `hints` come from lines that a tool prints besides its messages.
void add_hints(std::vector<Complaint> hints, std::vector<Complaint>& complaints) {
  const bool has_reason = !std::ranges::all_of(complaints, is_consequence_of_another);
  const bool program_failed =
      std::ranges::find(complaints, "ncu.program_failed", &Complaint::id) != complaints.end();
  for (Complaint& hint : hints) {
    const auto same = std::ranges::find(complaints, hint.id, &Complaint::id);
    if (same != complaints.end()) {
      // This hint says whether kernels or ranges did not match.
      if (hint.id == "ncu.nothing_matched")
        *same = std::move(hint);
      continue;
    }
    if (hint.id == "ncu.unsupported_api" && has_reason)
      continue;
    if (hint.id == "ncu.children" && (has_reason || program_failed))
      continue;
    complaints.push_back(std::move(hint));
  }
}

/// Puts causes before their consequences, and removes consequences of a known cause.
void keep_causes(std::vector<Complaint>& complaints) {
  std::stable_partition(
      complaints.begin(), complaints.end(), std::not_fn(is_consequence_of_another));
  if (complaints.empty())
    return;
  if (!is_consequence(complaints.front().id))
    std::erase_if(complaints, is_consequence_of_another);
  // That a kernel could not be measured follows from any known cause.
  if (complaints.front().id != "ncu.profile_failed")
    std::erase_if(complaints,
                  [](const Complaint& complaint) { return complaint.id == "ncu.profile_failed"; });
}

}  // namespace

std::vector<Complaint> read_log(std::string_view text) {
  Code unused = Code::kNothingCaptured;
  std::vector<Complaint> complaints, hints;
  add_complaints(rows_of("cuda"), text, "", complaints, unused);
  add_complaints(rows_of("hint"), text, "", hints, unused);
  add_complaints(rows_of("ncu"), text, "==", complaints, unused);
  add_complaints(rows_of("nsys"), text, "", complaints, unused);
  add_hints(std::move(hints), complaints);
  keep_causes(complaints);
  name_exception(text, complaints);
  return complaints;
}

namespace {

/// The CUDA calls that range replay refused, each once.
std::vector<std::string> unsupported_calls(const std::string& text) {
  constexpr std::string_view kStart = "Unsupported API during capture (";
  constexpr std::size_t kMaxName = 200;
  std::vector<std::string> calls;
  for (auto found = text.find(kStart); found != std::string::npos;
       found = text.find(kStart, found + 1)) {
    const std::size_t begin = found + kStart.size(), end = text.find(')', begin);
    if (end == std::string::npos)
      break;
    const std::string call = base::printable(text.substr(begin, std::min(end - begin, kMaxName)));
    if (std::ranges::find(calls, call) == calls.end())
      calls.push_back(call);
  }
  return calls;
}

}  // namespace

Outcome judge_ncu(const Observed& run) {
  Outcome outcome = judge(run, {"ncu", "==", "result", {}});
  outcome.unsupported_calls = unsupported_calls(run.text);
  if (!outcome.unsupported_calls.empty() && outcome.result != Result::kOk)
    outcome.message += ": " + base::join(outcome.unsupported_calls, ", ");
  return outcome;
}

Outcome judge_nsys(const Observed& run) {
  return judge(run, {"nsys", "", "range or kernel", "ranges and kernels"});
}

}  // namespace rangescope::collect
