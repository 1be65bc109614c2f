// Which processes can be sampled, what the kernel calls its functions, who holds a mutex, and where
// code lies.
#include "sample/cpu/target.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "sample/cpu/dump/holders.hpp"
#include "sample/cpu/names.hpp"
#include "sample/cpu/space.hpp"
#include "sample/gpu/helper.hpp"

namespace rangescope::sample::cpu {
namespace target_test {

/// A child that waits until the object is gone.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;)
        ::pause();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    end();
    ::waitpid(pid_, nullptr, 0);
  }
  /// A zombie from then on, as nothing waits for it.
  void end() const {
    ::kill(pid_, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  pid_t pid_;
};

TEST(Targets, AChildIsFoundWithItsArguments) {
  const Child child;
  const auto target = find_target(child.pid());
  ASSERT_TRUE(target);
  EXPECT_EQ(target->pid, child.pid());
  EXPECT_FALSE(target->argv.empty());
  EXPECT_GE(target->age_ns, 0);
  EXPECT_TRUE(still_runs(*target));
  child.end();
  EXPECT_FALSE(still_runs(*target));
}

TEST(Targets, AnotherProcessOfTheSameNumberIsNotTheTarget) {
  const Child child;
  auto target = find_target(child.pid());
  ASSERT_TRUE(target);
  target->start += 1;
  EXPECT_FALSE(still_runs(*target));
}

TEST(Targets, AProcessThatHasEndedIsRefused) {
  const Child child;
  child.end();
  const auto target = find_target(child.pid());
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, base::Code::kNoInput);
  EXPECT_EQ(target.error().what,
            "process " + std::to_string(child.pid()) + " has ended (a zombie)");
}

TEST(Targets, ANumberThatNoProcessHasIsRefused) {
  const auto target = find_target(5'000'000);  // beyond the largest that Linux gives
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, base::Code::kNoInput);
  EXPECT_EQ(target.error().what, "there is no process 5000000");
}

TEST(Targets, RangescopeItselfIsRefused) {
  const auto target = find_target(static_cast<std::uint32_t>(::getpid()));
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, base::Code::kUsage);
}

TEST(Targets, AThreadIsRefusedWithTheNumberOfItsProcess) {
  std::promise<std::uint32_t> told;
  std::promise<void> may_end;
  std::thread thread([&] {
    told.set_value(static_cast<std::uint32_t>(::gettid()));
    may_end.get_future().wait();
  });
  const auto target = find_target(told.get_future().get());
  may_end.set_value();
  thread.join();
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, base::Code::kUsage);
  EXPECT_EQ(target.error().hint,
            "Write: rangescope attach " + std::to_string(static_cast<std::uint32_t>(::getpid())));
}

TEST(Targets, DescendantsAreMembersWhereTheTreeIsWanted) {
  const Child child;
  const auto own_pid = static_cast<std::uint32_t>(::getpid());
  const auto has_child = [&](const std::vector<Member>& members) {
    for (const Member& member : members)
      if (member.pid == child.pid() && member.parent_pid == own_pid)
        return true;
    return false;
  };
  EXPECT_TRUE(has_child(members_of(own_pid, true)));
  const auto alone = members_of(own_pid, false);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].pid, own_pid);
  EXPECT_TRUE(members_of(5'000'000, false).empty());
}

TEST(Targets, TheFirstThreadOfAProcessComesFirst) {
  std::promise<void> may_end;
  std::thread thread([&] { may_end.get_future().wait(); });
  const auto threads = threads_of(static_cast<std::uint32_t>(::getpid()));
  may_end.set_value();
  thread.join();
  ASSERT_GE(threads.size(), 2u);
  EXPECT_EQ(threads[0], static_cast<std::uint32_t>(::getpid()));
}

// --- names of the kernel's functions ---

std::vector<std::string> kernel_names(const std::string& text,
                                      std::span<const std::uint64_t> addresses) {
  const base::TemporaryFolder folder("rangescope-kallsyms");
  std::ofstream(folder.path() / "kallsyms") << text;
  std::vector<std::string> names;
  for (const Named& named : names_in_kallsyms(folder.path() / "kallsyms", addresses))
    names.push_back(named.functions.at(0).name);
  return names;
}

using Names = std::vector<std::string>;

TEST(KernelNames, AnAddressIsOfTheLastSymbolAtOrBeforeIt) {
  const std::uint64_t addresses[] = {0x1000, 0x1fff, 0x2000, 0x9000};
  EXPECT_EQ(kernel_names("2000 T second\n1000 t first\n", addresses),
            (Names{"first", "first", "second", "second"}))
      << "in any order";
}

TEST(KernelNames, AnAddressBeforeEverySymbolHasNone) {
  const std::uint64_t addresses[] = {0x500, 0x1500};
  EXPECT_EQ(kernel_names("1000 T first\n", addresses), Names{"first"});
}

