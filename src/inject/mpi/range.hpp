// A call as an NVTX range of domain `MPI`. Its push says where it stands (communicator or window,
// peer, tag), its pop what came of it, once MPI has accepted all arguments: bytes, where a message
// came from, what requests were completed.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdint>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

[[nodiscard]] nvtxDomainHandle_t domain();

inline constexpr std::uint64_t kUnknownBytes = ~std::uint64_t{0};

/// What a call says as it begins. Which fields of it count, `Says` tells.
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
  /// `begun`: all but the communicator's id and the own rank in it, which are those of `comm`.
  Range(nvtxStringHandle_t name, Word comm, std::uint8_t says, Begun begun);
  ~Range();
  Range& operator=(Range&&) = delete;

  [[nodiscard]] bool is_followed() const { return self_ > -2; }
  /// Own rank in the communicator.
  [[nodiscard]] int self() const { return self_; }
  void bytes(std::uint64_t bytes);
  /// Of a receive: from where, and with which tag.
  void came(int source, int tag, bool exchange);
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
  } came_{};
  nvtxPayloadData_t own_[2];
  const nvtxPayloadData_t* data_ = own_;
  std::size_t count_ = 0;
};

}  // namespace rangescope::inject::mpi
