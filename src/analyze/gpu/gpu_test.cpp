#include "analyze/gpu/gpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace gpu_test {

using model::CopyKind;
using model::LaunchKind;
using model::RangeKind;
using testing::SessionBuilder;

const model::Region* find(const model::Report& report, const std::string& path) {
  for (const model::Region& region : report.regions) {
    if (!region.process && !region.thread && model::path_text(region) == path)
      return &region;
  }
  return nullptr;
}

/// A process with one thread, one device and one stream.
struct OneThread : SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 1), d = device(p, 0, "GPU-1"), s = stream(p, d, 7);
};

TEST(Gpu, ALaunchBelongsToTheInnermostRangeThatHoldsTheWholeCall) {
  OneThread b;
  b.range(b.t, "decode", 0, 100);
  b.range(b.t, "layer0", 10, 30);
  b.kernel(b.launch(b.t, 12, 14), "gemm", 40, 60);        // in layer0, runs after its pop
  b.kernel(b.launch(b.t, 28, 33), "gemm", 60, 70);        // the call ends after layer0: decode
  b.kernel(b.launch(b.t, 30, 30), "gemm", 70, 71);        // ends are inclusive: layer0
  b.kernel(b.launch(b.t, 99, 101), "softmax", 110, 120);  // outside
  const auto report = analyze(b.session);
  const auto& decode = *find(*report, "decode")->gpu;
  const auto& layer = *find(*report, "decode > layer0")->gpu;
  EXPECT_EQ(decode.kernels, 3);
  EXPECT_EQ(decode.exclusive_kernels, 1);
  EXPECT_EQ(decode.kernel_ns, 31);
  EXPECT_EQ(decode.exclusive_kernel_ns, 10);
  EXPECT_EQ(decode.distinct_kernels, 1);
  EXPECT_EQ(layer.kernels, 2);
  EXPECT_EQ(layer.busy_ns, 21);
  EXPECT_EQ(layer.span_ns, 31);
  EXPECT_EQ(layer.idle_ns, 10);
  EXPECT_EQ(layer.launch_latency_ns->median, (28 + 40) / 2.0);
  EXPECT_EQ(report->unattributed->kernels, 1);
  EXPECT_EQ(report->total->kernels, 4);
  ASSERT_EQ(report->kernels.size(), 2u);
  EXPECT_EQ(report->kernels[0].name, "gemm");
  EXPECT_EQ(report->kernels[0].calls, 3);
  EXPECT_EQ(report->processes[0].kernels, 4);
}

TEST(Gpu, DomainsAndStartEndRangesEachHaveTheKernelOnce) {
  OneThread b;
  b.range(b.t, "decode", 0, 100);
  b.range(b.t, "decode_all", 0, 100, "LLM");
  b.range(b.t, "request", 0, 100, "", RangeKind::kStartEnd);
  b.range(b.t,
          "request",
          5,
          90,
          "",
          RangeKind::kStartEnd);  // two requests at once: the region has the kernel once
  b.kernel(b.launch(b.t, 10, 11), "k", 20, 30);
  const auto report = analyze(b.session);
  EXPECT_EQ(find(*report, "decode")->gpu->kernels, 1);
  EXPECT_EQ(find(*report, "LLM@decode_all")->gpu->kernels, 1);
  EXPECT_EQ(find(*report, "request")->gpu->kernels, 1);
  EXPECT_EQ(find(*report, "request")->gpu->kernel_ns, 10);
  EXPECT_EQ(find(*report, "request")->gpu->kernel_ns_per_occurrence.mean,
            10);  // and each occurrence has it
  EXPECT_EQ(report->unattributed->kernels, 0);
}

