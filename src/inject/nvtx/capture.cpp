#include "inject/nvtx/capture.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
// Header of the newest file that this process, or its parent before the fork, made.
std::atomic<native::FileHeader*> ancestor{nullptr};
std::atomic<int> first_filter{0};  // PR_GET_SECCOMP when recording began
std::atomic<std::uint64_t> range_own_ps{0};
std::atomic<std::uint64_t> range_pair_ps{0};
std::atomic<std::int64_t> ahead_ns{0};  // how far our clock is ahead of the machine's

}  // namespace

struct CaptureFile {
  native::FileHeader* header = nullptr;
  std::uint32_t window = 0;
  bool is_recycled = false;  // object and header's address are those of an older window's file
  // Size of a sparse file, mapped piece by piece; 0: blocks are reserved separately for each chunk.
  std::uint64_t sparse_bytes = 0;
  std::atomic<std::uint64_t> next{page_bytes()};  // offset of the next chunk
  // After a failure: no further attempt before this many drops were counted.
  std::atomic<std::uint64_t> refused_until{0};
  std::atomic<Drop> refused_for{Drop::kNoSpace};
  std::atomic<std::uint64_t> drops{0};
  char path[PATH_MAX + 64];
};

namespace {

void add_drops(native::FileHeader& header, std::uint32_t reason, std::uint64_t count) {
  std::atomic_ref<std::uint64_t> dropped(header.dropped[reason]);
  dropped.fetch_add(count, std::memory_order_relaxed);
}

void add_early_drops(native::FileHeader& header) {
  for (std::uint32_t i = 0; i < native::kDropReasons; ++i)
    add_drops(header, i, process.early[i].exchange(0, std::memory_order_relaxed));
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

bool exceeds_file_limit(std::uint64_t end) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
    return false;
  return limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

// For file systems without fallocate: NFSv3, some FUSE. 0, or errno.
int write_zeros(int file, std::uint64_t offset, std::size_t bytes) {
  static const char zeros[native::kPage] = {};
  for (std::size_t done = 0; done < bytes; done += sizeof zeros) {
    ssize_t written = -1;
    do {
      written = pwrite(file, zeros, sizeof zeros, static_cast<off_t>(offset + done));
    } while (written < 0 && errno == EINTR);
    if (written < 0)
      return errno;
    if (written != static_cast<ssize_t>(sizeof zeros))
      return ENOSPC;
  }
  return 0;
}

// Reserves [offset, offset + bytes) on disk: 0, or errno. RLIMIT_FSIZE is checked first, because
// the kernel would send SIGXFSZ.
int reserve(int file, std::uint64_t offset, std::size_t bytes) {
  if (exceeds_file_limit(offset + bytes))
    return EFBIG;
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0)
      return 0;
    if (errno != EINTR)
      break;
  }
  if (errno != EOPNOTSUPP && errno != ENOSYS)
    return errno;
  return write_zeros(file, offset, bytes);
}

// True for local file systems on which a hole costs nothing, and a page gets its block when it is
// first written.
bool is_sparse(int file) {
  struct statfs system {};
  if (fstatfs(file, &system) != 0)
    return false;
  constexpr std::uint32_t kSparseTypes[] = {0xEF53u,       // ext2 to ext4
                                            0x58465342u,   // XFS
                                            0x9123683Eu,   // Btrfs
                                            0x01021994u,   // tmpfs
                                            0x794C7630u,   // overlay
                                            0xF2F52010u};  // F2FS
  for (const std::uint32_t type : kSparseTypes)
    if (static_cast<std::uint32_t>(system.f_type) == type)
      return true;
  return false;
}

// Makes the new, empty file as large as it may become, and returns that size; 0 if the file system
// does not allow it.
std::uint64_t make_sparse(int file) {
  std::uint64_t bytes = settings.load(std::memory_order_acquire)->limit;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
    return 0;
  if (bytes > limit.rlim_cur)
    bytes = limit.rlim_cur;
  bytes = bytes / page_bytes() * page_bytes();
  if (bytes <= page_bytes() || !is_sparse(file))
    return 0;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0)
    return 0;
  return bytes;
}

