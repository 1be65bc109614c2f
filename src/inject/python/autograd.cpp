#include "inject/python/autograd.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace rangescope::inject::python {
namespace {

using wire::gpu::MadeBy;

// Of torch::autograd::Node, behind the pointer to its functions and its references; both kinds are
// 16 bytes: std::enable_shared_from_this, and a count with what follows it.
constexpr std::size_t kShared = 24, kIntrusive = 16;
struct Numbers {
  std::uint64_t sequence, depth, flags, thread;
};

constexpr std::uint64_t kMostNumbers = std::uint64_t{1}
                                       << 48;  // AccumulateGrad has the largest there is: none

int find_library(dl_phdr_info* info, std::size_t, void* into) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "/libtorch_cpu.so") == nullptr)
    return 0;
  *static_cast<const char**>(into) = info->dlpi_name;
  return 1;
}

MadeBy made_by(std::uint64_t sequence, std::uint64_t thread, MadeBy::What what) {
  return {sequence < kMostNumbers ? static_cast<std::uint32_t>(sequence) : MadeBy::kNoNumber,
          static_cast<std::uint16_t>(thread), what};
}

}  // namespace

bool Autograd::find() {
  current_ = nullptr;
  const char* path = nullptr;
  if (dl_iterate_phdr(find_library, static_cast<void*>(&path)) == 0) return false;
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  peek_ = reinterpret_cast<std::uint64_t (*)()>(dlsym(library, "_ZN2at15sequence_number4peekEv"));
  thread_ = reinterpret_cast<std::uint64_t (*)()>(
      dlsym(library, "_ZN2at14RecordFunction15currentThreadIdEv"));
  shared_ = dlsym(library, "_ZN5torch8autograd10deleteNodeEPNS0_4NodeE") !=
            nullptr;  // std::shared_ptr's deleter
  if (peek_ == nullptr || thread_ == nullptr) return false;
  current_ =
      reinterpret_cast<Reference (*)()>(dlsym(library, "_ZN5torch8autograd16get_current_nodeEv"));
  return current_ != nullptr;
}

MadeBy Autograd::here(bool in_module) const {
  if (current_ == nullptr) return {};
  const Reference node = current_();
  Numbers function{};
  if (node.function != nullptr) {
    std::memcpy(&function,
                static_cast<const char*>(node.function) + (shared_ ? kShared : kIntrusive),
                sizeof function);
    // The reference is given back. The engine's own keep it from being the last but one, at which
    // PyTorch acts.
    if (shared_)
      __atomic_fetch_sub(static_cast<std::int32_t*>(node.count) + 2, 1, __ATOMIC_ACQ_REL);
    else
      __atomic_fetch_sub(static_cast<std::uint64_t*>(node.function) + 1, 1, __ATOMIC_ACQ_REL);
    if (!in_module) return made_by(function.sequence, function.thread, MadeBy::kFunction);
  }
  const std::uint64_t next = peek_();
  if (next == 0 && node.function == nullptr) return {};
  MadeBy made = made_by(next != 0 ? next - 1 : kMostNumbers, thread_(), MadeBy::kOperator);
  made.evaluates = node.function != nullptr ? 1 : 0;
  return made;
}

}  // namespace rangescope::inject::python
