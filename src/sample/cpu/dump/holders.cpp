#include "sample/cpu/dump/holders.hpp"

#include <fstream>

#include "base/process_memory.hpp"
#include "base/text.hpp"

namespace rangescope::sample::cpu {

std::uint32_t own_number(const std::string& status, std::uint32_t id) {
  std::ifstream file(status);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:"))
      continue;
    const auto words = base::split(line, '\t');
    return static_cast<std::uint32_t>(base::to_uint(words.back()).value_or(id));
  }
  return id;
}

std::uint32_t mutex_owner(std::uint32_t pid, std::uint64_t futex) {
  struct {
    std::int32_t lock;
    std::uint32_t count, owner, users;
    std::int32_t kind;
  } mutex{};  // struct __pthread_mutex_s of glibc on x86-64
  if (!base::read_memory(pid, futex, &mutex, sizeof mutex))
    return 0;
  const bool is_contended = mutex.lock == 2 && mutex.users == 1;
  return is_contended ? mutex.owner : 0;
}

}  // namespace rangescope::sample::cpu