TEST(Gpu, AThreadWithoutRangesInheritsTheOnlyOneOpen) {
  SessionBuilder b;
  const auto p = b.process(1), q = b.process(2);
  const auto main = b.thread(p, 1), autograd = b.thread(p, 2), other = b.thread(p, 3);
  b.thread(q, 4);
  b.stream(p, b.device(p, 0), 7);
  b.range(main, "step", 0, 100);
  b.range(main, "backward", 10, 50);
  b.range(other, "loader", 40, 60);
  b.range(3, "elsewhere", 0, 100);                        // another process: never inherited
  b.kernel(b.launch(autograd, 20, 21), "dgrad", 22, 32);  // inherits step > backward
  b.kernel(b.launch(autograd, 45, 46), "dgrad", 50, 60);  // two threads have one: nobody's
  b.kernel(b.launch(other, 45, 46), "copy", 60, 61);      // has its own
  const auto inherited = [&](PushPopScope scope) {
    Options options;
    options.push_pop_scope = scope;
    const auto report = analyze(b.session, options);
    std::string text;
    for (const char* path : {"step", "step > backward", "loader"}) {
      const auto& gpu = *find(*report, path)->gpu;
      text += std::to_string(gpu.kernels) + "/" + std::to_string(gpu.inherited_kernels) + " ";
    }
    for (const std::string& note : report->notes)
      text += note.substr(0, note.find(':')) + ' ';
    return text + std::to_string(report->unattributed->kernels);
  };
  EXPECT_EQ(inherited(PushPopScope::kAuto),
            "1/1 1/1 1/0 1 launch of a thread without ranges is outside ranges 1");
  EXPECT_NE(analyze(b.session)->notes.at(0).find("--push-pop-scope"), std::string::npos);
  EXPECT_EQ(inherited(PushPopScope::kThread), "0/0 0/0 1/0 2");
  EXPECT_EQ(inherited(PushPopScope::kProcess), "3/3 3/3 2/1 0");
}

TEST(Gpu, BusyTimeIsAUnionPerCard) {
  SessionBuilder b;
  const auto p = b.process(1), q = b.process(2);
  const auto t = b.thread(p, 1), u = b.thread(q, 2);
  const auto s1 = b.stream(p, b.device(p, 0, "GPU-a"), 1),
             s2 = b.stream(q, b.device(q, 0, "GPU-a"), 1),
             s3 = b.stream(q, b.device(q, 1, "GPU-b"), 1);
  b.range(t, "step", 0, 100);
  b.range(u, "step", 0, 100);
  b.kernel(b.launch(t, 1, 2), "k", 10, 30, s1);
  b.kernel(b.launch(u, 1, 2), "k", 20, 50, s2);  // the same card: [10, 50) together
  b.kernel(b.launch(u, 3, 4), "k", 20, 25, s3);  // another card
  b.copy(b.launch(t, 5, 6, LaunchKind::kCopy), 25, 60, 4096, CopyKind::kHostToDevice, s1);
  const auto report = analyze(b.session);
  const auto& gpu = *find(*report, "step")->gpu;
  EXPECT_EQ(gpu.kernel_ns, 55);
  EXPECT_EQ(gpu.busy_ns, 50 + 5);
  EXPECT_EQ(gpu.overlap_ns, 25);  // [25, 50) on card a
  EXPECT_EQ(gpu.copy_bytes, 4096);
  ASSERT_EQ(gpu.copies_by_kind.size(), 1u);
  EXPECT_EQ(gpu.copies_by_kind[0].total_ns, 35);
}

TEST(Gpu, OccurrencesDuringAPauseOfTheTimelineAreNotTakenForIdleOnes) {
  OneThread b;
  for (int i = 0; i < 10; ++i)
    b.range(b.t, "decode", i * 100, i * 100 + 90);
  b.range(b.t, "before", -50, -10);
  b.kernel(b.launch(b.t, 10, 11), "k", 20, 50);
  b.kernel(b.launch(b.t, 110, 111), "k", 120, 150);
  b.kernel(b.launch(b.t, 910, 911), "k", 920, 950);
  b.session.gpu_pauses.push_back(
      {0, 250, 895});  // begins within the third, ends between the last two
  const auto report = analyze(b.session);
  const auto& gpu = *find(*report, "decode")->gpu;
  EXPECT_TRUE(gpu.partial);
  EXPECT_EQ(gpu.recorded_occurrences, 3);
  EXPECT_EQ(gpu.busy_ns_per_occurrence.median, 30) << "and not 0, which most occurrences have";
  EXPECT_FALSE(find(*report, "before")->gpu->partial);
  EXPECT_TRUE(report->total->partial);
}

