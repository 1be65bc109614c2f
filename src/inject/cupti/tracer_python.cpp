#include <link.h>

#include <cstring>

#include "inject/cupti/tracer.hpp"
#include "inject/nvtx/setting.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {
namespace gpu = wire::gpu;
namespace {

// PyTorch's half of Python is in it. A program that loads it after CUDA has no modules, unless it
// asks for them.
int is_pytorch(dl_phdr_info* info, std::size_t, void*) {
  if (info->dlpi_name == nullptr) return 0;
  return std::strstr(info->dlpi_name, "libtorch_python") != nullptr ? 1 : 0;
}

bool is_pytorch_loaded() {
  return dl_iterate_phdr(is_pytorch, nullptr) != 0;
}

}  // namespace

std::uint32_t define_module(void* user, std::uint32_t around, const char* name, const char* type, bool is_function) {
  Tracer& t = *static_cast<Tracer*>(user);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  return t.encoder.module(around, name, type, is_function);
}

void find_modules(Tracer& t) {
  const char* why = "--modules off";
  const char* functions = setting(wire::kFunctions);
  const char* phases = setting(wire::kPhases);
  const bool asked = t.settings.module_levels != 0 || functions != nullptr;
  if (t.settings.modules && !asked && !is_pytorch_loaded())
    why = "PyTorch is not loaded";
  else if (t.settings.modules)
    t.in_modules = t.modules.start(t.settings.module_levels, why);
  const auto kept = [](const char* text) { return text != nullptr ? strdup(text) : nullptr; };
  if (t.in_modules) t.autograd.find();
  if (t.in_modules) t.modules.functions().choose(kept(phases), kept(functions));
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info("modules", t.in_modules ? "on" : why);
}

void note_memory(void* user, const char* outcome) {
  Tracer& t = *static_cast<Tracer*>(user);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info(gpu::kMemoryKey, outcome);
  t.stream.flush();  // a process that ends by os._exit has said so
}

// Windows and `attach` begin and end while PyTorch's recorder knows one beginning and no end: it is
// left alone there.
void record_memory(Tracer& t) {
  const bool is_whole_run = !t.follows && !t.settings.attached;
  const bool is_wanted = t.settings.memory && is_whole_run && is_pytorch_loaded();
  const char* state = gpu::kMemoryOff;
  if (is_wanted) state = t.memory.start(t.settings.path, t.settings.memory_stacks);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info(gpu::kMemoryKey, state);
}

}  // namespace rangescope::inject::cupti
