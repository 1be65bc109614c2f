// A call as an NVTX range of domain `MPI`. The payload of its push has communicator or window, peer
// and tag. The payload of its pop has the outcome, if MPI has accepted all arguments: bytes, the
// sender of a message, the completed requests.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdint>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

[[nodiscard]] nvtxDomainHandle_t domain();

inline constexpr std::uint64_t kUnknownBytes = ~std::uint64_t{0};

/// The payload of a push. `Says` tells which fields are valid.
struct Begun {
  std::uint64_t communicator, request;
  std::int32_t peer, tag, self, source, source_tag, unused;
};
enum Says : std::uint8_t {
  kSaysPeer = 1,
  kSaysTag = 2,
  kSaysSource = 4,
  kSaysRequest = 8,
  kSaysAll = 16
};

struct Completion {
  std::uint64_t request, bytes;
  std::int32_t source, tag;
};
[[nodiscard]] nvtxPayloadData_t payload_of(const Completion& completion);

class Range {
 public:
  explicit Range(nvtxStringHandle_t name) { push(name, nullptr); }
  /// `begun`: everything except the id of the communicator `comm` and the own rank in it.
  Range(nvtxStringHandle_t name, Word comm, std::uint8_t says, Begun begun);
  ~Range();
  Range& operator=(Range&&) = delete;

  [[nodiscard]] bool is_followed() const { return self_ > -2; }
  /// Own rank in the communicator.
  [[nodiscard]] int self() const { return self_; }
  void bytes(std::uint64_t bytes);
  /// `exchange`: the call also sends, and its peer is the receiver.
  void received_from(int source, int tag, bool exchange);
  /// `data` must outlive the range.
  void completed(const nvtxPayloadData_t* data, std::size_t count) {
    data_ = data;
    count_ = count;
  }

 private:
  static void push(nvtxStringHandle_t name, const nvtxPayloadData_t* data);
  int self_ = -2;  ///< -2: not followed
  std::uint64_t bytes_ = 0;
  struct {
    std::int32_t source, tag;
  } sender_{};
  nvtxPayloadData_t own_[2];
  const nvtxPayloadData_t* data_ = own_;
  std::size_t count_ = 0;
};

}  // namespace rangescope::inject::mpi
