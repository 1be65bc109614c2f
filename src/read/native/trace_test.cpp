// Captures are written here by hand, record by record, and read back; damage is done to them byte
// by byte.
#include "read/native/trace.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>

#include "read/native/chunks.hpp"
#include "wire/native.hpp"

namespace rangescope::read::native {
namespace trace_test {

using ::rangescope::wire::native::ChunkHeader;
using ::rangescope::wire::native::Drop;
using ::rangescope::wire::native::FileHeader;
using ::rangescope::wire::native::kHasColor;
using ::rangescope::wire::native::kHasPayload;
using ::rangescope::wire::native::kHasScope;
using ::rangescope::wire::native::RecordHeader;
using ::rangescope::wire::native::Type;

constexpr std::int64_t kBegin = 1'000'000'000'000;

// A capture in memory. Times are given relative to kBegin.
class Capture {
 public:
  Capture() {
    FileHeader header{};
    std::memcpy(header.magic, wire::native::kMagic, sizeof header.magic);
    header.major = wire::native::kMajor;
    header.minor = wire::native::kMinor;
    header.header_bytes = 4096;
    header.pid = 10;
    header.parent_pid = 1;
    header.monotonic_ns = kBegin;
    header.realtime_ns = 5;
    header.first_range_id = 1;
    header.exe_bytes = 3;
    std::memcpy(header.exe, "/ls", 3);
    bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }
  FileHeader& header() { return *reinterpret_cast<FileHeader*>(bytes_.data()); }

  Capture& chunk(std::uint32_t stream,
                 std::uint32_t sequence,
                 std::uint32_t tid,
                 std::size_t bytes = 4096) {
    pad();
    const ChunkHeader header{wire::native::kChunkMagic, stream, sequence, tid, bytes, {}};
    chunk_ = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
    return *this;
  }
  Capture& record(Type type, std::uint32_t value, std::string payload, std::uint8_t flags = 0) {
    payload.resize((payload.size() + 7) / 8 * 8);
    const RecordHeader head{type, flags, static_cast<std::uint16_t>(payload.size() / 8 + 1), value};
    bytes_.append(reinterpret_cast<const char*>(&head), sizeof head).append(payload);
    return *this;
  }
  Capture& string(std::uint32_t id, const std::string& text) {
    return record(Type::kString, id, word(text.size()) + text);
  }
  Capture& domain(std::uint32_t id, const std::string& text) {
    return record(Type::kDomain, id, word(text.size()) + text);
  }
  Capture& push(std::uint32_t name,
                std::int64_t at,
                std::string more = {},
                std::uint8_t flags = 0) {
    return record(Type::kPush, name, time(at) + more, flags);
  }
  Capture& pop(std::int64_t at, std::uint32_t domain = 0) {
    return record(Type::kPop, domain, time(at));
  }
  Capture& short_push(std::uint32_t name, std::uint32_t since) {
    return record(Type::kShortPush, wire::native::ShortPush{since, name}.value(), {});
  }
  Capture& short_pop(std::uint32_t since, std::uint8_t domain = 0) {
    return record(Type::kShortPop, since, {}, domain);
  }
  Capture& start(std::uint32_t name, std::uint64_t id, std::int64_t at) {
    return record(Type::kStart, name, time(at) + word(id));
  }
  Capture& end(std::uint64_t id, std::int64_t at) {
    return record(Type::kEnd, 0, time(at) + word(id));
  }

  static std::string word(std::uint64_t value) {
    return {reinterpret_cast<const char*>(&value), 8};
  }
  static std::string pair(std::uint32_t a, std::uint32_t b) {
    return word(a | std::uint64_t{b} << 32);
  }
  static std::string time(std::int64_t at) { return word(static_cast<std::uint64_t>(kBegin + at)); }
  std::string& bytes() {
    pad();
    return bytes_;
  }

