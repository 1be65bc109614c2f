#include "analyze/gpu/stalls.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "analyze/tree/groups.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;
using model::StringId;

/// Samples of one kernel by place and reason.
using Counts = std::map<std::pair<std::uint32_t, StringId>, std::uint64_t>;
/// Of a region: by what the kernel is shown as.
using Kernels = std::map<StringId, Counts>;

std::string words(std::string_view reason) {
  if (reason == "selected")
    return "issued";
  std::string text(reason);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Reasons by samples, the most frequent first.
template <class Key>
std::vector<std::pair<Key, std::uint64_t>> by_samples(const std::map<Key, std::uint64_t>& counts) {
  std::vector<std::pair<Key, std::uint64_t>> out(counts.begin(), counts.end());
  std::stable_sort(
      out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

/// File and line; where those are unknown the function's name and the offset.
using CodeLine = std::tuple<StringId, std::uint32_t, StringId, std::uint64_t>;

struct LineSamples {
  std::uint64_t samples = 0;
  std::map<std::uint64_t, std::uint64_t> offsets;
  std::map<std::string, std::uint64_t> reasons;
};

/// Samples of one kernel, by reason and by line.
struct KernelSamples {
  std::uint64_t total = 0;
  std::map<std::string, std::uint64_t> reasons;
  std::map<CodeLine, LineSamples> lines;

  [[nodiscard]] double share(std::uint64_t samples) const {
    return static_cast<double>(samples) / static_cast<double>(total);
  }
};

KernelSamples kernel_samples(const Session& session, const Counts& counts) {
  KernelSamples kernel;
  for (const auto& [key, samples] : counts) {
    const model::PcPlace& place = session.pc.places[key.first];
    const std::string reason = words(session.strings.view(key.second));
    const StringId function = session.kernel_names[place.function].short_name;
    const std::uint64_t offset = place.line > 0 ? 0 : place.offset;
    LineSamples& line = kernel.lines[{place.file, place.line, function, offset}];
    line.samples += samples;
    line.offsets[place.offset] += samples;
    line.reasons[reason] += samples;
    kernel.reasons[reason] += samples;
    kernel.total += samples;
  }
  return kernel;
}

/// The lines with most samples, each with what it waits for most.
void add_lines(const Session& session, const KernelSamples& kernel, model::Stalls& out) {
  std::map<CodeLine, std::uint64_t> samples_of;
  for (const auto& [code_line, line] : kernel.lines)
    samples_of[code_line] = line.samples;
  for (const auto& [code_line, samples] : by_samples(samples_of)) {
    if (out.lines.size() == model::kMostStallLines)
      break;
    const auto& [file, line_number, function, offset] = code_line;
    const LineSamples& line = kernel.lines.at(code_line);
    const auto reasons = by_samples(line.reasons);
    const auto main_stall = std::find_if(reasons.begin(), reasons.end(), [](const auto& reason) {
      return model::is_stall(reason.first);
    });
    const auto& main_reason = main_stall == reasons.end() ? reasons.front() : *main_stall;
    out.lines.push_back({std::string(session.strings.view(file)),
                         line_number,
                         std::string(session.strings.view(function)),
                         by_samples(line.offsets).front().first,
                         kernel.share(samples),
                         main_reason.first,
                         kernel.share(main_reason.second)});
  }
}

model::Stalls stalls_of(const Session& session, const Counts& counts, double total_ns) {
  const KernelSamples kernel = kernel_samples(session, counts);
  model::Stalls out;
  out.samples = static_cast<std::int64_t>(kernel.total);
  for (const auto& [reason, samples] : by_samples(kernel.reasons))
    out.reasons.push_back({reason, kernel.share(samples)});
  add_lines(session, kernel, out);
  const model::StallShare* top = model::top_stall(out);
  if (top != nullptr && std::isfinite(total_ns))
    out.saves_ns = top->share * total_ns;
  return out;
}

/// The kernel that each launch put on the GPU, as it is shown; 0 where it is none or, of a graph,
/// not one.
std::vector<StringId> kernels_of_launches(const Session& session) {
  std::vector<StringId> out(session.launches.size());
  for (const model::Kernel& kernel : session.kernels)
    if (kernel.graph_node == kNone && kernel.launch < out.size())
      out[kernel.launch] = shown_name(session.kernel_names[kernel.name]);
  return out;
}

}  // namespace

void add_stalls(const Session& session,
                const Contexts& contexts,
                const Sets& sets,
                model::Report& report) {
  if (session.pc.samples.empty())
    return;
  const std::vector<StringId> launched = kernels_of_launches(session);
  std::map<std::uint32_t, Kernels> of_set;
  for (const model::PcSample& sample : session.pc.samples) {
    const StringId function =
        shown_name(session.kernel_names[session.pc.places[sample.place].function]);
    const StringId kernel = launched[sample.launch] != 0 ? launched[sample.launch] : function;
    of_set[sets.of_context[contexts.of_launch[sample.launch]]][kernel]
          [{sample.place, sample.reason}] += sample.samples;
  }
  std::map<std::uint32_t, Kernels> of_region;
  for (const auto& [set, kernels] : of_set)
    for (const SetEntry& entry : sets.of(set))
      for (const auto& [kernel, counts] : kernels)
        for (const auto& [key, samples] : counts)
          of_region[entry.region][kernel][key] += samples;
  const auto fill = [&](std::uint32_t region, std::vector<model::KernelRow>& rows) {
    const auto kernels = of_region.find(region);
    if (kernels == of_region.end())
      return;
    for (model::KernelRow& row : rows)
      for (const auto& [kernel, counts] : kernels->second)
        if (session.strings.view(kernel) == row.name)
          row.stalls = stalls_of(session, counts, row.total_ns);
  };
  for (std::uint32_t r = 0; r < report.regions.size(); ++r)
    if (report.regions[r].gpu)
      fill(r, report.regions[r].gpu->top_kernels);
  fill(sets.total_region, report.kernels);
  if (report.total)
    fill(sets.total_region, report.total->top_kernels);
  if (report.unattributed)
    fill(sets.unattributed_region, report.unattributed->top_kernels);
}

}  // namespace rangescope::analyze
