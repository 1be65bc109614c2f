// A program that does the same work again and again, for recordings of noise: `steady STEPS [SLOW_PERCENT]` runs STEPS
// steps of six ranges, each a number of multiplications of one matrix with a vector. With SLOW_PERCENT the range `mlp`
// does that much more of them: a real slowdown of one region.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kRows = 96;

class Work {
 public:
  Work() : matrix_(kRows * kRows), x_(kRows, 1.0f), y_(kRows) {
    for (std::size_t i = 0; i < matrix_.size(); ++i) matrix_[i] = static_cast<float>(i % 7) * 0.01f;
  }
  void range(const char* name, int products) {
    nvtxRangePushA(name);
    for (int p = 0; p < products; ++p) product();
    nvtxRangePop();
  }
  [[nodiscard]] float result() const { return x_[0]; }

 private:
  void product() {
    for (std::size_t r = 0; r < kRows; ++r) {
      float sum = 0;
      for (std::size_t c = 0; c < kRows; ++c) sum += matrix_[r * kRows + c] * x_[c];
      y_[r] = sum / kRows;
    }
    x_.swap(y_);
  }
  std::vector<float> matrix_, x_, y_;
};

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 40;
  const int slow = argc > 2 ? std::atoi(argv[2]) : 0;
  Work work;
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    work.range("load", 20);
    work.range("norm", 40);
    work.range("attention", 100);
    work.range("mlp", 2 * (100 + slow));
    work.range("update", 60);
    nvtxRangePop();
  }
  std::printf("%g\n", static_cast<double>(work.result()));
  return 0;
}
