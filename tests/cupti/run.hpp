// Runs a scene of the victim under the injected library and the stand-ins, and reads back what was
// recorded.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "read/native/reader.hpp"

namespace rangescope {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

struct Recorded {
  int status = 0;
  model::Session session;
  bool recorded = false;  // there is a capture
  std::size_t streams = 0;
  std::uintmax_t bytes = 0;
  std::string gpu_bytes;  // of the GPU streams

  [[nodiscard]] std::size_t kernels(const std::string& short_name) const {
    std::size_t count = 0;
    for (const model::Kernel& kernel : session.kernels) {
      count +=
          session.strings.view(session.kernel_names[kernel.name].short_name) == short_name ? 1 : 0;
    }
    return count;
  }
  // Kernels by the ranges around their launch and, behind a bar, around the capture of their node.
  [[nodiscard]] std::map<std::string, int> paths() const {
    std::map<std::string, int> counts;
    for (const model::Kernel& kernel : session.kernels) {
      std::string path;
      const model::Launch& launch = session.launches.at(kernel.launch);
      for (const model::Range& range : session.ranges) {
        if (range.thread != launch.thread || range.start_ns > launch.start_ns ||
            range.end_ns < launch.end_ns)
          continue;
        path += "/" + std::string(session.strings.view(range.name));
      }
      if (kernel.graph_node != model::kNone) {
        path += "|";
        const std::uint32_t captured = session.graph_nodes.at(kernel.graph_node).captured_path;
        if (captured != model::kNone) {
          for (const model::OpenRange& range : session.captured_paths.at(captured)) {
            path += "/" + std::string(session.strings.view(range.name));
          }
        }
      }
      ++counts[path];
    }
    return counts;
  }
  [[nodiscard]] const model::Loss* loss(const std::string& kind) const {
    const auto at = std::find_if(session.losses.begin(),
                                 session.losses.end(),
                                 [&](const model::Loss& loss) { return loss.kind.id() == kind; });
    return at != session.losses.end() ? &*at : nullptr;
  }
};

// Runs one scene of the victim under the injected library and reads the streams it left.
inline void run_into(Recorded& result,
                     const std::string& scene,
                     Environment environment,
                     const std::string& times = {}) {
  std::string folder = (fs::temp_directory_path() / "rangescope-cupti-XXXXXX").string();
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  environment.try_emplace("RANGESCOPE_CUPTI", CUPTI_NEW);
  // LeakSanitizer of GCC 12 does not unlock its allocator in the child of a fork: at exit the child
  // waits for ever.
  if (scene == "fork")
    environment.try_emplace("ASAN_OPTIONS", "detect_leaks=0");
  environment["RANGESCOPE_DIR"] = folder;
  environment["CUDA_INJECTION64_PATH"] = INJECTED;
  environment["NVTX_INJECTION64_PATH"] = INJECTED;
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    execl(VICTIM, VICTIM, scene.c_str(), times.empty() ? nullptr : times.c_str(), nullptr);
    _exit(127);
  }
  waitpid(child, &result.status, 0);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".gpu")
      continue;
    ++result.streams;
    result.bytes += fs::file_size(entry.path());
    std::ifstream stream(entry.path(), std::ios::binary);
    result.gpu_bytes.append(std::istreambuf_iterator<char>(stream), {});
  }
  auto session = read::native::kReader.read(folder, {});
  result.recorded = session.has_value();
  if (session)
    result.session = std::move(*session);
  fs::remove_all(folder);
}

inline Recorded run(const std::string& scene, const Environment& environment = {}) {
  Recorded result;
  run_into(result, scene, environment);
  return result;
}

}  // namespace rangescope
