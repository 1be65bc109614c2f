#include "sample/cpu/libdw/open.hpp"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

namespace rangescope::sample::cpu {

namespace {

/// libelf makes room for all section headers at once. Linked files have few; numbers beyond 65,279
/// lie elsewhere.
bool has_few_sections(int fd) {
  Elf64_Ehdr header{};
  if (::pread(fd, &header, sizeof header, 0) < static_cast<ssize_t>(sizeof(Elf32_Ehdr)))
    return false;
  return header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shnum != 0 || header.e_shoff == 0;
}

/// What a compressed section says that it unpacks to; 0 for others.
std::uint64_t unpacked(Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
  GElf_Chdr packed;
  if ((header.sh_flags & SHF_COMPRESSED) != 0) {
    if (gelf_getchdr(section, &packed) == nullptr)
      return 0;
    return packed.ch_size;
  }
  if (!name.starts_with(".zdebug") || header.sh_size < 12)
    return 0;
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_size < 12)
    return 0;
  std::uint64_t bytes = 0;  // "ZLIB", then the size, its highest byte first
  for (int i = 4; i < 12; ++i)
    bytes = bytes << 8 | static_cast<const unsigned char*>(data->d_buf)[i];
  return bytes;
}

/// At most one more than is read, and without overflow.
std::uint64_t bounded_sum(std::uint64_t bytes, std::uint64_t further) {
  return std::min(bytes + std::min(further, kMostSections + 1), kMostSections + 1);
}

std::uint64_t bytes_of_sections(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0)
    return 0;
  std::uint64_t bytes = 0;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS)
      continue;
    const bool symbols = header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM ||
                         header.sh_type == SHT_STRTAB;
    if (symbols && header.sh_size > kMostSections)
      return kMostSections + 1;  // before names are read
    const char* text = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = text != nullptr ? text : "";
    const bool has_frames = name == ".eh_frame" || name == ".debug_frame";
    if (has_frames)
      bytes = bounded_sum(bytes, header.sh_size);
    bytes = bounded_sum(bytes, unpacked(section, header, name));
  }
  return bytes;
}

}  // namespace

Elf* read_elf(int fd, std::uint64_t& bytes) {
  elf_version(EV_CURRENT);
  if (!has_few_sections(fd))
    return nullptr;
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  bytes = kMostSections + 1;
  if (elf != nullptr && elf_kind(elf) == ELF_K_ELF)
    bytes = bytes_of_sections(elf);
  if (bytes <= kMostSections)
    return elf;
  elf_end(elf);
  return nullptr;
}

std::vector<Code> code_of(Elf* elf) {
  std::vector<Code> out;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && (header.sh_flags & SHF_EXECINSTR) != 0)
      out.push_back({header.sh_addr, header.sh_addr + header.sh_size});
  }
  std::ranges::sort(out, {}, &Code::start);
  return out;
}

std::vector<Code> covered_of(Elf* elf) {
  std::vector<Code> out;
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0)
    return out;
  Elf_Data* data = nullptr;
  GElf_Shdr header{};
  for (Elf_Scn* section = nullptr;
       data == nullptr && (section = elf_nextscn(elf, section)) != nullptr;) {
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS)
      continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && std::strcmp(name, ".eh_frame") == 0)
      data = elf_getdata(section, nullptr);
  }
  if (data == nullptr || data->d_buf == nullptr)
    return out;
  const std::vector<Code> code = code_of(elf);
  unsigned char identity[EI_NIDENT];
  std::memcpy(identity, elf_getident(elf, nullptr), sizeof identity);
  const auto* bytes = static_cast<const std::uint8_t*>(data->d_buf);
  Dwarf_Off next = 0;
  Dwarf_CFI_Entry entry;
  for (Dwarf_Off offset = 0; dwarf_next_cfi(identity, data, true, offset, &next, &entry) == 0;
       offset = next) {
    if (dwarf_cfi_cie_p(&entry) || bytes + data->d_size - entry.fde.start < 8)
      continue;
    std::int32_t distance = 0;  // of the code from this field
    std::uint32_t length = 0;
    std::memcpy(&distance, entry.fde.start, sizeof distance);
    std::memcpy(&length, entry.fde.start + sizeof distance, sizeof length);
    const GElf_Addr start = header.sh_addr + static_cast<std::uint64_t>(std::int64_t{distance}) +
                            static_cast<GElf_Addr>(entry.fde.start - bytes);
    const Code* inside = find_code(code, start);
    if (inside != nullptr && inside->end >= start + length)
      out.push_back({start, start + length});
  }
  std::ranges::sort(out, {}, &Code::start);
  return out;
}

const Code* find_code(const std::vector<Code>& by_begin, GElf_Addr address) {
  const auto after = std::upper_bound(
      by_begin.begin(), by_begin.end(), address, [](GElf_Addr value, const Code& code) {
        return value < code.start;
      });
  if (after == by_begin.begin())
    return nullptr;
  const Code& nearest = *std::prev(after);
  return address < nearest.end ? &nearest : nullptr;
}

}  // namespace rangescope::sample::cpu
