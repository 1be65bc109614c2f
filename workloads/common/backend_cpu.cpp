#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/backend.hpp"

namespace workload {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<Matrix>;
using ConstMap = Eigen::Map<const Matrix>;
using Stride = Eigen::OuterStride<>;
using ConstSlice = Eigen::Map<const Matrix, 0, Stride>;
using Slice = Eigen::Map<Matrix, 0, Stride>;

std::size_t at(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

const char* backend_name() {
  return "cpu";
}
std::int64_t launches() {
  return 0;
}
bool launches_are_exact() {
  return false;
}

struct Memory::Blocks {
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<std::int32_t>> ints;
};

Memory::Memory() : blocks_(std::make_unique<Blocks>()) {}
Memory::~Memory() = default;
float* Memory::floats(std::size_t count) {
  return blocks_->floats.emplace_back(count, 0.0F).data();
}
float* Memory::floats(const std::vector<float>& values) {
  return blocks_->floats.emplace_back(values).data();
}
std::int32_t* Memory::ints(std::size_t count) {
  return blocks_->ints.emplace_back(count, 0).data();
}

struct Backend::State {
  Matrix scores;
};

Backend::Backend(const Settings&) : state_(std::make_unique<State>()) {}
Backend::~Backend() = default;

void Backend::upload(std::int32_t* to, const std::vector<std::int32_t>& from) {
  std::copy(from.begin(), from.end(), to);
}
void Backend::upload(float* to, const std::vector<float>& from) {
  std::copy(from.begin(), from.end(), to);
}
std::vector<float> Backend::download(const float* from, std::size_t count) {
  return {from, from + count};
}
std::vector<std::int32_t> Backend::download(const std::int32_t* from, std::size_t count) {
  return {from, from + count};
}
void Backend::sync() {}

void Backend::matmul(
    const float* x, const float* w, float* y, int rows, int in, int out, bool accumulate) {
  const ConstMap xs(x, rows, in), ws(w, out, in);
  Map ys(y, rows, out);
  if (!accumulate)
    ys.setZero();
  if (rows == 1) {
    ys.row(0).transpose().noalias() += ws * xs.row(0).transpose();
  } else {
    ys.noalias() += xs * ws.transpose();
  }
}

void Backend::embed(
    const std::int32_t* tokens, const float* table, float* out, int rows, int width) {
  for (int r = 0; r < rows; ++r) {
    std::memcpy(out + at(r, width), table + at(tokens[r], width), at(width, 1) * sizeof(float));
  }
}

void Backend::rms_norm(const float* x, const float* gain, float* out, int rows, int width) {
  const Eigen::Map<const Eigen::RowVectorXf> gains(gain, width);
  for (int r = 0; r < rows; ++r) {
    const Eigen::Map<const Eigen::RowVectorXf> row(x + at(r, width), width);
    const float scale = 1.0F / std::sqrt(row.squaredNorm() / static_cast<float>(width) + 1e-5F);
    Eigen::Map<Eigen::RowVectorXf>(out + at(r, width), width) = (row * scale).cwiseProduct(gains);
  }
}

void Backend::rotate(float* x, const std::int32_t* position, int rows, int heads, int head_width) {
  const int half = head_width / 2;
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < half; ++i) {
      const float angle =
          static_cast<float>(*position + r) *
          std::pow(10000.0F, -2.0F * static_cast<float>(i) / static_cast<float>(head_width));
      const float c = std::cos(angle), s = std::sin(angle);
      for (int h = 0; h < heads; ++h) {
        float* pair = x + at(r, heads * head_width) + at(h, head_width) + i;
        const float a = pair[0], b = pair[half];
        pair[0] = a * c - b * s;
        pair[half] = a * s + b * c;
      }
    }
  }
}

void Backend::store(
    const float* x, float* cache, const std::int32_t* position, int rows, int width) {
  std::memcpy(cache + at(*position, width), x, at(rows, width) * sizeof(float));
}

void Backend::attend(const float* q,
                     const float* keys,
                     const float* values,
                     float* out,
                     const std::int32_t* position,
                     int rows,
                     int heads,
                     int head_width,
                     int) {
  const int width = heads * head_width, length = *position + rows;
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_width));
  Matrix& scores = state_->scores;
  for (int h = 0; h < heads; ++h) {
    const ConstSlice qh(q + at(h, head_width), rows, head_width, Stride(width));
    const ConstSlice kh(keys + at(h, head_width), length, head_width, Stride(width));
    const ConstSlice vh(values + at(h, head_width), length, head_width, Stride(width));
    scores.noalias() = qh * kh.transpose();
    for (int r = 0; r < rows; ++r) {
      const int seen = *position + r + 1;
      auto row = scores.row(r);
      const float top = row.head(seen).maxCoeff();
      row.head(seen) = ((row.head(seen).array() - top) * scale).exp();
      row.head(seen) /= row.head(seen).sum();
      row.tail(length - seen).setZero();
    }
    Slice(out + at(h, head_width), rows, head_width, Stride(width)).noalias() = scores * vh;
  }
}

void Backend::swiglu(float* gate, const float* up, std::size_t count) {
  Eigen::Map<Eigen::ArrayXf> g(gate, static_cast<Eigen::Index>(count));
  const Eigen::Map<const Eigen::ArrayXf> u(up, static_cast<Eigen::Index>(count));
  g = g / (1.0F + (-g).exp()) * u;
}

void Backend::argmax(const float* x, std::int32_t* token, int count) {
  *token = static_cast<std::int32_t>(std::max_element(x, x + count) - x);
}

void Backend::advance(std::int32_t* position, int by) {
  *position += by;
}

void Backend::im2col(const float* images, float* columns, int n, int channels, int size) {
  float* out = columns;
  for (int i = 0; i < n; ++i) {
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        for (int c = 0; c < channels; ++c) {
          const float* plane = images + at(i * channels + c, size * size);
          for (int dy = -1; dy <= 1; ++dy) {
            for (int dx = -1; dx <= 1; ++dx) {
              const int yy = y + dy, xx = x + dx;
              const bool inside = yy >= 0 && yy < size && xx >= 0 && xx < size;
              *out++ = inside ? plane[yy * size + xx] : 0.0F;
            }
          }
        }
      }
    }
  }
}

void Backend::normalize(const float* x,
                        const float* scale,
                        const float* shift,
                        const float* residual,
                        float* out,
                        int n,
                        int channels,
                        int size,
                        bool relu) {
  const int pixels = size * size;
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < channels; ++c) {
      const std::size_t base = at(i * channels + c, pixels);
      for (int p = 0; p < pixels; ++p) {
        float value =
            x[at(i * pixels + p, channels) + static_cast<std::size_t>(c)] * scale[c] + shift[c];
        if (residual)
          value += residual[base + static_cast<std::size_t>(p)];
        out[base + static_cast<std::size_t>(p)] = relu ? std::max(value, 0.0F) : value;
      }
    }
  }
}

void Backend::average(const float* images, float* out, int n, int channels, int size) {
  const ConstMap planes(images, n * channels, size * size);
  Eigen::Map<Eigen::VectorXf>(out, n * channels) = planes.rowwise().mean();
}

bool Backend::begin_capture() {
  return false;
}
void Backend::end_capture() {}
void Backend::replay() {}

}  // namespace workload
