// What analyze/tally/file.cpp has of calls and of the work of ranks: a part of the one list of fields.
#pragma once

#include <cstdint>

#include "analyze/tally/coding.hpp"
#include "analyze/tally/digest.hpp"

namespace rangescope::analyze::tally::coding {

inline constexpr std::size_t kMostNames = 1 << 22;
inline constexpr std::size_t kMostList = 1 << 20;  // processes, devices, ranks of a region ...

/// Where a call stands, and when other kernels ran beside it.
template <class Io, class T, class L>
void visit_beside(Io& io, T& call, L& beside, std::size_t contexts) {
  if constexpr (Io::kReads) {
    io.index_or_none(call.context, contexts);
    call.beside = static_cast<std::uint32_t>(beside.size());
    call.parts = static_cast<std::uint32_t>(io.count(kMostBeside, 2));
    beside.resize(beside.size() + call.parts);
  } else {
    io.index_or_none(call.context, contexts);
    io.number(call.parts);
  }
  std::int64_t at = 0;
  bool ascending = true;
  for (std::uint32_t i = call.beside; i < call.beside + call.parts; ++i) {
    auto& [start, end] = beside[i];
    io.near(start, at);
    io.near(end, start);
    ascending &= at <= start && start <= end;
    at = end;
  }
  io.check(ascending);
}

/// `at`, `bytes`: of the call before, to which they are near.
template <class Io, class T, class L, class D>
void visit_call(Io& io, T& call, L& beside, const D& digest, std::size_t regions, std::int64_t& at,
                std::int64_t& bytes) {
  io.index(call.name, digest.names.size());
  io.index_or_none(call.region, regions);
  io.near(call.start_ns, at);
  io.near(call.end_ns, call.start_ns);
  at = call.end_ns;
  io.sum(call.bytes, bytes);
  if (call.bytes != kUnknown) bytes = call.bytes;
  io.sum(call.hidden_ns, 0);
  visit_beside(io, call, beside, digest.contexts.size());
}

template <class Io, class T, class D>
void visit_calls(Io& io, T& c, const D& digest, std::size_t regions) {
  io.index(c.process, digest.processes.size());
  io.flag(c.nccl);
  io.field(c.communicator);
  io.field(c.ranks);
  io.field(c.made);
  io.field(c.shift);
  io.check(c.shift < 32);
  io.list(c.calls, kMostList, 5);
  if constexpr (Io::kReads) c.beside.clear();
  std::int64_t at = digest.begin_ns, bytes = 0;
  for (auto& call : c.calls) visit_call(io, call, c.beside, digest, regions, at, bytes);
  io.list(c.standing, kMostList, 5);
  for (auto& call : c.standing) visit_call(io, call, c.beside, digest, regions, at, bytes);
}

template <class Io, class T, class D>
void visit_messaging(Io& io, T& m, const D& digest, std::size_t regions) {
  const auto small = [&io](auto& value) {
    std::int64_t number = value;
    io.near(number, 0);
    io.check(number >= INT32_MIN && number <= INT32_MAX);
    if constexpr (Io::kReads) value = static_cast<std::int32_t>(number);
  };
  io.index(m.process, digest.processes.size());
  io.field(m.shift);
  io.check(m.shift < 32);
  io.list(m.communicators, kMostList, 4);
  for (auto& one : m.communicators) {
    io.flag(one.nccl);
    io.field(one.id);
    io.field(one.ranks);
    small(one.self);
  }
  io.list(m.calls, kMostList, 11);
  if constexpr (Io::kReads) m.beside.clear();
  std::int64_t at = digest.begin_ns, bytes = 0;
  for (auto& call : m.calls) {
    visit_call(io, call, m.beside, digest, regions, at, bytes);
    io.index_or_none(call.stream, kNone);
    io.field(call.received);
    io.field(call.hashes);
  }
  io.list(m.ends, kMostList, 7);
  for (auto& end : m.ends) {
    io.index(end.call, m.calls.size());
    io.index_or_none(end.done, m.calls.size());
    io.index(end.communicator, m.communicators.size());
    io.flag(end.sends);
    small(end.peer);
    small(end.tag);
    io.field(end.ordinal);
  }
}

template <class Io, class D>
void visit_works(Io& io, D& d) {
  io.list(d.works, kMostList, 16);
  for (auto& work : d.works) {
    io.field(work.rank);
    for (auto* number : {&work.kernels, &work.kernel_ns, &work.copied_bytes}) io.sum(*number, 0);
    io.real(work.kernel_threads);
    io.list(work.gpus, kMostList, 4);
    for (auto& gpu : work.gpus) {
      io.index(gpu.process, d.processes.size());
      io.index(gpu.uuid, d.names.size());
      io.near(gpu.first_ns, d.begin_ns);
      io.near(gpu.last_ns, gpu.first_ns);
    }
    io.list(work.paced, kMostPaced, 9);
    for (auto& paced : work.paced) {
      io.index(paced.name, d.kernels.size());
      for (auto& size : paced.size) io.field(size);
      io.field(paced.calls);
      io.sum(paced.ns, 0);
      io.check(paced.calls > 0);
    }
    io.field(work.not_kept);
  }
  io.list(d.clocks, kMostList, 4);
  for (auto& clock : d.clocks) {
    io.index_or_none(clock.process, d.processes.size());
    io.index(clock.uuid, d.names.size());
    io.flag(clock.limited);
    io.list(clock.samples, kMostClockSamples, 11);
    io.check(!clock.samples.empty());
    std::int64_t at = d.begin_ns;
    for (auto& sample : clock.samples) {
      io.near(sample.start_ns, at);
      io.near(sample.end_ns, sample.start_ns);
      io.sum(sample.covered_ns, 0);
      io.real(sample.value);
      at = sample.end_ns;
    }
  }
}

}  // namespace rangescope::analyze::tally::coding