// Allocates the blocks of mapped pages of a sparse file. Read-ahead is off: it puts large folios
// into holes, and ext4 then walks a whole folio for each page that is first written (Linux 6.18:
// 12 us a page, 5 without; the first page of an empty file 3 ms, which each child of a fork paid).
int populate(void* pages, std::size_t bytes) {
  madvise(pages, bytes, MADV_RANDOM);
  return madvise(pages, bytes, kMadvPopulateWrite);
}

// Whether map_more() can map these pages a second time. qemu-user (7.2) refuses a size of 0.
bool can_be_mapped_twice(void* pages) {
  void* const second = mremap(pages, 0, native::kPage, MREMAP_MAYMOVE);
  return second != MAP_FAILED && munmap(second, native::kPage) == 0;
}

bool is_readable(void* page) {
  return madvise(page, page_bytes(), kMadvPopulateRead) == 0;
}

// Why populate() of a chunk failed with EFAULT: on a full disk the hole can still be read (on tmpfs
// the page before it), behind the end of a truncated file nothing can.
int reason_of_fault(char* chunk) {
  const bool is_within_file = is_readable(chunk) || is_readable(chunk - page_bytes());
  if (is_within_file)
    return ENOSPC;
  return ESTALE;
}

// Maps [offset, offset + bytes) of a sparse file, with its blocks, by duplicating the mapping of
// the header. That takes neither a descriptor nor a path: the program may have used up its
// descriptors, and lost the right to the path (chroot, setuid, a seccomp filter that kills).
// On failure MAP_FAILED, and `error`.
void* map_more(const CaptureFile& file, std::uint64_t offset, std::size_t bytes, int& error) {
  error = EFBIG;
  if (offset + bytes > file.sparse_bytes)
    return MAP_FAILED;
  void* const start_of_file = mremap(file.header, 0, offset + bytes, MREMAP_MAYMOVE);
  error = errno;
  if (start_of_file == MAP_FAILED)
    return MAP_FAILED;
  char* const chunk = static_cast<char*>(start_of_file) + offset;
  const bool has_blocks = populate(chunk, bytes) == 0;
  if (!has_blocks) {
    error = errno;
    if (error == EFAULT)
      error = reason_of_fault(chunk);
  }
  if (munmap(start_of_file, offset) == 0 && has_blocks)
    return chunk;
  munmap(start_of_file, offset + bytes);
  return MAP_FAILED;
}

// Whether the program has installed a seccomp filter since recording began. Which system calls the
// filter kills for cannot be queried.
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
  const Settings& prepared = *settings.load(std::memory_order_acquire);
  header.rank_plus_1 = prepared.rank_plus_1;
  header.local_rank_plus_1 = prepared.local_rank_plus_1;
  header.world_size = prepared.world_size;
  header.flags = getenv(wire::kLight) != nullptr ? native::kLight : 0;
  header.range_own_ps = range_own_ps.load(std::memory_order_relaxed);
  header.range_pair_ps = range_pair_ps.load(std::memory_order_relaxed);
  header.tool_bytes = sizeof kTool - 1;
  memcpy(header.tool, kTool, sizeof kTool - 1);
  const ssize_t length = readlink("/proc/self/exe", header.exe, sizeof header.exe);
  header.exe_bytes = length > 0 ? static_cast<std::uint32_t>(length) : 0;
}

// Opens a new file of this process, and sets the path; -1 and errno on failure.
int create_file(CaptureFile& created, const char* folder) {
  for (std::uint64_t image = 0; image < kMostFiles; ++image) {
    snprintf(created.path,
             sizeof created.path,
             "%s/%d.%llu%s",
             folder,
             static_cast<int>(getpid()),
             static_cast<unsigned long long>(image),
             native::kSuffix);
    const int file = open(created.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file >= 0 || errno != EEXIST)
      return file;
  }
  return -1;
}

