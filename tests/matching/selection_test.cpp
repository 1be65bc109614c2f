// One selection, five readers: what a person writes means the same ranges to the injected library,
// on ncu's command line, at nsys's gate, in the report, and to the doctor. The same for kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"
#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/text.hpp"
#include "collect/native/counter_plan.hpp"
#include "collect/nsight/ncu.hpp"
#include "collect/nsight/nsys.hpp"
#include "doctor/program/facts.hpp"
#include "inject/counters/plan.hpp"
#include "model/measure.hpp"
#include "model/selection.hpp"

namespace rangescope {
namespace {

using Paths = std::set<std::string>;

struct Range {
  std::string domain;
  std::vector<std::string> path;
  model::RangeKind kind = model::RangeKind::kPushPop;

  [[nodiscard]] std::string shown() const {
    return (kind == model::RangeKind::kStartEnd ? "~" : "") + model::path_text(domain, path);
  }
};

/// Every range of the program that all five are asked about.
const std::vector<Range>& program() {
  static const std::vector<Range> ranges = {{"", {"decode"}},
                                            {"", {"decode", "layer_0"}},
                                            {"", {"decode", "layer_0", "attn/qkv [0]"}},
                                            {"", {"decode", "layer_1"}},
                                            {"", {"prefill"}},
                                            {"", {"prefill", "layer_0"}},
                                            {"", {"a > b"}},
                                            {"", {"step"}},
                                            {"", {"step", "step"}},
                                            {"LLM", {"decode_all"}},
                                            {"LLM", {"decode_all", "layer_0"}},
                                            {"", {"request"}, model::RangeKind::kStartEnd},
                                            {"LLM", {"batch"}, model::RangeKind::kStartEnd}};
  return ranges;
}

/// The program as a recording: each path once, one after the other.
model::Session recording() {
  analyze::testing::SessionBuilder b;
  const auto thread = b.thread(b.process(1), 1);
  std::int64_t at = 0;
  for (const Range& range : program()) {
    std::int64_t start = at, end = at + 100;
    for (std::size_t i = 0; i + 1 < range.path.size(); ++i)
      b.range(thread, range.path[i], start++, end--, range.domain);
    b.range(thread, range.path.back(), start, end, range.domain, range.kind);
    at += 1000;
  }
  return std::move(b.session);
}

std::vector<std::string_view> views(const std::vector<std::string>& path) {
  return {path.begin(), path.end()};
}

/// What the injected library measures, told by its plan.
Paths library(const model::RangeSelection& ranges) {
  collect::native::CounterRequest request;
  request.metrics = {"m.sum"};
  request.ranges = ranges;
  const auto text = collect::native::counter_plan(request);
  EXPECT_TRUE(text) << base::to_string(text.error());
  const auto plan = std::make_unique<inject::counters::Plan>();
  char why[256] = {};
  EXPECT_TRUE(parse_plan(text->data(), text->size(), *plan, why, sizeof why)) << why;
  Paths out;
  for (const Range& range : program()) {
    std::vector<inject::counters::Piece> stack;
    for (const std::string& name : range.path)
      stack.push_back({name.data(), name.size()});
    const inject::counters::Piece domain{range.domain.data(), range.domain.size()};
    const bool target = range.kind == model::RangeKind::kStartEnd
                            ? is_start_end_target(*plan, domain, stack[0])
                            : is_target(*plan, domain, stack.data(), stack.size());
    if (target)
      out.insert(range.shown());
  }
  release_plan(*plan);
  return out;
}

collect::Abilities recorded_abilities(const std::string& name) {
  const auto text = base::read_file(std::filesystem::path(base::source_dir) / "conf" / "tools" /
                                    (name + ".json"));
  EXPECT_TRUE(text.has_value());
  return *collect::from_json(*text);
}

collect::Request request_of(const model::RangeSelection& ranges,
                            const model::KernelSelection& kernels = {}) {
  collect::Request request;
  request.command = {"./app"};
  request.cwd = "/";
  request.run_dir = "/run";
  request.ranges = ranges;
  request.kernels = kernels;
  return request;
}

std::vector<std::string> ncu_line(const collect::Request& request) {
  collect::ncu::Options options;
  options.values["set"] = {"basic"};
  const auto plan = collect::ncu::plan(recorded_abilities("ncu-2025.3.1"), options, request);
  EXPECT_TRUE(plan) << base::to_string(plan.error());
  return plan->argv;
}

/// Every value of an option.
std::vector<std::string> values(const std::vector<std::string>& argv, std::string_view option) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < argv.size(); ++i)
    if (argv[i] == option)
      out.push_back(argv[i + 1]);
  return out;
}

