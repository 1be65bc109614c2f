#include "inject/nvtx/chain.hpp"
#include "wire/names.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>

namespace rangescope::inject::chain {
namespace {

constexpr unsigned kModules = NVTX_CB_MODULE_SIZE;
constexpr unsigned kMostCallbacks = 32;

// Written by whoever attaches a client, always with the same values: the other library has one
// function for a callback.
std::atomic<NvtxFunctionPointer> functions[kModules][kMostCallbacks];

struct Table {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  NvtxFunctionPointer before[kMostCallbacks] = {};
};

Table table_of(const NvtxExportTableCallbacks& callbacks, unsigned module) {
  Table found;
  if (callbacks.GetModuleFunctionTable(static_cast<NvtxCallbackModule>(module), &found.table,
                                       &found.size) == 0)
    return {};
  if (found.table == nullptr) return {};
  if (found.size > kMostCallbacks) found.size = kMostCallbacks;
  for (unsigned i = 0; i < found.size; ++i)
    found.before[i] = found.table[i] != nullptr ? *found.table[i] : nullptr;
  return found;
}

}  // namespace

__attribute__((tls_model("initial-exec"))) thread_local std::uint64_t given_range_id = 0;

NvtxFunctionPointer next(unsigned module, unsigned index) {
  return functions[module][index].load(std::memory_order_acquire);
}

void* library() {
  const char* path = getenv(wire::kChainNvtx);
  return path == nullptr || path[0] == '\0' ? nullptr : dlopen(path, RTLD_LAZY);
}

bool initialize(NvtxGetExportTableFunc_t get_table) {
  void* const other = library();
  if (other == nullptr) return false;
  auto* start =
      reinterpret_cast<NvtxInitializeInjectionNvtxFunc_t>(dlsym(other, "InitializeInjectionNvtx2"));
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (start == nullptr || callbacks == nullptr) return false;
  Table tables[kModules];
  for (unsigned module = 1; module < kModules; ++module)
    tables[module] = table_of(*callbacks, module);
  if (start(get_table) == 0) return false;
  for (unsigned module = 1; module < kModules; ++module) {
    const Table& t = tables[module];
    for (unsigned i = 0; i < t.size; ++i) {
      if (t.table[i] == nullptr || *t.table[i] == t.before[i]) continue;
      functions[module][i].store(*t.table[i], std::memory_order_release);
      // Its domains would be ours there: user synchronization objects are off while two tools
      // listen.
      if (module == NVTX_CB_MODULE_SYNC) *t.table[i] = nullptr;
    }
  }
  return true;
}

}  // namespace rangescope::inject::chain
