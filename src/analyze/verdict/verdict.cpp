#include "analyze/verdict/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <span>
#include <tuple>

#include "analyze/ranks/communication.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/domain.hpp"
#include "model/measure.hpp"
#include "model/module_name.hpp"
#include "model/program.hpp"
#include "model/range_expression.hpp"
#include "model/table_row.hpp"

namespace rangescope::analyze {
namespace {

constexpr auto kRules = std::to_array<Rule*>({
    find_cuda_error,
    find_own_code,  // before find_hot_region, which has nothing to add where this found something
    find_waits_for_cpu, find_held,       find_synchronization, find_copies,     find_bounds,
    find_stalls,        find_padding,    find_warm_up,         find_uneven,     find_stragglers,
    find_slow_gpus,     find_slow_hosts, find_uneven_work,     find_slow_links, find_imbalance,
    find_compilation,   find_outside,    find_kernel,          find_modules,    find_hot_region,
    find_throttled,     find_profiler,   find_cuda_calls,      find_start_up,   find_idle_gpu,
});

/// "CUDA" or "HIP" where every operator is a call of it; else "".
std::string_view api_of(const model::Report& report) {
  constexpr std::pair<std::string_view, std::string_view> kApis[] = {
      {"cu", "CUDA"}, {"hip", "HIP"}, {"__hip", "HIP"}, {"hsa_", "HSA"}};
  std::string_view api;
  for (const model::OperatorRow& row : report.operators) {
    const auto has_prefix = [&](const auto& entry) { return row.name.starts_with(entry.first); };
    const auto entry = std::ranges::find_if(kApis, has_prefix);
    if (entry == std::end(kApis) || (!api.empty() && api != entry->second))
      return {};
    api = entry->second;
  }
  return api;
}

/// How the run's time was spent: "GPU busy 71 % of the run", "ranges cover 98 % of the run".
std::vector<std::string> time_texts(const Case& facts, model::Verdict& verdict) {
  const model::Report& report = facts.report();
  std::vector<std::string> texts;
  if (const auto share = facts.gpu_busy_share()) {
    texts.push_back("GPU busy " + share_text(*share) + " of the run");
    verdict.evidence["gpu_busy_share"] = *share;
  }
  if (report.outside && report.run.duration_ns > 0) {
    const double covered = facts.inside_ns() / report.run.duration_ns;
    texts.push_back("ranges cover " + share_text(covered) + " of the run");
    verdict.evidence["covered_share"] = covered;
  }
  if (!report.kernels.empty() && report.kernels.front().share > 0) {
    const model::KernelRow& largest = report.kernels.front();
    std::string name = largest.label;
    if (name.empty())
      name = largest.name;
    texts.push_back(fmt::format(
        "largest kernel {}, {} of kernel time", base::elide(name, 60), share_text(largest.share)));
    verdict.evidence["kernel_share"] = largest.share;
  }
  return texts;
}

/// How much there is where no times are known: "3 regions", "12 instances", "1 range never ended".
std::vector<std::string> count_texts(const Case& facts) {
  const model::Report& report = facts.report();
  std::vector<std::string> texts;
  const auto add = [&](std::int64_t count, std::string_view noun) {
    if (count > 0)
      texts.push_back(base::counted(static_cast<std::uint64_t>(count), noun));
  };
  std::int64_t instances = 0;
  std::int64_t unclosed = 0;
  for (std::size_t row = 0; row < facts.rows(); ++row) {
    const model::Region& region = facts.region(row);
    instances += std::max<std::int64_t>(0, region.occurrences);
    unclosed += std::max<std::int64_t>(0, region.unclosed);
  }
  add(static_cast<std::int64_t>(facts.rows()), "region");
  add(instances, "instance");
  if (unclosed > 0)
    texts.push_back(base::counted(static_cast<std::uint64_t>(unclosed), "range") + " never ended");
  if (report.total) {
    add(report.total->kernels, "kernel");
    add(report.total->copies, "copy");
  }
  return texts;
}

/// Of a recording that holds nothing else: "30 CUDA calls and nothing else; most time in cuInit (1
/// ms)".
std::string operators_text(const model::Report& report) {
  std::int64_t all_calls = 0;
  for (const model::OperatorRow& row : report.operators)
    all_calls += row.calls;
  const auto calls = static_cast<std::uint64_t>(all_calls);
  const model::OperatorRow& longest = report.operators.front();
  const std::string name = base::printable(longest.name);
  const std::string_view api = api_of(report);
  if (!api.empty())
    return fmt::format("{} and nothing else; most time in {} ({})",
                       base::counted(calls, std::string(api) + " call"),
                       name,
                       base::format_ns(longest.cpu_ns));
  return fmt::format("{} of {}; most self time in {} ({})",
                     base::counted(calls, "call"),
                     base::counted(report.operators.size(), "operator"),
                     name,
                     base::format_ns(longest.exclusive_cpu_ns));
}

/// The answer where no finding matters, with how the time was spent.
std::optional<model::Verdict> overview(const Case& facts) {
  const model::Report& report = facts.report();
  model::Verdict verdict = facts.about_run("overview", "", std::nullopt);
  verdict.severity = model::Weight::kNote;
  const std::vector<std::string> times = time_texts(facts, verdict);
  if (!times.empty()) {
    verdict.text = "no problems found: " + base::join(times, ", ");
    return verdict;
  }
  const std::vector<std::string> counts = count_texts(facts);
  if (counts.empty() && report.operators.empty())
    return std::nullopt;
  if (counts.empty()) {
    verdict.text = operators_text(report);
    return verdict;
  }
  const bool has_copies = report.total && report.total->copies > 0 && report.total->copy_ns > 0;
  if (counts.size() == 1 && has_copies)
    verdict.text =
        counts.front() + " of " + base::format_ns(report.total->copy_ns) + " and nothing else";
  else
    verdict.text = "no times to judge: " + base::join(counts, ", ");
  return verdict;
}

/// Lines that a cure replaces: it says what they only suspect.
constexpr std::string_view kReplacedByCure[] = {
    "waits_for_cpu", "launch_bound", "synchronization", "copies", "gpu_bound", "idle_gpu"};
/// Of what happens once: a note, unless nothing else is left.
constexpr std::string_view kOnce[] = {"warm_up", "start_up", "outside_ranges", "compilation"};
/// One rank that holds up the others: the cause of waits that a cure would only move.
constexpr std::string_view kOfRanks[] = {
    "slow_gpu",
    "slow_host",
    "slow_link",
    "uneven_work",
    "straggler",
};

bool is_of(const model::Verdict& verdict, std::span<const std::string_view> kinds) {
  return std::ranges::find(kinds, verdict.kind) != kinds.end();
}

/// What a line is ordered by: its saving. A late rank costs all that the others wait for it, though
/// its saving is only what the named cause explains.
double cost_of(const model::Verdict& verdict) {
  const auto late = verdict.evidence.find("holds_up_ns");
  if (verdict.kind == "straggler" && late != verdict.evidence.end())
    return late->second;
  return verdict.saves_ns.value_or(-1);
}

/// Errors first, then warnings; among those a late rank, then cures, then the largest cost.
auto order_of(const model::Verdict& verdict) {
  return std::tuple(verdict.kind == kHung,
                    verdict.severity,
                    is_of(verdict, kOfRanks),
                    !verdict.cure.empty(),
                    cost_of(verdict));
}

void drop_savings(model::Verdict& verdict) {
  verdict.saves_ns.reset();
  verdict.saves_share.reset();
}

/// Gaps between ranges are in the loop.
bool happens_once(const model::Verdict& verdict) {
  return is_of(verdict, kOnce) && !verdict.evidence.contains("between_share");
}

bool has_cure(const model::Verdict& verdict) {
  return !verdict.cure.empty();
}

bool names_a_cause(const model::Verdict& verdict) {
  return has_cure(verdict) || is_of(verdict, kOfRanks);
}

bool is_made_of_session(const model::Verdict& verdict) {
  return verdict.kind == kHung || has_cure(verdict);
}

/// Where time goes is no cost that outweighs a start.
bool costs_each_time(const model::Verdict& verdict) {
  if (verdict.kind == "hot_region" || happens_once(verdict))
    return false;
  return verdict.severity == model::Weight::kWarning;
}

/// The largest of them becomes the last note; the others go.
void keep_one_of_once(std::vector<model::Verdict>& found) {
  if (std::ranges::none_of(found, costs_each_time))
    return;
  const auto once = std::stable_partition(found.begin(), found.end(), std::not_fn(happens_once));
  if (once == found.end())
    return;
  const auto saves_less = [](const model::Verdict& a, const model::Verdict& b) {
    return a.saves_ns.value_or(0) < b.saves_ns.value_or(0);
  };
  model::Verdict largest = *std::max_element(once, found.end(), saves_less);
  largest.severity = model::Weight::kNote;
  drop_savings(largest);
  found.erase(once, found.end());
  found.push_back(std::move(largest));
}

void drop_replaced(std::vector<model::Verdict>& found) {
  if (std::ranges::none_of(found, has_cure))
    return;
  const auto is_replaced = [](const auto& verdict) { return is_of(verdict, kReplacedByCure); };
  std::erase_if(found, is_replaced);
}

/// Savings shown together are of what is done together, and do not exceed the run: next to a cure,
/// those of lines that name no cause are bounds, each for itself.
void drop_savings_beyond(double run_ns, std::vector<model::Verdict>& found) {
  const bool any_cure = std::ranges::any_of(found, has_cure);
  double together_ns = 0;
  for (model::Verdict& verdict : found) {
    if (!verdict.saves_ns)
      continue;
    const bool is_joint = !any_cure || names_a_cause(verdict);
    if (is_joint && together_ns + *verdict.saves_ns <= run_ns) {
      together_ns += *verdict.saves_ns;
      continue;
    }
    drop_savings(verdict);
  }
}

/// Does the kind say what would be gone if its advice were followed? Where time goes alone is no
/// saving.
bool claims_savings(const model::Verdict& verdict) {
  constexpr std::string_view kWhere[] = {"hot_region",
                                         "gpu_bound",
                                         "idle_gpu",
                                         "cuda_calls",
                                         "start_up",
                                         "own_wait",
                                         "deadlock",
                                         "own_function"};
  const auto has = [&](const char* evidence) { return verdict.evidence.contains(evidence); };
  const bool has_limiter =
      has("memory_bound") || has("compute_bound") || has("latency_bound") || has("balanced");
  if (verdict.kind == "dominant_kernel" && !has_limiter)
    return false;
  if (verdict.kind == "outside_ranges" && !has("between_share"))
    return false;
  return verdict.severity == model::Weight::kWarning && !is_of(verdict, kWhere);
}

/// Of modules in one another only the innermost: its name has those of the modules around it, as in
/// "decode step > model.layers.#.mlp (LlamaMLP)".
void drop_repeated_modules(std::vector<std::string>& path) {
  for (std::size_t i = path.size(); i-- > 1;) {
    const std::string outer_name(model::without_class(path[i - 1]));
    if (path[i].starts_with(outer_name + "."))
      path.erase(path.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
}

/// How many are open on average while any is; 1 where that is unknown.
double instances_at_once(double inclusive_ns, double open_ns) {
  if (open_ns > 0)
    return std::max(1.0, inclusive_ns / open_ns);
  return 1;
}

/// Several processes may list the same GPU; without a UUID of each, all of them count.
std::size_t count_gpus(const model::Report& report) {
  const std::set<std::string> uuids(report.device_uuids.begin(), report.device_uuids.end());
  if (uuids.empty() || uuids.contains(""))
    return report.devices.size();
  return uuids.size();
}

}  // namespace

Case::Case(const model::Report& report, std::string_view named)
    : report_(report), named_(named), gpus_(count_gpus(report)), children_(report.rows.size()) {
  for (std::size_t row = 0; row < report.rows.size(); ++row) {
    const std::uint32_t parent = report.rows[row].parent;
    if (parent == model::kNone)
      top_.push_back(row);
    else
      children_[parent].push_back(row);
  }
  for (std::size_t row = 0; row < rows(); ++row)
    timeline_ |= region(row).wall.inclusive_ns > 0;
  timeline_ |= report.total && report.total->busy_ns > 0;  // a file without ranges
  timeline_ &= report.run.duration_ns > 0;
  if (report.outside && report.run.duration_ns > 0)
    inside_ns_ = report.run.duration_ns - report.outside->wall_ns - report.outside->profiler_ns;
  // GPUs work on after the range that launched has ended: what is idle in one range may be full of
  // another's work.
  if (report.outside && report.total && !report.total->partial && !report.devices.empty()) {
    double busy_ns = report.total->busy_ns;
    if (report.unattributed)
      busy_ns -= report.unattributed->busy_ns;
    const double busy_of_gpu_ns = busy_ns / static_cast<double>(report.devices.size());
    if (busy_ns >= 0)
      gpu_idle_ns_ = std::max(0.0, inside_ns_ - busy_of_gpu_ns);
  }
  settled_ns_ = inside_ns_;
  for (const std::size_t row : top_) {
    const auto& steady = region(row).steady;
    if (steady && steady->left_out > 0)
      settled_ns_ -= steady->left_out_ns / side_by_side(row);
  }
  if (timeline_) {
    whole_ns_ = report.run.duration_ns;
  } else if (report.total && report.total->kernel_ns > 0) {
    whole_ns_ = report.total->kernel_ns;
  } else {  // ranges that were measured as a whole: the time of their occurrences
    for (const std::size_t row : top_) {
      const auto* time = model::known_metric(region(row).metrics, "gpu_time_ns");
      if (time != nullptr && region(row).occurrences > 0)
        whole_ns_ += time->value * static_cast<double>(region(row).occurrences);
    }
  }
}

const model::Region& Case::region(std::size_t row) const {
  return model::region_of(report_, report_.rows[row]);
}

std::optional<double> Case::gpu_busy_share() const {
  if (!has_timeline() || !report_.total || report_.total->partial)
    return std::nullopt;
  const double busy_ns = report_.total->busy_ns;
  if (!(busy_ns > 0))
    return std::nullopt;
  const auto gpus = static_cast<double>(std::max<std::size_t>(1, gpus_));
  return busy_ns / report_.run.duration_ns / gpus;
}

std::string Case::largest_kernel(std::size_t row) const {
  const std::uint32_t id = report_.rows[row].members.front();
  const auto& gpu = report_.regions[id].gpu;
  if (!gpu || gpu->top_kernels.empty() || !(gpu->top_kernels.front().share > 0))
    return {};
  const model::KernelRow& kernel = gpu->top_kernels.front();
  return kernel_text(kernel) + ", " + share_text(kernel.share);
}

bool Case::matters(double ns) const {
  if (!(ns > 0))
    return false;
  if (ns >= kMattersOfRun * whole_ns_)
    return true;
  return inside_ns_ > 0 && ns >= kMattersInside * std::max(settled_ns_, 0.0);
}

double Case::side_by_side(std::size_t row) const {
  const model::WallTime& wall = region(row).wall;
  return instances_at_once(wall.inclusive_ns, wall.open_ns);
}

double Case::threads_at_once(std::size_t row) const {
  const auto& across = region(row).across;
  if (!across || across->of_threads)
    return side_by_side(row);
  const double open_ns = across->mean_ns * static_cast<double>(across->parts);
  return instances_at_once(region(row).wall.inclusive_ns, open_ns);
}

double Case::gpus_side_by_side(std::size_t row) const {
  return std::min(side_by_side(row), static_cast<double>(std::max<std::size_t>(1, gpus_)));
}

std::vector<std::size_t> Case::worst(const std::function<double(std::size_t)>& saves,
                                     std::size_t max_rows) const {
  std::vector<double> saved_ns(rows());
  for (std::size_t row = 0; row < rows(); ++row)
    saved_ns[row] = saves(row);
  // A row represents its branch, unless one child holds most of it; one that finds nothing hands on
  // to its children. A library's ranges lie next to the program's, which say more: they count where
  // there are no others.
  std::vector<std::size_t> found;
  std::vector<std::size_t> pending = top_;
  const auto is_of_library = [&](std::size_t row) {
    return model::is_library_domain(region(row).domain);
  };
  if (!std::all_of(top_.begin(), top_.end(), is_of_library))
    std::erase_if(pending, is_of_library);
  while (!pending.empty()) {
    const std::size_t row = pending.back();
    pending.pop_back();
    const std::vector<std::size_t>& children = children_[row];
    const bool is_in_one_child = std::ranges::any_of(children, [&](std::size_t child) {
      return saved_ns[child] >= kOneChild * saved_ns[row] && saved_ns[child] > 0;
    });
    if (saved_ns[row] <= 0 || is_in_one_child)
      pending.insert(pending.end(), children.begin(), children.end());
    else
      found.push_back(row);
  }
  std::sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
    if (saved_ns[a] != saved_ns[b])
      return saved_ns[a] > saved_ns[b];
    return a < b;
  });
  // Start/end ranges lie around others: the one that a thread was in tells more.
  double largest_of_threads_ns = 0;
  for (const std::size_t row : found)
    if (region(row).kind == model::RangeKind::kPushPop)
      largest_of_threads_ns = std::max(largest_of_threads_ns, saved_ns[row]);
  std::erase_if(found, [&](std::size_t row) {
    const bool is_start_end = region(row).kind == model::RangeKind::kStartEnd;
    return is_start_end && largest_of_threads_ns >= kOneChild * saved_ns[row];
  });
  if (found.size() > max_rows)
    found.resize(max_rows);
  return found;
}

model::Verdict Case::about_run(std::string_view kind,
                               std::string text,
                               std::optional<double> saves_ns) const {
  model::Verdict verdict;
  verdict.kind = kind;
  verdict.text = std::move(text);
  verdict.severity = model::Weight::kWarning;
  verdict.saves_ns = saves_ns;
  if (saves_ns && whole_ns_ > 0) {
    verdict.saves_ns = std::min(*saves_ns, whole_ns_);
    verdict.saves_share = *verdict.saves_ns / whole_ns_;
  }
  return verdict;
}

model::Verdict Case::about(std::string_view kind,
                           std::size_t row,
                           std::string text,
                           std::optional<double> saves_ns) const {
  model::Verdict verdict = about_run(kind, std::move(text), saves_ns);
  std::vector<std::string> path = region(row).path;
  if (region(row).module)
    drop_repeated_modules(path);
  verdict.path = model::path_text(region(row).domain, path);
  if (region(row).kind == model::RangeKind::kStartEnd)
    verdict.path += model::kStartEndMark;
  if (report_.rows[row].siblings > 1)
    verdict.path += fmt::format(" x{}", report_.rows[row].siblings);
  verdict.region = report_.rows[row].members.front();
  return verdict;
}

std::string Case::profile_again(std::string_view options) const {
  if (report_.run.command.empty())
    return {};
  return "rangescope profile " + std::string(options) + " -- " +
         base::shell_quote(report_.run.command);
}

const model::Region* Case::outermost_range(const model::Region* region) const {
  const auto can_be_included = [](const model::Region& root) {
    const bool is_outermost = !root.process && root.path.size() == 1;
    const bool is_chosen = !root.module && !model::is_library_domain(root.domain);
    return is_outermost && is_chosen && root.kind == model::RangeKind::kPushPop;
  };
  const model::Region* range = nullptr;
  for (const model::Region& root : report_.regions) {
    if (!can_be_included(root))
      continue;
    bool is_wanted = range == nullptr || kernel_ns(root) > kernel_ns(*range);
    if (region != nullptr)
      is_wanted = root.domain == region->domain && root.path.front() == region->path.front();
    if (is_wanted)
      range = &root;
  }
  return range;
}

std::string Case::measure_again(std::string_view metrics, const model::Region* region) const {
  if (model::is_program(report_))
    return {};
  const model::Region* range = outermost_range(region);
  if (range == nullptr)
    return {};
  const bool is_pattern =
      range->path.front().find_first_of("#*?[]{},;@/\\\"'") != std::string::npos;
  if (is_pattern)
    return {};
  std::string expression = range->path.front();
  if (!range->domain.empty())
    expression = range->domain + "@" + expression;
  return profile_again("--metrics " + std::string(metrics) + " --include " +
                       base::shell_quote(expression));
}

std::string Case::show(std::string_view options) const {
  if (named_.empty())
    return {};
  return "rangescope report " + base::shell_quote(named_) + " " + std::string(options);
}

void Case::blame(std::uint32_t rank, model::Verdict& verdict) const {
  verdict.evidence["rank"] = rank;
  for (std::uint32_t p = 0; p < report_.processes.size() && !verdict.process; ++p)
    if (report_.processes[p].rank == rank && report_.processes[p].ranges > 0)
      verdict.process = p;
  verdict.next = show("--per-rank");
}

void Case::show_page(model::Verdict& verdict) const {
  verdict.next = show("-f html -o report.html");
  verdict.next_is_page = true;
}

std::string Case::details_of(std::string_view kernel) const {
  if (named_.find(".ncu-rep") == std::string::npos || kernel.empty())
    return {};
  return "ncu --import " + base::shell_quote(named_) + " -k " + base::shell_quote(kernel);
}

/// A snapshot of an allocator: its ranges are annotations around some of what happened.
static bool holds_memory_alone(const model::Report& report) {
  return !report.memory.empty() && !report.total && !report.cpu_outside && report.operators.empty();
}

/// Moves a note that would be left out to `place`.
static void keep_note(std::string_view kind, std::size_t place, std::span<model::Verdict> found) {
  const auto left_out = found.subspan(kMostVerdicts);
  const auto note = std::ranges::find(left_out, kind, &model::Verdict::kind);
  if (note != left_out.end())
    std::swap(*note, found[place]);
}

void judge(model::Report& report, std::string_view named) {
  std::erase_if(report.verdict, std::not_fn(is_made_of_session));
  std::vector<model::Verdict> found = std::move(report.verdict);
  const Case facts(report, named);
  if (holds_memory_alone(report)) {
    find_memory(facts, found);
  } else {
    for (Rule* const find : kRules)
      find(facts, found);
    find_memory(facts, found);
  }
  drop_replaced(found);
  keep_one_of_once(found);
  if (found.empty()) {
    auto plain = overview(facts);
    if (plain)
      found.push_back(std::move(*plain));
  }
  // While all have their savings: those that only say where time goes lose them below.
  std::ranges::stable_sort(found, std::ranges::greater{}, order_of);
  if (found.size() > kMostVerdicts) {
    // Where the model's time and memory go is shown in addition to what costs them.
    keep_note("modules", kMostVerdicts - 1, found);
    keep_note("peak_memory", kMostVerdicts - 2, found);
    found.resize(kMostVerdicts);
  }
  for (model::Verdict& verdict : found)
    if (!claims_savings(verdict))
      drop_savings(verdict);
  if (facts.has_timeline())
    drop_savings_beyond(report.run.duration_ns, found);
  report.verdict = std::move(found);
}

}  // namespace rangescope::analyze