TEST(KernelNames, DataIsNoFunction) {
  const std::uint64_t addresses[] = {0x2500};
  EXPECT_EQ(kernel_names("1000 W weak\n2000 D data\n2100 b more\n", addresses), Names{"weak"});
}

TEST(KernelNames, AModuleIsNoPartOfTheName) {
  const std::uint64_t addresses[] = {0x1500};
  EXPECT_EQ(kernel_names("1000 t ioctl\t[nvidia]\n", addresses), Names{"ioctl"});
}

TEST(KernelNames, HiddenAddressesNameNothing) {
  const std::uint64_t addresses[] = {0x1500};
  EXPECT_TRUE(kernel_names("0000000000000000 T first\nnonsense\n", addresses).empty());
}

// --- numbers in a container, and owners of a mutex ---

TEST(Holders, TheInnermostNumberIsThatInTheContainer) {
  const base::TemporaryFolder folder("rangescope-status");
  const std::string status = (folder.path() / "status").string();
  std::ofstream(status) << "Name:\tx\nNSpid:\t4711\t12\nNSpgid:\t4711\t1\n";
  EXPECT_EQ(own_number(status, 4711), 12u);
  std::ofstream(status) << "Name:\tx\n";
  EXPECT_EQ(own_number(status, 4711), 4711u);
  EXPECT_EQ(own_number(status + ".missing", 4711), 4711u);
}

TEST(Holders, AMutexThatOthersWaitForHasAnOwner) {
  const auto owner_of = [](const std::uint32_t(&mutex)[5]) {
    return mutex_owner(static_cast<std::uint32_t>(::getpid()),
                       reinterpret_cast<std::uint64_t>(mutex));
  };
  EXPECT_EQ(owner_of({2, 0, 77, 1, 0}), 77u);
  EXPECT_EQ(owner_of({1, 0, 77, 1, 0}), 0u) << "nobody waits for it";
  EXPECT_EQ(owner_of({2, 0, 77, 3, 0}), 0u) << "a semaphore: its users are no mutex's";
  EXPECT_EQ(mutex_owner(static_cast<std::uint32_t>(::getpid()), 16), 0u) << "no memory is there";
}

// --- where code lies ---

TEST(Space, AnAreaWithoutBytesIsNone) {
  Modules modules;
  Space space;
  space.map({100, 100, 0, &modules.find("//a", 1)});
  EXPECT_TRUE(space.areas().empty());
}

TEST(Space, MemoryWithoutAFileIsForgottenFirst) {
  Modules modules;
  Module &jit = modules.find("//anon", 1), &file = modules.find("/usr/lib/none.so", 1);
  Space space;
  space.map({0x1000, 0x2000, 0, &file});
  for (std::uint64_t i = 0; i < Space::kMost; ++i)
    space.map({0x10000 + 0x100 * i, 0x10080 + 0x100 * i, 0, &jit});
  EXPECT_TRUE(space.forgot());
  EXPECT_LE(space.areas().size(), Space::kMost / 4 * 3);
  EXPECT_NE(space.find(0x1000), nullptr) << "the oldest, but a file";
  EXPECT_EQ(space.find(0x10000), nullptr);
  EXPECT_NE(space.find(0x10000 + 0x100 * (Space::kMost - 1)), nullptr) << "the newest";
}

TEST(Space, MemoryWithoutAFileKeepsItsAddresses) {
  Modules modules;
  Space space;
  space.map({0x1000, 0x2000, 0x500, &modules.find("//anon", 1)});
  EXPECT_EQ(place_of(space, 0x1010).address, 0x1010u);
  EXPECT_EQ(place_of(space, 0x3000).module, nullptr);
}

TEST(Modules, UnderEverNewNamesThereIsOneFromSomePointOn) {
  Modules modules;
  for (std::size_t i = 0; i < ::rangescope::sample::cpu::Modules::kMost; ++i)
    (void)modules.find("//" + std::to_string(i), 1);
  EXPECT_TRUE(modules.crowded());
  const Module& rest = modules.find("//new", 1);
  EXPECT_EQ(rest.path, "//more");
  EXPECT_EQ(&modules.find("//newer", 2), &rest);
  EXPECT_EQ(modules.find("//7", 1).path, "//7") << "what is known stays";
}

// --- the sampling process ---

TEST(Helper, ArgumentsNameAlternativesOfACounterTogether) {
  sample::Options options;
  options.folder = "/run/samples";
  options.interval_ns = 500'000;
  options.most_bytes = 1 << 20;
  options.wanted = {{"dram__bytes.sum", "fbpa__bytes.sum"}, {"sm__busy.pct"}};
  EXPECT_EQ(
      helper_arguments(options),
      (std::vector<std::string>{
          "/run/samples", "500000", "1048576", "dram__bytes.sum|fbpa__bytes.sum", "sm__busy.pct"}));
}

}  // namespace target_test
}  // namespace rangescope::sample::cpu
