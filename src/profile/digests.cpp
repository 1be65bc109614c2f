#include "profile/digests.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "analyze/tally/file.hpp"
#include "analyze/tally/report.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/workers.hpp"
#include "profile/counters.hpp"
#include "profile/jobs.hpp"
#include "runs/manifest.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

/// Of a run that left no digest, or a damaged one.
base::Result<analyze::tally::Digest> digest_of_captures(const fs::path& run) {
  const auto captures = filled_captures(run);
  if (captures.empty())
    return base::fail(base::Code::kNothingCaptured, "nothing was captured", run.string());
  base::Result<analyze::tally::Digest> digest;
  TRY(analyze_inputs(captures, run, {}, {}, {}, {}, &digest));
  return digest;
}

/// The digest of one run, whatever it takes; of one that has nothing, a loss alone.
void read_digest(const fs::path& run, std::mutex& one_capture, analyze::tally::Digest& into) {
  std::error_code error;
  const auto read = analyze::tally::read(run / analyze::tally::kFileName, into);
  if (read)
    return;
  const auto member = runs::job::member_of(run);
  const std::uint32_t rank = member ? member->rank.value_or(model::kNone) : model::kNone;
  const std::lock_guard lock(one_capture);  // each needs all memory
  auto digest = digest_of_captures(run);
  if (digest) {
    into = std::move(*digest);
    if (fs::exists(run / analyze::tally::kFileName, error))
      into.losses.push_back(
          {rank, "", "its capture was read: " + base::printable(read.error().what), 1});
    return;
  }
  into = {};
  into.losses.push_back({rank, "ranks_unreadable", base::printable(digest.error().what), 1});
}

/// Merges runs, some side by side; `whole`: each by itself, after it was read to its end. False: a
/// digest was found damaged when part of it was merged.
bool merge_share(std::span<const fs::path> runs,
                 bool whole,
                 std::mutex& one_capture,
                 analyze::tally::Merger& merger) {
  constexpr std::size_t kAtOnce = 8, kBytesAtOnce = 64 << 20;
  std::vector<analyze::tally::Reading> batch(kAtOnce);  // its memory is used again
  analyze::tally::Digest one;
  std::size_t ready = 0;  // of the batch
  std::size_t bytes = 0;  // of those
  const auto merge = [&] {
    const std::size_t count = std::exchange(ready, 0);
    bytes = 0;
    return merger.add(std::span(batch).first(count));
  };
  for (const fs::path& run : runs) {
    const auto file =
        whole ? base::Result<std::string>()
              : base::read_regular(run / analyze::tally::kFileName, analyze::tally::kMostFile);
    if (whole || !file || !batch[ready].open(*file, run.string())) {
      read_digest(run, one_capture, one);
      merger.add(one);
      continue;
    }
    bytes += batch[ready++].bytes();
    if ((ready == kAtOnce || bytes > kBytesAtOnce) && !merge())
      return false;
  }
  return merge();
}

}  // namespace

base::Result<analyze::tally::Digest> merge_runs(std::span<const fs::path> runs) {
  // Runs that a worker takes at least: each holds a merged digest.
  constexpr std::size_t kShare = 32;
  const std::size_t shares = (runs.size() + kShare - 1) / kShare;
  const auto workers = static_cast<std::size_t>(base::worker_count(0, shares));
  std::vector<analyze::tally::Merger> mergers(std::max<std::size_t>(workers, 1));
  std::mutex one_capture;
  const auto merge_one_share = [&](std::size_t w) {
    const std::size_t first = w * runs.size() / mergers.size();
    const std::size_t last = (w + 1) * runs.size() / mergers.size();
    // Neighbours: then their ranks are in order.
    const auto share = runs.subspan(first, last - first);
    if (merge_share(share, false, one_capture, mergers[w]))
      return;
    mergers[w] = analyze::tally::Merger();
    (void)merge_share(share, true, one_capture, mergers[w]);
  };
  base::parallel_for(mergers.size(), static_cast<int>(mergers.size()), merge_one_share);
  for (std::size_t w = 1; w < mergers.size(); ++w)
    mergers.front().add(mergers[w].take());
  return mergers.front().take();
}

bool digests_suffice(const analyze::Options& options) {
  analyze::Options plain;  // but for what a report of digests looks at, or what has no part in it
  plain.per_process = options.per_process;
  plain.device = options.device;
  plain.threads = options.threads;
  plain.top_kernels = options.top_kernels;
  plain.samples = options.samples;
  return options == plain;
}

namespace {

/// That of a job of any size: tally::read() takes one rank's.
base::Result<analyze::tally::Digest> read_merged(const fs::path& file) {
  const auto bytes = TRY(base::Mapping::open(file));
  analyze::tally::Digest digest;
  TRY(analyze::tally::decode(bytes.text(), file.string(), digest));
  return digest;
}

}  // namespace

base::Result<Analyzed> analyze_digests(const runs::job::Job& job,
                                       const analyze::Options& options,
                                       const fs::path& merged) {
  std::vector<fs::path> runs;
  for (const runs::job::Member& member : job.members)
    runs.push_back(member.run);
  if (runs.empty())
    return nothing_of(job, {});
  auto digest = TRY(merged.empty() ? merge_runs(runs) : read_merged(merged));
  if (digest.processes.empty())
    return nothing_of(job, {});
  analyze::tally::Reported reported =
      analyze::tally::report_of(std::move(digest),
                                options,
                                reference_of(runs.front(), false),
                                facts_of_job(job, runs.front(), runs));
  add_job(job, reported.report);
  return Analyzed{std::move(reported.session), std::move(reported.report)};
}

}  // namespace rangescope::profile
