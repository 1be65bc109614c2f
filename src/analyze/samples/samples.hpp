// Samples of devices onto regions and kernels: what each region's GPU work moved and used, from
// samples of the whole device that know nothing of ranges.
//
// Samples are far longer than most kernels, so each sample is a sum over what ran in it. The rates
// of a kernel (by name and shape), of a copy (by kind) and of the idle device are those that
// explain all samples best, by non-negative least squares over the time that each ran in each
// sample. With them each sample is divided among what ran in it in proportion to rate times
// overlap: the parts add up to what the device counted, and a sample that one kernel fills goes to
// it whatever its rate is.
//
// The interval of a value holds: what the rates do not explain of the samples that it shares with
// others, the error of its own rates, a boundary error (where one kernel follows another, half a
// microsecond of the traffic can belong to either: caches, prefetch, time stamps), what was not
// sampled, and half a percent for the counters. Values that their interval leaves in the dark are
// absent, with the reason.
//
// O(samples + pieces of work + overlaps) a stream, and the solution for at most 256 kinds of work.
#pragma once

#include <span>

#include "analyze/tree/groups.hpp"
#include "model/metric_group.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// Computes the metrics of `groups` from sampled counters, sample by sample; counters that no
/// formula took stay as they are. Formulas must be linear: they are applied before anything is
/// added up.
void derive_samples(model::Session& session, std::span<const model::MetricGroup> groups);

/// Metrics with source "sampled" of the report's regions and kernels, Report::sampled, and losses:
/// gaps, other processes. Metrics that were measured otherwise stay.
void add_samples(const model::Session& session,
                 const Contexts& contexts,
                 const Sets& sets,
                 const KernelGroups& groups,
                 model::Report& report);

}  // namespace rangescope::analyze
