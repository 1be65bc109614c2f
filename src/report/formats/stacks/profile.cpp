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

/// Millijoules.
std::optional<double> energy_of(const Region& region) {
  const auto found = region.metrics.find("energy");
  if (found == region.metrics.end())
    return {};
  const model::Metric& energy = found->second;
  if (!energy.absent.empty())
    return {};
  const double instances = energy.of_all ? 1 : static_cast<double>(region.occurrences);
  return energy.value * 1e3 * instances;
}

class ProfileWalk {
 public:
  explicit ProfileWalk(const model::Report& report) : report_(report) {}

  Profile walk(const model::Session* session) {
    regions();
    outside();
    if (session != nullptr && session->cpu.interval_ns > 0)
      functions(*session);
    return std::move(profile_);
  }

 private:
  void add(const ProfileStack& stack, ProfileKind kind, double value) {
    if (!(value >= 0.5))
      return;
    if (std::ranges::find(profile_.kinds, kind) == profile_.kinds.end()) {
      profile_.kinds.push_back(kind);
      std::ranges::sort(profile_.kinds);
    }
    std::vector<std::uint64_t> frames;
    for (const ProfileFrame& frame : stack)
      frames.push_back(number_of(frame));
    profile_.samples[std::move(frames)].at(kind) += value;
  }

  /// The frame's number, from 1; a new one if the profile lacks it.
  std::uint64_t number_of(const ProfileFrame& frame) {
    const std::uint64_t next = profile_.frames.size() + 1;
    return profile_.frames.try_emplace(frame, next).first->second;
  }

  static ProfileStack range_frames(const std::vector<std::string>& path) {
    ProfileStack stack;
    for (const std::string& name : path)
      stack.emplace_back(base::printable(name), "NVTX");
    return stack;
  }
  static ProfileStack with_frame(ProfileStack stack,
                                 const std::string& name,
                                 const std::string& file) {
    stack.emplace_back(base::printable(name), base::printable(file));
    return stack;
  }

  using Tree = std::pair<std::string, model::RangeKind>;  ///< domain and kind
  /// The tree with most wall time; comments name the others.
  [[nodiscard]] std::optional<Tree> choose_tree() {
    std::map<Tree, double> wall_ns_of;
    for (const Region& region : report_.regions) {
      if (!region.process && !region.thread)
        wall_ns_of[{region.domain, region.kind}] += region.wall.exclusive_ns;
    }
    if (wall_ns_of.empty())
      return {};
    const Tree chosen =
        std::ranges::max_element(wall_ns_of, std::ranges::less(), [](const auto& tree) {
          return tree.second;
        })->first;
    for (const auto& [tree, wall_ns] : wall_ns_of) {
      if (tree == chosen)
        continue;
      const auto& [domain, kind] = tree;
      std::string name = "the default domain";
      if (!domain.empty())
        name = "domain " + base::printable(domain);
      profile_.comments.push_back("left out, since they overlap: " +
                                  std::string(model::range_kind_key(kind)) + " ranges of " + name);
    }
    return chosen;
  }

  void regions() {
    const auto tree = choose_tree();
    std::vector<const Region*> regions;
    std::map<std::uint32_t, std::vector<const Region*>> children_of;
    for (const Region& region : report_.regions) {
      if (region.process || region.thread)
        continue;
      if (Tree{region.domain, region.kind} != tree)
        continue;
      regions.push_back(&region);
      children_of[region.parent].push_back(&region);
    }
    for (const Region* region : regions)
      self_values(*region, children_of[region->id]);
    other_gpu_work(children_of[model::kNone]);
  }

