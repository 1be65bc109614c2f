#include "report/document/flame.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "report/compare/formats.hpp"
#include "report/formats.hpp"
#include "report/sink.hpp"

namespace rangescope::report {
namespace flame_test {

using model::kNone;

/// main > python loop (llama.py:7) > memcpy; main > rare. 8 samples in `decode`, 1 in its child, 2
/// outside.
struct Sampled {
  model::Session session;
  model::Report report;
  Sampled() {
    model::CpuProfile& cpu = session.cpu;
    cpu.interval_ns = 1000;
    const auto text = [&](const char* word) { return session.strings.intern(word); };
    cpu.frames = {{.name = text("main"), .module = text("/opt/app")},
                  {.kind = model::FrameKind::kPython,
                   .name = text("loop"),
                   .file = text("/x/llama.py"),
                   .line = 7},
                  {.name = text("memcpy"), .module = text("/lib/libc.so.6")},
                  {.name = text("rare"), .module = text("/opt/app")},
                  {.name = text("main"), .module = text("/opt/app")}};  // of another process
    cpu.stacks = {{kNone, 0}, {0, 1}, {1, 2}, {0, 3}, {kNone, 4}, {4, 1}};
    for (const char* name : {"decode", "layer"}) {
      model::Region region;
      region.path = {name};
      region.cpu.emplace();
      report.regions.push_back(region);
    }
    report.regions[0].cpu->stacks = {{2, 5}, {5, 2}, {3, 1}};
    report.regions[1].cpu->stacks = {{2, 1}};
    report.cpu_outside.emplace().stacks = {{0, 1}, {kNone, 1}};
  }
};

TEST(Flame, ChainsOfOneTextAreOne) {
  const Sampled made;
  const Flame flame = flame_of(made.report, made.session);
  ASSERT_EQ(flame.nodes.size(), 4u);
  ASSERT_EQ(flame.names.size(), 4u);
  EXPECT_EQ(flame.names[flame.nodes[1].name].text, "loop (llama.py:7)");
  EXPECT_EQ(flame.names[flame.nodes[1].name].sort, FrameSort::kPython);
  EXPECT_EQ(flame.names[flame.nodes[1].name].module, "/x/llama.py");
  EXPECT_EQ(flame.nodes[1].parent, 0u);
  ASSERT_EQ(flame.regions[0].size(), 3u);
  EXPECT_EQ(flame.regions[0][0].node, 1u);  // the other process's loop
  EXPECT_EQ(flame.regions[0][0].samples, 2);
  ASSERT_EQ(flame.outside.size(), 2u);
  EXPECT_EQ(flame.outside[1].node, kNone);
  EXPECT_EQ(flame.shortened, 0);
}

TEST(Flame, IsBoundedByItsLightestFunctions) {
  const Sampled made;
  const Flame flame = flame_of(made.report, made.session, 3);
  ASSERT_EQ(flame.nodes.size(), 3u);
  EXPECT_EQ(flame.shortened, 1);            // rare stands at main
  EXPECT_EQ(flame.regions[0][0].node, 0u);  // main
  std::int64_t samples = 0;
  for (const auto* list : {&flame.regions[0], &flame.regions[1], &flame.outside})
    for (const FlameCount& count : *list)
      samples += count.samples;
  EXPECT_EQ(samples, 11);  // none is lost
  const Flame least = flame_of(made.report, made.session, kFlameNodes, 1);
  EXPECT_TRUE(least.nodes.empty());
  EXPECT_EQ(least.regions[0].size(), 1u);
}

/// Lines as flamegraph.pl reads them: a number at the end is a count; a second one before it makes
/// two files of it.
std::vector<std::pair<std::string, std::vector<int>>> read_folded(const std::string& text) {
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::vector<int> counts;
    while (counts.size() < 2) {
      const std::size_t last = line.find_last_not_of("0123456789.");
      if (last == std::string::npos || last + 1 == line.size() || line[last] != ' ')
        break;
      counts.insert(counts.begin(), std::stoi(line.substr(last + 1)));
      line.resize(last);
    }
    lines.emplace_back(line, counts);
  }
  return lines;
}

TEST(Flame, CollapsedChainsReadAsOneCountEach) {
  Sampled made;
  made.report.regions[0].path = {"a; b", "iter 17"};
  made.report.regions[0].cpu->stacks = {{kNone, 5}, {2, 7}};
  made.report.regions[1].path = {"v 1.5"};
  made.report.regions[1].cpu->stacks = {{kNone, 1}};
  StringSink sink;
  ASSERT_TRUE(export_collapsed(made.report, &made.session, {}, sink));
  using Lines = decltype(read_folded({}));
  EXPECT_EQ(read_folded(sink.text()),
            (Lines{{"a: b;iter_17", {5}},
                   {"a: b;iter_17;main;loop (llama.py:7);memcpy", {7}},
                   {"v_1.5", {1}},
                   {"main", {1}},
                   {"(unknown)", {1}}}));
}

// As difffolded.pl prints it: each chain once, the first side's count before the last one's.
TEST(Flame, ComparedChainsAreThoseOfTwoFiles) {
  model::Comparison made;
  made.frames = {{"main [app]", "/opt/app"}, {"f(int; 3)", "/opt/app"}};
  for (const char* domain : {"", "other"}) {  // one path in two domains
    model::ComparedRegion region;
    region.path = {"work 2"};
    region.domain = domain;
    region.chains = {{{}, {1, 9, 0}}, {{0, 1}, {3, 9, 4}}};
    made.regions.push_back(region);
  }
  made.missing.push_back(made.regions[0]);
  made.missing[0].path = {"new"};
  made.missing[0].chains = {{{0}, {0, 0, 6}}};
  StringSink sink;
  write_comparison_collapsed(made, {}, sink);
  using Lines = decltype(read_folded({}));
  EXPECT_EQ(read_folded(sink.text()),
            (Lines{{"new;main [app]", {0, 6}},
                   {"work_2", {2, 0}},
                   {"work_2;main [app];f(int: 3)", {6, 8}}}));
}

TEST(Flame, IsEmptyWithoutSamples) {
  EXPECT_TRUE(flame_of(model::Report(), model::Session()).nodes.empty());
}

}  // namespace flame_test
}  // namespace rangescope::report