TEST(Gpu, GraphReplaysStandBelowTheRangeOpenAtLaunch) {
  OneThread b;
  b.range(b.t, "graph_capture", 0, 10);
  b.range(b.t, "captured_layer", 2, 8);
  const auto capture = b.session.strings.intern("graph_capture"),
             layer = b.session.strings.intern("captured_layer");
  b.session.captured_paths.push_back(
      {{0, capture, RangeKind::kPushPop}, {0, layer, RangeKind::kPushPop}});
  b.session.graph_nodes = {{1, 9, 0, 0}, {2, 9, 0, 0}};
  for (int i = 0; i < 3; ++i) {
    const std::int64_t at = 20 + i * 20;
    b.range(b.t, "graph_replay", at, at + 10);
    const auto launch = b.launch(b.t, at + 1, at + 2, LaunchKind::kGraph);
    for (std::uint32_t node = 0; node < 2; ++node) {
      b.kernel(launch, "gemm", at + 3 + node * 3, at + 5 + node * 3);
      b.session.kernels.back().graph_node = node;
    }
  }
  const auto report = analyze(b.session);
  const auto& replay = *find(*report, "graph_replay");
  EXPECT_EQ(replay.gpu->kernels, 6);
  EXPECT_EQ(replay.gpu->exclusive_kernels, 0);
  EXPECT_EQ(replay.gpu->graph_kernels, 6);
  EXPECT_EQ(replay.gpu->graph_launches, 3);
  EXPECT_FALSE(replay.gpu->launch_latency_ns);
  const auto& below = *find(*report, "graph_replay > captured_layer");
  EXPECT_EQ(below.occurrences, 3);
  EXPECT_EQ(below.wall.inclusive_ns, 0);
  EXPECT_EQ(below.gpu->exclusive_kernels, 6);
  EXPECT_EQ(below.gpu->kernel_ns_per_occurrence.median, 4);
  EXPECT_EQ(below.gpu->idle_ns, 3);
  EXPECT_EQ(below.notes.size(), 1u);
  EXPECT_EQ(find(*report, "graph_capture > captured_layer")->gpu->kernels, 0);
}

TEST(Gpu, ModulesAroundAWholeCaptureStayInReplays) {
  OneThread b;
  b.range(b.t, "capture", 0, 10);
  const auto capture = b.session.strings.intern("capture"),
             model = b.session.strings.intern("Model"),
             head = b.session.strings.intern("head (Linear)");
  b.session.captured_paths.push_back({{0, capture, RangeKind::kPushPop},
                                      {0, model, RangeKind::kPushPop, 0, false, true},
                                      {0, head, RangeKind::kPushPop, 0, false, true}});
  b.session.graph_nodes = {{1, 9, 0, 0}, {2, 9, 0, 0}};
  b.range(b.t, "replay", 20, 30);
  const auto launch = b.launch(b.t, 21, 22, LaunchKind::kGraph);
  for (std::uint32_t node = 0; node < 2; ++node) {
    b.kernel(launch, "gemm", 23 + node * 3, 25 + node * 3);
    b.session.kernels.back().graph_node = node;
  }
  const auto report = analyze(b.session);
  const auto& replayed = *find(*report, "replay > Model > head (Linear)");
  EXPECT_EQ(replayed.gpu->exclusive_kernels, 2);
  EXPECT_TRUE(replayed.module);
}

TEST(Gpu, SynchronizationIsTimeOfTheCpu) {
  OneThread b;
  b.range(b.t, "step", 0, 100);
  const auto sync = b.launch(b.t, 10, 40, LaunchKind::kSynchronize);
  b.session.synchronizations.push_back({12, 38, sync, model::kNone, model::SyncKind::kContext});
  b.session.synchronizations.push_back(
      {50, 60, sync, model::kNone, model::SyncKind::kStreamWaitEvent});
  const auto report = analyze(b.session);
  EXPECT_EQ(find(*report, "step")->gpu->syncs, 1);
  EXPECT_EQ(find(*report, "step")->gpu->sync_ns, 26);
}

