// Unwinding tables as libdw of elfutils reads them.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {
namespace {

// Registers that a frame's caller needs; of a signal's frame all.
constexpr std::size_t kKept[] = {3, kRbp, kRsp, 12, 13, 14, 15, kRip};

/// One step of a DWARF expression that is a register and an offset, perhaps read through: what compilers write.
bool is_register(const Dwarf_Op& op, std::uint8_t& base, std::int32_t& offset) {
  if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg16) {
    base = static_cast<std::uint8_t>(op.atom - DW_OP_breg0);
    offset = static_cast<std::int32_t>(op.number);
    return true;
  }
  if (op.atom != DW_OP_bregx || op.number >= kRegisters) return false;
  base = static_cast<std::uint8_t>(op.number);
  offset = static_cast<std::int32_t>(op.number2);
  return true;
}

Row::Saved saved_of(const Dwarf_Op* ops, std::size_t count) {
  Row::Saved saved;
  saved.at = Row::Saved::At::kUnknown;
  if (count < 1 || count > 2 || ops[0].atom != DW_OP_call_frame_cfa) return saved;
  if (count == 1 || ops[1].atom == DW_OP_plus_uconst) {
    saved.at = Row::Saved::At::kFrame;
    saved.offset = count == 2 ? static_cast<std::int32_t>(ops[1].number) : 0;
  } else if (is_register(ops[1], saved.base, saved.offset)) {  // frames of signals, and those that realign the stack
    saved.at = Row::Saved::At::kRegister;
  }
  return saved;
}

Row row_of(Dwarf_Frame* frame, bool signal) {
  Row row;
  row.signal = signal;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0) return row;
  if (count <= 2 && is_register(ops[0], row.base, row.offset) && (count == 1 || ops[1].atom == DW_OP_deref)) {
    row.deref = count == 2;
    row.kind = Row::Kind::kNormal;
  } else if (count > 4 && ops[0].atom == DW_OP_breg7) {
    row.kind = Row::Kind::kPlt;  // the one expression that linkers write
  } else {
    return row;
  }
  for (std::size_t r = 0; r < kRegisters; ++r) {
    if (!signal && std::find(std::begin(kKept), std::end(kKept), r) == std::end(kKept)) continue;
    Dwarf_Op memory[3];
    if (dwarf_frame_register(frame, static_cast<int>(r), memory, &ops, &count) != 0) continue;
    if (count == 0) {
      if (r == kRip && ops == memory) row.kind = Row::Kind::kOutermost;
      continue;
    }
    if (r == kRsp && !signal) continue;  // the canonical frame address itself
    row.saved[r] = saved_of(ops, count);
  }
  if (row.saved[kRip].at == Row::Saved::At::kSame && row.kind != Row::Kind::kOutermost) row.kind = Row::Kind::kNone;
  return row;
}

