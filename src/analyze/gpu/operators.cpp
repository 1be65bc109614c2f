
#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

#include "analyze/gpu/gpu.hpp"
#include "analyze/statistics/order.hpp"

namespace rangescope::analyze {
namespace {

using model::kNone;
using model::kOpen;
using model::Session;

/// A range or a CUDA function on a thread.
struct Item {
  std::int64_t start, end;
  std::uint32_t index;
  bool call;
};

struct CallSums {
  std::int64_t calls = 0;
  double cpu = 0, own_cpu = 0, gpu = 0, own_gpu = 0;
};

/// One call that has ended.
struct Done {
  std::uint64_t key = 0;  ///< name, shapes
  CallSums sums;
  double covered = 0;  ///< CPU time of what lay directly inside
};

class Summer {
 public:
  explicit Summer(const Session& session) : s_(session) {
    gpu_of_call_.resize(s_.launches.size());
    const auto add = [&](const auto& all) {
      for (const auto& work : all)
        if (work.launch < gpu_of_call_.size() && work.end_ns > work.start_ns)
          gpu_of_call_[work.launch] += static_cast<double>(work.end_ns - work.start_ns);
    };
    add(s_.kernels);
    add(s_.copies);
    add(s_.memsets);
  }

  void run() {
    // Numbers of ranges, and behind them those of calls: five times smaller than the items, of
    // which there may be 100 M.
    const std::size_t ranges = s_.ranges.size(), threads = s_.threads.size();
    Buckets all =
        bucket_sort(ranges + s_.launches.size(), threads, [&](std::size_t i) -> std::size_t {
          const bool call = i >= ranges;
          const std::uint32_t thread = call ? s_.launches[i - ranges].thread : s_.ranges[i].thread;
          const bool counts =
              call || (s_.ranges[i].domain == 0 && s_.ranges[i].kind == model::RangeKind::kPushPop);
          return counts && of_framework(thread) ? thread : threads;
        });
    for (std::size_t thread = 0; thread < threads; ++thread) {
      // Ranges of a thread are in the order of their pushes; a function that begins with a range
      // lies inside it.
      sort_nearly(all.of(thread), [&](std::uint32_t a, std::uint32_t b) {
        const std::int64_t x = start_of(a), y = start_of(b);
        return x != y ? x < y : a < b;
      });
      for (const std::uint32_t i : all.of(thread)) {
        const Item item = item_of(i);
        while (!open_.empty() && !holds(open_.back().item, item))
          leave();
        open_.push_back({item, 0, 0, 0, 0, {}});
        if (item.call)
          take_call(item);
      }
      while (!open_.empty())
        leave();
    }
    for (const model::Range& range :
         s_.ranges) {  // the profiler's own time, whose thread traces do not say
      if (s_.strings.view(s_.domains[range.domain].name) != "overhead" ||
          !of_framework(range.thread))
        continue;
      const auto length = static_cast<double>(range.end_ns - range.start_ns);
      add({std::uint64_t{range.name} << 32, {1, length, length, 0, 0}, 0});
    }
  }

  std::vector<model::OperatorRow> rows(bool shapes) const {
    std::vector<model::OperatorRow> out;
    const bool gpu = has_gpu_work(s_);
    std::map<std::pair<model::StringId, model::StringId>, CallSums> all;
    for (const auto& [key, sums] : sums_) {
      CallSums& to = all[{static_cast<model::StringId>(key >> 32),
                          shapes ? static_cast<model::StringId>(key) : 0}];
      to.calls += sums.calls;
      to.cpu += sums.cpu;
      to.own_cpu += sums.own_cpu;
      to.gpu += sums.gpu;
      to.own_gpu += sums.own_gpu;
    }
    std::unordered_map<std::string, std::size_t> at_name;
    for (const auto& [key, sums] : all) {
      std::string name(s_.strings.view(key.first));
      if (name.starts_with("ProfilerStep#"))
        name = "ProfilerStep*";
      const std::string text(s_.strings.view(key.second));
      const auto [at, added] = at_name.emplace(name + '\n' + text, out.size());
      if (added)
        out.push_back({name, text, 0, 0, 0, 0, 0});
      model::OperatorRow& row = out[at->second];
      row.calls += sums.calls;
      row.cpu_ns += sums.cpu;
      row.exclusive_cpu_ns += sums.own_cpu;
      row.gpu_ns += gpu ? sums.gpu : model::kNan;
      row.exclusive_gpu_ns += gpu ? sums.own_gpu : model::kNan;
    }
    std::sort(
        out.begin(), out.end(), [&](const model::OperatorRow& a, const model::OperatorRow& b) {
          if (gpu && a.exclusive_gpu_ns != b.exclusive_gpu_ns)
            return a.exclusive_gpu_ns > b.exclusive_gpu_ns;
          if (a.exclusive_cpu_ns != b.exclusive_cpu_ns)
            return a.exclusive_cpu_ns > b.exclusive_cpu_ns;
          return std::tie(a.name, a.shapes) < std::tie(b.name, b.shapes);
        });
    return out;
  }

  [[nodiscard]] bool has_shapes() const { return shapes_; }

 private:
  struct Open {
    Item item;
    double covered, gpu,
        own_gpu;  ///< CPU time of what lies directly inside; GPU time below and own
    std::uint32_t children;
    Done child;  ///< the first one, until it is known whether it is the only one
  };

