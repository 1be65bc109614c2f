// A digest as a file: docs/formats/digest.md. What is read may come from anybody: everything is
// checked.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "analyze/tally/digest.hpp"
#include "base/result.hpp"

namespace rangescope::analyze::tally {

inline constexpr std::string_view kFileName = "digest.rsd";  ///< in a run directory
inline constexpr std::size_t kMostFile = 64 << 20;

/// The file's bytes, the same for equal digests whatever merges they came from.
[[nodiscard]] base::Result<std::string> encode(Digest digest, int level = -1);
/// Into `out`, whose memory is used again. kBadData with the offset; another version is that too.
[[nodiscard]] base::Result<void> decode(std::string_view bytes,
                                        const std::string& where,
                                        Digest& out);

/// A digest that is read region by region, so that many are merged without ever being whole in
/// memory.
class Reading {
 public:
  Reading();
  Reading(Reading&&) noexcept;
  Reading& operator=(Reading&&) noexcept;
  ~Reading();

  /// Unpacks it and reads what comes before the regions. Errors as decode(). Memory of the last one
  /// is used again.
  [[nodiscard]] base::Result<void> open(std::string_view bytes, const std::string& where);
  [[nodiscard]] std::size_t regions() const { return regions_; }
  [[nodiscard]] std::size_t bytes() const;  ///< unpacked
  /// The next one, a Region or a PackedRegion: all of it is overwritten. False: the digest is
  /// damaged.
  template <class R>
  [[nodiscard]] bool next(R& into);
  /// After the last one: the rest.
  [[nodiscard]] bool finish();

  Digest head;  ///< without regions

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::size_t regions_ = 0;
};

/// Atomically.
[[nodiscard]] base::Result<void> write(const std::filesystem::path& file, Digest digest);
/// kNoInput, kBadData.
[[nodiscard]] base::Result<void> read(const std::filesystem::path& file, Digest& out);

}  // namespace rangescope::analyze::tally
