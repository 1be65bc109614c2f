// Reports that no golden capture holds: hostile names, a roofline, and as many events as asked for.
// Usage: make_pages FOLDER EVENTS FORMAT; FORMAT is html (all pages) or another one
// (big.<extension> only).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "model/measure.hpp"
#include "report/compare/formats.hpp"
#include "report/exporter.hpp"
#include "report/sample_report_test.hpp"
#include "report/sink.hpp"

namespace {

using namespace rangescope;

bool write(const std::string& path,
           const report::Exporter& exporter,
           const model::Report& report,
           const model::Session* session) {
  report::FileSink sink(path);
  auto done = exporter.write(report, session, {}, sink);
  if (done)
    done = sink.finish();
  if (!done)
    std::fprintf(stderr, "%s: %s\n", path.c_str(), done.error().what.c_str());
  return done.has_value();
}

// Steps on two threads, each with layers that launch kernels on streams, four events a layer.
model::Session big_session(std::uint32_t events) {
  model::Session session;
  session.processes.push_back({.pid = 100, .name = session.strings.intern("train")});
  session.devices.push_back({.process = 0});
  session.kernel_shapes.push_back({.grid = {16, 8, 1}, .block = {256, 1, 1}});
  std::vector<model::StringId> layers;
  for (int i = 0; i < 24; ++i) {
    layers.push_back(session.strings.intern("layer" + std::to_string(i)));
    session.kernel_names.push_back(
        {.demangled = session.strings.intern("void gemm<float, " + std::to_string(i) + ">()")});
  }
  const auto step = session.strings.intern("step");
  const auto call = session.strings.intern("cudaLaunchKernel");
  std::uint64_t random = 1;
  for (std::uint32_t t = 0; t < 2; ++t) {
    session.threads.push_back({.process = 0, .tid = 100 + t});
    session.streams.push_back({.process = 0, .device = 0, .context = 1, .id = 7 + t});
    std::int64_t at = 1000;
    std::size_t open = 0;
    for (std::uint32_t i = 0; i < events / 8; ++i) {
      if (i % 24 == 0) {
        if (i > 0)
          session.ranges[open].end_ns = at;
        at += 20'000;
        open = session.ranges.size();
        session.ranges.push_back({.start_ns = at, .name = step, .thread = t});
      }
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto length = static_cast<std::int64_t>(4000 + (random >> 52));
      session.ranges.push_back(
          {.start_ns = at, .end_ns = at + length, .name = layers[i % 24], .thread = t});
      {
        const auto launch = static_cast<std::uint32_t>(session.launches.size());
        session.launches.push_back({.start_ns = at + 300,
                                    .end_ns = at + 1900,
                                    .thread = t,
                                    .correlation = launch + 1,
                                    .name = call});
        session.kernels.push_back({.start_ns = at + 2500,
                                   .end_ns = at + length,
                                   .launch = launch,
                                   .name = i % 24,
                                   .stream = t});
      }
      session.copies.push_back({.start_ns = at + length,
                                .end_ns = at + length + 200,
                                .bytes = 4096,
                                .stream = t,
                                .kind = model::CopyKind::kHostToDevice});
      at += length + 250;
    }
    if (events >= 8)
      session.ranges[open].end_ns = at;
    session.end_ns = std::max(session.end_ns, at);
  }
  return session;
}

model::Report big_report() {
  model::Report report = report::nvtx_sample();
  report.run.id = "big";
  report.regions.clear();
  report.regions.push_back(report::sample_region(report, {"step"}, model::kNone, 100, 9e9, 1e9));
  for (int i = 0; i < 24; ++i)
    report.regions.push_back(report::sample_region(
        report, {"step", "layer" + std::to_string(i)}, 0, 100, 1e9 / 3, 1e9 / 3));
  return report;
}

model::Report roofline_report() {
  model::Report report = report::gpu_sample();
  report.run.id = "roofline";
  report.losses = {{"dropped_events", 12, "12 events did not fit into the capture"}};
  report.regions[0].roofline = {
      {"dram", "tensor bf16", 8e12, 2e10, 400, 5.2e14, 9.89e14, 9.89e14, 4.8e12}};
  report.regions[1].roofline = {
      {"dram", "tensor bf16", 2e11, 1e10, 20, 8.1e13, 9.6e13, 9.89e14, 4.8e12}};
  return report;
}

// Two cures, one of which is a bound, and a line without any.
model::Report cures_report() {
  model::Report report = report::gpu_sample();
  report.run.id = "cures";
  const auto add_cure = [&](const char* cure,
                            const char* text,
                            const char* attempt,
                            double before_ns,
                            double after_ns) {
    model::Verdict line;
    line.kind = "cure";
    line.severity = model::Weight::kWarning;
    line.region = 1;
    line.path = model::path_text(report.regions[1]);
    line.text = text;
    line.attempt = attempt;
    line.cure = cure;
    line.saves_ns = before_ns - after_ns;
    line.saves_low_ns = 0.9 * *line.saves_ns;
    line.saves_high_ns = 1.05 * *line.saves_ns;
    line.after = model::Outcome{line.path, 1, before_ns, after_ns, after_ns > before_ns / 2};
    report.verdict.push_back(std::move(line));
  };
  report.verdict.clear();
  add_cure("fusion",
           "8 element-wise kernels of equal size follow one another (2.07 ms of 2.07 ms)",
           "torch.compile(step)",
           414e6,
           45e6);
  add_cure("copies",
           "59 pageable copies block the thread",
           "pin_memory=True, non_blocking=True",
           45e6,
           40e6);
  report.verdict.push_back({.kind = "dominant_kernel", .text = "GPU-bound"});
  return report;
}

// A thousand ranks and fifty regions, of which rank 137 is slow in one.
model::Report many_ranks_report() {
  constexpr std::uint32_t kRanks = 1000, kRegions = 50;
  constexpr std::size_t kBins = 256;
  model::Report report = report::nvtx_sample();
  report.run.id = "many ranks";
  report.regions.clear();
  std::uint64_t random = 1;
  const auto noise = [&random] {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(random >> 40) / (1 << 24);
  };
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    report.ranks.push_back(
        {.rank = rank, .host = "node" + std::to_string(rank / 8), .device = "NVIDIA H200"});
    model::RankActivity& of = report.activity.emplace_back();
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const auto busy = static_cast<float>(bin % 16 < 12 ? 0.8 + 0.2 * noise() : 0.1);
      of.compute.push_back(busy);
      of.transfer.push_back(static_cast<float>((1 - busy) * 0.3));
      of.wait.push_back(static_cast<float>((1 - busy) * (rank == 137 ? 0 : 0.7)));
    }
  }
  for (std::uint32_t r = 0; r < kRegions; ++r) {
    model::Region region =
        report::sample_region(report, {"layer " + std::to_string(r)}, model::kNone, 100, 9e9, 9e9);
    region.id = r;
    model::OverRanks over;
    over.count = kRanks;
    over.mean_ns = 1e9;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      over.by_rank.push_back(1e9 + 1e7 * noise());
      over.own_by_rank.push_back(5e8 * (rank == 137 && r == 20 ? 1.6 : 1 + 0.02 * noise()));
    }
    region.ranks = std::move(over);
    report.regions.push_back(std::move(region));
  }
  return report;
}

