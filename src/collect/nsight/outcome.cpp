#include "collect/nsight/outcome.hpp"

#include <algorithm>
#include <array>
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
std::vector<MessageRow> table(std::string_view name) {
  std::vector<MessageRow> out;
  for (const auto& row : base::rows<9>(rangescope_outcome))
    if (row[0] == name) out.push_back(row_of(row));
  return out;
}

/// The whole line around a position.
std::string line_at(std::string_view text, std::size_t at) {
  const auto begin = text.rfind('\n', at);
  const auto end = text.find('\n', at);
  const std::size_t from = begin == std::string_view::npos ? 0 : begin + 1;
  return base::printable(
      base::trim(text.substr(from, (end == std::string_view::npos ? text.size() : end) - from)));
}

/// What ncu prints after every failure explains nothing where a reason was found.
bool is_consequence(std::string_view id) {
  return id == "ncu.nothing_matched" || id == "ncu.program_failed";
}

/// Is this line what the row means? The program may print the same words.
bool fits(const MessageRow& row, std::string_view line, std::string_view only_lines) {
  // ncu's own lines carry its mark (2020 and 2022 print option mistakes bare).
  const bool is_marked = line.find(only_lines) != std::string_view::npos;
  if (!is_marked && row.id != "ncu.usage") return false;
  if (row.is_whole_line && line != row.words) return false;
  return !row.is_unfinished || line.find("100%") == std::string_view::npos;
}

/// The line that names an exception of Python, behind its traceback; "" where there is none.
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
      if (has_name) exception = base::printable(base::trim(line));
    }
  }
  return exception;
}

/// A failure of the program is the first cause, by its exception; one that is understood needs no
/// second line.
void name_exception(std::string_view text, std::vector<Complaint>& complaints) {
  const auto failed = std::ranges::find(complaints, "cuda.program_failed", &Complaint::id);
  std::string exception = python_exception(text);
  if (failed == complaints.end() || exception.empty()) return;
  if (std::ranges::find(complaints, exception, &Complaint::evidence) != complaints.end()) {
    complaints.erase(failed);
    return;
  }
  failed->evidence = std::move(exception);
  std::rotate(complaints.begin(), failed, failed + 1);
}

/// Adds what `rows` know about the text; with `only_lines`, in lines that hold these words.
void understand(std::span<const MessageRow> rows, std::string_view text,
                std::string_view only_lines, std::vector<Complaint>& out, Code& code) {
  for (const MessageRow& row : rows) {
    if (!out.empty() && is_consequence(row.id)) continue;
    for (auto at = text.find(row.words); at != std::string_view::npos;
         at = text.find(row.words, at + 1)) {
      std::string line = line_at(text, at);
      if (!fits(row, line, only_lines)) continue;
      // The same trouble has the same cure: ncu tells some in several lines.
      if (std::any_of(out.begin(), out.end(),
                      [&](const Complaint& s) { return s.id == row.id || s.cure == row.cure; }))
        break;
      if (out.empty()) code = row.code;
      out.push_back({std::string(row.id), std::move(line), std::string(row.explanation),
                     std::string(row.cure), row.transient, row.fatal, std::string(row.option),
                     std::string(row.value)});
      break;
    }
  }
}

std::string ending(const Observed& seen) {
  if (seen.interrupted) return "it was interrupted";
  if (seen.timed_out) return "it ran past the time limit";
  if (seen.signal) return "it was ended by signal " + std::to_string(*seen.signal);
  if (seen.exit_code && *seen.exit_code != 0) return "exit code " + std::to_string(*seen.exit_code);
  return "exit code 0";
}

