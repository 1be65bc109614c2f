#include "sample/cpu/unwind.hpp"

#include <cstring>
#include <iterator>
#include <span>

#include "sample/cpu/space.hpp"
#include "wire/cpu.hpp"

namespace rangescope::sample::cpu {
namespace {

constexpr std::uint64_t kMostSought = 8 << 10;
constexpr int kMostTrials = 16;
/// clone3() and start_thread() of glibc.
constexpr std::size_t kFramesOfAThreadsStart = 2;

/// How many numbers a step takes from the stack.
std::size_t operands_of(Step::Op op) {
  if (op <= Step::Op::kFrame)
    return 0;
  return op <= Step::Op::kDrop ? 1 : 2;
}

class Walk {
 public:
  Walk(const Space& space, const Sample& sample)
      : space_(space), stack_(sample.stack), low_(sample.values[kRsp]) {
    std::memcpy(values_, sample.values, sizeof values_);
  }

  /// Of the last frame: its caller is found by the frame pointer.
  [[nodiscard]] bool pointed() const { return pointed_; }

  /// `call`: the address is a return address.
  void run(Unwound& out, bool call = false, std::uint32_t depth = 0) {
    for (; depth < wire::cpu::kMostDepth; ++depth) {
      std::uint64_t address = values_[kRip] - (call ? 1 : 0);
      if (values_[kRip] == 0)
        return;
      bool compiled_at_run_time = false;  // no file says anything of its code
      const Row* row = row_at(address, &compiled_at_run_time);
      // What only looks like a call, of a signal handler or a new context, returns to the begin of
      // a function.
      if (call && (row == nullptr || row->signal || row->kind == Row::Kind::kNone))
        if (const Row* begin = row_at(values_[kRip]);
            begin != nullptr && begin->kind != Row::Kind::kNone) {
          address = values_[kRip];
          row = begin;
        }
      if (row == nullptr) {
        // A thread's begin may return to nowhere; the first frame may be a jump through a wild
        // pointer.
        out.cut = true;
        return;
      }
      out.addresses.push_back(address);
      std::memcpy(out.registers.emplace_back().data(), values_, sizeof values_);
      const bool has_row = row->kind != Row::Kind::kNone;
      if (row->kind == Row::Kind::kOutermost)
        return;
      out.guessed |= !has_row;
      // Code without tables marks the begin of a thread by a frame pointer of 0 (System V ABI,
      // AMD64, 3.4.1); in that of LLVM's compilers at run time (numba, PyTorch's CPU kernels,
      // PostgreSQL) it is a register like others.
      if (!has_row && depth > 0 && values_[kRbp] == 0 && !compiled_at_run_time)
        return;
      const bool by_base_pointer = row->frame_steps == 0 && row->base == kRbp;
      pointed_ = !has_row || by_base_pointer;
      if (by_base_pointer && values_[kRbp] == kUnknownRegister)
        return seek(*row, out, depth);
      const std::uint64_t callee_stack = values_[kRsp];
      const bool has_caller = has_row ? by_row(*row) : by_frame_pointer();
      if (!has_caller || !(row->signal || is_above(callee_stack, depth))) {
        if (compiled_at_run_time && !sought_)
          return seek_caller(out, depth);
        out.cut = true;
        return;
      }
      call = !row->signal;
    }
    out.cut = true;
  }

 private:
  /// Null where nothing is mapped.
  const Row* row_at(std::uint64_t address, bool* compiled_at_run_time = nullptr) const {
    static const Row kNothing;
    const Place place = place_of(space_, address);
    if (place.module == nullptr)
      return nullptr;
    if (compiled_at_run_time != nullptr)
      *compiled_at_run_time = !place.module->file() && place.module->path != "[vdso]";
    Tables* tables = place.module->tables();
    if (tables == nullptr)
      return &kNothing;
    return &tables->row(place.address);
  }
  /// The stack of a caller lies above its callee's (vfork() takes its return address off first);
  /// only that of interrupted code may be another one.
  [[nodiscard]] bool is_above(std::uint64_t callee_stack, std::uint32_t depth) const {
    return values_[kRsp] > callee_stack || (values_[kRsp] == callee_stack && depth == 0);
  }
  bool load(std::uint64_t address, std::uint64_t& value) const {
    if (address < low_ || address - low_ > stack_.size() ||
        stack_.size() - (address - low_) < sizeof value)
      return false;
    std::memcpy(&value, stack_.data() + (address - low_), sizeof value);
    return true;
  }