/// What ncu begins to measure at, as it reads its own command line (model::RangeExpression has its
/// truth tables).
Paths ncu(const model::RangeSelection& ranges) {
  const std::vector<std::string> argv = ncu_line(request_of(ranges));
  const auto any = [&](const char* option, auto test) {
    const auto texts = values(argv, option);
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      const auto parsed = model::RangeExpression::parse(text);
      EXPECT_TRUE(parsed) << text;
      return parsed && test(*parsed);
    });
  };
  Paths out;
  for (const Range& range : program()) {
    const auto path = views(range.path);
    if (any("--nvtx-include",
            [&](const auto& each) { return each.names_itself(range.domain, path, range.kind); }) &&
        !any("--nvtx-exclude",
             [&](const auto& each) { return each.names_region(range.domain, path, range.kind); }))
      out.insert(range.shown());
  }
  return out;
}

/// nsys's --nvtx-capture, or "" where the one gate that nsys has cannot say it.
std::string gate(const model::RangeSelection& ranges) {
  collect::nsys::Options options;
  options.values["trace"] = {"nvtx"};
  options.gating = true;
  const auto plan =
      collect::nsys::plan(recorded_abilities("nsys-2025.3.1"), options, request_of(ranges));
  if (!plan)
    return {};
  for (const std::string& word : plan->argv)
    if (word.starts_with("--nvtx-capture="))
      return word.substr(word.find('=') + 1);
  return {};
}

/// The outermost regions of the report.
Paths report(const model::Session& session, const model::RangeSelection& ranges) {
  analyze::Options options;
  options.ranges = ranges;
  const auto report = analyze::analyze(session, options);
  Paths out;
  if (!report) {
    EXPECT_EQ(report.error().code, base::Code::kNothingCaptured);
    return out;
  }
  for (const model::Region& region : report->regions)
    if (region.parent == model::kNone)
      out.insert(Range{region.domain, region.path, region.kind}.shown());
  return out;
}

Paths doctor(const model::Session& session, const model::RangeSelection& ranges) {
  const doctor::ProgramFacts facts = doctor::gather(session, ranges);
  Paths out;
  for (const doctor::RangeFacts& range : facts.meant)
    for (const std::size_t seen : range.seen)
      out.insert(Range{facts.ranges[seen].domain, facts.ranges[seen].path, facts.ranges[seen].kind}
                     .shown());
  return out;
}

struct Row {
  std::vector<std::string> include, exclude;
  Paths means;
  std::string nsys = {};
};

TEST(Selection, MeansTheSameToEveryReader) {
  const std::vector<Row> rows = {
      {{"decode"}, {}, {"decode"}, "decode"},
      {{"decode/"}, {}, {"decode"}, "decode"},
      {{"[decode"}, {}, {"decode"}, "decode"},
      {{"decode*"}, {}, {"decode"}},
      {{"LLM@*"}, {}, {"LLM@decode_all", "~LLM@batch"}},
      {{"LLM@decode_all"}, {}, {"LLM@decode_all"}, "decode_all@LLM"},
      {{"*@layer_0"},
       {},
       {"decode > layer_0", "prefill > layer_0", "LLM@decode_all > layer_0"},
       "layer_0@*"},
      {{"layer_0"}, {}, {"decode > layer_0", "prefill > layer_0"}, "layer_0"},
      {{"decode > layer_0"}, {}, {"decode > layer_0"}},
      {{"decode > layer_0 > attn/qkv [0]"}, {}, {"decode > layer_0 > attn/qkv [0]"}},
      {{"decode > layer_*"}, {}, {"decode > layer_0", "decode > layer_1"}},
      {{"LLM@decode_all > layer_0"}, {}, {"LLM@decode_all > layer_0"}},
      {{"step > step"}, {}, {"step > step"}},
      {{"a > b/"}, {}, {"a > b"}, "a > b"},
      {{"layer_0/attn\\/qkv \\[0\\]"}, {}, {"decode > layer_0 > attn/qkv [0]"}},
      {{"layer_1]"}, {}, {"decode > layer_1"}, "layer_1"},
      {{"decode/*/layer_1"}, {}, {"decode > layer_1"}},
      {{"decode/+/attn\\/qkv \\[0\\]"}, {}, {"decode > layer_0 > attn/qkv [0]"}},
      {{"regex:^layer_[01]$/"}, {}, {"decode > layer_0", "decode > layer_1", "prefill > layer_0"}},
      {{"prefill;decode"}, {}, {"decode", "prefill"}},
      {{"request"}, {}, {"~request"}, "request"},
      {{"LLM@batch"}, {}, {"~LLM@batch"}, "batch@LLM"},
      {{"request,request"}, {}, {"~request"}},
      {{"nosuch"}, {}, {}, "nosuch"},
      {{"layer_0"}, {"prefill"}, {"decode > layer_0"}, "layer_0"},
      {{"layer_*"}, {"decode > layer_1", "prefill > layer_0"}, {"decode > layer_0"}},
  };
  const model::Session session = recording();
  for (const Row& row : rows) {
    SCOPED_TRACE(base::join(row.include, " ") + (row.exclude.empty() ? "" : " without ") +
                 base::join(row.exclude, " "));
    const auto ranges = model::RangeSelection::parse(row.include, row.exclude);
    ASSERT_TRUE(ranges) << base::to_string(ranges.error());
    EXPECT_EQ(library(*ranges), row.means) << "library";
    EXPECT_EQ(ncu(*ranges), row.means) << "ncu";
    EXPECT_EQ(gate(*ranges), row.nsys) << "nsys";
    EXPECT_EQ(report(session, *ranges), row.means) << "report";
    EXPECT_EQ(doctor(session, *ranges), row.means) << "doctor";
  }
}

