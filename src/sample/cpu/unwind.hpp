// From registers and a copy of the stack to a call chain, by the tables (.eh_frame, .debug_frame)
// that compilers write for exceptions, for code that keeps no frame pointer. Algorithm: DWARF 5,
// section 6.4; rows are kept by address, so that a frame costs one look-up after the first time.
//
// Where a place has no tables the frame pointer is tried; where that leads nowhere the chain is
// cut, and says so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sample/cpu/perf.hpp"

namespace rangescope::sample::cpu {

class Space;

/// One step of a DWARF expression, on a stack of numbers.
struct Step {
  enum class Op : std::uint8_t {
    kNumber,    ///< pushes `number`
    kRegister,  ///< pushes a register + `number`
    kFrame,     ///< pushes the canonical frame address
    kLoad,
    kDrop,
    kAdd,
    kSubtract,
    kMultiply,
    kAnd,
    kShift,    ///< to the left
    kNotLess,  ///< as numbers with a sign
  } op = Op::kNumber;
  std::uint8_t base = 0;
  std::int64_t number = 0;
};

/// How the caller's registers follow from a frame's, at one address.
struct Row {
  enum class Kind : std::uint8_t { kNone, kOutermost, kNormal } kind = Kind::kNone;
  bool signal = false;  ///< the caller was interrupted: its address is of the instruction itself
  std::uint8_t base = kRsp;  ///< register that the canonical frame address is counted from
  std::int32_t offset = 0;
  /// How many of `steps` give the canonical frame address; 0: `base` and `offset` do.
  std::uint32_t frame_steps = 0;
  struct Saved {
    enum class At : std::uint8_t {
      kSame,     ///< of the stack pointer: it is the canonical frame address
      kFrame,    ///< in memory, at the canonical frame address + offset
      kAddress,  ///< in memory, where `count` steps from `offset` on say
      kValue,    ///< what these steps say
      kUnknown
    } at = At::kSame;
    std::uint8_t count = 0;
    std::int32_t offset = 0;
  } saved[kRegisters] = {};
  std::vector<Step> steps = {};
};

/// The unwinding tables of one file.
class Tables {
 public:
  /// Null where it has none, or cannot be opened. `pid` is a process that maps it.
  [[nodiscard]] static std::unique_ptr<Tables> open(const std::string& path, std::uint32_t pid);
  virtual ~Tables() = default;
  /// The row at an address as program headers count.
  [[nodiscard]] virtual const Row& row(std::uint64_t address) = 0;
  /// Of an offset in the file.
  [[nodiscard]] virtual std::uint64_t address_of(std::uint64_t offset) const = 0;
  /// Address of a symbol of the dynamic or static table, and its size; 0 where there is none.
  struct Symbol {
    std::uint64_t address = 0, size = 0;
  };
  [[nodiscard]] virtual Symbol symbol(std::string_view name) const = 0;
  /// Begin and end of what an unwinding entry covers and holds an address: a function, or a part of
  /// one that its compiler put elsewhere; {0, 0} where none does.
  [[nodiscard]] virtual std::pair<std::uint64_t, std::uint64_t> part(std::uint64_t address) = 0;
  [[nodiscard]] virtual std::string build_id() const = 0;
  /// Of the file as it was opened, also outside the program's container; it stays ours. -1: none.
  [[nodiscard]] virtual int descriptor() const = 0;
};

/// Whether this build has tables at all (libdw); without them only frame pointers are followed.
[[nodiscard]] bool has_tables();

struct Unwound {
  std::vector<std::uint64_t>
      addresses;  ///< the innermost first; of callers, the byte before the return address
  /// Of the first of `addresses`, as many as the copy of the stack holds. Those that a callee need
  /// not keep are the innermost frame's.
  std::vector<std::array<std::uint64_t, kRegisters>> registers;
  bool cut = false;      ///< it does not reach the thread's begin
  bool guessed = false;  ///< code without tables was passed: frames may be missing
};

void unwind(const Space& space, const Sample& sample, Unwound& out);

}  // namespace rangescope::sample::cpu
