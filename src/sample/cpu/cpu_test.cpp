#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "sample/cpu/counters.hpp"
#include "sample/cpu/names.hpp"
#include "sample/cpu/perf.hpp"
#include "sample/cpu/space.hpp"
#include "sample/cpu/unwind.hpp"
#include "wire/cpu.hpp"

extern "C" __attribute__((noinline)) void rd() {}

namespace rangescope::sample::cpu {
namespace {

TEST(Refusal, SaysWhatForbidsItAndWhatToChange) {
  const auto paranoid = refusal(EACCES, 4, false);
  EXPECT_EQ(paranoid.code, base::Code::kPermission);
  EXPECT_NE(paranoid.what.find("perf_event_paranoid is 4"), std::string::npos);
  EXPECT_NE(paranoid.hint.find("sysctl"), std::string::npos);
  EXPECT_NE(refusal(EPERM, 2, true).what.find("seccomp"), std::string::npos);
  EXPECT_EQ(refusal(ENOSYS, 2, false).code, base::Code::kToolMissing);
  EXPECT_NE(refusal(EMFILE, 2, false).hint.find("ulimit -n"), std::string::npos);
}

TEST(Counters, NamesAsPerfHasThem) {
  EXPECT_EQ(counter_event("page-faults")->period, 1u);
  EXPECT_TRUE(counter_event("context-switches")->in_kernel);
  EXPECT_EQ(counter_event("r01c2")->config, 0x1c2u);
  for (const char* name : {"", "r", "rxyz", "page faults", "Cycles"}) EXPECT_FALSE(counter_event(name)) << name;
  for (const std::string& name : counter_names()) EXPECT_EQ(counter_event(name)->name, name);
}

TEST(Counters, TurnsAreScaledByTheTimeThatTheyHad) {
  const std::array<CounterReading, 2> clock = {{{0, 0, 600}, {0, 0, 400}}};
  const std::array<CounterReading, 2> half = {{{30, 0, 300}, {20, 0, 200}}};
  EXPECT_EQ(counter_total(half, clock).count, 100u);
  EXPECT_EQ(counter_total(half, clock).running_ns, 500u);
  EXPECT_EQ(counter_total(half, clock).possible_ns, 1000u);
  const std::array<CounterReading, 2> whole = {{{7, 0, 599}, {4, 0, 400}}};
  EXPECT_EQ(counter_total(whole, clock).count, 11u);  // begun a moment later
  EXPECT_EQ(counter_total(std::array<CounterReading, 2>{}, clock).running_ns, 0u);
}

TEST(Space, ANewMappingTakesThePlaceOfWhatWasThere) {
  Modules modules;
  Module &a = modules.find("//a", 1), &b = modules.find("//b", 1);
  Space space;
  space.map({100, 200, 0, &a});
  space.map({140, 160, 7, &b});
  EXPECT_EQ(space.find(139)->module, &a);
  EXPECT_EQ(space.find(140)->module, &b);
  EXPECT_EQ(space.find(160)->module, &a);
  EXPECT_EQ(space.find(160)->offset, 60u);
  EXPECT_EQ(space.find(99), nullptr);
  EXPECT_EQ(space.find(200), nullptr);
  space.map({50, 300, 0, &b});
  EXPECT_EQ(space.areas().size(), 1u);
  EXPECT_EQ(&modules.find("//a", 1), &a);
  EXPECT_NE(&modules.find("//a", 2), &a);  // memory without a file is a process's own
}

/// The file that holds a function of this process, and where in it.
struct Here {
  explicit Here(const void* function) {
    Dl_info info{};
    if (::dladdr(function, &info) == 0) return;
    module = &modules.find(std::filesystem::canonical(info.dli_fname).string(), static_cast<std::uint32_t>(::getpid()));
    address = reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  }
  Modules modules;
  Module* module = nullptr;
  std::uint64_t address = 0;
};

TEST(Names, AreAskedForOnceABuildId) {
  Here here(reinterpret_cast<const void*>(&::l64a));  // a function that no sanitizer intercepts
  ASSERT_NE(here.module, nullptr);
  Module& libc = *here.module;
  if (libc.tables() == nullptr || libc.opened()->build_id().empty()) GTEST_SKIP() << "built without libdw";
  const std::uint64_t addresses[] = {here.address};
  const auto cache = std::filesystem::temp_directory_path() / ("rangescope-names-" + std::to_string(::getpid()));
  const auto named = names_of_module(libc, addresses, cache);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].functions.back().name, "l64a");
  const auto kept = cache / libc.opened()->build_id();
  auto text = base::read_file(kept);
  ASSERT_TRUE(text);
  ASSERT_TRUE(base::write_file(kept, base::replace_all(*text, "l64a", "from the cache")));
  EXPECT_EQ(names_of_module(libc, addresses, cache)[0].functions.back().name, "from the cache");
  std::filesystem::remove_all(cache);
  EXPECT_EQ(names_of_module(libc, addresses, "")[0].functions.back().name, "l64a");
}

