#include "inject/nvtx/capture.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/control.hpp"
#include "inject/nvtx/process.hpp"
#include "inject/nvtx/quiet.hpp"
#include "wire/clock.hpp"
#include "wire/launchers.hpp"
#include "wire/names.hpp"

namespace rangescope::inject {

namespace {

#ifdef RANGESCOPE_VERSION
constexpr char kTool[] = "rangescope " RANGESCOPE_VERSION;
#else
constexpr char kTool[] = "rangescope";
#endif

namespace native = wire::native;
using native::Drop;

constexpr std::uint64_t kDefaultLimit = 4ull << 30;
constexpr std::uint64_t kLeastThinned = 16ull << 20;  // a smaller capture is full after some chunks
constexpr std::size_t kPopulate = 64 * 1024;
constexpr int kMadvPopulateRead = 22;  // MADV_POPULATE_*, newer than the headers that may be here
constexpr int kMadvPopulateWrite = 23;
constexpr std::uint64_t kMostFiles = 100000;  // process images of one pid in one folder

struct Settings {
  std::uint64_t limit;
  std::uint64_t rank_plus_1, local_rank_plus_1, world_size;
  char folder[PATH_MAX];
};
std::atomic<const Settings*> settings{nullptr};
std::atomic<native::FileHeader*> ancestor{
    nullptr};                      // of the last file that this process or one before a fork made
std::atomic<int> first_filter{0};  // PR_GET_SECCOMP when recording began
std::atomic<std::uint64_t> range_own_ps{0}, range_pair_ps{0};
std::atomic<std::int64_t> ahead_ns{0};  // of the machine's clock

}  // namespace

struct CaptureFile {
  native::FileHeader* header = nullptr;
  std::uint32_t window = 0;
  bool again = false;      // its place was that of another
  std::uint64_t room = 0;  // a sparse file of so many bytes, mapped as it is used; 0: each chunk is
                           // reserved by its own
  std::atomic<std::uint64_t> next{page_bytes()};  // where the next chunk begins
  std::atomic<std::uint64_t> refused_until{
      0};  // after a failure, try again when this many drops were counted
  std::atomic<Drop> refused_for{Drop::kNoSpace};
  std::atomic<std::uint64_t> drops{0};
  char path[PATH_MAX + 64];
};

namespace {

void bump(native::FileHeader& header, std::uint32_t why, std::uint64_t count) {
  std::atomic_ref<std::uint64_t>(header.dropped[why]).fetch_add(count, std::memory_order_relaxed);
}

Drop reason_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return Drop::kNoSpace;
    case EFBIG: return Drop::kFileLimit;
    case ENOMEM:
    case EAGAIN: return Drop::kNoMemory;
    case EMFILE:
    case ENFILE:
    case EACCES:
    case EPERM:
    case ENOENT:
    case EROFS: return Drop::kNoFile;
    case ESTALE: return Drop::kTruncated;
    default: return Drop::kIo;
  }
}

// Reserves [at, at + bytes) on disk: 0, or errno. Asks for RLIMIT_FSIZE first, since the kernel
// would send SIGXFSZ.
int reserve(int file, std::uint64_t at, std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      at + bytes > limit.rlim_cur)
    return EFBIG;
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (fallocate(file, 0, static_cast<off_t>(at), static_cast<off_t>(bytes)) == 0) return 0;
    if (errno != EINTR) break;
  }
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  static const char zeros[native::kPage] =
      {};  // file systems without fallocate (NFSv3, some FUSE): write the zeros
  for (std::size_t done = 0; done < bytes; done += sizeof zeros) {
    ssize_t wrote = -1;
    do {
      wrote = pwrite(file, zeros, sizeof zeros, static_cast<off_t>(at + done));
    } while (wrote < 0 && errno == EINTR);
    if (wrote != static_cast<ssize_t>(sizeof zeros)) return wrote < 0 ? errno : ENOSPC;
  }
  return 0;
}

