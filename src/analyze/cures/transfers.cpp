// Copies between host and GPU: pageable ones, which the caller waits for, and many small ones.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/candidate.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::uint64_t kSmallCopy_bytes = 64 * 1024;
constexpr std::size_t kManyCopies = 8;

/// The call returned only when the copy had ended, or nearly: the driver went through a buffer of
/// its own.
bool is_blocking(const Recording& recording, Id copy) {
  const Id call = replay::launch_of(recording.graph(), copy);
  if (call == model::kNone)
    return false;
  const model::Launch& launch = recording.session().launches[recording.operation(call).source];
  constexpr double kShareInside = 0.8;
  const auto inside_ns = static_cast<double>(launch.end_ns - recording.operation(copy).start_ns);
  return inside_ns >= kShareInside * recording.duration_ns(copy);
}

}  // namespace

void find_small_copies(const Recording& recording, Findings& findings) {
  Candidate candidate{"small_copies", "", {}, {1, 1, 2}, {}};
  std::size_t copies = 0;
  for (const Instance& instance : recording.instances()) {
    Ids small;
    for (const Id work : instance.works) {
      const bool is_small =
          recording.is_copy_to_gpu(work) && recording.copy(work).bytes <= kSmallCopy_bytes;
      if (is_small)
        small.push_back(work);
    }
    if (small.size() < kManyCopies)
      continue;
    double bytes = 0;
    for (const Id copy : small)
      bytes += static_cast<double>(recording.copy(copy).bytes);
    const double pinned_bytes_per_s = recording.pinned_bytes_per_s().expected;
    const double pinned_ns = pinned_bytes_per_s > 0 ? bytes / pinned_bytes_per_s * 1e9 : 0;
    const double one_ns = std::max(pinned_ns, recording.duration_ns(small.front()));
    candidate.remedy.fused.push_back({small, static_cast<std::int64_t>(one_ns)});
    const Ids waits = recording.waits_behind(instance, small);
    append(candidate.remedy.removed, waits);
    findings.claim(small);
    findings.claim(waits);
    copies += small.size();
  }
  if (candidate.remedy.fused.empty())
    return;
  const std::size_t copies_per_instance = copies / candidate.remedy.fused.size();
  candidate.observation =
      fmt::format("{} copies to the GPU of {} or less per instance, each waited for",
                  copies_per_instance,
                  base::format_bytes(kSmallCopy_bytes));
  candidate.evidence = {{"copies", static_cast<double>(copies)},
                        {"copies_per_instance", static_cast<double>(copies_per_instance)}};
  findings.add(std::move(candidate));
}

void find_pageable_copies(const Recording& recording, Findings& findings) {
  Candidate candidate{"pageable_copies", "", {}, recording.pinned_bytes_per_s(), {}};
  double bytes = 0;
  for (const Instance& instance : recording.instances()) {
    for (const Id work : instance.works) {
      if (findings.is_claimed(work) || !recording.is_copy_to_gpu(work))
        continue;
      if (recording.copy(work).bytes <= kSmallCopy_bytes)
        continue;
      if (!is_blocking(recording, work))
        continue;
      candidate.remedy.copies.push_back(work);
      candidate.remedy.copy_bytes.push_back(static_cast<double>(recording.copy(work).bytes));
      bytes += candidate.remedy.copy_bytes.back();
      findings.claim(recording.waits_behind(instance, {work}));
    }
  }
  const Ids& copies = candidate.remedy.copies;
  if (copies.size() < 2 || candidate.parameter.expected <= 0)
    return;
  const double copy_ns = recording.duration_ns(copies);
  const double bytes_per_s = bytes / copy_ns * 1e9;
  // A pinned copy may block too (cudaMemcpy): it is as fast as it can be.
  if (bytes_per_s >= candidate.parameter.low)
    return;
  candidate.observation = fmt::format("{} from pageable memory block their thread: {} at {}",
                                      base::counted(copies.size(), "copy"),
                                      base::format_bytes(bytes),
                                      base::format_si(bytes_per_s, "B/s"));
  candidate.evidence = {
      {"copies", static_cast<double>(copies.size())}, {"copy_bytes", bytes}, {"copy_ns", copy_ns}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
