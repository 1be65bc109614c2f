#include "inject/python/autograd.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace rangescope::inject::python {
namespace {

using wire::gpu::MadeBy;

// Offset of the numbers in torch::autograd::Node: after the pointer to its virtual functions and
// its references, which are std::enable_shared_from_this or an intrusive count.
constexpr std::size_t kShared = 24;
constexpr std::size_t kIntrusive = 16;
struct Numbers {
  std::uint64_t sequence, depth, flags, thread;
};

// AccumulateGrad has the largest sequence number there is, which means none.
constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 48;

int find_library(dl_phdr_info* info, std::size_t, void* into) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "/libtorch_cpu.so") == nullptr)
    return 0;
  *static_cast<const char**>(into) = info->dlpi_name;
  return 1;
}

MadeBy made_by(std::uint64_t sequence, std::uint64_t thread, MadeBy::Kind kind) {
  const bool has_number = sequence < kMostNumbers;
  const auto number = has_number ? static_cast<std::uint32_t>(sequence) : MadeBy::kNoNumber;
  return {number, static_cast<std::uint16_t>(thread), kind};
}

}  // namespace

bool Autograd::find() {
  current_ = nullptr;
  const char* path = nullptr;
  if (dl_iterate_phdr(find_library, static_cast<void*>(&path)) == 0)
    return false;
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr)
    return false;
  peek_ = reinterpret_cast<std::uint64_t (*)()>(dlsym(library, "_ZN2at15sequence_number4peekEv"));
  thread_ = reinterpret_cast<std::uint64_t (*)()>(
      dlsym(library, "_ZN2at14RecordFunction15currentThreadIdEv"));
  const void* deleter_of_shared_ptr = dlsym(library, "_ZN5torch8autograd10deleteNodeEPNS0_4NodeE");
  shared_ = deleter_of_shared_ptr != nullptr;
  if (peek_ == nullptr || thread_ == nullptr)
    return false;
  current_ =
      reinterpret_cast<Reference (*)()>(dlsym(library, "_ZN5torch8autograd16get_current_nodeEv"));
  return current_ != nullptr;
}

MadeBy Autograd::here(bool in_module) const {
  if (current_ == nullptr)
    return {};
  const Reference node = current_();
  Numbers function{};
  if (node.function != nullptr) {
    const std::size_t offset = shared_ ? kShared : kIntrusive;
    std::memcpy(&function, static_cast<const char*>(node.function) + offset, sizeof function);
    // Releases the reference. The engine holds two itself, so the count does not reach the value at
    // which PyTorch acts.
    if (shared_)
      __atomic_fetch_sub(static_cast<std::int32_t*>(node.count) + 2, 1, __ATOMIC_ACQ_REL);
    else
      __atomic_fetch_sub(static_cast<std::uint64_t*>(node.function) + 1, 1, __ATOMIC_ACQ_REL);
    if (!in_module)
      return made_by(function.sequence, function.thread, MadeBy::kFunction);
  }
  const std::uint64_t next = peek_();
  if (next == 0 && node.function == nullptr)
    return {};
  MadeBy origin = made_by(next != 0 ? next - 1 : kMostNumbers, thread_(), MadeBy::kOperator);
  origin.evaluates = std::uint8_t{node.function != nullptr};
  return origin;
}

}  // namespace rangescope::inject::python
