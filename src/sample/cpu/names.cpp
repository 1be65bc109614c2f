#include "sample/cpu/names.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::sample::cpu {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostMap = 256u << 20, kMostCached = 64u << 20;

// A line an address: ADDRESS, then for each function a tab and "LINE\x1fFILE\x1fNAME"; nothing behind it: no name.
constexpr char kBetween = '\x1f';

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::map<std::uint64_t, std::vector<Function>> read_cache(const fs::path& file) {
  std::map<std::uint64_t, std::vector<Function>> known;
  const auto text = base::read_regular(file, kMostCached);
  if (!text) return known;
  for (const std::string_view line : base::split(*text, '\n')) {
    const auto fields = base::split(line, '\t');
    const auto address = hex(fields.front());
    if (!address) continue;
    std::vector<Function> functions;
    for (std::size_t i = 1; i < fields.size(); ++i) {
      const auto parts = base::split(fields[i], kBetween);
      if (parts.size() != 3) continue;
      functions.push_back({std::string(parts[2]), std::string(parts[1]),
                           static_cast<std::uint32_t>(base::to_uint(parts[0]).value_or(0))});
    }
    known[*address] = std::move(functions);
  }
  return known;
}

void write_cache(const fs::path& file, const std::map<std::uint64_t, std::vector<Function>>& known) {
  std::string text;
  for (const auto& [address, functions] : known) {
    char digits[16];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, address, 16).ptr);
    for (const Function& function : functions) {
      if ((function.name + function.file).find_first_of("\t\n\x1f") != std::string::npos) continue;
      text += '\t' + std::to_string(function.line) + kBetween + function.file + kBetween + function.name;
    }
    text += '\n';
    if (text.size() > kMostCached) return;
  }
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  (void)base::write_file(file, text);  // a cache that cannot be written costs time only
}

}  // namespace

std::vector<Named> names_in_perf_map(std::string_view text, std::span<const std::uint64_t> addresses) {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string_view>> known;  // by start
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto first = line.find(' '), second = line.find(' ', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    std::string_view from = line.substr(0, first);
    if (from.starts_with("0x")) from.remove_prefix(2);
    const auto start = hex(from), size = hex(line.substr(first + 1, second - first - 1));
    if (start && size && *size > 0) known[*start] = {*size, line.substr(second + 1)};
  }
  std::vector<Named> out;
  for (const std::uint64_t address : addresses) {
    auto at = known.upper_bound(address);
    if (at == known.begin()) continue;
    --at;
    if (address - at->first >= at->second.first) continue;
    Function function{std::string(at->second.second)};
    // What CPython's trampoline writes: "py::FUNCTION:FILE".
    if (function.name.starts_with("py::")) {
      if (const auto colon = function.name.rfind(':'); colon > 4) {
        function.file = function.name.substr(colon + 1);
        function.name = function.name.substr(4, colon - 4);
      }
    }
    out.push_back({address, {std::move(function)}});
  }
  return out;
}

std::vector<Named> names_of_module(const Module& module, std::span<const std::uint64_t> addresses,
                                   const fs::path& cache) {
  if (module.path == "[vdso]") {
    std::vector<Named> out;
    for (const std::uint64_t address : addresses) out.push_back({address, {{"[vdso]"}}});
    return out;
  }
  if (!module.file()) {
    const auto map = base::read_regular("/tmp/perf-" + std::to_string(module.pid) + ".map", kMostMap);
    return map ? names_in_perf_map(*map, addresses) : std::vector<Named>{};
  }
  if (module.opened() == nullptr) return {};
  const std::string id = module.opened()->build_id();
  std::error_code error;
  // Where the program has files of its own, in a container, only the file that was opened is the right one.
  const std::string path =
      fs::equivalent(module.path, module.opened()->reopen(), error) ? module.path : module.opened()->reopen();
  if (cache.empty() || id.empty()) return names_of(path, fs::path(module.path).filename().string(), addresses);
  const fs::path file = cache / id;
  auto known = read_cache(file);
  std::vector<std::uint64_t> unknown;
  for (const std::uint64_t address : addresses)
    if (!known.contains(address)) unknown.push_back(address);
  if (!unknown.empty()) {
    for (const std::uint64_t address : unknown) known[address];  // asked, whatever the answer
    for (Named& named : names_of(path, fs::path(module.path).filename().string(), unknown))
      known[named.address] = std::move(named.functions);
    write_cache(file, known);
  }
  std::vector<Named> out;
  for (const std::uint64_t address : addresses)
    if (auto& functions = known[address]; !functions.empty()) out.push_back({address, functions});
  return out;
}

}  // namespace rangescope::sample::cpu
