// NVML, loaded where there is one: functions are called by their names, and what a version lacks has no answer.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

namespace rangescope::base {

class Nvml {
 public:
  using Device = void*;
  static constexpr int kNoFunction = 13;      ///< NVML_ERROR_FUNCTION_NOT_FOUND
  static constexpr unsigned kTextBytes = 96;  ///< NVML_DEVICE_NAME_V2_BUFFER_SIZE

  explicit Nvml(const char* library = "libnvidia-ml.so.1") : handle_(::dlopen(library, RTLD_NOW | RTLD_LOCAL), close) {}
  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// The answer of a function, whose arguments must have its very types; kNoFunction where this version has none of
  /// that name.
  template <class... Arguments>
  [[nodiscard]] int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(handle_.get(), name));
    return function != nullptr ? function(arguments...) : kNoFunction;
  }
  /// What a function writes into a buffer; "" where there is no answer.
  template <class... Arguments>
  [[nodiscard]] std::string text(const char* name, Arguments... arguments) const {
    char bytes[kTextBytes] = {};
    return call(name, arguments..., static_cast<char*>(bytes), kTextBytes - 1) == 0 ? bytes : "";
  }
  [[nodiscard]] std::string words_of(int code) const {
    const auto function = reinterpret_cast<const char* (*)(int)>(::dlsym(handle_.get(), "nvmlErrorString"));
    const char* words = function != nullptr ? function(code) : nullptr;
    return words != nullptr ? words : "NVML error " + std::to_string(code);
  }

 private:
  static void close(void* library) {
    if (library != nullptr) ::dlclose(library);
  }
  std::shared_ptr<void> handle_;
};

}  // namespace rangescope::base
