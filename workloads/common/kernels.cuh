// The CUDA backend's kernels: plain and correct rather than fast; the matrix product is cuBLAS's
// where there is one.
//
// Positions and tokens are read from device memory, so that a captured graph stays right as they
// move on. Indices are 32-bit within a row and 64-bit across rows. Reductions need a block of 256
// threads.
#pragma once

#include <cstdint>

namespace workload::kernels {

constexpr int kBlock = 256;

__device__ inline float block_sum(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int step = kBlock / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  const float sum = shared[0];
  __syncthreads();
  return sum;
}

__device__ inline float block_max(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int step = kBlock / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  const float top = shared[0];
  __syncthreads();
  return top;
}

/// Tiles of 16 x 16: block (16, 16), grid (out / 16, rows / 16), rounded up.
__global__ void matmul(
    const float* x, const float* w, float* y, int rows, int in, int out, float beta) {
  __shared__ float xs[16][17], ws[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  const int w_row = blockIdx.x * 16 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < in; k += 16) {
    const int kx = k + threadIdx.x;
    xs[threadIdx.y][threadIdx.x] =
        row < rows && kx < in ? x[static_cast<std::int64_t>(row) * in + kx] : 0.0F;
    ws[threadIdx.y][threadIdx.x] =
        w_row < out && kx < in ? w[static_cast<std::int64_t>(w_row) * in + kx] : 0.0F;
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum += xs[threadIdx.y][i] * ws[threadIdx.x][i];
    __syncthreads();
  }
  if (row < rows && column < out) {
    float* target = y + static_cast<std::int64_t>(row) * out + column;
    *target = beta == 0.0F ? sum : sum + beta * *target;
  }
}

/// One block a row.
__global__ void embed(const std::int32_t* tokens, const float* table, float* out, int width) {
  const float* from = table + static_cast<std::int64_t>(tokens[blockIdx.x]) * width;
  float* to = out + static_cast<std::int64_t>(blockIdx.x) * width;
  for (int i = threadIdx.x; i < width; i += kBlock)
    to[i] = from[i];
}

/// One block a row.
__global__ void rms_norm(const float* x, const float* gain, float* out, int width) {
  __shared__ float shared[kBlock];
  const float* row = x + static_cast<std::int64_t>(blockIdx.x) * width;
  float* to = out + static_cast<std::int64_t>(blockIdx.x) * width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += kBlock)
    squares += row[i] * row[i];
  const float scale = 1.0F / sqrtf(block_sum(squares, shared) / static_cast<float>(width) + 1e-5F);
  for (int i = threadIdx.x; i < width; i += kBlock)
    to[i] = row[i] * scale * gain[i];
}

/// One block a row; threads share the pairs of all heads.
__global__ void rotate(float* x, const std::int32_t* position, int heads, int head_width) {
  const int half = head_width / 2;
  float* row = x + static_cast<std::int64_t>(blockIdx.x) * heads * head_width;
  for (int pair = threadIdx.x; pair < heads * half; pair += kBlock) {
    const int head = pair / half, i = pair % half;
    const float angle =
        static_cast<float>(*position + static_cast<int>(blockIdx.x)) *
        powf(10000.0F, -2.0F * static_cast<float>(i) / static_cast<float>(head_width));
    const float c = cosf(angle), s = sinf(angle);
    float* p = row + head * head_width + i;
    const float a = p[0], b = p[half];
    p[0] = a * c - b * s;
    p[half] = a * s + b * c;
  }
}

/// One block a row.
__global__ void store(const float* x, float* cache, const std::int32_t* position, int width) {
  const float* row = x + static_cast<std::int64_t>(blockIdx.x) * width;
  float* to = cache + (static_cast<std::int64_t>(*position) + blockIdx.x) * width;
  for (int i = threadIdx.x; i < width; i += kBlock)
    to[i] = row[i];
}

