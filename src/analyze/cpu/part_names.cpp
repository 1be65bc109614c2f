#include "analyze/cpu/part_names.hpp"

#include "analyze/cpu/cpu.hpp"
#include "analyze/cpu/own/user_code.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::kNone;

std::string_view call_kind(const model::Session& session, const model::Launch& call) {
  switch (call.kind) {
    case model::LaunchKind::kKernel:
    case model::LaunchKind::kGraph: return "launch";
    case model::LaunchKind::kCopy: return "copy";
    case model::LaunchKind::kMemset: return "set";
    case model::LaunchKind::kSynchronize: return "synchronize";
    case model::LaunchKind::kOther: break;
  }
  return cuda_kind(session.strings.view(call.name));
}

bool is_cuda_library(std::string_view file) {
  return file.starts_with("libcudart.so") || file.starts_with("libcuda.so");
}

}  // namespace

PartNames::PartNames(const model::Session& session) : session_(session) {
  name_stacks();
  unknown_ = part(kNative, session.cpu.unwinding == "none" ? "native code" : "(unknown)");
  kernel_ = part(kNative, "[kernel]");
  unrecorded_wait_ = part(kWaiting, "other");
  for (std::size_t kind = 0; kind < std::size(model::kWaitNames); ++kind)
    waits_[kind] = part(kWaiting, model::kWaitNames[kind]);
}

std::uint32_t PartNames::of_call(const model::Launch& call) {
  return part(kCuda, call_kind(session_, call));
}

void PartNames::name_stacks() {
  const model::CpuProfile& cpu = session_.cpu;
  of_stack_.resize(cpu.stacks.size());
  // By the outermost function of CUDA, where there is one.
  std::vector<std::uint32_t> cuda(cpu.stacks.size(), kNone);
  const std::uint32_t python = part(kPython, "");
  for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {
    const model::CpuStack& stack = cpu.stacks[s];
    const model::CpuFrame& frame = cpu.frames[stack.frame];
    const std::string_view module = base::file_name(session_.strings.view(frame.module));
    if (stack.parent != kNone)
      cuda[s] = cuda[stack.parent];
    if (cuda[s] == kNone && is_cuda_library(module))
      cuda[s] = part(kCuda, cuda_kind(session_.strings.view(frame.name)));
    if (cuda[s] != kNone)
      of_stack_[s] = cuda[s];
    else if (frame.kind == model::FrameKind::kPython || is_python_module(module))
      of_stack_[s] = python;
    else
      of_stack_[s] = part_of_native(frame, module);
  }
}

std::uint32_t PartNames::part_of_native(const model::CpuFrame& frame, std::string_view module) {
  if (frame.kind == model::FrameKind::kCut)
    return part(kNative, "(unknown)");
  const bool is_generated = module.empty() || module.starts_with("//");
  return part(kNative, is_generated ? "(JIT)" : module);
}

}  // namespace rangescope::analyze
