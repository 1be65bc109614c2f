#include "profile/look.hpp"

#include <algorithm>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "collect/launch.hpp"
#include "collect/nsight/ladder.hpp"
#include "collect/nsight/outcome.hpp"
#include "collect/nsight/tools.hpp"
#include "profile/counters.hpp"
#include "profile/sampling.hpp"
#include "read/registry.hpp"
#include "wire/launched.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kEnough = 20;  // occurrences: then whether they are alike is known
constexpr int kPause = 10;             // between two looks, in units of the time that one takes

/// The session of the captures so far; an empty one where no process has made any.
base::Result<model::Session> captured(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error) || fs::is_empty(folder, error))
    return model::Session{};
  return read::read_any(folder);
}

/// Losses of programs that left no capture, from CPU samples in `folder` of the same launch.
void add_programs_not_recorded(const fs::path& captures,
                               const fs::path& folder,
                               model::Session& session) {
  std::error_code error;
  fs::copy_file(captures / wire::launched::kFile, folder / wire::launched::kFile, error);
  const auto watched = read::read_any(folder);
  if (!watched)
    return;
  for (const model::Loss& loss : watched->losses)
    if (model::explains_missing_ranges(loss))
      session.losses.push_back(loss);
}

/// Enough instances of the range were seen whole, and what it does on the GPU.
bool is_known(const doctor::RangeFacts& range, const doctor::ProgramFacts& facts) {
  const std::uint64_t whole_instances = range.occurrences - range.unclosed;
  if (whole_instances < kEnough + range.blind)
    return false;
  if (!facts.cuda || !facts.gpu_unavailable.empty() || !range.left_out.empty())
    return true;
  return range.kernels + range.graph_launches + range.other_thread_kernels + range.child_kernels >
         0;
}

bool all_known(const doctor::ProgramFacts& facts) {
  return !facts.meant.empty() &&
         std::all_of(facts.meant.begin(), facts.meant.end(), [&](const auto& range) {
           return is_known(range, facts);
         });
}

/// Asked while the program runs: whether its captures say enough already. It reads them all, so
/// that it is asked ever less often.
class Enough {
 public:
  Enough(const LookRequest& request, fs::path captures)
      : request_(request), captures_(std::move(captures)) {}
  bool operator()() {
    const auto begin = Clock::now();
    if (begin < next_)
      return false;
    bool is_enough = false;
    if (const auto session = captured(captures_))
      is_enough = all_known(doctor::gather(*session, request_.ranges, request_.kernels));
    const auto end = Clock::now();
    next_ = end + std::max<std::chrono::nanoseconds>(kLeastPause, kPause * (end - begin));
    return is_enough;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLeastPause{500};
  const LookRequest& request_;
  fs::path captures_;
  Clock::time_point next_ = Clock::now() + kLeastPause;
};

bool reports_failure(std::string_view lower_line) {
  constexpr const char* kWords[] = {
      "error", "fail", "cannot", "abort", "exception", "no such", "not found"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](const char* word) {
    return lower_line.find(word) != std::string_view::npos;
  });
}

/// The line that says what failed: the last one with a word for it that is no advice, else the last
/// of all.
std::string last_words(std::string_view text) {
  std::string_view words;
  bool has_failure = false;
  for (const std::string_view raw : base::split(base::trim(text), '\n')) {
    const std::string_view line = base::trim(raw);
    const std::string low = base::lower(line);
    if (line.empty() || low.starts_with("hint") || low.starts_with("note:") ||
        low.starts_with("compile with"))
      continue;
    const bool is_failure = reports_failure(low);
    if (is_failure || !has_failure)
      words = line;
    has_failure = has_failure || is_failure;
  }
  return base::printable(words.substr(0, 300));
}

bool has_driver() {
  std::error_code ignored;
  for (const char* place :
       {"/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"})  // the last one of WSL
    if (fs::exists(place, ignored))
      return true;
  return false;
}

base::Result<collect::Plan> plan_of(const LookRequest& request,
                                    const fs::path& library,
                                    const fs::path& folder) {
  collect::native::Options options;
  options.library = library;
  options.chain_injection = request.chain_injection;
  options.extra_env = look_settings();
  collect::Request run;
  run.command = request.command;
  run.env = request.env;
  run.run_dir = folder;
  run.timeout = request.limit;
  std::error_code ignored;
  run.cwd = request.cwd.value_or(fs::current_path(ignored));
  return collect::native::plan(options, run);
}

}  // namespace

std::map<std::string, std::string> look_settings() {
  return {{wire::kCudaCalls, collect::calls_to_note()}, {wire::kFlushInterval, "200ms"}};
}

base::Result<doctor::ProgramLook> look_at_program(const LookRequest& request) {
  doctor::ProgramLook look;
  look.command = request.command;
  auto library = TRY(collect::native::find_library());
  const base::TemporaryFolder folder("rangescope-doctor");
  if (folder.path().empty())
    return base::fail(base::Code::kIo,
                      "no temporary folder can be made",
                      {},
                      "Set TMPDIR to a folder that can be written");

  auto plan = plan_of(request, library, folder.path());
  if (!plan) {
    look.not_started = plan.error();
    return look;
  }
  const fs::path captures = folder.path() / "native";
  collect::LaunchOptions launch;
  launch.out = {.pass = false, .keep = false, .file = folder.path() / "stdout"};
  launch.err = {.pass = false, .keep = false, .file = folder.path() / "stderr"};
  if (!request.ranges.include.empty())
    launch.enough = Enough(request, captures);
  // Its samples are not read: only which programs were not recorded, and why.
  const fs::path watched = folder.path() / "watched";
  SampleChoice choice;
  choice.library = library;
  auto cpu = begin_cpu(choice, watched);
  auto ended = collect::launch(*plan, launch);
  if (cpu && *cpu)
    (*cpu)->stop();
  if (!ended) {
    look.not_started = ended.error();
    return look;
  }
  look.ended = std::move(*ended);
  look.cut_short = look.ended.timed_out || look.ended.enough || look.ended.forwarded.has_value();
  look.all_known = look.ended.enough;
  if (!look.cut_short && !look.ended.ok()) {
    const std::string err = base::read_file(launch.err.file).value_or(""),
                      out = base::read_file(launch.out.file).value_or("");
    look.last_words = last_words(err);
    look.said = collect::read_log(err + "\n" + out);
    look.no_driver = !has_driver();
  }
  auto session = TRY(captured(captures));
  if (cpu && *cpu) {
    (*cpu)->finish();
    add_programs_not_recorded(captures, watched, session);
  }
  look.facts = doctor::gather(session, request.ranges, request.kernels);
  return look;
}

doctor::Tools tools_here() {
  doctor::Tools tools;
  const auto probe = [](const char* name) -> std::optional<collect::Abilities> {
    auto can = collect::probe_tool(name, collect::tool_search());
    return can ? std::optional(std::move(*can)) : std::nullopt;
  };
  tools.ncu = probe("ncu");
  tools.nsys = probe("nsys");
  if (auto chip = chip_of_machine(); !chip) {
    tools.counters_reason = chip.error().what;
  } else if (auto allowed = may_count(); !allowed) {
    tools.counters_reason = allowed.error().what;
  } else if (auto planner = open_planner(); !planner) {
    tools.counters_reason = planner.error().what;
  } else {
    tools.native_counters = true;
  }
  return tools;
}

}  // namespace rangescope::profile
