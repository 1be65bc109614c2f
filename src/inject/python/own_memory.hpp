// Reads this process's own memory without faults, at any address: the kernel copies it
// (process_vm_readv), or was asked once whether the page is readable. Those answers are kept until
// forget(). So use word() only for memory that cannot be unmapped in the meantime, such as frames
// of the calling thread and the objects that they reference, and copy() for everything else.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rangescope::inject::python {

/// A word of memory that the compiler and sanitizers know nothing about.
__attribute__((no_sanitize("address"), no_sanitize("thread"))) inline std::uint64_t load(
    std::uint64_t address) {
  using Word [[gnu::may_alias]] = std::uint64_t;
  return *reinterpret_cast<const Word*>(address);
}

class OwnMemory {
 public:
  explicit OwnMemory(pid_t pid) : pid_(pid) {}

  /// All of it or false. 0.3 us.
  [[nodiscard]] bool copy(std::uint64_t address, void* into, std::size_t bytes) const;
  /// Text up to its zero, cut at `most` - 1 bytes.
  [[nodiscard]] bool text(std::uint64_t address, char* into, std::size_t most) const;
  /// A word at a multiple of 8. 1 ns if its page is known to be readable.
  [[nodiscard]] bool word(std::uint64_t address, std::uint64_t& value) {
    if ((address & 7) != 0)
      return false;
    const std::uint64_t page = address >> 12;
    if (!is_readable(page)) [[unlikely]]
      return false;
    value = load(address);
    return true;
  }
  /// Whether load() can read `bytes`, less than a page, from a multiple of 8 on.
  [[nodiscard]] bool holds(std::uint64_t address, std::size_t bytes) {
    const std::uint64_t first = address >> 12;
    const std::uint64_t last = (address + bytes - 1) >> 12;
    if ((address & 7) != 0 || !is_readable(first))
      return false;
    return last == first || is_readable(last);
  }
  void forget() { std::memset(pages_, 0, sizeof pages_); }

 private:
  static constexpr std::size_t kPages = 1024;
  [[nodiscard]] bool is_readable(std::uint64_t page) {
    return pages_[page & (kPages - 1)] == page + 1 || check(page);
  }
  /// Asks the kernel whether the page can be read, and keeps the answer if it can.
  bool check(std::uint64_t page);

  pid_t pid_;
  /// Numbers of readable pages, plus one (0: none), by their lowest bits.
  std::uint64_t pages_[kPages] = {};
};

}  // namespace rangescope::inject::python
