// Messages under way: what began each request, until a call completes it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "inject/mpi/communicators.hpp"
#include "inject/mpi/range.hpp"

namespace rangescope::inject::mpi {

struct Posted {
  std::uint64_t number;  // 0: not followed
  std::uint64_t bytes;
  std::int32_t peer, tag;
  bool receives;
  nvtxStringHandle_t start;  // of a persistent one: the name of its ranges. Its number is 0 until it is started
  MPI_Comm comm;
};
inline std::atomic<std::uint64_t> posted_count{0};

/// Requests under way by their handles, without a lock: a request belongs to one call at a time. One that finds its few
/// places taken is not followed.
class Requests {
 public:
  void put(MPI_Request request, const Posted& posted);
  Posted take(MPI_Request request);

 private:
  struct Place {
    std::atomic<std::uintptr_t> request{0};
    Posted posted{};
  };
  static constexpr std::size_t kPlaces = 4096, kTried = 16;
  static constexpr std::uintptr_t kBusy = 1;
  Place* first(MPI_Request request) { return &places_[mix(1, reinterpret_cast<std::uintptr_t>(request)) % kPlaces]; }
  Place places_[kPlaces + kTried];
};
extern Requests requests_under_way;

/// A persistent request is about to be started.
void begin(MPI_Request request);

/// The requests of a call that completes some. What began them is taken before the call, since a handle may be used
/// again as soon as its request is complete, and put back where it is not.
class Completing {
 public:
  Completing(int count, MPI_Request* requests, MPI_Status* statuses);
  ~Completing();
  Completing(const Completing&) = delete;
  Completing& operator=(const Completing&) = delete;

  /// What the call gets: the caller's, or room of its own where that is nowhere.
  [[nodiscard]] MPI_Status* statuses() const { return statuses_; }

  /// The n-th of `known` statuses is that of the request order[n], without `order` of the n-th. A request is complete
  /// when its handle is gone, a persistent one when it is among the known.
  void done(int result, const int* order, int known);
  [[nodiscard]] bool any() const { return complete_ > 0; }
  void tell(Range& range) const { range.completed(data_, complete_); }

 private:
  static constexpr std::size_t kFew = 8, kMost = 1024;
  struct Room {
    MPI_Request handle;
    Posted posted;
    Completion completion;
  };

  void add(Room& one, const MPI_Status* status);
  Room& room(std::size_t i) { return more_ == nullptr ? few_[i] : more_[i]; }

  MPI_Request* requests_;
  MPI_Status* statuses_;
  std::size_t count_ = 0, complete_ = 0;
  Room few_[kFew];
  MPI_Status few_statuses_[kFew];
  nvtxPayloadData_t few_data_[kFew];
  Room* more_ = nullptr;
  nvtxPayloadData_t* data_ = few_data_;
  MPI_Status* own_ = few_statuses_;
};

}  // namespace rangescope::inject::mpi
