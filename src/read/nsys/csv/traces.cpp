#include "read/nsys/csv/traces.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text.hpp"
#include "read/impossible.hpp"
#include "read/nsys/csv/domains.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::nsys_csv {
namespace {

using model::kNone;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::uint64_t thread_key(std::uint32_t pid, std::uint32_t tid) {
  return std::uint64_t{pid} << 32 | tid;
}

/// "  16   16    1" as nsys prints a grid in one cell.
std::array<std::uint32_t, 3> triple(std::string_view text) {
  std::array<std::uint32_t, 3> out{};
  std::size_t i = 0;
  for (const std::string_view part : base::split(text, ' ')) {
    if (part.empty() || i == out.size())
      continue;
    out[i++] =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(base::to_uint(part).value_or(0), kNone));
  }
  return out;
}

/// "NVIDIA H200 (0)": the name, and the number that the process knows the device by.
std::pair<std::string_view, std::uint32_t> device_of(std::string_view text) {
  const std::size_t open = text.rfind(" (");
  if (open == std::string_view::npos || !text.ends_with(')'))
    return {text, 0};
  const auto ordinal = base::to_uint(text.substr(open + 2, text.size() - open - 3));
  if (!ordinal || *ordinal >= kNone)
    return {text, 0};
  return {text.substr(0, open), static_cast<std::uint32_t>(*ordinal)};
}

model::KernelShape shape_of(const Row& row) {
  const auto value = [&](std::string_view column) { return row.id(column).value_or(0); };
  model::KernelShape shape;
  shape.grid = {value("grdx"), value("grdy"), value("grdz")};
  shape.block = {value("blkx"), value("blky"), value("blkz")};
  shape.registers_per_thread = value("reg/trd");
  shape.static_shared_bytes = value("stcsmem");
  shape.dynamic_shared_bytes = value("dymsmem");
  return shape;
}

/// False where a row does not name its thread.
template <class Out>
bool thread_of(const Row& row, Out& out) {
  const auto pid = row.id("pid"), tid = row.id("tid");
  out.pid = pid.value_or(0);
  out.tid = tid.value_or(0);
  return pid && tid;
}

}  // namespace

bool Traces::add(Table table, const Row& row, bool range_in_name) {
  table_ = table;
  switch (table) {
    case Table::kRangeTrace: return add_range(row);
    case Table::kProjectionTrace: return add_projection(row);
    case Table::kGpuTrace: return add_work(row, range_in_name);
    case Table::kExecTrace: return add_execution(row, range_in_name);
    case Table::kCallTrace: return add_call(row);
    default: return true;
  }
}

double Traces::resolution_ns() const {
  double coarsest = 1;
  for (const auto& [column, finest] : finest_)
    coarsest = std::max(coarsest, finest.ns);
  return coarsest;
}

bool Traces::span(const Row& row,
                  std::string_view start,
                  std::string_view duration,
                  std::int64_t& start_ns,
                  std::int64_t& end_ns) {
  const auto begin = row.moment(start), length = row.moment(duration);
  if (!begin || !length || length->ns < 0)
    return false;
  start_ns = begin->ns;
  end_ns = begin->ns + length->ns;
  const auto note = [&](std::string_view column, double ns) {
    Finest& finest = finest_[{table_, column}];
    finest.ns = std::min(finest.ns, ns);
  };
  note(start, begin->resolution_ns);
  note(duration, length->resolution_ns);
  return true;
}

model::StringId Traces::kernel_name(std::string_view name, bool range_in_name) {
  if (range_in_name)
    name.remove_prefix(name.rfind('/') + 1);
  return s_.strings.intern(name);
}

bool Traces::read_range(const Row& row,
                        std::string_view start,
                        std::string_view duration,
                        RangeRow& out) {
  if (!thread_of(row, out) || !span(row, start, duration, out.start, out.end))
    return false;
  out.name = s_.strings.intern(row.text("name"));
  out.level = row.id("lvl").value_or(0);
  out.id = row.count("rangeid");
  return true;
}

