#include "doctor/program/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "collect/launch.hpp"
#include "collect/nsight/ncu.hpp"
#include "collect/nsight/nsys.hpp"

RANGESCOPE_EMBED(usual_options, RANGESCOPE_TSV);

namespace rangescope::doctor {
namespace {

/// What every version of a tool since this one can do (advice.tsv), for machines that have none.
collect::Abilities some(const std::string& tool, collect::Version since) {
  collect::Abilities can;
  can.tool = tool;
  can.path = tool;
  can.version = since;
  for (const auto& [row_tool, option, values] : base::rows<3>(rangescope_usual_options)) {
    if (row_tool != tool)
      continue;
    std::vector<std::string>& taken = can.options[std::string(option)];
    for (const std::string_view value : base::split(values, ' '))
      if (!value.empty())
        taken.emplace_back(value);
  }
  can.default_set = tool == "ncu" ? "basic" : "";
  if (!can.default_set.empty())
    can.sets[can.default_set];
  return can;
}

constexpr std::uint64_t kEnough = 10;  // occurrences, and the time over which they come, with which
constexpr std::int64_t kLongEnough = 1000000000;  // counters need no second run of the program

class Adviser {
 public:
  Adviser(const ProgramLook& look, const Tools& tools)
      : look_(look), tools_(tools), sum_(evidence_of(look.facts)) {
    for (const RangeFacts& range : look.facts.meant)
      if (!range.seen.empty())
        add(range);
    gpu_known_ = look.facts.cuda && look.facts.gpu_unavailable.empty();
  }

  std::vector<Way> run() {
    std::vector<Way> out{ranges(), counters(), nsys(false)};
    if (include_.size() == 1)
      out.push_back(nsys(true));
    const collect::Abilities ncu = tools_.ncu.value_or(some("ncu", {2023, 1, 0}));
    collect::Wish wish;
    wish.ranges = !include_.empty();
    wish.metrics = true;
    wish.native_counters = tools_.native_counters;
    for (const collect::Rung& rung : collect::ladder(wish, sum_, ncu))
      if (rung.step != collect::Step::kNative)
        out.push_back(ncu_way(rung, ncu));
    return out;
  }

 private:
  void add(const RangeFacts& range) {
    include_.push_back(range.term);
    registered_ = registered_ && range.registered == range.occurrences;
    children_ = children_ || range.child_processes > 0;
    const std::uint64_t ended = range.occurrences - range.unclosed;
    if (occurrences_ == 0 || ended < occurrences_)
      occurrences_ = ended;
    if (span_ns_ == 0 || range.span_ns < span_ns_)
      span_ns_ = range.span_ns;
    own_ += std::max(range.kernels, range.graph_launches);
  }

  /// Nothing to measure, whatever the way; "" where there is.
  [[nodiscard]] std::string nothing() const {
    if (!look_.facts.meant.empty() && include_.empty())
      return "none of the selected ranges occurred";
    if (look_.facts.ranges.empty())
      return "the program opened no range";
    return {};
  }
  [[nodiscard]] std::string no_kernels() const {
    if (!look_.facts.cuda)
      return "the program does not use CUDA";
    if (gpu_known_ && !include_.empty() && own_ + sum_.other_thread_kernels == 0)
      return "no kernel is launched inside";
    return {};
  }

  [[nodiscard]] std::string ours(std::vector<std::string> options) const {
    std::vector<std::string> argv{"rangescope", "profile"};
    for (const model::RangeTerm& term : include_) {
      argv.emplace_back("--include");
      argv.push_back(term.forms.front().text());
    }
    argv.insert(argv.end(), options.begin(), options.end());
    argv.emplace_back("--");
    argv.insert(argv.end(), look_.command.begin(), look_.command.end());
    return base::shell_quote(argv);
  }

  [[nodiscard]] Way ranges() const {
    Way way{"ranges", false, nothing(), {}, {}};
    if (!way.reason.empty())
      return way;
    way.works = true;
    way.reason = "wall time of every range";
    if (look_.facts.cuda)
      way.reason += ", and the GPU work that was launched inside";
    way.reason += ", in one run";
    const bool inherit = own_ == 0 && sum_.other_thread_kernels > 0;
    std::vector<std::string> options;
    if (inherit)
      options = {"--push-pop-scope", "process"};
    way.command = ours(options);
    return way;
  }

  [[nodiscard]] Way counters() const {
    Way way{"counters", false, nothing(), {}, {}};
    if (way.reason.empty() && include_.empty())
      way.reason = "name a range with --include";
    if (way.reason.empty())
      way.reason = no_kernels();
    if (way.reason.empty() && own_ == 0 && gpu_known_)
      way.reason = "the range's own thread launches no kernel";
    if (way.reason.empty() && occurrences_ == 0)
      way.reason = "the range never ends";
    if (way.reason.empty() && !tools_.native_counters) {
      way.reason = "counters cannot be collected on this machine";
      if (!tools_.counters_reason.empty())
        way.reason = tools_.counters_reason;
    }
    if (!way.reason.empty())
      return way;
    way.works = true;
    way.reason =
        "counters per range, one pass per instance: no replay, and any CUDA call may be inside";
    if (sum_.alike == false)
      way.notes.emplace_back("instances differ, so passes describe different work");
    std::vector<std::string> options{"--metrics", "quick"};
    // Programming the hardware takes some 20 ms a pass, and longer the first time; meanwhile
    // nothing is measured.
    if (occurrences_ < kEnough || span_ns_ < kLongEnough) {
      way.notes.emplace_back(
          "the range comes " + base::counted(occurrences_, "time") + " within " +
          base::format_ns(static_cast<double>(span_ns_)) +
          ", perhaps too few for all passes: the program is run again for missing ones");
      options.insert(options.end(), {"--passes", "relaunch"});
    }
    way.command = ours(std::move(options));
    return way;
  }

