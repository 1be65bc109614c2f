// Occurrences of a range that holds thousands of empty ranges, and as many that hold none.
#include <nvtx3/nvToolsExt.h>

namespace {

constexpr int kPairs = 2000, kOccurrences = 40;

template <class Body>
void repeat_in_outer(const Body& body) {
  for (int occurrence = 0; occurrence < kOccurrences; ++occurrence) {
    nvtxRangePushA("outer");
    for (int pair = 0; pair < kPairs; ++pair) {
      body();
      asm volatile("");  // an empty body is looped over too
    }
    nvtxRangePop();
  }
}

}  // namespace

int main() {
  repeat_in_outer([] {
    nvtxRangePushA("empty");
    nvtxRangePop();
  });
  nvtxRangePushA("without");
  repeat_in_outer([] {});
  nvtxRangePop();
}
