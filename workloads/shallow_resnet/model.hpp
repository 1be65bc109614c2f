// A shallow residual network for images: convolution stem, residual blocks of two 3x3 convolutions,
// pooled linear head.
//
// Batch normalization is folded into a scale and a shift per channel, as it is for inference.
// Weights are random from a seed. NVTX ranges: stem, residual (one a block), head.
#pragma once

#include <cstdint>
#include <vector>

#include "common/backend.hpp"

namespace workload::resnet {

struct Shape {
  std::int64_t batch = 8, size = 32, channels = 32, blocks = 3, classes = 100;
};

struct Convolution {
  float *weight, *scale, *shift;  // [out, in * 9], [out], [out]
};

struct Block {
  Convolution first, second;
};

class Network {
 public:
  Network(const Shape& shape, const Settings& settings, std::uint64_t seed);
  /// Class of each image; images are [batch, 3, size, size].
  std::vector<std::int32_t> classify(const std::vector<float>& images);
  /// Sum of the absolute scores of the last batch: nearly equal on all backends.
  [[nodiscard]] double score_sum();

 private:
  void convolve(const Convolution& convolution,
                const float* in,
                int in_channels,
                const float* residual,
                float* out);

  Shape shape_;
  Memory memory_;
  Backend backend_;
  Convolution stem_;
  std::vector<Block> blocks_;
  float* weight_;  // head [classes, channels]
  float *images_, *columns_, *product_, *x_, *y_, *pooled_, *scores_;
  std::int32_t* classes_;
};

}  // namespace workload::resnet
