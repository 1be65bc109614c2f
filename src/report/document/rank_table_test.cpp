// What each rank of a job runs, and which rank a collective waits for.
#include "report/document/rank_table.hpp"

#include <gtest/gtest.h>

#include "report/document/findings.hpp"
#include "report/document/region_table.hpp"
#include "report/document/report_document.hpp"

namespace rangescope::report {
namespace rank_table_test {

/// Two ranks, of which the second one comes late to each of ten calls.
model::Report job() {
  model::Report report;
  report.run.duration_ns = 1e9;
  for (std::uint32_t number = 0; number < 2; ++number) {
    model::Rank& rank = report.ranks.emplace_back();
    rank.rank = number;
    rank.functions.push_back({{"work", "/home/u/job.c", 6}, 1e8, 2e7});
  }
  report.ranks[1].functions.push_back({{"extra_work", "/home/u/job.c", 7}, 5e8, 3e8});
  model::Region& region = report.regions.emplace_back();
  region.path = {"MPI_Allreduce"};
  region.domain = "MPI";
  region.occurrences = 20;
  region.wall.inclusive_ns = 6e8;
  model::OverRanks over;
  over.count = 2;
  over.slowest = 0;  // in the call for the longest time: it came first
  over.slowest_in = over.compared = 10;
  region.ranks = over;
  model::Communication calls;
  calls.calls = 20;
  calls.time_ns = 6e8;
  calls.wait_ns = 5.9e8;
  calls.held_up_by = {{1, 10, 5.9e8}};
  region.communication = calls;
  model::Verdict& verdict = report.verdict.emplace_back();
  verdict.kind = "straggler";
  verdict.text = "rank 1 arrives late";
  verdict.next = "rangescope report job --per-rank";
  return report;
}

TEST(RankTable, FunctionsOfTheRankWithMostCpuTimeComeFirst) {
  Document page;
  page.sections.push_back(rank_function_section(job(), 8));
  EXPECT_EQ(terminal_text(page, {}),
            "function, with the libraries that it calls  rank       CPU  waits for a CPU\n"
            "extra_work (job.c:7)                           1  500.0 ms         300.0 ms\n"
            "work (job.c:6)                                 1  100.0 ms         20.00 ms\n"
            "work (job.c:6)                                 0  100.0 ms         20.00 ms\n");
}

TEST(RankTable, PerRankShowsFunctionsAndDoesNotNameItselfAsTheNextStep) {
  const model::Report report = job();
  Style style;
  const auto text = [&] { return terminal_text(*report_document(report, style), style); };
  EXPECT_NE(text().find("next: rangescope report job --per-rank"), std::string::npos) << text();
  EXPECT_EQ(text().find("extra_work"), std::string::npos) << text();
  style.per_rank = true;
  EXPECT_EQ(text().find("next: "), std::string::npos) << text();
  EXPECT_NE(text().find("extra_work (job.c:7)"), std::string::npos) << text();
}

TEST(RankTable, ACollectiveThatMostlyWaitsNamesTheLateRank) {
  model::Report report = job();
  Style style;
  style.columns = {"ranks.slowest"};
  const auto text = [&] { return terminal_text(*report_document(report, style), style); };
  EXPECT_NE(text().find("rank 1 is late"), std::string::npos) << text();
  EXPECT_EQ(text().find("rank 0, 10 of 10"), std::string::npos) << text();
  model::Report rank = job();  // the table of one rank has no such column
  rank.regions.front().ranks = {};
  EXPECT_EQ(terminal_text(*report_document(rank, style), style).find("is late"), std::string::npos);
  report.regions.front().communication = {};
  EXPECT_NE(text().find("rank 0, 10 of 10"), std::string::npos) << text();
}

}  // namespace rank_table_test
}  // namespace rangescope::report