/// Block (head, row) of the grid; dynamic shared memory holds a score for each of the longest
/// possible positions.
__global__ void attend(const float* q,
                       const float* keys,
                       const float* values,
                       float* out,
                       const std::int32_t* position,
                       int heads,
                       int head_width) {
  extern __shared__ float scores[];
  __shared__ float shared[kBlock];
  const int width = heads * head_width, offset = blockIdx.x * head_width;
  const int seen = *position + static_cast<int>(blockIdx.y) + 1;
  const float* query = q + static_cast<std::int64_t>(blockIdx.y) * width + offset;
  const float scale = 1.0F / sqrtf(static_cast<float>(head_width));
  float top = -INFINITY;
  for (int j = threadIdx.x; j < seen; j += kBlock) {
    const float* key = keys + static_cast<std::int64_t>(j) * width + offset;
    float dot = 0;
    for (int i = 0; i < head_width; ++i)
      dot += query[i] * key[i];
    scores[j] = dot;
    top = fmaxf(top, dot);
  }
  top = block_max(top, shared);
  float sum = 0;
  for (int j = threadIdx.x; j < seen; j += kBlock) {
    scores[j] = expf((scores[j] - top) * scale);
    sum += scores[j];
  }
  sum = block_sum(sum, shared);  // its barriers also publish scores[]
  for (int i = threadIdx.x; i < head_width; i += kBlock) {
    float mixed = 0;
    for (int j = 0; j < seen; ++j)
      mixed += scores[j] * values[static_cast<std::int64_t>(j) * width + offset + i];
    out[static_cast<std::int64_t>(blockIdx.y) * width + offset + i] = mixed / sum;
  }
}

__global__ void swiglu(float* gate, const float* up, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < count)
    gate[i] = gate[i] / (1.0F + expf(-gate[i])) * up[i];
}

/// One block.
__global__ void argmax(const float* x, std::int32_t* token, int count) {
  __shared__ float best[kBlock];
  __shared__ int where[kBlock];
  float top = -INFINITY;
  int index = count;
  for (int i = threadIdx.x; i < count; i += kBlock) {
    if (x[i] > top) {
      top = x[i];
      index = i;
    }
  }
  best[threadIdx.x] = top;
  where[threadIdx.x] = index;
  __syncthreads();
  for (int step = kBlock / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      const int other = threadIdx.x + step;
      if (best[other] > best[threadIdx.x] ||
          (best[other] == best[threadIdx.x] && where[other] < where[threadIdx.x])) {
        best[threadIdx.x] = best[other];
        where[threadIdx.x] = where[other];
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0)
    *token = where[0];
}

__global__ void advance(std::int32_t* position, int by) {
  *position += by;
}

/// A thread for each of n * size * size * channels * 9 elements.
__global__ void im2col(
    const float* images, float* columns, std::int64_t total, int channels, int size) {
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (id >= total)
    return;
  const int tap = static_cast<int>(id % 9), c = static_cast<int>(id / 9 % channels);
  const std::int64_t pixel = id / (9 * static_cast<std::int64_t>(channels));
  const int x = static_cast<int>(pixel % size) + tap % 3 - 1,
            y = static_cast<int>(pixel / size % size) + tap / 3 - 1;
  const std::int64_t image = pixel / (static_cast<std::int64_t>(size) * size);
  const bool inside = x >= 0 && x < size && y >= 0 && y < size;
  columns[id] = inside ? images[((image * channels + c) * size + y) * size + x] : 0.0F;
}

/// A thread for each of n * channels * size * size elements; residual may be out itself.
__global__ void normalize(const float* x,
                          const float* scale,
                          const float* shift,
                          const float* residual,
                          float* out,
                          std::int64_t total,
                          int channels,
                          int pixels,
                          bool relu) {
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (id >= total)
    return;
  const std::int64_t pixel = id % pixels, image = id / pixels / channels;
  const int c = static_cast<int>(id / pixels % channels);
  float value = x[(image * pixels + pixel) * channels + c] * scale[c] + shift[c];
  if (residual)
    value += residual[id];
  out[id] = relu ? fmaxf(value, 0.0F) : value;
}

/// One block an image and channel.
__global__ void average(const float* images, float* out, int pixels) {
  __shared__ float shared[kBlock];
  const float* plane = images + static_cast<std::int64_t>(blockIdx.x) * pixels;
  float sum = 0;
  for (int i = threadIdx.x; i < pixels; i += kBlock)
    sum += plane[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0)
    out[blockIdx.x] = sum / static_cast<float>(pixels);
}

}  // namespace workload::kernels
