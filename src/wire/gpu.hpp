// The GPU stream of a native capture: `<pid>.gpu`, written by inject/cupti, read by read/native.
// Little-endian.
//
//   FileHeader
//   repeat: BlockHeader, `bytes` bytes of records
//
// Each block is appended with one write, so that it survives the death of the process. A block that
// does not end inside the file, or whose checksum differs, is a torn tail: it and everything after
// it are cut off and counted. Records are 8-byte aligned and begin with RecordHeader, whose `words`
// is their size in units of 8 bytes, so that a reader can skip types that it does not know. Names,
// streams and launch shapes are interned: a definition precedes its first use.
//
// A kernel takes 24 bytes and the call that launched it 24 more. Times are nanoseconds of
// CLOCK_MONOTONIC when the info record "clock" says "callback"; when it says "offset" they are
// CUPTI's own, and the clock samples relate the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rangescope::wire::gpu {

inline constexpr char kMagic[8] = {'R', 'S', 'G', 'P', 'U', '\r', '\n', '\0'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr const char* kSuffix = ".gpu";
/// Next to a stream: the snapshot of PyTorch's allocator that its process saved (read/snapshot).
inline constexpr const char* kMemorySuffix = ".memory";
/// Info record that says whether the snapshot is saved: one of these values, or the reason why not.
inline constexpr const char* kMemoryKey = "memory";
inline constexpr const char *kMemoryOn = "on", *kMemoryOfProgram = "the program's own";
inline constexpr const char *kMemoryOff = "off", *kMemoryWaits = "waits for PyTorch";
inline constexpr std::uint32_t kBlockMagic = 0x42475352;  // "RSGB"
inline constexpr std::uint32_t kUnknownDuration = 0xffffffffu;

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;  ///< blocks begin here
  std::uint32_t pid;
  std::uint32_t cupti_version;  ///< cuptiGetVersion
  std::int64_t start_ns;        ///< CLOCK_MONOTONIC
  std::int64_t start_unix_ns;   ///< the same moment, CLOCK_REALTIME
};
static_assert(sizeof(FileHeader) == 40);

struct BlockHeader {
  std::uint32_t magic;
  std::uint32_t bytes;     ///< of records that follow, a multiple of 8
  std::uint64_t checksum;  ///< checksum() of those bytes
};
static_assert(sizeof(BlockHeader) == 16);

enum class Type : std::uint8_t {
  kName = 1,          ///< Name, then the bytes
  kKind = 2,          ///< KernelKind
  kKernel = 3,        ///< Kernel [graph node u64] [duration u64]
  kLaunch = 4,        ///< Launch [duration u64]
  kCopy = 5,          ///< Copy
  kMemset = 6,        ///< Copy, with `kind` the memory kind
  kGraphLaunch = 8,   ///< GraphLaunch
  kGraphNode = 9,     ///< GraphNode
  kDevice = 10,       ///< Device, then the name's bytes
  kContext = 11,      ///< Context
  kStream = 12,       ///< Stream
  kApi = 13,          ///< Name: index of an API function, as in Launch::api
  kLoss = 14,         ///< Loss, then the detail's bytes
  kInfo = 15,         ///< Info, then "key\0value"
  kClockSample = 16,  ///< ClockSample
  kModule = 17,       ///< Module, then its name's and its type's bytes
  kLaunchIn = 18,     ///< LaunchIn [duration u64]
  kLaunchOf = 19,     ///< LaunchOf [duration u64]
  kMemory = 20,       ///< Memory: of the call whose record is the one before it
  kEvent = 21,        ///< Event: of the call whose record is the one before it
  kStreamMade = 22,   ///< StreamMade: of the call whose record is the one before it
};

struct RecordHeader {
  Type type;
  std::uint8_t small;   ///< meaning by type
  std::uint16_t words;  ///< size of the whole record / 8
  std::uint32_t id;     ///< meaning by type: correlation id, or the id that is defined
};
static_assert(sizeof(RecordHeader) == 8);

/// Of a Type here or in the files of other records (counters.hpp, pc.hpp); the writer sets `words`.
template <class T>
[[nodiscard]] constexpr RecordHeader head(T type, std::uint32_t id = 0, std::uint8_t small = 0) {
  return {static_cast<Type>(type), small, 0, id};
}

struct Name {
  RecordHeader head;    ///< id: what the name is referred to by
  std::uint32_t bytes;  ///< length, without padding
  std::uint32_t reserved;
};

