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

// Processes that loaded the library and could make no file, by errno.
std::map<int, std::uint64_t> refusals_in(const fs::path& folder) {
  std::map<int, std::uint64_t> found;
  for (const fs::path& link : entries_in(folder, wire::native::kRefusedSuffix)) {
    std::error_code unread;
    if (const auto why = base::to_int(fs::read_symlink(link, unread).string()))
      ++found[static_cast<int>(*why)];
  }
  return found;
}

// Later runs of the program, which took the passes that the first one lacked: relaunch-2,
// relaunch-3 ... beside its captures.
std::vector<fs::path> relaunches_of(const fs::path& folder) {
  std::vector<fs::path> found;
  if (folder.filename().string().starts_with("relaunch-"))
    return found;  // a link would lead back for ever
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
  std::string where;
  std::int64_t start_ns = 0;
};

// A header's fields that readers need before the rest; zeros where the file ends before them.
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

/// From the program's start to its exit, and longer where processes of it live on.
void set_span(const wire::launched::Launched& launched, model::Session& session) {
  session.begin_ns = session.end_ns = launched.start_ns > 0 ? launched.start_ns
                                      : session.processes.empty()
                                          ? 0
                                          : session.processes.front().start_ns;
  session.end_ns = std::max(session.end_ns, launched.end_ns);
  for (const model::Process& process : session.processes) {
    session.begin_ns = std::min(session.begin_ns, process.start_ns);
    session.end_ns = std::max(session.end_ns, process.end_ns);
  }
}

/// All 0 where rangescope did not start the program, or an older one did.
wire::launched::Launched launched_in(const fs::path& folder) {
  for (const fs::path& place : {folder, folder / "native"}) {
    wire::launched::Launched found;
    const auto text = base::read_file(place / wire::launched::kFile);
    if (text && wire::launched::read(*text, found)) return found;
  }
  return {};
}

/// The machine has one clock: UTC less CLOCK_MONOTONIC is the same for all its processes, but for
/// small corrections.
void compare_clocks(const std::vector<Opened>& files, model::Session& session) {
  constexpr double kApart_ns = 60e9;
  std::optional<double> first;
  std::uint64_t apart = 0;
  double most = 0;
  for (const Opened& file : files) {
    if (file.bytes.size() < sizeof(wire::native::FileHeader)) continue;
    const auto header = head_of(file.bytes);
    const double boot_ns =
        static_cast<double>(header.realtime_ns) - static_cast<double>(header.monotonic_ns);
    const double by = std::abs(boot_ns - first.value_or(boot_ns));
    if (!first) first = boot_ns;
    apart += by > kApart_ns ? 1 : 0;
    most = std::max(most, by);
  }
  if (apart > 0)
    session.losses.push_back({"clocks_apart", apart,
                              base::counted(apart, "process") + " with a clock up to " +
                                  base::format_ns(most) +
                                  " from that of the first, which may be the wrong one."});
}

/// The windows in which the program was recorded, in their order; none where it was from begin to
/// end.
std::vector<fs::path> windows_of(const fs::path& folder) {
  std::vector<std::pair<std::uint64_t, fs::path>> found;
  if (folder.filename().string().starts_with(wire::control::kWindow))
    return {};  // a link would lead back for ever
  for (const fs::path& place : {folder, folder / "native"}) {
    std::error_code error;
    for (fs::directory_iterator entry(place, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with(wire::control::kWindow) || entry->is_symlink(error)) continue;
      if (const auto number = base::to_uint(name.substr(sizeof wire::control::kWindow - 1)))
        found.emplace_back(*number, entry->path());
    }
    if (!found.empty()) break;
  }
  std::ranges::sort(found);
  std::vector<fs::path> folders;
  for (auto& [number, path] : found) folders.push_back(std::move(path));
  return folders;
}

