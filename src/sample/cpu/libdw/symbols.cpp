#include "sample/cpu/symbols.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/demangle.hpp"
#include "base/elf_file.hpp"
#include "base/owned.hpp"
#include "sample/cpu/libdw/open.hpp"

namespace rangescope::sample::cpu {
namespace {

/// Debug information is looked for on this machine only, never on a server.
class NoServer {
 public:
  NoServer() {
    const char* urls = std::getenv("DEBUGINFOD_URLS");
    if (urls == nullptr)
      return;
    urls_ = urls;
    ::unsetenv("DEBUGINFOD_URLS");
  }
  NoServer& operator=(NoServer&&) = delete;
  ~NoServer() {
    if (!urls_.empty())
      ::setenv("DEBUGINFOD_URLS", urls_.c_str(), 1);
  }

 private:
  std::string urls_;
};

struct Symbol {
  std::uint64_t address, end;
  int index;
  bool global;
};

/// A package's debug information, by build id: the system's. What a file names by itself
/// (.gnu_debuglink) may be a pipe that never answers.
int find_debug_file(Dwfl_Module* module,
                    void**,
                    const char*,
                    Dwarf_Addr,
                    const char*,
                    const char*,
                    GElf_Word,
                    char** name) {
  const unsigned char* id = nullptr;
  GElf_Addr place = 0;
  const int bytes = dwfl_module_build_id(module, &id, &place);
  std::string path = "/usr/lib/debug/.build-id/";
  for (int i = 0; i < bytes; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", id[i]);
    path += digits;
    if (i == 0)
      path += '/';
  }
  if (bytes < 2)
    return -1;
  const int fd = base::open_regular_file(path + ".debug");
  if (fd >= 0)
    *name = ::strdup(path.c_str());
  return fd;
}

class File {
 public:
  File(int file, const std::string& name) : name_(name) {
    static constexpr Dwfl_Callbacks kCallbacks = {
        dwfl_build_id_find_elf, find_debug_file, dwfl_offline_section_address, nullptr};
    std::uint64_t bytes = 0;
    Elf* const first = read_elf(file, bytes);
    elf_end(first);
    if (first == nullptr)
      return;
    dwfl_.reset(dwfl_begin(&kCallbacks));
    if (!dwfl_)
      return;
    dwfl_report_begin(dwfl_.get());
    const int duplicate = ::fcntl(file, F_DUPFD_CLOEXEC, 0);  // libdw's from here on
    module_ = dwfl_report_offline(dwfl_.get(), name.c_str(), name.c_str(), duplicate);
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    if (module_ == nullptr) {
      ::close(duplicate);
      return;
    }
    GElf_Addr bias = 0;
    elf_ = dwfl_module_getelf(module_, &bias);
    if (elf_ == nullptr) {
      module_ = nullptr;
      return;
    }
    bias_ = bias;
    read_symbols();
    code_ = code_of(elf_);
  }

  [[nodiscard]] std::vector<Function> functions(std::uint64_t address) {
    std::vector<Function> out;
    if (module_ == nullptr)
      return out;
    const GElf_Addr biased = address + bias_;
    const std::string outer = name_of_symbol(biased);
    Dwarf_Addr bias = 0;
    if (Dwarf_Die* unit = dwfl_module_addrdie(module_, biased, &bias))
      scopes(*unit, biased - bias, out);
    if (out.empty() && !outer.empty())
      out.push_back({outer});
    if (!out.empty() && !outer.empty())
      out.front().name = outer;
    if (!out.empty())
      return out;
    if (!covered_)
      covered_ = covered_of(elf_);
    const Code* covered = find_code(*covered_, address);
    if (covered == nullptr)
      return out;
    char text[32];
    std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(covered->start));
    out.push_back({name_ + text});
    return out;
  }

 private:
  void read_symbols() {
    const int count = dwfl_module_getsymtab(module_);
    for (int i = 1; i < count; ++i) {
      GElf_Sym sym;
      GElf_Addr value = 0;
      const char* name =
          dwfl_module_getsym_info(module_, i, &sym, &value, nullptr, nullptr, nullptr);
      const auto type = GELF_ST_TYPE(sym.st_info);
      if (name == nullptr || *name == '\0' || sym.st_shndx == SHN_UNDEF || value == 0)
        continue;
      if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
        continue;
      if (type == STT_NOTYPE && sym.st_size == 0 && name[0] == '.')
        continue;
      symbols_.push_back({value, value + sym.st_size, i, GELF_ST_BIND(sym.st_info) == STB_GLOBAL});
    }
    // Of several names of one place the largest function, then a global one, stands last.
    std::ranges::sort(symbols_, [](const Symbol& a, const Symbol& b) {
      if (a.address != b.address)
        return a.address < b.address;
      if (a.end != b.end)
        return a.end < b.end;
      if (a.global != b.global)
        return !a.global;
      return a.index > b.index;
    });
  }

