#include "analyze/cures/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "analyze/cures/steps.hpp"
#include "analyze/replay/build.hpp"
#include "analyze/statistics/stretches.hpp"
#include "model/domain.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr double kMostOfLoop = 0.8;
constexpr double kMostOfOperations = 0.8;
constexpr std::size_t kRepeated = 3;

std::vector<KernelTraits> traits_of_all(const model::Session& session) {
  std::vector<KernelTraits> traits;
  traits.reserve(session.kernel_names.size());
  for (const model::KernelName& name : session.kernel_names)
    traits.push_back(traits_of(session.strings.view(name.demangled)));
  return traits;
}

std::vector<Ids> works_by_call(const replay::Graph& graph) {
  std::vector<Ids> works(graph.size());
  for (Id id = 0; id < graph.size(); ++id) {
    if (!replay::is_gpu_work(graph.operations[id].kind))
      continue;
    const Id call = replay::launch_of(graph, id);
    if (call != model::kNone)
      works[call].push_back(id);
  }
  return works;
}

/// Which instances run at a moment. Those of a thread follow one another.
class RunningInstances {
  [[nodiscard]] auto start_of() const {
    return [this](std::uint32_t index) { return instances_[index].span.start_ns; };
  }

 public:
  RunningInstances(const model::Session& session, const std::vector<Instance>& instances)
      : session_(session), instances_(instances) {
    for (std::uint32_t index = 0; index < instances.size(); ++index)
      by_thread_[instances[index].span.thread].push_back(index);
    for (auto& [thread, indexes] : by_thread_)
      std::ranges::stable_sort(indexes, {}, start_of());
  }

  /// Of the other threads of its process; kNone where none or several run.
  [[nodiscard]] std::uint32_t only_one_besides(Id thread, std::int64_t moment_ns) const {
    std::uint32_t found = model::kNone;
    for (const auto& [owner, indexes] : by_thread_) {
      const bool is_other = owner != thread && process_of(owner) == process_of(thread);
      const auto next = std::ranges::upper_bound(indexes, moment_ns, {}, start_of());
      if (!is_other || next == indexes.begin())
        continue;
      if (instances_[*(next - 1)].span.end_ns < moment_ns)
        continue;
      if (found != model::kNone)
        return model::kNone;
      found = *(next - 1);
    }
    return found;
  }

 private:
  [[nodiscard]] std::uint32_t process_of(Id thread) const {
    return session_.threads[thread].process;
  }

  const model::Session& session_;
  const std::vector<Instance>& instances_;
  std::map<Id, std::vector<std::uint32_t>> by_thread_;
};

}  // namespace

Recording::Recording(const model::Session& session, const Machine& machine)
    : session_(session),
      machine_(machine),
      predictor_(replay::graph_of(session),
                 static_cast<std::int64_t>(machine.costs.tracing_ns.expected)),
      lanes_(predictor_.graph()),
      traits_(traits_of_all(session)),
      works_(works_by_call(predictor_.graph())) {
  nest_ranges();
  find_loop();
  find_instances();
}

replay::Parameter Recording::pinned_bytes_per_s() const {
  const model::MeasuredValue& share = machine_.costs.pinned_share;
  const double link = machine_.host_link_bytes_per_s;
  return {share.expected * link, share.low * link, share.high * link};
}

Span Recording::span_of(std::uint32_t nested) const {
  const model::Range& range = session_.ranges[nested_[nested].range];
  return {range.thread, range.start_ns, range.end_ns};
}

/// Those of the program; of libraries and modules none.
void Recording::nest_ranges() {
  std::vector<std::vector<std::uint32_t>> open(session_.threads.size());
  for (std::uint32_t index = 0; index < session_.ranges.size(); ++index) {
    const model::Range& range = session_.ranges[index];
    const std::string_view domain = session_.strings.view(session_.domains[range.domain].name);
    const bool is_of_program = range.kind == model::RangeKind::kPushPop && !range.module &&
                               !model::is_library_domain(domain);
    if (!is_of_program || range.end_ns == model::kOpen)
      continue;
    if (range.thread >= open.size())
      continue;
    std::vector<std::uint32_t>& stack = open[range.thread];
    while (!stack.empty() && span_of(stack.back()).end_ns < range.end_ns)
      stack.pop_back();
    Nested nested{index, model::kNone, static_cast<std::uint32_t>(stack.size())};
    if (!stack.empty())
      nested.parent = stack.back();
    stack.push_back(static_cast<std::uint32_t>(nested_.size()));
    nested_.push_back(nested);
  }
}

