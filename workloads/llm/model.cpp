#include "llm/model.hpp"

#include <cmath>

#include "common/random.hpp"
#include "common/ranges.hpp"

namespace workload::llm {
namespace {

int narrow(std::int64_t x) {
  return static_cast<int>(x);
}
std::size_t count(std::int64_t a, std::int64_t b = 1) {
  return static_cast<std::size_t>(a * b);
}

}  // namespace

Model::Model(const Shape& s, std::uint64_t seed) : shape(s) {
  Random random(seed);
  const std::size_t width = count(s.width), hidden = count(s.hidden());
  const auto matrix = [&](std::size_t rows, std::size_t columns, float gain = 1.0F) {
    return memory_.floats(random.matrix(rows * columns, columns, gain));
  };
  const auto ones = [&] { return memory_.floats(std::vector<float>(width, 1.0F)); };
  table = memory_.floats(random.matrix(count(s.vocabulary) * width, 3));
  // Branches are damped so that the residual stream keeps its size however many layers there are.
  const float damp = 1.0F / std::sqrt(2.0F * static_cast<float>(s.layers));
  for (std::int64_t i = 0; i < s.layers; ++i) {
    Layer layer{};
    layer.attention_gain = ones();
    layer.query = matrix(width, width);
    layer.key = matrix(width, width);
    layer.value = matrix(width, width);
    layer.output = matrix(width, width, damp);
    layer.mlp_gain = ones();
    layer.gate = matrix(hidden, width);
    layer.up = matrix(hidden, width);
    layer.down = matrix(width, hidden, damp);
    layer.name = "layer_" + std::to_string(i);
    layers.push_back(layer);
  }
  last_gain = ones();
  unembed = matrix(count(s.vocabulary), width);
}

Session::Session(const Model& model, const Settings& settings, bool graph)
    : model_(model), backend_(settings), graph_(graph) {
  const Shape& s = model.shape;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    keys_.push_back(memory_.floats(count(s.longest, s.width)));
    values_.push_back(memory_.floats(count(s.longest, s.width)));
  }
  for (float** block : {&x_, &norm_, &q_, &k_, &v_, &mix_})
    *block = memory_.floats(count(s.longest, s.width));
  for (float** block : {&gate_, &up_})
    *block = memory_.floats(count(s.longest, s.hidden()));
  logits_ = memory_.floats(count(s.vocabulary));
  position_ = memory_.ints(1);
  ids_ = memory_.ints(count(s.longest));
}

void Session::attention(const Layer& layer, std::size_t index, int rows) {
  const Range range("attention");
  const int width = narrow(model_.shape.width), heads = narrow(model_.shape.heads),
            head_width = width / heads;
  backend_.rms_norm(x_, layer.attention_gain, norm_, rows, width);
  backend_.matmul(norm_, layer.query, q_, rows, width, width);
  backend_.matmul(norm_, layer.key, k_, rows, width, width);
  backend_.matmul(norm_, layer.value, v_, rows, width, width);
  backend_.rotate(q_, position_, rows, heads, head_width);
  backend_.rotate(k_, position_, rows, heads, head_width);
  backend_.store(k_, keys_[index], position_, rows, width);
  backend_.store(v_, values_[index], position_, rows, width);
  backend_.attend(q_,
                  keys_[index],
                  values_[index],
                  mix_,
                  position_,
                  rows,
                  heads,
                  head_width,
                  narrow(model_.shape.longest));
  backend_.matmul(mix_, layer.output, x_, rows, width, width, true);
}

void Session::mlp(const Layer& layer, int rows) {
  const Range range("mlp");
  const int width = narrow(model_.shape.width), hidden = narrow(model_.shape.hidden());
  backend_.rms_norm(x_, layer.mlp_gain, norm_, rows, width);
  backend_.matmul(norm_, layer.gate, gate_, rows, width, hidden);
  backend_.matmul(norm_, layer.up, up_, rows, width, hidden);
  backend_.swiglu(gate_, up_, count(rows, hidden));
  backend_.matmul(gate_, layer.down, x_, rows, hidden, width, true);
}

// One step over `rows` tokens in ids_; leaves the next token in ids_[0] and the position advanced.
void Session::forward(int rows) {
  const int width = narrow(model_.shape.width), vocabulary = narrow(model_.shape.vocabulary);
  backend_.embed(ids_, model_.table, x_, rows, width);
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    const Range range(model_.layers[i].name.c_str());
    attention(model_.layers[i], i, rows);
    mlp(model_.layers[i], rows);
  }
  backend_.rms_norm(x_ + count(rows - 1, width), model_.last_gain, norm_, 1, width);
  backend_.matmul(norm_, model_.unembed, logits_, 1, width, vocabulary);
  backend_.argmax(logits_, ids_, vocabulary);
  backend_.advance(position_, rows);
}

void Session::take_token() {
  tokens_.push_back(backend_.download(ids_, 1)[0]);
}

void Session::prefill(const std::vector<std::int32_t>& prompt) {
  const Range range("prefill");
  tokens_.clear();
  backend_.upload(position_, {0});
  backend_.upload(ids_, prompt);
  forward(narrow(static_cast<std::int64_t>(prompt.size())));
  take_token();
}

void Session::decode() {
  if (graph_ && !captured_) {
    const Range range(
        "graph_capture");  // nothing runs in here: the layers inside were recorded, not computed
    captured_ = backend_.begin_capture();
    if (captured_) {
      forward(1);
      backend_.end_capture();
    }
  }
  const Range range("decode");
  if (captured_) {
    backend_.replay();
  } else {
    forward(1);
  }
  take_token();
}

double Session::logit_sum() {
  double sum = 0;
  for (const float x : backend_.download(logits_, count(model_.shape.vocabulary)))
    sum += std::fabs(x);
  return sum;
}

}  // namespace workload::llm