  /// Demangled, without version; "" where no symbol holds the address.
  [[nodiscard]] std::string name_of_symbol(GElf_Addr biased) const {
    const Symbol* symbol = symbol_at(biased);
    if (symbol == nullptr)
      return {};
    GElf_Sym sym;
    GElf_Addr value = 0;
    const char* name =
        dwfl_module_getsym_info(module_, symbol->index, &sym, &value, nullptr, nullptr, nullptr);
    if (name == nullptr)
      return {};
    return base::demangle({name, std::strcspn(name, "@")});
  }

  [[nodiscard]] const Symbol* symbol_at(std::uint64_t address) const {
    auto found = std::upper_bound(
        symbols_.begin(), symbols_.end(), address, [](std::uint64_t value, const Symbol& symbol) {
          return value < symbol.address;
        });
    for (int back = 0; found != symbols_.begin() && back < 16; ++back) {
      --found;
      // Hand-written assembler may give no size; it does not go on in another section (_init lies
      // before .plt).
      const bool has_no_size = found->end == found->address && back == 0;
      if (address < found->end ||
          (has_no_size && address - found->address < 4096 && address < section_end(found->address)))
        return &*found;
    }
    return nullptr;
  }

  /// Of the section of code that holds an address; 0 where none does.
  [[nodiscard]] GElf_Addr section_end(GElf_Addr biased) const {
    const Code* section = find_code(code_, biased - bias_);
    if (section == nullptr)
      return 0;
    return section->end + bias_;
  }

  static const char* text_of(Dwarf_Die& die, unsigned attribute) {
    Dwarf_Attribute memory;
    return dwarf_formstring(dwarf_attr_integrate(&die, attribute, &memory));
  }

  static int number_of(Dwarf_Die& die, unsigned attribute) {
    Dwarf_Attribute memory;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr(&die, attribute, &memory), &value) != 0)
      return 0;
    return static_cast<int>(value);
  }
  static const char* file_of(Dwarf_Die& unit, int number) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (number <= 0 || dwarf_getsrcfiles(&unit, &files, &count) != 0)
      return nullptr;
    return dwarf_filesrc(files, static_cast<std::size_t>(number), nullptr, nullptr);
  }

  // Functions around an address, the outermost first.
  static void scopes(Dwarf_Die& unit, Dwarf_Addr address, std::vector<Function>& out) {
    // The scopes of an address go on with those of an inlined function's definition; those of the
    // innermost one's entry go on with what it was inlined into.
    Dwarf_Die *inner = nullptr, *found = nullptr;
    if (dwarf_getscopes(&unit, address, &inner) <= 0)
      return;
    const int count = dwarf_getscopes_die(&inner[0], &found);
    std::free(inner);
    int called = 0;  // line of the call of the function before
    const char* called_in = nullptr;
    if (Dwarf_Line* line = dwarf_getsrc_die(&unit, address);
        line != nullptr && dwarf_lineno(line, &called) == 0)
      called_in = dwarf_linesrc(line, nullptr, nullptr);
    for (int i = 0; i < count; ++i) {
      const int tag = dwarf_tag(&found[i]);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
        continue;
      Function function;
      const char* name = text_of(found[i], DW_AT_linkage_name);
      if (name == nullptr)
        name = text_of(found[i], DW_AT_name);
      function.name = name == nullptr ? "(no name)" : base::demangle(name);
      if (const char* file = dwarf_decl_file(&found[i]))
        function.file = file;
      int line = 0;
      if (dwarf_decl_line(&found[i], &line) == 0 && line > 0)
        function.line = static_cast<std::uint32_t>(line);
      if (called > 0 && called_in != nullptr && function.file == called_in)
        function.line_of_address = static_cast<std::uint32_t>(called);
      out.insert(out.begin(), std::move(function));
      if (tag == DW_TAG_subprogram)
        break;
      called = number_of(found[i], DW_AT_call_line);
      called_in = file_of(unit, number_of(found[i], DW_AT_call_file));
    }
    std::free(found);
  }

  std::string name_;
  base::Owned<Dwfl, &dwfl_end> dwfl_;
  Dwfl_Module* module_ = nullptr;
  std::uint64_t bias_ = 0;
  std::vector<Symbol> symbols_;
  Elf* elf_ = nullptr;
  std::vector<Code> code_;
  std::optional<std::vector<Code>> covered_;  ///< read when first asked for
};

}  // namespace

void name_each(int file,
               const std::string& name,
               std::span<const std::uint64_t> addresses,
               const std::function<void(const Named&)>& take) {
  const NoServer no_server;
  File symbols(file, name);
  for (const std::uint64_t address : addresses)
    take({address, symbols.functions(address)});
}

}  // namespace rangescope::sample::cpu
