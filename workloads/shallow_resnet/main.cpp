// shallow_resnet: classifies random images with a shallow residual network of random weights.
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "common/options.hpp"
#include "common/random.hpp"
#include "common/ranges.hpp"
#include "shallow_resnet/model.hpp"

int main(int argc, char** argv) {
  workload::resnet::Shape shape;
  workload::Settings settings;
  std::int64_t batches = 40, warmup = 1, seed = 1;
  bool truth = false;
  std::string truth_file;
  workload::Options options("shallow_resnet",
                            "Classifies random images with a shallow residual network.");
  options.number("batch", &shape.batch, 1, 4096, "images of a batch");
  options.number("batches", &batches, 1, 1000000, "batches");
  options.number("warmup",
                 &warmup,
                 0,
                 1000,
                 "batches before them, in a range of their own: libraries load, caches fill");
  options.number("size", &shape.size, 4, 512, "height and width of an image");
  options.number("channels", &shape.channels, 1, 1024, "channels of the residual blocks");
  options.number("blocks", &shape.blocks, 0, 200, "residual blocks");
  options.number("classes", &shape.classes, 2, 100000, "classes");
  options.number("seed", &seed, 0, 1LL << 40, "seed of weights and images");
  options.flag("own-gemm",
               &settings.own_gemm,
               "CUDA: the kernel here instead of cuBLAS, so that launches are known");
  options.flag("tf32", &settings.tf32, "CUDA: cuBLAS on tensor cores");
  options.text("truth", &truth, &truth_file, "print what ran as JSON, to stdout or to file F");
  options.parse(argc, argv);

  workload::resnet::Network network(shape, settings, static_cast<std::uint64_t>(seed));
  const auto pixels = static_cast<std::size_t>(shape.batch * 3 * shape.size * shape.size);
  for (std::int64_t b = 0; b < warmup; ++b) {
    const workload::Range range("warmup");
    (void)network.classify(std::vector<float>(pixels, 0.5F));
  }
  workload::Random random(static_cast<std::uint64_t>(seed) + 7);
  workload::Checksum checksum;
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto images = random.matrix(pixels, 1);
    for (const std::int32_t label : network.classify(images))
      checksum.add(static_cast<std::uint32_t>(label));
  }

  char summary[256];
  std::snprintf(summary,
                sizeof summary,
                "\"workload\": \"shallow_resnet\", \"backend\": \"%s\", \"checksum\": \"%016" PRIx64
                "\", \"score_sum\": %.9g",
                workload::backend_name(),
                checksum.value(),
                network.score_sum());
  return workload::finish(summary, truth, truth_file);
}
