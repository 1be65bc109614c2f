// Interned text: every name of a session is stored once and referred to by a 32-bit id.
//
// Names are bytes as the program gave them: nothing says they are UTF-8 (report/ makes them
// printable). Id 0 is "".
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rangescope::model {

using StringId = std::uint32_t;

class Strings {
 public:
  Strings();
  Strings(Strings&&) noexcept = default;
  Strings& operator=(Strings&&) noexcept = default;

  /// The id of `text`, adding it when it is new. O(length) expected.
  StringId intern(std::string_view text);
  /// The id of `text`, or 0 when it was never interned (and for "").
  [[nodiscard]] StringId find(std::string_view text) const;
  /// The text of `id`; "" for an id that was never given out. Views stay valid as long as the
  /// table.
  [[nodiscard]] std::string_view view(StringId id) const {
    return id < views_.size() ? views_[id] : std::string_view{};
  }
  [[nodiscard]] std::size_t size() const { return views_.size(); }

 private:
  std::string_view store(std::string_view text);

  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0;
  char* block_at_ = nullptr;
  std::vector<std::string_view> views_;
  std::unordered_map<std::string_view, StringId> ids_;
};

}  // namespace rangescope::model
