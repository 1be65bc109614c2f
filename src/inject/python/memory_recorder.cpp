#include "inject/python/memory_recorder.hpp"

#include <dlfcn.h>

#include <cstring>
#include <type_traits>

#include "inject/python/interpreter.hpp"
#include "wire/gpu.hpp"

namespace rangescope::inject::python {
namespace {

/// Given: `path`, `stacks`, `most`. Leaves `outcome`: "early" to be run again at a later call, else
/// what MemoryRecorder::Tell says.
constexpr char kCode[] = R"python(
def begin(path, stacks, most):
    import sys
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    memory = getattr(cuda, "memory", None)
    if memory is None or not cuda.is_initialized():
        return "early"
    if not hasattr(memory, "_record_memory_history") or not hasattr(memory, "_snapshot"):
        return "this PyTorch does not record its memory"

    import atexit
    import os
    import pickle
    owner = os.getpid()

    def peaks(snapshot):
        found = {}
        for device, events in enumerate(snapshot.get("device_traces", ())):
            if events:
                statistics = memory.memory_stats(device)
                found[device] = statistics.get("allocated_bytes.all.peak", 0)
        return found

    def save():
        if os.getpid() != owner:
            return
        try:
            snapshot = memory._snapshot()
            names = ("segments", "device_traces", "allocator_settings")
            kept = {name: snapshot[name] for name in names if name in snapshot}
            kept["most_events"] = most
            kept["peaks"] = peaks(snapshot)
            with open(path + ".part", "xb") as file:
                pickle.dump(kept, file, 4)
            os.rename(path + ".part", path)
        except BaseException:
            try:
                os.unlink(path + ".part")
            except OSError:
                pass

    is_on = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if is_on is not None and is_on():
        atexit.register(save)
        return "the program's own"
    try:
        memory._record_memory_history("all", context="alloc" if stacks else None, stacks="python", max_entries=most)
    except TypeError:
        return "PyTorch before 2.1 records memory in another way"
    atexit.register(save)
    return "on"


try:
    outcome = begin(path, stacks, most)
except Exception as error:
    outcome = "PyTorch refused: " + type(error).__name__
)python";
constexpr char kCodeName[] = "<rangescope>";
constexpr int kFileInput = 257;  // Py_file_input

}  // namespace

bool MemoryRecorder::find_api() {
  void* library = library_of_python();
  bool has_all = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    has_all = has_all && function != nullptr;
  };
  find(api_.is_initialized, "Py_IsInitialized");
  find(api_.add_pending, "Py_AddPendingCall");
  find(api_.compile, "Py_CompileString");
  find(api_.evaluate, "PyEval_EvalCode");
  find(api_.new_dictionary, "PyDict_New");
  find(api_.set_item, "PyDict_SetItemString");
  find(api_.get_item, "PyDict_GetItemString");
  find(api_.builtins, "PyEval_GetBuiltins");
  find(api_.text, "PyUnicode_FromString");
  find(api_.utf8, "PyUnicode_AsUTF8");
  find(api_.integer, "PyLong_FromLong");
  find(api_.forget, "Py_DecRef");
  return has_all;
}

bool MemoryRecorder::start(const char* file, bool stacks, const char*& why) {
  why = "there is no Python";
  if (!find_api()) return false;
  why = "the run's path is too long";
  if (std::strlen(file) >= sizeof file_) return false;
  std::strcpy(file_, file);
  stacks_ = stacks;
  wants_call_.store(true);
  return true;
}

/// CUDA may be used by others long before PyTorch does: tries come at twice as many calls each time.
void MemoryRecorder::ask() {
  const std::uint64_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (call < next_try_.load(std::memory_order_relaxed)) return;
  if (api_.is_initialized() == 0) return;  // it has ended, and may be gone
  bool is_first = true;
  if (!wants_call_.compare_exchange_strong(is_first, false)) return;
  next_try_.store(call * 2, std::memory_order_relaxed);
  if (api_.add_pending(run, this) != 0) wants_call_.store(true);  // too many wait: at a later call
}

bool MemoryRecorder::set(const char* key, void* value) {
  if (value == nullptr) return false;
  const bool is_set = api_.set_item(globals_, key, value) == 0;
  api_.forget(value);
  return is_set;
}

bool MemoryRecorder::prepare() {
  if (code_ != nullptr) return true;
  globals_ = api_.new_dictionary();
  if (globals_ == nullptr) return false;
  const bool has_names = api_.set_item(globals_, "__builtins__", api_.builtins()) == 0 &&
                         set("path", api_.text(file_)) && set("stacks", api_.integer(stacks_ ? 1 : 0)) &&
                         set("most", api_.integer(kMostEvents));
  if (!has_names) return false;
  code_ = api_.compile(kCode, kCodeName, kFileInput);
  return code_ != nullptr;
}

/// On the main thread, between two instructions. What is raised goes on to the program, as it would
/// have been raised there: KeyboardInterrupt, or no memory.
int MemoryRecorder::run(void* self) {
  auto& recorder = *static_cast<MemoryRecorder*>(self);
  const Api& api = recorder.api_;
  if (!recorder.prepare()) return -1;
  void* nothing = api.evaluate(recorder.code_, recorder.globals_, recorder.globals_);
  if (nothing == nullptr) return -1;
  api.forget(nothing);
  void* outcome = api.get_item(recorder.globals_, "outcome");
  const char* text = outcome != nullptr ? api.utf8(outcome) : nullptr;
  if (text == nullptr) return 0;
  const bool is_early = std::strcmp(text, "early") == 0;
  if (is_early && ++recorder.tries_ < kMostTries)
    recorder.wants_call_.store(true);
  else
    recorder.tell_(recorder.user_, is_early ? wire::gpu::kMemoryOff : text);
  return 0;
}

}  // namespace rangescope::inject::python
