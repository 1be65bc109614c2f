// One kind of verdict: a rule reads a finished report and states its finding, with numbers.
//
// Rules are functions in one list (verdict.cpp). A rule reads the report only; thresholds and their
// reasons are in thresholds.hpp. To add one: a function in a file of this folder, a line in the
// list, a line in docs/manual/verdicts.md, and a test where it must fire and one where it must not.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.hpp"

namespace rangescope::analyze {

/// What rules see: the report, and what several of them ask of it.
class Case {
 public:
  /// `named`: how a command line names the input, "" where it has no name.
  explicit Case(const model::Report& report, std::string_view named = {});

  [[nodiscard]] const model::Report& report() const { return report_; }
  [[nodiscard]] std::size_t rows() const { return report_.rows.size(); }
  [[nodiscard]] const model::Region& region(std::size_t row) const;
  /// What `saves_share` divides by: the run, else the time of all kernels; 0 where both are
  /// unknown.
  [[nodiscard]] double whole_ns() const { return whole_ns_; }
  [[nodiscard]] bool has_timeline() const { return timeline_; }
  /// Is that much of the run, or of the time in ranges that have settled, worth a line?
  [[nodiscard]] bool matters(double ns) const;
  /// Time in ranges of the program, threads and processes side by side counted once.
  [[nodiscard]] double inside_ns() const { return inside_ns_; }
  /// Time within ranges in which the GPUs did nothing, the mean of them; infinite where that was
  /// not recorded.
  [[nodiscard]] double gpu_idle_ns() const { return gpu_idle_ns_; }
  /// Of the run and each GPU; nothing where that was not recorded.
  [[nodiscard]] std::optional<double> gpu_busy_share() const;
  /// "gemm, 45 %": the kernel with the most of a region's kernel time; "" where none is known.
  [[nodiscard]] std::string largest_kernel(std::size_t row) const;
  /// How many instances of a region are open at once, while any is: 1 of threads that follow one
  /// another.
  [[nodiscard]] double side_by_side(std::size_t row) const;
  /// The same within a process.
  [[nodiscard]] double threads_at_once(std::size_t row) const;
  /// How many GPUs do their work at once: not more than there are.
  [[nodiscard]] double gpus_side_by_side(std::size_t row) const;

  /// The rows where `saves` finds most, each as deep as one child holds most of it; at most
  /// `max_rows`, no two of one branch. `saves`: nanoseconds of the run, 0 for none.
  [[nodiscard]] std::vector<std::size_t> worst(const std::function<double(std::size_t row)>& saves,
                                               std::size_t max_rows = 2) const;

  /// A verdict about a row, with its path, region and share of the run filled in.
  [[nodiscard]] model::Verdict about(std::string_view kind,
                                     std::size_t row,
                                     std::string text,
                                     std::optional<double> saves_ns) const;
  /// A verdict about the run.
  [[nodiscard]] model::Verdict about_run(std::string_view kind,
                                         std::string text,
                                         std::optional<double> saves_ns) const;

  /// "rangescope profile --sample 10ms -- ./program" where the program is known, else "".
  [[nodiscard]] std::string profile_again(std::string_view options) const;
  /// "rangescope profile --metrics memory --include decode -- ./program": counters are measured in
  /// ranges of the program, here in the outermost one around the region, or in that with the most
  /// GPU work. "" where there is none.
  [[nodiscard]] std::string measure_again(std::string_view metrics,
                                          const model::Region* region = nullptr) const;
  /// "rangescope report NAME -f html -o report.html"
  [[nodiscard]] std::string show(std::string_view options) const;
  /// It is about this rank: in its evidence, its process, and what to look at next.
  void blame(std::uint32_t rank, model::Verdict& verdict) const;
  /// The page of the run is what to look at.
  void show_page(model::Verdict& verdict) const;
  /// "ncu --import FILE -k KERNEL" where the input is a report of ncu, else "".
  [[nodiscard]] std::string details_of(std::string_view kernel) const;

 private:
  /// The outermost range of the program around `region`; of none the one with the most GPU work.
  /// Null where there is none.
  [[nodiscard]] const model::Region* outermost_range(const model::Region* region) const;

  const model::Report& report_;
  std::string named_;
  bool timeline_ = false;
  std::size_t gpus_ = 0;  ///< that the run used, each once
  double whole_ns_ = 0, inside_ns_ = 0, settled_ns_ = 0;
  double gpu_idle_ns_ = std::numeric_limits<double>::infinity();
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> top_;
};

// What the CPU does in a region, in a few words.

/// "58 % Python, 21 % launching (624 kernels, 3.1 us each); hottest function llama.py:forward, 37
/// %": at most three parts of a tenth or more, then the function with the most self time. "" where
/// the CPU was not sampled or nothing stands out. In a process that was attached to, which may wait
/// for work nearly all the time, that function is also named by its share of the rest.
[[nodiscard]] std::string cpu_causes(const model::Region& region, const model::RunInfo& run);
[[nodiscard]] std::string cpu_causes(const model::CpuWork& cpu,
                                     double kernels,
                                     const model::RunInfo& run);

/// "Python", "libcrypto.so.3", "waiting for the GIL", "launching (624 kernels, 3.1 us each)".
[[nodiscard]] std::string part_text(const model::CpuPart& part,
                                    double kernels,
                                    const model::RunInfo& run);

/// "waiting for a CPU: other programs used 1.4 of 2": why threads that could run did not.
[[nodiscard]] std::string runnable_text(const model::RunInfo& run);

/// Durations of the kernels of a region added up; 0 where none is known.
[[nodiscard]] double kernel_ns(const model::Region& region);

/// The label of a kernel, else its short name, in at most 48 columns.
[[nodiscard]] std::string kernel_text(const model::KernelRow& kernel);

/// "memory_bound", "compute_bound", "latency_bound", "balanced"; "" where counters do not show it.
[[nodiscard]] std::string bound_kind(const model::Bound& bound);
/// "memory 71 %, compute 9.0 % of peak", where both are known.
[[nodiscard]] std::string bound_shares(const model::Bound& bound);
/// "memory-bound (memory 71 %, compute 9.0 % of peak)", with `detail` after the shares.
[[nodiscard]] std::string bound_text(const model::Bound& bound, std::string_view detail = {});

/// "75 %", "2.2 %", "99.9 %": whole percents where that is two digits.
[[nodiscard]] std::string share_text(double share);

/// Time in which copies ran and no kernel did; copies that overlap one another count once.
[[nodiscard]] double copies_alone_ns(const model::GpuWork& gpu);

/// Looks for one thing, by the case's numbers, and adds what it finds; nothing where the data
/// cannot carry it.
using Rule = void(const Case& facts, std::vector<model::Verdict>& out);

Rule find_waits_for_cpu, find_start_up, find_held, find_synchronization, find_copies, find_bounds,
    find_stalls, find_padding, find_warm_up, find_uneven, find_stragglers, find_slow_gpus,
    find_slow_hosts, find_uneven_work, find_slow_links, find_imbalance, find_compilation,
    find_outside, find_kernel, find_modules, find_hot_region, find_throttled, find_profiler,
    find_cuda_calls, find_memory;
Rule find_cuda_error, find_own_code;
Rule find_idle_gpu;  // where nothing before it explains it

}  // namespace rangescope::analyze