  [[nodiscard]] collect::Request request() const {
    collect::Request request;
    request.command = look_.command;
    request.run_dir = "rangescope-doctor";
    request.ranges.include = include_;
    return request;
  }

  [[nodiscard]] Way nsys(bool gated) const {
    Way way{gated ? "nsys gated" : "nsys", false, nothing(), {}, {}};
    if (!way.reason.empty())
      return way;
    const collect::Abilities can = tools_.nsys.value_or(some("nsys", {2022, 4, 0}));
    collect::nsys::Options options;
    options.values["trace"] = {"nvtx"};
    if (look_.facts.cuda)
      options.values["trace"] = {"cuda", "nvtx"};
    options.values["sample"] = {"none"};
    options.values["cpuctxsw"] = {
        "none"};  // nsys 2022.4.2 with it hung now and then on a busy machine, gated or not
    if (children_)
      options.values["trace_fork_before_exec"] = {"true"};
    options.gating = gated;
    options.registered = registered_;
    way.reason = gated ? "records only while the range is open" : "a timeline of everything";
    return planned(
        std::move(way),
        collect::nsys::plan(can, options, request()),
        tools_.nsys ? "" : "nsys is not installed here; this is for nsys 2022.4 and newer");
  }

  [[nodiscard]] static Way planned(Way way,
                                   const base::Result<collect::Plan>& plan,
                                   std::string_view note) {
    way.works = plan.has_value();
    if (!plan) {
      way.reason = plan.error().what;
      return way;
    }
    way.command = collect::script_command(*plan);
    way.notes.insert(way.notes.end(), plan->notes.begin(), plan->notes.end());
    if (!note.empty())
      way.notes.emplace_back(note);
    return way;
  }

  [[nodiscard]] Way ncu_way(const collect::Rung& rung, const collect::Abilities& can) const {
    Way way{"ncu " + std::string(collect::step_name(rung.step)), false, nothing(), {}, {}};
    if (way.reason.empty())
      way.reason = no_kernels();
    if (!way.reason.empty())
      return way;
    way.reason = rung.reason;
    if (!rung.take)
      return way;
    collect::ncu::Options options;
    options.replay_mode = collect::step_name(rung.step);
    options.report = options.replay_mode;
    options.values["target_processes"] = {"all"};
    options.values["graph_profiling"] = {"node"};
    options.values["force_overwrite"] = {"true"};
    options.values["set"] = {"basic"};
    if (!can.default_set.empty())
      options.values["set"] = {can.default_set};
    const bool foreign = own_ == 0 && sum_.other_thread_kernels > 0;
    if (foreign) {
      if (!can.takes("--nvtx-push-pop-scope", "process")) {
        way.reason = "other threads launch the kernels, and ncu " +
                     collect::to_string(can.version) +
                     " has no --nvtx-push-pop-scope (it came with 2025.1)";
        return way;
      }
      options.values["push_pop_scope"] = {"process"};
    }
    limit(rung.step, options, way);
    return planned(std::move(way),
                   collect::ncu::plan(can, options, request()),
                   tools_.ncu ? "" : "ncu is not installed here; this is for ncu 2023.1 and newer");
  }

  /// Replay is slow: one occurrence, past the first, which may hold work that the others do not
  /// have.
  void limit(collect::Step step, collect::ncu::Options& options, Way& way) const {
    if (occurrences_ < 2)
      return;
    if (step != collect::Step::kKernel) {
      options.values["launch_skip"] = {"1"};
      options.values["launch_count"] = {"1"};
      way.notes.emplace_back(
          "measures the second instance; leave --launch-skip and --launch-count out for all " +
          std::to_string(occurrences_));
      return;
    }
    const std::uint64_t kernels = std::max<std::uint64_t>(own_ + sum_.other_thread_kernels, 1);
    const std::uint64_t an_instance = (kernels + occurrences_ - 1) / occurrences_;
    options.values["launch_count"] = {std::to_string(an_instance)};
    way.notes.push_back(fmt::format(
        "measures as many kernels as one instance launches ({}); leave --launch-count out for all "
        "{}",
        an_instance,
        kernels));
  }

  const ProgramLook& look_;
  const Tools& tools_;
  const collect::Evidence sum_;
  std::vector<model::RangeTerm> include_;
  bool registered_ = true, children_ = false, gpu_known_ = false;
  std::uint64_t occurrences_ = 0, own_ = 0;
  std::int64_t span_ns_ = 0;
};

}  // namespace

std::vector<Way> ways(const ProgramLook& look, const Tools& tools) {
  if (look.not_started)
    return {};
  return Adviser(look, tools).run();
}

}  // namespace rangescope::doctor
