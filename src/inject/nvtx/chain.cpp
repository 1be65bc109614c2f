#include "inject/nvtx/chain.hpp"
#include "wire/names.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>

namespace rangescope::inject::chain {
namespace {

constexpr unsigned kModules = NVTX_CB_MODULE_SIZE;
constexpr unsigned kMostCallbacks = 32;

// Written each time a client attaches, always with the same values: the other library has one
// function for a callback.
std::atomic<NvtxFunctionPointer> functions[kModules][kMostCallbacks];

struct Table {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  NvtxFunctionPointer before[kMostCallbacks] = {};
};

Table table_of(const NvtxExportTableCallbacks& callbacks, unsigned module) {
  Table module_table;
  if (callbacks.GetModuleFunctionTable(
          static_cast<NvtxCallbackModule>(module), &module_table.table, &module_table.size) == 0)
    return {};
  if (module_table.table == nullptr)
    return {};
  if (module_table.size > kMostCallbacks)
    module_table.size = kMostCallbacks;
  for (unsigned i = 0; i < module_table.size; ++i)
    if (module_table.table[i] != nullptr)
      module_table.before[i] = *module_table.table[i];
  return module_table;
}

}  // namespace

__attribute__((tls_model("initial-exec"))) thread_local std::uint64_t given_range_id = 0;

NvtxFunctionPointer next(unsigned module, unsigned index) {
  return functions[module][index].load(std::memory_order_acquire);
}

void* library() {
  const char* path = getenv(wire::kChainNvtx);
  if (path == nullptr || path[0] == '\0')
    return nullptr;
  return dlopen(path, RTLD_LAZY);
}

bool initialize(NvtxGetExportTableFunc_t get_table) {
  void* const other = library();
  if (other == nullptr)
    return false;
  auto* start_other =
      reinterpret_cast<NvtxInitializeInjectionNvtxFunc_t>(dlsym(other, "InitializeInjectionNvtx2"));
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (start_other == nullptr || callbacks == nullptr)
    return false;
  Table tables[kModules];
  for (unsigned module = 1; module < kModules; ++module)
    tables[module] = table_of(*callbacks, module);
  if (start_other(get_table) == 0)
    return false;
  for (unsigned module = 1; module < kModules; ++module) {
    const Table& table = tables[module];
    for (unsigned i = 0; i < table.size; ++i) {
      NvtxFunctionPointer* const callback = table.table[i];
      if (callback == nullptr || *callback == table.before[i])
        continue;
      functions[module][i].store(*callback, std::memory_order_release);
      // Its calls would carry our domain handles: user synchronization objects are off while two
      // tools listen.
      if (module == NVTX_CB_MODULE_SYNC)
        *callback = nullptr;
    }
  }
  return true;
}

}  // namespace rangescope::inject::chain
