#include "sample/cpu/names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "sample/cpu/aside.hpp"

namespace rangescope::sample::cpu {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostMap = 256u << 20, kMostLine = 64u << 10, kMostCached = 64u << 20;

// A line an address: ADDRESS, then for each function a tab and "LINE\x1fAT\x1fFILE\x1fNAME"; nothing behind it: no
// name. Another form has another number.
constexpr int kForm = 2;
constexpr char kBetween = '\x1f';

std::optional<std::uint64_t> hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);  // Java writes it before addresses and sizes
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
      if (parts.size() != 4) continue;
      const auto number = [&](std::size_t part) {
        return static_cast<std::uint32_t>(base::to_uint(parts[part]).value_or(0));
      };
      functions.push_back({std::string(parts[3]), std::string(parts[2]), number(0), number(1)});
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
      text += '\t' + std::to_string(function.line) + kBetween + std::to_string(function.at) + kBetween + function.file +
              kBetween + function.name;
    }
    text += '\n';
    if (text.size() > kMostCached) return;
  }
  // A cache that cannot be written costs time only. Names tell what was run: for nobody else.
  std::error_code error;
  if (fs::create_directories(file.parent_path(), error))
    fs::permissions(file.parent_path(), fs::perms::owner_all, error);
  std::string temporary = file.string() + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return;
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!whole || ::rename(temporary.c_str(), file.c_str()) != 0) ::unlink(temporary.c_str());
}

/// What a file is known by: its build id is only what it says of itself, so also which file it is, and as of when. ""
/// for none.
std::string identity(const Tables& tables) {
  struct stat status {};
  const std::string id = tables.build_id();
  if (id.empty() || ::fstat(tables.descriptor(), &status) != 0) return {};
  std::string text = std::to_string(kForm) + ' ' + id;
  for (const auto number :
       {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
        std::int64_t{status.st_size}, std::int64_t{status.st_mtim.tv_sec}, std::int64_t{status.st_mtim.tv_nsec},
        std::int64_t{status.st_ctim.tv_sec}, std::int64_t{status.st_ctim.tv_nsec}})
    text += ' ' + std::to_string(number);
  return base::sha256(text).substr(0, 40);
}

/// Calls `line` for each line of a file, the last one first, until it answers false. Lines are cut at kMostLine.
void lines_backwards(int fd, std::uint64_t from, std::uint64_t size,
                     const std::function<bool(std::string_view)>& line) {
  constexpr std::uint64_t kBlock = 1 << 20;
  std::string tail;  // of a line whose begin is not read yet
  for (std::uint64_t end = size; end > from;) {
    const std::uint64_t begin = end - std::min(kBlock, end - from);
    std::string block(end - begin, '\0');
    const ssize_t read = ::pread(fd, block.data(), block.size(), static_cast<off_t>(begin));
    if (read != static_cast<ssize_t>(block.size())) return;
    block += tail;
    std::string_view left = block;
    for (std::size_t at = left.rfind('\n'); at != std::string_view::npos; at = left.rfind('\n')) {
      if (!line(left.substr(at + 1, kMostLine))) return;
      left = left.substr(0, at);
    }
    tail = left.substr(0, kMostLine);
    end = begin;
  }
  if (from == 0) line(tail);
}

}  // namespace

