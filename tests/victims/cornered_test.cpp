// The program goes on as without the library, whatever happens to the capture, and what is missing
// is told.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.hpp"

namespace rangescope::victims {
namespace {

class Cornered : public Victim {
 protected:
  // Both ways: the same outcome.
  model::Session recorded(std::vector<std::string> words,
                          const char* program = RANGESCOPE_CORNERED) {
    words.insert(words.begin(), program);
    return recorded_command(words, {}, true);
  }
  [[nodiscard]] static std::string losses(const model::Session& session) {
    std::string text;
    for (const model::Loss& loss : session.losses)
      text += std::string(loss.kind.id()) + " ";
    return text;
  }
};

TEST_F(Cornered, CaptureIsTruncated) {
  if (kHandlersAreCalls)
    GTEST_SKIP() << "ThreadSanitizer calls handlers as functions (harness.hpp)";
  for (const char* size : {"0", "5000", "10000"}) {
    SCOPED_TRACE(size);
    const auto session = recorded({"truncated", size});
    EXPECT_EQ(outcome_.ended, "exit 7");
    if (std::string_view(size) == "0")
      continue;  // an empty file says nothing
    EXPECT_TRUE(has_loss(session, "truncated_capture")) << show(session);
  }
}

TEST_F(Cornered, BusErrorsOfTheProgram) {
  if (kSanitized)
    GTEST_SKIP() << "sanitizers have a handler of their own for bus errors";
  EXPECT_EQ(closed(recorded({"own_bus_error"}), "pair"), 1u);
  EXPECT_EQ(outcome_.ended, "signal 7");
  recorded({"own_bus_error", "sent"});
  EXPECT_EQ(outcome_.ended, "signal 7");
  recorded({"own_bus_error", "ignored"});
  EXPECT_EQ(outcome_.ended, "exit 23");
  recorded({"own_bus_error", "handled"});
  EXPECT_EQ(outcome_.ended, "exit 21");
  recorded({"earlier_handler"});
  EXPECT_EQ(outcome_.ended, "exit 24");
}

TEST_F(Cornered, AMapCannotBeMadeTwice) {
  const auto session = recorded({"no_second_map"});
  EXPECT_EQ(outcome_.ended, "exit 9");
  EXPECT_EQ(show(session), "p0: pair 200000\n");
}

TEST_F(Cornered, FilterThatKillsForFiles) {
  const auto session = recorded({"filtered"});
  EXPECT_EQ(outcome_.ended, "exit 9");
  EXPECT_EQ(show(session), "p0: pair 200000\n");
}

TEST_F(Cornered, FilterAndAChild) {
  const auto session = recorded({"filtered_fork"});
  EXPECT_EQ(outcome_.ended, "exit 3");
  EXPECT_EQ(closed(session, "pair"), 2u);
  EXPECT_EQ(losses(session), "filtered_process ");
}

TEST_F(Cornered, ChildrenThatMayNotWriteAreCounted) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can change its root directory or user";
  for (const char* way : {"root", "user"}) {
    SCOPED_TRACE(way);
    const auto session = recorded({"away", way});
    EXPECT_EQ(outcome_.ended, "exit 9");
    EXPECT_EQ(closed(session, "pair"), 2u);
    EXPECT_EQ(losses(session), "capture_unreachable ");
    for (const model::Loss& loss : session.losses)
      EXPECT_EQ(loss.count, 300u);
    fs::remove_all(folder_ / "captures");
  }
}

// The sum of what was recorded and of what is told to be missing is what the program did.
TEST_F(Cornered, NamespacesOfTheLinker) {
  if (kSanitized)
    GTEST_SKIP() << "a sanitizer's runtime cannot be loaded into a second namespace";
  const auto session = recorded({"namespaces", RANGESCOPE_CLIENT});
  EXPECT_EQ(outcome_.ended, "exit 0");
  std::uint64_t unseen = 0;
  for (const model::Loss& loss : session.losses)
    unseen += loss.kind.id() == "unseen_namespaces" ? loss.count : 0;
  EXPECT_EQ(closed(session, "inside") + unseen, 8u) << show(session);
}

TEST_F(Cornered, SetUserIdLeavesNothingOfAnotherUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make such a program";
  if (kSanitized)
    GTEST_SKIP() << "LeakSanitizer cannot trace a program of another user";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(seteuid(kNobody), 0);
  const bool readable = faccessat(AT_FDCWD, RANGESCOPE_LIBRARY, R_OK, AT_EACCESS) == 0;
  ASSERT_EQ(seteuid(0), 0);
  if (!readable)
    GTEST_SKIP() << "the library lies where another user may not read";
  const fs::path program = folder_ / "set-user-id";
  fs::copy_file(RANGESCOPE_CORNERED, program);
  ASSERT_EQ(chown(program.c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  fs::permissions(folder_ / ".",
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  fs::create_directory(folder_ / "captures");
  fs::permissions(folder_ / "captures", fs::perms::all);
  const auto again = recorded_command({program, "leaf"}, {}, true);
  EXPECT_EQ(outcome_.ended, "exit 5");
  EXPECT_EQ(losses(again), "no_capture_file ");
  for (const auto& entry : fs::directory_iterator(folder_ / "captures")) {
    struct stat found {};
    ASSERT_EQ(lstat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_uid, 0u) << entry.path();
    EXPECT_EQ(entry.path().extension(), ".refused");
  }
}

}  // namespace
}  // namespace rangescope::victims
