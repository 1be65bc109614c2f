// What is traced, by the environment; versions of CUPTI; captures of graphs; the encoder's tables.
#include "inject/cupti/trace_settings.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "inject/cupti/encode.hpp"
#include "inject/cupti/graph_captures.hpp"
#include "inject/nvtx/setting.hpp"

namespace rangescope::inject::cupti {
namespace trace_settings_test {

/// Settings as `attach` gives them: "NAME=VALUE", each terminated.
template <std::size_t n>
TraceSettings settings_of(const char (&given)[n]) {
  given_settings = given;
  const TraceSettings settings = settings_from_environment();
  given_settings = nullptr;
  return settings;
}

TEST(TraceSettings, WithoutAnyEverythingIsTraced) {
  const TraceSettings settings = settings_of("\0");
  EXPECT_TRUE(settings.graph_nodes);
  EXPECT_TRUE(settings.call_details);
  EXPECT_TRUE(settings.memory);
  EXPECT_TRUE(settings.modules);
  EXPECT_FALSE(settings.memory_stacks);
  EXPECT_FALSE(settings.launch_callbacks);
  EXPECT_EQ(settings.module_levels, 0u);
  EXPECT_EQ(settings.flush_interval_ms, 1000u);
}

TEST(TraceSettings, EachIsSwitchedByItsOwn) {
  EXPECT_FALSE(settings_of("RANGESCOPE_CUDA_GRAPHS=graph\0").graph_nodes);
  EXPECT_TRUE(settings_of("RANGESCOPE_CUDA_GRAPHS=node\0").graph_nodes);
  EXPECT_TRUE(settings_of("RANGESCOPE_LAUNCH_RECORDS=callback\0").launch_callbacks);
  EXPECT_FALSE(settings_of("RANGESCOPE_CALL_DETAILS=off\0").call_details);
  EXPECT_FALSE(settings_of("RANGESCOPE_MEMORY=off\0").memory);
  EXPECT_TRUE(settings_of("RANGESCOPE_MEMORY=stacks\0").memory);
  EXPECT_TRUE(settings_of("RANGESCOPE_MEMORY=stacks\0").memory_stacks);
}

TEST(TraceSettings, ModulesAreOffOrHaveLevels) {
  EXPECT_FALSE(settings_of("RANGESCOPE_MODULES=off\0").modules);
  EXPECT_TRUE(settings_of("RANGESCOPE_MODULES=2\0").modules);
  EXPECT_EQ(settings_of("RANGESCOPE_MODULES=2\0").module_levels, 2u);
}

TEST(TraceSettings, TheIntervalIsInSecondsOrMilliseconds) {
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=200ms\0").flush_interval_ms, 200u);
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=2\0").flush_interval_ms, 2000u);
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=0.25s\0").flush_interval_ms, 250u);
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=0\0").flush_interval_ms, 0u);
}

TEST(TraceSettings, AnIntervalThatIsNoneIsADefault) {
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=\0").flush_interval_ms, 1000u);
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=often\0").flush_interval_ms, 1000u);
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=-1\0").flush_interval_ms, 1000u);
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=nan\0").flush_interval_ms, 1000u);
  EXPECT_EQ(settings_of("RANGESCOPE_FLUSH_INTERVAL=1e9\0").flush_interval_ms, 1000u);
}

TEST(TraceSettings, CallsThatDoOrAwaitWorkAreNoted) {
  const TraceSettings settings;
  EXPECT_TRUE(is_noted("cuLaunchKernel", settings));
  EXPECT_TRUE(is_noted("cuMemcpyHtoDAsync_v2", settings));
  EXPECT_TRUE(is_noted("cuStreamSynchronize", settings));
  EXPECT_FALSE(is_noted("cuMemAlloc_v2", settings));
  EXPECT_FALSE(is_noted("cuCtxGetCurrent", settings));
}

TEST(TraceSettings, MoreCallsAreNotedByTheirBeginnings) {
  TraceSettings settings;
  settings.more_calls = "cuMemAlloc,,cuEvent";
  EXPECT_TRUE(is_noted("cuMemAlloc_v2", settings));
  EXPECT_TRUE(is_noted("cuEventRecord", settings));
  EXPECT_FALSE(is_noted("cuCtxGetCurrent", settings)) << "nothing between two commas is no name";
}

// --- versions ---

TEST(CuptiVersions, RecordsOfCuda12And13AreKnown) {
  EXPECT_FALSE(knows_records_of(18)) << "11.8";
  EXPECT_TRUE(knows_records_of(19)) << "12.0";
  EXPECT_TRUE(knows_records_of(28)) << "12.9.1";
  EXPECT_TRUE(knows_records_of(130'000));
  EXPECT_TRUE(knows_records_of(139'901));
  EXPECT_FALSE(knows_records_of(140'000));
  EXPECT_FALSE(knows_records_of(120'000)) << "numbered otherwise";
}

TEST(CuptiVersions, HaveTheNameOfTheirCuda) {
  char text[32];
  EXPECT_STREQ(version_name(26, text, sizeof text), "12.8");
  EXPECT_STREQ(version_name(130'001, text, sizeof text), "13.0.1");
  EXPECT_STREQ(version_name(130'401, text, sizeof text), "13.4.1");
}

TEST(CuptiVersions, RefusedCountersComeWithAdvice) {
  EXPECT_NE(std::string(advice_of(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)).find("root"),
            std::string::npos);
  EXPECT_NE(std::string(advice_of(CUPTI_ERROR_HARDWARE_BUSY)).find("DCGM"), std::string::npos);
  EXPECT_STREQ(advice_of(CUPTI_ERROR_UNKNOWN), "");
}

// --- captures of graphs ---

class Capturing : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBegin = CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
                                 kEnd = CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture;
  bool enters(std::uint32_t function) {
    CUpti_CallbackData call{};
    call.callbackSite = CUPTI_API_ENTER;
    return captures.observe(function, call);
  }
  void returns(std::uint32_t function, CUresult result = CUDA_SUCCESS) {
    CUpti_CallbackData call{};
    call.callbackSite = CUPTI_API_EXIT;
    call.functionReturnValue = &result;
    EXPECT_FALSE(captures.observe(function, call));
  }
  GraphCaptures captures;
};

TEST_F(Capturing, LastsFromTheBeginToTheEnd) {
  EXPECT_FALSE(captures.any());
  EXPECT_TRUE(enters(kBegin)) << "counters must stop before";
  EXPECT_TRUE(captures.any());
  returns(kBegin);
  EXPECT_TRUE(captures.any());
  EXPECT_FALSE(enters(kEnd));
  EXPECT_TRUE(captures.any());
  returns(kEnd);
  EXPECT_FALSE(captures.any());
}

TEST_F(Capturing, OfTwoStreamsLastsUntilBothHaveEnded) {
  for (int stream = 0; stream < 2; ++stream) {
    enters(kBegin);
    returns(kBegin);
  }
  returns(kEnd);
  EXPECT_TRUE(captures.any());
  returns(kEnd);
  EXPECT_FALSE(captures.any());
}

TEST_F(Capturing, ThatFailsToBeginIsNone) {
  enters(kBegin);
  returns(kBegin, CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_FALSE(captures.any());
}

TEST_F(Capturing, ThatWasInvalidatedHasEnded) {
  enters(kBegin);
  returns(kBegin);
  returns(kEnd, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(captures.any());
}

TEST_F(Capturing, GoesOnWhereAnotherThreadTriesToEndIt) {
  enters(kBegin);
  returns(kBegin);
  returns(kEnd, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  returns(kEnd, CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_TRUE(captures.any());
}

TEST_F(Capturing, ThatBeganUnseenEndsNoOther) {
  returns(kEnd);
  EXPECT_FALSE(captures.any());
  enters(kBegin);
  EXPECT_TRUE(captures.any()) << "not one below none";
}

TEST_F(Capturing, OtherCallsAreNoCaptures) {
  EXPECT_FALSE(enters(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  EXPECT_FALSE(captures.any());
}

// --- the encoder's tables ---

TEST(EncoderTables, AKeyHasTheIdThatItWasAddedWith) {
  FixedTable<StreamKey, 16> table;
  EXPECT_EQ(table.find({0, 1, 7}), 0u);
  table.add({0, 1, 7}, 5);
  EXPECT_EQ(table.find({0, 1, 7}), 5u);
  EXPECT_EQ(table.find({1, 1, 7}), 0u);
}

TEST(EncoderTables, AFullTableIsCleared) {
  FixedTable<StreamKey, 16> table;
  for (std::uint32_t stream = 1; stream <= 12; ++stream)  // three quarters
    table.add({0, 1, stream}, stream);
  for (std::uint32_t stream = 1; stream <= 12; ++stream)
    EXPECT_EQ(table.find({0, 1, stream}), stream);
  table.add({0, 1, 13}, 13);
  EXPECT_EQ(table.find({0, 1, 13}), 13u);
  EXPECT_EQ(table.find({0, 1, 1}), 0u) << "it is defined again";
}

TEST(EncoderTables, ANameIsKnownByItsPlaceAndItsText) {
  const auto table = std::make_unique<NameTable>();
  char name[] = "gemm";
  EXPECT_EQ(table->find(name), 0u);
  table->add(name, 3);
  EXPECT_EQ(table->find(name), 3u);
  name[0] = 'f';  // a module was unloaded, and another one's name lies there
  EXPECT_EQ(table->find(name), 0u);
  table->add(name, 4);
  EXPECT_EQ(table->find(name), 4u);
}

}  // namespace trace_settings_test
}  // namespace rangescope::inject::cupti