TEST(Gpu, KernelPatternsRestrictTablesAndTotals) {
  OneThread b;
  b.range(b.t, "step", 0, 100);
  b.kernel(b.launch(b.t, 1, 2), "void gemm<float>(int)", 10, 20);
  b.kernel(b.launch(b.t, 3, 4), "softmax", 20, 25);
  b.kernel(b.launch(b.t, 5, 6), "ncclDevKernel_AllReduce", 25, 40);
  Options options;
  const auto kernels = [](const std::vector<std::string>& include,
                          const std::vector<std::string>& exclude = {}) {
    return *model::KernelSelection::parse(include, exclude);
  };
  options.kernels = kernels({"regex:gemm", "softmax"});
  auto report = analyze(b.session, options);
  EXPECT_EQ(report->total->kernels, 2);
  EXPECT_EQ(find(*report, "step")->gpu->kernel_ns, 15);
  EXPECT_EQ(find(*report, "step")->gpu->nccl_kernels, 0);
  options.kernels = kernels({"regex:gemm", "softmax"}, {"softmax"});
  EXPECT_EQ(analyze(b.session, options)->kernels.size(), 1u);
  options.kernels = kernels({"regex:\"gemm\"", "'softmax'"}, {"softmax"});
  EXPECT_EQ(analyze(b.session, options)->kernels.size(), 1u);
  options.kernels = kernels({"softmax", "nosuch"});
  EXPECT_EQ(analyze(b.session, options)->notes.back(),
            "kernel pattern 'nosuch' matched no kernel.");
  options.kernels = kernels({"gem"});
  report = analyze(b.session, options);
  EXPECT_EQ(report.error().code, base::Code::kNothingCaptured);
  EXPECT_EQ(analyze(b.session)->total->nccl_kernels, 1);
  EXPECT_EQ(model::KernelSelection::parse({"regex:("}).error().code, base::Code::kUsage);
}

TEST(Gpu, WorkWithoutALaunchIsUnattributedAndALoss) {
  OneThread b;
  b.range(b.t, "step", 0, 100);
  b.kernel(model::kNone, "k", 10, 20);
  b.kernel(12345, "k", 20, 30);               // an index that does not exist
  b.kernel(b.launch(77, 1, 2), "k", 30, 40);  // a thread that does not exist
  const auto report = analyze(b.session);
  EXPECT_EQ(report->unattributed->kernels, 3);
  EXPECT_FALSE(report->unattributed->launch_latency_ns);
  std::map<std::string, std::uint64_t> losses;
  for (const model::Loss& loss : report->losses)
    losses[std::string(loss.kind.id())] = loss.count;
  EXPECT_EQ(losses["kernel_without_launch"], 3u);
  EXPECT_EQ(losses["foreign_launch"], 1u);
}

// --- against brute force
// -------------------------------------------------------------------------------------------

constexpr int kHorizon = 120;  // ticks

struct Expected {
  std::int64_t kernels = 0, exclusive = 0, inherited = 0, kernel_ns = 0, busy = 0,
               exclusive_busy = 0, overlap = 0, copies = 0, copy_busy = 0;
  std::int64_t span = 0, idle = 0, sync_ns = 0;
  std::vector<std::int64_t> latencies, per_occurrence_busy, per_occurrence_kernel;
  std::map<std::string, std::vector<std::int64_t>> durations;
};

/// Everything by its definition (docs/design/region-tree.md): O(n m) and more, time tick by tick.
class Oracle {
 public:
  Oracle(const model::Session& session, PushPopScope scope) : s_(session), scope_(scope) {
    const std::size_t n = s_.ranges.size();
    parent_.assign(n, n);
    for (std::size_t r = 0; r < n; ++r) {
      if (push_pop(r))
        parent_[r] = innermost(s_.ranges[r].thread,
                               s_.ranges[r].domain,
                               s_.ranges[r].start_ns,
                               s_.ranges[r].end_ns,
                               r);
    }
  }