// The newest line that holds an address is met first, and the address is done: `next` leads past those that are
// (union-find with path halving), so that a line costs its place in the addresses, O(log n).
std::vector<Named> names_in_perf_map(const fs::path& file, std::span<const std::uint64_t> addresses) {
  std::vector<Named> out;
  struct stat status {};
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
  if (fd < 0) return out;
  const bool ours =
      ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_uid == 0 || status.st_uid == ::geteuid());
  std::vector<std::size_t> next(addresses.size() + 1);
  std::iota(next.begin(), next.end(), std::size_t{0});
  const auto first_from = [&](std::size_t at) {
    while (next[at] != at) at = next[at] = next[next[at]];
    return at;
  };
  const auto size = ours ? static_cast<std::uint64_t>(status.st_size) : 0;
  std::size_t left = addresses.size();
  lines_backwards(fd, size - std::min<std::uint64_t>(size, kMostMap), size, [&](std::string_view line) {
    const auto first = line.find(' '), second = line.find(' ', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return true;
    const auto start = hex(line.substr(0, first)), bytes = hex(line.substr(first + 1, second - first - 1));
    if (!start || !bytes) return true;
    const auto begin = std::lower_bound(addresses.begin(), addresses.end(), *start);
    for (auto at = first_from(static_cast<std::size_t>(begin - addresses.begin()));
         at < addresses.size() && addresses[at] - *start < *bytes; at = first_from(at)) {
      Function function{std::string(line.substr(second + 1))};
      // What CPython's trampoline writes: "py::FUNCTION:FILE".
      if (function.name.starts_with("py::")) {
        if (const auto colon = function.name.rfind(':'); colon > 4) {
          function.file = function.name.substr(colon + 1);
          function.name = function.name.substr(4, colon - 4);
        }
      }
      out.push_back({addresses[at], {std::move(function)}});
      next[at] = at + 1;
      --left;
    }
    return left > 0;
  });
  ::close(fd);
  std::sort(out.begin(), out.end(), [](const Named& a, const Named& b) { return a.address < b.address; });
  return out;
}

// An address belongs to the last symbol at or before it: symbols are put to the first address behind them, the last of
// each wins, and stands for the addresses that follow too.
std::vector<Named> names_in_kallsyms(const fs::path& file, std::span<const std::uint64_t> addresses) {
  std::vector<std::pair<std::uint64_t, std::string>> best(addresses.size());
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto parts = base::split(line, ' ');
    const auto start = hex(parts.front());
    if (!start || *start == 0 || parts.size() < 3 || parts[1].find_first_of("tTwW") == std::string_view::npos) continue;
    const auto at = std::lower_bound(addresses.begin(), addresses.end(), *start) - addresses.begin();
    if (at == std::ssize(addresses)) continue;
    auto& known = best[static_cast<std::size_t>(at)];
    if (*start > known.first) known = {*start, std::string(parts[2].substr(0, parts[2].find('\t')))};
  }
  std::vector<Named> out;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (i > 0 && best[i - 1].first > best[i].first) best[i] = best[i - 1];
    if (best[i].first != 0) out.push_back({addresses[i], {{best[i].second}}});
  }
  return out;
}

bool kernel_has_names() {
  std::ifstream in("/proc/kallsyms");
  std::string line;
  const bool any = static_cast<bool>(std::getline(in, line));
  return any && hex(std::string_view(line).substr(0, line.find(' '))).value_or(0) != 0;
}

std::vector<Named> names_of_module(const Module& module, std::span<const std::uint64_t> addresses,
                                   const fs::path& cache, std::size_t& unnamed) {
  unnamed = 0;
  if (module.path == "[vdso]") {
    std::vector<Named> out;
    for (const std::uint64_t address : addresses) out.push_back({address, {{"[vdso]"}}});
    return out;
  }
  if (module.path == kKernel) return names_in_kallsyms("/proc/kallsyms", addresses);
  if (!module.file()) return names_in_perf_map("/tmp/perf-" + std::to_string(module.pid) + ".map", addresses);
  if (module.opened() == nullptr) return {};
  const int opened = module.opened()->descriptor();
  const std::string name = fs::path(module.path).filename().string();
  const std::string id = cache.empty() ? "" : identity(*module.opened());
  if (id.empty()) return names_aside(opened, name, addresses, unnamed);
  const fs::path file = cache / id;
  auto known = read_cache(file);
  std::vector<std::uint64_t> unknown;
  for (const std::uint64_t address : addresses)
    if (!known.contains(address)) unknown.push_back(address);
  if (!unknown.empty()) {
    for (const std::uint64_t address : unknown) known[address];  // asked, whatever the answer
    for (Named& named : names_aside(opened, name, unknown, unnamed)) known[named.address] = std::move(named.functions);
    if (unnamed == 0) write_cache(file, known);
  }
  std::vector<Named> out;
  for (const std::uint64_t address : addresses)
    if (auto& functions = known[address]; !functions.empty()) out.push_back({address, functions});
  return out;
}

}  // namespace rangescope::sample::cpu
