#include "collect/native/native.hpp"

#include <gtest/gtest.h>

#include "collect/launch.hpp"

namespace rangescope::collect::native {
namespace native_test {

using Environment = std::map<std::string, std::string>;

Options options(const Environment& environment, bool chain = false) {
  Options made;
  made.library = "/opt/lib/librangescope_inject.so";
  made.chain_injection = chain;
  made.environment = [environment](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  return made;
}

Request request() {
  Request made;
  made.command = {"python", "train it.py"};
  made.cwd = "/home/me";
  made.run_dir = "/runs/1";
  return made;
}

TEST(NativePlan, IsTheProgramItself) {
  const auto plan = make_collector(options({}))->plan(request());
  ASSERT_TRUE(plan);
  EXPECT_EQ(shell_command(*plan),
            "cd /home/me && env CUDA_INJECTION64_PATH=/opt/lib/librangescope_inject.so "
            "NVTX_INJECTION64_PATH=/opt/lib/librangescope_inject.so RANGESCOPE_DIR=/runs/1/native "
            "RANGESCOPE_MAX_CAPTURE_SIZE=4294967296 python 'train it.py'");
  EXPECT_EQ(plan->folders, std::vector<std::filesystem::path>{"/runs/1/native"});
}

TEST(NativePlan, AnotherLibraryIsRefusedByName) {
  const auto plan =
      make_collector(options({{"NVTX_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so"}}))->plan(request());
  ASSERT_FALSE(plan);
  EXPECT_EQ(
      base::to_string(plan.error()),
      "NVTX_INJECTION64_PATH: another injection library is set in the environment: '/opt/nsys/libToolsInjection64.so'\n"
      "hint: Add --chain-injection to load both (ours hands every call on), or unset NVTX_INJECTION64_PATH");
}

TEST(NativePlan, OrChainedWhenAsked) {
  const auto plan = make_collector(options({{"CUDA_INJECTION64_PATH", "/opt/other.so"}}, true))->plan(request());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->set_env.at("CUDA_INJECTION64_PATH"), "/opt/lib/librangescope_inject.so");
  EXPECT_EQ(plan->set_env.at("RANGESCOPE_CHAIN_CUDA"), "/opt/other.so");
  EXPECT_FALSE(plan->set_env.contains("RANGESCOPE_CHAIN_NVTX"));
  EXPECT_EQ(plan->notes.size(), 1u);
}

TEST(NativePlan, OurOwnLibraryIsNoOther) {
  const auto plan = make_collector(options({{"NVTX_INJECTION64_PATH", "/old/librangescope_inject.so"},
                                            {"RANGESCOPE_CHAIN_NVTX", "/gone.so"}}))
                        ->plan(request());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->set_env.at("NVTX_INJECTION64_PATH"), "/opt/lib/librangescope_inject.so");
  EXPECT_EQ(plan->unset_env, std::vector<std::string>{"RANGESCOPE_CHAIN_NVTX"});
}

}  // namespace native_test
}  // namespace rangescope::collect::native
