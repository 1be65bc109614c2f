// Unwinding tables as libdw of elfutils reads them.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/elf_file.hpp"
#include "base/process_tree.hpp"
#include "sample/cpu/libdw/open.hpp"
#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {
namespace {

// Registers that a frame's caller needs; of a signal's frame all.
constexpr std::size_t kKept[] = {3, kRbp, kRsp, 12, 13, 14, 15, kRip};

/// Appends the steps of an expression; false, and nothing is appended, where one is not known here.
/// These are all that compilers, linkers and hand-written assembler (OpenSSL's, GnuTLS's,
/// libmvec's) are seen to use.
bool add_steps(const Dwarf_Op* ops, std::size_t count, std::vector<Step>& steps) {
  using Op = Step::Op;
  const std::size_t before = steps.size();
  for (const Dwarf_Op& op : std::span(ops, count)) {
    const auto number = static_cast<std::int64_t>(op.number);
    const auto add = [&](Op what, std::int64_t value = 0, std::size_t base = 0) {
      steps.push_back({what, static_cast<std::uint8_t>(base), value});
    };
    if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) {
      add(Op::kNumber, op.atom - DW_OP_lit0);
      continue;
    }
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg16) {
      add(Op::kRegister, number, op.atom - DW_OP_breg0);
      continue;
    }
    switch (op.atom) {
      case DW_OP_const1u:
      case DW_OP_const1s:
      case DW_OP_const2u:
      case DW_OP_const2s:
      case DW_OP_const4u:
      case DW_OP_const4s:
      case DW_OP_const8u:
      case DW_OP_const8s:
      case DW_OP_constu:
      case DW_OP_consts: add(Op::kNumber, number); continue;
      case DW_OP_bregx:
        if (op.number >= kRegisters)
          break;
        add(Op::kRegister, static_cast<std::int64_t>(op.number2), op.number);
        continue;
      case DW_OP_call_frame_cfa: add(Op::kFrame); continue;
      case DW_OP_plus_uconst:
        add(Op::kNumber, number);
        add(Op::kAdd);
        continue;
      case DW_OP_deref: add(Op::kLoad); continue;
      case DW_OP_drop: add(Op::kDrop); continue;
      case DW_OP_plus: add(Op::kAdd); continue;
      case DW_OP_minus: add(Op::kSubtract); continue;
      case DW_OP_mul: add(Op::kMultiply); continue;
      case DW_OP_and: add(Op::kAnd); continue;
      case DW_OP_shl: add(Op::kShift); continue;
      case DW_OP_ge: add(Op::kNotLess); continue;
      case DW_OP_nop: continue;
      default: break;
    }
    steps.resize(before);
    return false;
  }
  return true;
}

/// Where libdw says a register was saved: the frame's address, then an expression that starts from
/// it.
Row::Saved saved_of(const Dwarf_Op* ops, std::size_t count, std::vector<Step>& steps) {
  using At = Row::Saved::At;
  const bool is_frame = ops[0].atom == DW_OP_call_frame_cfa;
  if (is_frame && count == 1)
    return {At::kFrame, 0, 0};
  if (is_frame && count == 2 && ops[1].atom == DW_OP_plus_uconst)
    return {At::kFrame, 0, static_cast<std::int32_t>(ops[1].number)};
  const std::size_t first = steps.size();
  bool value = ops[count - 1].atom == DW_OP_stack_value;
  if (count == 1 && ops[0].atom == DW_OP_regx &&
      ops[0].number < kRegisters) {  // the register itself, no memory
    steps.push_back({Step::Op::kRegister, static_cast<std::uint8_t>(ops[0].number), 0});
    value = true;
  } else if (!add_steps(ops, value ? count - 1 : count, steps)) {
    return {At::kUnknown};
  }
  if (steps.size() - first > 255)
    return {At::kUnknown};
  return {value ? At::kValue : At::kAddress,
          static_cast<std::uint8_t>(steps.size() - first),
          static_cast<std::int32_t>(first)};
}

