// A small decoder-only transformer: RMSNorm, rotary attention with a KV cache, SwiGLU, untied
// output, greedy decoding.
//
// Weights are random from a seed and shared by all sessions. A Session is one request in flight:
// its KV cache and scratch memory, used by one thread. NVTX ranges: prefill or decode > layer_i >
// attention, mlp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/backend.hpp"

namespace workload::llm {

struct Shape {
  std::int64_t layers = 4, width = 512, heads = 8, vocabulary = 2048, longest = 256;
  [[nodiscard]] std::int64_t hidden() const { return (width * 8 / 3 + 31) / 32 * 32; }
};

struct Layer {
  float *attention_gain, *query, *key, *value, *output;  // [width], 4 x [width, width]
  float *mlp_gain, *gate, *up, *down;  // [width], 2 x [hidden, width], [width, hidden]
  std::string name;                    // layer_i
};

class Model {
 public:
  Model(const Shape& shape, std::uint64_t seed);
  Shape shape;
  float *table, *last_gain, *unembed;  // [vocabulary, width], [width], [vocabulary, width]
  std::vector<Layer> layers;

 private:
  Memory memory_;
};

class Session {
 public:
  Session(const Model& model, const Settings& settings, bool graph);
  /// Forgets the last request, reads the prompt and yields the first token.
  void prefill(const std::vector<std::int32_t>& prompt);
  /// One more token.
  void decode();
  /// All tokens so far.
  [[nodiscard]] const std::vector<std::int32_t>& tokens() const { return tokens_; }
  /// Sum of the absolute logits of the last step: nearly equal on all backends.
  [[nodiscard]] double logit_sum();

 private:
  void forward(int rows);
  void attention(const Layer& layer, std::size_t index, int rows);
  void mlp(const Layer& layer, int rows);
  void take_token();

  const Model& model_;
  Memory memory_;
  Backend backend_;
  bool graph_, captured_ = false;
  std::vector<std::int32_t> tokens_;
  std::vector<float*> keys_, values_;  // per layer [longest, width]
  float *x_, *norm_, *q_, *k_, *v_, *mix_, *gate_, *up_, *logits_;
  std::int32_t *position_, *ids_;
};

}  // namespace workload::llm
