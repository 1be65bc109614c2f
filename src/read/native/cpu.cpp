#include "read/native/cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/find.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "read/native/blocks.hpp"
#include "read/native/cpu_processes.hpp"
#include "read/native/sampled_calls.hpp"
#include "wire/cpu.hpp"

namespace rangescope::read::native {
namespace {

namespace fs = std::filesystem;
namespace cpu_wire = wire::cpu;
using model::kNone;

// Nothing that comes from a file may lead further than this.
constexpr std::int64_t kLatest_ns = std::int64_t{1} << 62;
constexpr std::uint64_t kMostStacks = 64u << 20;
constexpr std::size_t kMostLives = 1u << 20;
constexpr float kMostWeight = 1000;

/// musl's loader is its C library; on Debian a link leads from the one to the other.
bool is_musl(std::string_view path) {
  return base::file_name(path).starts_with("ld-musl-") || path.ends_with("-linux-musl/libc.so");
}

struct RawFrame {
  model::CpuFrame frame;
  std::uint32_t named = kNone;  ///< first of its functions, and how many
  std::uint32_t functions = 0;
  std::uint32_t line = 0;  ///< that the innermost of them is at
};

class CpuReader {
 public:
  CpuReader(std::span<const std::byte> file,
            std::string where,
            const std::set<std::uint32_t>& left_out,
            model::Session& session)
      : file_(file),
        where_(std::move(where)),
        left_out_(left_out),
        session_(session),
        cpu_(session.cpu) {}

  base::Result<void> run() {
    auto blocks = TRY(BlockReader::open(
        file_, where_, cpu_wire::kMagic, cpu_wire::kVersion, "a stream of CPU samples"));
    if (cpu_.interval_ns != 0)
      return base::fail(base::Code::kBadData, "a second stream of CPU samples", where_);
    Block block;
    while (blocks.next(block))
      take(block);
    if (blocks.torn() > 0)
      lose("torn_samples",
           blocks.torn(),
           fmt::format("{}: the last {} bytes are torn or damaged and were cut off.",
                       where_,
                       blocks.torn()));
    finish(blocks.torn() > 0);
    return {};
  }

 private:
  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    session_.losses.push_back({kind, count, std::move(detail)});
  }

  void take(const Block& block) {
    using wire::samples::Type;
    using Read = bool (CpuReader::*)(cpu_wire::Unpacker&, std::int64_t&);
    static constexpr std::pair<Type, Read> kItems[] = {{cpu_wire::kThreads, &CpuReader::thread},
                                                       {cpu_wire::kModules, &CpuReader::module},
                                                       {cpu_wire::kFrames, &CpuReader::frame},
                                                       {cpu_wire::kStacks, &CpuReader::stack},
                                                       {cpu_wire::kSymbols, &CpuReader::symbol},
                                                       {cpu_wire::kLines, &CpuReader::line},
                                                       {cpu_wire::kSamples, &CpuReader::sample},
                                                       {cpu_wire::kWaits, &CpuReader::wait},
                                                       {cpu_wire::kBlind, &CpuReader::blind},
                                                       {cpu_wire::kCreators, &CpuReader::creator},
                                                       {cpu_wire::kHolders, &CpuReader::holder},
                                                       {cpu_wire::kCounters, &CpuReader::counter},
                                                       {cpu_wire::kCounts, &CpuReader::counted},
                                                       {cpu_wire::kProcesses, &CpuReader::process},
                                                       {cpu_wire::kTotals, &CpuReader::total}};
    if (block.type == Type::kDescription)
      describe(block.raw);
    if (block.type == Type::kEvent)
      event(block.raw);
    if (block.type == Type::kEnd)
      end(block.raw);
    const auto items = std::ranges::find(kItems, block.type, &std::pair<Type, Read>::first);
    if (items == std::end(kItems))
      return;
    cpu_wire::Unpacker in(block.raw);
    std::int64_t before = 0;
    for (std::uint32_t i = 0; i < block.items && !in.empty(); ++i) {
      const bool is_valid = (this->*items->second)(in, before);
      if (in.good() && is_valid)
        continue;
      damaged_ += block.items - i;
      return;
    }
  }

