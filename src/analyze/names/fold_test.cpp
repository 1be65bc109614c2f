#include "analyze/names/fold.hpp"
#include "analyze/analyze.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace fold_test {

using testing::SessionBuilder;

std::string cut(std::string_view name) {
  return folded_name(name, FoldNames::kAuto);
}
std::string counted(std::string_view name) {
  return folded_name(name, FoldNames::kNumbers);
}
NameFolder folder(FoldNames how,
                  const std::vector<std::string>& include = {},
                  const std::vector<std::string>& exclude = {}) {
  return {how, *model::RangeSelection::parse(include, exclude)};
}

TEST(FoldedName, CutsWhatEmitNvtxWrites) {
  EXPECT_EQ(cut("aten::addmm, op_id = 23"), "aten::addmm");
  EXPECT_EQ(cut("aten::mm, seq = 12, op_id = 34"), "aten::mm");
  EXPECT_EQ(cut("aten::mm, seq = 12, op_id = 34, sizes = [[4, 8], [8, 2]], input_op_ids = [(21,0), "
                "(0,-1)]"),
            "aten::mm");
  EXPECT_EQ(cut("aten::relu, op_id = 5, sizes = [[], [128]], input_op_ids = [(4,0)]"),
            "aten::relu");
  EXPECT_EQ(cut("autograd::engine::evaluate_function: AddmmBackward0, op_id = 12"),
            "autograd::engine::evaluate_function: AddmmBackward0");
  EXPECT_EQ(cut("Optimizer.step#SGD.step, op_id = 90"), "Optimizer.step#SGD.step");
  EXPECT_EQ(cut("addmm, seq = 7"), "addmm");                            // PyTorch 1.0
  EXPECT_EQ(cut("conv2d, seq = 7, sizes = [[1, 3, 8, 8]]"), "conv2d");  // 1.8
  EXPECT_EQ(cut("my, range, op_id = 3"), "my, range");
  EXPECT_EQ(cut("step 17, op_id = 3"), "step 17");
}

/// Names of XLA: of its sources and of public recordings.
TEST(FoldedName, OfXlaAreTheModuleAndTheHlo) {
  EXPECT_EQ(cut("TSL:XlaModule:#hlo_module=jit_step,program_id=7#"), "XlaModule: jit_step");
  EXPECT_EQ(cut("XlaModule:#prefix=jit(step)/jit(main),hlo_module=jit_step,program_id=12#"),
            "XlaModule: jit_step");
  EXPECT_EQ(cut("Thunk:#hlo_op=fusion.3#"), "Thunk: fusion.3");
  EXPECT_EQ(cut("Thunk:#hlo_op=fusion.3,hlo_module=jit_step,program_id=7#"), "Thunk: fusion.3");
  EXPECT_EQ(cut("Thunk:#name=/dot_general,hlo_op=gemm.1#"), "Thunk: gemm.1");
  EXPECT_EQ(cut("XlaCompile:#module=jit_step,program_id=3#"), "XlaCompile: jit_step");
  EXPECT_EQ(cut("TSL:XlaPass:#name=fusion#"), "XlaPass: fusion");
  EXPECT_EQ(counted("Thunk:#hlo_op=fusion.3#"), "Thunk: fusion.#");
  for (const char* name :
       {"XlaModule:#", ":##", "XlaModule:#hlo_module=#", "a:#b#", "step #3", "Thunk:#hlo_op=a"})
    EXPECT_EQ(cut(name), name);
}

