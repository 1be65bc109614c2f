#include "inject/mpi/requests.hpp"

#include <cstdlib>

#include "inject/mpi/next.hpp"

namespace rangescope::inject::mpi {

Requests requests_under_way;

void Requests::put(MPI_Request request, const Posted& posted) {
  static const auto done = reinterpret_cast<MPI_Request>(dlsym(RTLD_DEFAULT, "ompi_request_empty")),
                    none = reinterpret_cast<MPI_Request>(dlsym(RTLD_DEFAULT, "ompi_request_null"));
  if ((posted.number == 0 && posted.start == nullptr) || request == done || request == none)
    return;       // shared by all that are complete at once
  take(request);  // of one that was completed unseen
  for (Place *place = first(request), *end = place + kTried; place != end; ++place) {
    std::uintptr_t empty = 0;
    if (!place->request.compare_exchange_strong(empty, kBusy, std::memory_order_acquire)) continue;
    place->posted = posted;
    place->request.store(reinterpret_cast<std::uintptr_t>(request), std::memory_order_release);
    return;
  }
}

Posted Requests::take(MPI_Request request) {
  for (Place *place = first(request), *end = place + kTried; place != end && request != nullptr; ++place) {
    if (place->request.load(std::memory_order_acquire) != reinterpret_cast<std::uintptr_t>(request)) continue;
    const Posted posted = place->posted;
    place->request.store(0, std::memory_order_release);
    return posted;
  }
  return {};
}

void begin(MPI_Request request) {
  Posted posted = world() == nullptr ? Posted{} : requests_under_way.take(request);
  if (posted.start == nullptr) return requests_under_way.put(request, posted);
  const std::uint64_t number = ++posted_count;
  const Range range(posted.start, posted.comm, posted.bytes, posted.peer, posted.tag, number);
  posted.number = range.is_followed() ? number : 0;
  requests_under_way.put(request, posted);
}

Completing::Completing(int count, MPI_Request* requests, MPI_Status* statuses)
    : requests_(requests), statuses_(statuses) {
  if (world() == nullptr) return;
  const std::size_t all = count < 0 || requests == nullptr ? 0 : static_cast<std::size_t>(count);
  count_ = all < kMost ? all : kMost;
  if (count_ > kFew) {
    more_ = static_cast<Room*>(std::malloc(sizeof(Room) * count_));
    data_ = static_cast<nvtxPayloadData_t*>(std::malloc(sizeof *data_ * count_));
    if (more_ == nullptr || data_ == nullptr) count_ = 0;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    room(i).handle = requests[i];
    room(i).posted = requests_under_way.take(requests[i]);
  }
  if (statuses != nullptr || all != count_) return;
  own_ = count_ > kFew ? static_cast<MPI_Status*>(std::malloc(sizeof *own_ * count_)) : few_statuses_;
  statuses_ = own_;
}

Completing::~Completing() {
  if (own_ != few_statuses_) std::free(own_);
  if (data_ != few_data_) std::free(data_);
  std::free(more_);
}

void Completing::done(int result, const int* order, int known) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (requests_[i] != room(i).handle || room(i).posted.start != nullptr) continue;
    requests_under_way.put(room(i).handle, room(i).posted);
    room(i).posted.number = 0;
  }
  for (int n = 0; n < known && result == MPI_SUCCESS; ++n) {
    const std::size_t at = static_cast<std::size_t>(order == nullptr ? n : order[n]);
    if (at < count_) add(room(at), statuses_ == nullptr ? nullptr : &statuses_[n]);
  }
  for (std::size_t i = 0; i < count_; ++i) {
    if (room(i).posted.start != nullptr)
      requests_under_way.put(room(i).handle, room(i).posted);
    else if (result == MPI_SUCCESS)
      add(room(i), nullptr);
  }
}

void Completing::add(Room& one, const MPI_Status* status) {
  static const auto cancelled = next<decltype(&PMPI_Test_cancelled)>("PMPI_Test_cancelled");
  if (one.posted.number == 0) return;
  one.completion = {one.posted.number, one.posted.bytes, one.posted.peer, one.posted.tag};
  if (one.posted.receives && status != nullptr) {
    int gone = 0;
    if (cancelled != nullptr && cancelled(status, &gone) == MPI_SUCCESS && gone != 0)
      one.completion = {one.posted.number, 0, MPI_PROC_NULL, 0};
    else
      one.completion = {one.posted.number, received_bytes(*status, one.posted.bytes), status->MPI_SOURCE,
                        status->MPI_TAG};
  }
  one.posted.number = 0;
  data_[complete_++] = {kCompletion, sizeof(Completion), &one.completion};
}

}  // namespace rangescope::inject::mpi