  bool module(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    const std::string_view path = in.text();
    modules_.push_back(session_.strings.intern(path));
    musl_ |= is_musl(path);
    in.text();
    return true;
  }

  void describe(const std::string& text) {
    for (const std::string_view line : base::split(text, '\n')) {
      const auto space = line.find(' ');
      if (space == std::string_view::npos)
        continue;
      const std::string_view key = line.substr(0, space);
      const std::string value(line.substr(space + 1));
      if (key == "interval_ns")
        cpu_.interval_ns = std::clamp<std::int64_t>(base::to_int(value).value_or(0), 0, kLatest_ns);
      if (key == "polled")
        lose("cpu_polled",
             1,
             "perf_event_open is not available, so /proc was read 100 times a second: " +
                 base::printable(value) + ".");
      if (key == "unwinding")
        cpu_.unwinding = base::printable(value);
      regions_.take(key, value);
      if (key == "refused")
        cpu_.switches &= value != "context switches";
      if (key == "refused")
        cpu_.kernel &= value != "kernel";
    }
  }

  void event(const std::string& raw) {
    wire::samples::Event event{};
    if (raw.size() < sizeof event)
      return;
    std::memcpy(&event, raw.data(), sizeof event);
    const std::string text = base::printable(raw.substr(sizeof event));
    if (event.kind == cpu_wire::kUnavailable)
      lose("cpu_not_sampled", 1, "The CPU was not sampled: " + text + ".");
    if (event.kind == cpu_wire::kThrottled)
      lose("cpu_throttled", event.count, "The kernel sampled the CPU less often for a while.");
    if (event.kind == cpu_wire::kBounded)
      lose("cpu_samples_cut", event.count, "CPU samples: " + text + ".");
    if (event.kind == cpu_wire::kPythonLate) {
      std::string samples = std::to_string(event.count);
      if (base::to_uint(text))
        samples += " of " + text;
      lose("python_late",
           event.count,
           samples +
               " CPU samples of Python code have no Python functions: these were read too "
               "late, or changed meanwhile. Times of Python functions are scaled.");
    }
    if (event.kind == cpu_wire::kShortThreads) {
      short_threads_ = event.count;
      short_threads_ns_ = static_cast<double>(base::to_uint(text).value_or(0));
    }
    if (event.kind == cpu_wire::kNotCounted)
      lose("cpu_not_counted", event.count, text + ".");
    if (event.kind == cpu_wire::kPythonUnread)
      lose("python_not_read", event.count, text + ".");
    if (event.kind == cpu_wire::kNotRecorded)
      not_recorded(text);
  }

  /// "cleared_environment 123 order (process 123) started without ...". Not a loss where the
  /// process left a capture after all.
  void not_recorded(std::string_view text) {
    const std::string_view kind = text.substr(0, text.find(' '));
    const std::string_view rest = text.substr(std::min(kind.size() + 1, text.size()));
    const std::string_view pid = rest.substr(0, rest.find(' '));
    const std::string_view sentence = rest.substr(std::min(pid.size() + 1, rest.size()));
    const auto has_that_pid = [&](const model::Process& process) {
      return process.pid == base::to_uint(pid);
    };
    if (std::ranges::any_of(session_.processes, has_that_pid))
      return;
    const std::string_view program = sentence.substr(0, sentence.find(" (process "));
    const auto is_same = [&](const model::Loss& loss) {
      return loss.kind.id() == kind &&
             loss.detail.substr(0, loss.detail.find(" (process ")) == program;
    };
    const auto same_loss = std::ranges::find_if(session_.losses, is_same);
    if (same_loss != session_.losses.end())
      ++same_loss->count;
    else
      session_.losses.push_back(model::Loss::read(kind, "", 1, std::string(sentence) + "."));
  }