Row row_of(Dwarf_Frame* frame, bool signal) {
  Row row;
  row.signal = signal;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0 || !add_steps(ops, count, row.steps))
    return row;
  row.kind = Row::Kind::kNormal;
  row.frame_steps = static_cast<std::uint32_t>(row.steps.size());
  if (const Step first = row.steps.front();
      row.frame_steps == 1 && first.op == Step::Op::kRegister) {
    row.base = first.base;
    row.offset = static_cast<std::int32_t>(first.number);
    row.frame_steps = 0;
    row.steps.clear();
  }
  for (std::size_t r = 0; r < kRegisters; ++r) {
    if (!signal && std::find(std::begin(kKept), std::end(kKept), r) == std::end(kKept))
      continue;
    Dwarf_Op memory[3];
    if (dwarf_frame_register(frame, static_cast<int>(r), memory, &ops, &count) != 0)
      continue;
    if (count == 0) {
      if (r == kRip && ops == memory)
        row.kind = Row::Kind::kOutermost;
      continue;
    }
    if (r == kRsp && count == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
        ops[1].atom == DW_OP_stack_value)
      continue;
    row.saved[r] = saved_of(ops, count, row.steps);
  }
  if (row.saved[kRip].at == Row::Saved::At::kSame && row.kind != Row::Kind::kOutermost)
    row.kind = Row::Kind::kNone;
  return row;
}

/// Of all files together: descriptors, and memory of their sections.
constexpr std::uint64_t kMostFiles = 400, kMostHeld = 1ull << 30;
std::atomic<std::uint64_t> held_files{0}, held_bytes{0};

/// Rows of a file that are found again without libdw; the newer half of them, at least.
constexpr std::size_t kMostRows = 64 << 10;

