#include "read/demangle.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace rangescope::read {

std::string demangle(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                     std::free);
  return status == 0 && plain ? std::string(plain.get()) : mangled;
}

}  // namespace rangescope::read