  void end(const std::string& text) {
    ended_ = true;
    for (const std::string_view line : base::split(text, '\n'))
      if (line.starts_with("lost "))
        if (const auto lost = base::to_uint(line.substr(5)); lost && *lost > 0)
          lose("cpu_samples_lost",
               *lost,
               "CPU records that the kernel dropped because its buffer was full.");
  }

  bool thread(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    model::CpuThread out;
    in.number();
    in.number();
    out.pid = static_cast<std::uint32_t>(in.number());
    out.tid = static_cast<std::uint32_t>(in.number());
    out.name = session_.strings.intern(in.text());
    cpu_.threads.push_back(out);
    return true;
  }

  bool frame(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    RawFrame out;
    const std::uint64_t kind = in.number();
    if (kind == static_cast<std::uint64_t>(cpu_wire::FrameKind::kNative)) {
      const std::uint64_t module = in.number();
      (void)in.number();  // its address
      if (module > modules_.size())
        module_unknown_ = true;
      out.frame.module = module > 0 && module <= modules_.size() ? modules_[module - 1] : 0;
    } else if (kind == static_cast<std::uint64_t>(cpu_wire::FrameKind::kPython)) {
      out.frame.kind = model::FrameKind::kPython;
      const std::string_view name = in.text();
      out.frame.name = session_.strings.intern(name == cpu_wire::kNotRead ? model::kNotRead : name);
      out.frame.file = session_.strings.intern(in.text());
      out.frame.line = static_cast<std::uint32_t>(in.number());
    } else {
      out.frame.kind = model::FrameKind::kCut;
    }
    frames_.push_back(out);
    return kind <= static_cast<std::uint64_t>(cpu_wire::FrameKind::kCut);
  }

  bool stack(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    const std::uint64_t parent = in.number(), frame = in.number();
    if (parent > stacks_.size() || frame >= frames_.size() || stacks_.size() >= kMostStacks) {
      stacks_.push_back({kNone, kNone});
      return false;
    }
    stacks_.push_back({parent == 0 ? kNone : static_cast<std::uint32_t>(parent - 1),
                       static_cast<std::uint32_t>(frame)});
    return true;
  }

  bool symbol(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    const std::uint64_t frame = in.number(), count = in.number();
    const auto first = static_cast<std::uint32_t>(functions_.size());
    for (std::uint64_t i = 0; i < count && in.good() && i < 1024; ++i) {
      model::CpuFrame function;
      function.name = session_.strings.intern(in.text());
      function.file = session_.strings.intern(in.text());
      function.line = static_cast<std::uint32_t>(in.number());
      functions_.push_back(function);
    }
    if (frame >= frames_.size() || count > 1024)
      return false;
    frames_[frame].named = first;
    frames_[frame].functions = static_cast<std::uint32_t>(functions_.size()) - first;
    return true;
  }

  bool line(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    const std::uint64_t frame = in.number();
    if (frame >= frames_.size())
      return false;
    for (std::uint32_t left = std::max(1u, frames_[frame].functions); left > 0; --left)
      frames_[frame].line = static_cast<std::uint32_t>(in.number());
    return true;
  }