std::vector<std::uint32_t> Recording::outermost_with_calls() const {
  std::vector<std::uint32_t> outermost;
  for (std::uint32_t nested = 0; nested < nested_.size(); ++nested) {
    if (nested_[nested].depth > 0)
      continue;
    const Span span = span_of(nested);
    const Id lane = lanes_.lane_of_thread(span.thread);
    if (lane == model::kNone)
      continue;
    const auto operations = lanes_.operations_of(lane);
    const auto start_of = [&](Id id) { return operation(id).start_ns; };
    const auto first = std::ranges::lower_bound(operations, span.start_ns, {}, start_of);
    if (first != operations.end() && start_of(*first) < span.end_ns)
      outermost.push_back(nested);
  }
  return outermost;
}

void Recording::find_loop() {
  std::vector<std::uint32_t> outermost = outermost_with_calls();
  has_ranges_ = !outermost.empty();
  std::map<model::StringId, double> time_of_name;
  double total_ns = 0;
  for (const std::uint32_t nested : outermost) {
    time_of_name[session_.ranges[nested_[nested].range].name] += length_ns(span_of(nested));
    total_ns += length_ns(span_of(nested));
  }
  for (const auto& [name, ns] : time_of_name) {
    if (ns < kMostOfLoop * total_ns)
      continue;
    std::erase_if(outermost, [&, loop = name](std::uint32_t nested) {
      return session_.ranges[nested_[nested].range].name != loop;
    });
    loop_name_ = std::string(session_.strings.view(name));
  }
  loop_ranges_ = std::move(outermost);
  for (const std::uint32_t nested : loop_ranges_)
    loop_.push_back(span_of(nested));
  if (!loop_name_.empty())
    leave_out_warm_up();
  if (!has_ranges_)
    find_loop_without_ranges();
  for (const Span& span : loop_)
    loop_ns_ += length_ns(span);
}

void Recording::leave_out_warm_up() {
  const bool has_one_thread = std::ranges::all_of(
      loop_, [&](const Span& step) { return step.thread == loop_.front().thread; });
  if (!has_one_thread || !std::ranges::is_sorted(loop_, {}, &Span::start_ns))
    return;
  warm_up_steps_ = warm_up_steps(loop_);
  const auto warm_up = static_cast<std::ptrdiff_t>(warm_up_steps_);
  loop_.erase(loop_.begin(), loop_.begin() + warm_up);
  loop_ranges_.erase(loop_ranges_.begin(), loop_ranges_.begin() + warm_up);
}

void Recording::find_loop_without_ranges() {
  FoundSteps steps = find_steps(session_, graph(), lanes_, works_);
  has_found_steps_ = !steps.spans.empty();
  if (has_found_steps_) {
    step_module_ = std::move(steps.module);
    loop_ = std::move(steps.spans);
    return;
  }
  for (Id lane = 0; lane < graph().lanes.size(); ++lane) {
    const Id thread = graph().lanes[lane].thread;
    const auto operations = lanes_.operations_of(lane);
    if (thread == model::kNone || operations.empty())
      continue;
    loop_.push_back(
        {thread, operation(operations.front()).start_ns, operation(operations.back()).end_ns});
  }
}