// File systems of this machine on which a hole costs nothing, and a page is reserved when it is
// first written.
bool is_sparse(int file) {
  struct statfs system {};
  if (fstatfs(file, &system) != 0) return false;
  for (const std::uint32_t known :
       {0xEF53u, 0x58465342u, 0x9123683Eu, 0x01021994u, 0x794C7630u, 0xF2F52010u}) {
    if (static_cast<std::uint32_t>(system.f_type) == known)
      return true;  // ext, XFS, Btrfs, tmpfs, overlay, F2FS
  }
  return false;
}

// How large the new, empty file can be made at once; it is so then. 0 where that is not possible.
std::uint64_t make_room(int file) {
  std::uint64_t most = settings.load(std::memory_order_acquire)->limit;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return 0;
  if (most > limit.rlim_cur) most = limit.rlim_cur;
  most = most / page_bytes() * page_bytes();
  return most > page_bytes() && is_sparse(file) && ftruncate(file, static_cast<off_t>(most)) == 0
             ? most
             : 0;
}

// The blocks of what is mapped of a sparse file. Without read-ahead: it puts large folios where the
// file is empty, and ext4 then goes through a whole one for each page of it that is first written
// (Linux 6.18: 12 us a page, 5 without; of a file that is all hole 3 ms for the first page, which
// each child of a fork paid).
int populate(void* at, std::size_t bytes) {
  madvise(at, bytes, MADV_RANDOM);
  return madvise(at, bytes, kMadvPopulateWrite);
}

// Whether what is mapped at `at` can be mapped once more, as map_more() does. qemu-user (7.2) knows
// no size of 0.
bool maps_again(void* at) {
  void* const again = mremap(at, 0, native::kPage, MREMAP_MAYMOVE);
  return again != MAP_FAILED && munmap(again, native::kPage) == 0;
}

// [at, at + bytes) of a sparse file: another map of what its header is a map of, which takes
// neither a descriptor nor a path (the program may have used up the one and lost the right to the
// other: chroot, setuid, a seccomp filter that kills), then its blocks. MAP_FAILED and the error
// where they cannot be had.
void* map_more(const CaptureFile& file, std::uint64_t at, std::size_t bytes, int& error) {
  error = EFBIG;
  if (at + bytes > file.room) return MAP_FAILED;
  void* const whole = mremap(file.header, 0, at + bytes, MREMAP_MAYMOVE);
  error = errno;
  if (whole == MAP_FAILED) return MAP_FAILED;
  char* const chunk = static_cast<char*>(whole) + at;
  const bool reserved = populate(chunk, bytes) == 0;
  if (!reserved) {
    error = errno;
    // A hole can be read where the disk is full (of a tmpfs what is before it), and nothing behind
    // the file's end.
    const auto reads = [](void* page) {
      return madvise(page, page_bytes(), kMadvPopulateRead) == 0;
    };
    if (error == EFAULT) error = reads(chunk) || reads(chunk - page_bytes()) ? ENOSPC : ESTALE;
  }
  if (munmap(whole, at) == 0 && reserved) return chunk;
  munmap(whole, at + bytes);
  return MAP_FAILED;
}

