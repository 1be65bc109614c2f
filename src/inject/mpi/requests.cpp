#include "inject/mpi/requests.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace rangescope::inject::mpi {
namespace {

std::atomic<std::uint64_t> posted_count{0};

}  // namespace

Handles<Posted> active_requests;

std::uint64_t next_number() {
  return ++posted_count;
}

void put(Word request, const Posted& posted) {
  const bool is_followed = posted.number != 0 || posted.start != nullptr;
  if (is_followed && request != 0 && !abi().is_shared(request))
    active_requests.put(request, posted);
}

Completing::Completing(const Arguments& arguments) : arguments_(arguments) {
  const int number = arguments.number('n', 1);
  const bool has_requests = number > 0 && arguments.word('R') != 0;
  const std::size_t requests = has_requests ? static_cast<std::size_t>(number) : 0;
  count_ = std::min(requests, kMost);
  if (count_ > kFew) {
    requests_ = static_cast<Request*>(std::malloc(sizeof(Request) * count_));
    data_ = static_cast<nvtxPayloadData_t*>(std::malloc(sizeof *data_ * count_));
    own_statuses_ = static_cast<char*>(std::malloc(kStatusBytes * count_));
    if (requests_ == nullptr || data_ == nullptr || own_statuses_ == nullptr)
      count_ = 0;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const Word handle = arguments.handle_at('R', i);
    requests_[i] = {raw_handle(i), handle, active_requests.take(handle), {}};
  }
  if (arguments.is_ignored('S')) {
    if (requests != count_ || count_ == 0)
      return;
    arguments.word('S') = reinterpret_cast<Word>(own_statuses_);
  }
  statuses_ = arguments.pointer<char>('S');
}

Completing::~Completing() {
  if (own_statuses_ != few_statuses_)
    std::free(own_statuses_);
  if (data_ != few_data_)
    std::free(data_);
  if (requests_ != few_requests_)
    std::free(requests_);
}

Word Completing::raw_handle(std::size_t index) const {
  Word value = 0;
  const std::size_t bytes = arguments_.handle_bytes();
  std::memcpy(&value, arguments_.pointer<char>('R') + index * bytes, bytes);
  return value;
}

int Completing::named_by_mpi() const {
  if (arguments_.has('k'))
    return *arguments_.pointer<int>('k');
  const bool none_is_complete = arguments_.has('f') && *arguments_.pointer<int>('f') == 0;
  if (none_is_complete)
    return 0;
  const auto requests = static_cast<int>(count_);
  if (arguments_.has('i'))
    return std::min(requests, 1);
  return requests;
}

int Completing::index_of_named(int n) const {
  const auto i = static_cast<std::size_t>(n);
  if (arguments_.has('x'))
    return arguments_.index('x', i);
  if (arguments_.has('i'))
    return arguments_.index('i', i);
  return n;
}

void Completing::add_named() {
  const int named = named_by_mpi();
  for (int n = 0; n < named; ++n) {
    const int index = index_of_named(n);
    if (index < 0 || static_cast<std::size_t>(index) >= count_)
      continue;
    const char* status = statuses_;
    if (status != nullptr)
      status += static_cast<std::size_t>(n) * abi().status_bytes;
    add(requests_[index], status);
  }
}

void Completing::finish(bool accepted) {
  for (std::size_t i = 0; i < count_; ++i) {
    Posted& posted = requests_[i].posted;
    const bool is_incomplete = raw_handle(i) == requests_[i].raw && posted.start == nullptr;
    if (!is_incomplete)
      continue;
    put(requests_[i].handle, posted);
    posted.number = 0;
  }
  if (accepted)
    add_named();
  for (std::size_t i = 0; i < count_; ++i) {
    if (requests_[i].posted.start != nullptr)
      put(requests_[i].handle, requests_[i].posted);
    else if (accepted)
      add(requests_[i], nullptr);
  }
}

void Completing::add(Request& request, const char* status) {
  Posted& posted = request.posted;
  if (posted.number == 0)
    return;
  Completion& completion = request.completion;
  completion = {posted.number, posted.bytes, posted.peer, posted.tag};
  if (status != nullptr && abi().is_cancelled(status))
    completion = {posted.number, 0, -2, 0};
  else if (status != nullptr && posted.receives)
    completion = {posted.number, abi().bytes(status), abi().source(status), abi().tag(status)};
  posted.number = 0;
  data_[complete_++] = payload_of(completion);
}

}  // namespace rangescope::inject::mpi
