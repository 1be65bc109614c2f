#include "base/elf_file.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/temporary_folder.hpp"

namespace rangescope::base {
namespace {

/// A file that says it has a table of symbols of that many bytes.
std::string with_symbols_of(std::uint64_t bytes) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_shnum = 2;
  head.e_shoff = sizeof head;
  Elf64_Shdr symbols{};
  symbols.sh_type = SHT_DYNSYM;
  symbols.sh_size = bytes;
  symbols.sh_link = 1;
  const Elf64_Shdr names{};
  std::string file(sizeof head + 2 * sizeof symbols, '\0');
  std::memcpy(file.data(), &head, sizeof head);
  std::memcpy(file.data() + sizeof head, &symbols, sizeof symbols);
  std::memcpy(file.data() + sizeof head + sizeof symbols, &names, sizeof names);
  return file;
}

TEST(ElfFile, SymbolsAreWhereTheDynamicLinkerFindsThem) {
  void* const function = ::dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  ASSERT_NE(function, nullptr);
  Dl_info place{};
  ASSERT_NE(::dladdr(function, &place), 0);
  const ElfFile libc{std::string(place.dli_fname)};
  const auto value = libc.symbol_value("gnu_get_libc_version");
  ASSERT_TRUE(value.has_value());
  const auto base = reinterpret_cast<std::uintptr_t>(place.dli_fbase);
  EXPECT_EQ(base + *value, reinterpret_cast<std::uintptr_t>(function));
  EXPECT_FALSE(libc.symbol_value("gnu_get_libc_versio").has_value());
  const auto code = libc.code_segment();
  ASSERT_TRUE(code.has_value());
  EXPECT_GE(*value, code->p_vaddr);
  EXPECT_LT(*value, code->p_vaddr + code->p_memsz);
}

TEST(ElfFile, SectionsAndTheLinkerOfThisProgram) {
  const ElfFile own("/proc/self/exe");
  EXPECT_TRUE(own.is_elf());
  EXPECT_FALSE(own.is_static());
  EXPECT_TRUE(own.has_section(".text"));
  EXPECT_FALSE(own.has_section(".tex"));
}

TEST(ElfFile, WhatIsNoElfFileHasNothing) {
  const TemporaryFolder folder("rangescope-elf");
  const std::string text = folder.path() / "text";
  std::ofstream(text) << "no ELF file, but longer than the head of one would have to be, by far";
  for (const std::string& path : {text,
                                  folder.path().string(),
                                  std::string("/dev/zero"),
                                  (folder.path() / "missing").string()}) {
    const ElfFile file(path);
    EXPECT_FALSE(file.is_elf()) << path;
    EXPECT_FALSE(file.is_static()) << path;
    EXPECT_FALSE(file.code_segment().has_value()) << path;
    EXPECT_FALSE(file.symbol_value("malloc").has_value()) << path;
    EXPECT_FALSE(file.has_section(".text")) << path;
  }
}

TEST(ElfFile, ATableThatIsNotAllThereIsNotRead) {
  const TemporaryFolder folder("rangescope-elf");
  for (const std::uint64_t bytes :
       {std::uint64_t{4096}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    const std::string path = folder.path() / "claims";
    std::ofstream(path, std::ios::binary) << with_symbols_of(bytes);
    const ElfFile file(path);
    EXPECT_TRUE(file.is_elf());
    std::size_t symbols = 0;
    file.each_symbol([&](std::string_view, const Elf64_Sym&) { ++symbols; });
    EXPECT_EQ(symbols, 0u) << bytes;
    EXPECT_EQ(file.read(8, bytes), "");
  }
}

}  // namespace
}  // namespace rangescope::base
