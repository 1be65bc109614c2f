// The latest samples of each GPU, for `--watch`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/session.hpp"

namespace rangescope::analyze {

struct LatestSamples {
  std::string gpu;                         ///< "GPU 0"; its name where its number is not known
  std::optional<double> dram, sm, tensor;  ///< shares of the peak, 0..1
  std::optional<double> watts;
};

/// Means over the last `ns` of each stream of samples, of a session that was analyzed
/// (derive_samples). GPUs of which nothing is known are left out.
[[nodiscard]] std::vector<LatestSamples> latest_samples(const model::Session& session,
                                                        std::int64_t ns = 1'000'000'000);

}  // namespace rangescope::analyze
