#include "profile/allocator_code.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/elf_file.hpp"
#include "base/text.hpp"
#include "sample/cpu/target.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

/// malloc() and its like, and the operators of C++.
bool allocates(std::string_view function) {
  constexpr std::string_view kFunctions[] = {"malloc",
                                             "calloc",
                                             "realloc",
                                             "reallocarray",
                                             "free",
                                             "posix_memalign",
                                             "aligned_alloc",
                                             "memalign",
                                             "valloc",
                                             "pvalloc"};
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
    if (!path.starts_with('/') || path.starts_with("//") || is_of_system(path))
      return;
    const base::ElfFile file(process + "root" + path);
    const auto segment = file.code_segment();
    if (!segment)
      return;
    const std::uint64_t bias = mapped.start - mapped.offset + segment->p_offset - segment->p_vaddr;
    std::vector<CodeRange> functions;
    bool has_malloc = false;
    file.each_symbol([&](std::string_view name, const Elf64_Sym& symbol) {
      if (!allocates(name))
        return;
      has_malloc = has_malloc || name == "malloc";
      const std::uint64_t begin = bias + symbol.st_value;
      functions.push_back({begin, begin + std::max<std::uint64_t>(1, symbol.st_size)});
    });
    if (!has_malloc)
      return;
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
