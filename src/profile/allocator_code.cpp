#include "profile/allocator_code.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "sample/cpu/target.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTable = 64u << 20;

/// A file of another process, of which no more is read than is asked for.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    struct stat status {};
    if (file_ >= 0 && (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode))) {
      ::close(file_);
      file_ = -1;
    }
    const std::optional<Elf64_Ehdr> head = read_one<Elf64_Ehdr>(0);
    if (head && std::memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
        head->e_ident[EI_CLASS] == ELFCLASS64)
      head_ = *head;
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile() {
    if (file_ >= 0) ::close(file_);
  }

  /// Of the segment that holds the code: its address, less where it lies in the file.
  [[nodiscard]] std::optional<std::uint64_t> code_address_less_offset() const {
    for (unsigned index = 0; index < head_.e_phnum; ++index) {
      const auto segment = read_one<Elf64_Phdr>(head_.e_phoff + index * sizeof(Elf64_Phdr));
      if (!segment) break;
      if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0)
        return segment->p_vaddr - segment->p_offset;
    }
    return std::nullopt;
  }

  /// visit(name, symbol), of each that the file defines for others.
  template <class Visit>
  void each_symbol(const Visit& visit) const {
    for (unsigned index = 0; index < head_.e_shnum; ++index) {
      const auto table = section(index);
      if (!table || table->sh_type != SHT_DYNSYM) continue;
      const auto strings = section(table->sh_link);
      if (!strings) continue;
      const std::string symbols = read(table->sh_offset, table->sh_size);
      const std::string names = read(strings->sh_offset, strings->sh_size);
      const std::size_t count = symbols.size() / sizeof(Elf64_Sym);
      for (std::size_t number = 0; number < count; ++number) {
        Elf64_Sym symbol{};
        std::memcpy(&symbol, symbols.data() + number * sizeof symbol, sizeof symbol);
        const bool is_defined = symbol.st_shndx != SHN_UNDEF && symbol.st_name < names.size();
        if (is_defined) visit(std::string_view(names.c_str() + symbol.st_name), symbol);
      }
    }
  }

 private:
  template <class T>
  [[nodiscard]] std::optional<T> read_one(std::uint64_t offset) const {
    T value{};
    const bool is_read =
        ::pread(file_, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value;
    return is_read ? std::optional(value) : std::nullopt;
  }
  [[nodiscard]] std::optional<Elf64_Shdr> section(unsigned index) const {
    return read_one<Elf64_Shdr>(head_.e_shoff + index * sizeof(Elf64_Shdr));
  }
  /// "" where it is too large, or not all there.
  [[nodiscard]] std::string read(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes > kMostTable) return {};
    std::string text(bytes, '\0');
    const ssize_t read = ::pread(file_, text.data(), text.size(), static_cast<off_t>(offset));
    if (read != static_cast<ssize_t>(bytes)) return {};
    return text;
  }

  int file_ = -1;
  Elf64_Ehdr head_{};
};

/// malloc() and its like, and the operators of C++.
bool allocates(std::string_view function) {
  constexpr std::string_view kFunctions[] = {
      "malloc",         "calloc",        "realloc",  "reallocarray", "free",
      "posix_memalign", "aligned_alloc", "memalign", "valloc",       "pvalloc"};
  constexpr std::string_view kOperators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};
  return std::ranges::find(kFunctions, function) != std::end(kFunctions) ||
         std::ranges::any_of(kOperators, [&](std::string_view operator_name) {
           return function.starts_with(operator_name);
         });
}

/// C++'s operators call malloc(), and libc's takes its locks with calls that are not begun again.
bool is_of_system(std::string_view path) {
  const std::string_view file = base::file_name(path);
  return file.starts_with("libc.so.") || file.starts_with("libc-2.") ||
         file.starts_with("ld-linux") || file.starts_with("ld-2.") ||
         file.starts_with("libstdc++.so");
}

}  // namespace

std::vector<CodeRange> allocator_code_of(std::uint32_t pid) {
  const std::string process = "/proc/" + std::to_string(pid) + "/";
  std::error_code error;
  const std::string executable = fs::read_symlink(process + "exe", error).string();
  std::vector<CodeRange> code;
  sample::cpu::maps_of(pid, [&](const sample::cpu::Mapped& mapped) {
    const std::string path(mapped.path);
    if (!path.starts_with('/') || path.starts_with("//") || is_of_system(path)) return;
    const ElfFile file(process + "root" + path);
    const auto address_less_offset = file.code_address_less_offset();
    if (!address_less_offset) return;
    const std::uint64_t bias = mapped.start - mapped.offset - *address_less_offset;
    std::vector<CodeRange> functions;
    bool has_malloc = false;
    file.each_symbol([&](std::string_view name, const Elf64_Sym& symbol) {
      if (!allocates(name)) return;
      has_malloc = has_malloc || name == "malloc";
      const std::uint64_t begin = bias + symbol.st_value;
      functions.push_back({begin, begin + std::max<std::uint64_t>(1, symbol.st_size)});
    });
    if (!has_malloc) return;
    if (path == executable)
      code.insert(code.end(), functions.begin(), functions.end());
    else
      code.push_back({mapped.start, mapped.start + mapped.length});
  });
  std::ranges::sort(code, {}, &CodeRange::begin);
  return code;
}

bool is_in(const std::vector<CodeRange>& code, std::uint64_t address) {
  return std::ranges::any_of(
      code, [&](const CodeRange& range) { return address >= range.begin && address < range.end; });
}

}  // namespace rangescope::profile
