#include "sample/cpu/perf.hpp"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <ranges>
#include <tuple>
#include <utility>

#include "base/fs.hpp"
#include "sample/blocks.hpp"

namespace rangescope::sample::cpu {
namespace {

#if defined(__x86_64__)
// By number in DWARF: the kernel's number (PERF_REG_X86_*).
constexpr std::uint8_t kKernelRegister[kRegisters] = {
    0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};
constexpr std::uint64_t register_mask() {
  std::uint64_t mask = 0;
  for (const std::uint8_t number : kKernelRegister)
    mask |= std::uint64_t{1} << number;
  return mask;
}
#else
constexpr std::uint8_t kKernelRegister[kRegisters] = {};
constexpr std::uint64_t register_mask() {
  return 0;
}
#endif

// Behind every record that is no sample: pid, tid, time, and which event it is of.
constexpr std::size_t kTrailer = 24;
/// In place of a counter's number: the event of context switches.
constexpr std::uint32_t kOfSwitches = ~0u;
/// And the clock that wakes no reader.
constexpr std::uint32_t kOfQuiet = ~1u;
/// And the clock that does not sample.
constexpr std::uint32_t kOfTime = ~2u;
/// Of the stack of a thread that goes to sleep: who called the function that made the system call.
constexpr std::uint32_t kTopOfStack = 512;

/// `tid` 0: of the calling thread.
int open_event(perf_event_attr& attributes, int cpu, pid_t tid = 0) {
  return static_cast<int>(::syscall(SYS_perf_event_open,
                                    &attributes,
                                    tid,
                                    cpu,
                                    -1,
                                    static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC)));
}

/// One descriptor a core and event may be more than programs are given.
rlimit raise_file_limit() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit raised{before.rlim_max, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

perf_event_attr inherited(std::uint32_t type, std::uint64_t config, std::uint64_t period) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.sample_period = period;
  attributes.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.disabled = attributes.inherit = attributes.enable_on_exec = 1;
  attributes.exclude_hv = attributes.sample_id_all = attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

CounterReading reading_of(int fd) {
  CounterReading reading;
  static_assert(sizeof reading == 24);
  if (::read(fd, &reading, sizeof reading) != sizeof reading)
    return {};
  return reading;
}

/// The fields of a record, read one after the other; zeros behind its end.
class Fields {
 public:
  explicit Fields(const perf_event_header& header)
      : next_(reinterpret_cast<const std::byte*>(&header) + sizeof header),
        end_(reinterpret_cast<const std::byte*>(&header) + header.size) {}

  template <class T>
  T take() {
    T value{};
    if (left() < sizeof value) {
      next_ = end_;
      return value;
    }
    std::memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
    return value;
  }
  std::span<const std::byte> take_bytes(std::uint64_t wanted) {
    const std::span<const std::byte> bytes(next_, std::min<std::uint64_t>(wanted, left()));
    next_ += bytes.size();
    return bytes;
  }
  /// Up to the first zero, or the record's end.
  [[nodiscard]] std::string_view text() const {
    const auto* text = reinterpret_cast<const char*>(next_);
    return {text, ::strnlen(text, left())};
  }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }

 private:
  const std::byte* next_;
  const std::byte* end_;
};

std::int64_t time_of(const perf_event_header& header) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  std::int64_t time_ns = 0;
  // A sample: header, event, pid, tid, time. Others: ..., pid, tid, time, event.
  const std::size_t offset =
      header.type == PERF_RECORD_SAMPLE ? sizeof header + 16 : header.size - 16u;
  if (header.size >= sizeof header + kTrailer)
    std::memcpy(&time_ns, bytes + offset, sizeof time_ns);
  return time_ns;
}

std::uint64_t event_of(const perf_event_header& header) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  std::uint64_t id = 0;
  const std::size_t offset =
      header.type == PERF_RECORD_SAMPLE ? sizeof header : header.size - sizeof id;
  if (header.size >= sizeof header + kTrailer)
    std::memcpy(&id, bytes + offset, sizeof id);
  return id;
}

/// Of a sample, or of a switch.
std::uint32_t thread_of(const perf_event_header& header) {
  // A sample: header, event, pid, tid. A switch: header, pid, tid.
  const std::size_t offset = sizeof header + (header.type == PERF_RECORD_SAMPLE ? 12 : 4);
  std::uint32_t tid = 0;
  std::memcpy(&tid, reinterpret_cast<const std::byte*>(&header) + offset, sizeof tid);
  return tid;
}

