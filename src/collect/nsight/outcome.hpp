// What became of a run of nsys or ncu, judged by what it left and what it said; never by its exit
// code alone.
//
// Both tools exit with 0 when nothing was captured, and ncu passes the program's code through.
// Success is a report that was opened and holds results; everything else is named here by the
// tool's own words. The table of messages stands in outcome.tsv with the version in which each was
// seen.
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

/// One thing that the tool complained of, understood.
struct Complaint {
  std::string id;           ///< stable: "ncu.unsupported_api"
  std::string evidence;     ///< the tool's line
  std::string explanation;  ///< what it means
  std::string cure;         ///< imperative
  bool transient = false;   ///< trying again may help
  bool fatal = false;       ///< nothing can be captured while this holds, whatever the mode
  std::string option = {}, value = {};  ///< of the line that was run: what would mend it
};

/// What is known after a run.
struct Observed {
  std::string
      text;  ///< everything that the tool printed (and the program, where they share a stream)
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool timed_out = false;
  bool interrupted = false;  ///< SIGINT or SIGTERM reached us
  bool report = false;       ///< a report file is there and could be opened
  std::uint64_t results =
      0;  ///< results in it: kernels or ranges measured, or ranges and kernels recorded
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
/// order in which they decide; an id may stand several times.
[[nodiscard]] std::vector<Message> messages(std::string_view tool);

/// What a log says of nsys, ncu, CUDA and PyTorch: each cause once, the deepest first. For logs
/// that somebody kept; what follows from a cause that was found (`No kernels were profiled`) is
/// left out.
[[nodiscard]] std::vector<Complaint> read_log(std::string_view text);

[[nodiscard]] Outcome judge_ncu(const Observed& seen);
[[nodiscard]] Outcome judge_nsys(const Observed& seen);

}  // namespace rangescope::collect
