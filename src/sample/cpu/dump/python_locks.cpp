// Which locks of threading the frames of a thread hold.
//
// CPython notes no owner of a Lock. But `with lock:` puts the bound method lock.__exit__ on the
// stack of its frame before it calls lock.__enter__, and takes it off at the end of the block. So a
// frame that has this method on its stack, of a lock with that semaphore, is in the block, or waits
// to get into it.
//
// Above the top of the stack pointers of before may still stand, to memory that was used again. So
// a frame is read as far as its code says that it reaches, and no further; where a lock seems to
// have two holders it has none (dump.cpp).
//
//   PyCFunctionObject: count, type, m_ml -> {name, ...}, m_self, ...
//   lockobject, rlockobject: count, type, lock, ...   a semaphore, whose futex is at its begin
//   PyCodeObject, 3.11 on: ..., co_stacksize, co_firstlineno, co_nlocalsplus, ... (of 4 bytes each)
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "base/process_memory.hpp"
#include "sample/cpu/python.hpp"

namespace rangescope::sample::cpu {
namespace {

/// Of a frame's head, in front of its variables and stack; and of all of it, at most.
constexpr std::size_t kHeadWords = 12, kFrameWords = 512;
constexpr int kFirstWithFrames = 11;  ///< Python 3.11
constexpr std::uint64_t kMostReferences = 1 << 20;
constexpr std::uint64_t kLeastAddress = 0x10000, kMostAddress = 0x7fff'ffff'ffff;

bool may_be_object(std::uint64_t address) {
  return (address & 7) == 0 && address >= kLeastAddress && address <= kMostAddress;
}

template <std::size_t Words>
bool read_words(std::uint32_t pid, std::uint64_t address, std::array<std::uint64_t, Words>& into) {
  return base::read_memory(pid, address, into.data(), sizeof into);
}

/// Is that definition of a method the one of `__exit__`?
bool is_exit(std::uint32_t pid, std::uint64_t definition) {
  constexpr std::string_view kName("__exit__\0", 9);
  std::array<std::uint64_t, 1> name{};
  std::array<std::uint64_t, 2> text{};
  if (!read_words(pid, definition, name) || !read_words(pid, name[0], text))
    return false;
  return std::memcmp(text.data(), kName.data(), kName.size()) == 0;
}

/// The lock whose bound `__exit__` that is; 0 where it is none.
std::uint64_t lock_of_exit(std::uint32_t pid, std::uint64_t method) {
  std::array<std::uint64_t, 4> words{};
  if (!may_be_object(method) || !read_words(pid, method, words))
    return 0;
  const std::uint64_t references = words[0], type = words[1], definition = words[2],
                      self = words[3];
  const bool is_live = references > 0 && references < kMostReferences && may_be_object(type);
  if (!is_live || !may_be_object(definition) || !may_be_object(self))
    return 0;
  std::array<std::uint64_t, 3> object{};
  if (!read_words(pid, self, object))
    return 0;
  const bool is_live_object = object[0] > 0 && object[0] < kMostReferences;
  if (!is_live_object || !is_exit(pid, definition))
    return 0;
  return object[2];
}

}  // namespace

Python::Locks Python::locks_in_frames(std::span<const std::uint64_t> wanted) const {
  Locks found;
  if (minor_ < kFirstWithFrames)
    return found;
  std::array<std::uint64_t, kFrameWords> words{};
  for (const Step& step : steps_) {
    std::array<std::int32_t, 3> code{};  // co_stacksize, co_firstlineno, co_nlocalsplus
    const std::uint64_t numbers = step.code + fields_.line - 4;
    if (!base::read_memory(pid_, numbers, code.data(), sizeof code))
      continue;
    if (code[0] < 0 || code[2] < 0)
      continue;
    const auto reach =
        kHeadWords + static_cast<std::size_t>(code[0]) + static_cast<std::size_t>(code[2]);
    const std::size_t count = std::min(kFrameWords, reach);
    const std::size_t bytes = count * sizeof words[0];
    if (!base::read_memory(pid_, step.frame, words.data(), bytes))
      continue;
    for (const std::uint64_t word : std::span(words).first(count)) {
      const std::uint64_t lock = lock_of_exit(pid_, word);
      if (lock != 0 && std::ranges::find(wanted, lock) != wanted.end())
        found.push_back(lock);
    }
  }
  return found;
}

}  // namespace rangescope::sample::cpu