bool Traces::add_range(const Row& row) {
  range_table_ = true;
  RangeRow out{};
  if (!read_range(row, "start", "duration", out))
    return false;
  out.kind = model::RangeKind::kPushPop;
  out.span = -1;
  ranges_.push_back(out);
  return true;
}

bool Traces::add_projection(const Row& row) {
  projection_table_ = true;
  const std::string_view original_start = row.text("orig start");
  if (original_start.empty() || original_start == "None")
    return row.moment("projected start").has_value();  // work outside every range
  RangeRow out{};
  if (!read_range(row, "orig start", "orig duration", out))
    return false;
  out.kind = base::lower(row.text("style")).starts_with("start") ? model::RangeKind::kStartEnd
                                                                 : model::RangeKind::kPushPop;
  out.projected = true;
  std::int64_t gpu_start = 0, gpu_end = 0;
  if (!span(row, "projected start", "projected duration", gpu_start, gpu_end))
    return false;
  out.span = gpu_end - gpu_start;
  ranges_.push_back(out);
  return true;
}

bool Traces::add_work(const Row& row, bool range_in_name) {
  WorkRow out{};
  if (!span(row, "start", "duration", out.start, out.end))
    return false;
  const std::string_view name = row.text("name");
  const auto [device, ordinal] = device_of(row.text("device"));
  out.device = s_.strings.intern(device);
  out.ordinal = ordinal;
  out.context = row.id("ctx").value_or(0);
  out.stream = row.id("strm").value_or(0);
  out.correlation = row.number("corrid") ? row.count("corrid") : -1;
  const std::string operation = base::lower(name);
  const bool is_memset = operation.find("memset") != std::string::npos;
  const bool is_copy = !is_memset && operation.find("memcpy") != std::string::npos;
  if (!operation.starts_with('[')) {
    out.what = What::kKernel;
    out.shape = index_.shapes.of(shape_of(row));
    out.name = kernel_name(name, range_in_name);
  } else if (is_copy || is_memset) {
    out.what = is_memset ? What::kMemset : What::kCopy;
    out.name = s_.strings.intern(name);
    const double bytes = row.number("bytes").value_or(0);
    out.bytes = bytes > 0 && bytes < 9e18 ? static_cast<std::uint64_t>(std::llround(bytes)) : 0;
    if (row.rounded("bytes"))
      ++rounded_bytes_;
  } else {
    ++unknown_work_;
    return true;
  }
  works_.push_back(out);
  return true;
}

bool Traces::add_execution(const Row& row, bool range_in_name) {
  ExecutionRow out{};
  if (!thread_of(row, out) || !span(row, "api start", "api dur", out.call_start, out.call_end) ||
      !span(row, "kernel start", "kernel dur", out.start, out.end))
    return false;
  out.ordinal = row.id("devid").value_or(0);
  out.name = kernel_name(row.text("kernel name"), range_in_name);
  out.function = s_.strings.intern(row.text("api function"));
  out.shape =
      index_.shapes.of({triple(row.text("gridxyz")), triple(row.text("blockxyz")), {}, 0, 0, 0});
  executions_.push_back(out);
  return true;
}

bool Traces::add_call(const Row& row) {
  CallRow out{};
  if (!thread_of(row, out) || !span(row, "start", "duration", out.start, out.end))
    return false;
  out.name = s_.strings.intern(row.text("name"));
  out.correlation = row.number("corrid") ? row.count("corrid") : -1;
  out.launch = kNone;
  if (const std::string_view name = row.text("thread name"); !name.empty() && name != "None")
    thread_names_[thread_key(out.pid, out.tid)] = s_.strings.intern(name);
  calls_.push_back(out);
  return true;
}

// ---- The timeline

void Traces::lose(model::LossKind kind, std::uint64_t count, std::string detail) {
  s_.losses.push_back({kind, count, std::move(detail)});
}

std::uint32_t Traces::process(std::uint32_t pid) {
  return index_.processes.of({pid, 0, 0, kMost, -kMost});
}