TEST(FoldedName, KeepsWhatEmitNvtxDoesNotWrite) {
  for (const char* name : {"",
                           "aten::mm",
                           "iter 17",
                           "op_id = 23",
                           ", op_id = 23",
                           "aten::mm, op_id = ",
                           "aten::mm, op_id = x",
                           "aten::mm, op_id = -1",
                           "aten::mm,op_id = 23",
                           "aten::mm, op_id=23",
                           "aten::mm, op_id = 23 ",
                           "aten::mm, op_id = 23, seq = 12, more",
                           "aten::mm, sizes = []",
                           "aten::mm, sizes = [4, 8]",
                           "aten::mm, sizes = [[4,8]]",
                           "aten::mm, sizes = [[4, 8]",
                           "aten::mm, sizes = [[4, 8], ]",
                           "aten::mm, input_op_ids = []",
                           "aten::mm, input_op_ids = [(21, 0)]",
                           "aten::mm, input_op_ids = [(21)]",
                           "aten::mm, id = 4",
                           "layer[0]",
                           "f, seq = 1, 2"})
    EXPECT_EQ(cut(name), name);
  // In another order only the last part is PyTorch's.
  EXPECT_EQ(cut("aten::mm, op_id = 23, seq = 12"), "aten::mm, op_id = 23");
  EXPECT_EQ(cut("x, op_id = 3, op_id = 4"), "x, op_id = 3");
  EXPECT_EQ(folded_name("aten::mm, op_id = 23", FoldNames::kOff), "aten::mm, op_id = 23");
}

TEST(FoldedName, WritesNumbersOfTheirOwnAsOne) {
  EXPECT_EQ(counted("iter 17"), "iter #");
  EXPECT_EQ(counted("ProfilerStep#17"), "ProfilerStep#");
  EXPECT_EQ(counted("step_3"), "step_#");
  EXPECT_EQ(counted("step_3_forward"), "step_#_forward");
  EXPECT_EQ(counted("iteration 1000"), "iteration #");
  EXPECT_EQ(counted("17"), "#");
  EXPECT_EQ(counted("layer0"), "layer#");
  EXPECT_EQ(counted("Layer12.attn"), "Layer#.attn");
  EXPECT_EQ(counted("model.layers.0.mlp"), "model.layers.#.mlp");
  EXPECT_EQ(counted("expert[7]"), "expert[#]");
  EXPECT_EQ(counted("epoch=3, batch=0012"), "epoch=#, batch=#");
  EXPECT_EQ(counted("step 4/100"), "step #/#");
  EXPECT_EQ(counted("step 17, op_id = 3"), "step #");
}

TEST(FoldedName, KeepsDigitsThatSayWhatItIs) {
  for (const char* name : {"aten::conv2d",
                           "fp16",
                           "BF16",
                           "sha256",
                           "int8",
                           "gemm_int8",
                           "cast float32",
                           "utf8",
                           "f16",
                           "h100",
                           "v2",
                           "w8a8",
                           "e4m3",
                           "64x64",
                           "0x7f",
                           "3d",
                           "17ms",
                           "none"})
    EXPECT_EQ(counted(name), name);
  EXPECT_EQ(counted("conv2d_3"), "conv2d_#");
  EXPECT_EQ(counted("int8 gemm 4"), "int8 gemm #");
}

TEST(FoldedName, WritesHexadecimalIdsAsOne) {
  EXPECT_EQ(counted("req-3fa9c1b2"), "req-#");
  EXPECT_EQ(counted("tensor 0x7f3a9c0012d0"), "tensor #");
  EXPECT_EQ(counted("0xDEADBEEF"), "#");
  EXPECT_EQ(counted("job 550e8400-e29b-41d4-a716-446655440000"), "job #-#-#-#-#");
  EXPECT_EQ(counted("decode_1a2b3c4d.attn"), "decode_#.attn");
  for (const char* name :
       {"facade", "decade_feed", "0x7f", "e5m2", "fp8_e4m3", "b2b", "abcdef-relu"})
    EXPECT_EQ(counted(name), name);
}

struct Torch : SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 1);
};

