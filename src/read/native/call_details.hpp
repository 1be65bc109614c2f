// What calls allocated, freed, recorded and waited for, of one process: from the records kMemory,
// kEvent and kStreamMade of its GPU stream, each of which belongs to the call whose record precedes
// it.
//
// Memory is on the device of its context, whose own record comes later: that is looked up at the
// end. A free learns bytes and kind from the allocation at its address.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/session.hpp"
#include "wire/gpu.hpp"

namespace rangescope::read::native {

class CallDetails {
 public:
  /// Session::devices by CUPTI's context id.
  using DeviceOfContext = std::unordered_map<std::uint32_t, std::uint32_t>;

  CallDetails(std::uint32_t process, model::Session& session)
      : process_(process), session_(session) {}

  /// Of session.launches[launch]. `stream`: index into Session::streams, kNone where there is none.
  void add(const wire::gpu::Memory& memory, std::uint32_t launch, std::uint32_t stream);
  void add(const wire::gpu::Event& event, std::uint32_t launch, std::uint32_t stream);
  /// session.launches[from + i] is at places[i] now, or nowhere.
  void moved(std::size_t from, const std::vector<std::uint32_t>& places);
  /// After the times of calls are known.
  void finish(const DeviceOfContext& device_of_context);
  /// The stream that a call waited for, kNone where that is unknown.
  [[nodiscard]] std::uint32_t awaited_stream(std::uint32_t launch) const;

 private:
  void complete_frees(std::vector<model::MemoryEvent>& events) const;

  std::uint32_t process_;
  model::Session& session_;
  std::vector<model::MemoryEvent> memory_;  ///< `device` holds CUPTI's context id until finish()
  std::vector<model::EventCall> events_;
  std::unordered_map<std::uint32_t, std::uint32_t> awaited_streams_;  ///< by launch
};

}  // namespace rangescope::read::native