/// Of work whose process no table tells: the only one, or one without a number.
std::uint32_t Traces::process_of_nobody() {
  if (recorded_ != 1 && s_.processes.size() == recorded_)
    s_.processes.push_back({0, 0, 0, kMost, -kMost});
  return static_cast<std::uint32_t>(s_.processes.size() - 1);
}

std::uint32_t Traces::thread(std::uint32_t pid, std::uint32_t tid) {
  return index_.threads.of({process(pid), tid});
}

std::uint32_t Traces::stream(std::uint32_t process,
                             std::uint32_t ordinal,
                             model::StringId device,
                             std::uint32_t context,
                             std::uint32_t id) {
  return index_.streams.of({process, index_.devices.of({process, ordinal, device}), context, id});
}

void Traces::extend(std::uint32_t process, std::int64_t from, std::int64_t to) {
  model::Process& out = s_.processes[process];
  out.start_ns = std::min(out.start_ns, from);
  out.end_ns = std::max(out.end_ns, to);
}

std::uint32_t Traces::launch(CallRow& call) {
  if (call.launch != kNone)
    return call.launch;
  const auto [entry, added] =
      launch_of_.emplace(std::tuple(thread_key(call.pid, call.tid), call.start, call.end),
                         static_cast<std::uint32_t>(s_.launches.size()));
  if (added) {
    model::Launch out;
    out.start_ns = call.start;
    out.end_ns = call.end;
    out.thread = thread(call.pid, call.tid);
    if (call.correlation >= 0)
      out.correlation = static_cast<std::uint32_t>(call.correlation);
    out.name = call.name;
    out.kind = launch_kind(s_.strings.view(call.name));
    s_.launches.push_back(out);
    extend(process(call.pid), call.start, call.end);
  }
  call.launch = entry->second;
  return call.launch;
}

std::uint32_t Traces::launch(const ExecutionRow& execution, std::int64_t correlation) {
  CallRow call{execution.call_start,
               execution.call_end,
               execution.function,
               execution.pid,
               execution.tid,
               correlation,
               kNone};
  return launch(call);
}

/// What the name of a call that causes such work contains: "cudaLaunchKernel",
/// "cuMemcpyHtoDAsync_v2", "cudaMemsetAsync".
std::string_view Traces::word_in_call(What what) {
  switch (what) {
    case What::kCopy: return "emcpy";
    case What::kMemset: return "emset";
    case What::kKernel: break;
  }
  return "aunch";
}

/// calls_ are sorted by correlation id here.
Traces::CallRow* Traces::call_of(const WorkRow& work) {
  if (work.correlation < 0)
    return nullptr;
  const auto less = [](const CallRow& call, std::int64_t id) { return call.correlation < id; };
  const std::string_view word = word_in_call(work.what);
  const auto may_cause_work = [&](const CallRow& call) {
    const std::string_view name = s_.strings.view(call.name);
    return name.find(word) != std::string_view::npos ||
           name.find("Graph") != std::string_view::npos;  // "cudaGraphLaunch"
  };
  // An id is one call of each process; a table of nonsense is not worth more.
  constexpr int kMostCalls = 1000;
  int candidates = 0;
  CallRow* first = nullptr;
  auto call = std::lower_bound(calls_.begin(), calls_.end(), work.correlation, less);
  for (; call != calls_.end() && call->correlation == work.correlation; ++call) {
    if (call->start > work.end)
      break;
    if (!may_cause_work(*call))
      continue;
    ++candidates;
    const bool is_ambiguous = first != nullptr && first->pid != call->pid;
    if (is_ambiguous || candidates > kMostCalls) {
      ++ambiguous_;
      return nullptr;
    }
    if (first == nullptr)
      first = &*call;
  }
  return first;
}

/// executions_ are sorted by start, end and name here.
Traces::ExecutionRow* Traces::execution_of(const WorkRow& work) {
  const auto key = [](const auto& row) { return std::tuple(row.start, row.end, row.name); };
  const auto first_alike = std::lower_bound(
      executions_.begin(),
      executions_.end(),
      key(work),
      [&](const ExecutionRow& row, const auto& wanted) { return key(row) < wanted; });
  if (first_alike == executions_.end() || key(*first_alike) != key(work))
    return nullptr;
  const auto next = first_alike + first_alike->matched;  // each belongs to one work
  if (next >= executions_.end() || key(*next) != key(work))
    return nullptr;
  ++first_alike->matched;
  return &*next;
}

