// The counter records of a GPU stream (format: wire/counters.hpp) into measurements of a session.
//
// Each complete round is one Measurement, of a range or of one kernel of it. Losses and notes say
// what happened to the other occurrences; the time in which the timeline was paused becomes
// Session::gpu_pauses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/session.hpp"
#include "read/index.hpp"
#include "read/native/gpu_records.hpp"
#include "wire/counters.hpp"

namespace rangescope::read::native {

class CounterReader {
 public:
  CounterReader(std::uint32_t process, model::Session& session, Index& index)
      : process_(process), session_(session), index_(index) {}

  /// Takes names and counter records; others are left alone. True when it was a counter record.
  bool take(const GpuRecord& record);
  /// Puts everything into the session; `where` names the file in losses.
  void finish(const std::string& where);

 private:
  struct Target {
    model::RangeKind kind = model::RangeKind::kPushPop;
    std::uint32_t domain = 0;          // a name
    std::vector<std::uint32_t> names;  // bottom to top
  };
  struct Round {
    wire::counters::Round head{};
    std::vector<double> values;
  };

  [[nodiscard]] std::string_view name(std::uint32_t id) const;
  [[nodiscard]] std::string path_of(std::uint32_t target) const;
  void take_target(const GpuRecord& record);
  void take_round(const GpuRecord& record);
  void add_round(const Round& round, const std::vector<std::uint32_t>& metrics);
  [[nodiscard]] std::uint32_t device_index(std::uint32_t ordinal) const;
  void set_kernel(const wire::counters::Round& head, model::Measurement& out);
  void set_values(const Round& round,
                  const std::vector<std::uint32_t>& metrics,
                  model::Measurement& out) const;
  void keep_wait(const wire::counters::Tally& tally);
  [[nodiscard]] std::string note_of(std::uint32_t target, std::uint32_t device) const;
  void add_losses(const wire::counters::Tally& tally, const std::string& where);

  std::uint32_t process_;
  model::Session& session_;
  Index& index_;
  std::map<std::uint32_t, std::string> names_, metrics_;
  std::map<std::uint32_t, Target> targets_;
  std::vector<Round> rounds_;
  std::uint64_t damaged_ = 0;
  std::vector<wire::counters::Tally> tallies_;
  std::vector<std::pair<bool, std::int64_t>> activity_;  // resumed, when
};

}  // namespace rangescope::read::native
