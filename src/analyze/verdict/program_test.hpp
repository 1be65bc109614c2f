// A small program, recorded by hand, and its verdict.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/analyze.hpp"
#include "analyze/rows.hpp"
#include "analyze/session_test.hpp"
#include "analyze/verdict/verdict.hpp"

namespace rangescope::analyze {
namespace verdict_test {

constexpr std::int64_t kUs = 1000, kMs = 1000000;

struct Program : testing::SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 2), gpu = stream(p, device(p, 0), 1);
  std::int64_t now = 0;

  /// `count` occurrences of `each`; in each of them `kernels` kernels of `kernel`, launched in
  /// `launch`.
  Program& loop(const char* name,
                int count,
                std::int64_t each,
                int kernels = 0,
                std::int64_t kernel = 0,
                std::int64_t launch = 100) {
    for (int i = 0; i < count; ++i) {
      range(t, name, now, now + each);
      std::int64_t at = now;
      for (int k = 0; k < kernels; ++k) {
        const auto call = this->launch(t, at, at + launch);
        this->kernel(call, k % 2 == 0 ? "even" : "odd", at, at + kernel, gpu);
        at += std::max(launch, kernel);
      }
      now += each;
    }
    session.end_ns = std::max(session.end_ns, now);
    return *this;
  }
  Program& pause(std::int64_t length) {
    now += length;
    session.end_ns = now;
    return *this;
  }
  model::Report report() {
    auto made = analyze(session);
    finish_rows(*made);
    return std::move(*made);
  }
  std::vector<model::Verdict> verdict() {
    model::Report made = report();
    judge(made);
    return made.verdict;
  }
};

inline bool has(const std::vector<model::Verdict>& all, std::string_view kind) {
  return std::any_of(
      all.begin(), all.end(), [&](const model::Verdict& one) { return one.kind == kind; });
}

inline const model::Verdict& of(const std::vector<model::Verdict>& all, std::string_view kind) {
  static const model::Verdict none;
  for (const model::Verdict& one : all)
    if (one.kind == kind)
      return one;
  return none;
}

/// Four steps of a model of four layers: kernels of `attention` ns and `mlp` ns in each, and of
/// `other` behind them.
inline Program layered(std::int64_t attention, std::int64_t mlp, std::int64_t other = 0) {
  Program b;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t begin = b.now;
    const auto module = [&](const std::string& name, std::int64_t end) {
      b.session.ranges[b.range(b.t, name, begin, end)].module = true;
    };
    const auto whole = 4 * (attention + mlp);
    module("decode step", begin + whole + other);
    module("Model", begin + whole);
    module("model (Decoder)", begin + whole);
    for (int layer = 0; layer < 4; ++layer) {
      const std::string name = "model.layers." + std::to_string(layer);
      const std::int64_t from = b.now, middle = from + attention, end = middle + mlp;
      for (const auto& [part, start, stop] : {std::tuple(" (Layer)", from, end),
                                              {".self_attn (Attention)", from, middle},
                                              {".mlp (Mlp)", middle, end}})
        b.session.ranges[b.range(b.t, name + part, start, stop)].module = true;
      b.kernel(b.launch(b.t, from + 10, from + 20), "flash", from + 30, middle, b.gpu);
      b.kernel(b.launch(b.t, middle + 10, middle + 20), "gemm", middle + 30, end, b.gpu);
      b.now = end;
    }
    if (other > 0)
      b.kernel(b.launch(b.t, b.now + 10, b.now + 20), "sample", b.now + 30, b.now + other, b.gpu);
    b.now += other;
  }
  b.session.end_ns = b.now;
  return b;
}

}  // namespace verdict_test
}  // namespace rangescope::analyze
