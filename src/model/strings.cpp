#include "model/strings.hpp"

#include <cstring>

namespace rangescope::model {
namespace {
constexpr std::size_t kBlock = 64 * 1024;
}

Strings::Strings() {
  views_.emplace_back();
  ids_.emplace(std::string_view{}, 0);
}

std::string_view Strings::store(std::string_view text) {
  if (text.size() > block_left_) {
    const std::size_t size = text.size() > kBlock / 4 ? text.size() : kBlock;
    blocks_.push_back(std::make_unique<char[]>(size));
    block_at_ = blocks_.back().get();
    block_left_ = size;
  }
  std::memcpy(block_at_, text.data(), text.size());
  const std::string_view stored(block_at_, text.size());
  block_at_ += text.size();
  block_left_ -= text.size();
  return stored;
}

StringId Strings::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end())
    return found->second;
  const auto id = static_cast<StringId>(views_.size());
  const std::string_view stored = store(text);
  views_.push_back(stored);
  ids_.emplace(stored, id);
  return id;
}

StringId Strings::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? 0 : found->second;
}

}  // namespace rangescope::model
