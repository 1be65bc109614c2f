// What a process of its own records, and reads back what it wrote, for unit tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "inject/nvtx/writer.hpp"
#include "wire/names.hpp"
#include "wire/native.hpp"

namespace rangescope::inject::testing {

using Lines = std::vector<std::string>;

template <class Value>
Value value_in(const std::string& bytes, std::size_t offset) {
  Value value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The records of a stream, with names in place of their ids.
struct Stream {
  Lines lines;
  std::vector<wire::native::Type> types;
  std::size_t chunks = 0, strings = 0;
};

/// A capture, read by the description in wire/native.hpp.
class Capture {
 public:
  explicit Capture(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    // The file is sparse, and as large as it may become.
    bytes_.resize(sizeof header);
    in.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    header = value_in<wire::native::FileHeader>(bytes_, 0);
    const std::size_t head_bytes = bytes_.size();
    bytes_.resize(std::max<std::size_t>(head_bytes, header.used_bytes));
    in.read(bytes_.data() + head_bytes, static_cast<std::streamsize>(bytes_.size() - head_bytes));
    for (std::size_t offset = header.header_bytes; offset < header.used_bytes;) {
      const auto chunk = value_in<wire::native::ChunkHeader>(bytes_, offset);
      EXPECT_EQ(chunk.magic, wire::native::kChunkMagic);
      if (chunk.magic != wire::native::kChunkMagic || chunk.bytes == 0)
        return;
      Stream& stream = streams[chunk.stream];
      EXPECT_EQ(chunk.sequence, stream.chunks++);
      read_records(stream, chunk.stream, offset + sizeof chunk, offset + chunk.bytes);
      offset += chunk.bytes;
    }
  }
  [[nodiscard]] std::uint64_t dropped(wire::native::Drop why) const {
    return header.dropped[static_cast<std::uint32_t>(why)];
  }
  wire::native::FileHeader header{};
  std::map<std::uint32_t, Stream> streams;
  std::map<std::uint32_t, std::map<std::uint32_t, std::string>> names;  ///< by stream and id

 private:
  void read_records(Stream& stream, std::uint32_t number, std::size_t offset, std::size_t end) {
    while (offset + sizeof(wire::native::RecordHeader) <= end) {
      const auto head = value_in<wire::native::RecordHeader>(bytes_, offset);
      if (head.words == 0)
        return;
      stream.types.push_back(head.type);
      const std::string line = line_of(stream, number, head, offset);
      if (!line.empty())
        stream.lines.push_back(line);
      offset += std::size_t{head.words} * 8;
    }
  }
  [[nodiscard]] std::string text_at(std::size_t offset) const {
    return bytes_.substr(offset + 16, value_in<std::uint64_t>(bytes_, offset + 8));
  }
  [[nodiscard]] std::uint32_t number_at(std::size_t offset) const {
    return value_in<std::uint32_t>(bytes_, offset);
  }
  [[nodiscard]] std::string attributes_at(std::uint8_t flags, std::size_t offset) const {
    std::string text;
    if ((flags & wire::native::kHasScope) != 0) {
      text += " domain " + std::to_string(number_at(offset)) + " category " +
              std::to_string(number_at(offset + 4));
      offset += 8;
    }
    if ((flags & wire::native::kHasColor) != 0) {
      text += " color " + std::to_string(number_at(offset));
      offset += 8;
    }
    if ((flags & wire::native::kHasPayload) != 0)
      text += " payload " + std::to_string(number_at(offset)) + ":" +
              std::to_string(value_in<std::uint64_t>(bytes_, offset + 8));
    if ((flags & wire::native::kRegistered) != 0)
      text += " registered";
    if ((flags & wire::native::kBefore) != 0)
      text += " begun before";
    return text;
  }
  std::string line_of(Stream& stream,
                      std::uint32_t number,
                      const wire::native::RecordHeader& head,
                      std::size_t offset) {
    using wire::native::Type;
    std::map<std::uint32_t, std::string>& known = names[number];
    const std::string value = std::to_string(head.value);
    switch (head.type) {
      case Type::kString:
        ++stream.strings;
        known[head.value] = text_at(offset);
        return "";
      case Type::kDomain: return "domain " + value + " is " + text_at(offset);
      case Type::kThread: return "";
      case Type::kShortPush: {
        const auto name = wire::native::ShortPush::of(head.value).name;
        return "push " + known[name] + attributes_at(head.flags, 0);
      }
      case Type::kPush: return "push " + known[head.value] + attributes_at(head.flags, offset + 16);
      case Type::kShortPop: return head.flags == 0 ? "pop" : "pop " + std::to_string(head.flags);
      case Type::kPop: return head.value == 0 ? "pop" : "pop " + value;
      case Type::kMark: return "mark " + known[head.value] + attributes_at(head.flags, offset + 16);
      case Type::kStart:
        return "start " + known[head.value] + " " +
               std::to_string(value_in<std::uint64_t>(bytes_, offset + 16)) +
               attributes_at(head.flags, offset + 24);
      case Type::kEnd: return "end " + std::to_string(value_in<std::uint64_t>(bytes_, offset + 16));
      case Type::kCategory:
        return "category " + value + " of domain " + std::to_string(number_at(offset + 8)) +
               " is " + known[number_at(offset + 12)];
      case Type::kThreadName: return "thread " + value + " is " + known[number_at(offset + 12)];
      case Type::kResource:
        return "resource " + value + ":" +
               std::to_string(value_in<std::uint64_t>(bytes_, offset + 16)) + " is " +
               known[number_at(offset + 12)];
      case Type::kGap:
        return "gap in " + value + ": open " + std::to_string(number_at(offset + 16)) +
               ", dropped " + std::to_string(number_at(offset + 20));
      case Type::kSchema: return schema_line(known, value, offset);
      case Type::kPayload: return "payload of " + value + payload_bytes(offset);
      default: return "?";
    }
  }
  std::string schema_line(std::map<std::uint32_t, std::string>& known,
                          const std::string& id,
                          std::size_t offset) {
    std::string line = "schema " + id + ":";
    const auto count = value_in<std::uint64_t>(bytes_, offset + 8);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto entry = value_in<wire::native::SchemaEntry>(bytes_, offset + 16 + 16 * i);
      line += " " + known[entry.string] + "@" + std::to_string(entry.offset) + "/" +
              std::to_string(entry.bytes);
    }
    return line;
  }
  [[nodiscard]] std::string payload_bytes(std::size_t offset) const {
    std::string line = " in " + std::to_string(number_at(offset + 8)) + ":";
    for (std::uint32_t i = 0; i < number_at(offset + 12); ++i)
      line += " " + std::to_string(static_cast<unsigned char>(bytes_[offset + 16 + i]));
    return line;
  }

  std::string bytes_;
};

/// Runs code in a child, which records into a folder of its own. The library's state is that of a
/// process: here nothing of it is used.
class Recording : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder()); }
  [[nodiscard]] std::filesystem::path folder() const { return folder_; }

  /// What `body` returns. In the child the settings are those of a recording into folder().
  std::string in_child(const std::function<std::string()>& body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv(wire::kDir, folder_, 1);
      const std::string text = body();
      const bool is_written =
          ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
      ::_exit(is_written ? 0 : 1);
    }
    ::close(ends[1]);
    std::string text;
    char part[256];
    for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return text;
  }
  /// The same once recording has begun.
  std::string recorded(const std::function<std::string()>& body) {
    return in_child([&] { return writer_start() ? body() : "recording did not begin"; });
  }
  void record(const std::function<void()>& body) {
    EXPECT_EQ(recorded([&] {
                body();
                return "";
              }),
              "");
  }
  [[nodiscard]] std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().extension() == wire::native::kSuffix)
        out.push_back(entry.path());
    return out;
  }
  /// The only capture.
  [[nodiscard]] Capture capture() const {
    const auto all = files();
    EXPECT_EQ(all.size(), 1u);
    return Capture(all.at(0));
  }
  /// Of its only stream.
  [[nodiscard]] Lines lines() const {
    const Capture only = capture();
    EXPECT_EQ(only.streams.size(), 1u);
    return only.streams.empty() ? Lines{} : only.streams.begin()->second.lines;
  }

 private:
  char folder_[64] = "/tmp/rangescope-recording-XXXXXX";
};

/// The text must outlive the event.
inline Event named(const char* text) {
  Event event;
  event.name = name_of(text, std::strlen(text));
  return event;
}
inline int push(const std::string& name) {
  Event event;
  event.name = name_of(name.data(), name.size());
  return record_push(event);
}

}  // namespace rangescope::inject::testing
