#include "analyze/cpu/other_threads.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::kNone;

bool is_openmp(std::string_view file) {
  return file.starts_with("libgomp") || file.starts_with("libomp") || file.starts_with("libiomp") ||
         file.starts_with("libtbb");
}

}  // namespace

std::vector<bool> pool_work(const model::Session& session) {
  const model::CpuProfile& cpu = session.cpu;
  constexpr std::uint8_t kOutside = 0, kPool = 1, kWork = 2;
  std::vector<std::uint8_t> state(cpu.stacks.size(), kOutside);
  std::vector<bool> out(cpu.stacks.size());
  for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {
    const model::CpuStack& stack = cpu.stacks[s];
    const model::CpuFrame& frame = cpu.frames[stack.frame];
    const std::string_view file = base::file_name(session.strings.view(frame.module));
    const std::string_view name = session.strings.view(frame.name);
    state[s] = stack.parent == kNone ? kOutside : state[stack.parent];
    const bool openmp = is_openmp(file), server = name.starts_with("blas_thread_server");
    const bool system = file.starts_with("libc.so") || file == "[kernel]" || file == "[vdso]";
    if (state[s] == kOutside && (openmp || server))
      state[s] = kPool;
    else if (state[s] == kPool && !openmp && !server && !system)
      state[s] = kWork;
    out[s] = state[s] == kWork;
  }
  return out;
}

std::uint32_t telling_frame(const model::CpuProfile& cpu, std::uint32_t stack) {
  std::uint32_t named = kNone;
  for (; stack < cpu.stacks.size(); stack = cpu.stacks[stack].parent) {
    const std::uint32_t frame = cpu.stacks[stack].frame;
    if (cpu.frames[frame].kind == model::FrameKind::kPython) return frame;
    if (named == kNone && cpu.frames[frame].name != 0) named = frame;
  }
  return named;
}

void longest_holders(std::vector<model::CpuHolder>& holders) {
  constexpr std::size_t kMost = 8;
  std::stable_sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  if (holders.size() > kMost) holders.resize(kMost);
}

}  // namespace rangescope::analyze
