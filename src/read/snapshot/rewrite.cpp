#include "read/snapshot/rewrite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "read/snapshot/opcodes.hpp"

namespace rangescope::read::snapshot {
namespace {

/// What follows an opcode: bytes of a fixed number, or a length and so many bytes.
struct Operand {
  std::size_t fixed_bytes = 0;
  std::size_t length_bytes = 0;
  bool is_text = false;
};

constexpr std::size_t kFrameLengthBytes = 8;

/// Nothing of what is no data opcode.
std::optional<Operand> operand_of(unsigned char opcode) {
  switch (opcode) {
    case kMarkOpcode:
    case kStopOpcode:
    case kPop:
    case kPopMark:
    case kDup:
    case kNoneOpcode:
    case kAppend:
    case kDictOpcode:
    case kEmptyDict:
    case kAppends:
    case kListOpcode:
    case kEmptyList:
    case kSetItem:
    case kTupleOpcode:
    case kEmptyTuple:
    case kSetItems:
    case kTuple1:
    case kTuple2:
    case kTuple3:
    case kNewTrue:
    case kNewFalse:
    case kEmptySet:
    case kAddItems:
    case kFrozenSet:
    case kMemoize: return Operand{};
    case kBinInt1:
    case kBinGet:
    case kBinPut:
    case kProto: return Operand{.fixed_bytes = 1};
    case kBinInt2: return Operand{.fixed_bytes = 2};
    case kBinInt:
    case kLongBinGet:
    case kLongBinPut: return Operand{.fixed_bytes = 4};
    case kBinFloat: return Operand{.fixed_bytes = 8};
    case kFrame: return Operand{.fixed_bytes = kFrameLengthBytes};
    case kLong1:
    case kShortBinBytes: return Operand{.length_bytes = 1};
    case kLong4:
    case kBinBytes: return Operand{.length_bytes = 4};
    case kBinBytes8:
    case kByteArray8: return Operand{.length_bytes = 8};
    case kShortBinUnicode:
    case kShortBinString: return Operand{.length_bytes = 1, .is_text = true};
    case kBinUnicode:
    case kBinString: return Operand{.length_bytes = 4, .is_text = true};
    case kBinUnicode8: return Operand{.length_bytes = 8, .is_text = true};
    default: return std::nullopt;
  }
}

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> 8 * i & 0xff);
  return out;
}

/// The opcode with its length and text.
std::string text_opcode_of(unsigned char opcode,
                           std::size_t length_bytes,
                           const std::string& text) {
  constexpr std::size_t kMostShort = 255;
  if (length_bytes == 1 && text.size() > kMostShort) {
    opcode = opcode == kShortBinUnicode ? kBinUnicode : kBinString;
    length_bytes = 4;
  }
  return static_cast<char>(opcode) + little_endian(text.size(), length_bytes) + text;
}

class TextRewriter {
 public:
  TextRewriter(std::string_view pickle, const std::string& name, const ReplaceText& replace)
      : pickle_(pickle), name_(name), replace_(replace) {}

  base::Result<std::optional<std::string>> run() {
    for (bool has_stopped = false; !has_stopped;) {
      if (at_ >= frame_end_)
        end_frame();
      opcode_at_ = at_;
      if (at_ >= pickle_.size())
        return fail("ends before its STOP");
      const auto opcode = static_cast<unsigned char>(pickle_[at_++]);
      const std::optional<Operand> operand = operand_of(opcode);
      if (!operand)
        return fail("has an opcode that is no data");
      if (!take_operand(opcode, *operand))
        return fail("breaks off");
      has_stopped = opcode == kStopOpcode;
    }
    end_frame();
    if (edits_.empty())
      return std::optional<std::string>();
    return std::optional(edited());
  }

 private:
  /// Bytes of the pickle that are replaced.
  struct Edit {
    std::size_t offset = 0, size = 0;
    std::string bytes;
  };

  [[nodiscard]] base::Result<std::optional<std::string>> fail(const char* what) const {
    return base::fail(base::Code::kBadData,
                      std::string("the pickle ") + what,
                      fmt::format("{}: byte {}", name_, opcode_at_));
  }

  [[nodiscard]] std::uint64_t number_at(std::size_t offset, std::size_t bytes) const {
    std::uint64_t number = 0;
    for (std::size_t i = bytes; i-- > 0;)
      number = number << 8 | static_cast<unsigned char>(pickle_[offset + i]);
    return number;
  }

  [[nodiscard]] std::size_t left() const { return pickle_.size() - at_; }

  /// False where the pickle ends before it.
  [[nodiscard]] bool take_operand(unsigned char opcode, const Operand& operand) {
    if (left() < operand.fixed_bytes + operand.length_bytes)
      return false;
    if (opcode == kFrame)
      begin_frame();
    at_ += operand.fixed_bytes;
    if (operand.length_bytes == 0)
      return true;
    const std::uint64_t length = number_at(at_, operand.length_bytes);
    at_ += operand.length_bytes;
    if (length > left())
      return false;
    if (operand.is_text)
      edit_text(opcode, operand.length_bytes, pickle_.substr(at_, length));
    at_ += length;
    return true;
  }

  void begin_frame() {
    end_frame();
    frame_length_at_ = at_;
    const std::size_t begin = at_ + kFrameLengthBytes;
    const std::uint64_t length = number_at(at_, kFrameLengthBytes);
    frame_end_ = begin + std::min<std::uint64_t>(length, pickle_.size() - begin);
    frame_bytes_ = length;
  }

  /// Its length, where texts in it were replaced.
  void end_frame() {
    if (frame_growth_ != 0) {
      const std::uint64_t length = frame_bytes_ + static_cast<std::uint64_t>(frame_growth_);
      edits_.push_back(
          {frame_length_at_, kFrameLengthBytes, little_endian(length, kFrameLengthBytes)});
    }
    frame_growth_ = 0;
    frame_end_ = kNoFrame;
  }

  void edit_text(unsigned char opcode, std::size_t length_bytes, std::string_view text) {
    const auto [found, is_new] = replacements_.try_emplace(text);
    if (is_new)
      found->second = replace_(text);
    if (!found->second)
      return;
    Edit& edit = edits_.emplace_back();
    edit.offset = opcode_at_;
    edit.size = 1 + length_bytes + text.size();
    edit.bytes = text_opcode_of(opcode, length_bytes, *found->second);
    if (frame_end_ == kNoFrame)
      return;
    frame_growth_ +=
        static_cast<std::int64_t>(edit.bytes.size()) - static_cast<std::int64_t>(edit.size);
  }

  [[nodiscard]] std::string edited() {
    std::ranges::sort(edits_, {}, &Edit::offset);
    std::string out;
    std::size_t copied = 0;
    for (const Edit& edit : edits_) {
      out += pickle_.substr(copied, edit.offset - copied);
      out += edit.bytes;
      copied = edit.offset + edit.size;
    }
    return out += pickle_.substr(copied);
  }

  static constexpr std::size_t kNoFrame = ~std::size_t{0};
  std::string_view pickle_;
  const std::string& name_;
  const ReplaceText& replace_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::size_t frame_length_at_ = 0, frame_end_ = kNoFrame;
  std::uint64_t frame_bytes_ = 0;
  std::int64_t frame_growth_ = 0;
  std::vector<Edit> edits_;
  std::unordered_map<std::string_view, std::optional<std::string>> replacements_;
};

}  // namespace

base::Result<std::optional<std::string>> with_texts(std::string_view pickle,
                                                    const std::string& name,
                                                    const ReplaceText& replace) {
  return TextRewriter(pickle, name, replace).run();
}

}  // namespace rangescope::read::snapshot
