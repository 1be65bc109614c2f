#include "model/peaks.hpp"

#include <gtest/gtest.h>

namespace rangescope::model {
namespace peaks_test {

TEST(Peaks, OfTheProductAndNotOfItsNamesake) {
  const auto named = [](std::string match) {
    Peaks peaks;
    peaks.id = match;
    peaks.match = {std::move(match)};
    return peaks;
  };
  const std::vector<Peaks> all{named("NVIDIA A10"),
                               named("NVIDIA A100-SXM4-80GB"),
                               named("NVIDIA GeForce RTX 3080"),
                               named("NVIDIA L4")};
  const auto found = [&](std::string_view device) {
    const Peaks* peaks = find_peaks(all, device);
    return peaks ? peaks->id : std::string();
  };
  EXPECT_EQ(found("NVIDIA A10"), "NVIDIA A10");
  EXPECT_EQ(found("NVIDIA A100-SXM4-80GB"), "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(found("NVIDIA A100-PCIE-40GB"), "");
  EXPECT_EQ(found("NVIDIA A10G"), "");
  EXPECT_EQ(found("NVIDIA GeForce RTX 3080"), "NVIDIA GeForce RTX 3080");
  EXPECT_EQ(found("NVIDIA GeForce RTX 3080 Ti"), "");
  EXPECT_EQ(found("NVIDIA GeForce RTX 3080 Laptop GPU"), "");
  EXPECT_EQ(found("NVIDIA L40S"), "");
}

}  // namespace peaks_test
}  // namespace rangescope::model