class DwTables final : public Tables {
 public:
  DwTables(int fd, Elf* elf, std::uint64_t bytes)
      : fd_(fd), elf_(elf), cfi_(dwarf_getcfi_elf(elf)), bytes_(bytes) {
    std::size_t count = 0;
    elf_getphdrnum(elf_, &count);
    for (std::size_t i = 0; i < count && i < 64; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf_, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD)
        loads_.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
    }
  }
  DwTables& operator=(DwTables&&) = delete;
  ~DwTables() override {
    if (cfi_ != nullptr)
      dwarf_cfi_end(cfi_);
    dwarf_end(debug_);
    elf_end(elf_);
    if (fd_ < 0)
      return;
    ::close(fd_);
    held_files -= 1;
    held_bytes -= bytes_;
  }

  const Row& row(std::uint64_t address) override {
    const auto after = rows_.upper_bound(address);
    if (after != rows_.begin() && address < std::prev(after)->second.end)
      return std::prev(after)->second.row;
    Dwarf_Frame* frame = nullptr;
    Dwarf_Addr start = 0, end = 0;
    bool signal = false;
    Row row;
    if ((cfi_ != nullptr && dwarf_cfi_addrframe(cfi_, address, &frame) == 0) ||
        find_elsewhere(address, frame, row)) {
      dwarf_frame_info(frame, &start, &end, &signal);
      row = row_of(frame, signal);
      std::free(frame);
    }
    if (rows_.size() > kMostRows) {
      old_rows_ = std::move(rows_);  // callers may hold some
      rows_.clear();
    }
    // Kept from this address on: behind an epilogue (DW_CFA_restore_state) libdw lets a row begin
    // before it.
    return rows_.insert_or_assign(address, Known{std::max(end, address + 1), std::move(row)})
        .first->second.row;
  }

  [[nodiscard]] std::uint64_t address_of(std::uint64_t offset) const override {
    for (const Load& load : loads_)
      if (offset >= load.offset && offset - load.offset < load.bytes)
        return offset - load.offset + load.address;
    return offset;
  }

  [[nodiscard]] Symbol symbol(std::string_view name) const override {
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf_, section)) != nullptr) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0)
        continue;
      if (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB)
        continue;
      Elf_Data* data = elf_getdata(section, nullptr);
      for (std::size_t i = 0; data != nullptr && i < header.sh_size / header.sh_entsize; ++i) {
        GElf_Sym symbol;
        if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr || symbol.st_value == 0)
          continue;
        const char* text = elf_strptr(elf_, header.sh_link, symbol.st_name);
        if (text != nullptr && name == text)
          return {symbol.st_value, symbol.st_size};
      }
    }
    return {};
  }

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> part(std::uint64_t address) override {
    if (!covered_)
      covered_ = covered_of(elf_);
    const Code* found = find_code(*covered_, address);
    if (found == nullptr)
      return {};
    return {found->start, found->end};
  }

  [[nodiscard]] int descriptor() const override { return fd_; }

  [[nodiscard]] std::string build_id() const override {
    std::size_t count = 0;
    elf_getphdrnum(elf_, &count);
    for (std::size_t i = 0; i < count && i < 64; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf_, static_cast<int>(i), &header) == nullptr || header.p_type != PT_NOTE)
        continue;
      Elf_Data* data = elf_getdata_rawchunk(elf_,
                                            static_cast<std::int64_t>(header.p_offset),
                                            header.p_filesz,
                                            header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
      if (data == nullptr)
        continue;
      GElf_Nhdr note;
      std::size_t name = 0, text = 0;
      for (std::size_t next = 0; (next = gelf_getnote(data, next, &note, &name, &text)) > 0;) {
        const auto* bytes = static_cast<const unsigned char*>(data->d_buf);
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
            std::memcmp(bytes + name, "GNU", 4) != 0 || note.n_descsz > 64)
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
  void read_sections() {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf_, &names) != 0)
      return;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
      GElf_Shdr header;
      const bool is_read = gelf_getshdr(section, &header) != nullptr;
      const char* text = is_read ? elf_strptr(elf_, names, header.sh_name) : nullptr;
      const std::string_view name = text != nullptr ? text : "";
      if (name == ".debug_frame")
        debug_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
      if (name.starts_with(".plt"))
        jumps_.push_back({header.sh_offset, header.sh_size, header.sh_addr});
    }
  }
  /// What no .eh_frame has: code built without it, by .debug_frame; jumps of lld and mold to other
  /// files, which leave the return address on top of the stack.
  [[nodiscard]] bool find_elsewhere(std::uint64_t address, Dwarf_Frame*& frame, Row& row) {
    if (!std::exchange(sections_read_, true))
      read_sections();
    Dwarf_CFI* cfi = nullptr;
    if (debug_ != nullptr)
      cfi = dwarf_getcfi(debug_);
    if (cfi != nullptr && dwarf_cfi_addrframe(cfi, address, &frame) == 0)
      return true;
    for (const Load& jumps : jumps_) {
      if (address < jumps.address || address - jumps.address >= jumps.bytes)
        continue;
      row.kind = Row::Kind::kNormal;
      row.offset = 8;
      row.saved[kRip] = {Row::Saved::At::kFrame, 0, -8};
    }
    return false;
  }

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
  Dwarf* debug_ = nullptr;
  bool sections_read_ = false;
  std::vector<Load> loads_, jumps_;
  std::optional<std::vector<Code>> covered_;        ///< read when first asked for
  std::map<std::uint64_t, Known> rows_, old_rows_;  ///< by start
  std::uint64_t bytes_;
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
    if (image == nullptr)
      return nullptr;
    Elf* elf = elf_memory(image, 2 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    if (elf == nullptr)
      return nullptr;
    return std::make_unique<DwTables>(-1, elf, 0);
  }
  if (!path.starts_with('/') || path.starts_with("//"))
    return nullptr;
  const auto living = base::living_thread(pid);
  int fd = base::open_regular_file("/proc/" + std::to_string(living) + "/root" + path);
  if (fd < 0)
    fd = base::open_regular_file(path);
  if (fd < 0)
    return nullptr;
  std::uint64_t bytes = 0;
  Elf* elf = nullptr;
  if (held_files < kMostFiles)
    elf = read_elf(fd, bytes);
  if (elf == nullptr || held_bytes + bytes > kMostHeld) {
    elf_end(elf);
    ::close(fd);
    return nullptr;
  }
  held_files += 1;
  held_bytes += bytes;
  return std::make_unique<DwTables>(fd, elf, bytes);
}

}  // namespace rangescope::sample::cpu
