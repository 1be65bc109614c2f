#include "sample/cpu/system_calls.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <vector>

namespace rangescope::sample::cpu {
namespace system_calls_test {

using wire::cpu::WaitKind;
using Code = std::vector<unsigned char>;

TEST(SystemCalls, TheNumberStandsBeforeThePlace) {
  // glibc 2.36: clock_nanosleep, read, write after it disabled cancellation.
  EXPECT_EQ(number_in_code(Code{0x41, 0x89, 0xc8, 0xb8, 0xe6, 0, 0, 0, 0x0f, 0x05}), 230);
  EXPECT_EQ(number_in_code(Code{0x74, 0x10, 0x90, 0x90, 0x31, 0xc0, 0x0f, 0x05}), 0);
  EXPECT_EQ(number_in_code(Code{0xb8, 0x01, 0, 0, 0, 0x8b, 0x7c, 0x24, 0x08, 0x0f, 0x05}), 1);
  // syscall(): mov %rdi,%rax ... mov 8(%rsp),%r9
  EXPECT_EQ(number_in_code(Code{0xb8,
                                0x01,
                                0,
                                0,
                                0,
                                0xc3,
                                0x48,
                                0x89,
                                0xf8,
                                0x48,
                                0x89,
                                0xf7,
                                0x4c,
                                0x8b,
                                0x4c,
                                0x24,
                                0x08,
                                0x0f,
                                0x05}),
            -1);
  EXPECT_EQ(number_in_code(Code{0xb8, 0xe6, 0, 0, 0, 0x90, 0x90, 0x90}), -1);  // no system call
  EXPECT_EQ(number_in_code(Code{}), -1);
}

TEST(SystemCalls, WhatWaitsForNoFileSleeps) {
  EXPECT_EQ(kind_of_call({SYS_clock_nanosleep}), WaitKind::kSleep);
  EXPECT_EQ(kind_of_call({SYS_ppoll, 0, 0}), WaitKind::kSleep);
  EXPECT_EQ(kind_of_call({SYS_ppoll, 0, 1}), WaitKind::kIo);
  EXPECT_EQ(kind_of_call({SYS_futex}), WaitKind::kLock);
  EXPECT_EQ(kind_of_call({SYS_fsync}), WaitKind::kIo);
  EXPECT_EQ(kind_of_call({-1}), WaitKind::kOther);
}

}  // namespace system_calls_test
}  // namespace rangescope::sample::cpu
