#include "read/native/reader.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "read/join.hpp"
#include "read/native/chunks.hpp"
#include "read/native/cpu.hpp"
#include "read/native/cuda_error.hpp"
#include "read/native/gpu.hpp"
#include "read/native/samples.hpp"
#include "read/native/trace.hpp"
#include "wire/control.hpp"
#include "wire/launched.hpp"

namespace rangescope::read::native {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> captures_in(const fs::path& folder) {
  return entries_in(folder, wire::native::kSuffix);
}

// The number of processes that loaded the library and could not make a file, by errno.
std::map<int, std::uint64_t> refusals_in(const fs::path& folder) {
  std::map<int, std::uint64_t> refusals;
  for (const fs::path& link : entries_in(folder, wire::native::kRefusedSuffix)) {
    std::error_code unread;
    if (const auto error = base::to_int(fs::read_symlink(link, unread).string()))
      ++refusals[static_cast<int>(*error)];
  }
  return refusals;
}

// Later runs of the program, with the passes that the first run lacked: relaunch-2, relaunch-3 ...
// next to its captures.
std::vector<fs::path> relaunches_of(const fs::path& folder) {
  std::vector<fs::path> found;
  if (folder.filename().string().starts_with("relaunch-"))
    return found;  // a link could lead back here endlessly
  for (const fs::path& place : {folder, folder / "native"}) {
    std::error_code error;
    for (int run = 2; fs::is_directory(place / fmt::format("relaunch-{}", run), error); ++run)
      found.push_back(place / fmt::format("relaunch-{}", run));
  }
  return found;
}

struct Opened {
  base::Mapping mapping;
  std::span<const std::byte> bytes;
  std::string path;
  std::int64_t start_ns = 0;
};

// The header; its fields are zeros where the file ends earlier.
wire::native::FileHeader head_of(std::span<const std::byte> file) {
  wire::native::FileHeader header{};
  std::memcpy(&header, file.data(), std::min(file.size(), sizeof header));
  return header;
}

void set_clock(model::Session& session, const wire::native::FileHeader& header) {
  session.clock.kind = "CLOCK_MONOTONIC";
  session.clock.anchor_ns = header.monotonic_ns;
  session.clock.anchor_unix_ns = header.realtime_ns;
}

/// From the program's start to its exit, or to the end of processes that outlive it.
void set_span(const wire::launched::Launched& launched, model::Session& session) {
  std::int64_t start_ns = launched.start_ns;
  if (start_ns <= 0) {
    start_ns = 0;
    if (!session.processes.empty())
      start_ns = session.processes.front().start_ns;
  }
  session.begin_ns = start_ns;
  session.end_ns = std::max(start_ns, launched.end_ns);
  for (const model::Process& process : session.processes) {
    session.begin_ns = std::min(session.begin_ns, process.start_ns);
    session.end_ns = std::max(session.end_ns, process.end_ns);
  }
}

/// All 0 if rangescope did not start the program, or an older version of it did.
wire::launched::Launched launched_in(const fs::path& folder) {
  for (const fs::path& place : {folder, folder / "native"}) {
    wire::launched::Launched found;
    const auto text = base::read_file(place / wire::launched::kFile);
    if (text && wire::launched::read(*text, found))
      return found;
  }
  return {};
}

/// Adds a loss for processes whose clock differs from the first one's. On one machine, UTC minus
/// CLOCK_MONOTONIC is the same for all processes, apart from small corrections.
void compare_clocks(const std::vector<Opened>& files, model::Session& session) {
  constexpr double kApart_ns = 60e9;
  std::optional<double> first;
  std::uint64_t apart = 0;
  double largest_difference_ns = 0;
  for (const Opened& file : files) {
    if (file.bytes.size() < sizeof(wire::native::FileHeader))
      continue;
    const auto header = head_of(file.bytes);
    const double boot_ns =
        static_cast<double>(header.realtime_ns) - static_cast<double>(header.monotonic_ns);
    const double difference_ns = std::abs(boot_ns - first.value_or(boot_ns));
    if (!first)
      first = boot_ns;
    if (difference_ns > kApart_ns)
      ++apart;
    largest_difference_ns = std::max(largest_difference_ns, difference_ns);
  }
  if (apart == 0)
    return;
  session.losses.push_back(
      {"clocks_apart",
       apart,
       fmt::format("{} with a clock up to {} from that of the first, which may be the wrong one.",
                   base::counted(apart, "process"),
                   base::format_ns(largest_difference_ns))});
}

/// The folders of the windows in which the program was recorded, in their order; none if it was
/// recorded from begin to end.
std::vector<fs::path> windows_of(const fs::path& folder) {
  std::vector<std::pair<std::uint64_t, fs::path>> found;
  if (folder.filename().string().starts_with(wire::control::kWindow))
    return {};  // a link could lead back here endlessly
  for (const fs::path& place : {folder, folder / "native"}) {
    std::error_code error;
    for (fs::directory_iterator entry(place, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with(wire::control::kWindow) || entry->is_symlink(error))
        continue;
      if (const auto number = base::to_uint(name.substr(sizeof wire::control::kWindow - 1)))
        found.emplace_back(*number, entry->path());
    }
    if (!found.empty())
      break;
  }
  std::ranges::sort(found);
  std::vector<fs::path> folders;
  for (auto& [number, path] : found)
    folders.push_back(std::move(path));
  return folders;
}

/// Cuts all times to the window, and returns the number of ranges that were open at its end. The
/// window ends when recording was requested to end: threads wrote a little longer, and open ranges
/// continue unrecorded.
std::uint64_t cut_to_window(const wire::launched::Launched& launched,
                            bool keep_begins,
                            model::Session& session) {
  if (launched.end_ns == 0)
    return 0;
  session.begin_ns = launched.start_ns;
  session.end_ns = launched.end_ns;
  const auto cut = [&](std::int64_t& time_ns) {
    if (time_ns != model::kOpen)
      time_ns = std::clamp(time_ns, session.begin_ns, session.end_ns);
  };
  for (model::Process& process : session.processes) {
    cut(process.start_ns);
    cut(process.end_ns);
  }
  std::erase_if(session.cpu.samples, [&](const model::CpuSample& sample) {
    return sample.at_ns < session.begin_ns || sample.at_ns >= session.end_ns;
  });
  for (model::CpuWait& wait : session.cpu.waits) {
    cut(wait.start_ns);
    cut(wait.end_ns);
  }
  std::uint64_t open = 0;
  for (model::Range& range : session.ranges) {
    if (range.end_ns == model::kOpen)
      ++open;
    range.end_ns = std::min(range.end_ns, session.end_ns);
    if (!keep_begins)
      cut(range.start_ns);
  }
  return open;
}

using RangeKey = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  ///< pid, tid, begin

RangeKey key_of(const model::Session& session, const model::Range& range) {
  const model::Thread& thread = session.threads[range.thread];
  return {session.processes[thread.process].pid, thread.tid, range.start_ns};
}

/// For windows that follow each other without a gap. A range that continues is in each of them, cut
/// at the window's end, and complete in the last: removes the others, and returns their number.
std::uint64_t join_ranges(std::span<model::Session> windows) {
  std::set<RangeKey> continued;  // ranges of later windows that began earlier
  std::uint64_t removed = 0;
  for (std::size_t i = windows.size(); i-- > 0;) {
    model::Session& window = windows[i];
    std::vector<std::uint32_t> places(window.ranges.size(), model::kNone);
    std::set<RangeKey> began_earlier;
    std::size_t kept = 0;
    for (std::size_t index = 0; index < window.ranges.size(); ++index) {
      model::Range& range = window.ranges[index];
      const RangeKey key = key_of(window, range);
      if (range.start_ns < window.begin_ns)
        began_earlier.insert(key);
      range.start_ns = std::max(range.start_ns, windows.front().begin_ns);
      const bool continues = range.end_ns == window.end_ns && continued.contains(key);
      if (continues && window.unlisted.empty())
        continue;
      places[index] = static_cast<std::uint32_t>(kept);
      window.ranges[kept++] = range;
    }
    removed += window.ranges.size() - kept;
    window.ranges.resize(kept);
    for (model::PayloadField& field : window.payload_fields)
      field.range = places[field.range];
    std::erase_if(window.payload_fields,
                  [](const model::PayloadField& field) { return field.range == model::kNone; });
    continued.merge(began_earlier);
  }
  return removed;
}

/// The times at which something happens that is assigned to ranges.
std::map<std::uint32_t, Moments> moments_of(const model::Session& session) {
  std::map<std::uint32_t, Moments> by_pid;
  for (const model::Launch& call : session.launches) {
    const model::Process& process = session.processes[session.threads[call.thread].process];
    std::vector<std::int64_t>& times = by_pid[process.pid].of_process;
    times.push_back(call.start_ns);
    if (call.end_ns != model::kOpen)
      times.push_back(call.end_ns);
  }
  const auto times_of = [&](std::uint32_t index) -> std::vector<std::int64_t>& {
    const model::CpuThread& thread = session.cpu.threads[index];
    return by_pid[thread.pid].of_thread[thread.tid];
  };
  for (const model::CpuSample& sample : session.cpu.samples)
    times_of(sample.thread).push_back(sample.at_ns);
  for (const model::CpuCount& count : session.cpu.counts)
    times_of(count.thread).push_back(count.at_ns);
  for (const model::CpuWait& wait : session.cpu.waits) {
    times_of(wait.thread).push_back(wait.start_ns);
    times_of(wait.thread).push_back(wait.end_ns);
  }
  for (auto& [pid, moments] : by_pid) {
    std::ranges::sort(moments.of_process);
    for (auto& [tid, times] : moments.of_thread)
      std::ranges::sort(times);
  }
  return by_pid;
}

/// Frees the memory of whole pages of a private file map.
void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + bytes.size()) / page * page;
  if (begin < end)
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

