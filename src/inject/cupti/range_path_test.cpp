// Which instances of ranges are the same target of counters.
#include "inject/cupti/range_path.hpp"

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <memory>
#include <string>

#include "inject/nvtx/handles.hpp"
#include "inject/nvtx/recording_test.hpp"

namespace rangescope::inject::cupti {
namespace range_path_test {

using testing::named;
using testing::push;

Event with_payload(const char* name, std::uint32_t type, std::uint64_t bits) {
  Event event = named(name);
  event.payload = {type, bits};
  return event;
}
std::unique_ptr<RangePath> of_start(const Event& event, bool by_payload = false) {
  auto path = std::make_unique<RangePath>();
  path_of_start(event, by_payload, *path);
  return path;
}
/// Name `index` as reports show it, in so many bytes.
std::string shown(const RangePath& path, std::size_t index = 0, std::size_t capacity = 100) {
  std::string text(capacity, '?');
  text.resize(shown_name(path, index, text.data(), capacity));
  return text;
}

// --- start/end ranges ---

TEST(RangePathOfStart, EqualNamesAreOneTarget) {
  EXPECT_EQ(of_start(named("request"))->hash, of_start(named("request"))->hash);
  EXPECT_NE(of_start(named("request"))->hash, of_start(named("reply"))->hash);
  EXPECT_EQ(of_start(named("request"))->depth, 1u);
}

TEST(RangePathOfStart, PayloadsCountWhereTheyAreAskedFor) {
  const Event small = with_payload("decode", NVTX_PAYLOAD_TYPE_INT64, 16);
  const Event large = with_payload("decode", NVTX_PAYLOAD_TYPE_INT64, 32);
  EXPECT_EQ(of_start(small)->hash, of_start(large)->hash);
  EXPECT_NE(of_start(small, true)->hash, of_start(large, true)->hash);
}

TEST(RangePathOfStart, PayloadsThatAreNoIntegersDoNotCount) {
  const Event half = with_payload("decode", NVTX_PAYLOAD_TYPE_DOUBLE, 1);
  const Event none = named("decode");
  EXPECT_EQ(of_start(half, true)->hash, of_start(none, true)->hash);
  EXPECT_EQ(shown(*of_start(half, true)), "decode");
}

TEST(RangePathOfStart, APayloadIsShownBehindTheName) {
  const auto minus_one = static_cast<std::uint64_t>(-1);
  EXPECT_EQ(shown(*of_start(with_payload("decode", NVTX_PAYLOAD_TYPE_INT64, minus_one), true)),
            "decode [-1]");
  EXPECT_EQ(
      shown(*of_start(with_payload("decode", NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, minus_one), true)),
      "decode [18446744073709551615]");
  EXPECT_EQ(shown(*of_start(with_payload("decode", NVTX_PAYLOAD_TYPE_INT64, 16))), "decode");
}

TEST(RangePathOfStart, WhereAPayloadDoesNotFitTheNameIsShown) {
  const auto path = of_start(with_payload("decode", NVTX_PAYLOAD_TYPE_INT64, 16), true);
  EXPECT_EQ(shown(*path, 0, 11), "decode [16]");
  EXPECT_EQ(shown(*path, 0, 10), "decode");
  EXPECT_EQ(shown(*path, 0, 3), "dec");
}

// --- push/pop ranges: below those that are open ---

class RangePathOfPush : public testing::Recording {
 protected:
  /// The path as "a/b/c" at the push of "top", or "too deep".
  std::string path_after(const std::function<void()>& pushes, const Event& top = named("top")) {
    return recorded([&]() -> std::string {
      static Event opened;
      static std::string text;
      opened = top;
      pushes();
      static const RangeObserver observer = {
          [](const Event& event, int) {
            auto path = std::make_unique<RangePath>();
            if (!path_of_push(event, true, *path)) {
              text = "too deep";
              return;
            }
            for (std::size_t i = 0; i < path->depth; ++i)
              text += (i > 0 ? "/" : "") + shown(*path, i);
            text += " of \"" + std::string(path->domain.text, path->domain.bytes) + "\"";
          },
          nullptr,
          nullptr,
          nullptr};
      set_range_observer(&observer);
      record_push(opened);
      return text;
    });
  }
};

TEST_F(RangePathOfPush, IsOfAllOpenRanges) {
  EXPECT_EQ(path_after([] {
              push("epoch");
              push("ended");
              record_pop(0);
              push("step");
            }),
            "epoch/step/top of \"\"");
}

TEST_F(RangePathOfPush, IsOfOneDomain) {
  Event top = named("top");
  top.domain = 1;
  EXPECT_EQ(path_after(
                [] {
                  Event inner = named("inner");
                  inner.domain = make_domain(name_of("LLM", 3));
                  push("outer");
                  record_push(inner);
                  push("outer 2");
                },
                top),
            "inner/top of \"LLM\"");
}

TEST_F(RangePathOfPush, RangesThatEndedBelowAnotherAreNoPart) {
  EXPECT_EQ(path_after([] {
              Event inner = named("inner");
              inner.domain = make_domain(name_of("LLM", 3));
              push("outer");
              record_push(inner);
              record_pop(0);  // outer, below inner
            }),
            "top of \"\"");
}

TEST_F(RangePathOfPush, PayloadsOfOpenRangesCount) {
  EXPECT_EQ(path_after([] { record_push(with_payload("decode", NVTX_PAYLOAD_TYPE_INT32, 16)); }),
            "decode [16]/top of \"\"");
}

TEST_F(RangePathOfPush, HasALargestDepth) {
  const auto deep = [](std::size_t depth) {
    return [depth] {
      for (std::size_t i = 0; i < depth; ++i)
        push("x");
    };
  };
  EXPECT_TRUE(path_after(deep(63)).ends_with("x/top of \"\""));
  EXPECT_EQ(path_after(deep(64)), "too deep");
}

}  // namespace range_path_test
}  // namespace rangescope::inject::cupti
