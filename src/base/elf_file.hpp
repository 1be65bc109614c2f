// A 64-bit ELF file from elsewhere: another process's executable or library, which may contain
// anything and change while it is read. It is opened without waiting and never mapped, and only
// what is asked for is read.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rangescope::base {

/// A descriptor of a regular file, for reading; -1 for anything else.
[[nodiscard]] int open_regular_file(const std::string& path);

class ElfFile {
 public:
  /// Of tables and names; anything larger reads as empty.
  static constexpr std::size_t kMostTable = 64u << 20;

  explicit ElfFile(const std::string& path) : ElfFile(open_regular_file(path)) {}
  /// Takes the descriptor over; -1: no file.
  explicit ElfFile(int descriptor);
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile();

  /// It could be read and is an ELF file of 64 bits.
  [[nodiscard]] bool is_elf() const { return head_.has_value(); }

  /// The first segment that may be executed.
  [[nodiscard]] std::optional<Elf64_Phdr> code_segment() const;
  /// An executable that asks for no dynamic linker.
  [[nodiscard]] bool is_static() const;
  [[nodiscard]] bool has_section(std::string_view name) const;

  /// Calls `visit` with each symbol that the file defines for others.
  void each_symbol(const std::function<void(std::string_view, const Elf64_Sym&)>& visit) const;
  /// The value of such a symbol: its address before the file is moved to where it is mapped.
  [[nodiscard]] std::optional<std::uint64_t> symbol_value(std::string_view name) const;

  /// "" if it is larger than `limit` or the file ends before it.
  [[nodiscard]] std::string read(std::uint64_t offset,
                                 std::uint64_t bytes,
                                 std::uint64_t limit = kMostTable) const;

 private:
  template <class T>
  [[nodiscard]] std::optional<T> read_one(std::uint64_t offset) const;
  [[nodiscard]] std::optional<Elf64_Phdr> segment(unsigned index) const;
  [[nodiscard]] std::optional<Elf64_Shdr> section(unsigned index) const;

  int file_;
  std::optional<Elf64_Ehdr> head_;
};

}  // namespace rangescope::base
