// A fuzzer that refuses whatever it is given tests nothing but the refusal: an option that is
// wrong, a file that cannot be made. Each says of every input whether it was read, and fails at its
// end where too few were.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace fuzz {

class Share {
 public:
  ~Share() {
    constexpr std::size_t kEnough = 50, kOneIn = 1000;  // of changed YAML and zstd few are valid
    std::fprintf(stderr, "%zu of %zu inputs were read\n", read_, inputs_);
    if (inputs_ < kEnough || read_ * kOneIn >= inputs_)
      return;
    std::fputs("too few: what is tested?\n", stderr);
    std::_Exit(1);
  }
  void add(bool read) {
    ++inputs_;
    read_ += read ? 1 : 0;
  }

 private:
  std::size_t inputs_ = 0, read_ = 0;
};

/// What LLVMFuzzerTestOneInput returns.
inline int count(bool read) {
  static Share share;
  share.add(read);
  return 0;
}

}  // namespace fuzz
