// Reads of this process's own memory that cannot fault, whatever the address: the kernel copies
// (process_vm_readv), or it was asked once whether the page can be read. What is asked for is kept
// for as long as forget() is not called: use word() for what cannot go away meanwhile, as frames of
// the calling thread and what they hold, and copy() for the rest.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rangescope::inject::python {

/// A word of what is nobody's object here: sanitizers know nothing of it.
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
  /// A word at a multiple of 8. 1 ns where its page is known.
  [[nodiscard]] bool word(std::uint64_t address, std::uint64_t& value) {
    if ((address & 7) != 0) return false;
    const std::uint64_t page = address >> 12;
    if (pages_[page & (kPages - 1)] != page + 1 && !know(page)) [[unlikely]]
      return false;
    value = load(address);
    return true;
  }
  /// Whether so many bytes from a multiple of 8 on, fewer than a page, can be read by load().
  [[nodiscard]] bool holds(std::uint64_t address, std::size_t bytes) {
    const std::uint64_t page = address >> 12, last = (address + bytes - 1) >> 12;
    return (address & 7) == 0 && (pages_[page & (kPages - 1)] == page + 1 || know(page)) &&
           (last == page || pages_[last & (kPages - 1)] == last + 1 || know(last));
  }
  void forget() { std::memset(pages_, 0, sizeof pages_); }

 private:
  static constexpr std::size_t kPages = 1024;
  bool know(std::uint64_t page);
  pid_t pid_;
  std::uint64_t pages_[kPages] = {};  ///< by their lowest bits, and one more: 0 is none
};

}  // namespace rangescope::inject::python
