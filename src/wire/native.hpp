// The native capture: what NVTX ranges a process opened, one file `<pid>.<n>.rstrace` for each
// process image. Little-endian.
//
//   FileHeader, 4096 bytes
//   chunks, each 4096-aligned and a multiple of 4096 bytes: ChunkHeader, then records, then zeros
//
// The file is written through shared memory maps, so everything written is in the page cache and
// survives the death of the process. A stream has the records of one thread, or of several, one
// after the other: its chunks have the stream's number and a sequence. Every stream is
// self-contained: a string or domain is defined in it before its first use, so no writer waits for
// another. Records are 8-byte aligned and begin with RecordHeader, which is stored last: a zero
// word instead of a record ends the chunk's data, and a record that was being written when the
// process died is never seen. A page of zeros instead of a chunk is a hole (its owner died, or its
// blocks could not be allocated). `words` lets a reader skip types it does not know. Time is
// CLOCK_MONOTONIC in nanoseconds.
//
// A range takes 16 bytes if possible: push and pop then have only the time since the previous push
// or pop in the same chunk. First writes to a page of the file are half of the cost of a range, so
// fewer bytes take less time.
//
// Beyond half of its size a capture is thinned: one of 4 ranges is recorded with everything inside
// it, beyond three quarters one of 16, and so on. So a run may be thousands of times as long as
// fits. Ranges that are left out have neither push nor pop, and are counted (Drop::kThinned).
//
// GPU work is in a separate file (wire/gpu.hpp). Threads of the program write this file through
// maps, without a lock or system call; a thread of CUPTI's appends whole blocks with checksums to
// the other one, long after the work. Versions: `major` changes if an old reader would misread the
// file, `minor` if there are additions that it may skip.
#pragma once

#include <cstdint>
#include <cstring>

