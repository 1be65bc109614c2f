// A call as an NVTX range of domain `MPI`, with a payload: communicator, bytes, peer, tag.
#pragma once

#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdint>

namespace rangescope::inject::mpi {

struct Payload {
  std::uint64_t communicator, bytes;
  std::int32_t peer, tag, self, source, source_tag, unused;
  std::uint64_t request;
};
struct Completion {
  std::uint64_t request, bytes;
  std::int32_t source, tag;
};
inline constexpr std::uint64_t kCollective = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1, kMessage = kCollective + 1,
                               kExchange = kCollective + 2, kRequest = kCollective + 3, kCompletion = kCollective + 4;

[[nodiscard]] nvtxDomainHandle_t domain();

/// 0 under another MPI than Open MPI.
[[nodiscard]] std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type);
/// Of a message that was received; what `otherwise` says where the library does not.
[[nodiscard]] std::uint64_t received_bytes(const MPI_Status& status, std::uint64_t otherwise);

class Range {
 public:
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer = -1)
      : Range(name, comm, kCollective, {0, bytes, peer, 0, 0, 0, 0, 0, 0}) {}
  /// A message, one that is only begun under its request's number, and one from `source` where that is given.
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag)
      : Range(name, comm, kMessage, {0, bytes, peer, tag, 0, 0, 0, 0, 0}) {}
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag, std::uint64_t request)
      : Range(name, comm, kRequest, {0, bytes, peer, tag, 0, 0, 0, 0, request}) {}
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag, int source, int source_tag)
      : Range(name, comm, kExchange, {0, bytes, peer, tag, 0, source, source_tag, 0, 0}) {}
  explicit Range(nvtxStringHandle_t name) { push(name, nullptr); }
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  /// Where a message came from, which wildcards do not say before, and what came of what there was room for.
  void came(const MPI_Status& status);
  /// `data` must outlive the range.
  void completed(const nvtxPayloadData_t* data, std::size_t count) {
    completed_ = data;
    completed_count_ = count;
  }
  [[nodiscard]] bool is_followed() const { return schema_ != 0; }

 private:
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t schema, Payload payload);
  static void push(nvtxStringHandle_t name, const nvtxPayloadData_t* data);
  std::uint64_t schema_ = 0;
  Payload payload_{};
  bool more_ = false;  ///< the pop says more than the push did
  const nvtxPayloadData_t* completed_ = nullptr;
  std::size_t completed_count_ = 0;
};
#define RANGE(name, ...)                                                                    \
  static const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain(), "MPI_" #name); \
  Range range(text __VA_OPT__(, ) __VA_ARGS__)

}  // namespace rangescope::inject::mpi