/// A window ends when its recording was told to: what a thread was about to write came a little
/// later, and what was open goes on unseen. How many ranges were.
std::uint64_t cut_to_window(const wire::launched::Launched& launched, bool keep_begins,
                            model::Session& session) {
  if (launched.end_ns == 0) return 0;
  session.begin_ns = launched.start_ns;
  session.end_ns = launched.end_ns;
  const auto cut = [&](std::int64_t& at) {
    if (at != model::kOpen) at = std::clamp(at, session.begin_ns, session.end_ns);
  };
  for (model::Process& process : session.processes) cut(process.start_ns), cut(process.end_ns);
  std::erase_if(session.cpu.samples, [&](const model::CpuSample& sample) {
    return sample.at_ns < session.begin_ns || sample.at_ns >= session.end_ns;
  });
  for (model::CpuWait& wait : session.cpu.waits) cut(wait.start_ns), cut(wait.end_ns);
  std::uint64_t open = 0;
  for (model::Range& range : session.ranges) {
    open += range.end_ns == model::kOpen ? 1 : 0;
    range.end_ns = std::min(range.end_ns, session.end_ns);
    if (!keep_begins) cut(range.start_ns);
  }
  return open;
}

using RangeKey = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  ///< pid, tid, begin

RangeKey key_of(const model::Session& session, const model::Range& range) {
  const model::Thread& thread = session.threads[range.thread];
  return {session.processes[thread.process].pid, thread.tid, range.start_ns};
}

/// Of windows that follow each other without a gap: a range that goes on is in each of them, cut at
/// its end, and whole in the last. How many of the others were taken away.
std::uint64_t join_ranges(std::span<model::Session> windows) {
  std::set<RangeKey> whole;
  std::uint64_t taken = 0;
  for (std::size_t i = windows.size(); i-- > 0;) {
    model::Session& window = windows[i];
    std::vector<std::uint32_t> places(window.ranges.size(), model::kNone);
    std::set<RangeKey> before;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < window.ranges.size(); ++at) {
      model::Range& range = window.ranges[at];
      const RangeKey key = key_of(window, range);
      if (range.start_ns < window.begin_ns) before.insert(key);
      range.start_ns = std::max(range.start_ns, windows.front().begin_ns);
      if (range.end_ns == window.end_ns && whole.contains(key) && window.unlisted.empty()) continue;
      places[at] = static_cast<std::uint32_t>(kept);
      window.ranges[kept++] = range;
    }
    taken += window.ranges.size() - kept;
    window.ranges.resize(kept);
    for (model::PayloadField& field : window.payload_fields) field.range = places[field.range];
    std::erase_if(window.payload_fields,
                  [](const model::PayloadField& field) { return field.range == model::kNone; });
    whole.merge(before);
  }
  return taken;
}

/// What ranges may be asked for beside themselves, of a folder of large captures; nothing where all
/// of them are needed: counters, pauses, graphs and samples of a GPU belong to ranges in ways that
/// are not looked at here.
std::optional<Thinning> thinning_of(const fs::path& path, bool folder,
                                    const std::set<std::uint32_t>& left_out,
                                    const Options& options) {
  Thinning how{options.listed, {}, {}};
  model::Session beside;
  if (folder && options.kernels) {
    read_gpu_files(path, left_out, beside);
    read_sample_files(path, beside);
    read_cpu_files(path, beside);
  }
  if (!beside.gpu_pauses.empty() || !beside.measurements.empty() || !beside.graph_nodes.empty() ||
      !beside.samples.empty())
    return std::nullopt;
  for (const model::Launch& call : beside.launches) {
    std::vector<std::int64_t>& all =
        how.moments[beside.processes[beside.threads[call.thread].process].pid].of_process;
    all.push_back(call.start_ns);
    if (call.end_ns != model::kOpen) all.push_back(call.end_ns);
  }
  const auto of_thread = [&](std::uint32_t thread) -> std::vector<std::int64_t>& {
    const model::CpuThread& of = beside.cpu.threads[thread];
    return how.moments[of.pid].of_thread[of.tid];
  };
  for (const model::CpuSample& sample : beside.cpu.samples)
    of_thread(sample.thread).push_back(sample.at_ns);
  for (const model::CpuCount& count : beside.cpu.counts)
    of_thread(count.thread).push_back(count.at_ns);
  for (const model::CpuWait& wait : beside.cpu.waits) {
    of_thread(wait.thread).push_back(wait.start_ns);
    of_thread(wait.thread).push_back(wait.end_ns);
  }
  for (auto& [pid, moments] : how.moments) {
    std::ranges::sort(moments.of_process);
    for (auto& [tid, all] : moments.of_thread) std::ranges::sort(all);
  }
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  how.release = [page](std::span<const std::byte> done) {
    const auto from = (reinterpret_cast<std::uintptr_t>(done.data()) + page - 1) / page * page;
    const auto to = reinterpret_cast<std::uintptr_t>(done.data() + done.size()) / page * page;
    if (from < to)
      (void)::madvise(reinterpret_cast<void*>(from), to - from,
                      MADV_DONTNEED);  // a private file map
  };
  return how;
}

}  // namespace

