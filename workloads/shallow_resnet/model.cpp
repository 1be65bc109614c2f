#include "shallow_resnet/model.hpp"

#include <cmath>

#include "common/random.hpp"
#include "common/ranges.hpp"

namespace workload::resnet {
namespace {

int narrow(std::int64_t x) {
  return static_cast<int>(x);
}
std::size_t count(std::int64_t a, std::int64_t b = 1) {
  return static_cast<std::size_t>(a * b);
}

}  // namespace

Network::Network(const Shape& s, const Settings& settings, std::uint64_t seed)
    : shape_(s), backend_(settings) {
  Random random(seed);
  const auto convolution = [&](std::int64_t in, std::int64_t out, float gain) {
    Convolution c{};
    c.weight = memory_.floats(random.matrix(count(out, in * 9), count(in * 9), gain));
    std::vector<float> scale, shift;
    for (std::int64_t i = 0; i < out; ++i) {
      scale.push_back(1.0F + 0.1F * random.symmetric());
      shift.push_back(0.1F * random.symmetric());
    }
    c.scale = memory_.floats(scale);
    c.shift = memory_.floats(shift);
    return c;
  };
  stem_ = convolution(3, s.channels, 1.0F);
  for (std::int64_t i = 0; i < s.blocks; ++i) {
    Block block{};
    block.first = convolution(s.channels, s.channels, 1.4F);
    block.second = convolution(s.channels, s.channels, 0.5F);
    blocks_.push_back(block);
  }
  weight_ = memory_.floats(random.matrix(count(s.classes, s.channels), count(s.channels)));
  const std::int64_t pixels = s.batch * s.size * s.size;
  images_ = memory_.floats(count(pixels, 3));
  columns_ = memory_.floats(count(pixels, 9 * (s.channels > 3 ? s.channels : 3)));
  for (float** block : {&product_, &x_, &y_})
    *block = memory_.floats(count(pixels, s.channels));
  pooled_ = memory_.floats(count(s.batch, s.channels));
  scores_ = memory_.floats(count(s.batch, s.classes));
  classes_ = memory_.ints(count(s.batch));
}

void Network::convolve(
    const Convolution& c, const float* in, int in_channels, const float* residual, float* out) {
  const int n = narrow(shape_.batch), size = narrow(shape_.size),
            channels = narrow(shape_.channels);
  backend_.im2col(in, columns_, n, in_channels, size);
  backend_.matmul(columns_, c.weight, product_, n * size * size, in_channels * 9, channels);
  backend_.normalize(product_, c.scale, c.shift, residual, out, n, channels, size, true);
}

std::vector<std::int32_t> Network::classify(const std::vector<float>& images) {
  const int n = narrow(shape_.batch), size = narrow(shape_.size),
            channels = narrow(shape_.channels);
  {
    const Range range("stem");
    backend_.upload(images_, images);
    convolve(stem_, images_, 3, nullptr, x_);
  }
  for (const Block& block : blocks_) {
    const Range range("residual");
    convolve(block.first, x_, channels, nullptr, y_);
    convolve(block.second,
             y_,
             channels,
             x_,
             x_);  // in place: each element is read once, then written
  }
  const Range range("head");
  const int classes = narrow(shape_.classes);
  backend_.average(x_, pooled_, n, channels, size);
  backend_.matmul(pooled_, weight_, scores_, n, channels, classes);
  for (int i = 0; i < n; ++i)
    backend_.argmax(scores_ + count(i, classes), classes_ + i, classes);
  return backend_.download(classes_, count(n));
}

double Network::score_sum() {
  double sum = 0;
  for (const float x : backend_.download(scores_, count(shape_.batch, shape_.classes)))
    sum += std::fabs(x);
  return sum;
}

}  // namespace workload::resnet