/// How to thin out a folder of large captures; nothing if all ranges are needed: counters, pauses,
/// graphs and samples of a GPU are assigned to ranges in ways that thinning does not support.
std::optional<Thinning> thinning_of(const fs::path& path,
                                    bool folder,
                                    const std::set<std::uint32_t>& left_out,
                                    const Options& options) {
  model::Session session;  // without ranges
  if (folder && options.kernels) {
    read_gpu_files(path, left_out, session);
    read_sample_files(path, session);
    read_cpu_files(path, {}, session);
  }
  const bool has_counters = !session.gpu_pauses.empty() || !session.measurements.empty();
  if (has_counters || !session.graph_nodes.empty() || !session.samples.empty())
    return std::nullopt;
  return Thinning{options.listed, moments_of(session), release_pages};
}

void remove_window_edges(std::uint64_t count, std::vector<model::Loss>& losses) {
  for (model::Loss& loss : losses)
    if (loss.kind == "window_edge")
      loss.count -= std::min(loss.count, count);
  std::erase_if(losses, [](const model::Loss& loss) {
    return loss.kind == "window_edge" && loss.count == 0;
  });
}

/// Sets the clocks of windows so that join(), which aligns sessions by their clocks' anchors, puts
/// one window directly after the other.
void place_in_sequence(std::span<model::Session> windows) {
  if (windows.empty())
    return;
  const model::Clock first = windows.front().clock;
  std::int64_t end_ns = windows.front().end_ns;
  for (model::Session& window : windows.subspan(1)) {
    model::Clock& clock = window.clock;
    clock.anchor_ns = clock.anchor_unix_ns - (first.anchor_unix_ns - first.anchor_ns) -
                      (end_ns - window.begin_ns);
    end_ns += window.end_ns - window.begin_ns;
  }
}

