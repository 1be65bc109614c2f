// The doctor's facts about captures that were recorded on an H200: the programs' own truth is what
// must come out.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/source_dir.hpp"
#include "doctor/program/facts.hpp"
#include "doctor/program/program.hpp"
#include "read/registry.hpp"

namespace rangescope::doctor {
namespace {

struct Seen {
  ProgramFacts facts;
  std::vector<std::string> complaints;  ///< ids
};

Seen look(const std::string& capture, const std::vector<std::string>& include) {
  Seen seen;
  const auto session = read::read_any(std::filesystem::path(base::source_dir) / "tests" / "golden" /
                                      "native-gpu" / capture);
  EXPECT_TRUE(session.has_value()) << capture;
  if (!session)
    return seen;
  const auto ranges = model::RangeSelection::parse(include);
  EXPECT_TRUE(ranges.has_value());
  ProgramLook program;
  program.command = {"./app"};
  program.ended.exit_code = 0;
  program.facts = gather(*session, *ranges);
  for (const model::Finding& finding : diagnose(program))
    if (finding.verdict == model::Grade::kFail || finding.verdict == model::Grade::kWarn)
      seen.complaints.push_back(finding.id);
  seen.facts = std::move(program.facts);
  return seen;
}

using Ids = std::vector<std::string>;

TEST(DoctorGolden, ZooHasWhatItSaysOfItself) {
  for (const char* capture : {"zoo", "zoo-12.8", "zoo-callback"}) {
    const Seen decode = look(capture, {"decode/"});
    ASSERT_EQ(decode.facts.meant.size(), 1u);
    const RangeFacts& range = decode.facts.meant[0];
    EXPECT_EQ(range.occurrences, 6u) << capture;
    EXPECT_EQ(range.kernels, 24u) << capture;
    EXPECT_EQ(range.sequences, std::vector<std::uint64_t>{6}) << capture;
    EXPECT_EQ(range.registered, 0u);
    EXPECT_EQ(range.contexts, 1u);
    EXPECT_EQ(decode.complaints, Ids{}) << capture;
    EXPECT_EQ(look(capture, {"prefill/layer1"}).facts.meant[0].kernels, 4u) << capture;
    EXPECT_EQ(look(capture, {"request"}).facts.meant[0].kernels, 32u) << capture;
  }
}

TEST(DoctorGolden, ZoosTraps) {
  EXPECT_EQ(look("zoo", {"decode_all/"}).complaints, Ids{"program.wrong_domain"});
  EXPECT_EQ(look("zoo", {"request/"}).complaints, Ids{"program.wrong_kind"});
  EXPECT_EQ(look("zoo", {"layer9/"}).complaints, Ids{"program.unknown_range"});
  EXPECT_EQ(look("zoo", {"prefill/captured_layer"}).complaints, Ids{"program.wrong_nesting"});
  EXPECT_EQ(look("zoo", {"empty/"}).complaints, Ids{"program.no_work_inside"});
  EXPECT_EQ(look("zoo", {"copies/"}).complaints, Ids{"program.no_work_inside"});
  EXPECT_EQ(look("zoo", {"main_thread/"}).complaints, Ids{"program.work_on_other_threads"});
  const Seen graph = look("zoo", {"graph_replay/"});
  EXPECT_EQ(graph.complaints, Ids{"program.graphs_inside"});
  EXPECT_EQ(graph.facts.meant[0].graph_launches, 4u);
  const Seen late = look("zoo", {"async/"});
  EXPECT_EQ(late.complaints, Ids{});
  EXPECT_EQ(late.facts.meant[0].kernels, 5u);
  EXPECT_EQ(late.facts.meant[0].late_occurrences, 1u);
  const Seen domain = look("zoo", {"LLM@decode_all/"});
  EXPECT_EQ(domain.complaints, Ids{});
  EXPECT_EQ(domain.facts.meant[0].registered, 2u);
}

TEST(DoctorGolden, PyTorch) {
  const Seen decode = look("work", {"decode/"});
  ASSERT_EQ(decode.facts.meant.size(), 1u);
  EXPECT_GT(decode.facts.meant[0].kernels, 0u);
  EXPECT_EQ(decode.facts.meant[0].other_thread_kernels, 0u);
  EXPECT_EQ(look("work", {"decode"}).complaints, decode.complaints);  // without slash: either kind
  // The backward pass is launched by a thread of autograd's own.
  const Seen autograd = look("autograd", {"backward/"});
  EXPECT_EQ(autograd.complaints.empty() ? "" : autograd.complaints.front(),
            "program.work_on_other_threads");
  const Seen two = look("mp", {});
}

}  // namespace
}  // namespace rangescope::doctor