// Like map_more(), for a file that grows chunk by chunk.
void* map_reserved(const CaptureFile& state, std::uint64_t offset, std::size_t bytes, int& error) {
  void* mapped = MAP_FAILED;
  const int file = open(state.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) {
    error = errno;
    return mapped;
  }
  error = reserve(file, offset, bytes);
  if (error == 0) {
    mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED)
      error = errno;
  }
  close(file);
  // One call instead of a page fault every 128 ranges. Linux before 5.14 refuses it, and the faults
  // happen one by one.
  if (mapped != MAP_FAILED && bytes >= kPopulate)
    madvise(mapped, bytes, kMadvPopulateWrite);
  return mapped;
}

// Leaves a link whose target is the errno, so that a reader can say why this process has no
// capture. False if even that cannot be written.
bool leave_reason(const char* folder, int error) {
  char reason[16], path[PATH_MAX + 64];
  snprintf(reason, sizeof reason, "%d", error);
  snprintf(
      path, sizeof path, "%s/%d%s", folder, static_cast<int>(getpid()), native::kRefusedSuffix);
  return symlink(reason, path) == 0 || errno == EEXIST;
}

// From now on drops of this process, the child of a fork, are counted in the file that its parent
// mapped.
void count_with_ancestor(native::FileHeader& header) {
  process.cut_off.store(true, std::memory_order_release);
  add_early_drops(header);
}

// Maps the header of a new file. Sets sparse_bytes, to 0 where a sparse file cannot be used: Linux
// before 5.14, and qemu-user. MAP_FAILED, and `error`, on failure.
void* map_header(CaptureFile& created, int file, int& error) {
  void* const recycled = created.header;
  created.sparse_bytes = make_sparse(file);
  error = created.sparse_bytes != 0 ? 0 : reserve(file, 0, page_bytes());
  if (error != 0)
    return MAP_FAILED;
  const int flags = recycled != nullptr ? MAP_SHARED | MAP_FIXED : MAP_SHARED;
  void* header = mmap(recycled, page_bytes(), PROT_READ | PROT_WRITE, flags, file, 0);
  if (header == MAP_FAILED) {
    error = errno;
    return MAP_FAILED;
  }
  if (created.sparse_bytes == 0)
    return header;
  if (can_be_mapped_twice(header) && populate(header, page_bytes()) == 0)
    return header;
  error = errno == EFAULT ? ENOSPC : 0;
  created.sparse_bytes = 0;
  if (error == 0 && ftruncate(file, 0) != 0)
    error = errno;
  if (error == 0)
    error = reserve(file, 0, page_bytes());
  if (error == 0)
    return header;
  if (recycled == nullptr)
    munmap(header, page_bytes());
  return MAP_FAILED;
}

// Creates the file of this process for a window. Null, and `error`, on failure.
CaptureFile* make_file(const char* folder, std::uint32_t window, int& error) {
  // The object of two windows ago is used again. Its header is mapped over and never unmapped,
  // because a thread that was stopped in between may still count there.
  CaptureFile* const spare = process.spare.exchange(nullptr);
  native::FileHeader* const recycled = spare != nullptr ? spare->header : nullptr;
  void* const memory = spare != nullptr ? spare : arena_allocate(sizeof(CaptureFile));
  if (memory == nullptr) {
    error = ENOMEM;
    return nullptr;
  }
  auto* created = new (memory) CaptureFile;
  created->window = window;
  created->header = recycled;
  created->is_recycled = recycled != nullptr;
  const int file = create_file(*created, folder);
  if (file < 0) {
    error = errno;
    if (recycled != nullptr)
      process.spare.store(created);
    return nullptr;
  }
  void* const header = map_header(*created, file, error);
  close(file);
  if (header == MAP_FAILED) {
    unlink(created->path);
    if (recycled != nullptr)
      process.spare.store(created);
    return nullptr;
  }
  created->header = static_cast<native::FileHeader*>(header);
  fill(*created->header, window);
  add_early_drops(*created->header);
  return created;
}

