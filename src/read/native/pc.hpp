// The samples of the program counter in a GPU stream (format: wire/pc.hpp), into Session::pc.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/session.hpp"
#include "read/native/gpu_records.hpp"
#include "wire/pc.hpp"

namespace rangescope::read::native {

class PcReader {
 public:
  /// True if the record was one of these.
  bool take(const GpuRecord& record);
  /// Adds the samples of launches[from ...] to the session, once the launches have their final
  /// indexes. `names`: the stream's names, as indexes into Session::kernel_names. `where` names the
  /// file in losses.
  void finish(const std::string& where,
              std::size_t from,
              const std::unordered_map<std::uint32_t, std::uint32_t>& names,
              model::Session& session) const;

 private:
  void add_lost_samples(const std::string& where, model::Session& session) const;

  struct Sample {
    std::uint32_t correlation, place, reason, samples;
  };
  std::unordered_map<std::uint32_t, std::string> reasons_;
  std::unordered_map<std::uint32_t, wire::pc::Place> places_;
  std::vector<Sample> samples_;
  std::uint64_t all_ = 0, dropped_ = 0, windows_ = 0, full_ = 0, damaged_ = 0;
};

}  // namespace rangescope::read::native