// Whether the program has put itself under a seccomp filter meanwhile: what that kills for, nobody
// can ask.
bool is_newly_filtered() {
  return first_filter.load(std::memory_order_relaxed) == 0 &&
         prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

void fill(native::FileHeader& header, std::uint32_t window) {
  memcpy(header.magic, native::kMagic, sizeof header.magic);
  header.major = native::kMajor;
  header.minor = native::kMinor;
  header.header_bytes = static_cast<std::uint32_t>(page_bytes());
  header.pid = static_cast<std::uint32_t>(getpid());
  header.parent_pid = static_cast<std::uint32_t>(getppid());
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  header.monotonic_ns = now_ns();
  header.realtime_ns = std::int64_t{wall.tv_sec} * 1000000000 + wall.tv_nsec;
  header.first_range_id =
      (window != 0 ? next_range_id : process.first_range_id).load(std::memory_order_relaxed);
  header.window = window;
  header.used_bytes = page_bytes();
  const Settings& said = *settings.load(std::memory_order_acquire);
  header.rank_plus_1 = said.rank_plus_1;
  header.local_rank_plus_1 = said.local_rank_plus_1;
  header.world_size = said.world_size;
  header.flags = getenv(wire::kLight) != nullptr ? native::kLight : 0;
  header.range_own_ps = range_own_ps.load(std::memory_order_relaxed);
  header.range_pair_ps = range_pair_ps.load(std::memory_order_relaxed);
  header.tool_bytes = sizeof kTool - 1;
  memcpy(header.tool, kTool, sizeof kTool - 1);
  const ssize_t got = readlink("/proc/self/exe", header.exe, sizeof header.exe);
  header.exe_bytes = got > 0 ? static_cast<std::uint32_t>(got) : 0;
}

// A new file of this process; -1 and errno otherwise.
int create_file(CaptureFile& made, const char* folder) {
  for (std::uint64_t image = 0; image < kMostFiles; ++image) {
    snprintf(made.path, sizeof made.path, "%s/%d.%llu%s", folder, static_cast<int>(getpid()),
             static_cast<unsigned long long>(image), native::kSuffix);
    const int file = open(made.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

// The same of a file that grows chunk by chunk.
void* map_reserved(const CaptureFile& state, std::uint64_t at, std::size_t bytes, int& error) {
  void* mapped = MAP_FAILED;
  const int file = open(state.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) {
    error = errno;
    return mapped;
  }
  error = reserve(file, at, bytes);
  if (error == 0) {
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(at));
    if (mapped == MAP_FAILED) error = errno;
  }
  close(file);
  // One call instead of a fault every 128 ranges. Linux 5.14; refused before, and then the faults
  // come one by one.
  if (mapped != MAP_FAILED && bytes >= kPopulate) madvise(mapped, bytes, kMadvPopulateWrite);
  return mapped;
}

// For whoever asks why there is no capture of this process. False where nothing at all can be
// written there.
bool leave_reason(const char* folder, int error) {
  char reason[16], path[PATH_MAX + 64];
  snprintf(reason, sizeof reason, "%d", error);
  snprintf(path, sizeof path, "%s/%d%s", folder, static_cast<int>(getpid()),
           native::kRefusedSuffix);
  return symlink(reason, path) == 0 || errno == EEXIST;
}

// From now on drops of this process, the child of a fork, are counted in the file that it has from
// its parent.
void count_with_ancestor(native::FileHeader& header) {
  process.cut_off.store(true, std::memory_order_release);
  for (std::uint32_t i = 0; i < native::kDropReasons; ++i)
    bump(header, i, process.early[i].exchange(0, std::memory_order_relaxed));
}

// Null with its errno when it cannot be had.
CaptureFile* make_file(const char* folder, std::uint32_t window, int& error) {
  // A place of two windows ago: its header is mapped over, since a thread that stood still may yet
  // count there.
  CaptureFile* const spare = process.spare.exchange(nullptr);
  void* const over = spare != nullptr ? spare->header : nullptr;
  void* const memory = spare != nullptr ? spare : arena_allocate(sizeof(CaptureFile));
  if (memory == nullptr) {
    error = ENOMEM;
    return nullptr;
  }
  auto* made = new (memory) CaptureFile;
  made->window = window;
  made->header = static_cast<native::FileHeader*>(over);
  made->again = over != nullptr;
  const int file = create_file(*made, folder);
  if (file < 0) {
    error = errno;
    if (over != nullptr) process.spare.store(made);
    return nullptr;
  }
  made->room = make_room(file);
  error = made->room != 0 ? 0 : reserve(file, 0, page_bytes());
  void* at = MAP_FAILED;
  if (error == 0) {
    at = mmap(over, page_bytes(), PROT_READ | PROT_WRITE,
              MAP_SHARED | (over != nullptr ? MAP_FIXED : 0), file, 0);
    if (at == MAP_FAILED) error = errno;
  }
  if (at != MAP_FAILED && made->room != 0 && (!maps_again(at) || populate(at, page_bytes()) != 0)) {
    error = errno == EFAULT ? ENOSPC : 0;
    made->room = 0;  // Linux before 5.14, and qemu-user
    if (error == 0 && ftruncate(file, 0) != 0) error = errno;
    if (error == 0) error = reserve(file, 0, page_bytes());
    if (error != 0 && over == nullptr) munmap(at, page_bytes());
    if (error != 0) at = MAP_FAILED;
  }
  close(file);
  if (at == MAP_FAILED) {
    unlink(made->path);
    if (over != nullptr) process.spare.store(made);
    return nullptr;
  }
  made->header = static_cast<native::FileHeader*>(at);
  fill(*made->header, window);
  for (std::uint32_t i = 0; i < native::kDropReasons; ++i)
    bump(*made->header, i, process.early[i].exchange(0, std::memory_order_relaxed));
  return made;
}

bool is_off(const char* value) {
  return value == nullptr || value[0] == '\0' || (value[0] == '0' && value[1] == '\0');
}

// What a launcher told this process, plus 1; 0 where none did.
template <std::size_t n>
std::uint64_t number_of(const char* const (&variables)[n]) {
  unsigned value = 0;
  for (const char* name : variables)
    if (wire::parse_rank(getenv(name), value)) return std::uint64_t{value} + 1;
  return 0;
}

bool refuse(const char* why, const char* folder) {
  if (!is_off(getenv(wire::kVerbose))) {
    char line[PATH_MAX + 128];
    const int length =
        snprintf(line, sizeof line, "rangescope: nothing is recorded in process %d: %s: %s\n",
                 static_cast<int>(getpid()), why, folder);
    if (length > 0 && write(2, line, static_cast<std::size_t>(length)) < 0) return false;
  }
  return false;
}

}  // namespace

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec -
         ahead_ns.load(std::memory_order_relaxed);
}

void clock_prepare() {
  ahead_ns.store(wire::clock_ahead_ns(), std::memory_order_relaxed);
}

bool capture_prepare() {
  if (settings.load(std::memory_order_acquire) != nullptr) return true;
  const Quiet quiet;
  const char* folder = getenv(wire::kDir);
  if (folder == nullptr || folder[0] == '\0') return refuse("RANGESCOPE_DIR is not set", "");
  const std::uint64_t rank_plus_1 = number_of(wire::kRankVariables);
  if (const char* ranks = getenv(wire::kRanks);
      ranks != nullptr && rank_plus_1 > 0 &&
      !wire::lists_rank(ranks, static_cast<unsigned>(rank_plus_1 - 1)))
    return refuse("its rank is not to be profiled", "");
  auto* made = static_cast<Settings*>(arena_allocate(sizeof(Settings)));
  if (made == nullptr) return refuse("there is no memory", folder);
  std::size_t used = 0;
  if (folder[0] != '/') {  // relative: to where the process is now, for it may move
    if (getcwd(made->folder, sizeof made->folder) == nullptr)
      return refuse("the current directory has no name", "");
    used = strlen(made->folder);
    made->folder[used++] = '/';
  }
  const std::size_t length = strlen(folder);
  if (used + length >= sizeof made->folder) return refuse("RANGESCOPE_DIR is too long", folder);
  memcpy(made->folder + used, folder, length + 1);
  if (getauxval(AT_SECURE) !=
      0) {  // set-user-id and the like: a file of another user, wherever the caller says
    if (process.no_file.exchange(1) == 0) {
      const auto user = syscall(SYS_setfsuid, getuid()), group = syscall(SYS_setfsgid, getgid());
      (void)leave_reason(made->folder, EPERM);
      syscall(SYS_setfsuid, user);
      syscall(SYS_setfsgid, group);
    }
    return refuse("it has the rights of another user (set-user-id)", made->folder);
  }
  first_filter.store(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), std::memory_order_relaxed);
  clock_prepare();
  mkdir(made->folder, 0755);
  if (access(made->folder, W_OK | X_OK) != 0)
    return refuse("RANGESCOPE_DIR cannot be written", made->folder);
  made->limit = kDefaultLimit;
  if (const char* limit = getenv(wire::kMaxCaptureSize); limit != nullptr && limit[0] != '\0') {
    char* end = nullptr;
    const unsigned long long bytes = strtoull(limit, &end, 10);
    if (end != limit && *end == '\0') made->limit = bytes;
  }
  made->rank_plus_1 = rank_plus_1;
  made->local_rank_plus_1 = number_of(wire::kLocalRankVariables);
  const std::uint64_t world_plus_1 = number_of(wire::kWorldVariables);
  made->world_size = world_plus_1 > 0 ? world_plus_1 - 1 : 0;
  const Settings* none = nullptr;
  settings.compare_exchange_strong(none, made);  // else another thread was first, with the same
  return true;
}

