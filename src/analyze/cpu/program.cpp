#include "analyze/cpu/cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/program.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

/// What the numbers of an attached program are of.
std::string attached_note(const Session& session) {
  if (!session.windows.empty())
    return "no ranges in the recorded windows: the program is one region, and all numbers are of "
           "the windows alone";
  const auto is_older = [&](const model::Process& process) {
    return process.start_ns <= session.begin_ns;
  };
  const auto older = std::ranges::count_if(session.processes, is_older);
  return fmt::format(
      "attached to process {} after {}: all numbers are of this window alone; {} started before "
      "it. Ranges are recorded only in programs that rangescope profile starts",
      session.attached->pid,
      base::format_ns(static_cast<double>(session.attached->ran_ns)),
      base::counted(static_cast<std::size_t>(older), "process"));
}

/// How to name the parts of this program, by the libraries and languages that its samples show.
std::string advice(const Session& session) {
  if (session.attached)
    return attached_note(session);
  bool python = false, torch = false;
  for (const model::CpuFrame& frame : session.cpu.frames) {
    python |= frame.kind == model::FrameKind::kPython;
    torch |= base::file_name(session.strings.view(frame.module)).starts_with("libtorch");
  }
  for (const model::Loss& loss : session.losses) {
    if (loss.kind == "musl_program")
      return "no ranges: the program is one region. It is linked to musl: link it to glibc";
    if (model::explains_missing_ranges(loss))
      return fmt::format("no ranges: the program is one region. {} {}",
                         loss.detail,
                         model::loss_entry(loss.kind.id()).cure);
  }
  const std::string text = "no ranges: the program is one region. To split it, ";
  if (torch)
    return text +
           "run it in torch.autograd.profiler.emit_nvtx(), or write: with "
           "rangescope.range(\"step\"): ...";
  if (python)
    return text + "write: with rangescope.range(\"step\"): ... (import rangescope)";
  return text +
         "open NVTX ranges; C++: #include <rangescope/range.hpp>, which needs no header of NVIDIA, "
         "and rangescope::Range range(\"step\"); Python: with rangescope.range(\"step\"): ...";
}

/// Is the program to be one region? Only where nothing else can name its parts.
bool is_one_region(const Session& session, const model::Report& report) {
  const bool has_ranges = !report.regions.empty() || !session.ranges.empty();
  if (has_ranges || !session.measurements.empty() || report.ranks.size() > 1)
    return false;
  const bool ours = !session.sources.empty() &&
                    session.sources.front().maker == model::Maker::kRangescope &&
                    !session.processes.empty();
  const bool sampled = !model::holds_anything(session) && !session.cpu.samples.empty();
  return ours || sampled;
}

/// Counts and wall time: those of the run.
model::Region program_region(const Session& session, double wall_ns) {
  model::Region region;
  region.path = {std::string(model::kProgram)};
  region.occurrences = 1;
  std::set<std::pair<std::uint32_t, std::uint32_t>> threads;
  for (const model::CpuThread& thread : session.cpu.threads)
    threads.emplace(thread.pid, thread.tid);
  region.threads = std::max<std::int64_t>(1, std::ssize(threads));
  region.processes = std::max<std::int64_t>(1, std::ssize(session.processes));
  region.wall.inclusive_ns = region.wall.exclusive_ns = wall_ns;
  region.wall.per_occurrence_ns = {wall_ns, wall_ns, wall_ns, wall_ns, wall_ns, 0};
  region.wall.share = 1;
  region.steady = model::Steady{};
  region.steady->occurrences = 1;
  region.steady->wall_total_ns = wall_ns;
  region.steady->wall_ns = region.wall.per_occurrence_ns;
  return region;
}

/// `total`: all GPU work of the run, on that many devices.
void add_program_gpu(const model::GpuWork& total, std::size_t device_count, model::Region& region) {
  region.gpu = total;
  model::GpuWork& work = *region.gpu;
  const double wall_ns = region.wall.inclusive_ns;
  const auto devices = static_cast<double>(std::max<std::size_t>(1, device_count));
  if (!work.partial && work.busy_ns >= 0 && wall_ns > 0)
    region.steady->busy_share = work.busy_ns / devices / wall_ns;
  work.recorded_occurrences = work.partial ? 0 : 1;
  work.exclusive_kernels = work.kernels;
  work.exclusive_kernel_ns = work.kernel_ns;
  work.exclusive_busy_ns = work.busy_ns;
  work.kernel_ns_per_occurrence = {
      work.kernel_ns, work.kernel_ns, work.kernel_ns, work.kernel_ns, work.kernel_ns, 0};
  work.busy_ns_per_occurrence = {
      work.busy_ns, work.busy_ns, work.busy_ns, work.busy_ns, work.busy_ns, 0};
}

}  // namespace

std::uint32_t first_process(const Session& session) {
  std::set<std::uint32_t> pids;
  for (const model::Process& process : session.processes)
    pids.insert(process.pid);
  std::uint32_t first = model::kNone;
  for (std::uint32_t p = 0; p < session.processes.size(); ++p) {
    const model::Process& process = session.processes[p];
    if (pids.contains(process.parent_pid))
      continue;
    if (first == model::kNone || process.start_ns < session.processes[first].start_ns)
      first = p;
  }
  return first;
}

void make_program_region(const Session& session,
                         base::Held<model::CpuWork> cpu,
                         model::Report& report) {
  if (!is_one_region(session, report))
    return;
  const double wall_ns = report.run.duration_ns;
  model::Region region = program_region(session, wall_ns);
  double busy_ns = 0;
  if (report.total) {
    add_program_gpu(*report.total, report.devices.size(), region);
    busy_ns = std::max(0.0, report.total->busy_ns);
    report.unattributed.reset();
  }
  region.cpu = std::move(cpu);
  if (region.cpu && report.cpu_outside)
    region.cpu->stacks = std::move(report.cpu_outside->stacks);
  report.cpu_outside = {};
  report.outside = model::Outside{};  // the region is the run
  region.samples.push_back({0, wall_ns, busy_ns});
  report.regions.push_back(std::move(region));
  report.notes.push_back(advice(session));
}

}  // namespace rangescope::analyze