  std::map<std::string, Expected> regions() {
    std::map<std::string, Expected> out;
    const std::size_t n = s_.ranges.size();
    for (std::size_t r = 0; r < n; ++r)
      out[path(r)];
    // Which occurrences every launch belongs to.
    std::vector<std::map<std::size_t, bool>> around(s_.launches.size());  // occurrence: inherited
    for (std::size_t l = 0; l < s_.launches.size(); ++l) {
      const auto& launch = s_.launches[l];
      const std::int64_t end = launch.end_ns == kOpen ? launch.start_ns : launch.end_ns;
      for (std::uint32_t domain = 0; domain < s_.domains.size(); ++domain) {
        const std::size_t own = innermost(launch.thread, domain, launch.start_ns, end, n);
        for (std::size_t r = own; r != n; r = parent_[r])
          around[l][r] = false;
        if (scope_ == PushPopScope::kThread || (scope_ == PushPopScope::kAuto && own != n))
          continue;
        std::vector<std::size_t> others;
        for (std::uint32_t t = 0; t < s_.threads.size(); ++t) {
          if (t == launch.thread || s_.threads[t].process != s_.threads[launch.thread].process)
            continue;
          const std::size_t inner = innermost(t, domain, launch.start_ns, end, n);
          if (inner != n)
            others.push_back(inner);
        }
        if (scope_ == PushPopScope::kAuto && others.size() != 1)
          continue;
        for (std::size_t r : others) {
          for (; r != n; r = parent_[r])
            around[l].emplace(r, true);
        }
      }
      for (std::size_t r = 0; r < n; ++r) {
        const auto& range = s_.ranges[r];
        if (push_pop(r) || s_.threads[range.thread].process != s_.threads[launch.thread].process)
          continue;
        if (range.start_ns <= launch.start_ns && end <= range.end_ns)
          around[l][r] = false;
      }
    }
    // Paths around every launch: inherited only if every occurrence of the path is.
    std::vector<std::map<std::string, bool>> paths(s_.launches.size());
    std::vector<std::set<std::string>> parents(s_.launches.size());
    for (std::size_t l = 0; l < around.size(); ++l) {
      for (const auto& [r, inherited] : around[l]) {
        const auto [at, added] = paths[l].emplace(path(r), inherited);
        if (!added)
          at->second = at->second && inherited;
        if (parent_[r] != n)
          parents[l].insert(path(parent_[r]));
      }
    }
    for (auto& [name, region] : out) {
      std::set<std::pair<std::uint32_t, int>> busy, exclusive, kernel, copy;  // (card, tick)
      const auto mark = [&](auto& ticks, std::uint32_t stream, std::int64_t from, std::int64_t to) {
        for (std::int64_t t = from; t < to; ++t)
          ticks.emplace(card(stream), static_cast<int>(t));
      };
      for (const auto& k : s_.kernels) {
        const auto inside = paths[k.launch].find(name);
        if (inside == paths[k.launch].end())
          continue;
        const std::int64_t length = k.end_ns - k.start_ns;
        ++region.kernels;
        region.kernel_ns += length;
        region.inherited += inside->second;
        region.latencies.push_back(k.start_ns - s_.launches[k.launch].start_ns);
        region.durations[std::string(s_.strings.view(s_.kernel_names[k.name].demangled))].push_back(
            length);
        mark(busy, k.stream, k.start_ns, k.end_ns);
        mark(kernel, k.stream, k.start_ns, k.end_ns);
        if (parents[k.launch].contains(name))
          continue;
        ++region.exclusive;
        mark(exclusive, k.stream, k.start_ns, k.end_ns);
      }
      for (const auto& c : s_.copies) {
        if (!paths[c.launch].contains(name))
          continue;
        ++region.copies;
        mark(busy, c.stream, c.start_ns, c.end_ns);
        mark(copy, c.stream, c.start_ns, c.end_ns);
        if (!parents[c.launch].contains(name))
          mark(exclusive, c.stream, c.start_ns, c.end_ns);
      }
      for (const auto& each : s_.synchronizations) {
        if (paths[each.launch].contains(name))
          region.sync_ns += each.end_ns - each.start_ns;
      }
      region.busy = static_cast<std::int64_t>(busy.size());
      region.exclusive_busy = static_cast<std::int64_t>(exclusive.size());
      for (const auto& tick : copy)
        region.overlap += kernel.contains(tick);
      region.copy_busy = static_cast<std::int64_t>(copy.size());
      for (std::size_t r = 0; r < n; ++r) {
        if (path(r) != name)
          continue;
        std::set<std::pair<std::uint32_t, int>> own;
        std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> extent;
        std::int64_t kernel_ns = 0;
        const auto take = [&](const auto& work) {
          if (!around[work.launch].contains(r))
            return false;
          mark(own, work.stream, work.start_ns, work.end_ns);
          const auto [at, added] =
              extent.emplace(card(work.stream), std::pair(work.start_ns, work.end_ns));
          at->second = {std::min(at->second.first, work.start_ns),
                        std::max(at->second.second, work.end_ns)};
          return true;
        };
        for (const auto& k : s_.kernels)
          kernel_ns += take(k) ? k.end_ns - k.start_ns : 0;
        for (const auto& c : s_.copies)
          take(c);
        for (const auto& [card, ends] : extent)
          region.span += ends.second - ends.first;
        region.idle -= static_cast<std::int64_t>(own.size());
        if (s_.ranges[r].end_ns == kOpen)
          continue;
        region.per_occurrence_busy.push_back(static_cast<std::int64_t>(own.size()));
        region.per_occurrence_kernel.push_back(kernel_ns);
      }
      region.idle += region.span;
    }
    return out;
  }

