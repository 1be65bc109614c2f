// An optional value that lies on the heap: where it is absent it takes a pointer's room, not the
// value's.
#pragma once

#include <memory>
#include <optional>
#include <utility>

namespace rangescope::base {

/// Copies and compares with nothing as std::optional does; moved from, it is empty.
template <class T>
class Held {
 public:
  Held() = default;
  Held(std::nullopt_t) {}
  Held(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Held(std::optional<T> value) {
    if (value)
      value_ = std::make_unique<T>(std::move(*value));
  }
  Held(const Held& other) {
    if (other)
      value_ = std::make_unique<T>(*other);
  }
  Held(Held&&) noexcept = default;
  Held& operator=(Held other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Held() = default;

  [[nodiscard]] bool has_value() const noexcept { return value_ != nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] T& operator*() noexcept { return *value_; }
  [[nodiscard]] const T& operator*() const noexcept { return *value_; }
  T* operator->() noexcept { return value_.get(); }
  const T* operator->() const noexcept { return value_.get(); }
  T& emplace() { return *(value_ = std::make_unique<T>()); }
  void reset() noexcept { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace rangescope::base
