#include "read/fingerprint.hpp"

#include <bit>

#include "base/hash.hpp"

namespace rangescope::read {
namespace {

using model::Session;

class Mixer {
 public:
  explicit Mixer(const Session& session) : session_(session) {}

  void number(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15U;
    hash_ ^= hash_ >> 29U;
  }
  void number(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void text(model::StringId id) { number(base::fnv1a(session_.strings.view(id))); }
  template <class T>
  void times(const std::vector<T>& all) {
    number(std::uint64_t{all.size()});
    for (const T& item : all) {
      number(static_cast<std::uint64_t>(item.start_ns));
      number(static_cast<std::uint64_t>(item.end_ns));
    }
  }
  [[nodiscard]] std::uint64_t result() const { return hash_ == kNoFingerprint ? 1 : hash_; }

 private:
  const Session& session_;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

bool has_content(const Session& session) {
  const bool has_events = !session.ranges.empty() || !session.launches.empty();
  const bool has_work = !session.kernels.empty() || !session.copies.empty();
  const bool has_results = !session.measurements.empty() || !session.summary.empty();
  return has_events || has_work || has_results || !session.allocators.empty();
}

void add_summary(const Session& session, Mixer& mixer) {
  for (const model::RangeSummary& range : session.summary.ranges) {
    mixer.text(range.name);
    mixer.number(range.total_ns.value_or(-1));
  }
  for (const model::KernelSummary& kernel : session.summary.kernels) {
    mixer.text(kernel.name);
    mixer.number(kernel.total_ns);
  }
  for (const model::CopySummary& copy : session.summary.copies)
    mixer.number(copy.total_ns);
}

void add_allocators(const model::Allocators& allocators, Mixer& mixer) {
  for (const model::Allocator& allocator : allocators.allocators) {
    mixer.number(std::uint64_t{allocator.ordinal});
    mixer.number(static_cast<std::uint64_t>(allocator.first_ns));
    mixer.number(static_cast<std::uint64_t>(allocator.last_ns));
  }
  mixer.times(allocators.allocations);
  for (const model::Allocation& allocation : allocators.allocations)
    mixer.number(allocation.bytes);
  for (const model::FailedAllocation& failure : allocators.failures) {
    mixer.number(static_cast<std::uint64_t>(failure.at_ns));
    mixer.number(failure.bytes);
  }
}

}  // namespace

std::uint64_t fingerprint(const Session& session) {
  if (!has_content(session))
    return kNoFingerprint;
  Mixer mixer(session);
  mixer.number(static_cast<std::uint64_t>(session.clock.anchor_unix_ns - session.clock.anchor_ns));
  for (const model::Process& process : session.processes) {
    mixer.number(std::uint64_t{process.pid});
    mixer.number(std::uint64_t{process.rank});
    for (const model::StringId id : {process.name, process.host, process.run})
      mixer.text(id);
  }
  mixer.times(session.ranges);
  for (const model::Range& range : session.ranges)
    mixer.text(range.name);
  mixer.times(session.launches);
  mixer.times(session.kernels);
  mixer.times(session.copies);
  mixer.times(session.memsets);
  mixer.times(session.synchronizations);
  for (const model::Measurement& result : session.measurements) {
    mixer.number(std::uint64_t{result.kernel_name});
    for (const model::MetricValue& value : result.values)
      mixer.number(value.value);
  }
  add_summary(session, mixer);
  add_allocators(session.allocators, mixer);
  return mixer.result();
}

}  // namespace rangescope::read
