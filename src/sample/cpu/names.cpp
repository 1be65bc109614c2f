#include "sample/cpu/names.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "wire/cpu.hpp"

namespace rangescope::sample::cpu {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostMap = 256u << 20, kMostLine = 64u << 10, kMostCached = 64u << 20;

// A line an address: ADDRESS, then for each function a tab and "LINE\x1fAT\x1fFILE\x1fNAME";
// nothing behind it: no name. Another form has another number.
constexpr int kForm = 2;
constexpr char kBetween = '\x1f';

std::optional<std::uint64_t> hex(std::string_view text) {
  if (text.starts_with("0x"))
    text.remove_prefix(2);  // Java writes it before addresses and sizes
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

std::map<std::uint64_t, std::vector<Function>> read_cache(const fs::path& file) {
  std::map<std::uint64_t, std::vector<Function>> known;
  const auto text = base::read_regular(file, kMostCached);
  if (!text)
    return known;
  for (const std::string_view line : base::split(*text, '\n')) {
    const auto fields = base::split(line, '\t');
    const auto address = hex(fields.front());
    if (!address)
      continue;
    std::vector<Function> functions;
    for (std::size_t i = 1; i < fields.size(); ++i) {
      const auto parts = base::split(fields[i], kBetween);
      if (parts.size() != 4)
        continue;
      const auto number = [&](std::size_t part) {
        return static_cast<std::uint32_t>(base::to_uint(parts[part]).value_or(0));
      };
      functions.push_back({std::string(parts[3]), std::string(parts[2]), number(0), number(1)});
    }
    known[*address] = std::move(functions);
  }
  return known;
}

void write_cache(const fs::path& file,
                 const std::map<std::uint64_t, std::vector<Function>>& known) {
  std::string text;
  for (const auto& [address, functions] : known) {
    char digits[16];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, address, 16).ptr);
    for (const Function& function : functions) {
      if ((function.name + function.file).find_first_of("\t\n\x1f") != std::string::npos)
        continue;
      text += '\t' + std::to_string(function.line) + kBetween + std::to_string(function.at) +
              kBetween + function.file + kBetween + function.name;
    }
    text += '\n';
    if (text.size() > kMostCached)
      return;
  }
  // A cache that cannot be written costs time only. Names tell what was run: only the user may read
  // them.
  std::error_code error;
  if (fs::create_directories(file.parent_path(), error))
    fs::permissions(file.parent_path(), fs::perms::owner_all, error);
  std::string temporary = file.string() + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0)
    return;
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!whole || ::rename(temporary.c_str(), file.c_str()) != 0)
    ::unlink(temporary.c_str());
}

/// What a file is known by: its build id is only what it says of itself, so also which file it is,
/// and as of when. "" for none.
std::string identity(const Tables& tables) {
  struct stat status {};
  const std::string id = tables.build_id();
  if (id.empty() || ::fstat(tables.descriptor(), &status) != 0)
    return {};
  std::string text = std::to_string(kForm) + ' ' + id;
  for (const auto number : {static_cast<std::int64_t>(status.st_dev),
                            static_cast<std::int64_t>(status.st_ino),
                            std::int64_t{status.st_size},
                            std::int64_t{status.st_mtim.tv_sec},
                            std::int64_t{status.st_mtim.tv_nsec},
                            std::int64_t{status.st_ctim.tv_sec},
                            std::int64_t{status.st_ctim.tv_nsec}})
    text += ' ' + std::to_string(number);
  return base::sha256(text).substr(0, 40);
}

/// Calls `line` for each line of a file, the last one first, until it answers false. Lines are cut
/// at kMostLine.
void lines_backwards(int fd,
                     std::uint64_t from,
                     std::uint64_t size,
                     const std::function<bool(std::string_view)>& line) {
  constexpr std::uint64_t kBlock = 1 << 20;
  std::string tail;  // of a line whose begin is not read yet
  for (std::uint64_t end = size; end > from;) {
    const std::uint64_t begin = end - std::min(kBlock, end - from);
    std::string block(end - begin, '\0');
    const ssize_t read = ::pread(fd, block.data(), block.size(), static_cast<off_t>(begin));
    if (read != static_cast<ssize_t>(block.size()))
      return;
    block += tail;
    std::string_view left = block;
    for (std::size_t at = left.rfind('\n'); at != std::string_view::npos; at = left.rfind('\n')) {
      if (!line(left.substr(at + 1, kMostLine)))
        return;
      left = left.substr(0, at);
    }
    tail = left.substr(0, kMostLine);
    end = begin;
  }
  if (from == 0)
    line(tail);
}

}  // namespace

