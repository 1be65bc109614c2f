#include "inject/mpi/requests.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace rangescope::inject::mpi {
namespace {

std::atomic<std::uint64_t> posted_count{0};

}  // namespace

Handles<Posted> under_way;

std::uint64_t next_number() {
  return ++posted_count;
}

void put(Word request, const Posted& posted) {
  if ((posted.number != 0 || posted.start != nullptr) && request != 0 && !abi().is_shared(request))
    under_way.put(request, posted);
}

Completing::Completing(const Arguments& arguments) : arguments_(arguments) {
  const int said = arguments.number('n', 1);
  const std::size_t all = said < 0 || arguments.word('R') == 0 ? 0 : static_cast<std::size_t>(said);
  count_ = std::min(all, kMost);
  if (count_ > kFew) {
    rooms_ = static_cast<Room*>(std::malloc(sizeof(Room) * count_));
    data_ = static_cast<nvtxPayloadData_t*>(std::malloc(sizeof *data_ * count_));
    own_ = static_cast<char*>(std::malloc(kStatus * count_));
    if (rooms_ == nullptr || data_ == nullptr || own_ == nullptr) count_ = 0;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const Word handle = arguments.handle_at('R', i);
    rooms_[i] = {raw(i), handle, under_way.take(handle), {}};
  }
  if (arguments.is_ignored('S')) {
    if (all != count_ || count_ == 0) return;
    arguments.word('S') = reinterpret_cast<Word>(own_);
  }
  statuses_ = arguments.pointer<char>('S');
}

Completing::~Completing() {
  if (own_ != few_statuses_) std::free(own_);
  if (data_ != few_data_) std::free(data_);
  if (rooms_ != few_) std::free(rooms_);
}

/// The handle that lies there now, as it lies there.
Word Completing::raw(std::size_t place) const {
  Word value = 0;
  std::memcpy(&value, arguments_.pointer<char>('R') + place * arguments_.handle_bytes(),
              arguments_.handle_bytes());
  return value;
}

void Completing::done(bool accepted) {
  for (std::size_t i = 0; i < count_; ++i) {
    Posted& posted = rooms_[i].posted;
    if (raw(i) != rooms_[i].raw || posted.start != nullptr) continue;
    put(rooms_[i].handle, posted);
    posted.number = 0;
  }
  int known = static_cast<int>(count_);  // that MPI names
  if (arguments_.has('k'))
    known = accepted ? *arguments_.pointer<int>('k') : 0;
  else if (accepted && arguments_.has('f') && *arguments_.pointer<int>('f') == 0)
    known = 0;
  else if (arguments_.has('i'))
    known = std::min(known, 1);
  const char order = arguments_.has('x') ? 'x' : arguments_.has('i') ? 'i' : '\0';
  for (int n = 0; n < known && accepted; ++n) {
    const int at = order == '\0' ? n : arguments_.index(order, static_cast<std::size_t>(n));
    if (at >= 0 && static_cast<std::size_t>(at) < count_)
      add(rooms_[at], statuses_ == nullptr
                          ? nullptr
                          : statuses_ + static_cast<std::size_t>(n) * abi().status_bytes);
  }
  for (std::size_t i = 0; i < count_; ++i) {
    if (rooms_[i].posted.start != nullptr)
      put(rooms_[i].handle, rooms_[i].posted);
    else if (accepted)
      add(rooms_[i], nullptr);
  }
}

void Completing::add(Room& one, const char* status) {
  Posted& posted = one.posted;
  if (posted.number == 0) return;
  one.completion = {posted.number, posted.bytes, posted.peer, posted.tag};
  if (status != nullptr && abi().is_cancelled(status))
    one.completion = {posted.number, 0, -2, 0};
  else if (status != nullptr && posted.receives)
    one.completion = {posted.number, abi().bytes(status), abi().source(status), abi().tag(status)};
  posted.number = 0;
  data_[complete_++] = payload_of(one.completion);
}

}  // namespace rangescope::inject::mpi
