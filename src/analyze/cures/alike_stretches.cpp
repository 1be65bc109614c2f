#include "analyze/cures/alike_stretches.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analyze/replay/between_calls.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::size_t kFewestInstances = 3;
constexpr std::size_t kFewestSamples = 8;

/// A call and the kernel that it launched, by their names; "" where there is none.
struct NamedCall {
  std::string_view call, kernel;
  auto operator<=>(const NamedCall&) const = default;
};

class StretchesBySurroundings {
 public:
  StretchesBySurroundings(const Recording& recording, const Findings& findings)
      : recording_(recording), findings_(findings) {
    for (std::size_t index = kStartUpInstances; index < recording.instances().size(); ++index)
      add(index);
  }
  [[nodiscard]] std::vector<AlikeStretches> take() {
    std::vector<AlikeStretches> groups;
    for (auto& [surroundings, group] : groups_)
      groups.push_back(std::move(group));
    return groups;
  }

 private:
  void add(std::size_t index) {
    const Instance& instance = recording_.instances()[index];
    std::unordered_map<Id, Id> kernel_of_call;
    for (const Id kernel : instance.kernels)
      kernel_of_call.try_emplace(replay::launch_of(recording_.graph(), kernel), kernel);
    NamedCall before;
    Ids stretches;
    const auto add_stretches_in_front_of = [&](const NamedCall& behind) {
      for (const Id stretch : stretches) {
        AlikeStretches& group = groups_[{before, behind}];
        group.ids.push_back(stretch);
        group.instances.insert(index);
      }
      stretches.clear();
    };
    for (const Id id : instance.calls) {
      const Operation& operation = recording_.operation(id);
      if (operation.kind == Kind::kStretch) {
        if (replay::is_long_stretch(operation) && !findings_.is_claimed(id))
          stretches.push_back(id);
        continue;
      }
      const auto kernel = kernel_of_call.find(id);
      const bool has_kernel = kernel != kernel_of_call.end();
      const NamedCall call{recording_.call_name(id),
                           has_kernel ? recording_.kernel_name(kernel->second) : ""};
      add_stretches_in_front_of(call);
      before = call;
    }
    add_stretches_in_front_of({});
  }

  const Recording& recording_;
  const Findings& findings_;
  std::map<std::pair<NamedCall, NamedCall>, AlikeStretches> groups_;
};

}  // namespace

std::vector<AlikeStretches> alike_stretches(const Recording& recording, const Findings& findings) {
  return StretchesBySurroundings(recording, findings).take();
}

void SampledStretches::add(const AlikeStretches& group, const StackSamples::Share& share_of_group) {
  append(ids, group.ids);
  instances.insert(group.instances.begin(), group.instances.end());
  share.samples += share_of_group.samples;
  share.at_places += share_of_group.at_places;
}

bool SampledStretches::go_on(const Recording& recording) const {
  return share.at_places >= kFewestSamples && instances.size() >= kFewestInstances &&
         is_late(recording, *instances.rbegin());
}

replay::Parameter SampledStretches::rest() const {
  constexpr double kUncertain = 0.1;
  const double left = 1 - static_cast<double>(share.at_places) / static_cast<double>(share.samples);
  return {left, std::max(0.0, left - kUncertain), std::min(1.0, left + kUncertain)};
}

double SampledStretches::duration_ns(const Recording& recording) const {
  return (1 - rest().expected) * recording.duration_ns(ids);
}

void add_shortened(const Recording& recording,
                   Findings& findings,
                   const char* cure,
                   std::string text,
                   SampledStretches work) {
  findings.claim(work.ids);
  Candidate candidate{cure,
                      std::move(text),
                      {},
                      work.rest(),
                      {{"instances", static_cast<double>(work.instances.size())},
                       {"samples", static_cast<double>(work.share.at_places)},
                       {"stretch_ns", work.duration_ns(recording)}}};
  candidate.remedy.shortened = std::move(work.ids);
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
