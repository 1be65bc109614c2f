#include "analyze/compare/compare_chains.hpp"

#include <algorithm>

#include "analyze/compare/compare_functions.hpp"
#include "analyze/cpu/cpu.hpp"

namespace rangescope::analyze {

std::uint32_t ChainFrames::number(const model::ChainFrame& frame) {
  const auto [at, fresh] = known_.try_emplace(frame.name, static_cast<std::uint32_t>(list_.size()));
  if (fresh)
    list_.push_back(frame);
  return at->second;
}

std::vector<model::DigestChain> ChainFrames::chains(
    const model::Session& session, const std::vector<model::CpuStackCount>& stacks) {
  const model::CpuProfile& cpu = session.cpu;
  if (of_frame_.empty()) {
    for (std::uint32_t f = 0; f < cpu.frames.size(); ++f) {
      const model::CpuFunction function = function_of(session, f);
      const std::string& path = function.python ? function.file : function.module;
      of_frame_.push_back(number({function_label(function.name, path, function.python), path}));
    }
  }
  std::map<std::vector<std::uint32_t>, std::int64_t> sums;
  for (const model::CpuStackCount& count : stacks) {
    std::vector<std::uint32_t> frames;
    for (std::uint32_t s = count.stack; s < cpu.stacks.size(); s = cpu.stacks[s].parent)
      frames.push_back(of_frame_[cpu.stacks[s].frame]);
    std::reverse(frames.begin(), frames.end());
    sums[std::move(frames)] += count.samples;
  }
  std::vector<model::DigestChain> out;
  for (const auto& [frames, samples] : sums)
    out.push_back({frames, samples});
  return out;
}

ChainSides::ChainSides(std::span<const model::Side> sides, model::Comparison& out) {
  ChainFrames frames(out.frames);
  for (const model::Side& side : sides) {
    auto& runs = to_.emplace_back();
    for (const model::Digest& run : side.runs) {
      auto& numbers = runs.emplace_back();
      for (const model::ChainFrame& frame : run.frames)
        numbers.push_back(frames.number(frame));
    }
  }
}

void ChainSides::add(const MatchedRegion& region, model::ComparedRegion& to) const {
  std::map<std::vector<std::uint32_t>, std::vector<std::int64_t>> sums;
  for (std::size_t side = 0; side < region.of.size(); ++side) {
    double occurrences = 0, interval = 0;
    for (std::size_t run = 0; run < region.of[side].size(); ++run) {
      const model::DigestRegion* one = region.of[side][run];
      if (one == nullptr || one->cpu_interval_ns <= 0)
        continue;
      occurrences += static_cast<double>(one->occurrences);
      interval = std::max(interval, one->cpu_interval_ns);
      for (const model::DigestChain& chain : one->chains) {
        std::vector<std::uint32_t> frames;
        for (const std::uint32_t frame : chain.frames)
          frames.push_back(to_[side][run][frame]);
        auto& samples = sums[std::move(frames)];
        samples.resize(region.of.size());
        samples[side] += chain.samples;
      }
    }
    to.sample_ns.push_back(occurrences > 0 ? interval / occurrences : 0);
  }
  for (auto& [frames, samples] : sums)
    to.chains.push_back({frames, std::move(samples)});
}

}  // namespace rangescope::analyze
