#include "analyze/counters/useful.hpp"

#include <gtest/gtest.h>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"
#include "analyze/tree/tree.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace useful_test {

using testing::SessionBuilder;

struct Steps : SessionBuilder {
  Steps() {
    const auto t = thread(process(1), 1);
    for (int i = 0; i < 4; ++i) {
      sized(range(t, "step", i * 100, i * 100 + 50 + i), i % 2 == 0 ? 8 : 16);
      range(t, "layer", i * 100 + 1, i * 100 + 20);
    }
    range(t, "step", 900, model::kOpen);  // never ends, and has no payload
  }
  void sized(std::uint32_t index, std::uint64_t payload) {
    model::Attributes attributes;
    attributes.payload_type = model::PayloadType::kUint64;
    attributes.payload_u64 = payload;
    session.ranges[index].attributes = static_cast<std::uint32_t>(session.attributes.size());
    session.attributes.push_back(attributes);
  }
  model::Report report(std::vector<std::string> flops) {
    Options options;
    options.flops = std::move(flops);
    auto made = analyze(session, options);
    EXPECT_TRUE(made) << base::to_string(made.error());
    return made ? std::move(*made) : model::Report{};
  }
};

const model::Region& find(const model::Report& report, const std::string& path) {
  static const model::Region kNone;
  for (const model::Region& region : report.regions) {
    if (!region.process && model::path_text(region) == path)
      return region;
  }
  ADD_FAILURE() << "no region " << path;
  return kNone;
}

TEST(Useful, ANumberIsThatOfEachOccurrence) {
  const auto report = Steps().report({"step=2.5e9"});
  const auto& step = find(report, "step");
  ASSERT_TRUE(step.utilization && step.utilization->useful_flop);
  EXPECT_DOUBLE_EQ(*step.utilization->useful_flop, 2.5e9);
  EXPECT_DOUBLE_EQ(step.utilization->useful_wall_ns, 51.5) << "the median: all have the same to do";
  EXPECT_FALSE(find(report, "step > layer").utilization) << "what is within step is not step";
}

TEST(Useful, WithoutPeaksANoteSaysWhyThereIsNoMfu) {
  Steps steps;
  Options options;
  options.flops = {"step=2e9"};
  const auto has = [&](const char* said) {
    const auto report = answer(steps.session, options, Reference{});
    return report &&
           std::any_of(report->notes.begin(), report->notes.end(), [&](const std::string& note) {
             return note.find(said) != note.npos;
           });
  };
  EXPECT_TRUE(has("no MFU: no GPU was recorded; --device names one"));
  steps.stream(0, steps.device(0, 0, "GPU-1"), 7);
  EXPECT_TRUE(has("no MFU: no peaks are known for GPU;"));
  options.flops.clear();
  EXPECT_FALSE(has("no MFU"));
}

TEST(Work, GivesRatesInItsUnit) {
  Options options;
  options.work = {"step=2 tokens", "layer = 1.5 * 2 big batches"};
  Steps steps;
  const auto report = analyze(steps.session, options);
  ASSERT_TRUE(report) << base::to_string(report.error());
  const model::Metric& rate = find(*report, "step").metrics.at("tokens/s");
  EXPECT_DOUBLE_EQ(rate.value, 2 / 51.5e-9) << "the median of 50, 51, 52 and 53 ns";
  EXPECT_DOUBLE_EQ(rate.min, 2 / 53e-9);
  EXPECT_DOUBLE_EQ(rate.max, 2 / 50e-9);
  EXPECT_EQ(rate.rounds, 4);
  EXPECT_DOUBLE_EQ(*find(*report, "step").utilization->useful_tokens, 2);
  EXPECT_DOUBLE_EQ(find(*report, "step > layer").metrics.at("big batches/s").value, 3 / 19e-9);
  EXPECT_FALSE(find(*report, "step").metrics.contains("J/token")) << "no energy was sampled";
  ASSERT_EQ(report->metric_columns.size(), 2u);
  EXPECT_EQ(report->metric_columns[0].title, "tokens/s");
}

TEST(Work, OfPayloadsIsTheMean) {
  Options options;
  options.work = {"step=payload queries"};
  Steps steps;
  const auto report = analyze(steps.session, options);
  ASSERT_TRUE(report) << base::to_string(report.error());
  EXPECT_DOUBLE_EQ(find(*report, "step").metrics.at("queries/s").value, 12 / 51.5e-9);
}

