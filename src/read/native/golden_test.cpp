// Captures that older versions wrote, read for ever: tests/golden/native/*.rstrace, each beside a
// .txt with what it holds. `v1_limit` was cut off by --max-capture-size, `v1_kill` by SIGKILL,
// `v1_fork_in_range_1` is the child of the first.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "read/native/reader.hpp"

namespace rangescope::read::native {
namespace golden_test {

std::string summary(const model::Session& session) {
  struct Sum {
    int closed = 0, open = 0;
    std::int64_t ns = 0;
  };
  std::map<std::string, Sum> sums;
  const auto text = [&](model::StringId id) { return std::string(session.strings.view(id)); };
  for (const model::Range& r : session.ranges) {
    const auto& thread = session.threads[r.thread];
    Sum& sum = sums[std::to_string(thread.tid) +
                    (r.kind == model::RangeKind::kStartEnd ? " start/end " : " ") +
                    text(session.domains[r.domain].name) + ":" + text(r.name)];
    r.end_ns == model::kOpen ? ++sum.open : ++sum.closed;
    if (r.end_ns != model::kOpen)
      sum.ns += r.end_ns - r.start_ns;
  }
  std::string all = session.sources[0].tool + ", " + session.sources[0].schema + "\n";
  for (const model::Process& p : session.processes) {
    all += "process " + std::to_string(p.pid) + " of " + std::to_string(p.parent_pid) + " " +
           text(p.name) + " " + std::to_string(p.end_ns - p.start_ns) + " ns\n";
  }
  for (const auto& [name, sum] : sums) {
    all += name + " " + std::to_string(sum.closed) + " closed, " + std::to_string(sum.open) +
           " open, " + std::to_string(sum.ns) + " ns\n";
  }
  for (const model::Mark& m : session.marks) {
    all += "mark " + text(m.name);
    if (m.attributes != model::kNone)
      all += " " + std::to_string(session.attributes[m.attributes].payload());
    all += "\n";
  }
  for (const model::PayloadField& f : session.payload_fields)
    all += text(session.ranges.at(f.range).name) + ": " + text(f.name) + " " +
           std::to_string(f.bits) + "\n";
  for (const model::Category& c : session.categories)
    all += "category " + std::to_string(c.id) + " " + text(c.name) + "\n";
  for (const model::Loss& l : session.losses)
    all += "! " + std::string(l.kind.id()) + " " + std::to_string(l.count) + "\n";
  return all;
}

TEST(Golden, OldCapturesReadAsEver) {
  const std::filesystem::path folder = std::string(base::source_dir) + "/tests/golden/native";
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".rstrace")
      continue;
    SCOPED_TRACE(entry.path().string());
    const auto session = kReader.read(entry.path(), {});
    ASSERT_TRUE(session);
    auto expected = entry.path();
    expected.replace_extension(".txt");
    if (std::getenv("RANGESCOPE_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(expected)) {
      ASSERT_TRUE(base::write_file(expected, summary(*session)));
    }
    EXPECT_EQ(summary(*session), base::read_file(expected).value_or("(no text)"));
    ++read;
  }
  EXPECT_GE(read, 7);
}

}  // namespace golden_test
}  // namespace rangescope::read::native
