// What a push+pop pair costs in this process, beside two reads of the clock: `pair_cost FILE`
// writes one line of JSON.
//
// Batches of pairs and of double clock reads take turns, so that a change of the machine's speed
// meets both; the result is the median over the batches. Run it plainly, under rangescope and under
// nsys.
#include <nvtx3/nvToolsExt.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr int kBatches = 400;
constexpr int kPairs = 1000;

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

template <class F>
double per_call_ns(F f) {
  const std::int64_t start = now_ns();
  for (int i = 0; i < kPairs; ++i)
    f();
  return static_cast<double>(now_ns() - start) / kPairs;
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: pair_cost FILE\n");
    return 64;
  }
  std::vector<double> pairs, clocks;
  volatile std::int64_t sink = 0;
  for (int i = 0; i < kBatches; ++i) {
    pairs.push_back(per_call_ns([] {
      nvtxRangePushA("bench");
      nvtxRangePop();
    }));
    clocks.push_back(per_call_ns([&] { sink = now_ns() + now_ns(); }));
  }
  std::FILE* out = std::fopen(argv[1], "w");
  if (!out) {
    std::perror(argv[1]);
    return 74;
  }
  std::fprintf(out,
               "{\"pair_ns\": %.1f, \"two_clocks_ns\": %.1f, \"pairs\": %d}\n",
               median(pairs),
               median(clocks),
               kBatches * kPairs);
  return std::fclose(out) == 0 ? 0 : 74;
}
