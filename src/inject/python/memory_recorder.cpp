#include "inject/python/memory_recorder.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <type_traits>

#include "inject/python/interpreter.hpp"
#include "wire/gpu.hpp"

namespace rangescope::inject::python {
namespace {

/// Run with the variables `path`, `stacks` and `most`, repeatedly until `outcome` is not "later".
/// First it turns the recorder on, then it waits until a module is called, to learn which module
/// each tensor belongs to. Variables that are kept from run to run end in `_`.
constexpr char kCode[] = R"python(
def begin(path, stacks, most):
    import sys
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    memory = getattr(cuda, "memory", None)
    if memory is None or not cuda.is_initialized():
        return "later"
    if not hasattr(memory, "_record_memory_history") or not hasattr(memory, "_snapshot"):
        return "this PyTorch does not record its memory"
    is_on = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    outcome = "the program's own"
    if is_on is None or not is_on():
        try:
            context = "alloc" if stacks else None
            memory._record_memory_history("all", context=context, stacks="python", max_entries=most)
        except TypeError:
            return "PyTorch before 2.1 records memory in another way"
        outcome = "on"
    save_at_exit(memory, path, most)
    note_failures(torch)
    return outcome


def save_at_exit(memory, path, most):
    import atexit
    import os
    import pickle
    owner = os.getpid()

    def peaks(snapshot):
        found = {}
        for device, events in enumerate(snapshot.get("device_traces", ())):
            if events:
                found[device] = memory.memory_stats(device).get("allocated_bytes.all.peak", 0)
        return found

    def save():
        if os.getpid() != owner:
            return
        try:
            snapshot = memory._snapshot()
            names = ("segments", "device_traces", "allocator_settings")
            kept = {name: snapshot[name] for name in names if name in snapshot}
            kept.update(most_events=most, peaks=peaks(snapshot), **known_)
            with open(path + ".part", "xb") as file:
                pickle.dump(kept, file, 4)
            os.rename(path + ".part", path)
        except BaseException:
            try:
                os.unlink(path + ".part")
            except OSError:
                pass

    atexit.register(save)


def modules_around():
    """Those that this thread is in, the outermost last."""
    import sys
    module_type = sys.modules["torch"].nn.Module
    frame, found = sys._getframe(), []
    while frame is not None:
        if frame.f_code.co_name in ("_call_impl", "_wrapped_call_impl"):
            called = frame.f_locals.get("self")
            if isinstance(called, module_type) and (not found or found[-1] is not called):
                found.append(called)
        frame = frame.f_back
    return found


def path_of(root, name, modules):
    """A module as regions name it; containers that are not called are left out."""
    parts, names = [type(root).__name__], name.split(".") if name else []
    for last in range(1, len(names) + 1):
        prefix = ".".join(names[:last])
        kind = type(modules[prefix]).__name__
        if kind not in ("ModuleList", "ModuleDict"):
            parts.append(f"{prefix} ({kind})")
    return " > ".join(parts)


def note_failures(torch):
    def out_of_memory(device, *sizes):
        try:
            path, around = "", modules_around()
            if around:
                modules = dict(around[-1].named_modules())
                names = [name for name, module in modules.items() if module is around[0]]
                path = path_of(around[-1], names[0], modules) if names else type(around[0]).__name__
            known_["failures"].append([device, path])
        except Exception:
            pass

    observe = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if observe is not None:
        observe(out_of_memory)


def places(module):
    """Device and address of each tensor that a module itself has on a GPU."""
    found = []
    for tensor in (*module._parameters.values(), *module._buffers.values()):
        try:
            if tensor is not None and tensor.is_cuda:
                found.append([tensor.device.index, tensor.untyped_storage().data_ptr()])
        except Exception:
            pass
    return found


def name_tensors():
    import time
    around = modules_around()
    if not around:
        return "later"
    root = around[-1]
    modules = dict(root.named_modules())
    known_["modules"] = [[path_of(root, name, modules), places(modules[name])] for name in modules]
    known_["modules_time_us"] = time.time_ns() // 1000
    return "named"


try:
    if "known_" in globals():
        outcome = name_tensors()
    else:
        known_ = {"failures": []}
        outcome = begin(path, stacks, most)
        if outcome == "later":
            del known_
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

const char* MemoryRecorder::start(const char* stream, bool stacks) {
  if (!find_api())
    return "there is no Python";
  const auto length = static_cast<int>(std::strlen(stream) - std::strlen(wire::gpu::kSuffix));
  const char* const suffix = wire::gpu::kMemorySuffix;
  const int written = std::snprintf(file_, sizeof file_, "%.*s%s", length, stream, suffix);
  if (written >= static_cast<int>(sizeof file_))
    return "the path of the run is too long";
  stacks_ = stacks;
  wants_call_.store(true);
  return wire::gpu::kMemoryWaits;
}

/// Other code may use CUDA long before PyTorch does: tries are made after 1, 2, 4, ... calls.
void MemoryRecorder::ask() {
  const std::uint64_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (call < next_try_.load(std::memory_order_relaxed))
    return;
  if (api_.is_initialized() == 0)
    return;  // Python has ended
  bool is_first = true;
  if (!wants_call_.compare_exchange_strong(is_first, false))
    return;
  next_try_.store(call * 2, std::memory_order_relaxed);
  if (api_.add_pending(run, this) != 0)
    wants_call_.store(true);  // the queue is full: try later
}

bool MemoryRecorder::set(const char* key, void* value) {
  if (value == nullptr)
    return false;
  const bool is_set = api_.set_item(globals_, key, value) == 0;
  api_.forget(value);
  return is_set;
}

bool MemoryRecorder::prepare() {
  if (code_ != nullptr)
    return true;
  globals_ = api_.new_dictionary();
  if (globals_ == nullptr)
    return false;
  const bool has_names = api_.set_item(globals_, "__builtins__", api_.builtins()) == 0 &&
                         set("path", api_.text(file_)) && set("most", api_.integer(kMostEvents)) &&
                         set("stacks", api_.integer(int{stacks_}));
  if (!has_names)
    return false;
  code_ = api_.compile(kCode, kCodeName, kFileInput);
  return code_ != nullptr;
}

/// On the main thread, between two instructions. An exception (KeyboardInterrupt, or no memory) is
/// passed on to the program, where it would have been raised without us.
int MemoryRecorder::run(void* self) {
  auto& recorder = *static_cast<MemoryRecorder*>(self);
  const Api& api = recorder.api_;
  if (!recorder.prepare())
    return -1;
  void* nothing = api.evaluate(recorder.code_, recorder.globals_, recorder.globals_);
  if (nothing == nullptr)
    return -1;
  api.forget(nothing);
  void* outcome = api.get_item(recorder.globals_, "outcome");
  const char* text = outcome != nullptr ? api.utf8(outcome) : nullptr;
  if (text == nullptr)
    return 0;
  recorder.go_on(text);
  return 0;
}

void MemoryRecorder::go_on(const char* outcome) {
  const bool is_later = std::strcmp(outcome, "later") == 0;
  const auto is = [outcome](const char* word) { return std::strcmp(outcome, word) == 0; };
  const bool is_recording = is(wire::gpu::kMemoryOn) || is(wire::gpu::kMemoryOfProgram);
  if (!is_reported_ && !is_later) {
    is_reported_ = true;
    tell_(user_, outcome);
  }
  const bool has_more = is_recording || (is_later && ++tries_ < kMostTries);
  if (has_more)
    wants_call_.store(true);
}

}  // namespace rangescope::inject::python
