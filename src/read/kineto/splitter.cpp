#include "read/kineto/splitter.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/unpacked.hpp"

namespace rangescope::read::kineto {
namespace {

constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr std::size_t kMostPiece = std::size_t{256} << 20;  ///< longer ones are no event

constexpr std::array<bool, 256> table_of(std::string_view characters) {
  std::array<bool, 256> table{};
  for (const char c : characters)
    table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr auto kInside = table_of("\"{}[]");           ///< what matters inside an object or array
constexpr auto kOutside = table_of("\"{}[], \n\r\t");  ///< and where a scalar may end

constexpr const char* kEndsEarly = "it ends early";

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

base::Result<Splitter> Splitter::open(const std::filesystem::path& path) {
  Splitter out;
  out.file_.reset(::gzopen(path.c_str(), "rb"));
  if (out.file_ == nullptr)
    return base::fail(base::Code::kNoInput, "cannot be opened", path.string());
  ::gzbuffer(out.file_.get(), 1 << 20);
  std::error_code error;
  if (const auto bytes = std::filesystem::file_size(path, error); !error)
    out.most_ = base::most_unpacked(bytes);
  return out;
}

Splitter Splitter::of(std::string_view text) {
  Splitter out;
  out.memory_ = text;
  return out;
}

std::string Splitter::early_end() const {
  if (broken_ == kEndsEarly)
    return "the trace ends early";
  return "the trace ends early, " + broken_;
}

bool Splitter::fail(std::string what) {
  if (broken_.empty())
    broken_ = std::move(what);  // the first gives the reason
  state_ = State::kEnd;
  return false;
}

/// Reads a block behind what is there; bytes before `keep` are dropped, so that places move by
/// `keep`.
bool Splitter::fill(std::size_t keep) {
  if (keep > 0) {
    std::memmove(buffer_.data(), buffer_.data() + keep, size_ - keep);
    size_ -= keep;
    position_ -= keep;
    dropped_ += keep;
  }
  const std::size_t block = file_ != nullptr ? kBlock : std::min(memory_.size(), kBlock);
  if (buffer_.size() < size_ + block + kPadding)
    buffer_.resize(size_ + block + kPadding);
  std::size_t got = 0;
  if (file_ != nullptr) {
    const int read = ::gzread(file_.get(), buffer_.data() + size_, static_cast<unsigned>(block));
    damaged_ |= read < 0;
    if (read > 0)
      got = static_cast<std::size_t>(read);
  } else {
    got = block;
    if (got > 0)
      std::memcpy(buffer_.data() + size_, memory_.data(), got);
    memory_.remove_prefix(got);
  }
  size_ += got;
  if (dropped_ + size_ > most_)
    return fail("it unpacks to more than " + std::to_string(most_) + " bytes");
  std::memset(buffer_.data() + size_, 0, kPadding);
  return got > 0;
}

/// Moves to what is no blank; what lies before it is dropped when a block is read.
bool Splitter::skip_blanks(std::size_t& position) {
  for (;;) {
    while (position < size_ && is_blank(buffer_[position]))
      ++position;
    if (position < size_)
      return true;
    position_ = position;
    if (!fill(position_))
      return false;
    position = position_;
  }
}

/// `position`: the opening quote; afterwards the place behind the closing one. Bytes from `begin`
/// on are kept.
bool Splitter::string_end(std::size_t& begin, std::size_t& position) {
  std::size_t search_begin = position + 1;
  for (;;) {
    const void* found = nullptr;
    if (search_begin < size_)
      found = std::memchr(buffer_.data() + search_begin, '"', size_ - search_begin);
    if (found == nullptr) {
      const std::size_t behind = size_ - begin, open = position - begin;
      if (size_ - begin > kMostPiece)
        return fail("a string has no end");
      position_ = begin;
      const bool has_more = fill(begin);
      begin = 0;
      position = open;
      search_begin = std::max(position + 1, behind);
      if (!has_more)
        return false;
      continue;
    }
    const auto quote = static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
    std::size_t slashes = 0;
    while (quote - slashes - 1 > position && buffer_[quote - slashes - 1] == '\\')
      ++slashes;
    if (slashes % 2 == 0) {
      position = quote + 1;
      return true;
    }
    search_begin = quote + 1;
  }
}

/// The value that begins at position_, which moves behind it.
bool Splitter::value(std::string_view& text) {
  std::size_t begin = position_, position = position_, depth = 0;
  for (;;) {
    const auto& telling = depth > 0 ? kInside : kOutside;
    for (const char* data = buffer_.data();
         position < size_ && !telling[static_cast<unsigned char>(data[position])];)
      ++position;
    if (position >= size_) {
      if (size_ - begin > kMostPiece)
        return fail("a value has no end");
      const std::size_t length = position - begin;
      position_ = begin;
      const bool has_more = fill(begin);
      begin = 0;
      position = length;
      if (has_more)
        continue;
      return false;
    }
    const char c = buffer_[position];
    if (c == '"') {
      if (!string_end(begin, position))
        return false;
    } else if (c == '{' || c == '[') {
      ++depth;
      ++position;
      continue;
    } else if (c == '}' || c == ']') {
      if (depth == 0)
        break;  // the end of what holds the scalar
      --depth;
      ++position;
    } else if (depth == 0) {
      break;  // a comma or a blank behind a scalar
    } else {
      ++position;
      continue;
    }
    if (depth == 0)
      break;
  }
  if (position == begin)
    return fail("a value is missing");
  text = std::string_view(buffer_).substr(begin, position - begin);
  position_ = position;
  return true;
}

/// Moves to the next member or event, or to the bracket that closes them.
bool Splitter::next_item(std::size_t& position, bool after_comma) {
  if (!skip_blanks(position))
    return fail(kEndsEarly);
  if (buffer_[position] != ',' || !after_comma)
    return true;
  return skip_blanks(++position) || fail(kEndsEarly);
}

bool Splitter::member(Piece& piece) {
  std::size_t position = position_;
  if (!next_item(position, !first_))
    return false;
  first_ = false;
  if (buffer_[position] == '}') {
    position_ = position + 1;
    state_ = State::kEnd;
    return false;
  }
  if (buffer_[position] != '"')
    return fail("the name of a member is missing");
  std::size_t begin = position;
  if (!string_end(begin, position))
    return fail(kEndsEarly);
  key_ = buffer_.substr(begin + 1, position - begin - 2);
  if (!skip_blanks(position))
    return fail(kEndsEarly);
  if (buffer_[position] != ':')
    return fail("a colon is missing");
  ++position;
  if (!skip_blanks(position))
    return fail(kEndsEarly);
  position_ = position;
  if (key_ == "traceEvents" && buffer_[position] == '[') {
    ++position_;
    state_ = State::kEvents;
    first_ = true;
    return true;
  }
  if (!value(piece.text))
    return fail(kEndsEarly);
  piece.key = key_;
  return true;
}

bool Splitter::event(Piece& piece) {
  std::size_t position = position_;
  if (!next_item(position, true))
    return false;
  position_ = position;
  if (buffer_[position] == ']') {
    ++position_;
    state_ = array_root_ ? State::kEnd : State::kMembers;
    first_ = false;
    piece = {};
    return !array_root_;
  }
  piece.key = {};
  if (!value(piece.text))
    return fail(kEndsEarly);
  return true;
}

bool Splitter::next(Piece& piece) {
  for (;;) {
    piece = {};
    if (state_ == State::kEnd)
      return false;
    if (state_ == State::kBegin) {
      std::size_t position = position_;
      if (size_ == 0)
        (void)fill(0);
      if (std::string_view(buffer_).substr(0, 3) == "\xef\xbb\xbf")
        position = 3;
      if (!skip_blanks(position))
        return fail(damaged_ ? "its compressed data are damaged" : "it is empty");
      array_root_ = buffer_[position] == '[';
      if (!array_root_ && buffer_[position] != '{')
        return fail("it is not JSON");
      position_ = position + 1;
      state_ = array_root_ ? State::kEvents : State::kMembers;
      continue;
    }
    const bool has_piece = state_ == State::kMembers ? member(piece) : event(piece);
    if (!has_piece) {
      if (!broken_.empty() && damaged_)
        broken_ = "its compressed data are cut or damaged";
      return false;
    }
    if (!piece.text.empty())
      return true;
  }
}

}  // namespace rangescope::read::kineto