namespace rangescope::wire::native {

inline constexpr char kMagic[8] = {'R', 'S', 'T', 'R', 'A', 'C', 'E', '\n'};
inline constexpr std::uint16_t kMajor = 2;  ///< 2: short pushes and pops
/// 1.2: cost of a range; 1.1: local rank and size of the job; structured payloads; where chunks end
inline constexpr std::uint16_t kMinor = 0;
inline constexpr std::uint64_t kPage = 4096;
/// The largest page that a kernel of this processor has. Chunks begin at multiples of the page in
/// use (`page_bytes()`).
#if defined(__aarch64__)
inline constexpr std::uint32_t kLargestPage = 65536;
#else
inline constexpr std::uint32_t kLargestPage = kPage;
#endif
inline constexpr std::uint32_t kChunkMagic = 0x4b434352;    // "RCCK"
inline constexpr std::uint32_t kMaxNameBytes = 256 * 1024;  ///< longer names are cut, and counted
inline constexpr char kSuffix[] = ".rstrace";
/// A process that could not make a file leaves the symbolic link PID.refused, whose target is the
/// errno ("24"): that takes no descriptor.
inline constexpr char kRefusedSuffix[] = ".refused";

/// Why an event is not in the capture; index into FileHeader::dropped. The numbers never change.
enum class Drop : std::uint32_t {
  kSizeLimit = 0,  ///< beyond the capture size that was allowed
  kNoSpace = 1,    ///< the file system is full
  kFileLimit = 2,  ///< the program's own RLIMIT_FSIZE
  kNoMemory = 3,   ///< mapping failed: RLIMIT_AS, or too many maps
  kNoFile = 4,  ///< the file could not be opened: RLIMIT_NOFILE, or another user or root directory
  kReentrant = 5,        ///< a signal handler called NVTX while a hook of its thread was running
  kNameCut = 6,          ///< a name was cut at kMaxNameBytes (the event itself is there)
  kTooDeep = 7,          ///< push nested deeper than the stack that is kept
  kEmptyPop = 8,         ///< pop without push
  kInheritedPop = 9,     ///< pop, after fork, of a range that the parent had pushed
  kUnknownEnd = 10,      ///< end of a range id that was never given out
  kIo = 11,              ///< any other failure of the file
  kTooManyDomains = 12,  ///< calls in too many domains: counted in the default domain
  kAbandoned = 13,       ///< a signal handler left a hook of its thread and never returned
  kTruncated = 14,       ///< the file was truncated while it was written
  kFiltered = 15,    ///< in a fork's child, whose seccomp filter might kill it for making a file
  kNamespace = 16,   ///< linker namespaces (dlmopen) without room for the library: not events
  kThinned = 17,     ///< pushes and marks left out so that the capture spans the whole run
  kOpenBefore = 18,  ///< ends of ranges that were open when the window began: not events
};
inline constexpr std::uint32_t kDropReasons = 32;

/// FileHeader::flags: nothing of the GPU was to be recorded.
inline constexpr std::uint64_t kLight = 1;
/// Up to 0.2, with --overhead: the GPU file holds windows that were chosen over the whole run. It
/// is not read.
inline constexpr std::uint64_t kOverhead = 2;

struct FileHeader {
  char magic[8];
  std::uint16_t major, minor;
  std::uint32_t header_bytes;  ///< chunks begin here: 4096, or a larger page
  std::uint32_t pid, parent_pid;
  std::int64_t monotonic_ns;  ///< when the file was made
  std::int64_t realtime_ns;   ///< the same moment, UTC nanoseconds since 1970
  std::int64_t end_ns;  ///< when the process ended in an orderly way; 0: it did not, or still runs
  std::uint64_t first_range_id;  ///< smaller start/end ids are from before the fork or window
  std::uint64_t rank_plus_1;     ///< rank in a parallel job, from the environment, plus 1; 0: none
  std::uint64_t used_bytes;      ///< end of the chunks, before a hole; 0: the end of the file
  std::uint64_t local_rank_plus_1;  ///< on its host
  std::uint64_t world_size;         ///< ranks of the job; 0: unknown
  std::uint64_t range_own_ps;   ///< cost of recording an empty range, within the range; 0: unknown
  std::uint64_t range_pair_ps;  ///< and in total, from before its push to after its pop
  std::uint64_t flags;          ///< kLight, kOverhead
  std::uint64_t window;         ///< number of its window (wire/control.hpp); 0: the whole run
  std::uint64_t dropped[kDropReasons];  ///< live counts by Drop
  std::uint32_t exe_bytes;
  std::uint32_t tool_bytes;
  char tool[64];   ///< "rangescope 0.1.0"
  char exe[3584];  ///< path of the executable, not terminated
  char unused[4096 - 3584 - 64 - 8 - 8 * kDropReasons - 64 - 56];
};
static_assert(sizeof(FileHeader) == kPage);

/// The bytes before the hole, of a file of `size` bytes; `size` if it is not a capture.
inline std::uint64_t written_bytes(const FileHeader& header, std::uint64_t size) {
  const bool is_capture = std::memcmp(header.magic, kMagic, sizeof header.magic) == 0;
  const bool has_hole = header.used_bytes >= kPage && header.used_bytes < size;
  return is_capture && has_hole ? header.used_bytes : size;
}

struct ChunkHeader {
  std::uint32_t magic;     ///< stored last
  std::uint32_t stream;    ///< from 0
  std::uint32_t sequence;  ///< of the chunk within its stream, from 0
  std::uint32_t tid;       ///< the thread that opened it
  std::uint64_t bytes;     ///< of the whole chunk, this header included
  std::uint64_t reserved[5];
};
static_assert(sizeof(ChunkHeader) == 64);

enum class Type : std::uint8_t {
  kString = 1,     ///< Text; value: id of a string, from 1, in this stream
  kDomain = 2,     ///< Text; value: id of a domain, the same in all streams of the file; 0 is the
                   ///< default domain
  kThread = 3,     ///< Timed; value: tid. What follows in the stream is this thread's, which has no
                   ///< range open
  kPush = 4,       ///< Event; value: name's string id, 0 for a range without a name
  kPop = 5,        ///< Timed; value: domain
  kStart = 6,      ///< IdEvent; value: name
  kEnd = 7,        ///< Timed with the range id behind it; value: 0
  kMark = 8,       ///< Event; value: name
  kCategory = 9,   ///< Named; value: category id; `string` its name
  kResource = 10,  ///< Resource; value: NVTX identifierType
  kThreadName = 11,  ///< Named; value: tid
  kGap = 12,         ///< Gap; value: domain. Events are missing before it
  kSchema = 13,  ///< Schema; value: id of a layout of payloads, the same in all streams of the file
  kPayload = 14,  ///< StructuredPayload; value: schema id. Of the thread's innermost open range of
                  ///< the domain
  kShortPush = 15,  ///< the header alone; value: ShortPush. In the default domain, of attributes
                    ///< only kRegistered
  kShortPop =
      16,  ///< the header alone; flags: domain; value: nanoseconds since the push or pop before it
};

struct RecordHeader {
  Type type;
  std::uint8_t flags;
  std::uint16_t words;  ///< size of the whole record / 8
  std::uint32_t value;  ///< meaning by type
};
static_assert(sizeof(RecordHeader) == 8);

/// RecordHeader::flags of kPush, kStart, kMark: what follows, in this order, 8 bytes each (the
/// payload 16).
inline constexpr std::uint8_t kHasScope = 1;  ///< Scope; absent: default domain, category 0
inline constexpr std::uint8_t kHasColor = 2;  ///< std::uint32_t ARGB, 4 bytes of zero
inline constexpr std::uint8_t kHasPayload =
    4;  ///< std::uint32_t NVTX payload type, 4 bytes of zero, 8 bytes of value
inline constexpr std::uint8_t kRegistered = 8;  ///< the name was a registered string
inline constexpr std::uint8_t kBefore =
    16;  ///< kPush: the range began then, before the window did; short records do not count from it
/// RecordHeader::flags of kString: the name was longer.
inline constexpr std::uint8_t kCut = 1;

/// What a kShortPush says: nanoseconds since the push or pop before it in the chunk, and the name's
/// string id.
struct ShortPush {
  static constexpr std::uint32_t kNameBits = 12, kSinceBits = 32 - kNameBits;
  std::uint32_t since_ns, name;
  [[nodiscard]] static constexpr bool fits(std::uint64_t since, std::uint32_t name_id) {
    return since >> kSinceBits == 0 && name_id >> kNameBits == 0;
  }
  [[nodiscard]] constexpr std::uint32_t value() const { return since_ns | name << kSinceBits; }
  [[nodiscard]] static constexpr ShortPush of(std::uint32_t value) {
    return {value & ((1u << kSinceBits) - 1), value >> kSinceBits};
  }
};

struct Text {
  RecordHeader head;
  std::uint64_t bytes;  ///< length; the bytes follow, padded with zeros
};
struct Timed {
  RecordHeader head;
  std::int64_t at_ns;
};
struct Scope {
  std::uint32_t domain;
  std::uint32_t category;
};
struct Named {
  RecordHeader head;
  std::uint32_t domain;
  std::uint32_t string;
};
struct Resource {
  RecordHeader head;
  std::uint32_t domain;
  std::uint32_t string;
  std::uint64_t identifier;
};
/// Written when recording resumes after events were dropped on this stream, once for each domain
/// that the thread has used: of the pushes in the stream, the lowest `open` of this domain are
/// still open, the others ended at an unknown time.
struct Gap {
  RecordHeader head;
  std::int64_t at_ns;
  std::uint32_t open;
  std::uint32_t dropped;  ///< events of the stream lost since the last gap; 0 in further records
};
/// Layout of a structured payload: which numbers lie where. The entries follow.
struct Schema {
  RecordHeader head;
  std::uint64_t entries;
};
struct SchemaEntry {
  std::uint32_t string;  ///< name
  std::uint8_t number;   ///< Number
  std::uint8_t bytes;    ///< 1, 2, 4 or 8; floats 4 or 8
  std::uint16_t zero;
  std::uint64_t offset;  ///< of its first byte in the payload
};
enum class Number : std::uint8_t { kUnsigned = 1, kSigned = 2, kFloat = 3 };
/// The bytes of the payload follow, padded with zeros.
struct StructuredPayload {
  RecordHeader head;
  std::uint32_t domain;
  std::uint32_t bytes;
};
static_assert(sizeof(Schema) == 16 && sizeof(SchemaEntry) == 16 && sizeof(StructuredPayload) == 16);
static_assert(sizeof(Text) == 16 && sizeof(Timed) == 16 && sizeof(Named) == 16 &&
              sizeof(Resource) == 24 && sizeof(Gap) == 24);

}  // namespace rangescope::wire::native