/// nvtx_pushpop_trace has the push/pop ranges of nvtx_gpu_proj_trace as well: only the time on the
/// GPU is taken from the latter.
void Traces::drop_duplicate_ranges() {
  std::map<std::int64_t, std::int64_t> span_of;  // by id
  const auto is_duplicate = [](const RangeRow& row) {
    return row.projected && row.kind == model::RangeKind::kPushPop;
  };
  for (const RangeRow& row : ranges_)
    if (is_duplicate(row))
      span_of[row.id] = row.span;
  std::erase_if(ranges_, is_duplicate);
  for (RangeRow& row : ranges_) {
    if (row.projected)
      continue;
    if (const auto span = span_of.find(row.id); span != span_of.end())
      row.span = span->second;
  }
}

void Traces::finish_ranges() {
  if (range_table_)
    drop_duplicate_ranges();
  // In the order of the pushes: of two that begin at once, the longer one holds the other.
  std::ranges::sort(ranges_, [](const RangeRow& a, const RangeRow& b) {
    return std::tuple(a.start, -a.end, a.level, a.id) < std::tuple(b.start, -b.end, b.level, b.id);
  });
  std::set<model::StringId> distinct;
  for (const RangeRow& row : ranges_)
    distinct.insert(row.name);
  std::vector<std::string_view> names;
  for (const model::StringId name : distinct)
    names.push_back(s_.strings.view(name));
  const Domains domains(names, full_names_);
  std::map<model::StringId, std::pair<std::uint32_t, model::StringId>> split;
  for (const model::StringId full : distinct) {
    const auto [domain, name] = domains.split(s_.strings.view(full));
    split[full] = {index_.domain(domain), s_.strings.intern(name)};
  }
  for (const RangeRow& row : ranges_) {
    model::Range out;
    out.start_ns = row.start;
    out.end_ns = row.end;
    std::tie(out.domain, out.name) = split[row.name];
    out.thread = thread(row.pid, row.tid);
    out.kind = row.kind;
    if (row.span >= 0)
      s_.projections.push_back({static_cast<std::uint32_t>(s_.ranges.size()), row.span});
    s_.ranges.push_back(out);
    extend(process(row.pid), row.start, row.end);
  }
  if (domains.guessed() > 0)
    lose("domain_guessed", domains.guessed(), std::string(Domains::kGuessed));
  reopen_ranges();
}

/// nsys ends ranges that are open when the recording ends in the nanosecond of that. A thread
/// cannot pop two in one.
void Traces::reopen_ranges() {
  if (resolution_ns() > 1)
    return;
  std::int64_t latest = -kMost;
  for (const model::Range& range : s_.ranges)
    latest = std::max(latest, range.end_ns);
  using ThreadDomain = std::pair<std::uint32_t, std::uint32_t>;
  std::map<ThreadDomain, std::set<std::int64_t>> starts_of;  // of ranges that end last
  const auto ends_last = [&](const model::Range& range) {
    return range.kind == model::RangeKind::kPushPop && range.end_ns == latest;
  };
  for (const model::Range& range : s_.ranges)
    if (ends_last(range))
      starts_of[{range.thread, range.domain}].insert(range.start_ns);
  for (model::Range& range : s_.ranges) {
    if (!ends_last(range))
      continue;
    if (starts_of[{range.thread, range.domain}].size() > 1)
      range.end_ns = model::kOpen;
  }
}

