// From events of a trace to a session.
//
// Operators (cpu_op) and annotations (user_annotation, ProfilerStep#) become push/pop ranges of the default domain, as
// they nest on their thread; modules (with_modules, with_stack) and Python functions those of the domains "nn.Module"
// and "python"; annotations on GPU streams those of the domain "gpu_annotation", on a thread for each stream; what the
// profiler itself did those of the domain "overhead", on one thread, since traces do not say on which it was. GPU work
// belongs to the CUDA call of its correlation id, and where no call was recorded to the operator of its external id.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/session.hpp"
#include "read/kineto/event.hpp"

namespace rangescope::read::kineto {

class Builder {
 public:
  /// A member of the root besides the events: deviceProperties, distributedInfo, baseTimeNanoseconds ...
  void member(std::string_view key, std::string_view json);
  void add(const Event& event);
  /// An event that could not be parsed.
  void bad() { ++bad_events_; }
  /// Events that say something of a program: without any it is no trace of PyTorch.
  [[nodiscard]] std::uint64_t known() const { return known_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  /// What the trace says of the job: ", rank 0 of 2, 1 process group, nccl"; "" where nothing.
  [[nodiscard]] const std::string& job() const { return job_; }
  /// Links and sorts. Call it once.
  [[nodiscard]] model::Session finish();

 private:
  struct StreamKey {
    std::uint32_t device, context, id;
    auto operator<=>(const StreamKey&) const = default;
  };

  std::uint32_t process(std::uint32_t pid);
  std::uint32_t thread(std::uint32_t pid, std::uint32_t tid);
  std::uint32_t no_thread(const std::string& name, std::uint32_t number);
  std::uint32_t domain(std::string_view name);
  std::uint32_t stream_key(const Event& event);
  void range(const Event& event, std::uint32_t domain, std::uint32_t on = model::kNone);
  void collective(const Event& event);
  void call(const Event& event);
  void kernel(const Event& event);
  void wait(const Event& event);
  void metadata(const Event& event);
  void memory(const Event& event);
  std::uint32_t attributes(const Event& event);

  void leave_out_idle_threads();
  void order_ranges();
  void take_out_overhead();
  void number_collectives();
  void link_work();
  void link_waits();
  void extents();
  void losses();
  template <class Work>
  void link(std::vector<Work>& all, model::LaunchKind kind);
  std::uint32_t launch_of(std::uint32_t correlation, std::uint32_t external);

  model::Session s_;
  std::map<std::uint32_t, std::uint32_t> process_of_;
  std::unordered_map<std::uint64_t, std::uint32_t> thread_of_;
  std::map<std::string, std::uint32_t> no_threads_;  ///< what is on a timeline of its own: GPU streams, the profiler
  std::map<std::string, std::uint32_t, std::less<>> domains_{{"", 0}};
  std::map<StreamKey, std::uint32_t> stream_keys_;
  std::vector<StreamKey> keys_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> stream_of_;  ///< process, key
  std::map<std::uint32_t, std::uint32_t> device_of_;                            ///< ordinal
  std::map<model::KernelShape, std::uint32_t> shapes_;
  std::unordered_map<model::StringId, std::uint32_t> names_, texts_;
  std::map<std::uint64_t, std::uint32_t> nodes_;
  std::map<std::uint32_t, model::StringId> process_names_;
  std::unordered_map<std::uint64_t, model::StringId> thread_names_;
  struct Collective {
    std::uint64_t communicator;
    std::int64_t ranks, bytes;  ///< bytes -1 where the trace does not say
  };
  std::unordered_map<std::uint32_t, Collective> collectives_;  ///< by attributes of their ranges
  std::string backend_;
  std::vector<std::uint32_t> kernel_external_, copy_external_, memset_external_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> calls_;      ///< correlation id, launch
  std::vector<std::pair<std::uint32_t, std::uint32_t>> operators_;  ///< external id, range; made when asked for
  std::map<std::string, std::uint64_t, std::less<>> unread_;        ///< events by category
  std::map<std::uint32_t, std::uint32_t> standing_in_;              ///< range: launch that stands in for its call
  std::int64_t span_begin_ = 0, span_end_ = 0, base_ns_ = 0;
  std::int64_t rank_ = -1;
  std::uint32_t world_ = 0;
  std::string job_;
  std::uint64_t events_ = 0, known_ = 0, bad_events_ = 0, placed_ = 0, idle_threads_ = 0;
  bool fraction_ = false, lost_gpu_work_ = false;
};

}  // namespace rangescope::read::kineto
