// Messages under way: what began each request, until a call completes it.
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
  nvtxStringHandle_t start =
      nullptr;  ///< of a persistent one: the name of its ranges. Its number is 0 until it starts
  Word comm = 0;
};

[[nodiscard]] std::uint64_t next_number();

/// By the handles of requests, and of messages that were probed.
extern Handles<Posted> under_way;
/// Unless its request stands for many.
void put(Word request, const Posted& posted);

/// The requests of a call that completes some. What began them is taken before the call, since a
/// handle may be used again as soon as its request is complete, and put back where it is not.
class Completing {
 public:
  explicit Completing(const Arguments& arguments);
  ~Completing();
  Completing& operator=(Completing&&) = delete;

  /// After the call. A request is complete when its handle is gone, a persistent one when MPI names
  /// it.
  void done(bool accepted);
  [[nodiscard]] bool any() const { return complete_ > 0; }
  void tell(Range& range) const { range.completed(data_, complete_); }

 private:
  static constexpr std::size_t kFew = 8, kMost = 1 << 16, kStatus = 24;
  struct Room {
    Word raw, handle;
    Posted posted;
    Completion completion;
  };

  [[nodiscard]] Word raw(std::size_t place) const;
  void add(Room& one, const char* status);
  const Arguments& arguments_;
  char* statuses_ = nullptr;
  std::size_t count_ = 0, complete_ = 0;
  Room few_[kFew];
  char few_statuses_[kFew * kStatus];
  nvtxPayloadData_t few_data_[kFew];
  Room* rooms_ = few_;
  nvtxPayloadData_t* data_ = few_data_;
  char* own_ = few_statuses_;
};

}  // namespace rangescope::inject::mpi
