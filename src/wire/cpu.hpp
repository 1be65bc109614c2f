// CPU samples of a program: `<run>/native/cpu/*.cpu`, written by sample/cpu in rangescope's own
// process, read by read/native. Little-endian. Head and blocks are those of wire/samples.hpp, with
// another magic and other types of blocks. The complete description is docs/formats/cpu.md.
//
// A block has `items` items. Numbers are unsigned LEB128 of at most ten bytes (zigzag if they may
// be negative); a text is its length and its bytes. Threads, modules, frames and stacks are
// numbered from 0 over the whole file; where `+1` is written below, 0 means none.
//
// kDescription  text, one `key value` a line: interval_ns, unwinding, refused (what the kernel did
//               not allow: `kernel`: samples in the kernel; `context switches`: then there are no
//               waits); modules, functions, phases: which Python functions become regions of
//               threads that launch nothing, in the form of wire/names.hpp, a line each
// kThreads      pid, tid, pid and tid in the program's own namespace, process start ns, thread name
// kModules      path, build id as hex digits (may be empty)
// kFrames       kind (FrameKind), then
//               kNative: module+1, address in the module's file (as in its program headers; of a
//               caller, the byte before the return address);
//               kPython: function, file, line (0: none);
//               kCut: nothing
// kStacks       parent stack+1 (0 for the outermost frame), frame
// kSamples      zigzag time difference to the previous item (the first is whole), thread, stack+1
// kWaits        zigzag start difference, length ns, thread, WaitKind (with kStandsForMore), stack+1
//               (what it waited in, if known)
// kSymbols      frame, count, then for each function, from the outermost to the innermost inlined
//               one: name, file, line
// kCounters     name, period, 1 if it is counted and 0 if the system refused it
// kCounts       zigzag time difference, thread, counter: the thread had counted another period
// kTotals       for each of kCounters: its count over the whole run, scaled; ns that it ran, and ns
//               that it could have run
// kCreators     thread, the thread that started it
// kHolders      zigzag start difference, thread: of a wait; the thread that held what it waited for
// kLines        frame, and for each function of its kSymbols the line in its file (0: unknown)
// kBlind        zigzag start difference, length ns: context switches were not recorded
// kProcesses    pid, parent pid (0 of the program's first), start ns, length ns, name of the
// program
//               that it executed last; once while it runs, and once more when it has ended
// kEvent        as in wire/samples.hpp, with an EventKind from below
// kEnd          text: `cpu_ns N`, the CPU time that sampling took; `lost N`, samples for which the
//               kernel had no room
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/samples.hpp"

namespace rangescope::wire::cpu {

inline constexpr char kMagic[8] = {'R', 'S', 'C', 'P', 'U', '\r', '\n', '\0'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr const char* kFolder = "cpu";
inline constexpr const char* kSuffix = ".cpu";
inline constexpr std::uint32_t kMostText = 64u << 10;
inline constexpr std::uint32_t kMostDepth = 1024;  ///< of a stack, inlined functions aside

using samples::Type;
inline constexpr Type kThreads{16}, kModules{17}, kFrames{18}, kStacks{19}, kSamples{20},
    kWaits{21}, kSymbols{22}, kCounters{23}, kCounts{24}, kTotals{25}, kBlind{26}, kCreators{27},
    kHolders{28}, kLines{29}, kProcesses{30};

inline constexpr const char *kModulesKey = "modules", *kFunctionsKey = "functions",
                            *kPhasesKey = "phases";

/// The name of a kPython frame for a call of Python's loop whose functions were not read.
inline constexpr const char* kNotRead = "(not read)";

enum class FrameKind : std::uint8_t { kNative = 0, kPython = 1, kCut = 2 };
/// What a thread waited for, by the system call that it was in. kIo also for a page of memory,
/// without a system call.
enum class WaitKind : std::uint8_t {
  kOther = 0,
  kLock = 1,
  kIo = 2,
  kSleep = 3,
  kPreempted = 4,
  kGil = 5,
  kChild = 6
};
/// Added to a WaitKind: the wait represents also those of the time before its window, which was not
/// observed.
inline constexpr std::uint64_t kStandsForMore = 8;

/// EventKind of a kEvent block.
inline constexpr samples::EventKind kUnavailable{32},  ///< no CPU samples; the text says why
    kThrottled{33},     ///< the kernel sampled less often for a while
    kBounded{34},       ///< file or memory reached the bound: nothing more is stored
    kPythonLate{36},    ///< `count` samples came too late to read their Python frames
    kNotCounted{37},    ///< `count` counters that the system refused; the text says why
    kShortThreads{38},  ///< `count` threads ended before their first sample; text: ns of CPU time
                        ///< that they used
    kNotRecorded{39},   ///< a program without recorded ranges; text: kind of loss, pid, sentence
    kPythonUnread{35};  ///< a Python whose stacks cannot be read; the text says why

/// A time in an item, written as the difference to that of the previous item.
struct At {
  std::int64_t ns;
};

/// Appends items of numbers and texts to a block.
class Packer {
 public:
  template <class... Parts>
  void item(const Parts&... parts) {
    (put(parts), ...);
    ++items_;
  }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void difference(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {
    value = value.substr(0, kMostText);
    number(value.size());
    bytes_ += value;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t items() const { return items_; }
  void clear() {
    bytes_.clear();
    items_ = 0;
    last_ns_ = 0;
  }

 private:
  void put(std::uint64_t value) { number(value); }
  void put(std::string_view value) { text(value); }
  void put(At at) {
    difference(at.ns - last_ns_);
    last_ns_ = at.ns;
  }

  std::string bytes_;
  std::uint32_t items_ = 0;
  std::int64_t last_ns_ = 0;
};

/// Takes them out again; past the end, or at nonsense, everything is 0 and good() is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (left_.empty())
        break;
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      if (shift < 64)
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    good_ = false;
    left_ = {};
    return 0;
  }
  std::int64_t difference() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  std::string_view text() {
    const std::uint64_t size = number();
    if (size > left_.size() || size > kMostText) {
      good_ = false;
      left_ = {};
      return {};
    }
    const std::string_view value = left_.substr(0, size);
    left_.remove_prefix(size);
    return value;
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

}  // namespace rangescope::wire::cpu
