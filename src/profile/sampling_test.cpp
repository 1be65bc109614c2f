#include "profile/sampling.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/temporary_folder.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace sampling_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words events_of(const Words& written) {
  const auto events = wanted_events({.cpu_counters = written});
  if (!events)
    return {base::to_string(events.error())};
  Words names;
  for (const sample::cpu::CounterEvent& event : *events)
    names.push_back(event.name);
  return names;
}

TEST(CpuCounters, OfAGroupAreItsEvents) {
  EXPECT_EQ(events_of({"branch"}), (Words{"instructions", "branches", "branch-misses"}));
}

TEST(CpuCounters, AnEventOfTwoGroupsIsCountedOnce) {
  EXPECT_EQ(
      events_of({"branch,cache", "instructions"}),
      (Words{"instructions", "branches", "branch-misses", "cache-references", "cache-misses"}));
}

// Call chains are sampled by the clock already.
TEST(CpuCounters, TheClockIsNoEventOfItsOwn) {
  EXPECT_EQ(events_of({"clock"}), (Words{"cycles", "instructions"}));
}

TEST(CpuCounters, AnEventMayBeThatOfTheProcessorsManual) {
  EXPECT_EQ(events_of({"r01c2", " page-faults "}), (Words{"r01c2", "page-faults"}));
}

TEST(CpuCounters, AWrongNameIsRefusedWithTheNearest) {
  const auto refused = wanted_events({.cpu_counters = {"brnach"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kUsage);
  EXPECT_EQ(refused.error().what, "there is no counter of the CPU 'brnach'");
  EXPECT_NE(refused.error().hint.find("branch"), std::string::npos) << refused.error().hint;
}

TEST(CpuCounters, WithoutSamplesOfTheCpuTheyAreRefused) {
  const auto refused = wanted_events({.cpu_off = true, .cpu_counters = {"branch"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kUsage);
  EXPECT_EQ(refused.error().hint, "Leave out --cpu off");
  EXPECT_TRUE(wanted_events({.cpu_off = true}));
}

TEST(Sampling, ThatIsOffMakesNoFolder) {
  const base::TemporaryFolder folder("rangescope-sampling");
  const auto gpu = begin_sampling({.off = true}, folder.path() / "native", false);
  ASSERT_TRUE(gpu);
  EXPECT_FALSE(*gpu);
  const auto cpu = begin_cpu({.cpu_off = true}, folder.path() / "native");
  ASSERT_TRUE(cpu);
  EXPECT_FALSE(*cpu);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Sampling, ACounterOfTheCpuThatIsNoneBeginsNothing) {
  const base::TemporaryFolder folder("rangescope-sampling");
  const auto cpu = begin_cpu({.cpu_counters = {"no-such"}}, folder.path() / "native");
  ASSERT_FALSE(cpu);
  EXPECT_EQ(cpu.error().code, base::Code::kUsage);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(SampledRegions, AreLinesOfTheSettingsByKind) {
  EXPECT_EQ(regions_of({{wire::kModules, "2"},
                        {wire::kFunctions, "train.*\nstep=train.step\n"},
                        {wire::kPhases, "off"}}),
            "modules 2\nfunctions train.*\nfunctions step=train.step\nphases off\n");
}

TEST(SampledRegions, ModulesAreFoundWhereNobodySaidAnything) {
  EXPECT_EQ(regions_of({}), "modules auto\n");
  EXPECT_EQ(regions_of({{wire::kModules, ""}}), "");
}

TEST(NameMain, LinesThatOnlyBeginLikeItStay) {
  const Words command{"python3", "two.py"};
  EXPECT_EQ(name_main("__main__x.f", command), "__main__x.f");
  EXPECT_EQ(name_main("__main__", command), "two");
  EXPECT_EQ(name_main("", command), "");
}

// `-m` is an option of Python alone.
TEST(NameMain, AnotherProgramsOptionNamesNoModule) {
  EXPECT_EQ(name_main("__main__.f", Words{"pytest", "-m", "slow", "dir/test_a.py"}), "test_a.f");
  EXPECT_EQ(name_main("__main__.f", Words{"/usr/bin/python3.11", "-m", "pkg.tool"}), "pkg.tool.f");
  EXPECT_EQ(name_main("__main__.f", Words{"python3", "-m"}), "__main__.f");
}

/// XDG_CACHE_HOME and HOME as long as this lives; nullptr: unset.
class Homes {
 public:
  Homes(const char* cache, const char* home) {
    set("XDG_CACHE_HOME", cache, before_cache_);
    set("HOME", home, before_home_);
  }
  Homes(const Homes&) = delete;
  Homes& operator=(const Homes&) = delete;
  ~Homes() {
    std::optional<std::string> ignored;
    set("XDG_CACHE_HOME", before_cache_ ? before_cache_->c_str() : nullptr, ignored);
    set("HOME", before_home_ ? before_home_->c_str() : nullptr, ignored);
  }

 private:
  static void set(const char* name, const char* value, std::optional<std::string>& before) {
    if (const char* now = std::getenv(name); now != nullptr)
      before = now;
    if (value != nullptr)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  std::optional<std::string> before_cache_, before_home_;
};

TEST(NamesCache, IsInTheCacheOfTheUser) {
  const Homes homes("/cache", "/home/me");
  EXPECT_EQ(names_cache(), "/cache/rangescope/names");
}

TEST(NamesCache, IsBelowHomeWithoutACache) {
  const Homes homes("", "/home/me");
  EXPECT_EQ(names_cache(), "/home/me/.cache/rangescope/names");
}

TEST(NamesCache, IsNowhereWithoutBoth) {
  const Homes homes(nullptr, "");
  EXPECT_EQ(names_cache(), "");
}

}  // namespace sampling_test
}  // namespace rangescope::profile