const std::string kEvil =
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>\xE2\x80\xA8 &lt; "
    "\"'` \xff";

model::Report hostile_report() {
  model::Report report = report::gpu_sample();
  const std::string& evil = kEvil;
  report.regions[0].cpu.emplace();
  report.regions[0].cpu->python.name = evil;
  report.regions[0].cpu->python.ns = 1;
  report.regions[0].cpu->stacks = {{0, 3}};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    report.ranks.push_back({.rank = rank, .host = evil, .device = evil});
    report.activity.push_back({{1}, {0}, {0}});
  }
  report.regions[0].ranks =
      model::OverRanks{.count = 2, .mean_ns = 1, .by_rank = {1, 2}, .own_by_rank = {1, 2}};
  report.collectives.push_back({.library = "MPI", .operation = evil, .path = {evil}, .calls = 1});
  report.run.id = evil;
  report.run.command = {"./app", evil};
  report.run.environment["cpu"] = evil;
  report.regions[0].path = {evil};
  report.regions[0].domain = evil;
  report.regions[0].occurrences = 0;  // it never ended
  report.regions[0].unclosed = 1;
  report.regions[0].notes = {evil};
  report.regions[0].bound = model::Bound{evil, evil};
  report.regions[0].gpu->top_kernels[0].name = report.regions[0].gpu->top_kernels[0].short_name =
      evil;
  report.regions[1].path = {evil, "<b>bold</b>"};
  report.kernels[0].name = report.kernels[0].short_name = evil;
  report.losses = {{"dropped_events", 1, evil}};
  report.findings = {{evil, evil, model::Grade::kFail, evil, evil, {evil}}};
  return report;
}

