// Wide strings (32-bit code points on Linux) as UTF-8. Invalid code points become U+FFFD.
#pragma once

#include <cstddef>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {

/// The name of a wide string, valid as long as the object. Up to a thousand characters need no
/// memory but the stack.
class WideName {
 public:
  explicit WideName(const wchar_t* text) {
    if (text == nullptr)
      return;
    std::size_t length = 0;
    while (length <= wire::native::kMaxNameBytes && text[length] != L'\0')
      ++length;
    char* out = small_;
    if (length * 4 > sizeof small_) {
      mapped_bytes_ = length * 4;
      out = mapped_ = static_cast<char*>(pages_allocate(mapped_bytes_));
      if (out == nullptr)
        return;
    }
    char* end = out;
    for (std::size_t i = 0; i < length; ++i)
      end = append_utf8(end, static_cast<std::uint32_t>(text[i]));
    name_ = name_of(out, static_cast<std::size_t>(end - out));
  }
  ~WideName() { pages_free(mapped_, mapped_bytes_); }
  WideName& operator=(WideName&&) = delete;
  operator const Name&() const { return name_; }  // NOLINT(google-explicit-constructor)

 private:
  /// Returns the end of what it wrote.
  static char* append_utf8(char* out, std::uint32_t code) {
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      code = 0xfffd;
    if (code < 0x80) {
      *out++ = static_cast<char>(code);
    } else if (code < 0x800) {
      *out++ = static_cast<char>(0xc0 | code >> 6);
      *out++ = static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      *out++ = static_cast<char>(0xe0 | code >> 12);
      *out++ = static_cast<char>(0x80 | (code >> 6 & 0x3f));
      *out++ = static_cast<char>(0x80 | (code & 0x3f));
    } else {
      *out++ = static_cast<char>(0xf0 | code >> 18);
      *out++ = static_cast<char>(0x80 | (code >> 12 & 0x3f));
      *out++ = static_cast<char>(0x80 | (code >> 6 & 0x3f));
      *out++ = static_cast<char>(0x80 | (code & 0x3f));
    }
    return out;
  }

  char small_[4000];
  char* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  Name name_;
};

}  // namespace rangescope::inject