void Recording::find_instances() {
  std::vector<std::uint32_t> level = loop_ranges_;
  while (!level.empty() && level.size() < kRepeated) {
    std::vector<std::uint32_t> inner;
    for (std::uint32_t nested = 0; nested < nested_.size(); ++nested) {
      const std::uint32_t parent = nested_[nested].parent;
      const bool is_inside =
          parent != model::kNone && std::ranges::find(level, parent) != level.end();
      if (is_inside)
        inner.push_back(nested);
    }
    if (inner.empty())
      break;
    level = std::move(inner);
  }
  for (const std::uint32_t nested : level)
    instances_.push_back({span_of(nested), nested_[nested].range});
  if (level.empty()) {
    for (const Span& span : loop_)
      instances_.push_back({span});
  }
  if (level == loop_ranges_ && !loop_name_.empty())
    extend_instances();
  instance_of_.assign(graph().size(), model::kNone);
  for (std::uint32_t index = 0; index < instances_.size(); ++index)
    add_own_operations(index);
  add_operations_of_helpers();
  list_works();
}

/// Steps that are the loop's ranges themselves.
void Recording::extend_instances() {
  Stretches gpu_busy;
  for (const Operation& work : graph().operations) {
    if (replay::is_gpu_work(work.kind))
      gpu_busy.add(work.start_ns, work.end_ns);
  }
  gpu_busy.finish();
  std::vector<Span> extended = loop_;
  extend_to_next_step(gpu_busy, extended);
  double extended_ns = 0;
  for (const Span& span : extended)
    extended_ns += length_ns(span);
  if (extended_ns <= loop_ns_)
    return;
  are_extended_ = true;
  loop_ns_ = extended_ns;
  loop_ = std::move(extended);
  std::ranges::stable_sort(
      instances_, {}, [](const Instance& instance) { return instance.span.start_ns; });
  for (std::size_t index = 0; index < instances_.size(); ++index)
    instances_[index].span = loop_[index];
}

std::string Recording::steps_text() const {
  if (!has_found_steps_ && !are_extended_)
    return "";
  const std::string& beginning = are_extended_ ? loop_name_ : step_module_;
  if (beginning.empty())
    return fmt::format("{} steps that repeat", instances_.size());
  return fmt::format("{} steps, from one {} to the next,", instances_.size(), beginning);
}

void Recording::add_own_operations(std::uint32_t index) {
  Instance& instance = instances_[index];
  const Id lane = lanes_.lane_of_thread(instance.span.thread);
  if (lane == model::kNone)
    return;
  for (const Id id : operations_of(instance, lane))
    add_operation(index, id, instance.calls);
}

void Recording::add_operation(std::uint32_t index, Id id, Ids& calls) {
  calls.push_back(id);
  instance_of_[id] = index;
  for (const Id work : works_[id]) {
    instance_of_[work] = index;
    instances_[index].works.push_back(work);
  }
}

/// The rule of ranges (analyze/tree/contexts.hpp): a thread without an open range works for the one
/// thread of its process that has one.
void Recording::add_operations_of_helpers() {
  const RunningInstances running(session_, instances_);
  std::vector<Stretches> own_ranges(session_.threads.size());
  for (std::uint32_t nested = 0; nested < nested_.size(); ++nested) {
    const Span span = span_of(nested);
    if (nested_[nested].depth == 0)
      own_ranges[span.thread].add(span.start_ns, span.end_ns);
  }
  for (Stretches& ranges : own_ranges)
    ranges.finish();
  for (Id lane = 0; lane < graph().lanes.size(); ++lane) {
    const Id thread = graph().lanes[lane].thread;
    if (thread == model::kNone)
      continue;
    for (const Id id : lanes_.operations_of(lane)) {
      const std::int64_t end_ns = operation(id).end_ns;
      if (instance_of_[id] != model::kNone || own_ranges[thread].holds(end_ns))
        continue;
      const std::uint32_t index = running.only_one_besides(thread, end_ns);
      if (index == model::kNone)
        continue;
      Instance& instance = instances_[index];
      add_operation(index, id, instance.helper_calls);
      const bool is_new = instance.helpers.empty() || instance.helpers.back() != thread;
      if (is_new)
        instance.helpers.push_back(thread);
    }
  }
}

void Recording::list_works() {
  const auto called_ns = [&](Id work) {
    return operation(replay::launch_of(graph(), work)).start_ns;
  };
  for (Instance& instance : instances_) {
    if (!instance.helpers.empty())
      std::ranges::stable_sort(instance.works, {}, called_ns);
    for (std::uint32_t place = 0; place < instance.works.size(); ++place) {
      if (!is_kernel(instance.works[place]))
        continue;
      instance.kernels.push_back(instance.works[place]);
      instance.places.push_back(place);
    }
    kernel_ns_ += duration_ns(instance.kernels);
  }
}