static bool sniff(std::span<const std::byte> head, const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return !captures_in(path).empty() || !windows_of(path).empty() || !refusals_in(path).empty() ||
           launched_in(path).start_ns > 0;
  return is_trace(head);
}

static base::Result<model::Session> read(const fs::path& path, const Options& options);

static base::Result<model::Session> read_windows(const std::vector<fs::path>& windows,
                                                 const Options& options) {
  std::vector<model::Session> sessions;
  std::vector<model::Window> all;
  std::vector<model::Loss> unread;
  Options whole = options;
  whole.keep_begins = true;
  for (const fs::path& window : windows) {
    auto one = read(window, whole);
    if (!one) {
      unread.push_back({"unreadable_captures", 1, base::to_string(one.error())});
      continue;
    }
    all.insert(all.end(), one->windows.begin(), one->windows.end());
    sessions.push_back(std::move(*one));
  }
  std::uint64_t taken = 0;
  for (std::size_t first = 0, next = 0; first < sessions.size(); first = next) {
    for (next = first + 1;
         next < sessions.size() && sessions[next].begin_ns == sessions[next - 1].end_ns;)
      ++next;
    taken += join_ranges(std::span(sessions).subspan(first, next - first));
  }
  std::int64_t end_ns =
      sessions.empty() ? 0 : sessions.front().end_ns;  // of the windows, one behind the other
  for (std::size_t i = 1; i < sessions.size();
       ++i) {  // join() lays clocks beside each other by their anchors
    model::Clock &clock = sessions[i].clock, &first = sessions.front().clock;
    clock.anchor_ns = clock.anchor_unix_ns - (first.anchor_unix_ns - first.anchor_ns) -
                      (end_ns - sessions[i].begin_ns);
    end_ns += sessions[i].end_ns - sessions[i].begin_ns;
  }
  auto session = join(std::move(sessions));
  session.windows = std::move(all);
  order_ranges(session);
  for (model::Loss& loss : session.losses)
    if (loss.kind == "window_edge")
      loss.count -= std::min(loss.count, 2 * taken);  // both edges of each
  std::erase_if(session.losses, [](const model::Loss& loss) {
    return loss.kind == "window_edge" && loss.count == 0;
  });
  session.losses.insert(session.losses.end(), unread.begin(), unread.end());
  return session;
}