  /// The values of a region without those of its children.
  void self_values(const Region& region, const std::vector<const Region*>& children) {
    const ProfileStack stack = range_frames(region.path);
    add(stack, kWall, region.wall.exclusive_ns);
    if (const auto energy = energy_of(region)) {
      double self_energy = *energy;
      for (const Region* child : children)
        self_energy -= energy_of(*child).value_or(0);
      add(stack, kEnergy, self_energy);
    }
    if (!region.gpu)
      return;
    double self_bytes = region.gpu->copy_bytes;
    for (const Region* child : children)
      if (child->gpu)
        self_bytes -= child->gpu->copy_bytes;
    add(stack, kCopied, self_bytes);
    kernels(region, children, stack);
  }

  void kernels(const Region& region,
               const std::vector<const Region*>& children,
               const ProfileStack& stack) {
    std::map<std::string, double> self_ns_of;  // by name
    bool are_all_listed = true;
    const auto add_kernels = [&](const GpuWork& work, double sign) {
      for (const model::KernelRow& row : work.top_kernels)
        self_ns_of[row.name] += sign * row.total_ns;
      if (std::ssize(work.top_kernels) != work.distinct_kernels)
        are_all_listed = false;
    };
    add_kernels(*region.gpu, 1);
    for (const Region* child : children)
      if (child->gpu)
        add_kernels(*child->gpu, -1);
    double sum_ns = 0;
    for (const auto& [name, ns] : self_ns_of)
      sum_ns += std::max(ns, 0.0);
    const bool differs = std::abs(sum_ns - region.gpu->exclusive_kernel_ns) > 1;
    if (!are_all_listed || differs)
      self_ns_of = {{"(kernels)", region.gpu->exclusive_kernel_ns}};
    for (const auto& [name, ns] : self_ns_of)
      add(with_frame(stack, name, "GPU"), kGpu, ns);
  }

  /// GPU work outside ranges, and in ranges of other trees.
  void other_gpu_work(const std::vector<const Region*>& roots) {
    if (!report_.total)
      return;
    double others_ns = report_.total->kernel_ns;
    double others_bytes = report_.total->copy_bytes;
    for (const Region* root : roots) {
      if (!root->gpu)
        continue;
      others_ns -= root->gpu->kernel_ns;
      others_bytes -= root->gpu->copy_bytes;
    }
    if (report_.unattributed) {
      const GpuWork& outside = *report_.unattributed;
      const ProfileStack stack = with_frame({}, "(outside ranges)", "");
      double listed_ns = 0;
      for (const model::KernelRow& row : outside.top_kernels) {
        add(with_frame(stack, row.name, "GPU"), kGpu, row.total_ns);
        listed_ns += row.total_ns;
      }
      add(with_frame(stack, "(kernels)", "GPU"), kGpu, outside.kernel_ns - listed_ns);
      add(stack, kCopied, outside.copy_bytes);
      others_ns -= outside.kernel_ns;
      others_bytes -= outside.copy_bytes;
    }
    const ProfileStack others = with_frame({}, "(other ranges)", "");
    add(with_frame(others, "(kernels)", "GPU"), kGpu, others_ns);
    add(others, kCopied, others_bytes);
  }

  void outside() {
    if (report_.outside)
      add(with_frame({}, "(outside ranges)", ""), kWall, report_.outside->wall_ns);
  }

  void functions(const model::Session& session) {
    for (const Chain& chain : chains(report_)) {
      ProfileStack stack;
      if (chain.ranges.empty())
        stack = with_frame({}, "(outside ranges)", "");
      else
        stack = range_frames(chain.ranges);
      for (const std::uint32_t index : frames_of(session.cpu, chain.stack)) {
        const model::CpuFrame& frame = session.cpu.frames[index];
        const std::string file(file_of(session, frame));
        stack = with_frame(std::move(stack), frame_text(session, frame), file);
      }
      add(stack, kCpu, static_cast<double>(chain.samples * session.cpu.interval_ns));
    }
  }

  const model::Report& report_;
  Profile profile_;
};

}  // namespace

Profile make_profile(const model::Report& report, const model::Session* session) {
  return ProfileWalk(report).walk(session);
}

}  // namespace rangescope::report