std::uint32_t Recording::name_of(Id kernel) const {
  return session_.kernels[operation(kernel).source].name;
}

std::string_view Recording::kernel_name(Id kernel) const {
  return session_.strings.view(session_.kernel_names[name_of(kernel)].demangled);
}

const KernelTraits& Recording::traits(Id kernel) const {
  return traits_[name_of(kernel)];
}

bool Recording::has_role(Id work, Role role) const {
  return is_kernel(work) && traits(work).role == role;
}

bool Recording::is_element_wise(Id work) const {
  return has_role(work, Role::kPointwise) || has_role(work, Role::kCopy);
}

bool Recording::is_copy_to_gpu(Id work) const {
  return operation(work).kind == Kind::kCopy && copy(work).kind == model::CopyKind::kHostToDevice;
}

bool Recording::is_named(Id work, std::string_view part) const {
  return is_kernel(work) && kernel_name(work).find(part) != std::string_view::npos;
}

const model::Copy& Recording::copy(Id copy) const {
  return session_.copies[operation(copy).source];
}

std::string_view Recording::call_name(Id call) const {
  const Id source = operation(call).source;
  if (source == model::kNone || source >= session_.launches.size())
    return {};
  return session_.strings.view(session_.launches[source].name);
}

const model::KernelShape& Recording::shape_of(Id kernel) const {
  return session_.kernel_shapes[session_.kernels[operation(kernel).source].shape];
}

double Recording::elements(Id kernel) const {
  return blocks_of(shape_of(kernel)) * traits(kernel).elements_per_block;
}

double Recording::largest_elements(const Ids& works) const {
  double largest = 0;
  for (const Id work : works) {
    if (is_element_wise(work))
      largest = std::max(largest, elements(work));
  }
  return largest;
}

std::optional<double> Recording::element_wise_pass_ns(const Ids& works) const {
  const double largest = largest_elements(works);
  std::optional<double> cheapest_ns;
  for (const Id work : works) {
    if (!is_element_wise(work) || !are_equal_sizes(elements(work), largest))
      continue;
    const double ns = duration_ns(work);
    if (!cheapest_ns || ns < *cheapest_ns)
      cheapest_ns = ns;
  }
  return cheapest_ns;
}

double Recording::room(Id kernel) const {
  const model::Kernel& recorded = session_.kernels[operation(kernel).source];
  const Id device = session_.streams[recorded.stream].device;
  if (device >= session_.devices.size() || session_.devices[device].sm_count == 0)
    return 1;
  return std::min(1.0, blocks_of(shape_of(kernel)) / session_.devices[device].sm_count);
}

double Recording::duration_ns(const Ids& ids) const {
  double sum_ns = 0;
  for (const Id id : ids)
    sum_ns += duration_ns(id);
  return sum_ns;
}

double Recording::busiest_stream_ns(const replay::Graph& graph) const {
  // Changes keep kind and source of operations, not their ids.
  std::array<std::vector<bool>, replay::kKinds> is_of_loop;
  for (const Instance& instance : instances_) {
    for (const Id id : instance.works) {
      const Operation& work = operation(id);
      std::vector<bool>& of_kind = is_of_loop[static_cast<std::size_t>(work.kind)];
      if (of_kind.size() <= work.source)
        of_kind.resize(work.source + 1);
      of_kind[work.source] = true;
    }
  }
  struct Stream {
    double work_ns = 0, recorded_ns = 0, busy_ns = 0;
    std::int64_t busy_until_ns = 0;
  };
  std::vector<Stream> streams(graph.lanes.size());
  for (const Operation& work : graph.operations) {
    const std::vector<bool>& of_kind = is_of_loop[static_cast<std::size_t>(work.kind)];
    if (work.source >= of_kind.size() || !of_kind[work.source])
      continue;
    Stream& stream = streams[work.lane];
    const std::int64_t free_ns = std::max(work.start_ns, stream.busy_until_ns);
    stream.work_ns += static_cast<double>(work.duration_ns);
    stream.recorded_ns += static_cast<double>(work.end_ns - work.start_ns);
    stream.busy_ns += static_cast<double>(std::max<std::int64_t>(0, work.end_ns - free_ns));
    stream.busy_until_ns = std::max(stream.busy_until_ns, work.end_ns);
  }
  double busiest_ns = 0;
  for (const Stream& stream : streams) {
    if (stream.recorded_ns <= 0)
      continue;
    // Kernels of one stream overlap a little, and those of a CUDA graph's branches more.
    const double share_alone = stream.busy_ns / stream.recorded_ns;
    busiest_ns = std::max(busiest_ns, share_alone * stream.work_ns);
  }
  return busiest_ns;
}