void Traces::finish_works() {
  std::ranges::sort(calls_, [](const CallRow& a, const CallRow& b) {
    return std::tuple(a.correlation, a.start, a.pid) < std::tuple(b.correlation, b.start, b.pid);
  });
  std::ranges::stable_sort(executions_, [](const ExecutionRow& a, const ExecutionRow& b) {
    return std::tuple(a.start, a.end, a.name) < std::tuple(b.start, b.end, b.name);
  });
  for (const WorkRow& work : works_) {
    std::uint32_t launch = kNone, owner = 0;
    if (ExecutionRow* execution = work.what == What::kKernel ? execution_of(work) : nullptr) {
      launch = this->launch(*execution, work.correlation);
      owner = process(execution->pid);
    } else if (CallRow* call = call_of(work)) {
      launch = this->launch(*call);
      owner = process(call->pid);
    } else {
      ++uncalled_;
      owner = process_of_nobody();
    }
    const std::uint32_t stream_index =
        stream(owner, work.ordinal, work.device, work.context, work.stream);
    const model::LaunchKind kind = add_to_session(work, launch, stream_index);
    if (launch != kNone)
      launched(s_.launches[launch], kind);
  }
}

/// Returns what its launch launched.
model::LaunchKind Traces::add_to_session(const WorkRow& work,
                                         std::uint32_t launch,
                                         std::uint32_t stream) {
  const std::string_view name = s_.strings.view(work.name);
  switch (work.what) {
    case What::kKernel:
      s_.kernels.push_back(
          {work.start, work.end, launch, index_.kernel_name(name), work.shape, stream, kNone});
      return model::LaunchKind::kKernel;
    case What::kCopy:
      s_.copies.push_back(
          {work.start, work.end, work.bytes, launch, stream, kNone, copy_kind(name)});
      return model::LaunchKind::kCopy;
    case What::kMemset: break;
  }
  s_.memsets.push_back({work.start, work.end, work.bytes, launch, stream, kNone});
  return model::LaunchKind::kMemset;
}

/// Without cuda_gpu_trace the kernels are those of cuda_kern_exec_trace.
void Traces::finish_executions() {
  for (const ExecutionRow& row : executions_) {
    const std::uint32_t launch_index = launch(row, -1);
    const std::uint32_t stream_index = stream(process(row.pid), row.ordinal, 0, 0, 0);
    s_.kernels.push_back({row.start,
                          row.end,
                          launch_index,
                          index_.kernel_name(s_.strings.view(row.name)),
                          row.shape,
                          stream_index,
                          kNone});
    launched(s_.launches[launch_index], model::LaunchKind::kKernel);
  }
}

/// Calls without work: graphs that were recorded whole, and waits of the CPU, of which one inside
/// another counts once.
void Traces::finish_calls() {
  std::ranges::sort(calls_, [](const CallRow& a, const CallRow& b) {
    // One of no length lies before, not inside.
    const bool a_lasts = a.end > a.start;
    const bool b_lasts = b.end > b.start;
    return std::tuple(a.pid, a.tid, a.start, a_lasts, -a.end) <
           std::tuple(b.pid, b.tid, b.start, b_lasts, -b.end);
  });
  std::uint64_t current_thread = 0;
  std::int64_t waits_until = -kMost;  // in the current thread
  for (CallRow& call : calls_) {
    const std::string_view name = s_.strings.view(call.name);
    const model::LaunchKind kind = launch_kind(name);
    extend(process(call.pid), call.start, call.end);
    if (kind == model::LaunchKind::kGraph && call.launch == kNone) {
      (void)launch(call);
      ++whole_graphs_;
    }
    if (kind != model::LaunchKind::kSynchronize)
      continue;
    if (const std::uint64_t key = thread_key(call.pid, call.tid); key != current_thread) {
      current_thread = key;
      waits_until = -kMost;
    }
    const bool is_nested = call.start < waits_until && call.end <= waits_until;
    waits_until = std::max(waits_until, call.end);
    if (!is_nested)
      s_.synchronizations.push_back({call.start, call.end, launch(call), kNone, sync_kind(name)});
  }
}

