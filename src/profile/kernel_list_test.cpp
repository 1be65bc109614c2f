#include "profile/kernel_list.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"

namespace rangescope::profile {
namespace kernel_list_test {

base::Result<std::vector<ListedKernel>> read_text(const std::string& text) {
  const base::TemporaryFolder folder("kernel-list-test");
  const auto file = folder.path() / "kernels.yaml";
  EXPECT_TRUE(base::write_file(file, text));
  return read_kernel_list(file);
}

TEST(KernelList, ARegexThatOnlyEscapesTheNameIsTheName) {
  const auto kernels = read_text(R"(
kernels:
  - name: 'scale<float>(float*, int)'
    regex: '^scale<float>\(float\*,\ int\)$'
    description: 'Kernel #1 - 30.0% of GPU time, 448 calls'
  - name: gemm
    regex: '.*gemm.*'
)");
  ASSERT_TRUE(kernels) << base::to_string(kernels.error());
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_EQ((*kernels)[0].name, "scale<float>(float*, int)");
  EXPECT_EQ((*kernels)[0].regex, "");
  EXPECT_EQ((*kernels)[0].description, "Kernel #1 - 30.0% of GPU time, 448 calls");
  EXPECT_EQ((*kernels)[1].regex, ".*gemm.*");
  const auto again = read_text(kernel_list_text(*kernels));
  ASSERT_TRUE(again) << base::to_string(again.error());
  EXPECT_EQ((*again)[0].description, (*kernels)[0].description);
  EXPECT_EQ((*again)[1].regex, ".*gemm.*");
}

TEST(KernelList, ARegexAloneIsAFamilyOfKernels) {
  const auto kernels = read_text(R"(
kernels:
  - regex: '.*gemm.*'
    description: 'all of them'
)");
  ASSERT_TRUE(kernels) << base::to_string(kernels.error());
  ASSERT_EQ(kernels->size(), 1u);
  EXPECT_EQ((*kernels)[0].name, "");
  EXPECT_EQ((*kernels)[0].regex, ".*gemm.*");
  EXPECT_EQ(listed_title((*kernels)[0]), ".*gemm.*");
  EXPECT_EQ(listed_title({.name = "ns::gemm<float>(float*)"}), "gemm");
}

TEST(KernelList, ChosenKernelsAreDescribedByTimeAndCalls) {
  const std::vector<analyze::ChosenKernel> chosen = {
      {.name = "gemm", .total_ns = 3e6, .calls = 12},
      {.name = "softmax", .total_ns = 500, .calls = 1}};
  const auto listed = listed_of(chosen);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].description, "Kernel #1 - 3.000 ms of GPU time, 12 calls");
  EXPECT_EQ(listed[1].description, "Kernel #2 - 500 ns of GPU time, 1 call");
  EXPECT_EQ(listed[1].regex, "");
}

TEST(KernelList, AnOperatorThatIsEscapedIsALetter) {
  const auto kernels = read_text(R"(
kernels:
  - {name: 'a.b', regex: '^a\.b$'}
  - {name: 'a.b', regex: '^a.b$'}
)");
  ASSERT_TRUE(kernels) << base::to_string(kernels.error());
  EXPECT_EQ((*kernels)[0].regex, "");
  EXPECT_EQ((*kernels)[1].regex, "^a.b$");
}

TEST(KernelList, ATableIsInTheOrderOfTheTime) {
  const auto kernels = read_kernel_list(std::string(base::source_dir) +
                                        "/tests/golden/nsys/zoo_cuda_gpu_kern_sum.csv");
  ASSERT_TRUE(kernels) << base::to_string(kernels.error());
  ASSERT_GT(kernels->size(), 2u);
  EXPECT_TRUE((*kernels)[0].description.starts_with("Kernel #1 - ")) << (*kernels)[0].description;
}

TEST(KernelList, WhatIsNoListIsRefused) {
  EXPECT_EQ(read_kernel_list("/no/such/file.yaml").error().code, base::Code::kNoInput);
  EXPECT_EQ(read_text("kernel: gemm\n").error().code, base::Code::kConfig);
  EXPECT_EQ(read_text("kernels:\n  - description: none\n").error().code, base::Code::kConfig);
  EXPECT_EQ(read_text("kernels: []\n").error().code, base::Code::kNothingCaptured);
}

}  // namespace kernel_list_test
}  // namespace rangescope::profile
