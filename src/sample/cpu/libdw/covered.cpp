#include "sample/cpu/libdw/covered.hpp"

#include <elfutils/libdw.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace rangescope::sample::cpu {

std::vector<Code> code_of(Elf* elf) {
  std::vector<Code> out;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && (header.sh_flags & SHF_EXECINSTR) != 0)
      out.push_back({header.sh_addr, header.sh_addr + header.sh_size});
  }
  std::sort(out.begin(), out.end(), [](const Code& a, const Code& b) { return a.start < b.start; });
  return out;
}

std::vector<Code> covered_of(Elf* elf) {
  std::vector<Code> out;
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return out;
  Elf_Data* data = nullptr;
  GElf_Shdr header{};
  for (Elf_Scn* section = nullptr; data == nullptr && (section = elf_nextscn(elf, section)) != nullptr;) {
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && std::strcmp(name, ".eh_frame") == 0) data = elf_getdata(section, nullptr);
  }
  if (data == nullptr || data->d_buf == nullptr) return out;
  const std::vector<Code> code = code_of(elf);
  unsigned char identity[EI_NIDENT];
  std::memcpy(identity, elf_getident(elf, nullptr), sizeof identity);
  const auto* bytes = static_cast<const std::uint8_t*>(data->d_buf);
  Dwarf_Off next = 0;
  Dwarf_CFI_Entry entry;
  for (Dwarf_Off at = 0; dwarf_next_cfi(identity, data, true, at, &next, &entry) == 0; at = next) {
    if (dwarf_cfi_cie_p(&entry) || bytes + data->d_size - entry.fde.start < 8) continue;
    std::int32_t from = 0;
    std::uint32_t length = 0;
    std::memcpy(&from, entry.fde.start, sizeof from);
    std::memcpy(&length, entry.fde.start + sizeof from, sizeof length);
    const GElf_Addr start = header.sh_addr + static_cast<std::uint64_t>(std::int64_t{from}) +
                            static_cast<GElf_Addr>(entry.fde.start - bytes);
    const Code* inside = find_code(code, start);
    if (inside != nullptr && inside->end >= start + length) out.push_back({start, start + length});
  }
  std::sort(out.begin(), out.end(), [](const Code& a, const Code& b) { return a.start < b.start; });
  return out;
}

const Code* find_code(const std::vector<Code>& by_begin, GElf_Addr address) {
  const auto after = std::upper_bound(by_begin.begin(), by_begin.end(), address,
                                      [](GElf_Addr value, const Code& code) { return value < code.start; });
  return after == by_begin.begin() || address >= std::prev(after)->end ? nullptr : &*std::prev(after);
}

}  // namespace rangescope::sample::cpu
