// What a run of nsys or ncu achieved, judged by its report and its output; never by its exit code
// alone.
//
// Both tools exit with 0 when nothing was captured, and ncu passes the program's code through.
// Success is a report that could be opened and has results; everything else is explained by the
// tool's own messages. outcome.tsv is the table of messages, with the version in which each was
// observed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::collect {

enum class Result : std::uint8_t { kOk, kEmpty, kFailed };
[[nodiscard]] std::string_view result_name(Result result);

/// A message of the tool that is understood.
struct Complaint {
  std::string id;           ///< stable: "ncu.unsupported_api"
  std::string evidence;     ///< the tool's line
  std::string explanation;  ///< what it means
  std::string cure;         ///< imperative
  bool transient = false;   ///< trying again may help
  bool fatal = false;       ///< nothing can be captured while this holds, whatever the mode
  std::string option = {}, value = {};  ///< of the command line: what would solve it
};

/// What is known of a run that has ended.
struct Observed {
  std::string text;  ///< all output of the tool, and of the program if they share a stream
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool timed_out = false;
  bool interrupted = false;   ///< SIGINT or SIGTERM reached us
  bool report = false;        ///< there is a report that could be opened
  std::uint64_t results = 0;  ///< in the report: measured or recorded kernels and ranges
};

struct Outcome {
  Result result = Result::kFailed;
  std::vector<Complaint> complaints;           ///< the decisive one first
  std::string message;                         ///< one sentence
  std::vector<std::string> unsupported_calls;  ///< API names that range replay met
  bool transient = false;
  bool fatal = false;
  base::Code code = base::Code::kInternal;  ///< for an exit code, when not ok

  /// Decisive id, or "ok", "empty", "failed".
  [[nodiscard]] std::string why() const;
};

/// A message of a tool: what to look for, what it means. The first row that is found decides.
struct Message {
  std::string_view id, words, explanation, cure;
  base::Code code = base::Code::kInternal;
  bool transient = false, fatal = false;
  std::string_view option = {}, value = {};  ///< what on the line that was run would mend it
};
/// Every message of "ncu", "nsys" or "cuda" (the CUDA runtime, PyTorch) that is understood, in the
/// order in which they decide; an id may occur several times.
[[nodiscard]] std::vector<Message> messages(std::string_view tool);

/// What a log says of nsys, ncu, CUDA and PyTorch: each cause once, the deepest first. For logs
/// that somebody kept; what follows from a cause that was found (`No kernels were profiled`) is
/// left out.
[[nodiscard]] std::vector<Complaint> read_log(std::string_view text);

[[nodiscard]] Outcome judge_ncu(const Observed& run);
[[nodiscard]] Outcome judge_nsys(const Observed& run);

}  // namespace rangescope::collect
