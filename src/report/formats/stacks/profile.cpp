#include "report/formats/stacks/profile.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/flame.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::GpuWork;
using model::Region;

using ProfileStack = std::vector<ProfileFrame>;  ///< the outermost first

std::optional<double> energy_of(const Region& region) {
  const auto found = region.metrics.find("energy");
  if (found == region.metrics.end() || !found->second.absent.empty()) return {};
  return found->second.value * 1e3 *
         (found->second.of_all ? 1 : static_cast<double>(region.occurrences));
}

class ProfileWalk {
 public:
  explicit ProfileWalk(const model::Report& report) : report_(report) {}

  Profile walk(const model::Session* session) {
    regions();
    outside();
    if (session != nullptr && session->cpu.interval_ns > 0) functions(*session);
    return std::move(out_);
  }

 private:
  void add(const ProfileStack& stack, ProfileKind kind, double value) {
    if (!(value >= 0.5)) return;
    if (std::find(out_.kinds.begin(), out_.kinds.end(), kind) == out_.kinds.end()) {
      out_.kinds.push_back(kind);
      std::sort(out_.kinds.begin(), out_.kinds.end());
    }
    std::vector<std::uint64_t> ids;
    for (const ProfileFrame& frame : stack)
      ids.push_back(out_.frames.try_emplace(frame, out_.frames.size() + 1).first->second);
    out_.samples[std::move(ids)].at(kind) += value;
  }

  static ProfileStack ranges(const std::vector<std::string>& path) {
    ProfileStack stack;
    for (const std::string& name : path) stack.emplace_back(base::printable(name), "NVTX");
    return stack;
  }
  static ProfileStack with(ProfileStack stack, const std::string& name, const std::string& file) {
    stack.emplace_back(base::printable(name), base::printable(file));
    return stack;
  }

  using Tree = std::pair<std::string, model::RangeKind>;
  /// That in which most time was spent; comments name the others.
  [[nodiscard]] std::optional<Tree> largest() {
    std::map<Tree, double> trees;
    for (const Region& region : report_.regions)
      if (!region.process && !region.thread)
        trees[{region.domain, region.kind}] += region.wall.exclusive_ns;
    const auto most = std::max_element(trees.begin(), trees.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    if (most == trees.end()) return {};
    for (auto at = trees.begin(); at != trees.end(); ++at)
      if (at != most)
        out_.comments.push_back(
            "left out, since they overlap: " + std::string(kind_name(at->first.second)) +
            " ranges of " +
            (at->first.first.empty() ? "the default domain"
                                     : "domain " + base::printable(at->first.first)));
    return most->first;
  }

  void regions() {
    const auto tree = largest();
    std::vector<const Region*> chosen;
    std::map<std::uint32_t, std::vector<const Region*>> inside;
    for (const Region& region : report_.regions) {
      if (region.process || region.thread || Tree{region.domain, region.kind} != tree) continue;
      chosen.push_back(&region);
      inside[region.parent].push_back(&region);
    }
    for (const Region* region : chosen) {
      const ProfileStack stack = ranges(region->path);
      const auto& children = inside[region->id];
      add(stack, kWall, region->wall.exclusive_ns);
      if (const auto energy = energy_of(*region)) {
        double rest = *energy;
        for (const Region* child : children) rest -= energy_of(*child).value_or(0);
        add(stack, kEnergy, rest);
      }
      if (!region->gpu) continue;
      double bytes = region->gpu->copy_bytes;
      for (const Region* child : children) bytes -= child->gpu ? child->gpu->copy_bytes : 0;
      add(stack, kCopied, bytes);
      kernels(*region, children, stack);
    }
    rest(inside[model::kNone]);
  }

  void kernels(const Region& region, const std::vector<const Region*>& children,
               const ProfileStack& stack) {
    std::map<std::string, double> own;
    const auto listed = [&](const GpuWork& work, double sign) {
      for (const model::KernelRow& row : work.top_kernels) own[row.name] += sign * row.total_ns;
      return static_cast<std::int64_t>(work.top_kernels.size()) == work.distinct_kernels;
    };
    bool all = listed(*region.gpu, 1);
    for (const Region* child : children) all = (!child->gpu || listed(*child->gpu, -1)) && all;
    double sum = 0;
    for (const auto& [name, ns] : own) sum += ns > 0 ? ns : 0;
    if (!all || std::abs(sum - region.gpu->exclusive_kernel_ns) > 1)
      own = {{"(kernels)", region.gpu->exclusive_kernel_ns}};
    for (const auto& [name, ns] : own) add(with(stack, name, "GPU"), kGpu, ns);
  }

  /// GPU work of the run that no range of the tree has.
  void rest(const std::vector<const Region*>& tops) {
    if (!report_.total) return;
    const ProfileStack none = with({}, "(outside ranges)", "");
    const ProfileStack others = with({}, "(other ranges)", "");
    double ns = report_.total->kernel_ns, bytes = report_.total->copy_bytes;
    for (const Region* top : tops) {
      ns -= top->gpu ? top->gpu->kernel_ns : 0;
      bytes -= top->gpu ? top->gpu->copy_bytes : 0;
    }
    if (report_.unattributed) {
      double listed = 0;
      for (const model::KernelRow& row : report_.unattributed->top_kernels) {
        add(with(none, row.name, "GPU"), kGpu, row.total_ns);
        listed += row.total_ns;
      }
      add(with(none, "(kernels)", "GPU"), kGpu, report_.unattributed->kernel_ns - listed);
      add(none, kCopied, report_.unattributed->copy_bytes);
      ns -= report_.unattributed->kernel_ns;
      bytes -= report_.unattributed->copy_bytes;
    }
    add(with(others, "(kernels)", "GPU"), kGpu, ns);
    add(others, kCopied, bytes);
  }

  void outside() {
    if (report_.outside) add(with({}, "(outside ranges)", ""), kWall, report_.outside->wall_ns);
  }

  void functions(const model::Session& session) {
    for (const Chain& chain : chains(report_)) {
      ProfileStack stack =
          chain.ranges.empty() ? with({}, "(outside ranges)", "") : ranges(chain.ranges);
      for (const std::uint32_t at : frames_of(session.cpu, chain.stack)) {
        const model::CpuFrame& frame = session.cpu.frames[at];
        const auto file = session.strings.view(frame.file != 0 ? frame.file : frame.module);
        stack = with(std::move(stack), frame_text(session, frame), std::string(file));
      }
      add(stack, kCpu, static_cast<double>(chain.samples * session.cpu.interval_ns));
    }
  }

  const model::Report& report_;
  Profile out_;
};

}  // namespace

Profile make_profile(const model::Report& report, const model::Session* session) {
  return ProfileWalk(report).walk(session);
}

}  // namespace rangescope::report