TEST(Fold, OccurrencesOfOneOperatorAreOneRegion) {
  Torch b;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t at = i * 100;
    b.range(b.t, "step", at, at + 90);
    b.range(b.t, "aten::linear, op_id = " + std::to_string(10 + 2 * i), at + 10, at + 30 + i);
    b.range(b.t, "aten::mm, seq = 3, op_id = " + std::to_string(11 + 2 * i), at + 12, at + 20);
  }
  EXPECT_EQ(analyze(b.session)->regions.size(), 1 + 5 + 5);
  EXPECT_EQ(folder(FoldNames::kAuto).fold(b.session),
            "10 range names were folded to 2 names (seq, op_id and sizes of PyTorch's emit_nvtx "
            "were cut off); "
            "--fold-names off keeps them");
  const auto report = analyze(b.session);
  ASSERT_EQ(report->regions.size(), 3);
  EXPECT_EQ(report->regions[1].path, (std::vector<std::string>{"step", "aten::linear"}));
  EXPECT_EQ(report->regions[1].occurrences, 5);
  EXPECT_EQ(report->regions[1].wall.per_occurrence_ns.median, 22);
  EXPECT_EQ(report->regions[2].path.back(), "aten::mm");
  EXPECT_EQ(report->regions[2].occurrences, 5);
  EXPECT_EQ(folder(FoldNames::kAuto).fold(b.session), "");  // nothing is left to fold
}

TEST(Fold, ANameThatAnExpressionSaysAsRecordedStays) {
  const auto paths =
      [](std::vector<std::string> include, std::vector<std::string> exclude, std::string* note) {
        Torch b;
        for (int i = 0; i < 3; ++i)
          b.range(b.t, "iter " + std::to_string(i), i * 10, i * 10 + 5);
        Options options;
        options.ranges = *model::RangeSelection::parse(include, exclude);
        const std::string said = folder(FoldNames::kNumbers, include, exclude).fold(b.session);
        if (note != nullptr)
          *note = said;
        const auto report = analyze(b.session, options);
        std::vector<std::string> out;
        for (const auto& region : report->regions)
          out.push_back(region.path.back() + " x" + std::to_string(region.occurrences));
        return out;
      };
  using Paths = std::vector<std::string>;
  std::string note;
  EXPECT_EQ(paths({}, {}, nullptr), Paths{"iter # x3"});
  EXPECT_EQ(paths({}, {"iter 0/"}, &note), Paths{"iter # x2"});
  EXPECT_TRUE(
      note.ends_with("keeps them. 1 name stayed as recorded: --include or --exclude names them so"))
      << note;
  EXPECT_EQ(paths({"iter 1/"}, {}, nullptr), Paths{"iter 1 x1"});
  EXPECT_EQ(paths({"iter #/"}, {}, nullptr), Paths{"iter # x3"});
  EXPECT_EQ(paths({"regex:^iter/"}, {}, nullptr), Paths{"iter # x3"});
}

TEST(Fold, PathsOfResultsAndOfGraphNodes) {
  Torch b;
  b.session.metrics.push_back({"dram__bytes.sum", "byte", "ncu"});
  for (std::uint64_t i = 1; i <= 3; ++i) {
    model::Measurement result;
    result.kernel_name = b.kernel_name("gemm");
    const std::string name = "aten::mm, op_id = " + std::to_string(i);
    result.ranges = {{0, b.session.strings.intern(name), model::RangeKind::kPushPop, i, false}};
    result.values = {{0, 100.0 * static_cast<double>(i)}};
    b.session.measurements.push_back(result);
    b.session.captured_paths.push_back(result.ranges);
  }
  EXPECT_NE(folder(FoldNames::kAuto).fold(b.session), "");
  const auto report = analyze(b.session);
  ASSERT_EQ(report->regions.size(), 1);
  EXPECT_EQ(report->regions[0].path.back(), "aten::mm");
  EXPECT_EQ(report->regions[0].occurrences, 3);
  EXPECT_EQ(report->regions[0].metrics.at("dram__bytes.sum").value, 200);
  EXPECT_EQ(b.session.strings.view(b.session.captured_paths[2][0].name), "aten::mm");
}

TEST(Fold, KernelsThatAreNamedSoKeepTheirNames) {
  Torch b;
  b.range(b.t, "iter 17", 0, 10);
  b.kernel_name("kernel 17");
  EXPECT_NE(folder(FoldNames::kNumbers).fold(b.session), "");
  EXPECT_EQ(b.session.strings.view(b.session.kernel_names[0].demangled), "kernel 17");
}