const char* capture_folder() {
  return settings.load(std::memory_order_acquire)->folder;
}

/// Null where it cannot be had, and for a window that is over.
CaptureFile* capture_file(std::uint32_t window) {
  CaptureFile* known = process.file.load(std::memory_order_acquire);
  if (known != nullptr && known->window == window) return known;
  if (process.no_file.load(std::memory_order_acquire) == std::uint64_t{window} + 1 ||
      window != control::window())
    return nullptr;
  const Quiet quiet;
  if (ancestor.load(std::memory_order_acquire) != nullptr &&
      is_newly_filtered()) {  // the child of a fork
    process.filtered.store(true, std::memory_order_release);
    process.no_file.store(std::uint64_t{window} + 1, std::memory_order_release);
    return nullptr;
  }
  if (ancestor.load(std::memory_order_acquire) != nullptr) clock_prepare();
  char folder[sizeof Settings::folder + 24];
  const char* const all = settings.load(std::memory_order_acquire)->folder;
  if (window == 0)
    snprintf(folder, sizeof folder, "%s", all);
  else
    snprintf(folder, sizeof folder, "%s/%s%u", all, wire::control::kWindow, window);
  int error = 0;
  CaptureFile* made = make_file(folder, window, error);
  if (made == nullptr) {
    native::FileHeader* const above = ancestor.load(std::memory_order_acquire);
    if (!leave_reason(folder, error) && above != nullptr) count_with_ancestor(*above);
    process.no_file.store(std::uint64_t{window} + 1, std::memory_order_release);
    known = process.file.load(std::memory_order_acquire);
    return known != nullptr && known->window == window ? known : nullptr;
  }
  if (process.file.compare_exchange_strong(known, made)) {
    ancestor.store(made->header, std::memory_order_release);
    if (known != nullptr) process.spare.store(process.older.exchange(known));
    return made;
  }
  unlink(made->path);  // another thread was first
  if (made->again)
    process.spare.store(made);
  else
    munmap(made->header, page_bytes());
  return known != nullptr && known->window == window ? known : nullptr;
}

