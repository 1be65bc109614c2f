// What a thread waits for, by the system call that it is in.
//
// The registers of a thread that goes to sleep hold the call's arguments, and the place that it
// returns to, but no longer its number: that is in the code before the place (`mov $230, %eax;
// syscall`), where libc, Go's runtime and compilers put it. Where the number comes from elsewhere
// (libc's syscall(), glibc 2.41's cancellable calls, Go's Syscall6) the call path decides: /proc
// gave the number once, while a thread slept there, and it is the same each time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "sample/cpu/perf.hpp"
#include "sample/cpu/space.hpp"
#include "wire/cpu.hpp"

namespace rangescope::sample::cpu {

struct SystemCall {
  static constexpr long kPage = -2;  ///< none: it waits for a page of memory
  long number = -1;
  std::uint64_t first = 0, second = 0;         ///< arguments
  std::uint64_t stack_pointer = 0, place = 0;  ///< where it returns to
};

/// By the system call; one that waits for no file sleeps.
[[nodiscard]] wire::cpu::WaitKind kind_of_call(const SystemCall& call);

/// The number in the code before a place; -1 where it is not there, or no system call is.
[[nodiscard]] long number_in_code(std::span<const unsigned char> code);

/// The system call that a thread sleeps in, as /proc has it; none where it runs again.
[[nodiscard]] std::optional<SystemCall> system_call_of(std::uint32_t pid, std::uint32_t tid);

class SystemCalls {
 public:
  /// What the registers of a thread that left its core say: no value where it was in no system
  /// call. `path` becomes what learn() takes where the number is unknown, else 0.
  [[nodiscard]] std::optional<SystemCall> at(const Space& space,
                                             const Sample& sample,
                                             std::uint64_t& path);
  void learn(std::uint64_t path, long number);

 private:
  static constexpr std::size_t kMost = 100'000;
  static constexpr std::uint64_t kUnlearned =
      1;  ///< a path too short to distinguish calls: /proc is asked each time
  static constexpr long kElsewhere = -2;  ///< the code does not hold it
  std::unordered_map<std::uint64_t, long> places_, paths_;
  Unwound unwound_;
};

}  // namespace rangescope::sample::cpu
