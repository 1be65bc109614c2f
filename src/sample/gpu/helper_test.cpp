#include "sample/gpu/helper.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rangescope::sample {
namespace {

using Share = std::pair<std::size_t, std::size_t>;

TEST(SampledDevices, EachLocalRankTakesItsShare) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
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

TEST(SampledDevices, EachTaskOfSlurmTakesItsShare) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "SLURM_STEP_GPUS"})
    ::unsetenv(name);
  ::setenv("SLURM_LOCALID", "3", 1);
  ::setenv("SLURM_NODEID", "2", 1);
  EXPECT_EQ(own_share(8), Share(0, 8));  // of how many nobody says: a batch script
  ::setenv("SLURM_STEP_TASKS_PER_NODE", "4(x3),2", 1);
  EXPECT_EQ(own_share(8), Share(6, 8));
  EXPECT_EQ(own_share(4), Share(3, 4));
  ::setenv("SLURM_NODEID", "3", 1);
  EXPECT_EQ(own_share(8), Share(0, 8));  // rank 3 of 2
  ::setenv("SLURM_LOCALID", "1", 1);
  EXPECT_EQ(own_share(8), Share(4, 8));
  ::setenv("SLURM_NODEID", "4", 1);
  EXPECT_EQ(own_share(8), Share(0, 8));  // no such host
  for (const char* wrong : {"", "(x3)", "4(x", "4(x3", "four"}) {
    ::setenv("SLURM_STEP_TASKS_PER_NODE", wrong, 1);
    EXPECT_EQ(own_share(8), Share(0, 8)) << wrong;
  }
  ::setenv("SLURM_STEP_TASKS_PER_NODE", "8,2", 1);
  ::setenv("SLURM_NODEID", "1", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  EXPECT_EQ(own_share(2), Share(0, 2));  // bound by whoever set it
  ::setenv("SLURM_STEP_GPUS", "0,1", 1);
  EXPECT_EQ(own_share(2), Share(1, 2));  // Slurm shows every task all GPUs of the step
  ::setenv("SLURM_STEP_GPUS", "0,1,4,5", 1);
  EXPECT_EQ(own_share(2), Share(0, 2));  // --gpus-per-task=2
}

}  // namespace
}  // namespace rangescope::sample