void Traces::finish() {
  std::set<std::uint32_t> pids;
  for (const RangeRow& row : ranges_)
    pids.insert(row.pid);
  for (const ExecutionRow& row : executions_)
    pids.insert(row.pid);
  for (const CallRow& row : calls_)
    pids.insert(row.pid);
  for (const std::uint32_t pid : pids)
    recorded_ = process(pid) + 1;
  s_.clock.kind = "nsys session time";
  finish_ranges();
  if (works_.empty())
    finish_executions();
  else
    finish_works();
  finish_calls();
  drop_impossible_work(s_, {}, {}, "");
  const auto extend_by = [this](const auto& works) {
    for (const auto& work : works)
      extend(s_.streams[work.stream].process, work.start_ns, work.end_ns);
  };
  extend_by(s_.kernels);
  extend_by(s_.copies);
  extend_by(s_.memsets);
  const auto name_of = [&](std::uint32_t pid, std::uint32_t tid) {
    const auto name = thread_names_.find(thread_key(pid, tid));
    return name == thread_names_.end() ? 0 : name->second;
  };
  for (model::Thread& thread : s_.threads)
    thread.name = name_of(s_.processes[thread.process].pid, thread.tid);
  s_.begin_ns = kMost;
  s_.end_ns = -kMost;
  for (model::Process& process : s_.processes) {
    process.name = name_of(process.pid, process.pid);
    if (process.start_ns == kMost) {
      process.start_ns = process.end_ns = 0;
    } else {
      s_.begin_ns = std::min(s_.begin_ns, process.start_ns);
      s_.end_ns = std::max(s_.end_ns, process.end_ns);
    }
  }
  if (s_.begin_ns == kMost)
    s_.begin_ns = s_.end_ns = 0;
  add_losses();
}

void Traces::add_losses() {
  if (ambiguous_ > 0)
    lose("ambiguous_correlation",
         ambiguous_,
         "GPU work whose correlation id is used by several processes: it belongs to no range. "
         "cuda_kern_exec_trace "
         "names the process of each kernel");
  if (uncalled_ > ambiguous_)
    lose("kernel_without_call",
         uncalled_ - ambiguous_,
         "kernels, copies or memsets whose call is in no table: they belong to no range. Give "
         "cuda_api_trace or "
         "cuda_kern_exec_trace of the same file too");
  if (unknown_work_ > 0)
    lose("unknown_gpu_work",
         unknown_work_,
         "rows of cuda_gpu_trace that are neither kernel, copy nor memset were left out");
  if (rounded_bytes_ > 0)
    lose("rounded_bytes",
         rounded_bytes_,
         "bytes of copies and memsets were printed with three decimals; `--format csv:mem=B` "
         "prints all");
  s_.unrecorded = {works_.empty() && executions_.empty(), works_.empty(), calls_.empty()};
  if (whole_graphs_ > 0)
    lose("graph_work_missing",
         whole_graphs_,
         "graph launches whose kernels cuda_gpu_trace does not list, since nsys recorded each "
         "graph as a whole: GPU "
         "times of ranges that hold them are too small. Give the SQLite export, which has the "
         "graphs");
  if (s_.unrecorded.kernels)
    lose("no_gpu_work",
         0,
         "no table of GPU work was given: add cuda_gpu_trace with cuda_kern_exec_trace or "
         "cuda_api_trace");
  else if (s_.unrecorded.copies)
    lose("no_copies",
         0,
         "cuda_kern_exec_trace has neither streams nor copies, so GPU busy time is unknown: give "
         "cuda_gpu_trace of the "
         "same file too");
  if (s_.unrecorded.calls && !s_.unrecorded.kernels)
    lose(
        "no_calls",
        0,
        "waits of the CPU and launches of whole graphs are in cuda_api_trace, which was not given");
  if (projection_table_ && !range_table_)
    lose("ranges_without_work",
         0,
         "nvtx_gpu_proj_trace leaves out ranges without GPU work, so counts and self times may be "
         "wrong: give "
         "nvtx_pushpop_trace of the same file too");
  if (range_table_ && !projection_table_)
    lose("no_start_end_ranges",
         0,
         "nvtx_pushpop_trace has no start/end ranges; nvtx_gpu_proj_trace has those with GPU work");
}

}  // namespace rangescope::read::nsys_csv