/// What was found while the captures of a folder were opened and read.
struct Captures {
  std::vector<Opened> files;
  /// Processes whose GPU work is not read: of other ranks, and those recorded with --overhead.
  std::set<std::uint32_t> without_gpu;
  std::set<std::uint32_t> other_ranks;  ///< processes of ranks that were not chosen
  std::uint64_t budgeted = 0;           ///< those recorded with --overhead
  std::uint64_t unreadable = 0;         ///< files
  base::Error last_error;               ///< of an unreadable file
  std::string tool;
  std::string schema;
};

bool is_other_rank(const wire::native::FileHeader& header, const Options& options) {
  if (header.rank_plus_1 == 0 || options.ranks.empty())
    return false;
  return std::ranges::find(options.ranks, header.rank_plus_1 - 1) == options.ranks.end();
}

/// Opens the captures of the chosen ranks. Parents come before children, and images of one process
/// are in their order.
base::Result<Captures> open_captures(const fs::path& path, bool folder, const Options& options) {
  Captures captures;
  std::vector<fs::path> files = {path};
  if (folder)
    files = captures_in(path);
  for (const fs::path& file : files) {
    auto mapping = base::Mapping::open(file);
    if (!mapping) {
      if (!folder)
        return base::fail(std::move(mapping));
      ++captures.unreadable;
      continue;
    }
    const auto used = used_part(mapping->bytes());
    const auto header = head_of(used);
    if (is_other_rank(header, options)) {
      captures.without_gpu.insert(header.pid);
      captures.other_ranks.insert(header.pid);
      continue;
    }
    const bool is_budgeted = (header.flags & wire::native::kOverhead) != 0;
    if (is_budgeted && captures.without_gpu.insert(header.pid).second)
      ++captures.budgeted;
    captures.files.push_back({std::move(*mapping), used, file.string(), header.monotonic_ns});
  }
  std::ranges::stable_sort(captures.files, {}, &Opened::start_ns);
  return captures;
}