/// Sets `stayed` and `preempted_ns` of each sample, by the switches of its thread behind it.
void mark_samples_that_stayed(std::vector<PerfRecord>& records) {
  struct LaterSwitches {
    bool only_preempted = false;  ///< there is one, by which the thread lost its core
    std::int64_t preempted_ns = -1;
  };
  std::unordered_map<std::uint32_t, LaterSwitches> later_switches;
  for (auto reversed = records.rbegin(); reversed != records.rend();
       ++reversed) {  // clang 14 cannot reverse a view
    PerfRecord& record = *reversed;
    const perf_event_header& header = *record.header;
    const bool is_sample = header.type == PERF_RECORD_SAMPLE;
    if (!is_sample && header.type != PERF_RECORD_SWITCH)
      continue;
    const std::uint32_t tid = thread_of(header);
    const auto later = later_switches.find(tid);
    const bool is_last = later == later_switches.end();
    if (is_sample) {
      record.stayed = is_last || later->second.only_preempted;
      record.preempted_ns = is_last ? -1 : later->second.preempted_ns;
      continue;
    }
    constexpr auto kPreempted = PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    if (is_last && (header.misc & kPreempted) == kPreempted)
      later_switches[tid] = {true, record.at_ns};
    else
      later_switches[tid] = {};
  }
}

/// Records that the clock gives, and no other event.
bool of_clock(const perf_event_header& header) {
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: return true;
    default: return false;
  }
}

void read_user_registers(Fields fields, Sample& sample) {
  if (fields.take<std::uint64_t>() != PERF_SAMPLE_REGS_ABI_64)
    return;
  sample.registers = true;
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((register_mask() >> bit & 1) == 0)
      continue;
    const auto value = fields.take<std::uint64_t>();
    for (std::size_t r = 0; r < kRegisters; ++r)
      if (kKernelRegister[r] == bit)
        sample.values[r] = value;
  }
  const std::span<const std::byte> stack = fields.take_bytes(fields.take<std::uint64_t>());
  if (!stack.empty())
    sample.stack = stack.first(std::min<std::size_t>(stack.size(), fields.take<std::uint64_t>()));
}

Mapped mapped_of(Fields fields) {
  Mapped mapped;
  mapped.pid = fields.take<std::uint32_t>();
  fields.take<std::uint32_t>();
  mapped.start = fields.take<std::uint64_t>();
  mapped.length = fields.take<std::uint64_t>();
  mapped.offset = fields.take<std::uint64_t>();
  fields.take_bytes(24);  // device, inode, generation (or a build id)
  mapped.executable = (fields.take<std::uint32_t>() & PROT_EXEC) != 0;
  fields.take<std::uint32_t>();
  mapped.path = fields.text();
  return mapped;
}

/// Of a record that begins with a process and a thread; `fields` goes on behind them.
Task task_of(Fields& fields) {
  Task task;
  task.pid = fields.take<std::uint32_t>();
  task.tid = fields.take<std::uint32_t>();
  return task;
}

/// Of PERF_RECORD_FORK and PERF_RECORD_EXIT.
Task task_with_parent_of(Fields fields) {
  Task task;
  task.pid = fields.take<std::uint32_t>();
  task.parent_pid = fields.take<std::uint32_t>();
  task.tid = fields.take<std::uint32_t>();
  task.parent_tid = fields.take<std::uint32_t>();
  return task;
}

/// The kernel's most where a ring holds sixteen of them: calls of cuBLASLt under PyTorch take
/// more than half of it.
std::uint32_t stack_bytes_for(std::size_t ring_bytes, std::size_t page) {
  return ring_bytes >= 256 * page ? 65'528 : 32 << 10;
}

int read_paranoid() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int value = 0;
  constexpr int kDefault = 2;
  if (!(file >> value))
    return kDefault;
  return value;
}

bool has_seccomp() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Seccomp:"))
      return line.find_first_of("12") != std::string::npos;
  return false;
}

}  // namespace

