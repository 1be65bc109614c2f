// Where CUPTI may be installed. The injected library and rangescope's own sampler search the same
// places in the same order.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace rangescope::wire {

/// Calls `try_path(const char*)` with each place until it returns true; false if none did. `newest`
/// is the major version of CUDA that the driver implements: it runs programs of its own major
/// version and older ones, so its own is tried first.
template <class TryPath>
[[nodiscard]] bool find_cupti(int newest, TryPath&& try_path) {
  newest = newest == 12 ? 12 : 13;
  const int majors[] = {newest, newest == 13 ? 12 : 13};
  char path[512];
  const auto under = [&](const char* root, const char* below, int major) {
    std::snprintf(path, sizeof path, "%s%s/libcupti.so.%d", root, below, major);
    return try_path(static_cast<const char*>(path));
  };
  for (const int major : majors) {
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      const char* root = std::getenv(variable);
      if (root == nullptr || root[0] == '\0')
        continue;
      if (under(root, "/lib64", major) || under(root, "/extras/CUPTI/lib64", major))
        return true;
    }
    std::snprintf(path, sizeof path, "libcupti.so.%d", major);
    if (try_path(static_cast<const char*>(path)))
      return true;
    for (const char* below :
         {"/lib64", "/extras/CUPTI/lib64", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib"})
      if (under("/usr/local/cuda", below, major))
        return true;
  }
  return false;
}

}  // namespace rangescope::wire