  /// A waiting thread's frame pointer is not known: the first place of the frame that holds what a
  /// call and a prologue leave, and from where the chain reaches its begin.
  void seek(const Row& row, Unwound& out, std::uint32_t depth) const {
    Unwound rest;
    std::uint64_t caller = 0, back = 0;
    int trials = kMostTrials;
    for (std::uint64_t address = values_[kRsp];
         !sought_ && trials > 0 && address - values_[kRsp] < kMostSought;
         address += 8) {
      if (!load(address, caller) || !load(address + 8, back))
        break;
      const Row* above = row_at(back - 1);
      if (above == nullptr || above->kind == Row::Kind::kNone ||
          (above->base == kRbp && caller <= address))
        continue;
      --trials;
      Walk trial(*this);
      trial.sought_ = true;
      trial.values_[kRbp] = address;
      rest = {};
      if (!trial.by_row(row))
        continue;
      trial.run(rest, true, depth + 1);
      if (rest.cut)
        continue;
      out.guessed |= rest.guessed;
      append(out, rest);
      return;
    }
    out.cut = true;
  }

  /// Code that was made at run time has neither tables nor a frame pointer: its caller is the first
  /// place of the stack that holds a return address into a file's code, and from where the chain
  /// reaches its begin. Where that is the thread's start itself (Java's main thread), the functions
  /// in between were passed over.
  void seek_caller(Unwound& out, std::uint32_t depth) const {
    Unwound rest;
    std::uint64_t back = 0;
    int trials = kMostTrials;
    for (std::uint64_t address = values_[kRsp];
         trials > 0 && address - values_[kRsp] < kMostSought && load(address, back);
         address += 8) {
      bool compiled_at_run_time = false;
      const Row* above = row_at(back - 1, &compiled_at_run_time);
      if (above == nullptr || compiled_at_run_time || above->kind != Row::Kind::kNormal)
        continue;
      --trials;
      Walk trial(*this);
      trial.sought_ = true;
      trial.values_[kRip] = back;
      trial.values_[kRsp] = address + 8;
      rest = {};
      trial.run(rest, true, depth + 1);
      if (rest.cut || rest.addresses.size() < 2)
        continue;
      if (rest.addresses.size() <= kFramesOfAThreadsStart)
        break;
      append(out, rest);
      return;
    }
    out.cut = true;
  }

  static void append(Unwound& out, const Unwound& rest) {
    out.addresses.insert(out.addresses.end(), rest.addresses.begin(), rest.addresses.end());
    out.registers.insert(out.registers.end(), rest.registers.begin(), rest.registers.end());
  }

  bool by_frame_pointer() {
    const std::uint64_t frame = values_[kRbp];
    std::uint64_t caller = 0, back = 0;
    if (!load(frame, caller) || !load(frame + 8, back) || space_.find(back - 1) == nullptr)
      return false;
    values_[kRbp] = caller;
    values_[kRip] = back;
    values_[kRsp] = frame + 16;
    return true;
  }