TEST(Selection, EveryPathThatTheReportPrintsIsAnExpressionForIt) {
  const model::Session session = recording();
  for (const Range& range : program()) {
    if (range.path.size() == 1)
      continue;  // a name alone means every range of that name
    const auto ranges = model::RangeSelection::parse({range.shown()});
    ASSERT_TRUE(ranges) << range.shown();
    EXPECT_EQ(report(session, *ranges), Paths{range.shown()});
    EXPECT_EQ(library(*ranges), Paths{range.shown()});
  }
}

TEST(Selection, EveryNthMeansTheSameToTheLibraryAndToNcu) {
  const auto ranges = *model::RangeSelection::parse({"decode"});
  for (const std::uint32_t every :
       {2u, 3u, 4u, 5u, 7u, 8u, 10u, 16u, 25u, 50u, 200u, 1000u, 4096u}) {
    SCOPED_TRACE(every);
    collect::native::CounterRequest counters;
    counters.metrics = {"m.sum"};
    counters.ranges = ranges;
    counters.every = every;
    const auto plan = std::make_unique<inject::counters::Plan>();
    char why[256] = {};
    const std::string text = *collect::native::counter_plan(counters);
    ASSERT_TRUE(parse_plan(text.data(), text.size(), *plan, why, sizeof why)) << why;
    EXPECT_EQ(plan->every, every);
    release_plan(*plan);

    collect::Request request = request_of(ranges);
    request.every = every;
    const auto argv = ncu_line(request);
    const auto filter =
        values(argv, "--range-filter");  // occurrences of the ranges, in kernel replay too
    ASSERT_EQ(filter.size(), 1u);
    ASSERT_TRUE(filter[0].starts_with("::"));
    request.ranges = {};
    const auto id = values(ncu_line(request), "--kernel-id");  // no range: launches of each kernel
    ASSERT_EQ(id, std::vector<std::string>{":" + filter[0]});
    EXPECT_EQ(collect::ncu::kernel_id_mistake(id[0]), "");
    const auto regex = model::NameRegex::parse(filter[0].substr(2));
    ASSERT_TRUE(regex);
    for (std::uint64_t n = 1; n <= std::uint64_t{every} * 999; n += n < 3000 ? 1 : 97)
      ASSERT_EQ(regex->found_in(std::to_string(n)), n % every == 1) << n;
  }
}

struct Kernel {
  std::string demangled, short_name, mangled;
};
using Chosen = std::set<std::size_t>;

/// One launch of each, in one range.
model::Session launches(const std::vector<Kernel>& kernels) {
  analyze::testing::SessionBuilder b;
  const auto process = b.process(1), thread = b.thread(process, 1);
  const auto stream = b.stream(process, b.device(process, 0), 7);
  b.range(thread, "step", 0, 100000);
  std::int64_t at = 0;
  for (const Kernel& kernel : kernels) {
    at += 100;
    b.kernel(b.launch(thread, at, at + 10), kernel.demangled, at + 20, at + 60, stream);
    b.session.kernel_names.back().short_name = b.session.strings.intern(kernel.short_name);
    b.session.kernel_names.back().mangled = b.session.strings.intern(kernel.mangled);
  }
  return std::move(b.session);
}

/// Whose counters the injected library keeps.
Chosen by_library(const std::vector<Kernel>& kernels, const model::KernelSelection& selection) {
  collect::native::CounterRequest request;
  request.metrics = {"m.sum"};
  request.per = "kernel";
  request.ranges = *model::RangeSelection::parse({"step"});
  request.kernels = selection;
  const auto text = collect::native::counter_plan(request);
  EXPECT_TRUE(text) << base::to_string(text.error());
  const auto plan = std::make_unique<inject::counters::Plan>();
  char why[256] = {};
  EXPECT_TRUE(parse_plan(text->data(), text->size(), *plan, why, sizeof why)) << why;
  const auto piece = [](const std::string& name) {
    return inject::counters::Piece{name.data(), name.size()};
  };
  Chosen out;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (chooses_kernel(*plan,
                       piece(kernels[i].demangled),
                       piece(kernels[i].short_name),
                       piece(kernels[i].mangled)))
      out.insert(i);
  release_plan(*plan);
  return out;
}

