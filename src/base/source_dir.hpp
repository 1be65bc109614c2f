#pragma once

namespace rangescope::base {

/// The checkout that a test program was built from, where its recordings and conf/ lie. Only test
/// programs define it, in one generated file: their other objects are equal in every checkout.
extern const char* const source_dir;

}  // namespace rangescope::base