bool capture_open() {
  return control::dormant() || capture_file(control::window()) != nullptr;
}

native::ChunkHeader* capture_chunk(std::uint32_t window, std::size_t bytes, Drop& why) {
  const Quiet quiet;
  CaptureFile* file_of = capture_file(window);
  if (file_of == nullptr) {
    why = window == control::window() ? Drop::kNoFile : kWindowOver;
    return nullptr;
  }
  CaptureFile& state = *file_of;
  if (state.drops.load(std::memory_order_relaxed) <
      state.refused_until.load(std::memory_order_relaxed)) {
    why = state.refused_for.load(std::memory_order_relaxed);  // refused a moment ago: do not ask
                                                              // the file system at every event
    return nullptr;
  }
  const std::uint64_t limit = settings.load(std::memory_order_acquire)->limit;
  std::uint64_t at = state.next.load(std::memory_order_relaxed);
  do {
    if (at + bytes > limit) {
      why = Drop::kSizeLimit;
      return nullptr;
    }
  } while (!state.next.compare_exchange_weak(at, at + bytes, std::memory_order_relaxed));
  int error = 0;
  void* const mapped =
      state.room != 0 ? map_more(state, at, bytes, error) : map_reserved(state, at, bytes, error);
  if (mapped == MAP_FAILED) {
    std::uint64_t mine = at + bytes;
    state.next.compare_exchange_strong(mine, at,
                                       std::memory_order_relaxed);  // else it stays a hole
    why = reason_of(error);
    state.refused_for.store(why, std::memory_order_relaxed);
    state.refused_until.store(state.drops.load(std::memory_order_relaxed) + 1024,
                              std::memory_order_relaxed);
    return nullptr;
  }
  std::atomic_ref<std::uint64_t> used(state.header->used_bytes);
  for (std::uint64_t known = used.load();
       known < at + bytes && !used.compare_exchange_weak(known, at + bytes);) {
  }
  return static_cast<native::ChunkHeader*>(mapped);
}

