#include <gtest/gtest.h>

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "sample/cpu/counters.hpp"
#include "sample/cpu/names.hpp"
#include "sample/cpu/perf.hpp"
#include "sample/cpu/sampler.hpp"
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

TEST(PythonFrames, OfAThreadThatOnlyRanOnMayBeReadLater) {
  const auto in_time = [](bool stayed, std::int64_t preempted_ns, std::int64_t now_ns) {
    Sample sample;
    sample.at_ns = 1'000'000;
    sample.stayed = stayed;
    sample.preempted_ns = preempted_ns;
    return is_in_time(sample, now_ns);
  };
  EXPECT_TRUE(in_time(false, -1, 1'090'000));
  EXPECT_FALSE(in_time(false, -1, 1'200'000));
  EXPECT_TRUE(in_time(true, -1, 1'200'000));
  EXPECT_FALSE(in_time(true, -1, 1'600'000));
  EXPECT_FALSE(
      in_time(false, 1'190'000, 1'200'000));         // not seen to stay: switches were not watched
  EXPECT_TRUE(in_time(true, 1'020'000, 9'000'000));  // it is where it was
}

TEST(Counters, NamesAsPerfHasThem) {
  EXPECT_EQ(counter_event("page-faults")->period, 1u);
  EXPECT_TRUE(counter_event("context-switches")->in_kernel);
  EXPECT_EQ(counter_event("r01c2")->config, 0x1c2u);
  for (const char* name : {"", "r", "rxyz", "page faults", "Cycles"})
    EXPECT_FALSE(counter_event(name)) << name;
  for (const std::string& name : counter_names())
    EXPECT_EQ(counter_event(name)->name, name);
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

// Of a process that had ended when we came to it; in a container its path is not ours.
TEST(Modules, AFileThatCouldNotBeOpenedIsTriedAgainForTheNextProcess) {
  const auto file =
      std::filesystem::temp_directory_path() / ("rangescope-mapped-" + std::to_string(::getpid()));
  const auto pid = static_cast<std::uint32_t>(::getpid());
  Modules modules;
  EXPECT_EQ(modules.find(file.string(), pid + 1).tables(), nullptr);
  std::filesystem::copy_file("/proc/self/exe", file);
  EXPECT_EQ(modules.find(file.string(), pid + 1).tables(), nullptr);
  const bool is_opened = modules.find(file.string(), pid).tables() != nullptr;
  EXPECT_EQ(is_opened, has_tables());
  EXPECT_EQ(modules.all().size(), 1u);
  std::filesystem::remove(file);
}

/// The file that holds a function of this process, and where in it.
struct Here {
  explicit Here(const void* function) {
    Dl_info info{};
    if (::dladdr(function, &info) == 0)
      return;
    module = &modules.find(std::filesystem::canonical(info.dli_fname).string(),
                           static_cast<std::uint32_t>(::getpid()));
    address = reinterpret_cast<std::uintptr_t>(function) -
              reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  }
  Modules modules;
  Module* module = nullptr;
  std::uint64_t address = 0;
};

TEST(Names, AreAskedForOnceABuildId) {
  Here here(reinterpret_cast<const void*>(&::l64a));  // a function that no sanitizer intercepts
  ASSERT_NE(here.module, nullptr);
  Module& libc = *here.module;
  if (libc.tables() == nullptr || libc.opened()->build_id().empty())
    GTEST_SKIP() << "built without libdw";
  const std::uint64_t addresses[] = {here.address};
  const auto cache =
      std::filesystem::temp_directory_path() / ("rangescope-names-" + std::to_string(::getpid()));
  std::size_t unnamed = 0;
  const auto named = names_of_module(libc, addresses, cache, unnamed);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].functions.back().name, "l64a");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(cache), {}), 1);
  const auto kept = std::filesystem::directory_iterator(cache)->path();
  EXPECT_EQ(std::filesystem::status(kept).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(std::filesystem::status(cache).permissions(), std::filesystem::perms(0700));
  auto text = base::read_file(kept);
  ASSERT_TRUE(text);
  ASSERT_TRUE(base::write_file(kept, base::replace_all(*text, "l64a", "from the cache")));
  EXPECT_EQ(names_of_module(libc, addresses, cache, unnamed)[0].functions.back().name,
            "from the cache");
  // Another file that says it had the same build id.
  const auto liar = cache / "liar.so";
  std::filesystem::copy_file(libc.path, liar);
  Module& other = here.modules.find(liar.string(), static_cast<std::uint32_t>(::getpid()));
  ASSERT_NE(other.tables(), nullptr);
  EXPECT_EQ(other.opened()->build_id(), libc.opened()->build_id());
  EXPECT_EQ(names_of_module(other, addresses, cache, unnamed)[0].functions.back().name, "l64a");
  std::filesystem::remove_all(cache);
  EXPECT_EQ(names_of_module(libc, addresses, "", unnamed)[0].functions.back().name, "l64a");
  EXPECT_EQ(unnamed, 0u);
}