 private:
  bool push_pop(std::size_t r) const { return s_.ranges[r].kind == RangeKind::kPushPop; }
  bool precedes(std::size_t a, std::size_t b) const {
    return std::tuple(s_.ranges[a].start_ns, -s_.ranges[a].end_ns, a) <
           std::tuple(s_.ranges[b].start_ns, -s_.ranges[b].end_ns, b);
  }
  /// The last range in order (before `limit`, when that is a range) of the thread and domain that
  /// contains [start, end].
  std::size_t innermost(std::uint32_t thread,
                        std::uint32_t domain,
                        std::int64_t start,
                        std::int64_t end,
                        std::size_t limit) const {
    std::size_t best = s_.ranges.size();
    for (std::size_t p = 0; p < s_.ranges.size(); ++p) {
      const auto& range = s_.ranges[p];
      if (!push_pop(p) || range.thread != thread || range.domain != domain ||
          range.start_ns > start || range.end_ns < end)
        continue;
      if (limit != s_.ranges.size() && !precedes(p, limit))
        continue;
      if (best == s_.ranges.size() || precedes(best, p))
        best = p;
    }
    return best;
  }
  std::string path(std::size_t r) const {
    std::string text;
    for (std::size_t p = r; p != s_.ranges.size(); p = parent_[p]) {
      text = std::string(s_.strings.view(s_.ranges[p].name)) + (text.empty() ? "" : " > " + text);
    }
    const auto domain = s_.strings.view(s_.domains[s_.ranges[r].domain].name);
    return (push_pop(r) ? "" : "~") + (domain.empty() ? "" : std::string(domain) + "@") + text;
  }
  std::uint32_t card(std::uint32_t stream) const {
    return s_.devices[s_.streams[stream].device].uuid;
  }

  const model::Session& s_;
  PushPopScope scope_;
  std::vector<std::size_t> parent_;
};

double quantile(std::vector<std::int64_t> v, std::size_t twentieths) {
  if (v.empty())
    return 0;
  std::sort(v.begin(), v.end());
  const std::size_t scaled = (v.size() - 1) * twentieths, low = scaled / 20,
                    high = std::min(low + 1, v.size() - 1);
  return static_cast<double>(v[low]) +
         static_cast<double>(scaled % 20) / 20 * static_cast<double>(v[high] - v[low]);
}

