#include "read/join.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/source_dir.hpp"
#include "read/registry.hpp"

namespace rangescope::read {
namespace join_test {

const std::string kGolden = std::string(base::source_dir) + "/tests/golden/";

model::Session of(const std::vector<std::string>& names) {
  std::vector<model::Session> sessions;
  for (const std::string& name : names) {
    auto session = read_any(kGolden + name);
    EXPECT_TRUE(session) << base::to_string(session.error());
    sessions.push_back(std::move(*session));
  }
  return join(std::move(sessions));
}

/// decode twice, each with kernels a, b, a; one kernel outside.
model::Session timeline() {
  model::Session s;
  s.processes.push_back({.pid = 7});
  s.threads.push_back({.process = 0, .tid = 7});
  s.streams.push_back({.process = 0, .device = 0});
  s.devices.push_back({.process = 0});
  const auto id = [&](std::string_view text) { return s.strings.intern(text); };
  s.kernel_names = {{id("a()"), id("a")}, {id("b()"), id("b")}};
  s.kernel_shapes.emplace_back();
  for (std::int64_t begin : {100, 200}) {
    s.ranges.push_back({.start_ns = begin, .end_ns = begin + 50, .name = id("decode")});
    for (std::uint32_t i = 0; i < 3; ++i) {
      s.kernels.push_back({.start_ns = begin + 300,
                           .end_ns = begin + 310,
                           .launch = static_cast<std::uint32_t>(s.launches.size()),
                           .name = i % 2});
      s.launches.push_back({.start_ns = begin + 1 + i, .end_ns = begin + 2 + i});
    }
  }
  s.kernels.push_back({.start_ns = 900, .end_ns = 910, .launch = 6, .name = 0});
  s.launches.push_back({.start_ns = 400, .end_ns = 401});
  s.begin_ns = 0;
  s.end_ns = 1000;
  return s;
}

model::Measurement result(model::Session& s, std::string_view range, std::uint32_t kernel) {
  model::Measurement out;
  out.kernel_name = kernel;
  if (!range.empty())
    out.ranges.push_back({.name = s.strings.intern(range)});
  out.values.push_back({0, 1.5});
  return out;
}

model::Session results() {
  model::Session s;
  s.processes.push_back({.pid = 99});
  s.strings.intern("something else first");
  const auto id = [&](std::string_view text) { return s.strings.intern(text); };
  s.kernel_names = {{id("b(int)"), id("b")}, {id("a()"), id("a")}, {id("c()"), id("c")}};
  s.metrics.push_back({"dram__bytes.sum", "byte", "ncu"});
  // ncu was told to take b of each occurrence, then every a of one.
  for (std::uint32_t kernel : {0u, 0u, 0u, 1u})
    s.measurements.push_back(result(s, "decode", kernel));
  s.measurements.push_back(result(s, "", 1));
  s.measurements.push_back(result(s, "decode", 2));
  s.measurements.push_back(result(s, "nowhere", 1));
  return s;
}

TEST(Join, ResultsMeetKernelsByPathNameAndOrder) {
  std::vector<model::Session> inputs;
  inputs.push_back(results());
  inputs.push_back(timeline());
  const model::Session s = join(std::move(inputs));
  ASSERT_EQ(s.measurements.size(), 7u);
  const auto place = [&](std::size_t i) {
    const model::Measurement& m = s.measurements[i];
    return std::string(s.strings.view(s.kernel_names[m.kernel_name].demangled)) + " #" +
           std::to_string(m.ordinal) + " pid " + std::to_string(s.processes[m.process].pid);
  };
  EXPECT_EQ(place(0), "b() #1 pid 7");
  EXPECT_EQ(place(1), "b() #1 pid 7");
  EXPECT_EQ(place(2), "b() #1 pid 7");  // a third round, though the timeline has two occurrences
  EXPECT_EQ(place(3), "a() #2 pid 7");
  EXPECT_EQ(place(4), "a() #0 pid 7");
  EXPECT_EQ(place(5), "c() #0 pid 7");
  EXPECT_EQ(s.strings.view(s.measurements[0].ranges[0].name), "decode");
  EXPECT_EQ(s.metrics.at(s.measurements[0].values[0].metric).name, "dram__bytes.sum");
  ASSERT_EQ(s.losses.size(), 1u);
  EXPECT_EQ(s.losses[0].kind.id(), "unjoined_results");
  EXPECT_EQ(s.losses[0].count, 2u);
  EXPECT_NE(s.losses[0].detail.find("c in decode, a in nowhere"), std::string::npos)
      << s.losses[0].detail;
}

TEST(Join, ResultsWithoutAUuidAreOfTheGpuOfThatNumberAndName) {
  const auto devices = [](std::string_view uuid, std::string_view name) {
    std::vector<model::Session> sessions;
    sessions.push_back(timeline());
    sessions.push_back(results());
    sessions[0].devices[0].uuid = sessions[0].strings.intern("GPU-1");
    sessions[0].devices[0].name = sessions[0].strings.intern("NVIDIA H200");
    sessions[1].devices.push_back({.process = 0,
                                   .name = sessions[1].strings.intern(name),
                                   .uuid = sessions[1].strings.intern(uuid)});
    return join(std::move(sessions)).devices.size();
  };
  EXPECT_EQ(devices("", "NVIDIA H200"), 1u);
  EXPECT_EQ(devices("", "NVIDIA L4"), 2u);
  EXPECT_EQ(devices("GPU-2", "NVIDIA H200"), 2u);
}

TEST(Join, TimelinesAreLaidSideBySideOnOneClock) {
  std::vector<model::Session> inputs;
  for (int i = 0; i < 2; ++i) {
    inputs.push_back(timeline());
    inputs.back().clock.anchor_unix_ns = 1'000'000 + i * 500;
  }
  const model::Session s = join(std::move(inputs));
  ASSERT_EQ(s.ranges.size(), 4u);
  EXPECT_EQ(s.ranges[2].start_ns, 600);
  EXPECT_EQ(s.ranges[2].thread, 1u);
  EXPECT_EQ(s.end_ns, 1500);
  ASSERT_EQ(s.kernels.size(), 14u);
  EXPECT_EQ(s.kernels[7].launch, 7u);
  EXPECT_EQ(s.launches[s.kernels[7].launch].thread, 1u);
  EXPECT_EQ(s.streams[s.kernels[7].stream].process, 1u);
  EXPECT_EQ(s.kernel_names[s.kernels[7].name].short_name,
            s.kernel_names[s.kernels[0].name].short_name);
  EXPECT_TRUE(s.losses.empty());
}

TEST(Join, RunsFarApartBeginAtOnce) {
  const auto joined = [](std::uint32_t pid) {
    std::vector<model::Session> inputs;
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(timeline());
      inputs.back().clock.anchor_unix_ns = 1'000'000 + i * std::int64_t{60'000'000'000};
    }
    inputs[1].processes[0].pid = pid;
    return join(std::move(inputs));
  };
  const model::Session two = joined(8);
  EXPECT_TRUE(two.far_apart);
  EXPECT_FALSE(joined(7).far_apart) << "captures of one process";
  EXPECT_EQ(two.end_ns, 1000);
  EXPECT_EQ(two.ranges[2].start_ns, 100);
  ASSERT_EQ(two.losses.size(), 1u);
  EXPECT_EQ(two.losses[0].kind.id(), "clocks_not_aligned");
  EXPECT_NE(two.losses[0].detail.find("other processes, 60.00 s apart"), std::string::npos)
      << two.losses[0].detail;
}

TEST(Join, TimeBetweenCapturesOfOneRunIsNotRecorded) {
  constexpr std::int64_t kApart_ns = 60'000'000'000;
  std::vector<model::Session> captures;
  for (int i = 0; i < 3; ++i) {
    captures.push_back(timeline());
    captures.back().clock.anchor_unix_ns = 1'000'000 + i * kApart_ns;
  }
  const model::Session run = join(std::move(captures));
  EXPECT_EQ(run.end_ns - run.begin_ns, 3000);
  ASSERT_EQ(run.windows.size(), 3u);
  EXPECT_EQ(run.windows[1].after_ns, kApart_ns);
  EXPECT_EQ(run.windows[2].after_ns, 2 * kApart_ns);
  EXPECT_EQ(run.windows[2].length_ns, 1000);
  ASSERT_EQ(run.ranges.size(), 6u);
  EXPECT_EQ(run.ranges[2].start_ns, run.ranges[0].start_ns + 1000);
  EXPECT_EQ(run.ranges[4].start_ns, run.ranges[0].start_ns + 2000);
  ASSERT_FALSE(run.losses.empty());
  EXPECT_EQ(run.losses[0].kind.id(), "not_recorded");
}

/// Three programs of a second, a minute after each other, in these run folders.
model::Session three_programs(const std::array<std::string, 3>& folders, bool of_a_job = false) {
  constexpr std::int64_t kMinute_ns = 60'000'000'000, kSecond_ns = 1'000'000'000;
  std::vector<model::Session> captures;
  for (std::uint32_t i = 0; i < 3; ++i) {
    model::Session& capture = captures.emplace_back(timeline());
    capture.clock.anchor_unix_ns = 1'000'000 + i * kMinute_ns;
    capture.end_ns = 10 * kSecond_ns;
    capture.processes[0].pid = 7 + i;
    if (of_a_job)
      capture.processes[0].run = capture.strings.intern(folders[i]);
    const std::string file = folders[i] + "/native/" + std::to_string(7 + i) + ".rstrace";
    capture.sources.push_back({file, "rangescope capture", {}, {}, model::Maker::kRangescope});
  }
  return join(std::move(captures));
}

TEST(Join, TimeBetweenRunsIsInNoShare) {
  const model::Session runs = three_programs({"first", "second", "third"});
  EXPECT_EQ(runs.end_ns - runs.begin_ns, 30'000'000'000);
  ASSERT_EQ(runs.losses.size(), 2u);
  EXPECT_EQ(runs.losses[0].kind.id(), "not_recorded");
  EXPECT_EQ(runs.losses[0].detail, "50.00 s between recordings: in no share");
  // Processes that a run starts one after the other, and runs of one job, have that time.
  const model::Session run = three_programs({"run", "run", "run"});
  const model::Session job = three_programs({"1", "2", "3"}, true);
  for (const model::Session* one : {&run, &job}) {
    EXPECT_EQ(one->end_ns - one->begin_ns, 130'000'000'000);
    EXPECT_TRUE(one->losses.empty());
  }
}

TEST(Join, WhatRanksLoseInTheSameWordsStandsOnce) {
  std::vector<model::Session> inputs;
  for (const char* file : {"a.rstrace", "b.rstrace"}) {
    inputs.push_back(timeline());
    inputs.back().clock.anchor_unix_ns = 1'000'000;
    inputs.back().losses = {{"torn_tail", 1, file}, {"python_late", 3, "too late"}};
  }
  const model::Session s = join(std::move(inputs));
  ASSERT_EQ(s.losses.size(), 3u);
  EXPECT_EQ(s.losses[1].count, 6u);
  EXPECT_EQ(s.losses[2].detail, "b.rstrace");
}

TEST(Join, UnknownClocksAreToldAndTheSameFileTwiceCountsTwice) {
  std::vector<model::Session> inputs;
  inputs.push_back(timeline());
  inputs.push_back(timeline());
  EXPECT_EQ(join(std::move(inputs)).losses.at(0).kind.id(), "clocks_not_aligned");
  const model::Session one = of({"nsys/zoo.sqlite"});
  const model::Session two = of({"nsys/zoo.sqlite", "nsys/work.sqlite"});
  EXPECT_EQ(two.kernels.size(), one.kernels.size() + 3962);
  EXPECT_EQ(two.sources.size(), 2u);
}

model::Session both(model::Session first, model::Session second) {
  std::vector<model::Session> sessions;
  sessions.push_back(std::move(first));
  sessions.push_back(std::move(second));
  return join(std::move(sessions));
}

TEST(Join, ResultsAreOfTheProgramThatTheTimelineShows) {
  const model::Session all = both(timeline(), results());
  EXPECT_EQ(all.processes.size(), 1u);
  for (const model::Measurement& result : all.measurements)
    EXPECT_EQ(result.process, 0u);
}

TEST(Join, FilesOfOneRecordingHaveOneProcess) {
  const auto recording = [](std::int64_t anchor_ns, std::uint32_t pid) {
    model::Session s = timeline();
    s.clock.anchor_unix_ns = 5000;
    s.clock.anchor_ns = anchor_ns;
    s.processes[0].pid = pid;
    s.processes[0].end_ns = 1000;
    return s;
  };
  const model::Session all = both(recording(0, 7), recording(-2000, 7));  // 2 us later
  ASSERT_EQ(all.processes.size(), 1u);
  EXPECT_EQ(all.threads.size(), 1u);
  EXPECT_EQ(all.processes[0].end_ns, 2000) << "without the time between them";
  EXPECT_EQ(both(recording(0, 7), recording(-2000, 8)).processes.size(), 2u);
  EXPECT_EQ(both(recording(0, 7), recording(0, 7)).processes.size(), 2u)
      << "at the same time: of another machine";
}

TEST(Join, MemoryAndEventsKeepTheirCalls) {
  const auto allocating = [] {
    model::Session s = timeline();
    s.memory_events.push_back(
        {.at_ns = 450, .bytes = 64, .process = 0, .thread = 0, .stream = 0, .launch = 6});
    s.memory_events.push_back({.at_ns = 460, .bytes = 64, .process = 0});
    s.event_calls.push_back({.event = 5, .launch = 3, .stream = 0});
    return s;
  };
  const model::Session all = both(allocating(), allocating());
  ASSERT_EQ(all.memory_events.size(), 4u);
  EXPECT_EQ(all.memory_events[2].launch, 13u);
  EXPECT_EQ(all.memory_events[2].process, 1u);
  EXPECT_EQ(all.memory_events[2].stream, 1u);
  EXPECT_EQ(all.memory_events[3].launch, model::kNone);
  EXPECT_EQ(all.memory_events[3].thread, model::kNone);
  ASSERT_EQ(all.event_calls.size(), 2u);
  EXPECT_EQ(all.event_calls[1].launch, 10u);
}

}  // namespace join_test
}  // namespace rangescope::read