TEST(Fold, TotalsByNameAreAddedUp) {
  SessionBuilder b;
  const auto name = [&](std::string_view text) { return b.session.strings.intern(text); };
  auto& summary = b.session.summary;
  for (int i = 0; i < 2; ++i) {
    const std::string suffix = ", op_id = " + std::to_string(i + 1);
    model::RangeSummary range;
    range.name = name("aten::mm" + suffix);
    range.occurrences = 1 + i;
    range.total_ns = 100.0 * (1 + i);
    range.per_occurrence_ns = {100, 100, 90.0 + i, 110.0 + i, 5};
    summary.ranges.push_back(range);
    for (const char* kernel : {"gemm", "split"}) {  // of a range that no table of ranges has
      model::KernelSummary row;
      row.in_range = true;
      row.range = name("aten::bmm" + suffix);
      row.name = name(kernel);
      row.calls = 4;
      row.total_ns = 40;
      row.occurrences = 2 + i;
      row.pid = row.tid = 7;
      summary.kernels.push_back(row);
    }
  }
  EXPECT_NE(folder(FoldNames::kAuto).fold(b.session), "");
  const auto report = analyze(b.session);
  ASSERT_EQ(report->regions.size(), 2);
  const model::Region &mm = report->regions[0], &bmm = report->regions[1];
  EXPECT_EQ(mm.path.back(), "aten::mm");
  EXPECT_EQ(mm.occurrences, 3);
  EXPECT_EQ(mm.wall.inclusive_ns, 300);
  EXPECT_EQ(mm.wall.per_occurrence_ns.mean, 100);
  EXPECT_EQ(mm.wall.per_occurrence_ns.min, 90);
  EXPECT_EQ(mm.wall.per_occurrence_ns.max, 111);
  EXPECT_TRUE(std::isnan(mm.wall.per_occurrence_ns.median));
  EXPECT_EQ(bmm.path.back(), "aten::bmm");
  EXPECT_EQ(bmm.occurrences, 5);
  EXPECT_EQ(bmm.gpu->kernels, 16);
}

/// Of as many names as asked for, without a digit in them.
model::Session many_names(std::size_t count, bool numbered) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = "iter " + std::to_string(i);
    if (!numbered)
      for (char& c : name)
        if (c >= '0' && c <= '9')
          c = static_cast<char>('a' + (c - '0'));
    b.range(t,
            name,
            static_cast<std::int64_t>(20 * i),
            static_cast<std::int64_t>(20 * i + (i < 5 ? 1 : 10)));
  }
  return std::move(b.session);
}

TEST(ManyNames, NumbersBecomeOneRegion) {
  model::Session session = many_names(kMostNames + 1, true);
  const auto report = answer(session, {}, {});
  ASSERT_EQ(report->regions.size(), 1u);
  EXPECT_EQ(report->regions[0].path.back(), "iter #");
  EXPECT_EQ(report->losses.at(0).kind.id(), "folded_names");
  EXPECT_EQ(report->losses.at(0).count, kMostNames);
}

TEST(ManyNames, ThoseWithTheLeastTimeAreCountedTogether) {
  model::Session session = many_names(kMostNames + 5, false);
  const auto report = answer(session, {}, {});
  ASSERT_EQ(report->regions.size(), kMostNames + 1);
  EXPECT_EQ(report->regions[0].path.back(), "(5 other names)");
  EXPECT_EQ(report->regions[0].occurrences, 5);
  EXPECT_EQ(report->regions[0].wall.inclusive_ns, 5);
  EXPECT_EQ(report->losses.at(0).count, 5u);
}

TEST(ManyNames, StayWhereThatIsAskedFor) {
  model::Session session = many_names(kMostNames + 1, true);
  Options options;
  options.fold_names = FoldNames::kOff;
  EXPECT_EQ(answer(session, options, {})->regions.size(), kMostNames + 1);
  options.fold_names = FoldNames::kAuto;
  options.ranges = *model::RangeSelection::parse({"iter 17/"});
  const auto report = answer(session, options, {});
  ASSERT_EQ(report->regions.size(), 1u);
  EXPECT_EQ(report->regions[0].path.back(), "iter 17");
}

}  // namespace fold_test
}  // namespace rangescope::analyze