std::uint32_t capture_one_of() {
  const CaptureFile* file = process.file.load(std::memory_order_acquire);
  const std::uint64_t limit = settings.load(std::memory_order_acquire)->limit;
  if (file == nullptr || limit < kLeastThinned) return 1;
  const std::uint64_t used = file->next.load(std::memory_order_relaxed),
                      left = used < limit ? limit - used : 0;
  unsigned halvings = 0;
  while (halvings < 15 && left <= limit >> (halvings + 1)) ++halvings;
  return 1u << 2 * halvings;
}

void capture_release(native::ChunkHeader* chunk, std::size_t bytes) {
  munmap(chunk, bytes);
}

void capture_count(Drop why, std::uint64_t count) {
  const auto index = static_cast<std::uint32_t>(why);
  if (why == kWindowOver) return;
  CaptureFile* file = process.file.load(std::memory_order_acquire);
  if (file == nullptr) {
    if (process.filtered.load(std::memory_order_relaxed))
      bump(*ancestor.load(std::memory_order_acquire), static_cast<std::uint32_t>(Drop::kFiltered),
           count);
    else if (process.cut_off.load(std::memory_order_acquire))
      bump(*ancestor.load(std::memory_order_acquire), index, count);
    else
      process.early[index].fetch_add(count, std::memory_order_relaxed);
    return;
  }
  bump(*file->header, index, count);
  file->drops.fetch_add(count, std::memory_order_relaxed);
}

void capture_range_cost(std::uint64_t own_ps, std::uint64_t pair_ps) {
  range_own_ps.store(own_ps, std::memory_order_relaxed);
  range_pair_ps.store(pair_ps, std::memory_order_relaxed);
}

bool capture_header_holds(const void* address) {
  const auto holds = [&](const native::FileHeader* header) {
    return header != nullptr && address >= header && address < header + 1;
  };
  for (const auto* each : {&process.file, &process.older})
    if (const CaptureFile* file = each->load(std::memory_order_acquire);
        file != nullptr && holds(file->header))
      return true;
  return holds(ancestor.load(std::memory_order_acquire)) || control::holds(address);
}

void capture_end() {
  if (CaptureFile* file = process.file.load(std::memory_order_acquire); file != nullptr)
    std::atomic_ref<std::int64_t>(file->header->end_ns).store(now_ns(), std::memory_order_relaxed);
}

namespace {

std::atomic<bool> guarded{false};
struct sigaction before;  // written before the handler can run

// As without the guard. A fault comes again when the handler returns, and meets the default action
// then.
void pass_on(int signal, siginfo_t* info, void* context) {
  const bool fault = info->si_code > 0;
  if (before.sa_handler == SIG_IGN && !fault) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    const struct sigaction handler = before;
    if ((handler.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) before.sa_handler = SIG_DFL;
    if ((handler.sa_flags & SA_SIGINFO) != 0) return handler.sa_sigaction(signal, info, context);
    return handler.sa_handler(signal);
  }
  sigaction(signal, &before, nullptr);
  if (!fault) syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

void on_bus(int signal, siginfo_t* info, void* context) {
  const KeepErrno keep_errno;
  const bool ours = info->si_code == BUS_ADRERR && writer_holds(info->si_addr);
  void* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) &
                                             ~(page_bytes() - 1));
  if (!ours || mmap(page, page_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return pass_on(signal, info, context);
  if (control::holds(info->si_addr)) return control::lost();
  capture_count(wire::native::Drop::kTruncated);  // may come here once more, for the header
}

}  // namespace

void guard_maps() {
  if (guarded.exchange(true)) return;
  if (sigaction(SIGBUS, nullptr, &before) != 0) return;
  struct sigaction action = before;
  const bool handler = before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
  action.sa_sigaction = on_bus;
  // The signal stays open for the header's page.
  action.sa_flags =
      (handler ? before.sa_flags & ~static_cast<int>(SA_RESETHAND) : SA_RESTART | SA_ONSTACK) |
      SA_SIGINFO | SA_NODEFER;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace rangescope::inject