/// Reads the ranges of all captures. Clock, tool and schema are those of the first readable one.
base::Result<void> read_captures(const fs::path& path,
                                 bool folder,
                                 const Options& options,
                                 Captures& captures,
                                 model::Session& session,
                                 Losses& losses) {
  // A range takes at least 16 bytes of a capture. Memory that is reserved and not used costs
  // nothing; without a reservation ranges would be copied.
  std::size_t bytes = 0;
  for (const Opened& file : captures.files)
    bytes += file.bytes.size();
  session.ranges.reserve(std::min<std::size_t>(bytes / 16, std::size_t{1} << 25));
  std::optional<Thinning> thinning;
  if (options.listed > 0 && bytes > options.list_all_below)
    thinning = thinning_of(path, folder, captures.without_gpu, options);
  for (const Opened& file : captures.files) {
    const auto is_read =
        read_trace(file.bytes, file.path, session, losses, thinning ? &*thinning : nullptr);
    if (!is_read) {
      const bool is_other_version = is_read.error().what.starts_with("native-trace");
      if (!folder || is_other_version)
        return is_read;
      captures.last_error = is_read.error();
      ++captures.unreadable;
      continue;
    }
    if (!captures.tool.empty())
      continue;
    const auto header = head_of(file.bytes);
    set_clock(session, header);
    captures.tool.assign(header.tool, std::min<std::size_t>(header.tool_bytes, sizeof header.tool));
    captures.schema = fmt::format("native-trace {}.{}", header.major, header.minor);
    if ((header.flags & wire::native::kLight) != 0)
      captures.schema += ", light";
  }
  return {};
}

void add_refusals(const fs::path& folder, model::Session& session) {
  for (const auto& [error, count] : refusals_in(folder))
    session.losses.push_back(
        {"no_capture_file",
         count,
         base::counted(count, "process") +
             " loaded rangescope's library but could not create a capture file: " +
             std::strerror(error)});
}

/// The session of a folder without ranges and without a start of the program: only its losses, or
/// an error if there are none.
base::Result<model::Session> without_processes(const fs::path& path,
                                               const base::Error& last_error,
                                               model::Session session) {
  if (!last_error.what.empty())
    return tl::make_unexpected(last_error);
  if (session.losses.empty())
    return base::fail(
        base::Code::kNoInput, "there is no native capture in this folder", path.string());
  session.sources.push_back(
      {path.string(), std::string(kReader.name), {}, {}, model::Maker::kRangescope});
  return session;
}

/// Attached processes and windows begin and end with their recording.
void set_window(const wire::launched::Launched& launched, model::Session& session) {
  if (launched.attached_pid > 0)
    session.attached = {launched.attached_pid, launched.ran_ns};
  if (session.attached || launched.window > 0) {
    session.begin_ns = launched.start_ns;
    session.end_ns = launched.end_ns > 0 ? launched.end_ns : model::kOpen;
  }
  if (launched.window > 0)
    session.windows.push_back({launched.window, launched.ran_ns, 0});
}

}  // namespace