// The newest line that holds an address is met first, and the address is done: `next` leads past
// those that are (union-find with path halving), so that a line costs its place in the addresses,
// O(log n).
std::vector<Named> names_in_perf_map(const fs::path& file,
                                     std::span<const std::uint64_t> addresses) {
  std::vector<Named> out;
  struct stat status {};
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
  if (fd < 0)
    return out;
  const bool ours = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                    (status.st_uid == 0 || status.st_uid == ::geteuid());
  std::vector<std::size_t> next(addresses.size() + 1);
  std::iota(next.begin(), next.end(), std::size_t{0});
  const auto first_from = [&](std::size_t at) {
    while (next[at] != at)
      at = next[at] = next[next[at]];
    return at;
  };
  const auto size = ours ? static_cast<std::uint64_t>(status.st_size) : 0;
  std::size_t left = addresses.size();
  lines_backwards(
      fd, size - std::min<std::uint64_t>(size, kMostMap), size, [&](std::string_view line) {
        const auto first = line.find(' '), second = line.find(' ', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos)
          return true;
        const auto start = hex(line.substr(0, first)),
                   bytes = hex(line.substr(first + 1, second - first - 1));
        if (!start || !bytes)
          return true;
        const auto begin = std::lower_bound(addresses.begin(), addresses.end(), *start);
        for (auto at = first_from(static_cast<std::size_t>(begin - addresses.begin()));
             at < addresses.size() && addresses[at] - *start < *bytes;
             at = first_from(at)) {
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
  std::ranges::sort(out, {}, &Named::address);
  return out;
}

// An address belongs to the last symbol at or before it: symbols are put to the first address
// behind them, the last of each wins, and names the addresses that follow too.
std::vector<Named> names_in_kallsyms(const fs::path& file,
                                     std::span<const std::uint64_t> addresses) {
  std::vector<std::pair<std::uint64_t, std::string>> best(addresses.size());
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto parts = base::split(line, ' ');
    const auto start = hex(parts.front());
    if (!start || *start == 0 || parts.size() < 3 ||
        parts[1].find_first_of("tTwW") == std::string_view::npos)
      continue;
    const auto at =
        std::lower_bound(addresses.begin(), addresses.end(), *start) - addresses.begin();
    if (at == std::ssize(addresses))
      continue;
    auto& known = best[static_cast<std::size_t>(at)];
    if (*start > known.first)
      known = {*start, std::string(parts[2].substr(0, parts[2].find('\t')))};
  }
  std::vector<Named> out;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (i > 0 && best[i - 1].first > best[i].first)
      best[i] = best[i - 1];
    if (best[i].first != 0)
      out.push_back({addresses[i], {{best[i].second}}});
  }
  return out;
}

bool kernel_has_names() {
  std::ifstream in("/proc/kallsyms");
  std::string line;
  const bool any = static_cast<bool>(std::getline(in, line));
  return any && hex(std::string_view(line).substr(0, line.find(' '))).value_or(0) != 0;
}

std::vector<Named> names_of_module(const Module& module,
                                   std::span<const std::uint64_t> addresses,
                                   const fs::path& cache,
                                   std::size_t& unnamed) {
  unnamed = 0;
  if (module.path == "[vdso]") {
    std::vector<Named> out;
    for (const std::uint64_t address : addresses)
      out.push_back({address, {{"[vdso]"}}});
    return out;
  }
  if (module.path == kKernel)
    return names_in_kallsyms("/proc/kallsyms", addresses);
  if (!module.file())
    return names_in_perf_map("/tmp/perf-" + std::to_string(module.pid) + ".map", addresses);
  if (module.opened() == nullptr)
    return {};
  const int opened = module.opened()->descriptor();
  const std::string name = fs::path(module.path).filename().string();
  const std::string id = cache.empty() ? "" : identity(*module.opened());
  if (id.empty())
    return names_aside(opened, name, addresses, unnamed);
  const fs::path file = cache / id;
  auto known = read_cache(file);
  std::vector<std::uint64_t> unknown;
  for (const std::uint64_t address : addresses)
    if (!known.contains(address))
      unknown.push_back(address);
  if (!unknown.empty()) {
    for (const std::uint64_t address : unknown)
      known[address];  // asked, whatever the answer
    for (Named& named : names_aside(opened, name, unknown, unnamed))
      known[named.address] = std::move(named.functions);
    if (unnamed == 0)
      write_cache(file, known);
  }
  std::vector<Named> out;
  for (const std::uint64_t address : addresses)
    if (auto& functions = known[address]; !functions.empty())
      out.push_back({address, functions});
  return out;
}

namespace {

constexpr int kMostChildren = 4;
constexpr std::uint64_t kMostFile = 8ull << 30;
constexpr std::uint32_t kMostAnswer = 16 << 20;

void limit(int what, std::uint64_t most) {
  rlimit before{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(what), &before) != 0)
    return;
  before.rlim_cur = before.rlim_max = std::min<rlim_t>(most, before.rlim_max);
  (void)::setrlimit(static_cast<__rlimit_resource_t>(what), &before);
}

std::uint64_t own_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  unsigned long pages = 0;
  if (file != nullptr && std::fscanf(file, "%lu", &pages) != 1)
    pages = 0;
  if (file != nullptr)
    std::fclose(file);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// An answer: its length in four bytes, the address, then each function.
[[noreturn]] void answer(int file,
                         int to,
                         const std::string& name,
                         std::span<const std::uint64_t> addresses,
                         const AsideLimits& limits) {
  struct stat status {};
  (void)::fstat(file, &status);
  limit(
      RLIMIT_AS,
      own_bytes() + limits.bytes + std::min(static_cast<std::uint64_t>(status.st_size), kMostFile));
  limit(RLIMIT_CPU, static_cast<std::uint64_t>(limits.cpu_s));
  limit(RLIMIT_CORE, 0);
  name_each(file, name, addresses, [to](const Named& named) {
    wire::cpu::Packer packer;
    packer.number(named.address);
    packer.number(named.functions.size());
    for (const Function& function : named.functions) {
      packer.text(function.name);
      packer.text(function.file);
      packer.number(function.line);
      packer.number(function.at);
    }
    const auto bytes = static_cast<std::uint32_t>(packer.bytes().size());
    std::string whole(sizeof bytes, '\0');
    std::memcpy(whole.data(), &bytes, sizeof bytes);
    whole += packer.bytes();
    if (!base::write_all(to, whole))
      ::_exit(1);
  });
  ::_exit(0);
}

Named named_of(std::string_view bytes) {
  wire::cpu::Unpacker unpacker(bytes);
  Named named;
  named.address = unpacker.number();
  for (std::uint64_t left = unpacker.number(); left > 0 && unpacker.good(); --left) {
    Function function;
    function.name = unpacker.text();
    function.file = unpacker.text();
    function.line = static_cast<std::uint32_t>(unpacker.number());
    function.at = static_cast<std::uint32_t>(unpacker.number());
    if (unpacker.good())
      named.functions.push_back(std::move(function));
  }
  return named;
}

/// Reads answers until the child has given all or is silent for too long.
void hear(int from, const AsideLimits& limits, std::vector<Named>& out) {
  std::string bytes;
  for (;;) {
    pollfd polled{from, POLLIN, 0};
    char block[64 << 10];
    const int ready = ::poll(&polled, 1, limits.silent_s * 1000);
    if (ready < 0 && errno == EINTR)
      continue;
    const ssize_t read = ready <= 0 ? 0 : ::read(from, block, sizeof block);
    if (read < 0 && errno == EINTR)
      continue;
    if (read <= 0)
      return;
    bytes.append(block, static_cast<std::size_t>(read));
    std::size_t at = 0;
    for (std::uint32_t size = 0; bytes.size() - at >= sizeof size; at += sizeof size + size) {
      std::memcpy(&size, bytes.data() + at, sizeof size);
      if (size > kMostAnswer)
        return;
      if (bytes.size() - at - sizeof size < size)
        break;
      out.push_back(named_of(std::string_view(bytes).substr(at + sizeof size, size)));
    }
    bytes.erase(0, at);
  }
}

}  // namespace

std::vector<Named> names_aside(int file,
                               const std::string& name,
                               std::span<const std::uint64_t> addresses,
                               std::size_t& unnamed,
                               const AsideLimits& limits) {
  std::vector<Named> out;
  unnamed = 0;
  for (int child = 0; !addresses.empty(); ++child) {
    int ends[2];
    if (child == kMostChildren || ::pipe2(ends, O_CLOEXEC) != 0)
      break;
    const pid_t pid = ::fork();
    if (pid == 0)
      answer(file, ends[1], name, addresses, limits);
    ::close(ends[1]);
    std::vector<Named> heard;
    if (pid > 0)
      hear(ends[0], limits, heard);
    ::close(ends[0]);
    if (pid < 0)
      break;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    const std::size_t answered = std::min(heard.size(), addresses.size());
    for (Named& named : heard)
      if (!named.functions.empty())
        out.push_back(std::move(named));
    addresses = addresses.subspan(answered);
    if (addresses.empty())
      break;
    addresses = addresses.subspan(1);
    ++unnamed;
  }
  unnamed += addresses.size();
  return out;
}

}  // namespace rangescope::sample::cpu
