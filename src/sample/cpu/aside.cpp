#include "sample/cpu/aside.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "wire/cpu.hpp"

namespace rangescope::sample::cpu {
namespace {

constexpr int kMostChildren = 4;
constexpr std::uint64_t kMostFile = 8ull << 30;
constexpr std::uint32_t kMostAnswer = 16 << 20;

void limit(int what, std::uint64_t most) {
  rlimit before{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(what), &before) != 0) return;
  before.rlim_cur = before.rlim_max = std::min<rlim_t>(most, before.rlim_max);
  (void)::setrlimit(static_cast<__rlimit_resource_t>(what), &before);
}

std::uint64_t own_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  unsigned long pages = 0;
  if (file != nullptr && std::fscanf(file, "%lu", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// An answer: its length in four bytes, the address, then each function.
[[noreturn]] void answer(int file, int to, const std::string& name, std::span<const std::uint64_t> addresses,
                         const AsideLimits& limits) {
  struct stat status {};
  (void)::fstat(file, &status);
  limit(RLIMIT_AS, own_bytes() + limits.bytes + std::min(static_cast<std::uint64_t>(status.st_size), kMostFile));
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
    for (std::string_view left = whole; !left.empty();) {
      const ssize_t wrote = ::write(to, left.data(), left.size());
      if (wrote < 0) ::_exit(1);
      left.remove_prefix(static_cast<std::size_t>(wrote));
    }
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
    if (unpacker.good()) named.functions.push_back(std::move(function));
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
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t read = ready <= 0 ? 0 : ::read(from, block, sizeof block);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return;
    bytes.append(block, static_cast<std::size_t>(read));
    std::size_t at = 0;
    for (std::uint32_t size = 0; bytes.size() - at >= sizeof size; at += sizeof size + size) {
      std::memcpy(&size, bytes.data() + at, sizeof size);
      if (size > kMostAnswer) return;
      if (bytes.size() - at - sizeof size < size) break;
      out.push_back(named_of(std::string_view(bytes).substr(at + sizeof size, size)));
    }
    bytes.erase(0, at);
  }
}

}  // namespace

std::vector<Named> names_aside(int file, const std::string& name, std::span<const std::uint64_t> addresses,
                               std::size_t& unnamed, const AsideLimits& limits) {
  std::vector<Named> out;
  unnamed = 0;
  for (int child = 0; !addresses.empty(); ++child) {
    int ends[2];
    if (child == kMostChildren || ::pipe2(ends, O_CLOEXEC) != 0) break;
    const pid_t pid = ::fork();
    if (pid == 0) answer(file, ends[1], name, addresses, limits);
    ::close(ends[1]);
    std::vector<Named> heard;
    if (pid > 0) hear(ends[0], limits, heard);
    ::close(ends[0]);
    if (pid < 0) break;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    const std::size_t answered = std::min(heard.size(), addresses.size());
    for (Named& named : heard)
      if (!named.functions.empty()) out.push_back(std::move(named));
    addresses = addresses.subspan(answered);
    if (addresses.empty()) break;
    addresses = addresses.subspan(1);
    ++unnamed;
  }
  unnamed += addresses.size();
  return out;
}

}  // namespace rangescope::sample::cpu