  bool steps(std::span<const Step> steps, std::uint64_t frame, std::uint64_t& result) const {
    std::uint64_t stack[16];
    std::size_t depth = 0;
    for (const Step& step : steps) {
      const std::size_t operands = operands_of(step.op);
      if (depth < operands || depth == std::size(stack))
        return false;
      if (operands == 2)
        --depth;
      const std::uint64_t right = stack[depth];
      std::uint64_t& top = stack[depth > 0 ? depth - 1 : 0];
      switch (step.op) {
        case Step::Op::kNumber: stack[depth++] = static_cast<std::uint64_t>(step.number); break;
        case Step::Op::kRegister:
          stack[depth++] = values_[step.base] + static_cast<std::uint64_t>(step.number);
          break;
        case Step::Op::kFrame: stack[depth++] = frame; break;
        case Step::Op::kLoad:
          if (!load(top, top))
            return false;
          break;
        case Step::Op::kDrop: --depth; break;
        case Step::Op::kAdd: top += right; break;
        case Step::Op::kSubtract: top -= right; break;
        case Step::Op::kMultiply: top *= right; break;
        case Step::Op::kAnd: top &= right; break;
        case Step::Op::kShift: top = right < 64 ? top << right : 0; break;
        case Step::Op::kNotLess:
          top = static_cast<std::int64_t>(top) >= static_cast<std::int64_t>(right);
          break;
      }
    }
    if (depth > 0)
      result = stack[depth - 1];
    return depth > 0;
  }

  bool by_row(const Row& row) {
    using At = Row::Saved::At;
    const std::span<const Step> row_steps = row.steps;
    std::uint64_t frame = values_[row.base] + static_cast<std::uint64_t>(std::int64_t{row.offset});
    if (row.frame_steps > 0 && !steps(row_steps.first(row.frame_steps), 0, frame))
      return false;
    std::uint64_t next[kRegisters];
    std::memcpy(next, values_, sizeof next);
    for (std::size_t r = 0; r < kRegisters; ++r) {
      const Row::Saved& saved = row.saved[r];
      if (saved.at == At::kSame)
        continue;
      // Its value, or where that is in memory.
      std::uint64_t result = frame + static_cast<std::uint64_t>(std::int64_t{saved.offset});
      bool is_known = saved.at == At::kFrame;
      if (saved.at == At::kAddress || saved.at == At::kValue) {
        const auto first = static_cast<std::size_t>(saved.offset);
        is_known = steps(row_steps.subspan(first, saved.count), frame, result);
      }
      if (is_known && saved.at == At::kValue)
        next[r] = result;
      else if (!is_known || !load(result, next[r])) {
        if (r == kRip)
          return false;
        // Below the stack pointer: an epilogue has taken it back. Else no frame is found by what is
        // unknown.
        if (!is_known || result >= values_[kRsp])
          next[r] = kUnknownRegister;
      }
    }
    if (row.saved[kRsp].at == At::kSame)
      next[kRsp] = frame;
    std::memcpy(values_, next, sizeof next);
    return true;
  }

  const Space& space_;
  std::span<const std::byte> stack_;
  std::uint64_t low_;
  bool pointed_ = false, sought_ = false;
  std::uint64_t values_[kRegisters];
};

}  // namespace

void unwind(const Space& space, const Sample& sample, Unwound& out) {
  out.addresses.clear();
  out.registers.clear();
  out.cut = out.guessed = false;
  std::size_t next = 0;  // of the kernel's chain by frame pointers
  if (sample.registers) {
    Walk walk(space, sample);
    walk.run(out);
    if (!out.cut)
      return;
    // Frame pointers lead further than the copy of the stack: from the frame where it ended, if it
    // has one.
    if (!out.addresses.empty() && !walk.pointed())
      return;
    if (!out.addresses.empty()) {
      while (next < sample.chain.size() && address_in(sample.chain, next) != out.addresses.back())
        ++next;
      ++next;
    }
  }
  out.cut = out.guessed = true;
  for (; next < sample.chain.size() && out.addresses.size() < wire::cpu::kMostDepth; ++next) {
    const std::uint64_t address = address_in(sample.chain, next);
    const Place place = place_of(space, address);
    if (place.module == nullptr)
      return;
    out.addresses.push_back(address);
    Tables* tables = place.module->tables();
    if (tables != nullptr && tables->row(place.address).kind == Row::Kind::kOutermost)
      out.cut = false;
  }
}

}  // namespace rangescope::sample::cpu