 private:
  void pad() {
    if (chunk_ == 0)
      return;
    const auto size = reinterpret_cast<const ChunkHeader*>(bytes_.data() + chunk_)->bytes;
    bytes_.resize(chunk_ + size);
    chunk_ = 0;
  }
  std::string bytes_;
  std::size_t chunk_ = 0;
};

// The session as text: one range a line "name [start, end] thread domain", then losses "kind
// count".
std::string show(const std::string& bytes) {
  model::Session session;
  Losses losses;
  if (auto read = read_trace(std::as_bytes(std::span(bytes)), "x", session, losses); !read)
    return read.error().what;
  order_ranges(session);
  losses.move_to(session.losses);
  std::string text;
  for (const model::Range& r : session.ranges) {
    text += std::string(session.strings.view(r.name)) + " [" + std::to_string(r.start_ns - kBegin) +
            ", " + (r.end_ns == model::kOpen ? "open" : std::to_string(r.end_ns - kBegin)) + "] " +
            std::to_string(session.threads[r.thread].tid);
    if (r.end_thread != model::kNone)
      text += ">" + std::to_string(session.threads[r.end_thread].tid);
    if (r.domain != 0)
      text += " @" + std::string(session.strings.view(session.domains[r.domain].name));
    if (r.kind == model::RangeKind::kStartEnd)
      text += " start/end";
    text += "\n";
  }
  for (const model::Loss& l : session.losses)
    text += "! " + std::string(l.kind.id()) + " " + std::to_string(l.count) + "\n";
  return text;
}

TEST(Trace, TheRankThatTheEnvironmentSaid) {
  const auto rank_of = [](std::uint64_t plus_1) {
    Capture capture;
    capture.header().rank_plus_1 = plus_1;
    model::Session session;
    Losses losses;
    EXPECT_TRUE(read_trace(std::as_bytes(std::span(capture.bytes())), "x", session, losses));
    return session.processes.at(0).rank;
  };
  EXPECT_EQ(rank_of(0), model::kNone);
  EXPECT_EQ(rank_of(1), 0);
  EXPECT_EQ(rank_of(8), 7);
  EXPECT_EQ(rank_of(~std::uint64_t{0}), model::kNone);
}

TEST(Trace, NestedRangesOfAThread) {
  EXPECT_EQ(show(Capture()
                     .chunk(0, 0, 7)
                     .string(1, "A")
                     .string(2, "B")
                     .push(1, 10)
                     .push(2, 20)
                     .pop(30)
                     .pop(40)
                     .bytes()),
            "A [10, 40] 7\n"
            "B [20, 30] 7\n");
}

TEST(Trace, ShortRecordsCountOnFromThePushOrPopBefore) {
  EXPECT_EQ(show(Capture()
                     .chunk(0, 0, 7)
                     .string(1, "A")
                     .string(4095, "B")
                     .domain(3, "LLM")
                     .push(1, 10)
                     .start(1, 5, 12)  // counts for nothing
                     .short_push(4095, (1 << 20) - 1)
                     .push(1, 1048600, Capture::pair(3, 9), kHasScope)
                     .short_pop(5)
                     .short_pop(4000000000, 3)
                     .pop(5000000000)
                     .short_push(1, 0)
                     .short_pop(7)
                     .bytes()),
            "A [10, 5000000000] 7\n"
            "A [12, open] 7 start/end\n"
            "B [1048585, 1048605] 7\n"
            "A [1048600, 4001048605] 7 @LLM\n"
            "A [5000000000, 5000000007] 7\n");
}

TEST(Trace, AShortRecordWithoutAnythingBeforeItIsDamage) {
  for (const auto& begin :
       {Capture().chunk(0, 0, 7).string(1, "A"),  // of its own chunk
        Capture().chunk(0, 0, 7).string(1, "A").push(1, 10).pop(20).chunk(0, 1, 7),
        Capture().chunk(0, 0, 7).string(1, "A").record(Type::kPush, 1, Capture::word(1))}) {
    const std::string text =
        show(Capture(begin).short_push(1, 3).short_pop(4).push(1, 30).short_pop(5).bytes());
    EXPECT_NE(text.find("A [30, 35] 7\n! damaged_records"), std::string::npos) << text;
  }
}

TEST(Trace, AStreamMayHaveAnyNumber) {
  EXPECT_EQ(show(Capture().chunk(UINT32_MAX, 0, 7).string(1, "A").push(1, 10).pop(20).bytes()),
            "A [10, 20] 7\n");
}

TEST(Trace, DomainsHaveStacksOfTheirOwn) {
  EXPECT_EQ(show(Capture()
                     .chunk(0, 0, 7)
                     .string(1, "A")
                     .push(1, 10)
                     .domain(3, "LLM")
                     .string(2, "B")
                     .push(2, 20, Capture::pair(3, 9), kHasScope)
                     .pop(30)
                     .pop(40, 3)
                     .bytes()),
            "A [10, 30] 7\n"
            "B [20, 40] 7 @LLM\n");
}

TEST(Trace, StartEndAcrossStreamsWhateverTheirOrder) {
  EXPECT_EQ(show(Capture()
                     .chunk(0, 0, 7)
                     .end(5, 40)
                     .chunk(1, 0, 8)
                     .string(1, "request")
                     .start(1, 5, 10)
                     .bytes()),
            "request [10, 40] 8>7 start/end\n");
}

TEST(Trace, UnclosedRangesStayOpenAndAReusedStreamBeginsAnew) {
  EXPECT_EQ(show(Capture()
                     .chunk(0, 0, 7)
                     .string(1, "A")
                     .push(1, 10)
                     .record(Type::kThread, 8, Capture::time(20))
                     .push(1, 30)
                     .pop(40)
                     .bytes()),
            "A [10, open] 7\n"
            "A [30, 40] 8\n");
}

TEST(Trace, ChunksAreReadInSequence) {
  Capture c;
  c.chunk(0, 1, 7).pop(40).chunk(0, 0, 7).string(1, "A").push(1, 10);
  EXPECT_EQ(show(c.bytes()), "A [10, 40] 7\n");
}

TEST(Trace, AGapClosesWhatEndedInIt) {
  Capture c;
  c.chunk(0, 0, 7).string(1, "A").string(2, "B").push(1, 10).push(2, 20);
  c.record(Type::kGap, 0, Capture::time(30) + Capture::pair(1, 3)).pop(40);
  EXPECT_EQ(show(c.bytes()),
            "A [10, 40] 7\n"
            "B [20, 30] 7\n"
            "! guessed_end 1\n");
}

// Layouts of structured payloads and payloads themselves, whole and damaged.
std::string entry(std::uint32_t name,
                  std::uint8_t number,
                  std::uint8_t bytes,
                  std::uint64_t offset) {
  return Capture::word(name | std::uint64_t{number} << 32 | std::uint64_t{bytes} << 40) +
         Capture::word(offset);
}
// The fields as "range.name=bits", and the losses.
std::string fields(const std::string& layout, const std::string& payload, bool open = true) {
  Capture c;
  c.chunk(0, 0, 7).string(1, "A").string(2, "size").record(Type::kSchema, 5, layout);
  if (open)
    c.push(1, 10);
  c.record(Type::kPayload, 5, payload);
  if (open)
    c.pop(20);
  model::Session session;
  Losses losses;
  EXPECT_TRUE(read_trace(std::as_bytes(std::span(c.bytes())), "x", session, losses));
  losses.move_to(session.losses);
  std::string text;
  for (const model::PayloadField& f : session.payload_fields)
    text += std::string(session.strings.view(session.ranges.at(f.range).name)) + "." +
            std::string(session.strings.view(f.name)) + "=" +
            std::to_string(static_cast<std::int64_t>(f.bits)) + " ";
  for (const model::Loss& loss : session.losses)
    text += "! " + std::string(loss.kind.id()) + " ";
  return text;
}

TEST(Trace, StructuredPayloads) {
  const auto with = [](std::uint64_t bytes, const std::string& data) {
    return Capture::pair(0, bytes) + data;
  };
  const std::string whole = with(8, Capture::word(0x1ffffffff));
  EXPECT_EQ(fields(Capture::word(1) + entry(2, 1, 8, 0), whole), "A.size=8589934591 ");
  EXPECT_EQ(fields(Capture::word(1) + entry(2, 2, 4, 0), whole), "A.size=-1 ");
  EXPECT_EQ(fields(Capture::word(2) + entry(2, 1, 1, 0) + entry(2, 1, 2, 4), whole),
            "A.size=255 A.size=1 ");
}

TEST(Trace, DamagedStructuredPayloadsAreCountedAndNotRead) {
  const std::string one = Capture::word(1) + entry(2, 1, 8, 0),
                    data = Capture::pair(0, 8) + Capture::word(7);
  const std::string damaged = "! damaged_records ";
  EXPECT_EQ(fields(one, data), "A.size=7 ");
  EXPECT_EQ(fields(one, data, false), damaged);  // no range is open
  EXPECT_EQ(fields(one, Capture::pair(0, 9) + Capture::word(7)),
            damaged);  // longer than its record
  EXPECT_EQ(fields(one, Capture::pair(0, 0xffffffffu) + Capture::word(7)), damaged);
  EXPECT_EQ(fields(one, Capture::pair(3, 8) + Capture::word(7)), damaged);  // of no domain
  EXPECT_EQ(fields(one, ""), damaged);
  EXPECT_EQ(fields(Capture::word(1) + entry(2, 1, 8, 1), data), damaged);  // beyond the payload
  EXPECT_EQ(fields(Capture::word(1) + entry(2, 1, 8, ~std::uint64_t{0}), data), damaged);
  for (const std::string& layout : {Capture::word(2) + entry(2, 1, 8, 0),
                                    Capture::word(~std::uint64_t{0}) + entry(2, 1, 8, 0),
                                    std::string(),
                                    Capture::word(1) + entry(2, 0, 8, 0),
                                    Capture::word(1) + entry(2, 9, 8, 0),
                                    Capture::word(1) + entry(2, 1, 3, 0),
                                    Capture::word(1) + entry(2, 3, 2, 0),
                                    Capture::word(1) + entry(2, 1, 0, 0)})
    EXPECT_TRUE(fields(layout, data).starts_with(damaged)) << fields(layout, data);
  EXPECT_EQ(fields(Capture::word(1) + entry(9, 1, 8, 0), data),
            "A.=7 ");  // a name that was never defined
}

TEST(Trace, AttributesAndPayloads) {
  Capture c;
  const double value = 2.5;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, 8);
  c.chunk(0, 0, 7).string(1, "A");
  c.push(1,
         10,
         Capture::pair(0, 9) + Capture::word(0xff112233) + Capture::word(3) + Capture::word(bits),
         kHasScope | kHasColor | kHasPayload);
  model::Session session;
  Losses losses;
  ASSERT_TRUE(read_trace(std::as_bytes(std::span(c.bytes())), "x", session, losses));
  ASSERT_EQ(session.attributes.size(), 1u);
  EXPECT_EQ(session.attributes[0].category, 9u);
  EXPECT_EQ(session.attributes[0].color_argb, 0xff112233u);
  EXPECT_EQ(session.attributes[0].payload(), 2.5);
}

TEST(Trace, UnknownRecordsAreSkippedAndCounted) {
  EXPECT_EQ(show(Capture()
                     .chunk(0, 0, 7)
                     .string(1, "A")
                     .push(1, 10)
                     .record(static_cast<Type>(200), 0, "12345678")
                     .pop(40)
                     .bytes()),
            "A [10, 40] 7\n"
            "! unknown_records 1\n");
}

TEST(Trace, DropsOfTheHeaderBecomeLosses) {
  Capture c;
  c.header().dropped[static_cast<int>(Drop::kNoSpace)] = 12;
  c.header().dropped[31] = 1;
  EXPECT_EQ(show(c.bytes()), "! disk_full 12\n! dropped_events 1\n");
}

TEST(Trace, HolesAreNoDamageAndForeignPagesAre) {
  Capture c;
  c.chunk(0, 0, 7).string(1, "A").push(1, 10);
  c.bytes().append(4096, '\0').append(4096, 'x');
  c.chunk(1, 0, 8).string(1, "B").push(1, 20).pop(30);
  EXPECT_EQ(show(c.bytes()),
            "A [10, open] 7\n"
            "B [20, 30] 8\n"
            "! damaged_pages 1\n");
}

TEST(Trace, AChunkThatClaimsTooMuchDoesNotSwallowItsNeighbour) {
  Capture c;
  c.chunk(0, 0, 7).string(1, "A").push(1, 10).chunk(1, 0, 8).string(1, "B").push(1, 20).pop(30);
  reinterpret_cast<ChunkHeader*>(c.bytes().data() + 4096)->bytes = 8192;
  EXPECT_EQ(show(c.bytes()),
            "A [10, open] 7\n"
            "B [20, 30] 8\n"
            "! damaged_pages 1\n");
}

TEST(Trace, AnotherMajorVersionIsRefused) {
  Capture c;
  c.header().major = 3;
  c.header().minor = 0;
  EXPECT_EQ(show(c.bytes()), "native-trace 3.0 is not readable here: this rangescope knows 2");
  EXPECT_EQ(show("something else"), "this is not a native capture");
}

// A file is made as large as it may become.
TEST(Trace, WhatIsInUseIsReadAndNoHole) {
  Capture c;
  c.chunk(0, 0, 7).string(1, "A").push(1, 10).pop(11);
  const std::string used = c.bytes();
  c.header().used_bytes = used.size();
  const std::string whole = c.bytes() + std::string(1 << 20, '\0');
  EXPECT_EQ(used_part(std::as_bytes(std::span(whole))).size(), used.size());
  for (const std::uint64_t damaged : {std::uint64_t{0}, std::uint64_t{4095}, ~std::uint64_t{0}}) {
    c.header().used_bytes = damaged;
    const std::string all = c.bytes();
    EXPECT_EQ(used_part(std::as_bytes(std::span(all))).size(), all.size());
  }
}

TEST(Trace, AFileThatIsCutBetweenTwoChunksIsTorn) {
  Capture c;
  c.chunk(0, 0, 7).string(1, "A").push(1, 10).pop(11);
  c.header().used_bytes = c.bytes().size() + 8192;
  EXPECT_EQ(show(c.bytes()), "A [10, 11] 7\n! torn_tail 8192\n");
}

TEST(Trace, ANewerMinorVersionIsRead) {
  Capture c;
  c.header().minor = 9;
  EXPECT_EQ(show(c.chunk(0, 0, 7).string(1, "A").push(1, 10).pop(11).bytes()), "A [10, 11] 7\n");
}

Capture large() {
  Capture c;
  for (std::uint32_t stream = 0; stream < 4; ++stream) {
    c.chunk(stream, 0, 7 + stream, 8192)
        .string(1, "step")
        .domain(1, "D")
        .string(2, std::string(300, 'n'));
    for (int i = 0; i < 60; ++i)
      c.push(1, i * 100)
          .push(2, i * 100 + 1, Capture::pair(1, 2), kHasScope)
          .pop(i * 100 + 2, 1)
          .pop(i * 100 + 3);
    c.record(Type::kSchema, 5, Capture::word(2) + entry(1, 1, 8, 0) + entry(2, 3, 4, 8));
    c.push(1, 6000)
        .record(Type::kPayload, 5, Capture::pair(0, 16) + Capture::word(1) + Capture::word(2))
        .pop(6001);
    c.start(1, stream + 1, 5).end(stream + 1, 6000);
  }
  return c;
}

TEST(Trace, AHeaderFromBeforeTheBeginningOfTime) {
  for (const std::int64_t at :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    Capture capture;
    capture.header().monotonic_ns = capture.header().end_ns = at;
    capture.chunk(0, 0, 1).string(1, "A").push(1, 10);
    model::Session session;
    Losses losses;
    const std::string bytes = capture.bytes();
    ASSERT_TRUE(read_trace(std::as_bytes(std::span(bytes)), "x", session, losses));
    EXPECT_GE(session.processes.front().start_ns, 0);
  }
}

// Truncated anywhere: reads, and every range that it gives is one of the whole capture's or an
// unclosed one.
TEST(Trace, TruncatedAtTwoHundredPlaces) {
  Capture c = large();
  const std::string whole = c.bytes();
  model::Session all;
  Losses none;
  ASSERT_TRUE(read_trace(std::as_bytes(std::span(whole)), "x", all, none));
  ASSERT_EQ(all.ranges.size(), 4u * 122u);
  for (int i = 0; i <= 200; ++i) {
    const std::size_t size = whole.size() * static_cast<std::size_t>(i) / 200;
    const std::string cut = whole.substr(0, size);
    model::Session session;
    Losses losses;
    const auto read = read_trace(std::as_bytes(std::span(cut)), "x", session, losses);
    if (size < 8) {
      EXPECT_FALSE(read);
      continue;
    }
    ASSERT_TRUE(read) << size;
    EXPECT_LE(session.ranges.size(), all.ranges.size());
    if (i == 200) {
      EXPECT_EQ(session.ranges.size(), all.ranges.size());
    }
    for (const model::Range& r : session.ranges)
      EXPECT_LT(r.thread, session.threads.size());
  }
}

// Bytes flipped at random: no crash, links stay within their tables, ends never before starts.
TEST(Trace, RandomlyDamaged) {
  Capture c = large();
  const std::string whole = c.bytes();
  std::mt19937 random(42);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    const int flips = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < flips; ++i)
      bytes[8 + random() % (bytes.size() - 8)] ^= static_cast<char>(1u << random() % 8);
    model::Session session;
    Losses losses;
    if (!read_trace(std::as_bytes(std::span(bytes)), "x", session, losses))
      continue;
    order_ranges(session);
    for (const model::Range& r : session.ranges) {
      ASSERT_LT(r.thread, session.threads.size());
      ASSERT_LT(r.domain, session.domains.size());
      ASSERT_TRUE(r.attributes == model::kNone || r.attributes < session.attributes.size());
      ASSERT_GE(r.end_ns, r.start_ns);
    }
    for (const model::PayloadField& f : session.payload_fields)
      ASSERT_LT(f.range, session.ranges.size());
  }
}

}  // namespace trace_test
}  // namespace rangescope::read::native
