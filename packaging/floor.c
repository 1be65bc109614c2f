/* What glibc 2.32 to 2.36 added and the compiler's own libraries (libstdc++.a, libgcc_eh.a of g++ 12) ask for, for links
 * against an older glibc. Hidden: a program sees none of it. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* glibc 2.32: set while the process has one thread. Never claiming it is always right. */
HIDDEN char single_threaded __asm__("__libc_single_threaded") = 0;

/* glibc 2.36: arc4random. Like glibc's, it never fails: without entropy from the kernel, the clock has to do. */
HIDDEN void random_bytes(void* into, size_t size) __asm__("arc4random_buf");
void random_bytes(void* into, size_t size) {
  unsigned char* at = into;
  while (size > 0) {
    const size_t part = size < 256 ? size : 256;
    if (getentropy(at, part) != 0) {
      struct timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      uint64_t state = ((uint64_t)now.tv_sec << 32) ^ (uint64_t)now.tv_nsec ^ (uintptr_t)&now;
      for (size_t i = 0; i < part; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        at[i] = (unsigned char)(state >> 33);
      }
    }
    at += part;
    size -= part;
  }
}

HIDDEN uint32_t random_word(void) __asm__("arc4random");
uint32_t random_word(void) {
  uint32_t word;
  random_bytes(&word, sizeof word);
  return word;
}

/* glibc 2.35: the object that holds an address, and its unwinding table; libgcc's unwinder asks for nothing else. */
struct found_object {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  struct link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};

struct search {
  uintptr_t address;
  struct found_object* found;
};

static int holds(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  uintptr_t low = UINTPTR_MAX, high = 0, table = 0;
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
    if (header->p_type == PT_LOAD) {
      inside |= search->address >= start && search->address < end;
      low = start < low ? start : low;
      high = end > high ? end : high;
    } else if (header->p_type == PT_GNU_EH_FRAME) {
      table = start;
    }
  }
  if (!inside || table == 0) return 0;
  search->found->map_start = (void*)low;
  search->found->map_end = (void*)high;
  search->found->eh_frame = (void*)table;
  return 1;
}

HIDDEN int find_object(void* address, struct found_object* found) __asm__("_dl_find_object");
int find_object(void* address, struct found_object* found) {
  *found = (struct found_object){0};
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(holds, &search) != 0 ? 0 : -1;
}
