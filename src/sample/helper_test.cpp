#include "sample/helper.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rangescope::sample {
namespace {

using Share = std::pair<std::size_t, std::size_t>;

TEST(SampledDevices, EachLocalRankTakesItsShare) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE"})
    ::unsetenv(name);
  EXPECT_EQ(own_share(8), Share(0, 8));  // no launcher
  ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  EXPECT_EQ(own_share(8), Share(0, 8));  // of how many nobody says
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "8", 1);
  EXPECT_EQ(own_share(8), Share(1, 2));
  EXPECT_EQ(own_share(16), Share(2, 4));
  EXPECT_EQ(own_share(1), Share(0, 1));  // ranks share a GPU, or each sees its own only
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
  EXPECT_EQ(own_share(8), Share(2, 5));
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
  EXPECT_EQ(own_share(4), Share(0, 4));
}

}  // namespace
}  // namespace rangescope::sample
