#include "inject/cupti/give_way.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "inject/nvtx/quiet.hpp"
#include "inject/text.hpp"

namespace rangescope::inject::cupti {
namespace {

// Pages of the table that are read-only after relocation (PT_GNU_RELRO).
struct ReadOnly {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
// An entry of a library's global offset table that now points to a function of ours.
struct Slot {
  void** place;
  void* previous_value;
  void* library;  // its base address
  ReadOnly read_only;
};
constexpr std::size_t kMostSlots = 32;
Slot slots[kMostSlots];
std::size_t slot_count = 0;
const Api* the_api = nullptr;
bool we_share = false;
void (*the_let_go)(const char*) = nullptr;

void make_way(const void* caller) {
  static std::mutex one_at_a_time;
  const KeepErrno keep_errno;
  const NoCancel no_cancel;
  const std::lock_guard<std::mutex> guard(one_at_a_time);
  Dl_info library{};
  const char* name = nullptr;
  if (dladdr(caller, &library) != 0)
    name = library.dli_fname;
  the_let_go(text_or(name, "the program"));
}

CUptiResult CUPTIAPI subscribe_v1(CUpti_SubscriberHandle* handle,
                                  CUpti_CallbackFunc callback,
                                  void* user) {
  make_way(__builtin_return_address(0));
  return the_api->cuptiSubscribe(handle, callback, user);
}

CUptiResult CUPTIAPI subscribe_v2(CUpti_SubscriberHandle* handle,
                                  CUpti_CallbackFunc callback,
                                  void* user,
                                  CUpti_SubscriberParams* parameters) {
  const auto* request = reinterpret_cast<const SubscriberParameters*>(parameters);
  const bool other_shares =
      request != nullptr && request->bytes >= sizeof *request && request->shared != 0;
  if (!we_share || !other_shares)
    make_way(__builtin_return_address(0));
  return the_api->cuptiSubscribe_v2(handle, callback, user, parameters);
}

void* ours_for(const char* function) {
  if (std::strcmp(function, "cuptiSubscribe") == 0)
    return reinterpret_cast<void*>(subscribe_v1);
  if (std::strcmp(function, "cuptiSubscribe_v2") == 0)
    return reinterpret_cast<void*>(subscribe_v2);
  return nullptr;
}

void* library_of(const void* place) {
  Dl_info library{};
  if (dladdr(place, &library) == 0)
    return nullptr;
  return library.dli_fbase;
}

bool write_slot(const Slot& slot, void* value) {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(slot.place) & ~(page_bytes - 1);
  void* const page = reinterpret_cast<void*>(begin);
  if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0)
    return false;
  __atomic_store_n(slot.place, value, __ATOMIC_RELEASE);
  if (begin >= slot.read_only.begin && begin + page_bytes <= slot.read_only.end)
    mprotect(page, page_bytes, PROT_READ);
  return true;
}

// The symbols that a library imports, and the relocations of its global offset table.
struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;
  const ElfW(Rela) * data = nullptr;
  std::size_t call_bytes = 0;
  std::size_t data_bytes = 0;
  std::size_t relative = 0;  // relocations without symbol, at the beginning of `data`
  bool of_cupti = false;
};

Imports imports_of(const dl_phdr_info& info, const ElfW(Dyn) * dynamic) {
  Imports imports;
  // The addresses may be relative to the library's base.
  const auto pointer = [&](const ElfW(Dyn) & entry) {
    const ElfW(Addr) address = entry.d_un.d_ptr;
    const bool is_relative = address < info.dlpi_addr;
    return reinterpret_cast<const void*>(is_relative ? address + info.dlpi_addr : address);
  };
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB: imports.symbols = static_cast<const ElfW(Sym)*>(pointer(*entry)); break;
      case DT_STRTAB: imports.names = static_cast<const char*>(pointer(*entry)); break;
      case DT_JMPREL: imports.calls = static_cast<const ElfW(Rela)*>(pointer(*entry)); break;
      case DT_RELA: imports.data = static_cast<const ElfW(Rela)*>(pointer(*entry)); break;
      case DT_PLTRELSZ: imports.call_bytes = entry->d_un.d_val; break;
      case DT_RELASZ: imports.data_bytes = entry->d_un.d_val; break;
      case DT_RELACOUNT: imports.relative = entry->d_un.d_val; break;
      default: break;
    }
  }
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL && imports.names != nullptr;
       ++entry) {
    if (entry->d_tag == DT_NEEDED &&
        std::strstr(imports.names + entry->d_un.d_val, "libcupti.so") != nullptr)
      imports.of_cupti = true;
  }
  return imports;
}

bool is_table_entry(std::uint64_t relocation) {
#if defined(__x86_64__)
  return ELF64_R_TYPE(relocation) == R_X86_64_JUMP_SLOT ||
         ELF64_R_TYPE(relocation) == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  return ELF64_R_TYPE(relocation) == R_AARCH64_JUMP_SLOT ||
         ELF64_R_TYPE(relocation) == R_AARCH64_GLOB_DAT;
#else
  return false;
#endif
}

// Makes a library's table entries of cuptiSubscribe point to functions of ours.
int redirect_imports(dl_phdr_info* info, std::size_t, void*) {
  const ElfW(Dyn)* dynamic = nullptr;
  ReadOnly read_only;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (header.p_type == PT_GNU_RELRO)
      read_only = {begin, begin + header.p_memsz};
  }
  if (dynamic == nullptr)
    return 0;
  const Imports imports = imports_of(*info, dynamic);
  if (!imports.of_cupti || imports.symbols == nullptr)
    return 0;
  const auto redirect = [&](const ElfW(Rela) * relocations, std::size_t first, std::size_t bytes) {
    for (std::size_t i = first; relocations != nullptr && i < bytes / sizeof *relocations; ++i) {
      if (!is_table_entry(relocations[i].r_info) || slot_count == kMostSlots)
        continue;
      const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(relocations[i].r_info)];
      void* const ours = ours_for(imports.names + symbol.st_name);
      if (ours == nullptr)
        continue;
      auto** const place = reinterpret_cast<void**>(info->dlpi_addr + relocations[i].r_offset);
      const Slot slot{place, *place, library_of(place), read_only};
      if (write_slot(slot, ours))
        slots[slot_count++] = slot;
    }
  };
  redirect(imports.calls, 0, imports.call_bytes);
  redirect(imports.data, imports.relative, imports.data_bytes);
  return 0;
}

}  // namespace

void give_way(const Api& api, bool shared, void (*let_go)(const char* library)) {
  the_api = &api;
  we_share = shared;
  the_let_go = let_go;
  if (slot_count == 0)
    dl_iterate_phdr(redirect_imports, nullptr);
}

void keep_way() {
  while (slot_count > 0) {
    --slot_count;
    const Slot& slot = slots[slot_count];
    const bool is_still_loaded = library_of(slot.place) == slot.library;
    if (is_still_loaded)
      (void)write_slot(slot, slot.previous_value);
  }
}

}  // namespace rangescope::inject::cupti