  void add(const Done& done) {
    CallSums& sums = sums_[done.key];
    sums.calls += done.sums.calls;
    sums.cpu += done.sums.cpu;
    sums.own_cpu += done.sums.own_cpu;
    sums.gpu += done.sums.gpu;
    sums.own_gpu += done.sums.own_gpu;
  }

  std::int64_t start_of(std::size_t i) const {
    return i < s_.ranges.size() ? s_.ranges[i].start_ns
                                : s_.launches[i - s_.ranges.size()].start_ns;
  }
  Item item_of(std::uint32_t i) const {
    const auto ranges = static_cast<std::uint32_t>(s_.ranges.size());
    return {start_of(i),
            i < ranges ? s_.ranges[i].end_ns : s_.launches[i - ranges].end_ns,
            i < ranges ? i : i - ranges,
            i >= ranges};
  }

  bool of_framework(std::uint32_t thread) const {
    return thread < s_.threads.size() && s_.threads[thread].process < s_.processes.size() &&
           s_.processes[s_.threads[thread].process].operators;
  }

  /// A range that crosses the end of another one does not lie in it, nor does one of no length at
  /// that end (traces of whole microseconds have many). A CUDA function belongs to the range in
  /// which it began, up to the range's end; functions that touch are siblings.
  static bool holds(const Item& outer, const Item& inner) {
    const bool empty_at_its_end = outer.end == inner.start && inner.end == outer.end;
    const bool call_of_range = inner.call && !outer.call;
    if (outer.end <= inner.start && !(empty_at_its_end && call_of_range))
      return false;
    return inner.call ? !outer.call || inner.end <= outer.end : inner.end <= outer.end;
  }

  /// GPU work counts for the operator around the call, not for the call.
  void take_call(const Item& item) {
    const double gpu = gpu_of_call_[item.index];
    if (gpu == 0)
      return;
    for (std::size_t i = open_.size(); i-- > 0;) {
      if (open_[i].item.call)
        continue;
      open_[i].own_gpu += gpu;
      return;
    }
  }

  /// An operator whose only child has its name is one call with it, as in key_averages():
  /// aten::mean of a tensor calls aten::mean of dimensions.
  void leave() {
    Open open = open_.back();
    open_.pop_back();
    const double length =
        open.item.end == kOpen ? 0 : static_cast<double>(open.item.end - open.item.start);
    Open* outer = open_.empty() ? nullptr : &open_.back();
    if (outer != nullptr && !open.item.call)
      outer->gpu += open.gpu + open.own_gpu;
    model::StringId name = 0, shapes = 0;
    if (open.item.call) {
      name = s_.launches[open.item.index].name;
    } else {
      const model::Range& range = s_.ranges[open.item.index];
      name = range.name;
      if (range.attributes < s_.attributes.size())
        shapes = s_.attributes[range.attributes].text;
    }
    if (open.children == 1 && open.child.key >> 32 == name) {
      open.covered = open.child.covered;
      open.own_gpu += open.child.sums.own_gpu;
      open.gpu -= open.child.sums.own_gpu;
    } else if (open.children == 1) {
      add(open.child);
    }
    if (open.item.end == kOpen)
      return;  // never ended: no time, and no call of the trace
    shapes_ |= shapes != 0;
    const Done done{
        std::uint64_t{name} << 32 | shapes,
        {1, length, std::max(0.0, length - open.covered), open.gpu + open.own_gpu, open.own_gpu},
        open.covered};
    if (outer == nullptr)
      return add(done);
    outer->covered += length;
    if (++outer->children == 1) {
      outer->child = done;
      return;
    }
    if (outer->children == 2)
      add(outer->child);
    add(done);
  }

  const Session& s_;
  std::vector<double> gpu_of_call_;
  std::vector<Open> open_;
  std::unordered_map<std::uint64_t, CallSums> sums_;  ///< name, shapes
  bool shapes_ = false;
};

}  // namespace

namespace {

/// A recording of CUDA calls alone: each function with its calls, all that is known.
void add_calls(const Session& session, model::Report& report) {
  if (!session.ranges.empty() || model::ran_on_gpu(session) || session.launches.empty())
    return;
  std::map<model::StringId, model::OperatorRow> by_name;
  for (const model::Launch& call : session.launches) {
    model::OperatorRow& row = by_name[call.name];
    ++row.calls;
    if (call.end_ns != kOpen)
      row.cpu_ns += static_cast<double>(call.end_ns - call.start_ns);
  }
  for (auto& [name, row] : by_name) {
    row.name = std::string(session.strings.view(name));
    row.exclusive_cpu_ns = row.cpu_ns;
    row.gpu_ns = row.exclusive_gpu_ns = model::kNan;
    if (!row.name.empty())
      report.operators.push_back(std::move(row));
  }
  std::ranges::stable_sort(report.operators, std::greater<>(), &model::OperatorRow::cpu_ns);
}

}  // namespace

void add_operators(const Session& session, model::Report& report) {
  add_calls(session, report);
  if (std::none_of(session.processes.begin(), session.processes.end(), [](const auto& one) {
        return one.operators;
      }))
    return;
  Summer summer(session);
  summer.run();
  report.operators = summer.rows(false);
  if (summer.has_shapes())
    report.operators_by_shape = summer.rows(true);
}

}  // namespace rangescope::analyze
