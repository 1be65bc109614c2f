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
