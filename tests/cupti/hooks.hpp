// Between the stand-in libcuda.so.1 and the stand-in libcupti.so: what the driver tells a CUPTI
// that is loaded.
#pragma once

#include <cstdint>

namespace standin {

inline constexpr std::uint32_t kContext = 1;

struct Work {
  std::uint64_t start_ns, end_ns;  ///< CLOCK_MONOTONIC; 0, 0: still running
  std::uint32_t correlation, stream, context;
  std::uint64_t node;  ///< graph node, or 0
  const char* name;    ///< kernels
  std::uint32_t grid, block;
  std::uint64_t bytes;  ///< copies and sets
  std::uint8_t copy_kind;
};

/// Set by libcupti.so when it is loaded; all null until then.
struct Hooks {
  /// `parameters`: the call's struct of generated_cuda_meta.h, `symbol` the kernel's name; null
  /// where there is none.
  void (*enter)(std::uint32_t cbid,
                std::uint32_t correlation,
                std::uint64_t* data,
                const void* parameters,
                const char* symbol);
  void (*exit)(std::uint32_t cbid,
               std::uint32_t correlation,
               std::uint64_t* data,
               const void* parameters,
               std::uint64_t start_ns,
               std::uint64_t end_ns,
               int result);
  void (*kernel)(const Work& work);
  void (*copy)(const Work& work);
  void (*set)(const Work& work);
  void (*synchronized)(std::uint32_t correlation, std::uint64_t start_ns, std::uint64_t end_ns);
  void (*graph)(std::uint32_t graph, const Work& work);
  void (*context_made)();
  void (*context_ends)();
  void (*graph_made)(std::uint64_t graph);
  void (*node_made)(std::uint64_t node, std::uint64_t original);
};

}  // namespace standin

extern "C" void standin_set_hooks(const standin::Hooks* hooks);
