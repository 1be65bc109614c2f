#include "report/document/cpu_page.hpp"

#include <gtest/gtest.h>

namespace rangescope::report {
namespace {

TEST(CpuPage, WhatNoRangeHoldsHasAPageToo) {
  model::Report report;
  Style style;
  style.cpu = "outside ranges";
  auto page = cpu_page(report, style);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, base::Code::kNothingCaptured);

  model::CpuWork& work = report.cpu_outside.emplace();
  work.samples = 30;
  work.native = {"native", "", 3e6, 1e6};
  work.waiting = {"waiting", "", 1e6, 1e6};
  work.parts = {{"native", "libsetup.so", 3e6, 1e6}, {"waiting", "I/O", 1e6, 1e6}};
  work.functions.push_back({"load", "", "/lib/libsetup.so", 0, false, 3e6, 3e6});
  page = cpu_page(report, style);
  ASSERT_TRUE(page);
  const std::string text = terminal_text(*page, style);
  EXPECT_TRUE(
      text.starts_with("outside ranges: 4.000 ms in all threads, 30 samples of their CPU\n"))
      << text;
  EXPECT_NE(text.find("75.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("load [libsetup.so]"), std::string::npos) << text;

  style.cpu = "outside range";
  page = cpu_page(report, style);
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().hint.find("outside ranges"), std::string::npos) << page.error().hint;
}

TEST(CpuPage, ProcessesOfAScriptAreListedWhereMuchTimeIsOutsideRanges) {
  model::Report report;
  report.run.duration_ns = 1e9;
  model::Region& step = report.regions.emplace_back();
  step.path = {"step"};
  report.processes = {{.pid = 2,
                       .parent_pid = 1,
                       .name = "/usr/bin/python3",
                       .start_ns = 1e8,
                       .end_ns = 4e8,
                       .ranges = 6}};
  report.other_processes = {
      {.pid = 1, .name = "/bin/sh", .end_ns = 1e9},
      {.pid = 4, .parent_pid = 2, .name = "basename", .start_ns = 5e7, .end_ns = 6e7},
      {.pid = 3, .parent_pid = 1, .name = "gzip", .start_ns = 3e8, .end_ns = 1e9}};
  model::Outside outside;
  outside.wall_ns = 0.05e9;
  report.outside = outside;
  EXPECT_TRUE(process_section(report, {}).blocks.empty());
  outside.wall_ns = 0.7e9;
  report.outside = outside;
  Document page;
  page.sections.push_back(process_section(report, {}));
  EXPECT_EQ(terminal_text(page, {}),
            "process       count  from start to exit  ranges\n"
            "sh                1             1.000 s       -\n"
            "  gzip            1            700.0 ms       -\n"
            "  python3         1            300.0 ms       6\n"
            "    basename      1            10.00 ms       -\n");
}

TEST(CpuPage, ARangeIsFoundAsTablesPrintIt) {
  model::Report report;
  const auto add = [&](const std::string& name, model::RangeKind kind) {
    model::Region& region = report.regions.emplace_back();
    region.path = {name};
    region.kind = kind;
    region.cpu.emplace().samples = 1;
  };
  add("two\nlines", model::RangeKind::kPushPop);
  add("request", model::RangeKind::kStartEnd);
  for (const char* name : {"two\nlines", "two\\nlines", "request", "request [start/end]"}) {
    Style style;
    style.cpu = name;
    EXPECT_TRUE(cpu_page(report, style)) << name;
  }
  Style style;
  style.cpu = "two\\nlines [start/end]";
  EXPECT_FALSE(cpu_page(report, style));
}

}  // namespace
}  // namespace rangescope::report
