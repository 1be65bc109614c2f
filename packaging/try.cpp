// Nested ranges with known counts: 20 of `step`, in each two of `inner`, of about a millisecond of
// work each.
#include <rangescope/range.hpp>

#include <chrono>
#include <cstdio>

int main() {
  const auto work = [] {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
         std::chrono::steady_clock::now() < end;) {
    }
  };
  for (int i = 0; i < 20; ++i) {
    rangescope::Range step("step");
    for (int j = 0; j < 2; ++j) {
      rangescope::Range inner("inner");
      work();
    }
  }
  std::puts("done");
  return 7;
}
