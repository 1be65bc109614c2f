#include "sample/cpu/unwind.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sample/cpu/space.hpp"

#if defined(__x86_64__)
// Places of code, none of which runs, with tables as compilers, linkers and hand-written assembler
// write them.
asm(R"(
  .text
  nop
begin_of_thread:
  .cfi_startproc
  .cfi_undefined rip
  nop
after_call_in_begin:
  nop
  .cfi_endproc

early_return:
  .cfi_startproc
  push %rbx
  .cfi_def_cfa_offset 16
  .cfi_remember_state
  nop
  pop %rbx
  .cfi_def_cfa_offset 8
in_early_return:
  ret
  .cfi_restore_state
behind_early_return:
  nop
  .cfi_endproc

by_memory:                # rsp + 8, deref, plus 8: OpenSSL's code for RSA
  .cfi_startproc
  .cfi_escape 0x0f,5,0x77,8,0x06,0x23,8
  nop
  .cfi_endproc
by_index:                 # rsp + 0, r9 + 0, lit8, mul, plus, deref, plus 8: OpenSSL's modular exponentiation
  .cfi_startproc
  .cfi_escape 0x0f,10,0x77,0,0x79,0,0x38,0x1e,0x22,0x06,0x23,8
  nop
  .cfi_endproc
back_in_register:
  .cfi_startproc
  .cfi_register rip, rcx
  .cfi_def_cfa_offset 0
  nop
  .cfi_endproc

  .balign 16
in_plt:                   # rsp + 8, rip & 15 >= 9, lit3, shl, plus: .plt under -fcf-protection pushes earlier
  .cfi_startproc
  .cfi_escape 0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x39,0x2a,0x33,0x24,0x22
  .skip 9, 0x90
in_plt_behind_push:
  nop
  .cfi_endproc

with_frame_pointer:
  .cfi_startproc
  .cfi_def_cfa rbp, 16
  .cfi_offset rbp, -16
  nop
after_call_with_frame_pointer:
  nop
  .cfi_endproc
register_popped:
  .cfi_startproc
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  nop
  .cfi_def_cfa_offset 8
in_register_popped:
  ret
  .cfi_endproc
  .balign 16
  .skip 16, 0x90
without_tables:
  .skip 16, 0x90
  .section .plt.of_lld, "ax", @progbits
in_plt_without_tables:
  .skip 16, 0x90
  .text
  .balign 16
  .skip 16, 0x90
planted:                  # returned to, never called: what begins a context
  .cfi_startproc
  nop
  .cfi_endproc
)");
extern "C" const char after_call_in_begin[], in_early_return[], behind_early_return[], by_memory[],
    by_index[], back_in_register[], in_plt[], in_plt_behind_push[], after_call_with_frame_pointer[],
    in_register_popped[], without_tables[], planted[], in_plt_without_tables[];

namespace rangescope::sample::cpu {
namespace {

constexpr std::uint64_t kStack = 0x8000;

std::uint64_t address(const char* place) {
  return reinterpret_cast<std::uintptr_t>(place);
}

class Unwinding : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_tables())
      GTEST_SKIP() << "built without libdw";
    char path[4096] = {};
    ASSERT_GT(::readlink("/proc/self/exe", path, sizeof path - 1), 0);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long long start = 0, end = 0, offset = 0;
      if (line.find("r-xp") == std::string::npos || line.find(path) == std::string::npos)
        continue;
      ASSERT_EQ(std::sscanf(line.c_str(), "%llx-%llx r-xp %llx", &start, &end, &offset), 3);
      space_.map(
          {start, end, offset, &modules_.find(path, static_cast<std::uint32_t>(::getpid()))});
    }
  }

  /// Of a thread that stands at a place, with the stack at kStack.
  Unwound from(const char* place,
               const std::vector<std::uint64_t>& stack,
               const std::map<std::size_t, std::uint64_t>& registers = {},
               const std::vector<std::uint64_t>& chain = {}) {
    Sample sample;
    sample.registers = true;
    for (const auto& [number, value] : registers)
      sample.values[number] = value;
    sample.values[kRip] = address(place);
    sample.values[kRsp] = kStack;
    sample.stack = std::as_bytes(std::span(stack));
    sample.chain = chain;
    Unwound out;
    unwind(space_, sample, out);
    return out;
  }
  void expect_begin(const Unwound& found, const char* place) {
    EXPECT_FALSE(found.cut);
    EXPECT_EQ(found.addresses, (std::vector<std::uint64_t>{address(place), begin_ - 1}));
  }

  Modules modules_;
  Space space_;
  const std::uint64_t begin_ = address(after_call_in_begin);
};

TEST_F(Unwinding, ARowBehindAnEarlyReturnIsNotThatOfTheReturn) {
  expect_begin(from(behind_early_return, {7, begin_}), behind_early_return);
  expect_begin(from(in_early_return, {begin_}), in_early_return);
  expect_begin(from(behind_early_return, {7, begin_}), behind_early_return);
}