TEST(Tables, PartsBeginWhereFunctionsDo) {
  Modules modules;
  Tables* tables = modules.find("/proc/self/exe", static_cast<std::uint32_t>(::getpid())).tables();
  if (tables == nullptr) GTEST_SKIP() << "built without libdw";
  const Tables::Symbol main = tables->symbol("main");
  ASSERT_NE(main.address, 0u);
  EXPECT_EQ(tables->part(main.address).first, main.address);
  EXPECT_EQ(tables->part(main.address + main.size - 1).first, main.address);
  EXPECT_GE(tables->part(main.address).second, main.address + main.size);
  EXPECT_EQ(tables->part(0).first, 0u);
  EXPECT_EQ(tables->part(UINT64_MAX).first, 0u);
}

TEST(Names, OfCAreNotThoseOfTypes) {
  Here here(reinterpret_cast<const void*>(&::rd));
  ASSERT_NE(here.module, nullptr);
  if (here.module->tables() == nullptr) GTEST_SKIP() << "built without libdw";
  const std::uint64_t addresses[] = {here.address};
  const auto named = names_of_module(*here.module, addresses, "");
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].functions.back().name, "rd");  // not "double restrict"
}

TEST(PerfMap, NamesOfJitCode) {
  const std::uint64_t addresses[] = {0x1000, 0x10ff, 0x1100, 0x2004};
  const auto named = names_in_perf_map(
      "1000 100 py::forward:/app/model.py\nnonsense\n2000 10 old\n2000 8 LazyCompile:~f app.js:1\n", addresses);
  ASSERT_EQ(named.size(), 3u);
  EXPECT_EQ(named[0].functions[0].name, "forward");
  EXPECT_EQ(named[0].functions[0].file, "/app/model.py");
  EXPECT_EQ(named[1].address, 0x10ffu);
  EXPECT_EQ(named[2].functions[0].name, "LazyCompile:~f app.js:1");
}

TEST(Packer, WhatGoesInComesOut) {
  wire::cpu::Packer packer;
  const std::int64_t numbers[] = {0, 1, -1, 63, -64, 64, INT64_MAX, INT64_MIN};
  for (const std::int64_t number : numbers) packer.difference(number);
  packer.number(UINT64_MAX);
  packer.text("name");
  wire::cpu::Unpacker unpacker(packer.bytes());
  for (const std::int64_t number : numbers) EXPECT_EQ(unpacker.difference(), number);
  EXPECT_EQ(unpacker.number(), UINT64_MAX);
  EXPECT_EQ(unpacker.text(), "name");
  EXPECT_TRUE(unpacker.good() && unpacker.empty());
  EXPECT_EQ(unpacker.number(), 0u);
  EXPECT_FALSE(unpacker.good());
}

TEST(Unwind, FramePointersWhereThereAreNoTables) {
  Modules modules;
  Space space;
  space.map({0x1000, 0x2000, 0, &modules.find("//jit", 1)});
  const std::uint64_t stack[] = {0, 0x8020, 0x1100, 7, 0x8038, 0x1200, 9, 0, 0};  // from 0x8000
  Sample sample;
  sample.registers = true;
  sample.values[kRip] = 0x1010;
  sample.values[kRsp] = 0x8000;
  sample.values[kRbp] = 0x8008;
  sample.stack = std::as_bytes(std::span(stack));
  Unwound out;
  unwind(space, sample, out);
  EXPECT_EQ(out.addresses, (std::vector<std::uint64_t>{0x1010, 0x10ff, 0x11ff}));
  EXPECT_TRUE(out.cut);  // nothing says that it ends there
}

}  // namespace
}  // namespace rangescope::sample::cpu
