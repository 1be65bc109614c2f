// Seeded numbers that are the same on every machine and backend.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace workload {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [-1, 1).
  float symmetric() {
    return static_cast<float>(static_cast<double>(next() >> 11) * 0x1.0p-52 - 1.0);
  }
  /// A matrix whose product with unit-variance input has variance gain^2: uniform, scaled by the
  /// fan-in.
  std::vector<float> matrix(std::size_t count, std::size_t fan_in, float gain = 1.0F) {
    std::vector<float> out(count);
    const float scale = gain * std::sqrt(3.0F / static_cast<float>(fan_in));
    for (float& x : out)
      x = scale * symmetric();
    return out;
  }

 private:
  std::uint64_t state_;
};

/// FNV-1a over 32-bit words: the checksum of generated tokens.
class Checksum {
 public:
  void add(std::uint32_t word) {
    for (int i = 0; i < 4; ++i) {
      value_ = (value_ ^ ((word >> (8 * i)) & 0xff)) * 0x100000001b3ULL;
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace workload
