#include "read/native/losses.hpp"

#include <fmt/format.h>

namespace rangescope::read::native {
namespace {

namespace record = wire::native;

struct DropText {
  model::LossKind kind;
  const char* what;
};
// By record::Drop.
constexpr DropText kDropTexts[] = {
    {"size_limit", "events beyond the allowed capture size; raise --max-capture-size"},
    {"disk_full", "events that did not fit on the full file system"},
    {"file_size_limit", "events beyond the program's own limit on file size (ulimit -f)"},
    {"no_memory", "events for which no memory could be mapped (ulimit -v, or too many maps)"},
    {"capture_unreachable",
     "events of a process that could not open its capture file (descriptors used up, another user "
     "or root directory)"},
    {"reentrant_event",
     "NVTX calls of signal handlers that interrupted an NVTX call of the same thread"},
    {"cut_name", "names longer than 256 KiB, cut there"},
    {"too_deep", "pushes nested deeper than 1,048,576 ranges"},
    {"pop_without_push", "pops on threads that had no range open in that domain"},
    {"inherited_pop", "pops, in a forked child, of ranges that its parent had pushed"},
    {"unknown_end", "ends of start/end ranges that never started"},
    {"capture_io", "events lost to I/O errors on the capture file"},
    {"too_many_domains",
     "NVTX domains beyond 4,096; their ranges are counted in the default domain"},
    {"abandoned_call",
     "NVTX calls that a signal handler jumped out of (siglongjmp): a push among them is not "
     "recorded"},
    {"truncated_capture",
     "writes and events of a process whose capture file was truncated while it ran"},
    {"filtered_process",
     "NVTX calls in forked children that are under a seccomp filter: it might kill for making a "
     "file"},
    {"unseen_namespaces",
     "linker namespaces (dlmopen) without rangescope's library: their NVTX ranges are not "
     "recorded"},
    {"size_limit", "ranges left out to bound the capture; raise --max-capture-size"},
    {"open_before", kOpenBefore},
};
static_assert(std::size(kDropTexts) == static_cast<std::size_t>(record::Drop::kOpenBefore) + 1);

}  // namespace

void Losses::add(model::LossKind kind, std::uint64_t count, const std::string& what) {
  if (count > 0)
    by_kind_.try_emplace(kind.id(), kind, 0, what).first->second.count += count;
}

void Losses::move_to(std::vector<model::Loss>& losses) const {
  for (const auto& [kind, loss] : by_kind_)
    losses.push_back(loss);
}

void add_drops(const std::uint64_t (&dropped)[record::kDropReasons],
               std::uint64_t begun,
               Losses& losses) {
  for (std::uint32_t i = 0; i < record::kDropReasons; ++i) {
    const std::uint64_t count = dropped[i];
    if (i == static_cast<std::uint32_t>(record::Drop::kThinned) && count > 0) {
      const double share = static_cast<double>(count) / static_cast<double>(count + begun);
      losses.add(kDropTexts[i].kind,
                 count,
                 fmt::format("ranges ({:.1f} % of all) left out beyond half of the capture size: "
                             "counts and sums are "
                             "too low; raise --max-capture-size",
                             100 * share));
    } else if (i < std::size(kDropTexts)) {
      losses.add(kDropTexts[i].kind, count, kDropTexts[i].what);
    } else {
      losses.add(
          "dropped_events", count, "events dropped for a reason that this version does not know");
    }
  }
}

}  // namespace rangescope::read::native
