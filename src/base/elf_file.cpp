#include "base/elf_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace rangescope::base {

int open_regular_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (file < 0 || (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)))
    return file;
  ::close(file);
  return -1;
}

ElfFile::ElfFile(int descriptor) : file_(descriptor) {
  const auto head = read_one<Elf64_Ehdr>(0);
  const bool is_elf_64 = head && std::memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
                         head->e_ident[EI_CLASS] == ELFCLASS64;
  if (is_elf_64)
    head_ = head;
}

ElfFile::~ElfFile() {
  if (file_ >= 0)
    ::close(file_);
}

std::optional<Elf64_Phdr> ElfFile::code_segment() const {
  for (unsigned index = 0; head_ && index < head_->e_phnum; ++index) {
    const auto found = segment(index);
    if (!found)
      break;
    if (found->p_type == PT_LOAD && (found->p_flags & PF_X) != 0)
      return found;
  }
  return std::nullopt;
}

bool ElfFile::is_static() const {
  if (!head_)
    return false;
  for (unsigned index = 0; index < head_->e_phnum; ++index) {
    const auto found = segment(index);
    if (!found || found->p_type == PT_INTERP)
      return false;
  }
  return true;
}

bool ElfFile::has_section(std::string_view name) const {
  if (!head_)
    return false;
  const auto names_section = section(head_->e_shstrndx);
  if (!names_section)
    return false;
  const std::string names = read(names_section->sh_offset, names_section->sh_size);
  for (unsigned index = 0; index < head_->e_shnum; ++index) {
    const auto found = section(index);
    if (!found)
      break;
    if (found->sh_name < names.size() && names.c_str() + found->sh_name == name)
      return true;
  }
  return false;
}

void ElfFile::each_symbol(
    const std::function<void(std::string_view, const Elf64_Sym&)>& visit) const {
  for (unsigned index = 0; head_ && index < head_->e_shnum; ++index) {
    const auto table = section(index);
    if (!table || table->sh_type != SHT_DYNSYM)
      continue;
    const auto strings = section(table->sh_link);
    if (!strings)
      continue;
    const std::string symbols = read(table->sh_offset, table->sh_size);
    const std::string names = read(strings->sh_offset, strings->sh_size);
    const std::size_t count = symbols.size() / sizeof(Elf64_Sym);
    for (std::size_t number = 0; number < count; ++number) {
      Elf64_Sym symbol{};
      std::memcpy(&symbol, symbols.data() + number * sizeof symbol, sizeof symbol);
      const bool is_defined = symbol.st_shndx != SHN_UNDEF && symbol.st_name < names.size();
      if (is_defined)
        visit(names.c_str() + symbol.st_name, symbol);
    }
  }
}

std::optional<std::uint64_t> ElfFile::symbol_value(std::string_view name) const {
  std::optional<std::uint64_t> value;
  each_symbol([&](std::string_view symbol_name, const Elf64_Sym& symbol) {
    if (!value && symbol_name == name)
      value = symbol.st_value;
  });
  return value;
}

std::string ElfFile::read(std::uint64_t offset, std::uint64_t bytes, std::uint64_t limit) const {
  struct stat status {};
  if (bytes > limit || ::fstat(file_, &status) != 0)
    return {};
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > file_bytes || offset > file_bytes - bytes)
    return {};
  std::string text(bytes, '\0');
  const ssize_t count = ::pread(file_, text.data(), text.size(), static_cast<off_t>(offset));
  if (count != static_cast<ssize_t>(bytes))
    return {};
  return text;
}

template <class T>
std::optional<T> ElfFile::read_one(std::uint64_t offset) const {
  T value{};
  const bool is_read =
      ::pread(file_, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value;
  if (!is_read)
    return std::nullopt;
  return value;
}

std::optional<Elf64_Phdr> ElfFile::segment(unsigned index) const {
  return read_one<Elf64_Phdr>(head_->e_phoff + index * sizeof(Elf64_Phdr));
}

std::optional<Elf64_Shdr> ElfFile::section(unsigned index) const {
  return read_one<Elf64_Shdr>(head_->e_shoff + index * sizeof(Elf64_Shdr));
}

}  // namespace rangescope::base
