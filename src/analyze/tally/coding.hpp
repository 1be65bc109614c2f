// Numbers as analyze/tally/file.cpp writes and reads them: one list of fields, visited by a Writer
// and by a Reader, is the format.
//
// A Reader checks all that it reads: after the first wrong byte it is bad(), and every list is
// empty. Five million regions of a hundred numbers pass through it, so what reads one is inlined,
// but for the rare cases.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "analyze/tally/digest.hpp"

namespace rangescope::analyze::tally::coding {

inline constexpr std::uint32_t kVersion = 5;
inline constexpr std::size_t kMostBins = 1 << 25;  // of all sketches of a file

[[nodiscard]] inline std::uint64_t to_zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

class Writer {
 public:
  static constexpr bool kReads = false;
  std::string bytes;

  void number(std::uint64_t value) {
    for (; value > 127; value >>= 7)
      bytes.push_back(static_cast<char>(value | 128));
    bytes.push_back(static_cast<char>(value));
  }
  /// Of the next fields, 63 at most, only those are written that differ from what is expected.
  void begin_group() { group_ = bytes.size(), fields_ = 0, differ_ = 0, grouped_ = true; }
  void end_group() {
    const std::string fields = bytes.substr(group_);
    bytes.resize(group_);
    number(differ_);
    bytes += fields;
    grouped_ = false;
  }
  template <class T>
  void field(const T& value, std::uint64_t expected = 0) {
    if (expected == 0) {
      if (differs(value != T{}))
        number(static_cast<std::uint64_t>(value));
      return;
    }
    const auto unsigned_value = static_cast<std::uint64_t>(value);
    if (differs(unsigned_value != expected))
      number(to_zigzag(static_cast<std::int64_t>(unsigned_value - expected)));
  }
  void flag(bool value) { field(value); }
  /// `value` as the difference to `base`.
  void near(std::int64_t value, std::int64_t base) {
    if (differs(value != base))
      number(to_zigzag(minus(value, base)));
  }
  /// The same of what may be unknown; never negative, but for `own` times.
  void sum(std::int64_t value, std::int64_t base, bool = false) {
    if (base == kUnknown)
      base = 0;
    if (differs(value != base))
      number(value == kUnknown ? 0 : to_zigzag(minus(value, base)) + 1);
  }
  void wide(UnsignedWide value) {
    const bool is_large = value >> 63 != 0;
    if (!is_large) {
      number(static_cast<std::uint64_t>(value) << 1);
      return;
    }
    number(1);
    number(static_cast<std::uint64_t>(value));
    number(static_cast<std::uint64_t>(value >> 64));
  }
  void text(const std::string& value) {
    number(value.size());
    bytes += value;
  }
  void real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 64; i += 8)
      bytes.push_back(static_cast<char>(bits >> i));
  }
  template <class T>
  void list(const std::vector<T>& items, std::size_t, std::size_t = 1) {
    number(items.size());
  }
  void index(std::uint32_t value, std::size_t) { number(value); }
  void index_or_none(std::uint32_t value, std::size_t) {
    number((value + std::uint64_t{1}) & 0xffffffffu);
  }
  void check(bool) {}

 private:
  [[nodiscard]] static std::int64_t minus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }
  bool differs(bool it_does) {
    if (!grouped_)
      return true;
    differ_ |= static_cast<std::uint64_t>(it_does) << fields_++;
    return it_does;
  }

  std::size_t group_ = 0;
  std::uint32_t fields_ = 0;
  std::uint64_t differ_ = 0;
  bool grouped_ = false;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  [[nodiscard]] bool bad() const { return bad_; }
  [[nodiscard]] bool at_end() const { return at_ == end_; }

  [[gnu::always_inline]] std::uint64_t number() {
    if (end_ - at_ < 2)
      return longer_number();
    const std::uint64_t first = byte(0), second = byte(1);
    if (first < 128) {
      ++at_;
      return first;
    }
    if (second >= 128)
      return longer_number();
    at_ += 2;
    return (first & 127) | second << 7;
  }
  [[gnu::noinline]] std::uint64_t longer_number() {
    if constexpr (std::endian::native == std::endian::little) {
      std::uint64_t word = 0;
      if (end_ - at_ >= 8)
        std::memcpy(&word, at_, 8);
      if (const std::uint64_t stops = ~word & 0x8080808080808080; end_ - at_ >= 8 && stops != 0) {
        at_ += (std::countr_zero(stops) >> 3) + 1;
        word &= stops ^ (stops - 1);  // its bytes, and of each the lower seven bits moved together
        word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
        word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
        return (word & 0x0fffffff) | (word & 0x0fffffff00000000) >> 4;
      }
    }
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128)
        return value;
    }
    fail();
    return 0;
  }
  [[gnu::always_inline]] void begin_group() {
    differ_ = static_cast<std::int64_t>(number() & INT64_MAX);
  }
  void end_group() { differ_ = -1; }
  template <class T>
  [[gnu::always_inline]] void field(T& value, std::uint64_t expected = 0) {
    std::uint64_t read = expected;
    if (differs())
      read = expected == 0 ? number() : from_zigzag(number()) + expected;
    value = static_cast<T>(read);
    if (static_cast<std::uint64_t>(value) != read)
      fail();
    if constexpr (std::is_signed_v<T>)
      check(value >= 0);
  }
  [[gnu::always_inline]] void flag(bool& value) {
    const std::uint64_t read = differs() ? number() : 0;
    check(read < 2);
    value = read == 1;
  }
  [[gnu::always_inline]] void near(std::int64_t& value, std::int64_t base) {
    value = base;
    if (differs())
      value = static_cast<std::int64_t>(from_zigzag(number()) + static_cast<std::uint64_t>(base));
  }
  [[gnu::always_inline]] void sum(std::int64_t& value, std::int64_t base, bool negative = false) {
    if (base == kUnknown)
      base = 0;
    value = base;
    if (!differs())
      return;
    std::uint64_t read = number();
    if (read-- == 0) {
      value = kUnknown;
      return;
    }
    value = static_cast<std::int64_t>(from_zigzag(read) + static_cast<std::uint64_t>(base));
    check(value >= 0 || (negative && value != kUnknown));
  }
  [[gnu::always_inline]] void wide(UnsignedWide& value) {
    std::uint64_t low = number();
    value = low >> 1;
    if ((low & 1) == 0)
      return;
    low = number();
    value = static_cast<UnsignedWide>(number()) << 64 | low;
  }
  /// So many bytes, or none when there are fewer.
  [[gnu::always_inline]] const std::uint8_t* raw(std::size_t count) {
    if (count > static_cast<std::size_t>(end_ - at_))
      return fail(), nullptr;
    at_ += count;
    return reinterpret_cast<const std::uint8_t*>(at_ - count);
  }
  [[nodiscard]] std::string_view rest() const {
    return {at_, static_cast<std::size_t>(end_ - at_)};
  }
  void text(std::string& value) {
    const std::uint64_t size = number();
    if (size > static_cast<std::uint64_t>(end_ - at_))
      return fail();
    value.assign(at_, size);
    at_ += size;
  }
  void real(double& value) {
    if (end_ - at_ < 8)
      return fail();
    std::uint64_t bits = 0;
    for (int i = 0; i < 64; i += 8)
      bits |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(*at_++)) << i;
    value = std::bit_cast<double>(bits);
    check(value >= 0 && value < 1e30);
  }
  /// How many items follow, each of at least `bytes`.
  [[gnu::always_inline]] std::size_t count(std::size_t most, std::size_t bytes) {
    const std::uint64_t count = number();
    check(count <= most && count <= static_cast<std::uint64_t>(end_ - at_) / bytes);
    return bad_ ? 0 : count;
  }
  template <class T>
  void list(std::vector<T>& items, std::size_t most, std::size_t bytes = 1) {
    items.resize(count(most, bytes));
  }
  [[gnu::always_inline]] void index(std::uint32_t& value, std::size_t below) {
    const std::uint64_t read = differs() ? number() : 0;
    check(read < below);
    value = static_cast<std::uint32_t>(read);
  }
  void index_or_none(std::uint32_t& value, std::size_t below) {
    const std::uint64_t read = number();
    check(read <= below);
    value = read == 0 ? kNone : static_cast<std::uint32_t>(read - 1);
  }
  [[gnu::always_inline]] void check(bool holds) {
    if (!holds)
      fail();
  }
  void bins(std::size_t count) {
    bins_ += count;
    check(bins_ <= kMostBins);
  }

 private:
  [[gnu::noinline]] void fail() {
    bad_ = true;
    at_ = end_;  // every loop ends
  }
  [[nodiscard]] std::uint64_t byte(int ahead) const {
    return static_cast<std::uint8_t>(at_[ahead]);
  }
  [[nodiscard]] static std::uint64_t from_zigzag(std::uint64_t read) {
    return read >> 1 ^ (~(read & 1) + 1);
  }
  [[gnu::always_inline]] bool differs() {
    const bool it_does = (differ_ & 1) != 0;
    differ_ >>= 1;  // outside groups all bits are set, and stay so
    return it_does;
  }

  const char *at_, *end_;
  std::int64_t differ_ = -1;
  std::size_t bins_ = 0;
  bool bad_ = false;
};

}  // namespace rangescope::analyze::tally::coding