bool is_off(const char* value) {
  return value == nullptr || value[0] == '\0' || (value[0] == '0' && value[1] == '\0');
}

// The number in the first of a launcher's variables that is set, plus 1; 0 if none is.
template <std::size_t n>
std::uint64_t launcher_number_plus_1(const char* const (&variables)[n]) {
  unsigned value = 0;
  for (const char* name : variables)
    if (wire::parse_rank(getenv(name), value))
      return std::uint64_t{value} + 1;
  return 0;
}

bool refuse(const char* why, const char* folder) {
  if (!is_off(getenv(wire::kVerbose))) {
    char line[PATH_MAX + 128];
    const int length = snprintf(line,
                                sizeof line,
                                "rangescope: nothing is recorded in process %d: %s: %s\n",
                                static_cast<int>(getpid()),
                                why,
                                folder);
    if (length > 0 && write(2, line, static_cast<std::size_t>(length)) < 0)
      return false;
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

namespace {

// The rank of this process is not in RANGESCOPE_RANKS.
bool is_rank_left_out(std::uint64_t rank_plus_1) {
  const char* ranks = getenv(wire::kRanks);
  if (ranks == nullptr || rank_plus_1 == 0)
    return false;
  return !wire::lists_rank(ranks, static_cast<unsigned>(rank_plus_1 - 1));
}

// Stores the absolute path of the folder, because the process may change its directory later.
bool set_folder(Settings& prepared, const char* folder) {
  std::size_t used = 0;
  if (folder[0] != '/') {
    if (getcwd(prepared.folder, sizeof prepared.folder) == nullptr)
      return refuse("the current directory has no name", "");
    used = strlen(prepared.folder);
    prepared.folder[used++] = '/';
  }
  const std::size_t length = strlen(folder);
  if (used + length >= sizeof prepared.folder)
    return refuse("RANGESCOPE_DIR is too long", folder);
  memcpy(prepared.folder + used, folder, length + 1);
  return true;
}

// leave_reason() with the rights of the user who started a set-user-id program: the caller chooses
// the folder, and must not make files of another user there.
void leave_reason_as_caller(const char* folder) {
  if (process.no_file.exchange(1) != 0)
    return;
  const auto user = syscall(SYS_setfsuid, getuid());
  const auto group = syscall(SYS_setfsgid, getgid());
  (void)leave_reason(folder, EPERM);
  syscall(SYS_setfsuid, user);
  syscall(SYS_setfsgid, group);
}

std::uint64_t capture_limit() {
  const char* text = getenv(wire::kMaxCaptureSize);
  if (text == nullptr || text[0] == '\0')
    return kDefaultLimit;
  char* end = nullptr;
  const unsigned long long bytes = strtoull(text, &end, 10);
  const bool is_number = end != text && *end == '\0';
  if (!is_number)
    return kDefaultLimit;
  return bytes;
}

}  // namespace

bool capture_prepare() {
  if (settings.load(std::memory_order_acquire) != nullptr)
    return true;
  const Quiet quiet;
  const char* folder = getenv(wire::kDir);
  if (folder == nullptr || folder[0] == '\0')
    return refuse("RANGESCOPE_DIR is not set", "");
  const std::uint64_t rank_plus_1 = launcher_number_plus_1(wire::kRankVariables);
  if (is_rank_left_out(rank_plus_1))
    return refuse("its rank is not to be profiled", "");
  auto* prepared = static_cast<Settings*>(arena_allocate(sizeof(Settings)));
  if (prepared == nullptr)
    return refuse("there is no memory", folder);
  if (!set_folder(*prepared, folder))
    return false;
  if (getauxval(AT_SECURE) != 0) {
    leave_reason_as_caller(prepared->folder);
    return refuse("it has the rights of another user (set-user-id)", prepared->folder);
  }
  first_filter.store(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), std::memory_order_relaxed);
  clock_prepare();
  mkdir(prepared->folder, 0755);
  if (access(prepared->folder, W_OK | X_OK) != 0)
    return refuse("RANGESCOPE_DIR cannot be written", prepared->folder);
  prepared->limit = capture_limit();
  prepared->rank_plus_1 = rank_plus_1;
  prepared->local_rank_plus_1 = launcher_number_plus_1(wire::kLocalRankVariables);
  const std::uint64_t world_plus_1 = launcher_number_plus_1(wire::kWorldVariables);
  prepared->world_size = world_plus_1 > 0 ? world_plus_1 - 1 : 0;
  const Settings* none = nullptr;
  settings.compare_exchange_strong(none, prepared);  // a thread that was first stored the same
  return true;
}

const char* capture_folder() {
  return settings.load(std::memory_order_acquire)->folder;
}

namespace {

bool is_of_window(const CaptureFile* file, std::uint32_t window) {
  return file != nullptr && file->window == window;
}

// Do not try again to make a file for this window.
void give_up_window(std::uint32_t window) {
  process.no_file.store(std::uint64_t{window} + 1, std::memory_order_release);
}

bool has_given_up(std::uint32_t window) {
  return process.no_file.load(std::memory_order_acquire) == std::uint64_t{window} + 1;
}

// The file of this process for the window, made if there is none yet. Null if that fails, and for a
// window that is over.
CaptureFile* capture_file(std::uint32_t window) {
  CaptureFile* current = process.file.load(std::memory_order_acquire);
  if (is_of_window(current, window))
    return current;
  if (has_given_up(window) || window != control::window())
    return nullptr;
  const Quiet quiet;
  const bool is_fork_child = ancestor.load(std::memory_order_acquire) != nullptr;
  if (is_fork_child && is_newly_filtered()) {
    process.filtered.store(true, std::memory_order_release);
    give_up_window(window);
    return nullptr;
  }
  if (is_fork_child)
    clock_prepare();
  char folder[sizeof Settings::folder + 24];
  const char* const all_windows = settings.load(std::memory_order_acquire)->folder;
  if (window == 0)
    snprintf(folder, sizeof folder, "%s", all_windows);
  else
    snprintf(folder, sizeof folder, "%s/%s%u", all_windows, wire::control::kWindow, window);
  int error = 0;
  CaptureFile* created = make_file(folder, window, error);
  if (created == nullptr) {
    native::FileHeader* const parents = ancestor.load(std::memory_order_acquire);
    if (!leave_reason(folder, error) && parents != nullptr)
      count_with_ancestor(*parents);
    give_up_window(window);
    current = process.file.load(std::memory_order_acquire);
    return is_of_window(current, window) ? current : nullptr;
  }
  if (process.file.compare_exchange_strong(current, created)) {
    ancestor.store(created->header, std::memory_order_release);
    if (current != nullptr)
      process.spare.store(process.older.exchange(current));
    return created;
  }
  unlink(created->path);  // another thread was first
  if (created->is_recycled)
    process.spare.store(created);
  else
    munmap(created->header, page_bytes());
  return is_of_window(current, window) ? current : nullptr;
}

}  // namespace

bool capture_open() {
  return control::dormant() || capture_file(control::window()) != nullptr;
}

namespace {

// The file system is not asked at every event after it has refused a chunk.
bool was_refused_recently(const CaptureFile& file) {
  return file.drops.load(std::memory_order_relaxed) <
         file.refused_until.load(std::memory_order_relaxed);
}

void note_refusal(CaptureFile& file, Drop reason) {
  constexpr std::uint64_t kDropsBeforeRetry = 1024;
  const std::uint64_t drops = file.drops.load(std::memory_order_relaxed);
  file.refused_for.store(reason, std::memory_order_relaxed);
  file.refused_until.store(drops + kDropsBeforeRetry, std::memory_order_relaxed);
}

void raise_used_bytes(native::FileHeader& header, std::uint64_t end) {
  std::atomic_ref<std::uint64_t> used_bytes(header.used_bytes);
  std::uint64_t used = used_bytes.load();
  while (used < end && !used_bytes.compare_exchange_weak(used, end)) {
  }
}

}  // namespace

native::ChunkHeader* capture_chunk(std::uint32_t window, std::size_t bytes, Drop& why) {
  const Quiet quiet;
  CaptureFile* const file = capture_file(window);
  if (file == nullptr) {
    why = window == control::window() ? Drop::kNoFile : kWindowOver;
    return nullptr;
  }
  if (was_refused_recently(*file)) {
    why = file->refused_for.load(std::memory_order_relaxed);
    return nullptr;
  }
  const std::uint64_t limit = settings.load(std::memory_order_acquire)->limit;
  std::uint64_t offset = file->next.load(std::memory_order_relaxed);
  do {
    if (offset + bytes > limit) {
      why = Drop::kSizeLimit;
      return nullptr;
    }
  } while (!file->next.compare_exchange_weak(offset, offset + bytes, std::memory_order_relaxed));
  int error = 0;
  void* const mapped = file->sparse_bytes != 0 ? map_more(*file, offset, bytes, error)
                                               : map_reserved(*file, offset, bytes, error);
  if (mapped == MAP_FAILED) {
    // Gives the space back, unless another thread has already taken what follows.
    std::uint64_t end = offset + bytes;
    file->next.compare_exchange_strong(end, offset, std::memory_order_relaxed);
    why = reason_of(error);
    note_refusal(*file, why);
    return nullptr;
  }
  raise_used_bytes(*file->header, offset + bytes);
  return static_cast<native::ChunkHeader*>(mapped);
}

std::uint32_t capture_thinning() {
  const CaptureFile* file = process.file.load(std::memory_order_acquire);
  const std::uint64_t limit = settings.load(std::memory_order_acquire)->limit;
  if (file == nullptr || limit < kLeastThinned)
    return 1;
  const std::uint64_t used = file->next.load(std::memory_order_relaxed);
  const std::uint64_t left = used < limit ? limit - used : 0;
  unsigned halvings = 0;
  while (halvings < 15 && left <= limit >> (halvings + 1))
    ++halvings;
  return 1u << 2 * halvings;
}

void capture_release(native::ChunkHeader* chunk, std::size_t bytes) {
  munmap(chunk, bytes);
}

void capture_count(Drop why, std::uint64_t count) {
  const auto reason = static_cast<std::uint32_t>(why);
  if (why == kWindowOver)
    return;
  CaptureFile* file = process.file.load(std::memory_order_acquire);
  if (file != nullptr) {
    add_drops(*file->header, reason, count);
    file->drops.fetch_add(count, std::memory_order_relaxed);
  } else if (process.filtered.load(std::memory_order_relaxed)) {
    constexpr auto kFiltered = static_cast<std::uint32_t>(Drop::kFiltered);
    add_drops(*ancestor.load(std::memory_order_acquire), kFiltered, count);
  } else if (process.cut_off.load(std::memory_order_acquire)) {
    add_drops(*ancestor.load(std::memory_order_acquire), reason, count);
  } else {
    process.early[reason].fetch_add(count, std::memory_order_relaxed);
  }
}

void capture_range_cost(std::uint64_t own_ps, std::uint64_t pair_ps) {
  range_own_ps.store(own_ps, std::memory_order_relaxed);
  range_pair_ps.store(pair_ps, std::memory_order_relaxed);
}

bool capture_header_holds(const void* address) {
  const auto holds = [&](const native::FileHeader* header) {
    return header != nullptr && address >= header && address < header + 1;
  };
  for (const std::atomic<CaptureFile*>* slot : {&process.file, &process.older}) {
    const CaptureFile* file = slot->load(std::memory_order_acquire);
    if (file != nullptr && holds(file->header))
      return true;
  }
  return holds(ancestor.load(std::memory_order_acquire)) || control::holds(address);
}

void capture_end() {
  if (CaptureFile* file = process.file.load(std::memory_order_acquire); file != nullptr)
    std::atomic_ref<std::int64_t>(file->header->end_ns).store(now_ns(), std::memory_order_relaxed);
}

}  // namespace rangescope::inject