/// An ELF file of sections only: what it claims, and little else.
class Claims {
 public:
  explicit Claims(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("rangescope-claims-" + std::to_string(::getpid()))),
        path_(folder_ / name) {
    std::filesystem::create_directories(folder_);
    add("", SHT_NULL, 0, "");
  }
  ~Claims() { std::filesystem::remove_all(folder_); }
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;
  void add(const std::string& name,
           std::uint32_t type,
           std::uint64_t flags,
           std::string_view bytes,
           std::optional<std::uint64_t> claimed = {}) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<std::uint32_t>(names_.size());
    names_ += name + '\0';
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = sizeof(Elf64_Ehdr) + bytes_.size();
    header.sh_size = claimed.value_or(bytes.size());
    header.sh_addralign = 1;
    bytes_ += bytes;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    headers_.push_back(header);
  }
  std::string written() {
    add(".shstrtab", SHT_STRTAB, 0, names_ + ".shstrtab");
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_DYN;
    head.e_machine = EM_X86_64;
    head.e_version = EV_CURRENT;
    head.e_ehsize = sizeof head;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shoff = sizeof head + bytes_.size();
    head.e_shnum = static_cast<std::uint16_t>(headers_.size());
    head.e_shstrndx = static_cast<std::uint16_t>(headers_.size() - 1);
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&head), sizeof head);
    file << bytes_;
    file.write(reinterpret_cast<const char*>(headers_.data()),
               static_cast<std::streamsize>(headers_.size() * sizeof headers_[0]));
    return path_.string();
  }
  [[nodiscard]] std::filesystem::path folder() const { return folder_; }

 private:
  std::filesystem::path folder_, path_;
  std::string names_, bytes_;
  std::vector<Elf64_Shdr> headers_;
};
std::unique_ptr<Tables> opened(const std::string& path) {
  return Tables::open(path, static_cast<std::uint32_t>(::getpid()));
}

TEST(Tables, AFileThatClaimsMuchIsNotBelieved) {
  Claims modest("modest.so");
  modest.add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::string(64, '\x90'));
  if (opened(modest.written()) == nullptr)
    GTEST_SKIP() << "built without libdw";
  const Elf64_Chdr packed{ELFCOMPRESS_ZLIB, 0, 3ull << 29, 1};
  Claims bomb("bomb.so");
  bomb.add(".debug_frame",
           SHT_PROGBITS,
           SHF_COMPRESSED,
           std::string_view(reinterpret_cast<const char*>(&packed), sizeof packed));
  EXPECT_EQ(opened(bomb.written()), nullptr);
  Claims old_bomb("old_bomb.so");
  old_bomb.add(".zdebug_info", SHT_PROGBITS, 0, std::string_view("ZLIB\0\0\0\x60\0\0\0\0", 12));
  EXPECT_EQ(opened(old_bomb.written()), nullptr);
  for (const char* name : {".eh_frame", ".debug_frame"}) {
    Claims sparse("sparse.so");
    sparse.add(name, SHT_PROGBITS, SHF_ALLOC, "", 3ull << 29);
    const std::string path = sparse.written();
    std::filesystem::resize_file(path, 1ull << 32);
    EXPECT_EQ(opened(path), nullptr) << name;
  }
}

