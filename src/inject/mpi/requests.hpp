// Active requests: the message that each began, until a call completes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/mpi/function.hpp"
#include "inject/mpi/handles.hpp"
#include "inject/mpi/range.hpp"

namespace rangescope::inject::mpi {

struct Posted {
  std::uint64_t number = 0;  ///< 0: not followed
  std::uint64_t bytes = 0;
  std::int32_t peer = -2, tag = 0;
  bool receives = false;
  /// Of a persistent request: the name of its ranges. Its number is 0 until it starts.
  nvtxStringHandle_t start = nullptr;
  Word comm = 0;
};

[[nodiscard]] std::uint64_t next_number();

/// By the handles of requests, and of messages that were probed.
extern Handles<Posted> active_requests;
/// Stores a request, unless other requests may have the same handle.
void put(Word request, const Posted& posted);

/// The requests of a call that completes some. They are removed before the call, because a handle
/// may be used again as soon as its request is complete. Those that are not complete are put back.
class Completing {
 public:
  explicit Completing(const Arguments& arguments);
  ~Completing();
  Completing& operator=(Completing&&) = delete;

  /// To be called after MPI's function. Finds the complete requests (those whose handle has been
  /// cleared, persistent ones if MPI names them) and stores the others again.
  void finish(bool accepted);
  [[nodiscard]] bool any() const { return complete_ > 0; }
  void attach_to(Range& range) const { range.completed(data_, complete_); }

 private:
  static constexpr std::size_t kFew = 8;  ///< with so many no memory is allocated
  static constexpr std::size_t kMost = 1 << 16;
  static constexpr std::size_t kStatusBytes = 24;
  struct Request {
    Word raw;  ///< the handle before the call, as it is in memory
    Word handle;
    Posted posted;
    Completion completion;
  };

  /// Handle `index` as it is in memory now.
  [[nodiscard]] Word raw_handle(std::size_t index) const;
  /// The number of requests that MPI names as complete, after a call that it has accepted.
  [[nodiscard]] int named_by_mpi() const;
  /// The request that MPI names as the n-th; negative for none.
  [[nodiscard]] int index_of_named(int n) const;
  void add_named();
  void add(Request& request, const char* status);

  const Arguments& arguments_;
  char* statuses_ = nullptr;
  std::size_t count_ = 0;
  std::size_t complete_ = 0;
  Request few_requests_[kFew];
  char few_statuses_[kFew * kStatusBytes];
  nvtxPayloadData_t few_data_[kFew];
  Request* requests_ = few_requests_;
  nvtxPayloadData_t* data_ = few_data_;
  char* own_statuses_ = few_statuses_;
};

}  // namespace rangescope::inject::mpi
