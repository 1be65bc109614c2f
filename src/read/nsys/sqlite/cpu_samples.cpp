#include "read/nsys/sqlite/cpu_samples.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "read/nsys/sqlite/ids.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

constexpr std::int64_t kUsual = 1'000'000;     // ns between samples, where no thread has two
constexpr std::int64_t kAsleep = 100'000'000;  // a gap as long says nothing of the interval

std::int64_t interval_of(const std::vector<CpuSamples::Sample>& by_thread) {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < by_thread.size(); ++i) {
    const std::int64_t gap = by_thread[i].start_ns - by_thread[i - 1].start_ns;
    if (by_thread[i].thread == by_thread[i - 1].thread && gap > 0 && gap < kAsleep) gaps.push_back(gap);
  }
  if (gaps.empty()) return kUsual;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

}  // namespace

CpuSamples read_cpu_samples(const Source& source) {
  CpuSamples out;
  const Table* events = source.find("COMPOSITE_EVENTS");
  const Table* chains = source.find("SAMPLING_CALLCHAINS");
  if (events == nullptr || chains == nullptr) return out;
  out.scans.push_back(source.scan(
      *events, {"id", "start", "globalTid"}, [&](std::size_t) { out.samples.clear(); },
      [&](const Value* row) {
        out.samples.push_back({row[0].as_int(), row[1].as_int(), static_cast<std::uint64_t>(row[2].as_int())});
      }));
  out.scans.push_back(source.scan(
      *chains, {"id", "stackDepth", "symbol", "module"}, [&](std::size_t) { out.frames.clear(); },
      [&](const Value* row) {
        out.frames.push_back({row[0].as_int(), row[1].as_int(), row[2].as_int(), row[3].as_int()});
      }));
  return out;
}

void name_cpu_samples(const StringIds& strings, CpuSamples& read) {
  for (const CpuSamples::Frame& frame : read.frames)
    for (const std::int64_t id : {frame.symbol, frame.module})
      if (const auto [at, added] = read.names.try_emplace(id); added)
        if (const auto text = strings.find(id)) at->second = *text;
}

void add_cpu_samples(CpuSamples read, model::Session& session) {
  if (read.samples.empty()) return;
  std::sort(read.frames.begin(), read.frames.end(), [](const auto& a, const auto& b) {
    return a.sample != b.sample ? a.sample < b.sample : a.depth > b.depth;  // the outermost first
  });
  std::sort(read.samples.begin(), read.samples.end(), [](const auto& a, const auto& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.start_ns < b.start_ns;
  });
  model::CpuProfile& cpu = session.cpu;
  cpu.interval_ns = interval_of(read.samples);
  cpu.unwinding = "Nsight Systems";
  cpu.switches = false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> threads;  // process and thread id: place
  for (std::uint32_t i = 0; i < session.threads.size(); ++i)
    threads.emplace(std::pair(session.processes[session.threads[i].process].pid, session.threads[i].tid), i);
  const auto text = [&](std::int64_t id) { return session.strings.intern(read.names[id]); };
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> frames;    // symbol and module
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> stacks;  // parent and frame
  std::uint64_t on = 0;
  for (const CpuSamples::Sample& sample : read.samples) {
    if (cpu.threads.empty() || sample.thread != on) {
      on = sample.thread;
      const auto global = static_cast<std::int64_t>(on);
      const std::uint32_t pid = pid_of(process_of(global)), tid = tid_of(global);
      const auto known = threads.find({pid, tid});
      cpu.threads.push_back({pid, tid, 0, known == threads.end() ? model::kNone : known->second});
    }
    std::uint32_t stack = model::kNone;
    auto frame = std::lower_bound(read.frames.begin(), read.frames.end(), sample.id,
                                  [](const CpuSamples::Frame& each, std::int64_t id) { return each.sample < id; });
    for (; frame != read.frames.end() && frame->sample == sample.id; ++frame) {
      const auto [at, added] =
          frames.emplace(std::pair(frame->symbol, frame->module), static_cast<std::uint32_t>(cpu.frames.size()));
      if (added) {
        model::CpuFrame& made = cpu.frames.emplace_back();
        made.name = text(frame->symbol);
        made.module = text(frame->module);
      }
      const auto [place, fresh] =
          stacks.emplace(std::pair(stack, at->second), static_cast<std::uint32_t>(cpu.stacks.size()));
      if (fresh) cpu.stacks.push_back({stack, at->second});
      stack = place->second;
    }
    cpu.samples.push_back({sample.start_ns, static_cast<std::uint32_t>(cpu.threads.size() - 1), stack});
    if (session.ranges.empty() && session.launches.empty()) {  // nothing else says when the program ran
      session.begin_ns = cpu.samples.size() == 1 ? sample.start_ns : std::min(session.begin_ns, sample.start_ns);
      session.end_ns = std::max(session.end_ns, sample.start_ns + cpu.interval_ns);
    }
  }
}

}  // namespace rangescope::read::nsys_sqlite
