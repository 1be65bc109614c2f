// Whether a test, and what it runs, is instrumented by a sanitizer.
#pragma once

namespace rangescope {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace rangescope