Chosen by_report(const model::Session& session,
                 const std::vector<Kernel>& kernels,
                 const model::KernelSelection& selection) {
  analyze::Options options;
  options.kernels = selection;
  const auto report = analyze::analyze(session, options);
  Chosen out;
  for (std::size_t i = 0; report && i < kernels.size(); ++i)
    for (const model::KernelRow& row : report->kernels)
      if (row.name == kernels[i].demangled)
        out.insert(i);
  return out;
}

/// Those that the doctor does not say are left out.
Chosen by_doctor(const model::Session& session,
                 const std::vector<Kernel>& kernels,
                 const model::KernelSelection& selection) {
  const doctor::RangeFacts range =
      doctor::gather(session, *model::RangeSelection::parse({"step"}), selection).meant.front();
  Chosen out;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (!range.left_out.contains(kernels[i].demangled))
      out.insert(i);
  EXPECT_EQ(range.kernels, out.size());
  return out;
}

TEST(Selection, KernelsMeanTheSameToEveryReader) {
  const std::vector<Kernel> kernels = {{"void gemm<float>(float *, int)", "gemm", "_Z4gemmIfEvPfi"},
                                       {"void gemm<int>(int *, int)", "gemm", "_Z4gemmIiEvPii"},
                                       {"softmax", "softmax", "softmax"},
                                       {"void ns::gemm_v2(int)", "gemm_v2", "_ZN2ns7gemm_v2Ei"}};
  struct Case {
    std::vector<std::string> include;
    Chosen means;
    std::string name, base;  // of ncu
    std::vector<std::string> exclude = {};
  };
  const std::vector<Case> cases = {
      {{"gemm"}, {0, 1}, "gemm", "function"},
      {{"softmax"}, {2}, "softmax", "function"},
      {{"void gemm<float>(float *, int)"}, {0}, "void gemm<float>(float *, int)", "demangled"},
      {{"_Z4gemmIiEvPii"}, {1}, "_Z4gemmIiEvPii", "mangled"},
      {{"regex:gemm"}, {0, 1, 3}, "regex:gemm", "demangled"},
      {{"regex:^gemm$"}, {0, 1}, "regex:^gemm$", "function"},
      {{"gemm", "softmax"}, {0, 1, 2}, "regex:^gemm$|^softmax$", "function"},
      {{"regex:gemm<", "regex:^softmax$"},
       {0, 1, 2},
       "",
       ""},  // two of a kernel's names: not for one option
      {{}, {1, 2, 3}, "", "", {"void gemm<float>(float *, int)"}},  // ncu cannot leave kernels out
      {{"regex:gemm"}, {3}, "", "", {"gemm"}},
      {{"nosuch"}, {}, "nosuch", "function"},
  };
  const model::Session session = launches(kernels);
  for (const Case& each : cases) {
    SCOPED_TRACE(base::join(each.include, " ") + " without " + base::join(each.exclude, " "));
    const auto selection = model::KernelSelection::parse(each.include, each.exclude);
    ASSERT_TRUE(selection);
    EXPECT_EQ(by_library(kernels, *selection), each.means);
    EXPECT_EQ(by_report(session, kernels, *selection), each.means);
    EXPECT_EQ(by_doctor(session, kernels, *selection), each.means);
    if (!each.exclude.empty())
      continue;
    const auto argv = ncu_line(request_of({}, *selection));
    EXPECT_EQ(values(argv, "--kernel-name"),
              each.name.empty() ? std::vector<std::string>{} : std::vector<std::string>{each.name});
    if (!each.name.empty()) {
      EXPECT_EQ(values(argv, "--kernel-name-base"), std::vector<std::string>{each.base});
    }
    Chosen by_ncu;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const Kernel& kernel = kernels[i];
      const std::string& name = each.base == "function"    ? kernel.short_name
                                : each.base == "demangled" ? kernel.demangled
                                                           : kernel.mangled;
      if (each.name.starts_with("regex:")
              ? model::NameRegex::parse(each.name.substr(6))->found_in(name)
              : each.name.empty() || each.name == name)
        by_ncu.insert(i);
    }
    if (!each.name.empty()) {
      EXPECT_EQ(by_ncu, each.means);
    }
  }
}

}  // namespace
}  // namespace rangescope
