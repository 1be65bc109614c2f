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
  const char* text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, value, 16);
  if (error != std::errc() || end != text_end)
    return std::nullopt;
  return value;
}

std::map<std::uint64_t, std::vector<Function>> read_cache(const fs::path& file) {
  std::map<std::uint64_t, std::vector<Function>> names;
  const auto text = base::read_regular(file, kMostCached);
  if (!text)
    return names;
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
    names[*address] = std::move(functions);
  }
  return names;
}

void write_cache(const fs::path& file,
                 const std::map<std::uint64_t, std::vector<Function>>& names) {
  std::string text;
  for (const auto& [address, functions] : names) {
    char digits[16];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, address, 16).ptr);
    for (const Function& function : functions) {
      if ((function.name + function.file).find_first_of("\t\n\x1f") != std::string::npos)
        continue;
      text += '\t' + std::to_string(function.line) + kBetween +
              std::to_string(function.line_of_address) + kBetween + function.file + kBetween +
              function.name;
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
  const bool is_written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!is_written || ::rename(temporary.c_str(), file.c_str()) != 0)
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
    for (std::size_t line_break = left.rfind('\n'); line_break != std::string_view::npos;
         line_break = left.rfind('\n')) {
      if (!line(left.substr(line_break + 1, kMostLine)))
        return;
      left = left.substr(0, line_break);
    }
    tail = left.substr(0, kMostLine);
    end = begin;
  }
  if (from == 0)
    line(tail);
}

Function function_of_jit(std::string_view name) {
  Function function{std::string(name)};
  // What CPython's trampoline writes: "py::FUNCTION:FILE".
  if (!function.name.starts_with("py::"))
    return function;
  if (const auto colon = function.name.rfind(':'); colon > 4) {
    function.file = function.name.substr(colon + 1);
    function.name = function.name.substr(4, colon - 4);
  }
  return function;
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
  const auto first_from = [&](std::size_t index) {
    while (next[index] != index)
      index = next[index] = next[next[index]];
    return index;
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
        for (auto index = first_from(static_cast<std::size_t>(begin - addresses.begin()));
             index < addresses.size() && addresses[index] - *start < *bytes;
             index = first_from(index)) {
          out.push_back({addresses[index], {function_of_jit(line.substr(second + 1))}});
          next[index] = index + 1;
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
    const auto index =
        std::lower_bound(addresses.begin(), addresses.end(), *start) - addresses.begin();
    if (index == std::ssize(addresses))
      continue;
    auto& nearest = best[static_cast<std::size_t>(index)];
    if (*start > nearest.first)
      nearest = {*start, std::string(parts[2].substr(0, parts[2].find('\t')))};
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
  std::string id;
  if (!cache.empty())
    id = identity(*module.opened());
  if (id.empty())
    return names_aside(opened, name, addresses, unnamed);
  const fs::path file = cache / id;
  auto names = read_cache(file);
  std::vector<std::uint64_t> not_cached;
  for (const std::uint64_t address : addresses)
    if (!names.contains(address))
      not_cached.push_back(address);
  if (!not_cached.empty()) {
    for (const std::uint64_t address : not_cached)
      names[address];  // asked, whatever the answer
    for (Named& named : names_aside(opened, name, not_cached, unnamed))
      names[named.address] = std::move(named.functions);
    if (unnamed == 0)
      write_cache(file, names);
  }
  std::vector<Named> out;
  for (const std::uint64_t address : addresses)
    if (auto& functions = names[address]; !functions.empty())
      out.push_back({address, functions});
  return out;
}

namespace {

constexpr int kMostChildren = 4;
constexpr std::uint64_t kMostFile = 8ull << 30;
constexpr std::uint32_t kMostAnswer = 16 << 20;

void limit(__rlimit_resource_t resource, std::uint64_t maximum) {
  rlimit limits{};
  if (::getrlimit(resource, &limits) != 0)
    return;
  limits.rlim_cur = limits.rlim_max = std::min<rlim_t>(maximum, limits.rlim_max);
  (void)::setrlimit(resource, &limits);
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
                         int output,
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
  name_each(file, name, addresses, [output](const Named& named) {
    wire::cpu::Packer packer;
    packer.number(named.address);
    packer.number(named.functions.size());
    for (const Function& function : named.functions) {
      packer.text(function.name);
      packer.text(function.file);
      packer.number(function.line);
      packer.number(function.line_of_address);
    }
    const auto bytes = static_cast<std::uint32_t>(packer.bytes().size());
    std::string message(sizeof bytes, '\0');
    std::memcpy(message.data(), &bytes, sizeof bytes);
    message += packer.bytes();
    if (!base::write_all(output, message))
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
    function.line_of_address = static_cast<std::uint32_t>(unpacker.number());
    if (unpacker.good())
      named.functions.push_back(std::move(function));
  }
  return named;
}

/// Reads answers until the child has given all or is silent for too long.
void hear(int input, const AsideLimits& limits, std::vector<Named>& out) {
  std::string bytes;
  for (;;) {
    pollfd polled{input, POLLIN, 0};
    char block[64 << 10];
    const int ready = ::poll(&polled, 1, limits.silent_s * 1000);
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return;
    const ssize_t read = ::read(input, block, sizeof block);
    if (read < 0 && errno == EINTR)
      continue;
    if (read <= 0)
      return;
    bytes.append(block, static_cast<std::size_t>(read));
    std::size_t offset = 0;
    for (std::uint32_t size = 0; bytes.size() - offset >= sizeof size;
         offset += sizeof size + size) {
      std::memcpy(&size, bytes.data() + offset, sizeof size);
      if (size > kMostAnswer)
        return;
      if (bytes.size() - offset - sizeof size < size)
        break;
      out.push_back(named_of(std::string_view(bytes).substr(offset + sizeof size, size)));
    }
    bytes.erase(0, offset);
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