base::Error refusal(int error, int paranoid, bool seccomp) {
  using base::Code;
  if (error == ENOSYS || error == ENODEV || error == ENOENT || error == EOPNOTSUPP)
    return {Code::kToolMissing,
            "this kernel cannot sample the CPU (perf_event_open: " +
                std::string(std::strerror(error)) + ")",
            {},
            {}};
  const bool is_forbidden = base::is_permission_error(error);
  if (is_forbidden && paranoid > 2)
    return {Code::kPermission,
            "kernel.perf_event_paranoid is " + std::to_string(paranoid) +
                ", which forbids perf_event_open",
            {},
            "Set it to 2: sysctl kernel.perf_event_paranoid=2"};
  if (is_forbidden && seccomp)
    return {Code::kPermission,
            "the container's seccomp filter forbids perf_event_open",
            {},
            "Start it with --cap-add PERFMON, or a seccomp profile that allows perf_event_open"};
  if (error == EMFILE || error == ENFILE)
    return {
        Code::kPermission, "no descriptors are left for one event per CPU", {}, "Raise ulimit -n"};
  return {is_forbidden ? Code::kPermission : Code::kToolMissing,
          "perf_event_open failed: " + std::string(std::strerror(error)),
          {},
          {}};
}

perf_event_attr Events::clock_event() const {
  perf_event_attr attributes = inherited(PERF_TYPE_SOFTWARE,
                                         PERF_COUNT_SW_CPU_CLOCK,
                                         static_cast<std::uint64_t>(options_.interval_ns));
  attributes.sample_type |= PERF_SAMPLE_CALLCHAIN;
  attributes.exclude_callchain_kernel = !options_.kernel_chains;
  attributes.mmap = attributes.mmap2 = attributes.comm = attributes.comm_exec = attributes.task = 1;
  attributes.wakeup_events = 1;
  attributes.exclude_kernel = !kernel_;
  if (options_.stacks && register_mask() != 0) {
    attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = register_mask();
    attributes.sample_stack_user = stack_bytes_;
  }
  return attributes;
}

base::Result<Events> Events::open(const EventOptions& options) {
  Events events;
  events.options_ = options;
  events.own_pid_ = static_cast<std::uint32_t>(::getpid());
  perf_event_attr attributes = events.clock_event();
  if (options.follow)
    attributes.inherit = attributes.enable_on_exec = 0;
  const bool stacks = options.stacks && register_mask() != 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto cpus = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF)));
  // 64 MiB in all where that is allowed, at least 1 MiB a CPU; kernel.perf_event_mlock_kb holds 128
  // pages a CPU and one more by default.
  std::size_t data = 2048 * page;
  while (data > 256 * page && data * static_cast<std::size_t>(cpus) > std::size_t{64} << 20)
    data /= 2;
  for (;; data = data > 128 * page ? 128 * page : data / 2) {
    events.stack_bytes_ = stacks ? stack_bytes_for(data, page) : 0;
    attributes.sample_stack_user = events.stack_bytes_;
    const int error = events.open_rings(attributes, cpus, page, data);
    if (error == 0)
      break;
    const bool no_room = !events.rings_.empty();
    events.close();
    if (no_room && data > 8 * page && (error == EPERM || error == ENOMEM))
      continue;
    base::Error refused = refusal(error, read_paranoid(), has_seccomp());
    if (no_room)
      refused = {base::Code::kPermission,
                 std::string("no buffer for CPU samples: ") + std::strerror(error),
                 {},
                 "Raise ulimit -l or kernel.perf_event_mlock_kb"};
    return tl::make_unexpected(std::move(refused));
  }
  const rlimit before = raise_file_limit();
  if (options.follow)
    return events;  // and needs them for longer
  events.open_switches();
  events.open_quiet(attributes, data);
  events.open_counters(options.counters);
  ::setrlimit(RLIMIT_NOFILE, &before);
  return events;
}

perf_event_attr Events::switch_event() const {
  perf_event_attr attributes = inherited(
      PERF_TYPE_SOFTWARE, kernel_ ? PERF_COUNT_SW_CONTEXT_SWITCHES : PERF_COUNT_SW_DUMMY, 1);
  attributes.exclude_kernel = !kernel_;
  attributes.context_switch = 1;
  if (kernel_ && register_mask() != 0) {
    attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = register_mask();
    attributes.sample_stack_user = kTopOfStack;
  }
  return attributes;
}

void Events::open_switches() {
  perf_event_attr attributes = switch_event();
  (void)open_further(attributes, kOfSwitches, switch_fds_);
}

