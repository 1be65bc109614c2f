// Libraries of the GPU's driver and toolkit, loaded where they are: functions are called by their
// names, and what a version lacks has no answer.
#pragma once

#include <dlfcn.h>

#include <string>

namespace rangescope::base {

/// Stays loaded: threads of it may run to the end.
class Library {
 public:
  static constexpr int kNoFunction = 13;  ///< NVML_ERROR_FUNCTION_NOT_FOUND

  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// Null where there is none.
  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    return handle_ != nullptr ? reinterpret_cast<Function*>(::dlsym(handle_, name)) : nullptr;
  }
  /// The answer of a function, whose arguments must have its very types; kNoFunction where this
  /// version has none of that name.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto found = function<int(Arguments...)>(name);
    return found != nullptr ? found(arguments...) : kNoFunction;
  }

 private:
  void* handle_;
};

class Nvml : public Library {
 public:
  using Device = void*;
  static constexpr unsigned kTextBytes = 96;  ///< NVML_DEVICE_NAME_V2_BUFFER_SIZE

  explicit Nvml(const char* path = "libnvidia-ml.so.1") : Library(path) {}
  /// What a function writes into a buffer; "" where there is no answer.
  template <class... Arguments>
  [[nodiscard]] std::string text(const char* name, Arguments... arguments) const {
    char bytes[kTextBytes] = {};
    return call(name, arguments..., static_cast<char*>(bytes), kTextBytes - 1) == 0 ? bytes : "";
  }
  [[nodiscard]] std::string words_of(int code) const {
    const auto words_of = function<const char*(int)>("nvmlErrorString");
    const char* words = words_of != nullptr ? words_of(code) : nullptr;
    if (words == nullptr)
      return "NVML error " + std::to_string(code);
    return words;
  }
};

}  // namespace rangescope::base
