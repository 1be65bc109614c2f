// Which records a process writes for what it calls (format: wire/native.hpp).
#include "inject/nvtx/writer.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>

#include "inject/nvtx/handles.hpp"
#include "inject/nvtx/payloads.hpp"
#include "inject/nvtx/recording_test.hpp"

namespace rangescope::inject {
namespace writer_test {

using testing::Capture;
using testing::Lines;
using testing::named;
using testing::push;
using testing::Recording;
using wire::native::Drop;
using wire::native::Type;

using Writer = Recording;

TEST_F(Writer, ARangeIsAPushAndAPop) {
  record([] {
    push("step");
    push("forward");
    record_pop(0);
    record_pop(0);
  });
  EXPECT_EQ(lines(), (Lines{"push step", "push forward", "pop", "pop"}));
}

TEST_F(Writer, CallsReturnTheLevel) {
  EXPECT_EQ(recorded([] {
              std::string levels;
              for (const int level : {push("a"),
                                      push("b"),
                                      record_pop(0),
                                      push("c"),
                                      record_pop(0),
                                      record_pop(0),
                                      record_pop(0)})
                levels += std::to_string(level) + " ";
              return levels;
            }),
            "0 1 1 1 1 0 -2 ");
}

TEST_F(Writer, ARangeMayHaveNoName) {
  record([] {
    record_push(Event{});
    record_pop(0);
  });
  EXPECT_EQ(lines(), (Lines{"push ", "pop"}));
}

TEST_F(Writer, ANameIsDefinedOnceAThread) {
  record([] {
    for (int i = 0; i < 100; ++i) {
      push(i % 2 == 0 ? "even" : "odd");
      record_pop(0);
    }
  });
  EXPECT_EQ(capture().streams.at(0).strings, 2u);
}

TEST_F(Writer, AttributesAreWritten) {
  record([] {
    Event event = named("load");
    event.category = 7;
    event.color = 255;
    event.has_color = true;
    event.payload = {1, 16};
    record_push(event);
    record_pop(0);
    event = named("registered");
    event.name.registered = true;
    record_push(event);
    record_pop(0);
  });
  EXPECT_EQ(lines(),
            (Lines{"push load domain 0 category 7 color 255 payload 1:16",
                   "pop",
                   "push registered registered",
                   "pop"}));
}

TEST_F(Writer, AColorOfZeroIsAColor) {
  record([] {
    Event event = named("black");
    event.has_color = true;
    record_mark(event);
  });
  EXPECT_EQ(lines(), Lines{"mark black color 0"});
}

// 16 bytes a range: the first push of a chunk has the time, later ones what has passed since.
TEST_F(Writer, PlainRangesAreShortRecords) {
  record([] {
    for (int i = 0; i < 2; ++i) {
      push("step");
      record_pop(0);
    }
  });
  EXPECT_EQ(capture().streams.at(0).types,
            (std::vector<Type>{Type::kThread,
                               Type::kString,
                               Type::kPush,
                               Type::kShortPop,
                               Type::kShortPush,
                               Type::kShortPop}));
}

TEST_F(Writer, NamesBeyondTheShortOnesAreLongRecords) {
  record([] {
    for (int i = 0; i <= 1 << wire::native::ShortPush::kNameBits; ++i) {
      push("step" + std::to_string(i));
      record_pop(0);
    }
  });
  const Capture written = capture();
  const testing::Stream& stream = written.streams.at(0);
  EXPECT_EQ(stream.types[stream.types.size() - 2], Type::kPush) << "id 4097";
  EXPECT_EQ(stream.lines[stream.lines.size() - 2], "push step4096");
}

TEST_F(Writer, EachDomainHasItsOwnStack) {
  EXPECT_EQ(recorded([] {
              const std::uint32_t domain = make_domain(name_of("LLM", 3));
              Event in_domain = named("inner");
              in_domain.domain = domain;
              std::string levels = std::to_string(push("outer"));
              levels += std::to_string(record_push(in_domain));
              levels += std::to_string(record_pop(0));
              levels += std::to_string(record_pop(domain));
              return levels;
            }),
            "0000");
  EXPECT_EQ(
      lines(),
      (Lines{"push outer", "domain 1 is LLM", "push inner domain 1 category 0", "pop", "pop 1"}));
}

TEST_F(Writer, APopWithoutAPushIsCounted) {
  record([] {
    EXPECT_EQ(record_pop(0), kNotTracked);
    push("a");
    record_pop(0);
    record_pop(0);
    record_pop(3);
  });
  EXPECT_EQ(capture().dropped(Drop::kEmptyPop), 3u);
  EXPECT_EQ(lines(), (Lines{"push a", "pop"}));
}

TEST_F(Writer, StartsAndEndsAreJoinedByTheirId) {
  record([] {
    const std::uint64_t first = record_start(named("request"), 0);
    const std::uint64_t second = record_start(named("request"), 0);
    (void)record_start(named("chained"), 77);
    record_end(second);
    record_end(first);
    record_end(77);
  });
  EXPECT_EQ(
      lines(),
      (Lines{
          "start request 1", "start request 2", "start chained 77", "end 2", "end 1", "end 77"}));
}

TEST_F(Writer, NamesOfCategoriesThreadsAndResources) {
  record([] {
    record_category(0, 7, name_of("IO", 2));
    record_thread_name(4711, name_of("loader", 6));
    record_resource(0, 3, 99, name_of("mutex", 5));
  });
  EXPECT_EQ(
      lines(),
      (Lines{"category 7 of domain 0 is IO", "thread 4711 is loader", "resource 3:99 is mutex"}));
}

TEST_F(Writer, ALongNameIsCutAndCounted) {
  record([] {
    push(std::string(wire::native::kMaxNameBytes + 1, 'x'));
    push(std::string(wire::native::kMaxNameBytes, 'y'));
  });
  const Capture written = capture();
  EXPECT_EQ(written.dropped(Drop::kNameCut), 1u);
  EXPECT_EQ(written.names.at(0).at(1), std::string(wire::native::kMaxNameBytes, 'x'));
  EXPECT_EQ(written.names.at(0).at(2), std::string(wire::native::kMaxNameBytes, 'y'));
}

// The table of names is bounded: it begins again, and names that come again are defined again.
TEST_F(Writer, NamesThatNeverRepeatDoNotFillMemory) {
  record([] {
    for (int i = 0; i < 60'000; ++i) {
      push(std::to_string(i));
      record_pop(0);
    }
    push("0");
    record_pop(0);
  });
  const Capture written = capture();
  EXPECT_EQ(written.streams.at(0).strings, 60'001u);
  EXPECT_EQ(written.streams.at(0).lines.size(), 2 * 60'001u);
  EXPECT_EQ(*(written.streams.at(0).lines.end() - 2), "push 0");
}

TEST_F(Writer, EachThreadHasAStream) {
  record([] {
    std::promise<void> pushed, may_end;
    push("main");
    std::thread other([&] {
      push("other");
      record_pop(0);
      pushed.set_value();
      may_end.get_future().wait();
    });
    pushed.get_future().wait();
    record_pop(0);
    may_end.set_value();
    other.join();
  });
  const Capture written = capture();
  ASSERT_EQ(written.streams.size(), 2u);
  EXPECT_EQ(written.streams.at(0).lines, (Lines{"push main", "pop"}));
  EXPECT_EQ(written.streams.at(1).lines, (Lines{"push other", "pop"}));
}

TEST_F(Writer, ChunksAreLargerEachTime) {
  record([] {
    for (int i = 0; i < 10'000; ++i) {
      push("step");
      record_pop(0);
    }
  });
  // 160,000 bytes in 8, 16, 32, 64, 128 KiB
  const Capture written = capture();
  EXPECT_EQ(written.streams.at(0).chunks, 5u);
  EXPECT_EQ(written.streams.at(0).lines.size(), 20'000u);
  EXPECT_EQ(written.header.used_bytes, wire::native::kPage + 248 * 1024);
}

// --- structured payloads ---

PayloadLayout peer_and_bytes() {
  PayloadLayout layout{};
  layout.entries[0] = {name_of("peer", 4), wire::native::Number::kSigned, 4, 0};
  layout.entries[1] = {name_of("bytes", 5), wire::native::Number::kUnsigned, 1, 4};
  layout.count = 2;
  layout.bytes = 5;
  return layout;
}

TEST_F(Writer, APayloadIsOfTheInnermostRangeAndItsLayoutIsDefinedOnce) {
  record([] {
    const PayloadLayout layout = peer_and_bytes();
    const unsigned char payload[] = {1, 0, 0, 0, 9};
    push("send");
    record_payload(0, layout, 5, payload);
    record_payload(0, layout, 5, payload);
    record_pop(0);
  });
  EXPECT_EQ(lines(),
            (Lines{"push send",
                   "schema 5: peer@0/4 bytes@4/1",
                   "payload of 5 in 0: 1 0 0 0 9",
                   "payload of 5 in 0: 1 0 0 0 9",
                   "pop"}));
}

TEST_F(Writer, APayloadOutsideOfRangesIsNone) {
  record([] {
    const unsigned char payload[] = {1, 0, 0, 0, 9};
    push("send");
    record_pop(0);
    record_payload(0, peer_and_bytes(), 5, payload);
  });
  EXPECT_EQ(lines(), (Lines{"push send", "pop"}));
}

// --- observers ---

std::string seen;

TEST_F(Writer, AnObserverIsToldBeforeTheRangeAndAfterIt) {
  EXPECT_EQ(
      recorded([] {
        static const RangeObserver observer = {
            [](const Event& event, int level) {
              seen += "push " + std::string(event.name.text, event.name.bytes) + " " +
                      std::to_string(level) + "\n";
            },
            [](std::uint32_t, int level) { seen += "pop " + std::to_string(level) + "\n"; },
            [](const Event&, std::uint64_t id) { seen += "start " + std::to_string(id) + "\n"; },
            [](std::uint64_t id) { seen += "end " + std::to_string(id) + "\n"; }};
        set_range_observer(&observer);
        push("a");
        push("b");
        record_pop(0);
        record_end(record_start(named("c"), 50));
        set_range_observer(nullptr);
        record_pop(0);
        return seen;
      }),
      "push a 0\npush b 1\npop 1\nstart 50\nend 50\n");
}

TEST_F(Writer, RangesOfAnObserverAreRecordedAsOthers) {
  record([] {
    static const RangeObserver observer = {[](const Event& event, int) {
                                             if (event.name.bytes != 1)
                                               return;
                                             push("inside");
                                             record_pop(0);
                                           },
                                           nullptr,
                                           nullptr,
                                           nullptr};
    set_range_observer(&observer);
    push("a");
    record_pop(0);
  });
  EXPECT_EQ(lines(), (Lines{"push inside", "pop", "push a", "pop"}));
}

TEST_F(Writer, OpenRangesAreListedFromTheOutermost) {
  EXPECT_EQ(recorded([] {
              const std::uint32_t domain = make_domain(name_of("LLM", 3));
              Event in_domain = named("b");
              in_domain.domain = domain;
              push("a");
              record_push(in_domain);
              push("c");
              record_pop(domain);  // b: c above it is still open
              std::string text;
              std::size_t count = 0;
              const OpenRange* open = open_ranges(count);
              for (std::size_t i = 0; i < count; ++i)
                text += std::string(open[i].name, open[i].name_bytes) +
                        (open[i].gone ? " is gone, " : ", ");
              record_pop(0);
              (void)open_ranges(count);
              return text + std::to_string(count);
            }),
            "a, b is gone, c, 1");
}

// --- limits ---

TEST_F(Writer, BeyondTheSizeLimitRangesAreCountedAndTheLevelsGoOn) {
  ::setenv(wire::kMaxCaptureSize, "32768", 1);
  EXPECT_EQ(recorded([] {
              for (int i = 0; i < 5000; ++i) {
                push("step");
                record_pop(0);
              }
              const int outer = push("a");
              const int inner = push("b");
              return std::to_string(outer) + std::to_string(inner);
            }),
            "01");
  ::unsetenv(wire::kMaxCaptureSize);
  const Capture written = capture();
  EXPECT_LE(std::filesystem::file_size(files()[0]), 32768u);
  EXPECT_LE(written.header.used_bytes, 32768u);
  const auto pushes = std::count(
      written.streams.at(0).lines.begin(), written.streams.at(0).lines.end(), "push step");
  EXPECT_GT(pushes, 1000);
  EXPECT_GE(written.dropped(Drop::kSizeLimit), 5002u - static_cast<std::uint64_t>(pushes));
}

TEST_F(Writer, ALimitThatIsNoNumberIsNone) {
  ::setenv(wire::kMaxCaptureSize, "32k", 1);
  record([] { push("step"); });
  ::unsetenv(wire::kMaxCaptureSize);
  EXPECT_EQ(lines(), Lines{"push step"});
}

TEST_F(Writer, TheProgramsOwnLimitOfFileSizesIsKept) {
  record([] {
    const rlimit limit{32768, RLIM_INFINITY};
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 5000; ++i) {
      push("step");
      record_pop(0);
    }
  });
  const Capture written = capture();
  EXPECT_EQ(written.streams.at(0).lines.size(), 10'000u) << "the file was as large before";
}

TEST_F(Writer, AFileAsSmallAsTheProgramAllowsHoldsWhatFits) {
  EXPECT_EQ(in_child([]() -> std::string {
              const rlimit limit{32768, RLIM_INFINITY};
              (void)::setrlimit(RLIMIT_FSIZE, &limit);
              if (!writer_start())
                return "recording did not begin";
              for (int i = 0; i < 5000; ++i) {
                push("step");
                record_pop(0);
              }
              return "";
            }),
            "");
  const Capture written = capture();
  EXPECT_GT(written.dropped(Drop::kFileLimit), 0u);
  EXPECT_LE(written.header.used_bytes, 32768u);
}

// Beyond half of the file one range of four is recorded, beyond three quarters one of sixteen.
TEST_F(Writer, ALongRunIsThinnedByWholeRanges) {
  constexpr std::size_t kRanges = 1'200'000;  // 19 MB, of 16 MiB
  ::setenv(wire::kMaxCaptureSize, "16777216", 1);
  record([] {
    for (std::size_t i = 0; i < kRanges / 2; ++i) {
      push("step");
      push("inside");
      record_pop(0);
      record_pop(0);
    }
  });
  ::unsetenv(wire::kMaxCaptureSize);
  const Capture written = capture();
  const Lines& records = written.streams.at(0).lines;
  std::size_t steps = 0, insides = 0, depth = 0;
  for (const std::string& line : records) {
    steps += line == "push step" ? 1 : 0;
    insides += line == "push inside" ? 1 : 0;
    if (line == "push inside") {
      ASSERT_EQ(depth, 1u) << "with what is around it";
    }
    depth += line == "pop" ? std::size_t(-1) : 1;
  }
  EXPECT_EQ(depth, 0u);
  // Inside of a range that began in an earlier chunk each one is chosen by itself.
  EXPECT_LE(insides, steps);
  EXPECT_LE(steps, insides + written.streams.at(0).chunks);
  EXPECT_LT(steps + insides, kRanges);
  EXPECT_EQ(written.dropped(Drop::kSizeLimit), 0u);
  // What was left out last is counted at the end of the process, or with 256.
  EXPECT_GT(written.dropped(Drop::kThinned) + 256, kRanges - steps - insides);
  EXPECT_LE(written.dropped(Drop::kThinned), kRanges - steps - insides);
}

}  // namespace writer_test
}  // namespace rangescope::inject