static bool sniff(std::span<const std::byte> head, const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return is_trace(head);
  const bool has_recording = !captures_in(path).empty() || !windows_of(path).empty();
  return has_recording || !refusals_in(path).empty() || launched_in(path).start_ns > 0;
}

static base::Result<model::Session> read(const fs::path& path, const Options& options);

static base::Result<model::Session> read_windows(const std::vector<fs::path>& windows,
                                                 const Options& options) {
  std::vector<model::Session> sessions;
  std::vector<model::Window> read_windows;
  std::vector<model::Loss> unread;
  Options window_options = options;
  window_options.keep_begins = true;
  for (const fs::path& window : windows) {
    auto session = read(window, window_options);
    if (!session) {
      unread.push_back({"unreadable_captures", 1, base::to_string(session.error())});
      continue;
    }
    read_windows.insert(read_windows.end(), session->windows.begin(), session->windows.end());
    sessions.push_back(std::move(*session));
  }
  std::uint64_t removed = 0;
  for (std::size_t first = 0, next = 0; first < sessions.size(); first = next) {
    for (next = first + 1;
         next < sessions.size() && sessions[next].begin_ns == sessions[next - 1].end_ns;)
      ++next;
    removed += join_ranges(std::span(sessions).subspan(first, next - first));
  }
  place_in_sequence(sessions);
  auto session = join(std::move(sessions));
  session.windows = std::move(read_windows);
  order_ranges(session);
  remove_window_edges(2 * removed, session.losses);
  session.losses.insert(session.losses.end(), unread.begin(), unread.end());
  return session;
}

static base::Result<model::Session> read(const fs::path& path, const Options& options) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (folder)
    if (const auto windows = windows_of(path); !windows.empty())
      return read_windows(windows, options);
  Captures captures = TRY(open_captures(path, folder, options));
  Losses losses;
  model::Session session;
  if (folder)
    compare_clocks(captures.files, session);
  TRY(read_captures(path, folder, options, captures, session, losses));
  wire::launched::Launched launched;
  if (folder) {
    add_refusals(path, session);
    launched = launched_in(path);
  }
  if (session.processes.empty() && launched.start_ns == 0)
    return without_processes(path, captures.last_error, std::move(session));
  session.sources.push_back({path.string(),
                             std::string(kReader.name),
                             captures.tool,
                             captures.schema,
                             model::Maker::kRangescope});
  losses.add("gpu_unavailable",
             captures.budgeted,
             "processes were recorded by rangescope 0.2 with a budget for tracing: the windows of "
             "their GPU work are not read");
  losses.add("unreadable_captures",
             captures.unreadable,
             "files that could not be opened or are not captures");
  order_ranges(session);
  set_window(launched, session);
  if (folder && options.kernels) {
    const fs::path gpu_folder = launched.window > 0 ? path.parent_path() : path;
    read_gpu_files(gpu_folder, captures.without_gpu, session);
    read_sample_files(path, session);
  }
  set_span(launched, session);
  if (session.clock.kind.empty())
    session.clock = {"CLOCK_MONOTONIC", launched.start_ns, launched.start_unix_ns, {}};
  if (folder && options.kernels)
    read_cpu_files(path, captures.other_ranks, session);
  if (folder)
    note_cuda_error(path, session);
  if (launched.window > 0) {
    losses.add("window_edge", cut_to_window(launched, options.keep_begins, session), kWindowEdge);
    session.windows.front().length_ns = session.end_ns - session.begin_ns;
  }
  losses.move_to(session.losses);
  if (!folder)
    return session;
  for (const fs::path& relaunch : relaunches_of(path)) {
    auto results = read(relaunch, options);
    if (results)
      add_results(session, std::move(*results));
    else
      session.losses.push_back({"relaunch_unreadable", 1, base::to_string(results.error())});
  }
  return session;
}

const Reader kReader{"native", sniff, read};

}  // namespace rangescope::read::native