// Its records are taken every few milliseconds; the kernel wakes us only where the buffer fills.
void Events::open_quiet(perf_event_attr attributes, std::size_t ring_bytes) {
  attributes.enable_on_exec = 0;
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<std::uint32_t>(ring_bytes / 4);
  (void)open_further(attributes, kOfQuiet, quiet_fds_);
}

// A program that is started meanwhile has the clock that wakes us again, and the other too:
// enable_on_exec.
void Events::be_quiet(bool quiet) {
  if (quiet_fds_.empty() || quiet == quiet_)
    return;
  const auto control_clock = [&](bool quiet_clock, unsigned long request) {
    if (quiet_clock)
      for (const int fd : quiet_fds_)
        ::ioctl(fd, request, 0);
    else
      for (const Ring& ring : rings_)
        ::ioctl(ring.fd, request, 0);
  };
  control_clock(quiet, PERF_EVENT_IOC_ENABLE);
  quiet_ = quiet;
  turned_ns_ = now_ns();
  control_clock(!quiet, PERF_EVENT_IOC_DISABLE);
}

// At any time one of the two clocks is used, and the other's records are left out. Our own threads
// have both clocks too, and count from the first change on: their records are left out as well.
bool Events::is_wanted(const perf_event_header& header, std::int64_t at_ns) const {
  if (!of_clock(header))
    return true;
  const auto event = counter_of_.find(event_of(header));
  const bool by_waking_clock = event == counter_of_.end();
  if (!by_waking_clock && event->second != kOfQuiet)
    return true;
  const bool quiet_then = quiet_ == (at_ns >= turned_ns_);
  if (by_waking_clock == quiet_then)
    return false;
  std::uint32_t pids[2] = {};  // the second of FORK: the parent's
  const auto* bytes = reinterpret_cast<const std::byte*>(&header) + sizeof header;
  std::memcpy(pids, bytes + (header.type == PERF_RECORD_SAMPLE ? 8 : 0), sizeof pids);
  return pids[0] != own_pid_ && !(header.type == PERF_RECORD_FORK && pids[1] == own_pid_);
}

// Enabled once it has a buffer to write to: what the thread starts before that is not recorded.
base::Result<void> Events::follow(std::uint32_t tid) {
  perf_event_attr clock = clock_event(), switches = switch_event();
  for (const bool of_switches : {false, true}) {
    perf_event_attr& attributes = of_switches ? switches : clock;
    attributes.enable_on_exec = 0;
    attributes.inherit_thread = !options_.with_children;
    for (const Ring& ring : rings_) {
      int fd = open_event(attributes, ring.cpu, static_cast<pid_t>(tid));
      if (fd < 0 && errno == EINVAL && attributes.inherit_thread != 0) {
        options_.with_children = true;
        attributes.inherit_thread = 0;
        fd = open_event(attributes, ring.cpu, static_cast<pid_t>(tid));
      }
      if (fd < 0 && errno == ESRCH)
        return {};
      if (fd < 0)
        return tl::make_unexpected(refusal(errno, read_paranoid(), has_seccomp()));
      (of_switches ? switch_fds_ : followed_).push_back(fd);
      std::uint64_t id = 0;
      if (::ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring.fd) != 0 ||
          ::ioctl(fd, PERF_EVENT_IOC_ID, &id) != 0)
        return tl::make_unexpected(refusal(errno, read_paranoid(), has_seccomp()));
      if (of_switches)
        counter_of_[id] = kOfSwitches;
      ::ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    }
  }
  return {};
}

// Those of our own threads, which have the events disabled until a program is started, are enabled
// too.
void Events::watch_switches(bool on) {
  watched_since_ns_ = INT64_MAX;
  for (const int fd : switch_fds_)
    ::ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  if (on)
    watched_since_ns_ = now_ns();
}

// The clocks that sample take turns, and our own threads have them: a clock that only counts tells
// how long the program ran.
void Events::open_counters(const std::vector<CounterEvent>& counters) {
  perf_event_attr time = inherited(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
  time.exclude_kernel = !kernel_;
  if (!counters.empty())
    (void)open_further(time, kOfTime, time_fds_);
  for (const CounterEvent& event : counters) {
    auto& opened = counters_.emplace_back();
    perf_event_attr attributes = inherited(event.type, event.config, event.period);
    attributes.exclude_kernel = !kernel_;
    int error = EACCES;
    if (!event.in_kernel || kernel_)
      error = open_further(attributes, static_cast<std::uint32_t>(counters_.size() - 1), opened);
    refused_.push_back(error);
  }
}

int Events::open_further(perf_event_attr& attributes, std::uint32_t number, std::vector<int>& fds) {
  int error = 0;
  for (const Ring& ring : rings_) {
    const int fd = open_event(attributes, ring.cpu);
    if (fd >= 0)
      fds.push_back(fd);
    std::uint64_t id = 0;
    if (fd < 0 || ::ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring.fd) != 0 ||
        ::ioctl(fd, PERF_EVENT_IOC_ID, &id) != 0) {
      error = errno;
      break;
    }
    counter_of_[id] = number;
  }
  if (error == 0)
    return 0;
  for (const int fd : fds)
    ::close(fd);
  fds.clear();
  return error;
}