/// Two processes with two threads each, on two cards of which they share one; everything at random,
/// rows out of order.
SessionBuilder random_session(
    std::mt19937& random, int ranges, int launches, int horizon, int longest) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  SessionBuilder b;
  std::vector<std::uint32_t> threads, streams[2];
  for (int p = 0; p < 2; ++p) {
    const auto process = b.process(static_cast<std::uint32_t>(p + 1));
    for (int t = 0; t < 2; ++t)
      threads.push_back(b.thread(process, static_cast<std::uint32_t>(t)));
    for (const char* uuid : {"shared", p == 0 ? "own0" : "own1"}) {
      const auto device =
          b.device(process, static_cast<std::uint32_t>(b.session.devices.size()), uuid);
      streams[p].push_back(b.stream(process, device, 1));
    }
  }
  for (int i = 0; i < ranges; ++i) {
    const int start = pick(horizon), length = pick(4) == 0 ? 0 : pick(longest);
    b.range(threads[static_cast<std::size_t>(pick(4))],
            std::string(1, static_cast<char>('a' + pick(4))),
            start,
            pick(longest < horizon ? 5000 : 12) == 0 ? model::kOpen : start + length,
            pick(4) == 0 ? "D" : "",
            pick(6) == 0 ? RangeKind::kStartEnd : RangeKind::kPushPop);
  }
  for (int i = 0; i < launches; ++i) {
    const auto thread = static_cast<std::size_t>(pick(4));
    const int start = pick(horizon), kind = pick(8);
    const auto launch = b.launch(threads[thread], start, pick(5) == 0 ? kOpen : start + pick(3));
    b.session.launches.back().correlation =
        static_cast<std::uint32_t>(i / 2);  // equal in both processes
    const auto stream = streams[thread / 2][static_cast<std::size_t>(pick(2))];
    const int begin = start + pick(longest / 2), length = pick(longest / 4);
    if (kind == 0) {
      b.copy(launch, begin, begin + length, 64, CopyKind::kDeviceToHost, stream);
    } else if (kind == 1) {
      b.session.synchronizations.push_back(
          {start, start + length, launch, model::kNone, model::SyncKind::kStream});
    } else {
      b.kernel(launch,
               pick(2) ? "gemm" : "softmax",
               begin,
               begin + length,
               stream,
               static_cast<std::uint32_t>(pick(3)));
    }
  }
  std::shuffle(b.session.kernels.begin(), b.session.kernels.end(), random);
  return b;
}

TEST(GpuProperty, AgreesWithBruteForceOnRandomTraces) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 150; ++trial) {
    SessionBuilder b = random_session(random,
                                      static_cast<int>(random() % 30),
                                      static_cast<int>(random() % 30),
                                      kHorizon / 3,
                                      kHorizon / 3);
    for (const PushPopScope scope :
         {PushPopScope::kThread, PushPopScope::kAuto, PushPopScope::kProcess}) {
      Options options;
      options.per_process = false;
      options.push_pop_scope = scope;
      const auto report = analyze(b.session, options);
      ASSERT_TRUE(report);
      const auto expected = Oracle(b.session, scope).regions();
      ASSERT_EQ(report->regions.size(), expected.size());
      for (const model::Region& region : report->regions) {
        const std::string name =
            (region.kind == RangeKind::kStartEnd ? "~" : "") + model::path_text(region);
        SCOPED_TRACE(name + " trial " + std::to_string(trial));
        ASSERT_TRUE(expected.contains(name));
        const Expected& e = expected.at(name);
        if (!region.gpu)
          continue;  // no GPU work in this trace
        const model::GpuWork& gpu = *region.gpu;
        EXPECT_EQ(gpu.kernels, e.kernels);
        EXPECT_EQ(gpu.exclusive_kernels, e.exclusive);
        EXPECT_EQ(gpu.inherited_kernels, e.inherited);
        EXPECT_EQ(gpu.copies, e.copies);
        EXPECT_EQ(gpu.kernel_ns, static_cast<double>(e.kernel_ns));
        EXPECT_EQ(gpu.busy_ns, static_cast<double>(e.busy));
        EXPECT_EQ(gpu.exclusive_busy_ns, static_cast<double>(e.exclusive_busy));
        EXPECT_EQ(gpu.overlap_ns, static_cast<double>(e.overlap));
        EXPECT_EQ(gpu.copy_busy_ns, static_cast<double>(e.copy_busy));
        EXPECT_EQ(gpu.span_ns, static_cast<double>(e.span));
        EXPECT_EQ(gpu.idle_ns, static_cast<double>(e.idle));
        EXPECT_EQ(gpu.sync_ns, static_cast<double>(e.sync_ns));
        EXPECT_EQ(gpu.distinct_kernels, static_cast<std::int64_t>(e.durations.size()));
        EXPECT_EQ(gpu.launch_latency_ns.has_value(), !e.latencies.empty());
        if (gpu.launch_latency_ns) {
          EXPECT_DOUBLE_EQ(gpu.launch_latency_ns->median, quantile(e.latencies, 10));
          EXPECT_NEAR(gpu.launch_latency_ns->p95, quantile(e.latencies, 19), 1e-9);
        }
        EXPECT_DOUBLE_EQ(gpu.busy_ns_per_occurrence.median, quantile(e.per_occurrence_busy, 10));
        EXPECT_DOUBLE_EQ(gpu.kernel_ns_per_occurrence.median,
                         quantile(e.per_occurrence_kernel, 10));
        for (const model::KernelRow& row : gpu.top_kernels) {
          const auto& durations = e.durations.at(row.name);
          EXPECT_EQ(row.calls, static_cast<std::int64_t>(durations.size()));
          EXPECT_DOUBLE_EQ(row.duration_ns.median, quantile(durations, 10));
        }
      }
    }
  }
}