/// `only_lines`: words of the tool's own lines. `one`, `many`: what it gives as results.
Outcome judge(const Observed& seen, const std::string& tool, std::string_view only_lines,
              std::string_view one, std::string_view many = {}) {
  Outcome out;
  out.code = Code::kNothingCaptured;
  understand(table(tool), seen.text, only_lines, out.complaints, out.code);
  if (seen.report && seen.results > 0) {
    out.result = Result::kOk;
    out.message = tool + ": " + base::counted(seen.results, one, many);
    if (seen.timed_out || seen.interrupted)
      out.message += "; " + ending(seen) + ", so the end is missing";
    if (!out.complaints.empty() && seen.exit_code != 0)
      out.message += "; " + out.complaints.front().explanation;
    return out;
  }
  if (seen.interrupted || seen.timed_out) {
    out.result = Result::kFailed;
    out.complaints.insert(
        out.complaints.begin(),
        {tool + (seen.timed_out ? ".timeout" : ".interrupted"), ending(seen),
         seen.timed_out ? "the time limit ended it before it had results"
                        : "it was interrupted before it had results",
         seen.timed_out ? "Raise run.timeout, or measure less (fewer launches, fewer metrics)."
                        : "Run it again.",
         false, true});
    out.fatal = true;
    out.code = Code::kNothingCaptured;
    out.message = tool + ": " + out.complaints.front().explanation;
    return out;
  }
  if (!out.complaints.empty()) {
    const Complaint& first = out.complaints.front();
    const bool empty = first.id == tool + ".nothing_matched" || first.id == "ncu.only_start_end" ||
                       first.id == "ncu.only_push_pop" || first.id == "nsys.never_started";
    out.result = empty ? Result::kEmpty : Result::kFailed;
    out.transient = first.transient;
    out.fatal = first.fatal;
    out.message = tool + ": " + first.explanation;
    return out;
  }
  const bool empty = seen.report || seen.exit_code == 0;
  out.result = empty ? Result::kEmpty : Result::kFailed;
  out.code = Code::kNothingCaptured;
  out.message = tool + ": " + (seen.report ? "the report holds nothing (" : "it left no report (") +
                ending(seen) + ")";
  return out;
}

}  // namespace

std::string_view result_name(Result result) {
  return result == Result::kOk ? "ok" : result == Result::kEmpty ? "empty" : "failed";
}

std::string Outcome::why() const {
  if (result == Result::kOk || complaints.empty()) return std::string(result_name(result));
  return complaints.front().id;
}

std::vector<Message> messages(std::string_view tool) {
  std::vector<Message> out;
  for (const Message& row : table(tool)) out.push_back(row);
  for (const Message& row : table("hint"))
    if (row.id.starts_with(tool)) out.push_back(row);
  return out;
}

std::vector<Complaint> read_log(std::string_view text) {
  Code unused = Code::kNothingCaptured;
  std::vector<Complaint> out;
  understand(table("cuda"), text, "", out, unused);
  // Before the consequences among its own messages.
  std::vector<Complaint> hints;
  understand(table("hint"), text, "", hints, unused);
  understand(table("ncu"), text, "==", out, unused);
  understand(table("nsys"), text, "", out, unused);
  const auto failure = std::ranges::find(out, "ncu.program_failed", &Complaint::id);
  const bool program_failed = failure != out.end();
  const bool reason = std::any_of(out.begin(), out.end(),
                                  [](const Complaint& each) { return !is_consequence(each.id); });
  for (Complaint& hint : hints) {
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const Complaint& each) { return each.id == hint.id; });
    if (same != out.end() && hint.id == "ncu.nothing_matched")
      *same = std::move(hint);  // which tells kernels from ranges
    else if (same == out.end() && hint.id == "ncu.unsupported_api" && reason)
      continue;
    else if (same == out.end() && (hint.id != "ncu.children" || (!reason && !program_failed)))
      out.push_back(std::move(hint));
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const Complaint& each) { return !is_consequence(each.id); });
  if (!out.empty() && !is_consequence(out.front().id))
    std::erase_if(out, [](const Complaint& each) { return is_consequence(each.id); });
  // A kernel that could not be measured follows from any cause that is known.
  if (!out.empty() && out.front().id != "ncu.profile_failed")
    std::erase_if(out, [](const Complaint& each) { return each.id == "ncu.profile_failed"; });
  name_exception(text, out);
  return out;
}

Outcome judge_ncu(const Observed& seen) {
  Outcome out = judge(seen, "ncu", "==", "result");
  for (auto at = seen.text.find("Unsupported API during capture ("); at != std::string::npos;
       at = seen.text.find("Unsupported API during capture (", at + 1)) {
    const auto begin = at + 32, end = seen.text.find(')', begin);
    if (end == std::string::npos) break;
    const std::string name =
        base::printable(seen.text.substr(begin, std::min<std::size_t>(end - begin, 200)));
    if (std::find(out.unsupported_calls.begin(), out.unsupported_calls.end(), name) ==
        out.unsupported_calls.end())
      out.unsupported_calls.push_back(name);
  }
  if (!out.unsupported_calls.empty() && out.result != Result::kOk)
    out.message += ": " + base::join(out.unsupported_calls, ", ");
  return out;
}

Outcome judge_nsys(const Observed& seen) {
  return judge(seen, "nsys", "", "range or kernel", "ranges and kernels");
}

}  // namespace rangescope::collect