static base::Result<model::Session> read(const fs::path& path, const Options& options) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (folder)
    if (const auto windows = windows_of(path); !windows.empty())
      return read_windows(windows, options);
  std::vector<Opened> files;
  Losses losses;
  std::uint64_t refused = 0;
  std::set<std::uint32_t>
      left_out;  // processes whose GPU work is not read: of other ranks, and of --overhead
  std::uint64_t budgeted = 0;
  for (const fs::path& file : folder ? captures_in(path) : std::vector<fs::path>{path}) {
    auto mapping = base::Mapping::open(file);
    if (!mapping) {
      if (!folder) return base::fail(std::move(mapping));
      ++refused;
      continue;
    }
    const auto used = used_part(mapping->bytes());
    const auto header = head_of(used);
    if (header.rank_plus_1 > 0 && !options.ranks.empty() &&
        std::ranges::find(options.ranks, header.rank_plus_1 - 1) == options.ranks.end()) {
      left_out.insert(header.pid);
      continue;
    }
    if ((header.flags & wire::native::kOverhead) != 0 && left_out.insert(header.pid).second)
      ++budgeted;
    files.push_back({std::move(*mapping), used, file.string(), header.monotonic_ns});
  }
  // Parents before children, and images of one process in their order.
  std::ranges::stable_sort(files, {}, &Opened::start_ns);
  model::Session session;
  if (folder) compare_clocks(files, session);
  // A range takes 16 bytes of a capture or more. What is reserved and not used costs nothing; what
  // is not reserved is copied.
  std::size_t bytes = 0;
  for (const Opened& file : files) bytes += file.bytes.size();
  session.ranges.reserve(std::min<std::size_t>(bytes / 16, std::size_t{1} << 25));
  const auto thinning = options.listed > 0 && bytes > options.list_all_below
                            ? thinning_of(path, folder, left_out, options)
                            : std::nullopt;
  base::Error last;
  std::string tool, schema;
  for (const Opened& file : files) {
    const auto read =
        read_trace(file.bytes, file.where, session, losses, thinning ? &*thinning : nullptr);
    if (!read) {
      if (!folder || read.error().what.starts_with("native-trace"))
        return base::fail(base::Result<void>(read));
      last = read.error();
      ++refused;
      continue;
    }
    const auto header = head_of(file.bytes);
    if (!tool.empty()) continue;
    set_clock(session, header);
    tool.assign(header.tool, std::min<std::size_t>(header.tool_bytes, sizeof header.tool));
    schema = fmt::format("native-trace {}.{}{}", header.major, header.minor,
                         (header.flags & wire::native::kLight) != 0 ? ", light" : "");
  }
  for (const auto& [why, count] : folder ? refusals_in(path) : std::map<int, std::uint64_t>{})
    session.losses.push_back(
        {"no_capture_file", count,
         base::counted(count, "process") +
             " loaded rangescope's library but could not create a capture file: " +
             std::strerror(why)});
  const wire::launched::Launched launched = folder ? launched_in(path) : wire::launched::Launched();
  if (session.processes.empty() && launched.start_ns == 0) {
    if (!last.what.empty()) return tl::make_unexpected(last);
    if (!session.losses.empty()) {
      session.sources.push_back(
          {path.string(), std::string(kReader.name), {}, {}, model::Maker::kRangescope});
      return session;
    }
    return base::fail(base::Code::kNoInput, "there is no native capture in this folder",
                      path.string());
  }
  session.sources.push_back(
      {path.string(), std::string(kReader.name), tool, schema, model::Maker::kRangescope});
  losses.add("gpu_unavailable", budgeted,
             "processes were recorded by rangescope 0.2 with a budget for tracing: the windows of "
             "their GPU work are "
             "not read");
  losses.add("unreadable_captures", refused, "files that could not be opened or are not captures");
  order_ranges(session);
  if (launched.attached_pid > 0) session.attached = {launched.attached_pid, launched.ran_ns};
  if (session.attached || launched.window > 0) {
    session.begin_ns = launched.start_ns;
    session.end_ns = launched.end_ns > 0 ? launched.end_ns : model::kOpen;
  }
  if (launched.window > 0) {
    session.windows.push_back({launched.window, launched.ran_ns, 0});
  }
  if (folder && options.kernels)
    read_gpu_files(launched.window > 0 ? path.parent_path() : path, left_out, session);
  if (folder && options.kernels) read_sample_files(path, session);
  set_span(launched, session);
  if (session.clock.kind.empty())
    session.clock = {"CLOCK_MONOTONIC", launched.start_ns, launched.start_unix_ns, {}};
  if (folder && options.kernels) read_cpu_files(path, session);
  if (folder) note_cuda_error(path, session);
  if (launched.window > 0) {
    losses.add("window_edge", cut_to_window(launched, options.keep_begins, session), kWindowEdge);
    session.windows.front().length_ns = session.end_ns - session.begin_ns;
  }
  losses.move_to(session.losses);
  for (const fs::path& again : folder ? relaunches_of(path) : std::vector<fs::path>{}) {
    auto results = read(again, options);
    if (results) {
      add_results(session, std::move(*results));
    } else {
      session.losses.push_back({"relaunch_unreadable", 1, base::to_string(results.error())});
    }
  }
  return session;
}

const Reader kReader{"native", sniff, read};

}  // namespace rangescope::read::native
