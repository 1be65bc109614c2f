// The state of tracing in this process (trace.hpp), and its part that asks Python.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "inject/cupti/api.hpp"
#include "inject/cupti/call_details.hpp"
#include "inject/cupti/encode.hpp"
#include "inject/cupti/gpu_stream.hpp"
#include "inject/cupti/launches.hpp"
#include "inject/cupti/threads.hpp"
#include "inject/cupti/trace_settings.hpp"
#include "inject/python/autograd.hpp"
#include "inject/python/memory_recorder.hpp"
#include "inject/python/modules.hpp"

namespace rangescope::inject::cupti {

enum class State : int { kIdle, kRunning, kFinished };

inline constexpr std::uint32_t kMostCbids = 1200;

/// Defines a new module, on the launching thread; `user` is the Tracer.
std::uint32_t define_module(
    void* user, std::uint32_t around, const char* name, const char* type, bool is_function);
/// Writes the outcome of PyTorch's recorder; `user` is the Tracer.
void note_memory(void* user, const char* outcome);

struct Tracer {
  Tracer() : encoder(stream), modules(define_module, this), memory(note_memory, this) {}

  Api api;
  Subscription subscription;
  TraceSettings settings;
  std::atomic<State> state{State::kIdle};
  std::atomic<bool> tracing{false};
  bool own_clock = false;
  bool by_callback = false;
  std::atomic<bool> hardware_times{false};
  bool follows = false;           // another process opens and closes windows
  std::atomic<bool> awake{true};  // a window is open, or about to open
  std::uint32_t turns = 0;        // of the flusher
  std::uint32_t turns_a_flush = 1;
  CUpti_CallbackId calls[320] = {};
  std::size_t call_count = 0;
  DetailedFunction detailed[kMostCbids] = {};  // by callback id; 0: no details
  std::uint32_t generation = 0;                // of the process that it belongs to
  std::int64_t start_ns = 0;

  std::mutex stream_lock;  // guards stream, encoder and the counts below
  GpuStream stream;
  Encoder encoder;
  std::uint64_t cupti_dropped = 0;
  std::uint64_t reported_dropped = 0;

  BufferPool buffers;
  std::atomic<std::uint64_t> buffers_filled{0};
  std::atomic<std::uint64_t> buffers_seen{0};  // buffers_filled at the flusher's last turn
  LaunchLog launches;
  python::Modules modules;
  python::MemoryRecorder memory;
  python::Autograd autograd;
  bool in_modules = false;  // launches are looked up in modules

  Flusher flusher;
};

/// Decides by the settings whether launches are looked up in Python's modules, and writes that into
/// the stream.
void find_modules(Tracer& t);
/// Turns PyTorch's recorder of memory on, if settings and program allow it.
void record_memory(Tracer& t);

}  // namespace rangescope::inject::cupti
