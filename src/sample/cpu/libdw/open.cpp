#include "sample/cpu/libdw/open.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rangescope::sample::cpu {
namespace {

/// libelf makes room for all section headers at once. Linked files have few; numbers beyond 65,279 lie elsewhere.
bool has_few_sections(int fd) {
  Elf64_Ehdr header{};
  if (::pread(fd, &header, sizeof header, 0) < static_cast<ssize_t>(sizeof(Elf32_Ehdr))) return false;
  return header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shnum != 0 || header.e_shoff == 0;
}

/// What a compressed section says that it unpacks to; 0 for others.
std::uint64_t unpacked(Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
  GElf_Chdr packed;
  if ((header.sh_flags & SHF_COMPRESSED) != 0) return gelf_getchdr(section, &packed) != nullptr ? packed.ch_size : 0;
  if (!name.starts_with(".zdebug") || header.sh_size < 12) return 0;
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_size < 12) return 0;
  std::uint64_t bytes = 0;  // "ZLIB", then the size, its highest byte first
  for (int i = 4; i < 12; ++i) bytes = bytes << 8 | static_cast<const unsigned char*>(data->d_buf)[i];
  return bytes;
}

std::uint64_t bytes_of_sections(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return 0;
  std::uint64_t bytes = 0;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const bool symbols = header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM || header.sh_type == SHT_STRTAB;
    if (symbols && header.sh_size > kMostSections) return kMostSections + 1;  // before names are read
    const char* text = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = text != nullptr ? text : "";
    const bool frames = name == ".eh_frame" || name == ".debug_frame";
    for (const std::uint64_t more : {frames ? header.sh_size : 0, unpacked(section, header, name)})
      bytes = std::min(bytes + std::min(more, kMostSections + 1), kMostSections + 1);
  }
  return bytes;
}

}  // namespace

int open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (fd < 0 || (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  ::close(fd);
  return -1;
}

Elf* read_elf(int fd, std::uint64_t& bytes) {
  elf_version(EV_CURRENT);
  if (!has_few_sections(fd)) return nullptr;
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  bytes = elf != nullptr && elf_kind(elf) == ELF_K_ELF ? bytes_of_sections(elf) : kMostSections + 1;
  if (bytes <= kMostSections) return elf;
  elf_end(elf);
  return nullptr;
}

}  // namespace rangescope::sample::cpu