/// One region whose functions changed: samples of 1 ms, of the second side of 0.5 ms.
model::Comparison flame_comparison() {
  model::Comparison comparison;
  comparison.sides = {{"before"}, {"after"}};
  model::ComparedRegion& region = comparison.regions.emplace_back();
  region.path = {"step"};
  region.occurrences = {1, 1};
  region.sample_ns = {1e6, 0.5e6};
  region.functions.emplace_back();
  region.functions.back().name = "grown";
  region.functions.back().self.values = {0.1e9, 0.2e9};
  region.functions.back().self.changes.push_back({.ratio = 2, .standing = model::Standing::kMore});
  region.functions.back().share = {0.1, 0.2};
  for (const char* name : {"main", "grown", "shrunk", "steady", "fresh", "gone", kEvil.c_str()})
    comparison.frames.push_back({name, "/bin/app"});
  region.chains = {{{0, 1}, {100, 400}},
                   {{0, 2}, {400, 200}},
                   {{0, 3}, {200, 410}},
                   {{0, 4}, {0, 100}},
                   {{0, 5}, {100, 0}},
                   {{0, 3, 6}, {50, 100}}};
  model::ComparedRegion inner = region;  // counts for the region that it is in
  inner.path = {"step", "inner"};
  inner.functions.clear();
  inner.chains = {{{0, 1}, {10, 40}}};
  comparison.regions.push_back(std::move(inner));
  return comparison;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4)
    return 64;
  const std::string folder = argv[1];
  auto exporter = report::find_exporter(argv[3]);
  if (!exporter)
    return 64;
  model::Session big = big_session(static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  bool ok =
      write(folder + "/big." + std::string((*exporter)->extension), **exporter, big_report(), &big);
  if (std::string(argv[3]) == "html") {
    model::Session hostile = big_session(64);
    hostile.cpu.interval_ns = 1000;
    hostile.cpu.frames.push_back(
        {.name = hostile.strings.intern(kEvil), .module = hostile.strings.intern(kEvil)});
    hostile.cpu.stacks.emplace_back();
    hostile.ranges[0].name = hostile.strings.intern("</script><img src=x onerror=window.hacked=3>");
    ok = write(folder + "/hostile.html", **exporter, hostile_report(), &hostile) && ok;
    ok = write(folder + "/cures.html", **exporter, cures_report(), nullptr) && ok;
    ok = write(folder + "/ranks.html", **exporter, many_ranks_report(), nullptr) && ok;
    report::FileSink flame(folder + "/flame.html");
    report::write_comparison_html(flame_comparison(), {}, flame);
    ok = flame.finish() && ok;
    ok = write(folder + "/roofline.html", **exporter, roofline_report(), nullptr) && ok;
  }
  return ok ? 0 : 74;
}
