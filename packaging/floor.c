/* What glibc 2.32 to 2.36 added and the compiler's own libraries (libstdc++.a, libgcc_eh.a of g++
 * 12) ask for, for links against an older glibc. Hidden: a program sees none of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* glibc 2.32: set while the process has one thread. Never claiming it is always right. */
HIDDEN char single_threaded __asm__("__libc_single_threaded") = 0;

/* glibc 2.36: arc4random. Like glibc's, it never fails: without entropy from the kernel, the clock
 * has to do. */
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

/* glibc 2.35: the object that holds an address, and its unwinding table; libgcc's unwinder asks for
 * nothing else. */
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

/* glibc 2.29 and 2.35: asked of the C library that is there; ENOSYS where it is older, and the
 * caller does without. */
static int of_the_libc(const char* name, void* actions, const void* argument, int descriptor) {
  void* function = dlsym(RTLD_NEXT, name);
  if (function == NULL) return ENOSYS;
  if (argument != NULL) return ((int (*)(void*, const void*))function)(actions, argument);
  return ((int (*)(void*, int))function)(actions, descriptor);
}

HIDDEN int spawn_in(void* actions,
                    const char* folder) __asm__("posix_spawn_file_actions_addchdir_np");
int spawn_in(void* actions, const char* folder) {
  return of_the_libc("posix_spawn_file_actions_addchdir_np", actions, folder, 0);
}

HIDDEN int spawn_in_foreground(void* actions,
                               int descriptor) __asm__("posix_spawn_file_actions_addtcsetpgrp_np");
int spawn_in_foreground(void* actions, int descriptor) {
  return of_the_libc("posix_spawn_file_actions_addtcsetpgrp_np", actions, NULL, descriptor);
}

/* glibc 2.32: "INT" for SIGINT. */
HIDDEN const char* signal_name(int number) __asm__("sigabbrev_np");
const char* signal_name(int number) {
  static const struct {
    int number;
    const char* name;
  } known[] = {{SIGHUP, "HUP"},     {SIGINT, "INT"},      {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},
               {SIGTRAP, "TRAP"},   {SIGABRT, "ABRT"},    {SIGBUS, "BUS"},   {SIGFPE, "FPE"},
               {SIGKILL, "KILL"},   {SIGUSR1, "USR1"},    {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
               {SIGPIPE, "PIPE"},   {SIGALRM, "ALRM"},    {SIGTERM, "TERM"}, {SIGCHLD, "CHLD"},
               {SIGCONT, "CONT"},   {SIGSTOP, "STOP"},    {SIGTSTP, "TSTP"}, {SIGTTIN, "TTIN"},
               {SIGTTOU, "TTOU"},   {SIGURG, "URG"},      {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"},
               {SIGPROF, "PROF"},   {SIGSYS, "SYS"},      {SIGIO, "POLL"},   {SIGPWR, "PWR"},
               {SIGWINCH, "WINCH"}, {SIGVTALRM, "VTALRM"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i].number == number) return known[i].name;
  return NULL;
}

/* glibc 2.30: waits by any clock. Before, by the time of day, so a clock that is set in between
 * moves the end. */
HIDDEN int wait_by_clock(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                         const struct timespec*) __asm__("pthread_cond_clockwait");
int wait_by_clock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                  const struct timespec* until) {
  int (*newer)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*) =
      dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  if (newer != NULL) return newer(condition, mutex, clock, until);
  struct timespec now, day;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const int64_t ns =
      day.tv_nsec + (int64_t)until->tv_nsec - now.tv_nsec + 1000000000; /* 1 to 2,999,999,999 */
  const struct timespec end = {day.tv_sec + (until->tv_sec - now.tv_sec) + ns / 1000000000 - 1,
                               ns % 1000000000};
  return pthread_cond_timedwait(condition, mutex, &end);
}

/* glibc 2.29 gave these new versions, which differ in errno alone; linked with --wrap. */
#define OLDER(name, parameters, arguments)              \
  double older_##name parameters;                       \
  __asm__(".symver older_" #name "," #name "@" OLDEST); \
  HIDDEN double __wrap_##name parameters {              \
    return older_##name arguments;                      \
  }
#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif
OLDER(exp, (double x), (x))
OLDER(log, (double x), (x))
OLDER(pow, (double x, double y), (x, y))
