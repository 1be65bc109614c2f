// A handle of a C library, given back when its owner goes: Owned<ZSTD_DCtx, &ZSTD_freeDCtx>.
#pragma once

#include <memory>
#include <type_traits>

namespace rangescope::base {

template <class T, auto GiveBack>
using Owned = std::unique_ptr<T, std::integral_constant<decltype(GiveBack), GiveBack>>;

}  // namespace rangescope::base