TEST(Work, OfAFieldOfAStructuredPayload) {
  Steps steps;
  for (std::uint32_t range = 0; range < steps.session.ranges.size(); ++range) {
    if (steps.session.strings.view(steps.session.ranges[range].name) != "step")
      continue;
    steps.session.payload_fields.push_back(
        {range, steps.session.strings.intern("batch"), model::PayloadType::kUint64, 7});
    steps.session.payload_fields.push_back(
        {range, steps.session.strings.intern("tokens"), model::PayloadType::kUint64, 3});
  }
  Options options;
  options.work = {"step=2*payload.tokens tokens", "layer=payload.tokens images"};
  const auto report = analyze(steps.session, options);
  ASSERT_TRUE(report) << base::to_string(report.error());
  EXPECT_DOUBLE_EQ(find(*report, "step").metrics.at("tokens/s").value, 6 / 51.5e-9);
  const auto& layer = find(*report, "step > layer");
  EXPECT_FALSE(layer.metrics.contains("images/s"));
  EXPECT_NE(layer.notes.at(0).find("no work by"), std::string::npos) << layer.notes[0];
}

TEST(Work, WrongOnesSayHowToWriteThem) {
  for (const auto& [written, said] : {std::pair{"step=2", "no unit in"},
                                      {"step=token", "no unit in"},
                                      {"=2 token", "no range and work in"},
                                      {"step=2 * tokens images", "not 'tokens'"},
                                      {"step=(2 token", "--work step=(2 token"}}) {
    const auto rules = parse_work({written}, {});
    ASSERT_FALSE(rules) << written;
    EXPECT_NE(base::to_string(rules.error()).find(said), std::string::npos)
        << base::to_string(rules.error());
    EXPECT_NE(rules.error().hint.find("decode=1 token"), std::string::npos);
  }
  EXPECT_EQ(parse_work({}, {"step=8"})->front().unit, "token");
}

TEST(Useful, AFormulaIsAveragedOverPayloads) {
  const auto report = Steps().report({"step/=10*payload"});
  const auto& use = *find(report, "step").utilization;
  EXPECT_DOUBLE_EQ(*use.useful_flop, 10 * (8 + 16) / 2.0);
  EXPECT_DOUBLE_EQ(use.useful_wall_ns, (50 + 51 + 52 + 53) / 4.0)
      << "the mean, as that of the FLOPs";
}

TEST(Useful, TheTransformer) {
  // 2 tokens, 2 * 1000 parameters each, 4 * 3 layers * 5 hidden * 8 positions for attention; three
  // times for training.
  const auto report =
      Steps().report({"step=transformer(params=1000, layers=3, hidden=5, tokens=2, "
                      "context=payload/2*0+8, train=1)"});
  EXPECT_DOUBLE_EQ(*find(report, "step").utilization->useful_flop,
                   3 * 2 * (2 * 1000 + 4 * 3 * 5 * 8));
}

TEST(Useful, WithoutThePayloadThereIsAReasonAndNoNumber) {
  const auto report = Steps().report({"layer=payload", "nosuch=1"});
  const auto& layer = find(report, "step > layer");
  EXPECT_FALSE(layer.utilization);
  ASSERT_EQ(layer.notes.size(), 1u);
  EXPECT_NE(layer.notes[0].find("4 of 4 instances without a payload"), std::string::npos)
      << layer.notes[0];
  EXPECT_TRUE(std::any_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
    return note.find("'nosuch=1' matched no region") != note.npos;
  }));
}

TEST(Useful, MistakesAreSaid) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"2.5e9", "no range"},
      {"=2", "no range"},
      {"step=", "formula"},
      {"step=2+", "formula"},
      {"step=tokens*2", "'tokens'"},
      {"step=transformer(param=7e9)", "'param=7e9'"},
      {"step=transformer(layers=2)", "needs params"},
      {"step=transformer(params=7e9", "not closed"},
      {"step=transformer(params=1,train=2)", "train"},
      {"regex:[=1", ""},
  };
  for (const auto& [text, part] : wrong) {
    const auto parsed = parse_useful({text});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, base::Code::kUsage) << text;
    EXPECT_NE(parsed.error().what.find(part), std::string::npos)
        << text << ": " << parsed.error().what;
  }
}

TEST(ByPayload, OccurrencesOfDifferentSizesAreDifferentRegions) {
  Steps steps;
  name_by_payload(steps.session);
  Options options;
  options.ranges = *model::RangeSelection::parse({"step/"});
  options.flops = {"step=3*payload"};
  const auto report = analyze(steps.session, options);
  ASSERT_TRUE(report) << base::to_string(report.error());
  EXPECT_EQ(find(*report, "step [8]").occurrences, 2);
  EXPECT_EQ(find(*report, "step [16]").occurrences, 2);
  EXPECT_EQ(find(*report, "step [16] > layer").occurrences, 2);
  EXPECT_EQ(find(*report, "step").unclosed, 1) << "without a payload a range keeps its name";
  EXPECT_DOUBLE_EQ(*find(*report, "step [16]").utilization->useful_flop, 48)
      << "--flops still says step";
}

}  // namespace useful_test
}  // namespace rangescope::analyze