class DwTables final : public Tables {
 public:
  DwTables(int fd, Elf* elf) : fd_(fd), elf_(elf), cfi_(dwarf_getcfi_elf(elf)) {
    std::size_t count = 0;
    elf_getphdrnum(elf_, &count);
    for (std::size_t i = 0; i < count && i < 64; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf_, static_cast<int>(i), &header) == nullptr) continue;
      if (header.p_type == PT_LOAD) loads_.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
      if (header.p_type == PT_GNU_EH_FRAME) index_ = {header.p_offset, header.p_filesz, header.p_vaddr};
    }
  }
  DwTables(const DwTables&) = delete;
  DwTables& operator=(const DwTables&) = delete;
  ~DwTables() override {
    if (cfi_ != nullptr) dwarf_cfi_end(cfi_);
    elf_end(elf_);
    if (fd_ >= 0) ::close(fd_);
  }

  const Row& row(std::uint64_t address) override {
    static const Row kNothing;
    if (cfi_ == nullptr) return kNothing;
    auto known = rows_.upper_bound(address);
    if (known != rows_.begin() && address < std::prev(known)->second.end) return std::prev(known)->second.row;
    Dwarf_Frame* frame = nullptr;
    Dwarf_Addr start = address, end = address + 1;
    bool signal = false;
    Row row;
    if (dwarf_cfi_addrframe(cfi_, address, &frame) == 0) {
      dwarf_frame_info(frame, &start, &end, &signal);
      row = row_of(frame, signal);
      std::free(frame);
    }
    if (start > address || end <= address) {
      start = address;
      end = address + 1;
    }
    return rows_.insert_or_assign(start, Known{end, row}).first->second.row;
  }

  [[nodiscard]] std::uint64_t address_of(std::uint64_t offset) const override {
    for (const Load& load : loads_)
      if (offset >= load.offset && offset - load.offset < load.bytes) return offset - load.offset + load.address;
    return offset;
  }

  [[nodiscard]] Symbol symbol(std::string_view name) const override {
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf_, section)) != nullptr) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) continue;
      if (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) continue;
      Elf_Data* data = elf_getdata(section, nullptr);
      for (std::size_t i = 0; data != nullptr && i < header.sh_size / header.sh_entsize; ++i) {
        GElf_Sym symbol;
        if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr || symbol.st_value == 0) continue;
        const char* text = elf_strptr(elf_, header.sh_link, symbol.st_name);
        if (text != nullptr && name == text) return {symbol.st_value, symbol.st_size};
      }
    }
    return {};
  }

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> part(std::uint64_t address) const override {
    // Of the Linux Standard Base, "Exception Frame Header": version and encodings, .eh_frame, count, sorted pairs of a
    // begin and its entry, counted from the header. Of the encodings the one that linkers write.
    constexpr unsigned char kHead[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
                                       DW_EH_PE_datarel | DW_EH_PE_sdata4};
    constexpr std::size_t kPairs = 12, kPair = 8;
    Elf_Data* data = elf_getdata_rawchunk(elf_, static_cast<std::int64_t>(index_.offset), index_.bytes, ELF_T_BYTE);
    if (data == nullptr || data->d_size < kPairs || std::memcmp(data->d_buf, kHead, sizeof kHead) != 0) return {0, 0};
    const auto* bytes = static_cast<const char*>(data->d_buf);
    std::uint32_t count = 0;
    std::memcpy(&count, bytes + kPairs - sizeof count, sizeof count);
    count = static_cast<std::uint32_t>(std::min<std::size_t>(count, (data->d_size - kPairs) / kPair));
    const auto begin = [&](std::uint32_t i) {
      std::int32_t from = 0;
      std::memcpy(&from, bytes + kPairs + i * kPair, sizeof from);
      return index_.address + static_cast<std::uint64_t>(std::int64_t{from});
    };
    std::uint32_t low = 0, high = count;  // the first that begins above the address
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (begin(middle) > address)
        high = middle;
      else
        low = middle + 1;
    }
    if (low == 0 || low == count) return {0, 0};
    return {begin(low - 1), begin(low)};
  }

  [[nodiscard]] std::string reopen() const override { return "/proc/self/fd/" + std::to_string(fd_); }

  [[nodiscard]] std::string build_id() const override {
    std::size_t count = 0;
    elf_getphdrnum(elf_, &count);
    for (std::size_t i = 0; i < count && i < 64; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf_, static_cast<int>(i), &header) == nullptr || header.p_type != PT_NOTE) continue;
      Elf_Data* data = elf_getdata_rawchunk(elf_, static_cast<std::int64_t>(header.p_offset), header.p_filesz,
                                            header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
      if (data == nullptr) continue;
      GElf_Nhdr note;
      std::size_t name = 0, text = 0;
      for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &text)) > 0;) {
        const auto* bytes = static_cast<const unsigned char*>(data->d_buf);
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || std::memcmp(bytes + name, "GNU", 4) != 0 ||
            note.n_descsz > 64)
          continue;
        std::string id;
        for (std::size_t b = 0; b < note.n_descsz; ++b) {
          static constexpr char kDigits[] = "0123456789abcdef";
          id += kDigits[bytes[text + b] >> 4];
          id += kDigits[bytes[text + b] & 15];
        }
        return id;
      }
    }
    return {};
  }

 private:
  struct Load {
    std::uint64_t offset, bytes, address;
  };
  struct Known {
    std::uint64_t end;
    Row row;
  };
  int fd_;
  Elf* elf_;
  Dwarf_CFI* cfi_;
  std::vector<Load> loads_;
  Load index_{};                         ///< .eh_frame_hdr
  std::map<std::uint64_t, Known> rows_;  ///< by start
};

}  // namespace

bool has_tables() {
#if defined(__x86_64__)
  return true;
#else
  return false;  // frame pointers are the rule there
#endif
}

std::unique_ptr<Tables> Tables::open(const std::string& path, std::uint32_t pid) {
  elf_version(EV_CURRENT);
  if (path == "[vdso]") {  // the program runs on our kernel: ours is its
    auto* image = reinterpret_cast<char*>(::getauxval(AT_SYSINFO_EHDR));
    if (image == nullptr) return nullptr;
    Elf* elf = elf_memory(image, 2 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    return elf == nullptr ? nullptr : std::make_unique<DwTables>(-1, elf);
  }
  if (!path.starts_with('/') || path.starts_with("//")) return nullptr;
  int fd = ::open(("/proc/" + std::to_string(pid) + "/root" + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  // Read, not mapped: who shortens the file must not end us.
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) {
    elf_end(elf);
    ::close(fd);
    return nullptr;
  }
  return std::make_unique<DwTables>(fd, elf);
}

}  // namespace rangescope::sample::cpu
