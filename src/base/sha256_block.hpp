// The inner function of SHA-256 (FIPS 180-4, 6.2.2): whole blocks of 64 bytes into the state. With
// the SHA instructions of x86 where the processor has them (about five times as fast), portable
// code elsewhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rangescope::base {

using Sha256State = std::array<std::uint32_t, 8>;

/// `blocks` blocks at `bytes`; the fastest way that this processor has.
void sha256_blocks(Sha256State& state, const unsigned char* bytes, std::size_t blocks);

/// The same without special instructions, for tests.
void sha256_blocks_portable(Sha256State& state, const unsigned char* bytes, std::size_t blocks);

}  // namespace rangescope::base