std::vector<CounterTotal> Events::totals() const {
  std::vector<CounterReading> clock;
  for (const int fd : time_fds_)
    clock.push_back(reading_of(fd));
  std::vector<CounterTotal> out;
  for (const std::vector<int>& fds : counters_) {
    std::vector<CounterReading> counter;
    for (const int fd : fds)
      counter.push_back(reading_of(fd));
    out.push_back(counter_total(counter, clock));
  }
  return out;
}

// 0, or errno; with a ring in the list without pages where only its buffer was refused.
int Events::open_rings(perf_event_attr& attributes, int cpus, std::size_t page, std::size_t data) {
  for (int cpu = 0; cpu < cpus; ++cpu) {
    int fd = open_event(attributes, cpu);
    if (fd < 0 && base::is_permission_error(errno) && kernel_ && cpu == 0) {
      attributes.exclude_kernel = 1;
      kernel_ = false;
      fd = open_event(attributes, cpu);
    }
    if (fd < 0 && errno == ENODEV)
      continue;  // a CPU that is switched off
    if (fd < 0) {
      const int error = errno;
      close();
      return error;
    }
    void* pages = ::mmap(nullptr, data + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int error = errno;
    const bool has_pages = pages != MAP_FAILED;
    rings_.push_back({fd, cpu, has_pages ? pages : nullptr, data, 0});
    if (!has_pages)
      return error;
  }
  return rings_.empty() ? ENODEV : 0;
}

void Events::close() {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const Ring& ring : rings_) {
    if (ring.pages != nullptr)
      ::munmap(ring.pages, ring.bytes + page);
    ::close(ring.fd);
  }
  rings_.clear();
  counters_.push_back(std::exchange(switch_fds_, {}));
  counters_.push_back(std::exchange(followed_, {}));
  counters_.push_back(std::exchange(quiet_fds_, {}));
  counters_.push_back(std::exchange(time_fds_, {}));
  for (const std::vector<int>& fds : counters_)
    for (const int fd : fds)
      ::close(fd);
  counters_.clear();
}

bool Events::wait(std::int64_t timeout_ns) const {
  std::vector<pollfd> polled;
  for (const Ring& ring : rings_)
    polled.push_back({ring.fd, POLLIN, 0});
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  const int ready = ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
  // Where all that had the event ended, poll says so at once, again and again.
  const bool has_samples =
      std::ranges::any_of(polled, [](const pollfd& p) { return (p.revents & POLLIN) != 0; });
  if (ready > 0 && !has_samples)
    ::ppoll(nullptr, 0, &timeout, nullptr);
  return has_samples;
}

void Events::read_sample(const perf_event_header& header,
                         bool stayed,
                         std::int64_t preempted_ns,
                         Sink& sink) {
  Fields fields(header);
  const auto event = counter_of_.find(fields.take<std::uint64_t>());
  Sample sample;
  sample.kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  sample.pid = fields.take<std::uint32_t>();
  sample.tid = fields.take<std::uint32_t>();
  sample.at_ns = fields.take<std::int64_t>();
  const bool by_clock = event == counter_of_.end() || event->second == kOfQuiet;
  if (!by_clock && event->second != kOfSwitches)
    return sink.counted({sample.pid, sample.tid}, sample.at_ns, event->second);
  if (!by_clock) {
    if (sample.pid == own_pid_)
      return;
    read_user_registers(fields, sample);
    return sink.leaves(sample);
  }
  const auto addresses = fields.take<std::uint64_t>();
  const auto count = std::min<std::uint64_t>(addresses, fields.left() / 8);
  chain_.clear();
  kernel_chain_.clear();
  bool user = !sample.kernel;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto address = fields.take<std::uint64_t>();
    if (address < static_cast<std::uint64_t>(PERF_CONTEXT_MAX))
      (user ? chain_ : kernel_chain_).push_back(address);
    else
      user = address == static_cast<std::uint64_t>(PERF_CONTEXT_USER);
  }
  sample.chain = chain_;
  sample.in_kernel = kernel_chain_;
  if (stack_bytes_ > 0)
    read_user_registers(fields, sample);
  sample.stayed = stayed && sample.at_ns > watched_since_ns_;
  sample.preempted_ns = preempted_ns;
  sink.sample(sample);
}

