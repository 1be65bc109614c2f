// What the verdict says of the recordings alone: does the first line name the fix that was made,
// and does the saving that it predicts come true? Nothing in here chooses a change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/analyze.hpp"
#include "base/source_dir.hpp"
#include "read/registry.hpp"

namespace rangescope {
namespace cures_test {

/// Of a recording: the cure that is its fix, and the realised share of the loop.
struct Truth {
  const char* name;
  const char* cure;
  double saves_low, saves_high;
};

constexpr Truth kSeeds[] = {
    {"launch", "cuda_graph", 0.84, 0.88},
    {"copies", "pageable_copies", 0.85, 0.86},
    {"sync", "values_read", 0.36, 0.52},
    {"tf32", "fp32_products", 0.87, 0.87},
    {"loader", "batches_on_main_thread", 0.77, 0.81},
    {"fusion", "pointwise_chain", 0.91, 0.91},
    {"attention", "attention_by_hand", 0.89, 0.89},
    {"layout", "layout_conversions", 0.30, 0.30},
    {"alloc-sampled", "allocations", 0.73, 0.86},
    {"optimizer", "optimizer_one_by_one", 0.95, 0.96},
};

constexpr double saved(double before_ms, double after_ms) {
  return 1 - after_ms / before_ms;
}

constexpr Truth truth_of(const char* name, const char* cure, double before_ms, double after_ms) {
  return {name, cure, saved(before_ms, after_ms), saved(before_ms, after_ms)};
}

constexpr Truth kOthers[] = {
    truth_of("bf16", "fp32_products", 334.68, 22.22),
    truth_of("bmm", "products_one_by_one", 88.21, 0.73),
    truth_of("branches", "side_by_side", 68.80, 9.79),
    truth_of("casts", "weight_casts", 12.25, 5.41),
    truth_of("cat", "grown_cache", 69.23, 26.80),
    truth_of("clipping", "clipping_one_by_one", 236.94, 43.94),
    truth_of("cpuindex-sampled", "cpu_indexing", 171.18, 1.49),
    truth_of("entropy", "cross_entropy_by_hand", 70.73, 11.88),
    truth_of("gelu", "pointwise_chain", 40.17, 3.83),
    truth_of("logging", "values_read", 31.04, 25.64),
    truth_of("mask", "mask_indexing", 44.20, 17.78),
    truth_of("onehot", "one_hot_product", 6.73, 1.08),
    truth_of("pinning-sampled", "pinned_allocations", 75.94, 49.22),
    truth_of("rmsnorm", "normalization_by_hand", 21.12, 2.84),
    truth_of("samples", "products_one_by_one", 412.81, 6.51),
    truth_of("smallcopies", "small_copies", 90.71, 0.22),
    truth_of("synced", "synchronizations", 25.88, 17.44),
    truth_of("transposed", "transposed_copies", 36.40, 8.09),
    truth_of("unaligned", "unaligned_products", 35.93, 7.42),
    truth_of("zeroing", "zeroing_one_by_one", 88.47, 2.66),
};

/// Recorded after the cures had been written.
constexpr Truth kUnseen[] = {
    truth_of("augment", "batches_on_main_thread", 1610.10, 434.05),
    truth_of("fp32mlp", "fp32_products", 168.32, 28.35),
    truth_of("layernorm", "normalization_by_hand", 36.06, 2.59),
    truth_of("maskedattention", "attention_by_hand", 26.62, 2.04),
    truth_of("swiglu", "pointwise_chain", 23.47, 5.46),
};

/// Programs of tests/gpu/savings_program.py: training, where a thread of autograd launches the
/// backward pass, and decoding. After `mlptrain`, `gptdecode` and `crossattn` nothing was mended.
constexpr Truth kTrainingAndDecoding[] = {
    truth_of("causal", "attention_by_hand", 81.0, 2.4),
    truth_of("convnet", "layout_conversions", 428.0, 160.4),
    truth_of("crossattn", "attention_by_hand", 23.0, 4.9),
    truth_of("gptdecode", "cuda_graph", 181.9, 24.0),
    truth_of("graphtrain", "cuda_graph", 236.1, 22.9),
    truth_of("llamadecode", "cuda_graph", 764.1, 65.0),
    truth_of("mlptrain", "fp32_products", 617.4, 127.8),
};

/// The peaks of conf/device/h100-sxm.yaml, and what tracing costs of conf/replay/costs.yaml.
analyze::Reference h100() {
  model::Peaks peaks;
  peaks.id = "h100-sxm";
  peaks.match = {"NVIDIA H100 80GB HBM3"};
  peaks.memory_bytes_per_s = 3.35e12;
  peaks.host_link_bytes_per_s = 63e9;
  peaks.flop_per_s = {{"fp32", 66.9e12}, {"tensor_tf32", 494.7e12}, {"tensor_fp16", 989.4e12}};
  analyze::Reference reference;
  reference.peaks.push_back(peaks);
  reference.replay_costs = {
      {1'300, 1'300, 2'800}, {5'000, 3'000, 10'000}, {33'000, 25'000, 44'000}, {0.83, 0.76, 0.87}};
  return reference;
}

model::Report report_of(std::string_view name) {
  const auto path = std::filesystem::path(base::source_dir) / "tests/golden/savings" / name;
  auto session = read::read_any(path);
  if (!session)
    return {};
  auto report = analyze::answer(*session, {}, h100());
  return report ? std::move(*report) : model::Report{};
}

/// How many of them were right, by what the first line says.
struct Score {
  int causes = 0, savings = 0;
};

Score score_of(std::span<const Truth> truths) {
  Score score;
  for (const Truth& truth : truths) {
    const model::Report report = report_of(truth.name);
    if (report.verdict.empty())
      continue;
    const model::Verdict& first = report.verdict.front();
    const bool is_cause = first.cure == truth.cure;
    double share = 0;
    if (is_cause)
      share = *first.saves_ns / first.after->before_ns;
    const double allowed = std::max(0.05, 0.10 * truth.saves_high);
    const bool is_saving =
        is_cause && share >= truth.saves_low - allowed && share <= truth.saves_high + allowed;
    score.causes += is_cause ? 1 : 0;
    score.savings += is_saving ? 1 : 0;
    std::printf("%-11s %s %s saves %5.1f %% (truth %4.1f to %4.1f)\n",
                truth.name,
                is_cause ? "cause" : "-----",
                is_saving ? "saving" : "------",
                100 * share,
                100 * truth.saves_low,
                100 * truth.saves_high);
    for (const model::Verdict& line : report.verdict)
      std::printf("    %s [%s] %s: %s\n",
                  line.kind.c_str(),
                  line.cure.c_str(),
                  line.path.c_str(),
                  line.text.c_str());
  }
  return score;
}

TEST(Cures, OfTheSeedRecordingsTheFirstLineComesTrue) {
  const Score score = score_of(kSeeds);
  EXPECT_EQ(score.causes, 10);
  EXPECT_GE(score.savings, 9);
}

TEST(Cures, OfTheOtherRecordings) {
  const Score score = score_of(kOthers);
  EXPECT_GE(score.causes, 19);
  EXPECT_GE(score.savings, 16);
}

TEST(Cures, OfTrainingAndDecoding) {
  const Score score = score_of(kTrainingAndDecoding);
  EXPECT_EQ(score.causes, 7);
  EXPECT_EQ(score.savings, 7);
}

TEST(Cures, OfRecordingsMadeLater) {
  const Score score = score_of(kUnseen);
  EXPECT_EQ(score.causes, 5);
  EXPECT_GE(score.savings, 3);
}

}  // namespace cures_test
}  // namespace rangescope
