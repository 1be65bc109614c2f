// llm: generates tokens with a small decoder of random weights, so that there is something real to
// profile.
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "common/options.hpp"
#include "common/random.hpp"
#include "common/ranges.hpp"
#include "llm/model.hpp"

using workload::Checksum;
using workload::Interval;
using workload::Random;
using workload::llm::Model;
using workload::llm::Session;
using workload::llm::Shape;

namespace {

struct Answer {
  std::uint64_t checksum = 0;
  double logit_sum = 0;
};

std::vector<std::int32_t> prompt_of(std::int64_t request,
                                    std::int64_t length,
                                    std::int64_t vocabulary,
                                    std::uint64_t seed) {
  Random random(seed * 1000003 + static_cast<std::uint64_t>(request));
  std::vector<std::int32_t> prompt;
  for (std::int64_t i = 0; i < length; ++i) {
    prompt.push_back(
        static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(vocabulary)));
  }
  return prompt;
}

Answer answer(Session& session, const std::vector<std::int32_t>& prompt, std::int64_t tokens) {
  const Interval request("request");
  session.prefill(prompt);
  for (std::int64_t i = 1; i < tokens; ++i)
    session.decode();
  Checksum checksum;
  for (const std::int32_t token : session.tokens())
    checksum.add(static_cast<std::uint32_t>(token));
  return {checksum.value(), session.logit_sum()};
}

}  // namespace

int main(int argc, char** argv) {
  Shape shape;
  workload::Settings settings;
  std::int64_t prompt = 128, tokens = 64, requests = 4, threads = 1, seed = 1;
  bool truth = false, graph = false;
  std::string truth_file;
  workload::Options options("llm", "Generates tokens with a small decoder of random weights.");
  options.number("layers", &shape.layers, 1, 200, "decoder layers");
  options.number("width", &shape.width, 8, 16384, "model width, a multiple of 2 x heads");
  options.number("heads", &shape.heads, 1, 256, "attention heads");
  options.number("vocabulary", &shape.vocabulary, 2, 200000, "tokens the model knows");
  options.number("prompt", &prompt, 1, 100000, "prompt tokens of a request");
  options.number("tokens", &tokens, 1, 100000, "generated tokens of a request");
  options.number("requests", &requests, 1, 100000, "requests");
  options.number("threads", &threads, 1, 1024, "threads that answer requests");
  options.number("seed", &seed, 0, 1LL << 40, "seed of weights and prompts");
  options.flag("graph", &graph, "CUDA: capture a decode step once and replay it as a graph");
  options.flag("own-gemm",
               &settings.own_gemm,
               "CUDA: the kernel here instead of cuBLAS, so that launches are known");
  options.flag("tf32", &settings.tf32, "CUDA: cuBLAS on tensor cores");
  options.text("truth", &truth, &truth_file, "print what ran as JSON, to stdout or to file F");
  options.parse(argc, argv);
  if (shape.width % (2 * shape.heads) != 0) {
    std::fprintf(stderr, "llm: --width must be a multiple of twice --heads\n");
    return 64;
  }
  shape.longest = prompt + tokens;

  const Model model(shape, static_cast<std::uint64_t>(seed));
  std::vector<Answer> answers(static_cast<std::size_t>(requests));
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    Session session(model, settings, graph);
    for (std::int64_t r = next++; r < requests; r = next++) {
      answers[static_cast<std::size_t>(r)] =
          answer(session,
                 prompt_of(r, prompt, shape.vocabulary, static_cast<std::uint64_t>(seed)),
                 tokens);
    }
  };
  std::vector<std::thread> pool;
  for (std::int64_t t = 1; t < threads; ++t)
    pool.emplace_back(work);
  work();
  for (std::thread& thread : pool)
    thread.join();

  Checksum checksum;
  double logit_sum = 0;
  for (const Answer& a : answers) {
    checksum.add(static_cast<std::uint32_t>(a.checksum));
    checksum.add(static_cast<std::uint32_t>(a.checksum >> 32));
    logit_sum += a.logit_sum;
  }
  char summary[256];
  std::snprintf(summary,
                sizeof summary,
                "\"workload\": \"llm\", \"backend\": \"%s\", \"checksum\": \"%016" PRIx64
                "\", \"logit_sum\": %.9g",
                workload::backend_name(),
                checksum.value(),
                logit_sum);
  return workload::finish(summary, truth, truth_file);
}
