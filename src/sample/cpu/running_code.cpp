#include "sample/cpu/running_code.hpp"

#include <cstring>
#include <iterator>

namespace rangescope::sample::cpu {
namespace {

/// Registers that a function keeps for its caller (System V ABI, AMD64, 3.2.1), by their number in
/// DWARF: of a loop that has called another function the others are not known.
constexpr std::size_t kKeptForCaller[] = {3, kRbp, 12, 13, 14, 15};

/// The one code that all values which are places of instructions are of.
class OnlyCode {
 public:
  explicit OnlyCode(const Python& python) : python_(python) {}
  void add(std::uint64_t value) {
    const PythonCode* code = python_.code_with(value);
    if (code == nullptr)
      return;
    several_ |= code_ != nullptr && code != code_;
    code_ = code;
  }
  [[nodiscard]] const PythonCode* get() const { return several_ ? nullptr : code_; }

 private:
  const Python& python_;
  const PythonCode* code_ = nullptr;
  bool several_ = false;
};

}  // namespace

RunningCode running_code(const Python& python, const Unwound& unwound, const Sample& sample) {
  RunningCode running;
  if (unwound.cut || unwound.guessed)
    return running;
  std::size_t innermost = 0;
  for (std::size_t i = unwound.addresses.size(); i-- > 0;) {
    if (!python.is_loop(unwound.addresses[i]))
      continue;
    innermost = i;
    ++running.calls;
  }
  if (running.calls == 0 || innermost + 1 >= unwound.registers.size())
    return running;
  const auto& registers = unwound.registers[innermost];
  OnlyCode in_registers(python);
  if (innermost == 0)
    for (std::size_t r = 0; r < kRip; ++r)
      in_registers.add(registers[r]);
  else
    for (const std::size_t r : kKeptForCaller)
      in_registers.add(registers[r]);
  running.code = in_registers.get();
  if (running.code != nullptr)
    return running;
  OnlyCode on_stack(python);
  const std::uint64_t frame_end = unwound.registers[innermost + 1][kRsp];
  for (std::uint64_t address = registers[kRsp]; address < frame_end; address += sizeof address) {
    std::uint64_t value = 0;
    const std::uint64_t offset = address - sample.values[kRsp];
    if (offset > sample.stack.size() || sample.stack.size() - offset < sizeof value)
      break;
    std::memcpy(&value, sample.stack.data() + offset, sizeof value);
    on_stack.add(value);
  }
  running.code = on_stack.get();
  return running;
}

}  // namespace rangescope::sample::cpu
