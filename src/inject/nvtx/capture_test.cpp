// Whether a process records, into which file, and what a fork and a window begin anew.
#include "inject/nvtx/capture.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

#include "inject/nvtx/control.hpp"
#include "inject/nvtx/recording_test.hpp"

namespace rangescope::inject {
namespace capture_test {

using testing::Capture;
using testing::Lines;
using testing::push;
using testing::Recording;
using wire::native::Drop;

class Captures : public Recording {
 protected:
  using Variables = std::initializer_list<std::pair<const char*, const char*>>;
  /// Whether recording begins in a process with these variables and no other launcher's.
  bool begins(Variables variables) {
    const std::string answer = in_child([&] {
      for (const char* name : {"RANK",
                               "OMPI_COMM_WORLD_RANK",
                               "PMIX_RANK",
                               "PMI_RANK",
                               "SLURM_PROCID",
                               "LOCAL_RANK",
                               "WORLD_SIZE",
                               "OMPI_COMM_WORLD_SIZE",
                               "PMI_SIZE",
                               "SLURM_STEP_NUM_TASKS",
                               "OMPI_COMM_WORLD_LOCAL_RANK",
                               "MPI_LOCALRANKID",
                               "PMI_LOCAL_RANK",
                               "SLURM_LOCALID",
                               wire::kRanks,
                               wire::kLight})
        ::unsetenv(name);
      for (const auto& [name, value] : variables)
        ::setenv(name, value, 1);
      return writer_start() ? "begins" : "does not";
    });
    return answer == "begins";
  }
};

// --- whether ---

TEST_F(Captures, AProcessThatRecordsNothingHasAFileToo) {
  EXPECT_TRUE(begins({}));
  const Capture written = capture();
  EXPECT_TRUE(written.streams.empty());
  EXPECT_EQ(std::string(written.header.magic, 7), "RSTRACE");
  EXPECT_EQ(written.header.parent_pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(written.header.window, 0u);
  EXPECT_EQ(written.header.used_bytes, written.header.header_bytes);
  EXPECT_EQ(written.header.end_ns, 0) << "it did not end in an orderly way";
}

TEST_F(Captures, WithoutAFolderNothingIsRecorded) {
  EXPECT_FALSE(begins({{wire::kDir, ""}}));
  EXPECT_TRUE(files().empty());
}

TEST_F(Captures, TheFolderIsMade) {
  const std::string inner = (folder() / "native").string();
  EXPECT_TRUE(begins({{wire::kDir, inner.c_str()}}));
  EXPECT_TRUE(std::filesystem::is_directory(inner));
}

TEST_F(Captures, AFileInPlaceOfTheFolderIsNone) {
  const std::string file = (folder() / "file").string();
  std::ofstream(file) << "not a folder";
  EXPECT_FALSE(begins({{wire::kDir, file.c_str()}}));
}

TEST_F(Captures, AFolderWhosePathIsTooLongIsNone) {
  EXPECT_FALSE(begins({{wire::kDir, ("/" + std::string(5000, 'x')).c_str()}}));
}

TEST_F(Captures, ARelativeFolderIsThatOfTheStart) {
  EXPECT_EQ(in_child([&]() -> std::string {
              if (::chdir(folder().c_str()) != 0)
                return "no such folder";
              ::setenv(wire::kDir, "here", 1);
              if (!capture_prepare() || ::chdir("/") != 0)
                return "not prepared";
              return capture_folder();
            }),
            (folder() / "here").string());
}

TEST_F(Captures, RanksThatAreNotListedAreNotRecorded) {
  EXPECT_FALSE(begins({{wire::kRanks, "0-3,8"}, {"RANK", "4"}}));
  EXPECT_TRUE(files().empty());
  EXPECT_TRUE(begins({{wire::kRanks, "0-3,8"}, {"RANK", "8"}}));
  EXPECT_TRUE(begins({{wire::kRanks, "0-3,8"}})) << "no rank: it is no part of the job";
}

TEST_F(Captures, TheHeaderHasRankLocalRankAndSize) {
  EXPECT_TRUE(begins({{"OMPI_COMM_WORLD_RANK", "12"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "4"},
                      {"OMPI_COMM_WORLD_SIZE", "16"}}));
  const Capture written = capture();
  EXPECT_EQ(written.header.rank_plus_1, 13u);
  EXPECT_EQ(written.header.local_rank_plus_1, 5u);
  EXPECT_EQ(written.header.world_size, 16u);
}

TEST_F(Captures, WithoutALauncherThereIsNoRank) {
  EXPECT_TRUE(begins({{"RANK", "two"}}));
  const Capture written = capture();
  EXPECT_EQ(written.header.rank_plus_1, 0u);
  EXPECT_EQ(written.header.local_rank_plus_1, 0u);
  EXPECT_EQ(written.header.world_size, 0u);
}

TEST_F(Captures, TheHeaderSaysWhereNothingOfTheGpuWasToBeRecorded) {
  EXPECT_TRUE(begins({{wire::kLight, "1"}}));
  EXPECT_EQ(capture().header.flags, wire::native::kLight);
}

TEST_F(Captures, AnOrderlyEndIsWritten) {
  record([] { capture_end(); });
  const Capture written = capture();
  EXPECT_GE(written.header.end_ns, written.header.monotonic_ns);
}

TEST_F(Captures, AProgramThatExecutesAnotherHasAFileOfEach) {
  record([] { push("first"); });
  const std::string name = files()[0].filename().string();
  EXPECT_TRUE(name.ends_with(".0.rstrace")) << name;
  // The second program of a process finds the name of the first one taken.
  EXPECT_EQ(in_child([&]() -> std::string {
              std::ofstream(folder() / (std::to_string(::getpid()) + ".0.rstrace"));
              if (!writer_start())
                return "not begun";
              const auto second = folder() / (std::to_string(::getpid()) + ".1.rstrace");
              return std::filesystem::exists(second) ? "" : "no second file";
            }),
            "");
}

// --- forks ---

/// Runs `body` in a child of this process and waits for it.
void fork_and(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST_F(Captures, AChildHasAFileOnceItRecords) {
  record([] {
    push("parent");
    fork_and([] {});
    fork_and([] { push("child"); });
    record_pop(0);
  });
  ASSERT_EQ(files().size(), 2u);
  for (const auto& file : files()) {
    const Capture written(file);
    const bool is_child = written.header.parent_pid != static_cast<std::uint32_t>(::getpid());
    EXPECT_EQ(written.streams.at(0).lines,
              is_child ? Lines{"push child"} : (Lines{"push parent", "pop"}));
  }
}

TEST_F(Captures, RangesThatAParentOpenedEndInItAlone) {
  record([] {
    push("parent");
    fork_and([] {
      push("child");
      record_pop(0);
      record_pop(0);  // the parent's
    });
    record_pop(0);
  });
  for (const auto& file : files()) {
    const Capture written(file);
    const bool is_child = written.header.parent_pid != static_cast<std::uint32_t>(::getpid());
    EXPECT_EQ(written.dropped(Drop::kInheritedPop), is_child ? 1u : 0u);
    EXPECT_EQ(written.streams.at(0).lines,
              is_child ? (Lines{"push child", "pop"}) : (Lines{"push parent", "pop"}));
  }
}

TEST_F(Captures, IdsOfAParentAreToldFromThoseOfItsChild) {
  record([] {
    (void)record_start(testing::named("of the parent"), 0);
    fork_and([] { (void)record_start(testing::named("of the child"), 0); });
  });
  for (const auto& file : files()) {
    const Capture written(file);
    const bool is_child = written.header.parent_pid != static_cast<std::uint32_t>(::getpid());
    EXPECT_EQ(written.header.first_range_id, is_child ? 2u : 1u);
  }
}

// --- windows (wire/control.hpp) ---

std::string number(std::uint32_t value) {
  return std::to_string(value);
}

class Windows : public Recording {
 protected:
  /// The dormant word after each of `pushes` instances of "step", as one digit each.
  std::string dormant_while_counting(std::uint32_t first, std::uint32_t last, int pushes) {
    return in_child([=] {
      control::page.dormant = wire::control::kDormant;
      control::page.first = first;
      control::page.last = last;
      std::strcpy(control::page.name, "step");
      std::string states;
      for (int i = 0; i < pushes; ++i) {
        control::count(name_of("step", 4));
        states += number(control::page.dormant);
      }
      return states;
    });
  }
};

// 1: nothing is recorded; 2: the GPU's timeline wakes up; 0: the window is open.
TEST_F(Windows, InstancesOpenAndCloseAWindow) {
  EXPECT_EQ(dormant_while_counting(3, 4, 6), "120011");
}

TEST_F(Windows, TheFirstInstanceMayOpenIt) {
  EXPECT_EQ(dormant_while_counting(1, 1, 3), "011");
}

TEST_F(Windows, OtherNamesDoNotCount) {
  EXPECT_EQ(in_child([] {
              control::page.dormant = wire::control::kDormant;
              control::page.first = control::page.last = 1;
              std::strcpy(control::page.name, "step");
              for (const std::string name : {"", "ste", "step2", "STEP"})
                control::count(name_of(name.data(), name.size()));
              control::count(name_of(nullptr, 0));
              return number(control::page.pushed);
            }),
            "0");
}

TEST_F(Windows, OnlyTheFirstProcessThatHasSomethingToCountDoes) {
  EXPECT_EQ(in_child([] {
              control::page.first = control::page.last = 1;
              control::page.counts = static_cast<std::uint32_t>(::getpid()) + 1;
              std::strcpy(control::page.name, "step");
              control::count(name_of("step", 4));
              return number(control::page.pushed);
            }),
            "0");
}

TEST_F(Windows, CallsOfTheProgramOpenItOnce) {
  EXPECT_EQ(in_child([] {
              control::page.dormant = wire::control::kDormant;
              control::page.first = 1;
              std::string text = control::by_calls() ? "by calls, " : "by name, ";
              text += control::is_called() ? "called, " : "not called, ";
              text += number(control::page.dormant);
              control::starts();
              text += number(control::page.dormant);
              text += control::is_called() ? " again" : " once";
              control::stops();
              return text + ", " + number(control::page.dormant) + number(control::page.first);
            }),
            "by calls, called, 20 once, 10");
}

TEST_F(Windows, AWindowThatWasNotOpenedIsNotClosed) {
  EXPECT_EQ(in_child([] {
              control::page.first = 1;
              control::stops();
              return number(control::page.dormant) + number(control::page.first);
            }),
            "01");
}

/// A page of control in the folder, closed unless `dormant` is 0.
void write_page(const std::filesystem::path& folder, std::uint32_t dormant, std::uint32_t window) {
  static wire::control::Page page;
  std::memcpy(page.magic, wire::control::kMagic, sizeof page.magic);
  page.dormant = dormant;
  page.window = window;
  std::ofstream(folder / wire::control::kFile, std::ios::binary)
      .write(reinterpret_cast<const char*>(&page), sizeof page);
}

TEST_F(Windows, APageThatIsNoneIsRefused) {
  std::ofstream(folder() / wire::control::kFile) << "short";
  EXPECT_EQ(in_child([] { return writer_start() ? "begins" : "does not"; }), "does not");
  std::filesystem::remove(folder() / wire::control::kFile);
  std::ofstream(folder() / wire::control::kFile) << std::string(sizeof(wire::control::Page), 'x');
  EXPECT_EQ(in_child([] { return writer_start() ? "begins" : "does not"; }), "does not")
      << "of the right size, but another file";
}

TEST_F(Windows, WhileItIsClosedThereIsNoFile) {
  write_page(folder(), wire::control::kDormant, 1);
  EXPECT_EQ(recorded([] {
              return std::string(control::dormant() ? "dormant" : "records") +
                     (control::controlled() ? ", controlled" : "");
            }),
            "dormant, controlled");
  EXPECT_TRUE(files().empty());
}

TEST_F(Windows, EachWindowHasAFolder) {
  write_page(folder(), 0, 1);
  std::filesystem::create_directory(folder() / "window-1");
  std::filesystem::create_directory(folder() / "window-2");
  record([] {
    push("first");
    record_pop(0);
    control::page.window = 2;
    push("second");
    record_pop(0);
  });
  for (const int window : {1, 2}) {
    std::size_t captures = 0;
    const auto name = "window-" + std::to_string(window);
    for (const auto& entry : std::filesystem::directory_iterator(folder() / name)) {
      ++captures;
      const Capture written(entry.path());
      EXPECT_EQ(written.header.window, static_cast<std::uint64_t>(window));
      EXPECT_EQ(written.streams.at(0).lines,
                (Lines{window == 1 ? "push first" : "push second", "pop"}));
    }
    EXPECT_EQ(captures, 1u);
  }
}

TEST_F(Windows, RangesThatAreOpenWhenAWindowFollowsAnotherAreInBoth) {
  write_page(folder(), 0, 1);
  std::filesystem::create_directory(folder() / "window-1");
  std::filesystem::create_directory(folder() / "window-2");
  record([] {
    push("epoch");
    control::page.since = 1;  // without a gap
    control::page.window = 2;
    push("step");
    record_pop(0);
    record_pop(0);
  });
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "window-2"))
    EXPECT_EQ(Capture(entry.path()).streams.at(0).lines,
              (Lines{"push epoch begun before", "push step", "pop", "pop"}));
}

TEST_F(Windows, BehindAGapOpenRangesAreForgotten) {
  write_page(folder(), 0, 1);
  std::filesystem::create_directory(folder() / "window-1");
  std::filesystem::create_directory(folder() / "window-2");
  record([] {
    push("epoch");
    control::page.since = 2;
    control::page.window = 2;
    push("step");
    record_pop(0);
    record_pop(0);  // of epoch
  });
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "window-2")) {
    const Capture written(entry.path());
    EXPECT_EQ(written.streams.at(0).lines, (Lines{"push step", "pop"}));
    EXPECT_EQ(written.dropped(Drop::kOpenBefore), 1u);
  }
}

}  // namespace capture_test
}  // namespace rangescope::inject