/// A kernel function in one launch configuration on one stream.
struct KernelKind {
  RecordHeader head;
  std::uint32_t name;    ///< a Name, mangled
  std::uint32_t stream;  ///< a Stream
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t cluster[3];
  std::uint32_t registers_per_thread;
  std::uint32_t static_shared_bytes;
  std::uint32_t dynamic_shared_bytes;
};
static_assert(sizeof(KernelKind) == 64);

/// RecordHeader::small of a Kernel, Copy or Memset: which 8-byte extensions follow, in this order.
inline constexpr std::uint8_t kHasGraphNode = 1;
inline constexpr std::uint8_t kHasLongDuration = 2;

struct Kernel {
  RecordHeader head;  ///< id: correlation
  std::int64_t start_ns;
  std::uint32_t duration_ns;
  std::uint32_t kind;
};
static_assert(sizeof(Kernel) == 24);

struct Launch {
  RecordHeader head;  ///< id: correlation; small: Api index, 0 where unknown
  std::int64_t start_ns;
  std::uint32_t duration_ns;  ///< kUnknownDuration: in the extension, or not recorded
  std::uint32_t tid;
};
static_assert(sizeof(Launch) == 24);

/// A torch.nn.Module, identified by the chain of modules that were called around it
/// (`torch.nn.Module._call_impl` was running). Or a function in that chain, with its name as type.
struct Module {
  RecordHeader head;         ///< id: number of the chain that ends with it; small: 1 for a function
  std::uint32_t around;      ///< number of the chain without it; 0: it is the outermost
  std::uint16_t name_bytes;  ///< its name below the module around it, "layers.3.mlp"; 0 if it is
                             ///< not below that module
  std::uint16_t type_bytes;
};
static_assert(sizeof(Module) == 16);

/// A launch from inside of modules.
struct LaunchIn {
  Launch launch;
  std::uint32_t module;  ///< a Module
  /// The number of outermost modules that are in the same call as at the thread's last launch.
  std::uint32_t same;
};
static_assert(sizeof(LaunchIn) == 32);

/// The origin of a launch by PyTorch's autograd: the operator of the forward pass that its thread
/// began last, or the function of the backward pass that it evaluates.
struct MadeBy {
  static constexpr std::uint32_t kNoNumber = 0xffffffff;
  enum Kind : std::uint8_t { kNothing = 0, kOperator = 1, kFunction = 2 };
  /// Lowest bits of the operator's number, which its function has as well.
  std::uint32_t sequence = kNoNumber;
  std::uint16_t thread = 0;  ///< lowest bits of PyTorch's number of the operator's thread
  std::uint8_t kind = kNothing;
  std::uint8_t evaluates = 0;  ///< 1: the operator is of a forward pass that a function recomputes
};

/// A launch of a program that differentiates.
struct LaunchOf {
  LaunchIn in;  ///< module: 0 outside of all
  MadeBy made_by;
};
static_assert(sizeof(LaunchOf) == 40);

inline constexpr std::uint32_t kNoStream = 0xffffffff;  ///< in place of CUPTI's stream id

enum class MemoryOperation : std::uint8_t { kAllocate = 0, kFree = 1, kFailedAllocation = 2 };

/// What a call allocated or freed. Allocated memory exists from the return of the call, freed
/// memory until its begin.
struct Memory {
  RecordHeader head;      ///< id: correlation; small: CUpti_ActivityMemoryKind, 0 of a free
  std::uint64_t address;  ///< or the handle of physical memory (cuMemCreate)
  std::uint64_t bytes;    ///< 0 of a free
  std::uint64_t pool;     ///< handle, 0: none, or the default one
  std::uint32_t context;  ///< CUPTI's context id
  std::uint32_t stream;   ///< CUPTI's stream id of the asynchronous ones
  MemoryOperation operation;
  std::uint8_t reserved[3];
  std::int32_t result;  ///< CUresult, 0: success
};
static_assert(sizeof(Memory) == 48);

enum class EventOperation : std::uint8_t {
  kRecord = 0,
  kStreamWait = 1,
  kSynchronize = 2,        ///< cuEventSynchronize
  kStreamSynchronize = 3,  ///< of a stream: no event
};