  // Sums of differences wrap where the input is nonsense, and are refused by their range.
  static bool step(std::int64_t& before, std::int64_t difference) {
    before = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) +
                                       static_cast<std::uint64_t>(difference));
    return before >= 0 && before < kLatest_ns;
  }

  bool sample(cpu_wire::Unpacker& in, std::int64_t& before) {
    const bool is_in_time = step(before, in.difference());
    const std::uint64_t thread = in.number(), stack = in.number();
    if (!is_in_time || thread >= cpu_.threads.size() || stack > stacks_.size())
      return false;
    cpu_.samples.push_back(
        {before, static_cast<std::uint32_t>(thread), static_cast<std::uint32_t>(stack) - 1});
    return true;
  }

  bool wait(cpu_wire::Unpacker& in, std::int64_t& before) {
    const bool is_in_time = step(before, in.difference());
    const std::uint64_t length = in.number();
    const std::uint64_t thread = in.number();
    const std::uint64_t kind_bits = in.number();
    const std::uint64_t stack = in.number();
    const bool represents_more = (kind_bits & cpu_wire::kStandsForMore) != 0;
    const auto kind = static_cast<cpu_wire::WaitKind>(kind_bits & ~cpu_wire::kStandsForMore);
    if (!is_in_time || length >= static_cast<std::uint64_t>(kLatest_ns - before))
      return false;
    if (thread >= cpu_.threads.size() || stack > stacks_.size())
      return false;
    if (kind > cpu_wire::WaitKind::kChild)
      return false;
    model::CpuWait wait;
    wait.start_ns = before;
    wait.end_ns = before + static_cast<std::int64_t>(length);
    wait.thread = static_cast<std::uint32_t>(thread);
    wait.stack = static_cast<std::uint32_t>(stack) - 1;
    wait.kind = static_cast<model::WaitKind>(kind);
    wait.weight = represents_more ? 0 : 1;  // scale() sets those of 0
    cpu_.waits.push_back(wait);
    return true;
  }

  bool process(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    model::Process life;
    life.pid = static_cast<std::uint32_t>(in.number());
    life.parent_pid = static_cast<std::uint32_t>(in.number());
    const std::uint64_t start = in.number(), length = in.number();
    life.name = session_.strings.intern(in.text());
    if (start >= static_cast<std::uint64_t>(kLatest_ns) ||
        length >= static_cast<std::uint64_t>(kLatest_ns) - start || lives_.size() >= kMostLives)
      return false;
    life.start_ns = static_cast<std::int64_t>(start);
    life.end_ns = life.start_ns + static_cast<std::int64_t>(length);
    if (!left_out_.contains(life.pid))
      lives_.push_back(life);
    return true;
  }

  bool blind(cpu_wire::Unpacker& in, std::int64_t& before) {
    const bool is_in_time = step(before, in.difference());
    const std::uint64_t length = in.number();
    if (!is_in_time || length >= static_cast<std::uint64_t>(kLatest_ns - before))
      return false;
    const bool overlaps_previous = !blind_.empty() && before < blind_.back().second;
    if (overlaps_previous)
      return false;
    blind_.emplace_back(before, before + static_cast<std::int64_t>(length));
    return true;
  }

  bool creator(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    const std::uint64_t thread = in.number(), creator = in.number();
    if (thread >= cpu_.threads.size() || creator >= cpu_.threads.size())
      return false;
    cpu_.threads[thread].creator = static_cast<std::uint32_t>(creator);
    return true;
  }

  bool holder(cpu_wire::Unpacker& in, std::int64_t& before) {
    const bool is_in_time = step(before, in.difference());
    const std::uint64_t thread = in.number(), holder = in.number();
    if (!is_in_time || thread >= cpu_.threads.size() || holder >= cpu_.threads.size())
      return false;
    holders_[{static_cast<std::uint32_t>(thread), before}] = static_cast<std::uint32_t>(holder);
    return true;
  }

  /// Of a wait between two unwatched times, which also represents those of the unwatched time
  /// before it.
  [[nodiscard]] float weight_of(const model::CpuWait& wait) const {
    const auto is_before = [](std::int64_t start_ns, const auto& unwatched) {
      return start_ns < unwatched.first;
    };
    const auto next = std::upper_bound(blind_.begin(), blind_.end(), wait.start_ns, is_before);
    if (next == blind_.begin())
      return 1;
    const auto& [unwatched_from, watched_from] = *std::prev(next);
    const std::int64_t watched_to =
        next != blind_.end() ? next->first : std::max(last_ns_, wait.end_ns);
    if (watched_to <= watched_from)
      return 1;
    return std::min(kMostWeight,
                    static_cast<float>(watched_to - unwatched_from) /
                        static_cast<float>(watched_to - watched_from));
  }

  void scale() {
    for (model::CpuWait& wait : cpu_.waits) {
      const auto holder = holders_.find({wait.thread, wait.start_ns});
      if (holder != holders_.end())
        wait.holder = holder->second;
      if (wait.weight <= 0)
        wait.weight = weight_of(wait);
    }
    std::int64_t unwatched = 0;
    for (const auto& [start_ns, end_ns] : blind_)
      unwatched += end_ns - start_ns;
    if (unwatched == 0 || last_ns_ <= first_ns_)
      return;
    cpu_.unwatched =
        std::min(1.0, static_cast<double>(unwatched) / static_cast<double>(last_ns_ - first_ns_));
    lose("cpu_switches_thinned",
         blind_.size(),
         fmt::format("Threads switched too often to record each switch: waits in {} of the time "
                     "are estimated from the rest.",
                     base::format_share(cpu_.unwatched)));
  }

  bool counter(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    CounterSeen seen;
    seen.counter.name = session_.strings.intern(in.text());
    seen.counter.period = static_cast<double>(std::max<std::uint64_t>(1, in.number()));
    seen.counted = in.number() != 0;
    counters_.push_back(seen);
    return counters_.size() <= 1024;
  }

  bool counted(cpu_wire::Unpacker& in, std::int64_t& before) {
    const bool is_in_time = step(before, in.difference());
    const std::uint64_t thread = in.number(), counter = in.number();
    if (!is_in_time || thread >= cpu_.threads.size() || counter >= counters_.size())
      return false;
    ++counters_[counter].records;
    cpu_.counts.push_back(
        {before, static_cast<std::uint32_t>(thread), static_cast<std::uint32_t>(counter)});
    return true;
  }

  bool total(cpu_wire::Unpacker& in, std::int64_t& /*before*/) {
    const std::uint64_t count = in.number(), running = in.number(), possible = in.number();
    if (totals_ >= counters_.size())
      return false;
    CounterSeen& seen = counters_[totals_++];
    if (running == 0)
      return true;
    seen.total = static_cast<double>(count);
    seen.counter.running = std::min(
        1.0, static_cast<double>(running) / static_cast<double>(std::max(possible, running)));
    return true;
  }

  /// A record represents its part of what the kernel counted in all: so periods that were never
  /// full, turns with other events and records that were lost are in the sum, shared out as the
  /// records are.
  void weigh() {
    std::vector<std::uint32_t> index_of(counters_.size(), kNone);  // in cpu_.counters
    std::vector<std::string> shared;
    for (std::size_t c = 0; c < counters_.size(); ++c) {
      CounterSeen& seen = counters_[c];
      if (!seen.counted)
        continue;
      model::CpuCounter& counter = seen.counter;
      if (totals_ == 0)
        counter.running = 0;  // its total is unknown
      counter.weight = seen.total > 0 && seen.records > 0
                           ? seen.total / static_cast<double>(seen.records)
                           : counter.period;
      if (counter.running > 0.99)
        counter.running = 1;
      if (counter.running > 0 && counter.running < 1)
        shared.push_back(fmt::format(
            "{} {}", session_.strings.view(counter.name), base::format_share(counter.running)));
      index_of[c] = static_cast<std::uint32_t>(cpu_.counters.size());
      cpu_.counters.push_back(counter);
    }
    for (model::CpuCount& count : cpu_.counts)
      count.counter = index_of[count.counter];
    const auto was_not_counted = [](const model::CpuCount& count) {
      return count.counter == kNone;
    };
    std::erase_if(cpu_.counts, was_not_counted);
    if (!shared.empty())
      lose("cpu_counters_shared",
           shared.size(),
           "Counted part of the time, and scaled: " + base::join(shared, ", ") + ".");
  }

  void finish(bool torn) {
    if (damaged_ > 0 || module_unknown_)
      lose("damaged_samples",
           std::max<std::uint64_t>(damaged_, 1),
           fmt::format("{}: {} damaged.", where_, base::counted(damaged_, "CPU record")));
    if (!ended_ && !torn && cpu_.interval_ns > 0)
      lose("sampling_ended", 1, "CPU sampling ended unexpectedly: functions may lack their names.");
    if (musl_)
      lose("musl_program",
           1,
           "A process was linked to musl: it cannot load rangescope's library, which is linked to "
           "glibc.");
    expand();
    count_cut();
    add_short_threads_loss();
    weigh();
    for (const model::CpuSample& sample : cpu_.samples)
      span(sample.at_ns, sample.at_ns);
    for (const model::CpuWait& wait : cpu_.waits)
      span(wait.start_ns, wait.end_ns);
    scale();
    leave_out();
    order(cpu_.samples, [](const model::CpuSample& s) { return s.at_ns; });
    order(cpu_.waits, [](const model::CpuWait& w) { return w.start_ns; });
    order(cpu_.counts, [](const model::CpuCount& c) { return c.at_ns; });
    if (session_.ranges.empty())
      add_processes(lives_, session_);
    else
      session_.other_processes = other_processes(lives_, session_);
    name_processes(lives_, session_);
    link_cpu_threads(session_);
    if (cpu_.interval_ns == 0 && !cpu_.samples.empty())
      cpu_.interval_ns = 1;
    add_sampled_calls(std::move(regions_), session_);
  }

  void leave_out() {
    if (left_out_.empty())
      return;
    const auto is_left_out = [&](const auto& item) {
      return left_out_.contains(cpu_.threads[item.thread].pid);
    };
    std::erase_if(cpu_.samples, is_left_out);
    std::erase_if(cpu_.waits, is_left_out);
    std::erase_if(cpu_.counts, is_left_out);
  }

  void span(std::int64_t from, std::int64_t to) {
    first_ns_ = std::min(first_ns_, from);
    last_ns_ = std::max(last_ns_, to);
  }

  template <class T, class Time>
  static void order(std::vector<T>& items, const Time& time) {
    std::ranges::stable_sort(items, [&](const T& a, const T& b) {
      if (a.thread != b.thread)
        return a.thread < b.thread;
      return time(a) < time(b);
    });
  }

  /// Frames become functions: the same function at two addresses is one, an inlined one is one of
  /// its own.
  void expand() {
    std::unordered_map<std::uint64_t, std::uint32_t> indexes;  // by key_of
    std::vector<std::vector<std::uint32_t>> of_frame(frames_.size());
    const auto add = [&](const model::CpuFrame& frame) {
      for (std::uint64_t key = key_of(frame);;
           ++key) {  // of two with the same key, one has the next
        const auto [entry, is_new] =
            indexes.try_emplace(key, static_cast<std::uint32_t>(cpu_.frames.size()));
        if (is_new)
          cpu_.frames.push_back(frame);
        if (is_same_function(cpu_.frames[entry->second], frame))
          return entry->second;
      }
    };
    for (std::size_t f = 0; f < frames_.size(); ++f) {
      RawFrame& raw = frames_[f];
      for (std::uint32_t i = 0; i < raw.functions; ++i) {
        model::CpuFrame function = functions_[raw.named + i];
        function.module = raw.frame.module;
        of_frame[f].push_back(add(function));
      }
      if (raw.functions == 0)
        of_frame[f].push_back(add(raw.frame));
    }
    count_lines(of_frame);
    const std::vector<std::uint32_t> stacks = add_stacks(of_frame);
    const auto stack_of = [&](std::uint32_t raw) { return base::element_or(stacks, raw, kNone); };
    for (model::CpuSample& sample : cpu_.samples)
      sample.stack = stack_of(sample.stack);
    for (model::CpuWait& wait : cpu_.waits)
      wait.stack = stack_of(wait.stack);
  }

  static std::uint64_t key_of(const model::CpuFrame& frame) {
    return (std::uint64_t{frame.name} << 32 | frame.module) ^ (std::uint64_t{frame.file} << 20) ^
           (static_cast<std::uint64_t>(frame.kind) << 62) ^ (std::uint64_t{frame.line} << 44);
  }

  static bool is_same_function(const model::CpuFrame& a, const model::CpuFrame& b) {
    return a.name == b.name && a.module == b.module && a.file == b.file && a.line == b.line &&
           a.kind == b.kind;
  }

  /// Returns the stack of the session for each stack of the file.
  std::vector<std::uint32_t> add_stacks(const std::vector<std::vector<std::uint32_t>>& of_frame) {
    std::vector<std::uint32_t> innermost(stacks_.size(), kNone);
    std::unordered_map<std::uint64_t, std::uint32_t> nodes;  // by parent and frame
    for (std::size_t s = 0; s < stacks_.size(); ++s) {
      std::uint32_t parent = stacks_[s].parent == kNone ? kNone : innermost[stacks_[s].parent];
      if (stacks_[s].frame != kNone) {
        for (const std::uint32_t frame : of_frame[stacks_[s].frame]) {
          const auto [node, is_new] = nodes.try_emplace(
              std::uint64_t{parent} << 32 | frame, static_cast<std::uint32_t>(cpu_.stacks.size()));
          if (is_new)
            cpu_.stacks.push_back({parent, frame});
          parent = node->second;
        }
      }
      innermost[s] = parent;
    }
    return innermost;
  }

  /// Samples by the line that their innermost function was at, and their innermost Python function.
  void count_lines(const std::vector<std::vector<std::uint32_t>>& of_frame) {
    std::vector<std::uint32_t> python(stacks_.size(), kNone);  // frame of the innermost one
    for (std::size_t s = 0; s < stacks_.size(); ++s) {
      const model::CpuStack& stack = stacks_[s];
      if (stack.frame == kNone)
        continue;
      if (frames_[stack.frame].frame.kind == model::FrameKind::kPython)
        python[s] = stack.frame;
      else if (stack.parent != kNone)
        python[s] = python[stack.parent];
    }
    using FunctionLine = std::pair<std::uint32_t, std::uint32_t>;
    std::map<FunctionLine, std::uint32_t> counts;
    const auto count = [&](std::uint32_t frame) {
      if (frame != kNone && frames_[frame].line > 0)
        ++counts[{of_frame[frame].back(), frames_[frame].line}];
    };
    for (const model::CpuSample& sample : cpu_.samples) {
      if (sample.stack >= stacks_.size())
        continue;
      const std::uint32_t innermost = stacks_[sample.stack].frame;
      count(innermost);
      if (python[sample.stack] != innermost)
        count(python[sample.stack]);
    }
    for (const auto& [place, samples] : counts)
      cpu_.lines.push_back({place.first, place.second, samples});
  }

  /// Chains that do not reach the thread's begin; those of which nothing is known but that are
  /// samples beyond the bound.
  void count_cut() {
    std::vector<bool> cut(cpu_.stacks.size());  // a stack's parent comes before it
    for (std::size_t s = 0; s < cpu_.stacks.size(); ++s)
      cut[s] = cpu_.stacks[s].parent != kNone &&
               (cut[cpu_.stacks[s].parent] || is_cut(cpu_.stacks[s].parent));
    const auto has_cut_stack = [&](const model::CpuSample& sample) {
      return sample.stack != kNone && cut[sample.stack];
    };
    const auto count =
        static_cast<std::uint64_t>(std::ranges::count_if(cpu_.samples, has_cut_stack));
    // A few, or one in a hundred, change no share that is shown.
    if (count < 20 || count * 100 <= cpu_.samples.size())
      return;
    std::string detail = fmt::format("{} of {} do not reach the thread's start (followed by {}).",
                                     count,
                                     base::counted(cpu_.samples.size(), "call chain"),
                                     cpu_.unwinding.empty() ? "unknown means" : cpu_.unwinding);
    if (2 * count_cut_in_made_code() > count)
      detail +=
          " Most end in code made at run time: keep frame pointers there "
          "(java -XX:+PreserveFramePointer).";
    lose("cpu_chains_cut", count, std::move(detail));
  }

  /// Samples whose outermost known function is in memory without a file.
  [[nodiscard]] std::uint64_t count_cut_in_made_code() const {
    std::vector<bool> is_made(cpu_.stacks.size());
    for (std::size_t s = 0; s < cpu_.stacks.size(); ++s) {
      const model::CpuStack& stack = cpu_.stacks[s];
      if (stack.parent == kNone)
        continue;
      const std::string_view module = session_.strings.view(cpu_.frames[stack.frame].module);
      is_made[s] = is_cut(stack.parent) ? module.starts_with("//") : is_made[stack.parent];
    }
    return static_cast<std::uint64_t>(
        std::ranges::count_if(cpu_.samples, [&](const model::CpuSample& sample) {
          return sample.stack != kNone && is_made[sample.stack];
        }));
  }
  /// A thread's first sample comes when it has used as much of the CPU as lies between two.
  void add_short_threads_loss() {
    constexpr double kPart = 0.1, kLeast_ns = 50e6;
    const double sampled =
        static_cast<double>(cpu_.samples.size()) * static_cast<double>(cpu_.interval_ns);
    if (short_threads_ns_ < std::max(kLeast_ns, kPart * (sampled + short_threads_ns_)))
      return;
    lose("cpu_short_threads",
         short_threads_,
         fmt::format(
             "{} ended before their first sample: the functions of {} of CPU time are missing.",
             base::counted(short_threads_, "thread"),
             base::format_ns(short_threads_ns_)));
  }
  [[nodiscard]] bool is_cut(std::uint32_t stack) const {
    return cpu_.frames[cpu_.stacks[stack].frame].kind == model::FrameKind::kCut;
  }

  std::span<const std::byte> file_;
  std::string where_;
  const std::set<std::uint32_t>& left_out_;  ///< ids of processes
  model::Session& session_;
  model::CpuProfile& cpu_;
  PythonRegions regions_;
  std::vector<model::StringId> modules_;
  std::vector<RawFrame> frames_;
  std::vector<model::CpuFrame> functions_;
  std::vector<model::CpuStack> stacks_;
  std::vector<model::Process> lives_;
  struct CounterSeen {
    model::CpuCounter counter;
    bool counted = true;
    std::uint64_t records = 0;
    double total = 0;
  };
  std::vector<CounterSeen> counters_;
  std::vector<std::pair<std::int64_t, std::int64_t>> blind_;  ///< by time
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> holders_;
  std::int64_t first_ns_ = kLatest_ns, last_ns_ = 0;
  std::size_t totals_ = 0;
  std::uint64_t damaged_ = 0;
  std::uint64_t short_threads_ = 0;
  double short_threads_ns_ = 0;
  bool ended_ = false, module_unknown_ = false, musl_ = false;
};

}  // namespace

base::Result<void> read_cpu(std::span<const std::byte> file,
                            const std::string& where,
                            model::Session& session,
                            const std::set<std::uint32_t>& left_out) {
  return CpuReader(file, where, left_out, session).run();
}

void read_cpu_files(const fs::path& folder,
                    const std::set<std::uint32_t>& left_out,
                    model::Session& session) {
  const auto read = [&](std::span<const std::byte> file,
                        const std::string& where,
                        model::Session& into) { return read_cpu(file, where, into, left_out); };
  read_block_files(folder, cpu_wire::kSuffix, cpu_wire::kFolder, read, session);
}

}  // namespace rangescope::read::native
