#include "read/snapshot/pickle.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "read/snapshot/blocks.hpp"
#include "read/snapshot/reader.hpp"

namespace rangescope::read::snapshot {
namespace pickle_test {

using namespace std::string_literals;

/// What the pickle holds, as Python would print it, or why it is refused.
class Shown {
 public:
  explicit Shown(std::string_view bytes) {
    const PickleMachine::Taker nothing = [](PickleMachine&, PickleValue, PickleValue) {
      return false;
    };
    const auto root = machine_.run(bytes, "file", nothing);
    text_ = root ? show(*root) : root.error().what + " | " + root.error().where;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  [[nodiscard]] std::string show(PickleValue value) const {
    switch (value.kind) {
      case PickleKind::kNone: return "None";
      case PickleKind::kBool: return value.integer != 0 ? "True" : "False";
      case PickleKind::kInt: return std::to_string(value.integer);
      case PickleKind::kFloat: return std::to_string(value.real);
      case PickleKind::kText: return "'" + std::string(machine_.text(value)) + "'";
      case PickleKind::kList: return show_list(value);
      case PickleKind::kDict: return show_dict(value);
      default: return "?";
    }
  }
  [[nodiscard]] std::string show_list(PickleValue value) const {
    std::string text = "[";
    for (const PickleValue element : machine_.elements(value))
      text += show(element) + " ";
    return text + "]";
  }
  [[nodiscard]] std::string show_dict(PickleValue value) const {
    std::string text = "{";
    for (const PickleField& field : machine_.fields(value))
      text += show(field.key) + ": " + show(field.value) + " ";
    return text + "}";
  }

  PickleMachine machine_{{}};
  std::string text_;
};

std::string shown(std::string_view bytes) {
  return Shown(bytes).text();
}

TEST(Pickle, ReadsData) {
  EXPECT_EQ(
      shown(
          "\x80\x02}q\x00(X\x01\x00\x00\x00\x61q\x01K\x01X\x01\x00\x00\x00\x62q\x02]q\x03(K\x02M\x03\x01NeU\x01"s
          "cG?\xf8\0\0\0\0\0\0u."s),
      "{'a': 1 'b': [2 259 None ] 'c': 1.500000 }");
  EXPECT_EQ(shown("\x80\x04(\x88\x89J\xff\xff\xff\xff\x8a\x01\xff\x8a\x02\xff\x00t."s),
            "[True False -1 -1 255 ]");
  EXPECT_EQ(shown("\x80\x04]\x94(h\x00h\x00\x65."s.substr(0, 4) + "(K\x01K\x02\x65."s), "[1 2 ]");
  EXPECT_EQ(shown("\x80\x04K\x01K\x02\x86."s), "[1 2 ]");
  EXPECT_EQ(shown("\x80\x04\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00."s),
            std::to_string(INT64_MAX));
}

/// Every opcode of pickletools that imports, calls or asks for an object: refused by name, at its
/// place.
TEST(Pickle, RefusesOpcodesThatRunCode) {
  const std::pair<std::string, std::string_view> kOpcodes[] = {{"cos\nsystem\n", "GLOBAL"},
                                                               {"ios\nsystem\n", "INST"},
                                                               {"(o", "OBJ"},
                                                               {"R", "REDUCE"},
                                                               {"b", "BUILD"},
                                                               {"P1\n", "PERSID"},
                                                               {"Q", "BINPERSID"},
                                                               {"\x81", "NEWOBJ"},
                                                               {"\x82\x01", "EXT1"},
                                                               {"\x83\x01\x01", "EXT2"},
                                                               {"\x84\x01\x01\x01\x01", "EXT4"},
                                                               {"\x92", "NEWOBJ_EX"},
                                                               {"\x93", "STACK_GLOBAL"},
                                                               {"\x97", "NEXT_BUFFER"},
                                                               {"\x98", "READONLY_BUFFER"}};
  for (const auto& [bytes, name] : kOpcodes) {
    const std::size_t place = 4 + (name == "OBJ" ? 1 : 0);
    EXPECT_EQ(shown("\x80\x04K\x01" + bytes + "."),
              "this pickle has the opcode " + std::string(name) +
                  ", which runs code: refused | file: byte " + std::to_string(place));
  }
}

TEST(Pickle, RefusesTextOfProtocol0) {
  for (const auto& [bytes, name] : {std::pair{"I1\n."s, "INT"},
                                    {"L1L\n."s, "LONG"},
                                    {"F1.0\n."s, "FLOAT"},
                                    {"S'a'\n."s, "STRING"},
                                    {"Va\n."s, "UNICODE"},
                                    {"g0\n."s, "GET"},
                                    {"p0\n."s, "PUT"}})
    EXPECT_EQ(
        shown(bytes),
        "this pickle has the opcode "s + name + " of protocol 0, which is not read | file: byte 0");
}

/// Every other byte is no opcode, or one of data.
TEST(Pickle, KnowsEveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string answer =
        shown(std::string(1, static_cast<char>(byte)) + std::string(16, '\0'));
    EXPECT_FALSE(answer.empty()) << byte;
  }
}

TEST(Pickle, DamageIsAnError) {
  const std::pair<std::string, std::string_view> kDamaged[] = {
      {"\x80\x04", "this pickle ends before its STOP"},
      {"\x80\x09K\x01.", "a pickle of protocol 9, which is newer than 5"},
      {"\x80\x04X\xff\xff\xff\x7f"
       "ab",
       "this pickle breaks off"},
      {"\x80\x04.", "this pickle uses up its stack"},
      {"\x80\x04(K\x01.", "this pickle stops within a list"},
      {"\x80\x04K\x01K\x02\x61.", "this pickle appends to what is no list"},
      {"\x80\x04}K\x01\x65.", "this pickle closes what it never opened"},
      {"\x80\x04}(K\x01u.", "this pickle sets a key without a value"},
      {"\x80\x04h\x07.", "this pickle recalls what it never memoized"},
      {"\x80\x04K\x01\x94.", "this pickle memoizes a number"},
      {"\x80\x04]r\xff\xff\xff\x7f.", "this pickle memoizes too much"},
  };
  for (const auto& [bytes, expected] : kDamaged)
    EXPECT_TRUE(shown(bytes).starts_with(expected)) << shown(bytes);
}

/// A list within itself is no loop for the reader.
TEST(Pickle, HoldsWhatContainsItself) {
  PickleMachine machine{{}};
  const auto root = machine.run("\x80\x04]\x94h\x00\x61."s,
                                "file",
                                [](PickleMachine&, PickleValue, PickleValue) { return false; });
  ASSERT_TRUE(root);
  EXPECT_EQ(machine.elements(*root).size(), 1u);
}

/// Dictionaries that are taken leave no room behind, and what names them afterwards finds nothing.
TEST(Pickle, ForgetsWhatIsTaken) {
  constexpr std::array<std::string_view, 1> kKeys = {"a"};
  PickleMachine machine(kKeys);
  int taken = 0;
  const auto take = [&](PickleMachine& of, PickleValue, PickleValue dict) {
    taken += static_cast<int>(of.find(dict, 1)->integer);
    return true;
  };
  // [{'a': 1}, {'a': 2}, the first again]
  const auto root =
      machine.run("\x80\x04](}\x94\x8c\x01\x61K\x01s}\x8c\x01\x61K\x02sh\x00\x65."s, "file", take);
  ASSERT_TRUE(root) << root.error().what;
  EXPECT_EQ(taken, 3);
  EXPECT_EQ(machine.elements(*root).size(), 1u)
      << "the third is put into the list as what it is no longer";
  EXPECT_TRUE(machine.fields(machine.elements(*root)[0]).empty());
}

TEST(Blocks, AreRoundedAsTheAllocatorDoes) {
  AllocatorSettings settings;
  EXPECT_EQ(settings.rounded(0), 512u);
  EXPECT_EQ(settings.rounded(513), 1024u);
  settings.round_divisions = {{1, 4}};
  EXPECT_EQ(settings.rounded(1200u << 10), 1280u << 10) << "the next quarter between 1 and 2 MiB";
  EXPECT_EQ(settings.rounded(1u << 20), 1u << 20);
  EXPECT_EQ(settings.rounded(600), 1024u) << "small sizes are not divided";
}

/// A request of 20 MiB less a little leaves a rest that is not worth splitting off: the block has
/// 20 MiB.
TEST(Blocks, UnsplitRestsCount) {
  constexpr std::uint64_t kMiB = 1 << 20;
  DeviceTrace trace;
  trace.segments[0x1000] = {20 * kMiB, false, false};
  trace.blocks[0x1000] = {20 * kMiB, model::kNone};
  trace.events = {{1000, 0x1000, 20 * kMiB, model::kNone, Action::kSegmentAlloc},
                  {1000, 0x1000, 12 * kMiB, model::kNone, Action::kAlloc},
                  {2000, 0x1000, 12 * kMiB, model::kNone, Action::kFreeRequested},
                  {2000, 0x1000, 12 * kMiB, model::kNone, Action::kFreeCompleted},
                  {3000, 0x1000, 20 * kMiB - 4096, model::kNone, Action::kAlloc}};
  model::Allocators out;
  replay_blocks(trace, {}, out);
  ASSERT_EQ(out.allocations.size(), 2u);
  EXPECT_EQ(out.allocations[0].bytes, 12 * kMiB);
  EXPECT_EQ(out.allocations[0].end_ns, 2000);
  EXPECT_EQ(out.allocations[1].bytes, 20 * kMiB);
  EXPECT_EQ(out.allocations[1].end_ns, model::kOpen);
  EXPECT_EQ(out.allocators[0].sizes, model::BlockSizes::kReplayed);
}

TEST(Snapshot, OfARecordedProgram) {
  const auto session =
      kReader.read(std::string(base::source_dir) + "/tests/golden/memory/oom.pickle", {});
  ASSERT_TRUE(session) << session.error().what;
  const model::Allocators& memory = session->allocators;
  ASSERT_EQ(memory.allocators.size(), 1u);
  EXPECT_EQ(memory.allocators[0].sizes, model::BlockSizes::kReplayed);
  ASSERT_EQ(memory.failures.size(), 3u);
  EXPECT_EQ(memory.failures[0].bytes, std::uint64_t{4} << 30);
  std::uint64_t older = 0, in_use = 0;
  for (const model::Allocation& allocation : memory.allocations) {
    if (allocation.older)
      older += allocation.bytes;
    if (allocation.end_ns == model::kOpen)
      in_use += allocation.bytes;
  }
  EXPECT_EQ(older, 4461568u) << "the parameters of its two layers";
  EXPECT_EQ(in_use, 39064576u) << "what torch.cuda.memory_allocated() returned";
}

TEST(Snapshot, OtherPicklesAreRefused) {
  EXPECT_EQ(read_bytes("\x80\x04K\x01.", "file").error().what,
            "a pickle that is no snapshot of PyTorch's allocator");
  EXPECT_EQ(read_bytes("\x80\x04}\x8c\x08segments]s.", "file").error().what,
            "a snapshot of a program that used no GPU memory");
}

}  // namespace pickle_test
}  // namespace rangescope::read::snapshot
