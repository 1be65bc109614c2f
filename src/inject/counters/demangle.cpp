#include "inject/counters/demangle.hpp"

#include <csetjmp>
#include <cstring>

// libstdc++'s own, as __cxa_demangle; it has no header.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*print)(const char*, std::size_t, void*),
                                             void* opaque);

namespace rangescope::inject::counters {
namespace {

constexpr int kMostNested = 8;

struct Text {
  char* room;
  std::size_t bytes;
  std::size_t used;
  std::jmp_buf full;  // where to go if the room is too small
};

void append(const char* piece, std::size_t size, void* opaque) {
  Text& text = *static_cast<Text*>(opaque);
  if (size > text.bytes - text.used)
    std::longjmp(text.full, 1);
  std::memcpy(text.room + text.used, piece, size);
  text.used += size;
}

/// A name with a conversion operator and nested template parameters that have arguments (T_I, T0_I
/// ...): each level of those is parsed twice.
bool takes_exponential_time(std::string_view mangled) {
  if (mangled.find("cv") == std::string_view::npos)
    return false;
  int nested = 0;
  for (std::size_t found = mangled.find("_I"); found != std::string_view::npos;
       found = mangled.find("_I", found + 1)) {
    std::size_t begin = found;
    while (begin > 0 &&
           std::strchr("0123456789ABCDEFGHIJKLMNOPQRSUVWXYZ", mangled[begin - 1]) != nullptr)
      --begin;
    if (begin > 0 && mangled[begin - 1] == 'T')
      ++nested;
  }
  return nested > kMostNested;
}

/// False if the text does not fit. A function of its own, so that no other variable of a frame
/// outlives the jump.
[[gnu::noinline]] bool print(const char* mangled, Text& text) {
  if (setjmp(text.full) != 0)
    return false;
  return __gcclibcxx_demangle_callback(mangled, append, &text) == 0;
}

}  // namespace

std::string_view demangle(const char* mangled, char* room, std::size_t bytes) {
  // A kernel in C may be named "f", which is a mangled type too.
  if (std::strncmp(mangled, "_Z", 2) != 0 || takes_exponential_time(mangled))
    return mangled;
  Text text{room, bytes, 0, {}};
  if (!print(mangled, text))
    return mangled;
  return {room, text.used};
}

}  // namespace rangescope::inject::counters