/// What a call recorded or waited for.
struct Event {
  RecordHeader head;      ///< id: correlation; small: EventOperation
  std::uint64_t event;    ///< handle
  std::uint32_t context;  ///< CUPTI's context id
  std::uint32_t stream;   ///< CUPTI's stream id
};
static_assert(sizeof(Event) == 24);

/// A stream that the program made.
struct StreamMade {
  RecordHeader head;      ///< id: correlation; small: 1 where it is cudaStreamNonBlocking
  std::uint32_t context;  ///< CUPTI's context id
  std::uint32_t stream;   ///< CUPTI's stream id
};
static_assert(sizeof(StreamMade) == 16);

struct Copy {
  RecordHeader head;  ///< id: correlation; small: kHasGraphNode
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint64_t bytes;
  std::uint32_t stream;
  std::uint8_t kind, source, destination,
      reserved;  ///< CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind
};
static_assert(sizeof(Copy) == 40);

struct GraphLaunch {
  RecordHeader head;  ///< id: correlation
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint32_t graph;
  std::uint32_t stream;
};
static_assert(sizeof(GraphLaunch) == 32);

/// RecordHeader::small of a GraphNode that says when a graph (its number in `node`) was begun.
inline constexpr std::uint8_t kGraphBegun = 0xff;

/// A node was made (original == 0: on thread `id`, by capture or by hand) or copied from another,
/// as instantiation does.
struct GraphNode {
  RecordHeader head;  ///< id: thread; small: CUgraphNodeType, or kGraphBegun
  std::int64_t at_ns;
  std::uint64_t node;  ///< CUPTI's id; its upper half is the graph
  std::uint64_t original;
};
static_assert(sizeof(GraphNode) == 32);

struct Device {
  RecordHeader head;      ///< id: CUDA ordinal; small: 1 when MIG is on
  std::uint8_t uuid[16];  ///< of the MIG instance when there is one
  std::uint64_t memory_bytes;
  std::uint64_t l2_bytes;
  std::uint64_t memory_bytes_per_s;
  std::uint64_t sm_clock_hz;
  std::uint32_t compute_major, compute_minor;
  std::uint32_t sm_count;
  std::uint32_t name_bytes;
};
static_assert(sizeof(Device) == 72);

struct Context {
  RecordHeader head;  ///< id: CUPTI's context id; small: 1 for a green context
  std::uint32_t device;
  std::uint32_t null_stream;
  std::uint32_t sm_count;  ///< of a green context, else 0
  std::uint32_t parent;
};
static_assert(sizeof(Context) == 24);

struct Stream {
  RecordHeader head;  ///< id: index in this file
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;  ///< CUPTI's stream id
  std::uint32_t reserved;
};
static_assert(sizeof(Stream) == 24);

enum class LossKind : std::uint32_t {
  kUnavailable = 1,  ///< no GPU activity at all: why is in the detail
  kPartial = 2,      ///< one kind of activity could not be recorded
  kDropped = 3,      ///< records that CUPTI had no buffer for
  kUnfinished = 4,   ///< work that had not ended when the process did
  kSizeLimit = 5,    ///< records beyond --max-capture-size
  kWriteFailed = 6,  ///< bytes that the file system did not take
  kFatal = 7,        ///< CUPTI gave up during the run
  kLetGo = 8,        ///< a profiler of the program needed CUPTI: nothing was recorded from then on
  kImpossible = 9,   ///< work that ends before it starts
};

struct Loss {
  RecordHeader head;  ///< id: LossKind
  std::uint64_t count;
  std::uint32_t bytes;  ///< of the detail
  std::uint32_t reserved;
};
static_assert(sizeof(Loss) == 24);

struct Info {
  RecordHeader head;
  std::uint32_t bytes;  ///< of "key\0value"
  std::uint32_t reserved;
};

/// CLOCK_MONOTONIC read before and after cuptiGetTimestamp.
struct ClockSample {
  RecordHeader head;
  std::int64_t before_ns;
  std::int64_t cupti_ns;
  std::int64_t after_ns;
};
static_assert(sizeof(ClockSample) == 32);

/// FNV-1a over 8-byte words; `bytes` is a multiple of 8.
[[nodiscard]] inline std::uint64_t checksum(const void* data, std::size_t bytes) {
  std::uint64_t sum = 0xcbf29ce484222325ull;
  const auto* begin = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, begin + i, 8);
    sum = (sum ^ word) * 0x100000001b3ull;
  }
  return sum;
}

}  // namespace rangescope::wire::gpu
