#include "inject/cupti/overhead.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "inject/cupti/threads.hpp"
#include "inject/cupti/trace.hpp"
#include "inject/nvtx/process.hpp"
#include "inject/nvtx/setting.hpp"
#include "inject/nvtx/writer.hpp"
#include "wire/gpu.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {
namespace {

constexpr int kLevels = 8;              // deeper ranges begin no window
constexpr std::uint32_t kSettled = 16;  // ranges at a level before windows begin there
// A range that has been open for so long is taken for one that stays open, as main does, and windows begin inside it.
constexpr std::int64_t kStays_ns = 500'000'000;
constexpr std::uint64_t kFirst = 4;  // windows whose records are fetched at once, to know what one costs

enum class Switch : std::uint32_t { kOff, kTaken, kOn };

struct Budget {
  double share = 0;
  std::uint32_t generation = 0;  // 0: no budget
  std::int64_t begun_ns = 0;
  std::atomic<Switch> state{Switch::kOff};
  std::atomic<std::uint32_t> owner{0};  // whose window it is
  std::atomic<int> level{0};
  std::atomic<std::uint32_t> pushed[kLevels] = {};    // ranges at each level, up to kSettled
  std::atomic<std::int64_t> pushed_ns[kLevels] = {};  // the latest of those
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::int64_t> switching_ns{0};
  std::atomic<std::uint64_t> records{0}, windows{0}, delivered{0};  // delivered: windows whose records are counted
};
Budget budget;

bool watching() {
  return budget.generation != 0 && budget.generation == process.generation.load(std::memory_order_relaxed);
}

std::int64_t spent_ns() {
  return budget.switching_ns.load(std::memory_order_relaxed) +
         static_cast<std::int64_t>(budget.records.load(std::memory_order_relaxed)) * wire::gpu::kRecord_ns;
}

double allowed_ns(std::int64_t now) {
  return budget.share * static_cast<double>(now - budget.begun_ns);
}

/// May one more window begin?
bool affordable() {
  const std::uint64_t windows = budget.windows.load(std::memory_order_relaxed);
  const std::uint64_t delivered = budget.delivered.load(std::memory_order_relaxed);
  if (delivered < windows && delivered < kFirst) return false;  // what one costs is not known yet
  const double spent = static_cast<double>(spent_ns());
  const double one = delivered == 0 ? 0 : spent / static_cast<double>(delivered);
  const double on_the_way = one * static_cast<double>(windows - delivered);
  return spent + on_the_way + one <= allowed_ns(monotonic_ns());
}

/// A toss of a coin: splitmix64 (G. L. Steele, D. Lea, C. H. Flood, 2014).
bool tails() {
  std::uint64_t x = budget.seed.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return ((x ^ x >> 31) & 1) != 0;
}

void begin_window(int level) {
  Switch off = Switch::kOff;
  if (!budget.state.compare_exchange_strong(off, Switch::kTaken, std::memory_order_acquire)) return;
  const std::int64_t before = monotonic_ns();
  budget.owner.store(thread_id(), std::memory_order_relaxed);
  budget.level.store(level, std::memory_order_relaxed);
  const bool on = resume_activity();
  budget.switching_ns.fetch_add(monotonic_ns() - before, std::memory_order_relaxed);
  budget.state.store(on ? Switch::kOn : Switch::kOff, std::memory_order_release);
}

void end_window() {
  Switch on = Switch::kOn;
  if (!budget.state.compare_exchange_strong(on, Switch::kTaken, std::memory_order_acquire)) return;
  const std::int64_t before = monotonic_ns();
  pause_activity();
  const std::uint64_t window = budget.windows.fetch_add(1, std::memory_order_relaxed);
  if (window < kFirst) flush_activity();
  budget.switching_ns.fetch_add(monotonic_ns() - before, std::memory_order_relaxed);
  budget.state.store(Switch::kOff, std::memory_order_release);
}

bool many(int level) {
  return budget.pushed[level].load(std::memory_order_relaxed) >= kSettled;
}

bool stays(int level) {
  return monotonic_ns() - budget.pushed_ns[level].load(std::memory_order_relaxed) >= kStays_ns;
}

void saw_push(const Event&, int) {
  if (!watching()) return;
  std::size_t open = 0;
  (void)open_ranges(open);  // this one is among them
  const int level = static_cast<int>(open) - 1;
  if (level < 0 || level >= kLevels) return;
  if (budget.state.load(std::memory_order_relaxed) == Switch::kOn &&
      budget.owner.load(std::memory_order_relaxed) == thread_id() &&
      level <= budget.level.load(std::memory_order_relaxed))
    end_window();
  if (!many(level)) {
    budget.pushed[level].fetch_add(1, std::memory_order_relaxed);
    budget.pushed_ns[level].store(monotonic_ns(), std::memory_order_relaxed);
    return;
  }
  for (int outer = 0; outer < level; ++outer)
    if (many(outer)) return;
  if (budget.state.load(std::memory_order_relaxed) != Switch::kOff) return;
  for (int outer = 0; outer < level; ++outer)
    if (!stays(outer)) return;
  if (affordable() && tails()) begin_window(level);
}

constexpr RangeObserver kObserver{saw_push, nullptr, nullptr, nullptr};

}  // namespace

void start_overhead() {
  const char* value = setting(wire::kOverhead);
  const double share = value != nullptr ? std::strtod(value, nullptr) : 0;
  if (!(share > 0 && share < 1)) return;
  budget.share = share;
  budget.begun_ns = monotonic_ns();
  pause_activity();
  budget.switching_ns.store(monotonic_ns() - budget.begun_ns, std::memory_order_relaxed);
  budget.seed.store(static_cast<std::uint64_t>(budget.begun_ns), std::memory_order_relaxed);
  budget.generation = process_generation();
  set_range_observer(&kObserver);
}

void overhead_records(std::uint64_t records) {
  if (!watching()) return;
  budget.records.fetch_add(records, std::memory_order_relaxed);
  if (budget.state.load(std::memory_order_relaxed) != Switch::kOn)
    budget.delivered.store(budget.windows.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void overhead_check() {
  if (!watching()) return;
  if (budget.state.load(std::memory_order_relaxed) == Switch::kOn) {
    if (static_cast<double>(spent_ns()) > allowed_ns(monotonic_ns())) end_window();
  } else {  // a flush has just fetched what there was
    budget.delivered.store(budget.windows.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

void finish_overhead() {
  if (!watching()) return;
  set_range_observer(nullptr);
  budget.state.exchange(Switch::kTaken, std::memory_order_acquire);
  char text[160];
  std::snprintf(
      text, sizeof text, "%lld %lld %lld %llu %llu", static_cast<long long>(budget.share * 1e6),
      static_cast<long long>(monotonic_ns() - budget.begun_ns), static_cast<long long>(budget.switching_ns.load()),
      static_cast<unsigned long long>(budget.records.load()), static_cast<unsigned long long>(budget.windows.load()));
  with_stream([&](Encoder& encoder, GpuStream&) { encoder.info("overhead", text); });
}

}  // namespace rangescope::inject::cupti