std::string dump(const model::Spread& s) {
  char text[200];
  std::snprintf(text,
                sizeof text,
                "[%.17g %.17g %.17g %.17g %.17g %.17g]",
                s.min,
                s.median,
                s.p95,
                s.max,
                s.mean,
                s.stddev);
  return text;
}

/// Every number of a report that analyze() computes.
std::string dump(const model::Report& report) {
  std::string text;
  const auto work = [&](const model::GpuWork& w) {
    for (const double v : {static_cast<double>(w.kernels),
                           w.kernel_ns,
                           w.exclusive_kernel_ns,
                           w.busy_ns,
                           w.exclusive_busy_ns,
                           w.span_ns,
                           w.idle_ns,
                           w.overlap_ns,
                           w.copy_bytes,
                           static_cast<double>(w.inherited_kernels)}) {
      text += " " + std::to_string(v);
    }
    text += dump(w.kernel_ns_per_occurrence) + dump(w.busy_ns_per_occurrence);
    if (w.launch_latency_ns)
      text += dump(*w.launch_latency_ns);
    for (const auto& row : w.top_kernels)
      text += "\n  " + row.name + std::to_string(row.calls) + std::to_string(row.shape.grid[0]) +
              dump(row.duration_ns);
    text += "\n";
  };
  for (const model::Region& region : report.regions) {
    text += model::path_text(region) + std::to_string(region.occurrences) +
            dump(region.wall.per_occurrence_ns);
    for (const auto& sample : region.samples)
      text += " " + std::to_string(sample.at_ns) + "/" + std::to_string(sample.busy_ns);
    if (region.gpu)
      work(*region.gpu);
  }
  if (report.total)
    work(*report.total);
  if (report.unattributed)
    work(*report.unattributed);
  for (const auto& loss : report.losses)
    text += std::string(loss.kind.id()) + std::to_string(loss.count);
  return text;
}

TEST(GpuProperty, ResultsDoNotDependOnTheNumberOfThreads) {
  std::mt19937 random(23);
  SessionBuilder b = random_session(random, 30000, 90000, 3000000, 2000);
  Options options;
  options.per_thread = true;
  options.samples = 20;
  options.threads = 1;
  const std::string one = dump(*analyze(b.session, options));
  for (const int threads : {2, 3, 7, 0}) {
    options.threads = threads;
    ASSERT_TRUE(one == dump(*analyze(b.session, options))) << threads;
  }
}

TEST(Gpu, MigrationOfUnifiedMemoryIsNoLoss) {
  OneThread b;
  b.range(b.t, "step", 0, 100);
  const std::uint32_t stream = b.stream(b.p, b.device(b.p, 0), 7);
  b.session.copies.push_back(
      {10, 20, 4096, model::kNone, stream, model::kNone, model::CopyKind::kHostToDevice, true});
  auto report = analyze(b.session);
  EXPECT_TRUE(report->losses.empty());
  EXPECT_EQ(report->unattributed->copies, 1);
  b.session.copies.back().migration = false;
  report = analyze(b.session);
  ASSERT_EQ(report->losses.size(), 1u);
  EXPECT_EQ(report->losses[0].kind.id(), "gpu_work_without_launch");
}

}  // namespace gpu_test
}  // namespace rangescope::analyze