void Events::collect(std::uint32_t ring_index,
                     std::int64_t until_ns,
                     std::vector<PerfRecord>& records) {
  Ring& ring = rings_[ring_index];
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* control = static_cast<perf_event_mmap_page*>(ring.pages);
  const auto* data = static_cast<const std::byte*>(ring.pages) + page;
  const std::uint64_t head =
      std::atomic_ref<__u64>(control->data_head).load(std::memory_order_acquire);
  for (std::uint64_t position = ring.read_position; position < head;) {
    const std::size_t offset = position & (ring.bytes - 1);
    const auto* header = reinterpret_cast<const perf_event_header*>(data + offset);
    const std::size_t size =
        header->size;  // records are aligned to eight bytes, so a header is whole
    if (size < sizeof *header || size > head - position) {
      ring.read_position = head;
      break;
    }
    if (offset + size > ring.bytes) {
      const std::size_t joined_offset = joined_.size(), first = ring.bytes - offset;
      joined_.insert(joined_.end(), data + offset, data + ring.bytes);
      joined_.insert(joined_.end(), data, data + (size - first));
      joined_.resize((joined_.size() + 7) & ~std::size_t{7});
      header = reinterpret_cast<const perf_event_header*>(joined_.data() + joined_offset);
    }
    const std::int64_t at_ns = time_of(*header);
    if (at_ns > until_ns)
      break;
    position += size;
    records.push_back({header, at_ns, ring_index, position});
  }
}

void Events::give(const PerfRecord& record, Sink& sink, Drained& drained) {
  const perf_event_header& header = *record.header;
  Fields fields(header);
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      ++drained.samples;
      read_sample(header, record.stayed, record.preempted_ns, sink);
      break;
    case PERF_RECORD_MMAP2: sink.mapped(mapped_of(fields)); break;
    case PERF_RECORD_COMM: {
      const Task task = task_of(fields);
      sink.named(task, fields.text(), (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0);
      break;
    }
    case PERF_RECORD_FORK: sink.forked(task_with_parent_of(fields), record.at_ns); break;
    case PERF_RECORD_EXIT: sink.ended(task_with_parent_of(fields), record.at_ns); break;
    case PERF_RECORD_SWITCH: {
      ++drained.switches;
      const Task task = task_of(fields);
      if (task.pid != own_pid_)
        sink.switched(task,
                      record.at_ns,
                      (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0,
                      (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0);
      break;
    }
    case PERF_RECORD_LOST: {
      fields.take<std::uint64_t>();
      sink.lost(fields.take<std::uint64_t>());
      break;
    }
    case PERF_RECORD_THROTTLE: sink.throttled(); break;
    default: break;
  }
}

Drained Events::drain(Sink& sink) {
  Drained drained;
  std::vector<PerfRecord> records;
  // What another CPU writes while the rings are read waits for the next time, so that all is in
  // order.
  const std::int64_t until_ns = now_ns();
  // Records that go round the end are put together; their places must not move, so room is made for
  // all first.
  joined_.clear();
  joined_.reserve(rings_.size() << 16);
  for (std::uint32_t r = 0; r < rings_.size(); ++r)
    collect(r, until_ns, records);
  std::ranges::stable_sort(records, {}, &PerfRecord::at_ns);
  if (switches())
    mark_samples_that_stayed(records);
  for (const PerfRecord& record : records) {
    Ring& ring = rings_[record.ring];
    ring.read_position = std::max(ring.read_position, record.behind);
    if (is_wanted(*record.header, record.at_ns))
      give(record, sink, drained);
  }
  for (Ring& ring : rings_)
    std::atomic_ref<__u64>(static_cast<perf_event_mmap_page*>(ring.pages)->data_tail)
        .store(ring.read_position, std::memory_order_release);
  return drained;
}

}  // namespace rangescope::sample::cpu
