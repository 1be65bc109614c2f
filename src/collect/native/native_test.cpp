#include "collect/native/native.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "collect/launch.hpp"
#include "collect/native/trim.hpp"
#include "wire/native.hpp"

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
  const auto plan = native::plan(options({}), request());
  ASSERT_TRUE(plan);
  EXPECT_EQ(shell_command(*plan),
            "cd /home/me && env CUDA_INJECTION64_PATH=/opt/lib/librangescope_inject.so "
            "NVTX_INJECTION64_PATH=/opt/lib/librangescope_inject.so RANGESCOPE_DIR=/runs/1/native "
            "RANGESCOPE_MAX_CAPTURE_SIZE=4294967296 python 'train it.py'");
  EXPECT_EQ(plan->folders, std::vector<std::filesystem::path>{"/runs/1/native"});
}

TEST(Trim, CutsCapturesOfProcessesThatEndedAlsoWhereNobodyReapedThem) {
  std::string folder = "/tmp/rangescope-trim.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  const auto child = [&](bool waits) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      char byte = 0;
      if (waits)
        (void)!::read(hold[0], &byte, 1);
      ::_exit(0);
    }
    wire::native::FileHeader header{};
    std::memcpy(header.magic, wire::native::kMagic, sizeof header.magic);
    header.pid = static_cast<std::uint32_t>(pid);
    header.used_bytes = 2 * wire::native::kPage;
    const std::string path = folder + (waits ? "/runs" : "/ended") + wire::native::kSuffix;
    std::ofstream(path).write(reinterpret_cast<const char*>(&header), sizeof header);
    std::filesystem::resize_file(path, 64 * wire::native::kPage);
    return pid;
  };
  const pid_t ended = child(false), running = child(true);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(trim_captures(folder), 1u);
  EXPECT_EQ(std::filesystem::file_size(folder + "/ended" + wire::native::kSuffix),
            2 * wire::native::kPage);
  EXPECT_EQ(std::filesystem::file_size(folder + "/runs" + wire::native::kSuffix),
            64 * wire::native::kPage);
  ASSERT_EQ(::write(hold[1], "", 1), 1);
  for (const pid_t pid : {ended, running})
    ::waitpid(pid, nullptr, 0);
  std::filesystem::remove_all(folder);
}

TEST(NativePlan, AnotherLibraryIsRefusedByName) {
  const auto plan = native::plan(
      options({{"NVTX_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so"}}), request());
  ASSERT_FALSE(plan);
  EXPECT_EQ(base::to_string(plan.error()),
            "NVTX_INJECTION64_PATH: another injection library is set in the environment: "
            "'/opt/nsys/libToolsInjection64.so'\n"
            "hint: Add --chain-injection to load both (rangescope's passes every call on), or "
            "unset NVTX_INJECTION64_PATH");
}

TEST(NativePlan, OrChainedWhenAsked) {
  const auto plan =
      native::plan(options({{"CUDA_INJECTION64_PATH", "/opt/other.so"}}, true), request());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->set_env.at("CUDA_INJECTION64_PATH"), "/opt/lib/librangescope_inject.so");
  EXPECT_EQ(plan->set_env.at("RANGESCOPE_CHAIN_CUDA"), "/opt/other.so");
  EXPECT_FALSE(plan->set_env.contains("RANGESCOPE_CHAIN_NVTX"));
  EXPECT_EQ(plan->notes.size(), 1u);
}

TEST(NativePlan, OurOwnLibraryIsNoOther) {
  const auto plan = native::plan(options({{"NVTX_INJECTION64_PATH", "/old/librangescope_inject.so"},
                                          {"RANGESCOPE_CHAIN_NVTX", "/gone.so"}}),
                                 request());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->set_env.at("NVTX_INJECTION64_PATH"), "/opt/lib/librangescope_inject.so");
  EXPECT_EQ(plan->unset_env, std::vector<std::string>{"RANGESCOPE_CHAIN_NVTX"});
}

}  // namespace native_test
}  // namespace rangescope::collect::native