TEST(Names, APipeInPlaceOfDebugInformationIsNotOpened) {
  Claims file("linked.so");
  file.add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::string(64, '\x90'));
  file.add(".gnu_debuglink", SHT_PROGBITS, 0, std::string_view("pipe.debug\0\0\1\2\3\4", 16));
  Modules modules;
  Module& module = modules.find(file.written(), static_cast<std::uint32_t>(::getpid()));
  ASSERT_EQ(::mkfifo((file.folder() / "pipe.debug").c_str(), 0600), 0);
  if (module.tables() == nullptr)
    GTEST_SKIP() << "built without libdw";
  const std::uint64_t addresses[] = {0, 16};
  std::size_t unnamed = 0;
  EXPECT_TRUE(names_of_module(module, addresses, "", unnamed).empty());
  EXPECT_EQ(unnamed, 0u);
  EXPECT_EQ(opened((file.folder() / "pipe.debug").string()), nullptr);
}

TEST(Tables, PartsBeginWhereFunctionsDo) {
  Modules modules;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  Tables* tables = modules.find(self, static_cast<std::uint32_t>(::getpid())).tables();
  if (tables == nullptr)
    GTEST_SKIP() << "built without libdw";
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
  if (here.module->tables() == nullptr)
    GTEST_SKIP() << "built without libdw";
  const std::uint64_t addresses[] = {here.address};
  std::size_t unnamed = 0;
  const auto named = names_of_module(*here.module, addresses, "", unnamed);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].functions.back().name, "rd");  // not "double restrict"
}

class PerfMap : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::vector<Named> named(std::string_view text, std::span<const std::uint64_t> addresses) const {
    EXPECT_TRUE(base::write_file(folder / "map", text));
    return names_in_perf_map(folder / "map", addresses);
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rangescope-maps-" + std::to_string(::getpid()));
};

TEST_F(PerfMap, NamesOfJitCode) {
  const std::uint64_t addresses[] = {0x1000, 0x10ff, 0x1100, 0x2004};
  const auto found = named(
      "1000 100 py::forward:/app/model.py\nnonsense\n2000 10 old\n2000 8 LazyCompile:~f app.js:1\n",
      addresses);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].functions[0].name, "forward");
  EXPECT_EQ(found[0].functions[0].file, "/app/model.py");
  EXPECT_EQ(found[1].address, 0x10ffu);
  EXPECT_EQ(found[2].functions[0].name, "LazyCompile:~f app.js:1");
}

TEST_F(PerfMap, LinesMayLieAcrossBlocksAndBeMany) {
  std::string text = "10 8 first\n";
  for (int i = 0; i < 200'000; ++i)
    text += "100000 10 name" + std::to_string(i) + "\n";
  text += "200000 10 " + std::string(3 << 20, 'x') + "\n300000 10 last";
  const std::uint64_t addresses[] = {0x10, 0x100008, 0x200000, 0x300000};
  const auto found = named(text, addresses);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].functions[0].name, "first");
  EXPECT_EQ(found[1].functions[0].name, "name199999");
  EXPECT_LT(found[2].functions[0].name.size(), 64u << 10);  // of 3 MiB
  EXPECT_EQ(found[3].functions[0].name, "last");
}

TEST_F(PerfMap, OfSomebodyElseIsNotBelieved) {
  const std::uint64_t addresses[] = {0x1000};
  const char line[] = "1000 100 f\n";
  ASSERT_EQ(named(line, addresses).size(), 1u);
  std::filesystem::create_symlink(folder / "map", folder / "link");
  EXPECT_TRUE(names_in_perf_map(folder / "link", addresses).empty());
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(names_in_perf_map(folder / "pipe", addresses).empty());
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown((folder / "map").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(names_in_perf_map(folder / "map", addresses).empty());
}

TEST_F(PerfMap, AsJavaWritesIt) {  // -XX:+DumpPerfMapAtExit of OpenJDK 17
  const std::uint64_t addresses[] = {0x7f8d2c4a1010};
  const auto found = named("0x00007f8d2c4a1000 0x40 int Split.red(int)\n", addresses);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].functions[0].name, "int Split.red(int)");
}

TEST(Packer, WhatGoesInComesOut) {
  wire::cpu::Packer packer;
  const std::int64_t numbers[] = {0, 1, -1, 63, -64, 64, INT64_MAX, INT64_MIN};
  for (const std::int64_t number : numbers)
    packer.difference(number);
  packer.number(UINT64_MAX);
  packer.text("name");
  wire::cpu::Unpacker unpacker(packer.bytes());
  for (const std::int64_t number : numbers)
    EXPECT_EQ(unpacker.difference(), number);
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
