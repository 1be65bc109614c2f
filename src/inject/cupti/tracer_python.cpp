#include <link.h>

#include <cstring>

#include "inject/cupti/tracer.hpp"
#include "inject/nvtx/setting.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {
namespace gpu = wire::gpu;
namespace {

/// Whether the path of a loaded library contains one of `names`, which end with a null pointer.
bool is_loaded(const char* const* names) {
  const auto contains_name = [](dl_phdr_info* info, std::size_t, void* user) {
    if (info->dlpi_name == nullptr)
      return 0;
    const auto* name = static_cast<const char* const*>(user);
    for (; *name != nullptr; ++name)
      if (std::strstr(info->dlpi_name, *name) != nullptr)
        return 1;
    return 0;
  };
  return dl_iterate_phdr(contains_name, const_cast<char**>(names)) != 0;
}

// By the library with PyTorch's Python bindings. A program that loads it after CUDA has no modules,
// unless the settings ask for them.
bool is_pytorch_loaded() {
  constexpr const char* kNames[] = {"libtorch_python", nullptr};
  return is_loaded(kNames);
}

// The libraries of jaxlib from 0.6 on and before it, and the CUDA plugin of both.
bool is_jax_loaded() {
  constexpr const char* kNames[] = {"libjax_common", "xla_extension", "xla_cuda_plugin", nullptr};
  return is_loaded(kNames);
}

constexpr const char* kNoneOfJax = "JAX's allocator names no allocations";
constexpr const char* kNoneUnderAttach = "under attach: what is in use already has no owner";
constexpr const char* kNoneInWindows = "in windows: PyTorch's recorder has one beginning, no end";

/// Why a framework's allocations are not recorded; null if they are, or if none is loaded.
const char* why_no_memory(const Tracer& t) {
  if (!is_pytorch_loaded())
    return is_jax_loaded() ? kNoneOfJax : nullptr;
  if (t.settings.attached)
    return kNoneUnderAttach;
  if (t.follows)
    return kNoneInWindows;
  return nullptr;
}

}  // namespace

std::uint32_t define_module(
    void* user, std::uint32_t around, const char* name, const char* type, bool is_function) {
  Tracer& t = *static_cast<Tracer*>(user);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  return t.encoder.module(around, name, type, is_function);
}

void find_modules(Tracer& t) {
  const char* why = "--modules off";
  const char* functions = setting(wire::kFunctions);
  const char* phases = setting(wire::kPhases);
  const bool is_requested = t.settings.module_levels != 0 || functions != nullptr;
  if (t.settings.modules && !is_requested && !is_pytorch_loaded())
    why = "PyTorch is not loaded";
  else if (t.settings.modules)
    t.in_modules = t.modules.start(t.settings.module_levels, why);
  const auto kept = [](const char* text) { return text != nullptr ? strdup(text) : nullptr; };
  if (t.in_modules)
    t.autograd.find();
  if (t.in_modules)
    t.modules.functions().choose(kept(phases), kept(functions));
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info("modules", t.in_modules ? "on" : why);
}

void note_memory(void* user, const char* outcome) {
  Tracer& t = *static_cast<Tracer*>(user);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info(gpu::kMemoryKey, outcome);
  t.stream.flush();  // so that it is written even if the process ends by os._exit
}

// PyTorch's recorder can be started once and not ended, unlike windows and `attach`: it is not used
// there.
void record_memory(Tracer& t) {
  const char* state = gpu::kMemoryOff;
  if (t.settings.memory) {
    const char* why_not = why_no_memory(t);
    if (why_not != nullptr)
      state = why_not;
    else if (is_pytorch_loaded())
      state = t.memory.start(t.settings.path, t.settings.memory_stacks);
  }
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info(gpu::kMemoryKey, state);
}

}  // namespace rangescope::inject::cupti
