
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

  void add(const CallSums& other) {
    calls += other.calls;
    cpu += other.cpu;
    own_cpu += other.own_cpu;
    gpu += other.gpu;
    own_gpu += other.own_gpu;
  }
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
    const auto add = [&](const auto& works) {
      for (const auto& work : works)
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
    const std::size_t items = s_.ranges.size() + s_.launches.size();
    const std::size_t threads = s_.threads.size();
    const auto bucket_of = [&](std::size_t i) -> std::size_t {
      const std::uint32_t thread = thread_of(i);
      if (!counts(i) || !of_framework(thread))
        return threads;
      return thread;
    };
    Buckets by_thread = bucket_sort(items, threads, bucket_of);
    for (std::size_t thread = 0; thread < threads; ++thread)
      add_thread(by_thread.of(thread));
    add_profiler_time();
  }

  std::vector<model::OperatorRow> rows(bool with_shapes) const {
    std::vector<model::OperatorRow> out;
    const bool gpu = has_gpu_work(s_);
    std::map<std::pair<model::StringId, model::StringId>, CallSums> sums_of;
    for (const auto& [key, sums] : sums_) {
      const auto name = static_cast<model::StringId>(key >> 32);
      model::StringId shapes = 0;
      if (with_shapes)
        shapes = static_cast<model::StringId>(key);
      sums_of[{name, shapes}].add(sums);
    }
    std::unordered_map<std::string, std::size_t> row_of;
    for (const auto& [key, sums] : sums_of) {
      std::string name(s_.strings.view(key.first));
      if (name.starts_with("ProfilerStep#"))
        name = "ProfilerStep*";
      const std::string shapes(s_.strings.view(key.second));
      const auto [number, added] = row_of.emplace(name + '\n' + shapes, out.size());
      if (added)
        out.push_back({name, shapes, 0, 0, 0, 0, 0});
      model::OperatorRow& row = out[number->second];
      row.calls += sums.calls;
      row.cpu_ns += sums.cpu;
      row.exclusive_cpu_ns += sums.own_cpu;
      row.gpu_ns += sums.gpu;
      row.exclusive_gpu_ns += sums.own_gpu;
    }
    for (model::OperatorRow& row : out) {
      if (gpu)
        continue;
      row.gpu_ns = model::kNan;
      row.exclusive_gpu_ns = model::kNan;
    }
    const auto is_before = [&](const model::OperatorRow& a, const model::OperatorRow& b) {
      if (gpu && a.exclusive_gpu_ns != b.exclusive_gpu_ns)
        return a.exclusive_gpu_ns > b.exclusive_gpu_ns;
      if (a.exclusive_cpu_ns != b.exclusive_cpu_ns)
        return a.exclusive_cpu_ns > b.exclusive_cpu_ns;
      return std::tie(a.name, a.shapes) < std::tie(b.name, b.shapes);
    };
    std::sort(out.begin(), out.end(), is_before);
    return out;
  }

  [[nodiscard]] bool has_shapes() const { return shapes_; }

 private:
  struct Open {
    Item item;
    double covered;       ///< CPU time of what lies directly inside
    double gpu, own_gpu;  ///< GPU time below, and its own
    std::uint32_t children;
    Done child;  ///< the first one, until it is known whether it is the only one
  };

  void add(const Done& done) { sums_[done.key].add(done.sums); }

  /// `items`: of one thread.
  void add_thread(std::span<std::uint32_t> items) {
    // Ranges of a thread are in the order of their pushes; a function that begins with a range
    // lies inside it.
    sort_nearly(items, [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(start_of(a), a) < std::pair(start_of(b), b);
    });
    for (const std::uint32_t i : items) {
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

  /// The profiler's own time, whose thread traces do not say.
  void add_profiler_time() {
    for (const model::Range& range : s_.ranges) {
      const std::string_view domain = s_.strings.view(s_.domains[range.domain].name);
      if (domain != "overhead" || !of_framework(range.thread))
        continue;
      const auto length = static_cast<double>(range.end_ns - range.start_ns);
      add({std::uint64_t{range.name} << 32, {1, length, length, 0, 0}, 0});
    }
  }

  [[nodiscard]] bool is_range(std::size_t i) const { return i < s_.ranges.size(); }
  [[nodiscard]] const model::Launch& call_of(std::size_t i) const {
    return s_.launches[i - s_.ranges.size()];
  }

  std::uint32_t thread_of(std::size_t i) const {
    return is_range(i) ? s_.ranges[i].thread : call_of(i).thread;
  }
  /// All calls do, and ranges that operators have.
  bool counts(std::size_t i) const {
    if (!is_range(i))
      return true;
    return s_.ranges[i].domain == 0 && s_.ranges[i].kind == model::RangeKind::kPushPop;
  }
  std::int64_t start_of(std::size_t i) const {
    return is_range(i) ? s_.ranges[i].start_ns : call_of(i).start_ns;
  }
  Item item_of(std::uint32_t i) const {
    if (is_range(i))
      return {s_.ranges[i].start_ns, s_.ranges[i].end_ns, i, false};
    const model::Launch& call = call_of(i);
    return {call.start_ns, call.end_ns, i - static_cast<std::uint32_t>(s_.ranges.size()), true};
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
    return call_of_range || inner.end <= outer.end;
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
    Open* outer = open_.empty() ? nullptr : &open_.back();
    if (outer != nullptr && !open.item.call)
      outer->gpu += open.gpu + open.own_gpu;
    const std::uint64_t key = key_of(open.item);
    if (open.children == 1 && open.child.key >> 32 == key >> 32) {
      open.covered = open.child.covered;
      open.own_gpu += open.child.sums.own_gpu;
      open.gpu -= open.child.sums.own_gpu;
    } else if (open.children == 1) {
      add(open.child);
    }
    if (open.item.end == kOpen)
      return;  // never ended: no time, and no call of the trace
    shapes_ |= static_cast<model::StringId>(key) != 0;
    const auto length = static_cast<double>(open.item.end - open.item.start);
    const double own_length = std::max(0.0, length - open.covered);
    const CallSums sums{1, length, own_length, open.gpu + open.own_gpu, open.own_gpu};
    hand_to(outer, {key, sums, open.covered});
  }

  /// Name and shapes.
  [[nodiscard]] std::uint64_t key_of(const Item& item) const {
    if (item.call)
      return std::uint64_t{s_.launches[item.index].name} << 32;
    const model::Range& range = s_.ranges[item.index];
    model::StringId shapes = 0;
    if (range.attributes < s_.attributes.size())
      shapes = s_.attributes[range.attributes].text;
    return std::uint64_t{range.name} << 32 | shapes;
  }

  /// `outer`: what the call lies directly in, or null.
  void hand_to(Open* outer, const Done& done) {
    if (outer == nullptr)
      return add(done);
    outer->covered += done.sums.cpu;
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
  if (std::ranges::none_of(session.processes, &model::Process::operators))
    return;
  Summer summer(session);
  summer.run();
  report.operators = summer.rows(false);
  if (summer.has_shapes())
    report.operators_by_shape = summer.rows(true);
}

}  // namespace rangescope::analyze
