// What a model needs of a machine: memory and two dozen operations. backend_cpu.cpp (Eigen) and
// backend_cuda.cu implement it; one of them is linked, so that both builds run the same model code.
//
// All matrices are row-major float32. A weight is stored [out, in]: a row per output. Operations
// are queued in order and may still run when the call returns; download() and sync() wait.
// Positions and tokens live in device memory, so that a decode step reads nothing from the host and
// can be captured into a CUDA graph. A failed device call ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace workload {

/// "cpu" or "cuda".
[[nodiscard]] const char* backend_name();
/// Kernels that the calling thread has launched so far; 0 on the CPU.
[[nodiscard]] std::int64_t launches();
/// False once cuBLAS ran (it launches as many kernels as it likes), and on the CPU.
[[nodiscard]] bool launches_are_exact();

struct Settings {
  bool own_gemm = false;  ///< CUDA: the simple kernel here instead of cuBLAS
  bool tf32 = false;      ///< CUDA: cuBLAS on tensor cores
};

/// Device memory, given back with the object. Pointers are valid on every thread.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  float* floats(std::size_t count);                 ///< zeroed
  float* floats(const std::vector<float>& values);  ///< a copy
  std::int32_t* ints(std::size_t count);            ///< zeroed

 private:
  struct Blocks;
  std::unique_ptr<Blocks> blocks_;
};

/// One stream of work; use it on the thread that made it.
class Backend {
 public:
  explicit Backend(const Settings& settings);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  void upload(std::int32_t* to, const std::vector<std::int32_t>& from);
  void upload(float* to, const std::vector<float>& from);
  [[nodiscard]] std::vector<float> download(const float* from, std::size_t count);
  [[nodiscard]] std::vector<std::int32_t> download(const std::int32_t* from, std::size_t count);
  void sync();

  /// y[rows, out] = x[rows, in] * w[out, in]^T, added to y when `accumulate`.
  void matmul(
      const float* x, const float* w, float* y, int rows, int in, int out, bool accumulate = false);

  // Decoder
  void embed(const std::int32_t* tokens, const float* table, float* out, int rows, int width);
  void rms_norm(const float* x, const float* gain, float* out, int rows, int width);
  /// Rotates pairs (i, i + head/2) of every head by position * 10000^(-2i/head) (Su et al.,
  /// RoFormer, 2021).
  void rotate(float* x, const std::int32_t* position, int rows, int heads, int head_width);
  /// cache[*position + row] = x[row]
  void store(const float* x, float* cache, const std::int32_t* position, int rows, int width);
  /// Causal attention of `rows` queries at *position.. over the cache; `longest` bounds *position +
  /// rows.
  void attend(const float* q,
              const float* keys,
              const float* values,
              float* out,
              const std::int32_t* position,
              int rows,
              int heads,
              int head_width,
              int longest);
  /// gate = silu(gate) * up
  void swiglu(float* gate, const float* up, std::size_t count);
  /// *token = index of the largest of `count` values; the first one wins.
  void argmax(const float* x, std::int32_t* token, int count);
  /// *position += by
  void advance(std::int32_t* position, int by);

  // Convolution network; images are [n, channels, size, size]
  /// columns[n*size*size, channels*9]: 3x3 neighbourhoods with zero padding.
  void im2col(const float* images, float* columns, int n, int channels, int size);
  /// out[n, channels, size, size] = relu?(x[n*size*size, channels] * scale[c] + shift[c] (+
  /// residual))
  void normalize(const float* x,
                 const float* scale,
                 const float* shift,
                 const float* residual,
                 float* out,
                 int n,
                 int channels,
                 int size,
                 bool relu);
  /// out[n, channels] = mean over the image
  void average(const float* images, float* out, int n, int channels, int size);

  // CUDA graphs. On the CPU begin_capture() says false and nothing is captured.
  [[nodiscard]] bool begin_capture();
  void end_capture();
  void replay();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace workload