TEST_F(Unwinding, TheFramesAddressByAnExpression) {
  expect_begin(from(by_memory, {7, kStack + 24, 7, begin_}), by_memory);
  expect_begin(from(by_index, {7, 7, kStack + 32, 7, begin_}, {{9, 2}}), by_index);
  expect_begin(from(in_plt, {begin_}), in_plt);
  expect_begin(from(in_plt_behind_push, {7, begin_}), in_plt_behind_push);
  expect_begin(from(in_plt_without_tables, {begin_}, {{kRbp, 7}}), in_plt_without_tables);
  EXPECT_TRUE(from(by_memory, {7, 0x1000}).cut);
}

TEST_F(Unwinding, TheReturnAddressInARegister) {
  expect_begin(from(back_in_register, {}, {{2, begin_}}), back_in_register);
}

TEST_F(Unwinding, ARegisterThatAnEpilogueHasTakenBack) {
  const std::uint64_t framed = address(after_call_with_frame_pointer);
  const Unwound found = from(in_register_popped, {framed, 7, 7, begin_}, {{kRbp, kStack + 16}});
  EXPECT_FALSE(found.cut);
  EXPECT_EQ(found.addresses,
            (std::vector<std::uint64_t>{address(in_register_popped), framed - 1, begin_ - 1}));
}

TEST_F(Unwinding, AFramePointerThatIsNotKnownIsSought) {
  const std::uint64_t framed = address(after_call_with_frame_pointer);
  // Of the caller 24 bytes, a pointer to code and what an older call left; then its own.
  const Unwound found = from(in_early_return,
                             {framed, begin_, kStack + 64, framed, 7, kStack + 56, begin_},
                             {{kRbp, kUnknownRegister}});
  EXPECT_FALSE(found.cut);
  EXPECT_EQ(found.addresses,
            (std::vector<std::uint64_t>{address(in_early_return), framed - 1, begin_ - 1}));
  EXPECT_TRUE(from(in_early_return, {framed, 7, 7, 7}, {{kRbp, kUnknownRegister}}).cut);
}

TEST_F(Unwinding, WhatBeginsAContextIsNamedByItsFirstByte) {
  const Unwound found = from(in_early_return, {address(planted), 7});
  EXPECT_TRUE(found.cut);
  EXPECT_EQ(found.addresses,
            (std::vector<std::uint64_t>{address(in_early_return), address(planted)}));
}

// Java's main thread: between compiled code and the thread's start are functions of the
// interpreter.
TEST_F(Unwinding, CodeMadeAtRunTimeIsNotPutRightBelowTheThreadsStart) {
  const auto* made_code = reinterpret_cast<const char*>(0x1010);
  space_.map({0x1000, 0x2000, 0, &modules_.find("//anon", 1)});
  const std::uint64_t caller = address(behind_early_return) + 1;
  const Unwound known = from(made_code, {7, caller, 1, caller, 1, begin_});
  EXPECT_FALSE(known.cut);
  EXPECT_TRUE(known.guessed);
  EXPECT_EQ(known.addresses,
            (std::vector<std::uint64_t>{0x1010, caller - 1, caller - 1, begin_ - 1}));
  const Unwound start = from(made_code, {7, caller, 1, begin_});
  EXPECT_TRUE(start.cut);
  EXPECT_EQ(start.addresses, std::vector<std::uint64_t>{0x1010});
}

TEST_F(Unwinding, AFramePointerOfZeroEndsCodeWithoutTables) {
  const std::uint64_t first = address(without_tables) + 1;
  EXPECT_FALSE(from(in_early_return, {first}).cut);
  EXPECT_TRUE(from(without_tables, {first}).cut);  // the innermost one may keep anything there
}

TEST_F(Unwinding, TheKernelsChainGoesOnWhereTheFrameHasAFramePointer) {
  const std::uint64_t framed = address(after_call_with_frame_pointer), beyond = kStack + 0x10000;
  const Unwound found =
      from(in_early_return, {framed}, {{kRbp, beyond}}, {address(in_early_return), framed, begin_});
  EXPECT_FALSE(found.cut);
  EXPECT_EQ(found.addresses,
            (std::vector<std::uint64_t>{address(in_early_return), framed - 1, begin_ - 1}));
  // Elsewhere the register holds anything, and so does what the kernel found by it.
  const Unwound other =
      from(by_memory, {7, 7}, {{kRbp, beyond}}, {address(by_memory), framed, begin_});
  EXPECT_TRUE(other.cut);
  EXPECT_EQ(other.addresses, (std::vector<std::uint64_t>{address(by_memory)}));
}

}  // namespace
}  // namespace rangescope::sample::cpu
#endif
