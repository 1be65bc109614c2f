// What pprof shows: stacks of frames (ranges, then functions or kernels) with what their innermost
// frame took by itself.
//
// Values of a sample are those of its innermost frame alone: self time of a range; below it
// functions by CPU samples, and kernels by GPU time. They add up to what the run took. Ranges of
// several domains, and start/end ranges, overlap: wall and GPU time are of the tree in which most
// time was spent; GPU work in others is in "(other ranges)", and a comment names them. A kind of
// value of which nothing was recorded is left out. A range's kernels are told apart where the
// report lists all of them for it and the ranges inside; else they are one, "(kernels)".
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report {

enum ProfileKind : std::size_t { kWall, kCpu, kGpu, kCopied, kEnergy, kKinds };
/// Name and unit.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, kKinds> kProfileTypes = {
    {{"wall", "nanoseconds"},
     {"cpu", "nanoseconds"},
     {"gpu", "nanoseconds"},
     {"copied", "bytes"},
     {"energy", "millijoules"}}};
using ProfileFrame = std::pair<std::string, std::string>;  ///< name and file

struct Profile {
  std::vector<ProfileKind> kinds;                ///< of which something was recorded
  std::map<ProfileFrame, std::uint64_t> frames;  ///< with their numbers, from 1
  /// Numbers of frames, the outermost first, and the values by kind.
  std::map<std::vector<std::uint64_t>, std::array<double, kKinds>> samples;
  std::vector<std::string> comments;
};

/// A call chain of CPU samples with the ranges that it is in: each sample once, whatever domains
/// were open.
struct Chain {
  std::vector<std::string> ranges;     ///< from the outermost; none outside every range
  std::uint32_t stack = model::kNone;  ///< index into CpuProfile::stacks
  std::int64_t samples = 0;
};
[[nodiscard]] std::vector<Chain> chains(const model::Report& report);
/// Frames from the outermost to the innermost.
[[nodiscard]] std::vector<std::uint32_t> frames_of(const model::CpuProfile& cpu,
                                                   std::uint32_t stack);

[[nodiscard]] Profile make_profile(const model::Report& report, const model::Session* session);

}  // namespace rangescope::report
