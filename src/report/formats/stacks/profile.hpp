// What pprof shows: stacks of frames (ranges, then functions or kernels) and the values of their
// innermost frame.
//
// Values of a sample are those of its innermost frame alone: self time of a range, and below it
// functions by CPU samples and kernels by GPU time. They add up to the values of the run. Ranges of
// several domains, and start/end ranges, overlap: wall and GPU time are those of the tree (a domain
// and a kind) with most wall time. GPU work in other trees is in "(other ranges)", and a comment
// names them. Kinds of values without a recording are left out. The kernels of a range are listed
// if the report has all of them for the range and its children; otherwise they are one frame,
// "(kernels)".
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
  std::vector<ProfileKind> kinds;                ///< those with recorded values
  std::map<ProfileFrame, std::uint64_t> frames;  ///< with their numbers, from 1
  /// Numbers of frames, the outermost first, and the values by kind.
  std::map<std::vector<std::uint64_t>, std::array<double, kKinds>> samples;
  std::vector<std::string> comments;
};

/// A call chain of CPU samples and the ranges around it. Each sample counts once, in one domain.
struct Chain {
  std::vector<std::string> ranges;     ///< outermost first; empty outside ranges
  std::uint32_t stack = model::kNone;  ///< index into CpuProfile::stacks
  std::int64_t samples = 0;
};
[[nodiscard]] std::vector<Chain> chains(const model::Report& report);
/// The source file of a frame; its library where that is not known.
[[nodiscard]] std::string_view file_of(const model::Session& session, const model::CpuFrame& frame);
/// Frames from the outermost to the innermost.
[[nodiscard]] std::vector<std::uint32_t> frames_of(const model::CpuProfile& cpu,
                                                   std::uint32_t stack);

[[nodiscard]] Profile make_profile(const model::Report& report, const model::Session* session);

}  // namespace rangescope::report
