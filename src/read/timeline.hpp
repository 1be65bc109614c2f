// What readers of recordings with a timeline do at their end, alike.
#pragma once

#include <limits>
#include <string_view>

#include "model/gpu.hpp"
#include "model/session.hpp"

namespace rangescope::read {

// What a CUDA API call is for, from its name with or without the suffix _vNNNN.

/// kGraph or kSynchronize by the name, kOther otherwise.
[[nodiscard]] model::LaunchKind launch_kind(std::string_view api);
/// What a call of kind kSynchronize (or a stream's wait) waits for.
[[nodiscard]] model::SyncKind sync_kind(std::string_view api);

/// The direction in a copy's name, as every tool writes it; kUnknown where there is none: "[CUDA
/// memcpy Host-to-Device]", "Memcpy HtoD (Pinned -> Device)", "MemcpyH2D", "CopyHostToDevice",
/// "MEMORY_COPY_HOST_TO_DEVICE".
[[nodiscard]] model::CopyKind copy_kind(std::string_view name);
/// Of CUPTI's number (CUpti_ActivityMemoryKind); kUnknown of any other.
[[nodiscard]] constexpr model::MemoryKind memory_kind(std::int64_t number) {
  constexpr auto kLast = static_cast<std::int64_t>(model::MemoryKind::kManagedStatic);
  const bool is_known = number > 0 && number <= kLast;
  return is_known ? static_cast<model::MemoryKind>(number) : model::MemoryKind::kUnknown;
}
/// Memory that a copy's name says that it was from and to: "Memcpy HtoD (Pinned -> Device)".
struct CopyMemory {
  model::MemoryKind source = model::MemoryKind::kUnknown, destination = model::MemoryKind::kUnknown;
};
[[nodiscard]] CopyMemory copy_memory(std::string_view name);
/// `call` launched work of this kind; a graph launch stays one whatever it ran.
inline void launched(model::Launch& call, model::LaunchKind kind) {
  if (call.kind != model::LaunchKind::kGraph && call.kind != model::LaunchKind::kSynchronize)
    call.kind = kind;
}

/// Adds a wait for each call of kind kSynchronize that has none of its own yet; of calls inside
/// each other the outer one. Calls that a recorded wait names become kSynchronize. O(n log n).
void add_waits_of_calls(model::Session& session);

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
/// Sets first and last moment of each process and of the session, by its ranges, marks, calls,
/// waits and GPU work; `begin` and `end` lie in the session too. The session's stay where nothing
/// has a time.
void set_extents(model::Session& session, std::int64_t begin = kNever, std::int64_t end = -kNever);

}  // namespace rangescope::read
