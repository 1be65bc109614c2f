// Libraries of the GPU's driver and toolkit, loaded if they are installed. Functions are called by
// name; a function that this version lacks has no answer.
#pragma once

#include <dlfcn.h>

#include <string>

namespace rangescope::base {

/// Never unloaded: its threads may run until the process ends.
class Library {
 public:
  static constexpr int kNoFunction = 13;  ///< NVML_ERROR_FUNCTION_NOT_FOUND

  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// Null if the library is not loaded or has no function of this name.
  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    if (handle_ == nullptr)
      return nullptr;
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }
  /// The answer of a function; kNoFunction if this version lacks it. The arguments must have
  /// exactly the types of its parameters.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto callee = function<int(Arguments...)>(name);
    if (callee == nullptr)
      return kNoFunction;
    return callee(arguments...);
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
    if (call(name, arguments..., static_cast<char*>(bytes), kTextBytes - 1) != 0)
      return "";
    return bytes;
  }
  [[nodiscard]] std::string words_of(int code) const {
    const auto words_of = function<const char*(int)>("nvmlErrorString");
    const char* words = nullptr;
    if (words_of != nullptr)
      words = words_of(code);
    if (words == nullptr)
      return "NVML error " + std::to_string(code);
    return words;
  }
};

}  // namespace rangescope::base