/// An operation belongs to the instance in which it ends: the stretch before the first call may
/// have begun before it.
std::span<const Id> Recording::operations_of(const Instance& instance, Id lane) const {
  const auto operations = lanes_.operations_of(lane);
  const auto end_of = [&](Id id) { return operation(id).end_ns; };
  const auto first = std::ranges::upper_bound(operations, instance.span.start_ns, {}, end_of);
  const auto last = std::ranges::upper_bound(operations, instance.span.end_ns, {}, end_of);
  return {first, std::max(first, last)};
}

Ids Recording::waits_behind(const Instance& instance, const Ids& copies) const {
  Ids waits;
  for (const Id copy : copies) {
    const Id call = replay::launch_of(graph(), copy);
    if (call == model::kNone)
      continue;
    const auto thread = operations_of(instance, operation(call).lane);
    const Ids behind = replay::waits_behind(graph(), thread, call);
    waits.insert(waits.end(), behind.begin(), behind.end());
  }
  return waits;
}

std::size_t Recording::count_instances_with(const Ids& operations) const {
  std::vector<bool> has_one(instances_.size());
  for (const Id id : operations) {
    if (instance_of_[id] != model::kNone)
      has_one[instance_of_[id]] = true;
  }
  return static_cast<std::size_t>(std::ranges::count(has_one, true));
}

bool Recording::goes_on(const Ids& operations) const {
  if (has_steps() && instances_.size() >= kRepeated)
    return true;
  std::int64_t first_ns = model::kOpen, last_ns = 0;
  for (const Instance& instance : instances_) {
    for (const Id kernel : instance.kernels) {
      first_ns = std::min(first_ns, operation(kernel).start_ns);
      last_ns = std::max(last_ns, operation(kernel).end_ns);
    }
  }
  constexpr std::int64_t kParts = 4;
  std::array<bool, kParts> is_in_part{};
  for (const Id id : operations) {
    const std::int64_t from_first_ns = operation(id).start_ns - first_ns;
    const std::int64_t part =
        kParts * from_first_ns / std::max<std::int64_t>(1, last_ns - first_ns);
    if (from_first_ns >= 0 && part < kParts)
      is_in_part[static_cast<std::size_t>(part)] = true;
  }
  return std::ranges::count(is_in_part, true) >= kParts - 1;
}

std::vector<std::string> Recording::path_of(const Ids& operations) const {
  if (!has_ranges_ || loop_name_.empty())
    return {};
  std::vector<std::string> path{loop_name_};
  const bool steps_are_loop = !instances_.empty() && !loop_ranges_.empty() &&
                              instances_.front().range == nested_[loop_ranges_.front()].range;
  if (steps_are_loop)
    return path;
  std::map<model::StringId, std::size_t> count_of_name;
  std::size_t count = 0;
  for (const Id id : operations) {
    if (instance_of_[id] == model::kNone)
      continue;
    ++count_of_name[session_.ranges[instances_[instance_of_[id]].range].name];
    ++count;
  }
  for (const auto& [name, found] : count_of_name) {
    if (static_cast<double>(found) >= kMostOfOperations * static_cast<double>(count) && count > 0)
      path.emplace_back(session_.strings.view(name));
  }
  return path;
}

}  // namespace rangescope::analyze::cures
