// The recording of one rank of a simulated job.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/session_test.hpp"

namespace rangescope::analyze::tally {

using analyze::testing::SessionBuilder;

struct Plan {
  std::uint32_t ranks = 5, steps = 24, layers = 6;
  std::uint32_t straggler = 3;
  bool gpu = true, hosts = true, unlike = true;
  bool without = false;  ///< every third rank has no GPU
  int beside = 1;        ///< kernels that run beside each collective
  bool messages = false;
  bool memory = false;  ///< of two GPUs a rank; rank 2 leaks, and runs out of it
  bool paces =
      false;  ///< kernels of rank 1 take longer; ranks wait for the GPU; rank 0 samples all clocks
};

inline void give(model::Session& session,
                 std::uint32_t range,
                 std::string_view name,
                 std::uint64_t bits) {
  session.payload_fields.push_back(
      {range, session.strings.intern(name), model::PayloadType::kUint64, bits});
}

/// Messages around the ring of ranks, of every kind: blocking, begun and completed later, both at
/// once, NCCL's in a group. Returns their end.
inline std::int64_t exchange(SessionBuilder& b,
                             const Plan& plan,
                             std::uint32_t rank,
                             std::uint32_t step,
                             std::uint32_t thread,
                             std::uint32_t stream,
                             std::int64_t at,
                             std::mt19937& random) {
  const auto jitter = [&random](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  const std::uint32_t next = (rank + 1) % plan.ranks, last = (rank + plan.ranks - 1) % plan.ranks;
  const auto call = [&](std::string_view name,
                        std::int64_t length,
                        std::initializer_list<std::pair<const char*, std::uint32_t>> said,
                        std::string_view domain = "MPI") {
    const std::uint32_t range = b.range(thread, name, at, at + length, domain);
    give(b.session, range, std::string(domain) + " communicator ID", 9);
    for (const auto& [field, value] : said)
      give(b.session, range, field, value);
    at += length + 100;
  };
  const char *const peer = "Peer rank", *const tag = "Tag", *const bytes = "Message size [bytes]",
                    *const request = "Request", *const source = "Source rank",
                    *const source_tag = "Source tag", *const completed = "Completed request";
  b.range(thread, step % 2 == 0 ? "halo" : "ring", at, at + 90'000);
  if (step == 0)
    call("MPI_Comm_dup", 100, {{"No. of ranks", plan.ranks}, {"Rank", rank}});
  if (step % 2 == 0) {
    call("MPI_Irecv", 200, {{peer, last}, {tag, 1}, {request, 2 * step + 1}});
    call("MPI_Isend",
         200 + jitter(900),
         {{peer, next}, {tag, 1}, {bytes, 4096}, {request, 2 * step + 2}});
    call("MPI_Waitall",
         2000 + jitter(9000),
         {{completed, 2 * step + 2},
          {completed, 2 * step + 1},
          {source, last},
          {source_tag, 1},
          {bytes, 4096}});
  } else {
    call("MPI_Sendrecv",
         3000 + jitter(9000),
         {{peer, next}, {tag, 2}, {bytes, 100}, {source, last}, {source_tag, 2}});
    if (rank % 2 == 0 && next != 0)
      call("MPI_Send", 500 + jitter(5000), {{peer, next}, {tag, 3}, {bytes, 1 << 20}});
    if (rank % 2 == 1)
      call("MPI_Recv", 500 + jitter(5000), {{peer, last}, {tag, 3}, {bytes, 1 << 20}});
    if (rank == 0 && step % 8 == 1)
      call("MPI_Send", 300, {{peer, next}, {tag, 7}, {bytes, 8}});  // nobody receives it
  }
  if (!plan.gpu)
    return at;
  call("ncclSend", 100, {{peer, next}, {bytes, 1 << 16}}, "NCCL");
  call("ncclRecv", 100, {{peer, last}, {bytes, 1 << 16}}, "NCCL");
  const std::int64_t begins = at + jitter(5000);
  b.kernel(b.launch(thread, at, at + 50),
           "ncclDevKernel_SendRecv",
           begins,
           begins + 4000 + jitter(20'000),
           stream,
           2);
  return at + 30'000;
}

/// PyTorch's allocator on each of two GPUs: weights from before, activations of each step, and what
/// rank 2 keeps of each.
inline void allocate(model::Session& session, std::uint32_t rank, std::uint32_t thread) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const std::vector<model::Range> ranges = session.ranges;
  for (std::uint32_t device = 0; device < 2; ++device) {
    const auto number = static_cast<std::uint32_t>(session.allocators.allocators.size());
    model::Allocator& allocator = session.allocators.allocators.emplace_back();
    allocator.ordinal = device;
    allocator.name = session.strings.intern("PyTorch");
    allocator.first_ns = session.begin_ns;
    allocator.last_ns = session.end_ns;
    const auto add = [&](std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes) {
      model::Allocation& allocation = session.allocators.allocations.emplace_back();
      allocation.start_ns = start_ns;
      allocation.end_ns = end_ns;
      allocation.bytes = bytes;
      allocation.allocator = number;
      allocation.thread = thread;
      return &allocation;
    };
    add(session.begin_ns, model::kOpen, (8 + rank) * kMiB)->older = true;
    std::uint64_t reserved = (8 + rank) * kMiB;
    for (const model::Range& range : ranges) {
      if (range.thread != thread || session.strings.view(range.name) != "step")
        continue;
      const std::int64_t middle_ns = range.start_ns + (range.end_ns - range.start_ns) / 2;
      add(range.start_ns + 2000, middle_ns, (1 + rank) * kMiB + 512 * device);
      reserved += 2 * kMiB;
      if (rank == 2)
        add(middle_ns, model::kOpen, kMiB);
      session.allocators.reserved.push_back({range.start_ns + 1000, reserved, number});
    }
    if (rank != 2 || device != 1)
      continue;
    model::FailedAllocation& failure = session.allocators.failures.emplace_back();
    failure.at_ns = session.end_ns - 1000;
    failure.bytes = 4096 * kMiB;
    failure.free_bytes = kMiB;
    failure.allocator = number;
    failure.thread = thread;
    failure.owner = session.strings.intern("layers.3.mlp");
  }
}

/// Steps of layers with kernels and a copy, a collective at the end of each step; on every second
/// rank a thread of its own, ranges of other domains and kinds, work outside ranges, and losses.
inline model::Session recording(Plan plan, std::uint32_t rank) {
  plan.gpu &= !plan.without || rank % 3 != 1;
  SessionBuilder b;
  std::mt19937 random(17);  // the collectives of all ranks end at the same times
  std::mt19937 mine(100 + rank);
  const auto jitter = [&mine](int most) {
    return static_cast<std::int64_t>(mine() % static_cast<unsigned>(most));
  };
  const std::uint32_t process = b.process(1000 + rank), thread = b.thread(process, 1000 + rank);
  model::Process& facts = b.session.processes.back();
  facts.rank = rank;
  facts.local_rank = rank % 2;
  facts.world = plan.ranks;
  facts.name = b.session.strings.intern("train");
  facts.host = b.session.strings.intern(plan.hosts && rank >= plan.ranks / 2 ? "node1" : "node0");
  facts.run = b.session.strings.intern("rank-" + std::to_string(rank));
  // Clocks of their own, two hosts 300 us apart.
  const std::int64_t skew = plan.hosts && rank >= plan.ranks / 2 ? 300'000 : 0;
  b.session.clock = {
      "CLOCK_MONOTONIC", 1'000'000 * (rank + 1), 1'700'000'000'000'000'000 + skew, {}};
  const std::int64_t zero = 1'000'000 * (rank + 1), slower = plan.paces && rank == 1 ? 700 : 0;
  std::uint32_t stream = 0;
  if (plan.gpu)
    stream = b.stream(process, b.device(process, rank % 2, "GPU-" + std::to_string(rank)), 7);
  std::int64_t at = zero + 5000, meet = zero;
  for (std::uint32_t step = 0; step < plan.steps; ++step) {
    const std::int64_t begin = at;
    const std::uint32_t outer = b.range(thread, "step", begin, model::kOpen);
    for (std::uint32_t layer = 0; layer < plan.layers; ++layer) {
      const std::int64_t length = 20'000 + jitter(9000) + (step == 0 ? 200'000 : 0);
      b.range(thread, "layer_" + std::to_string(layer), at, at + length);
      if (plan.gpu) {
        for (int k = 0; k < 3; ++k) {
          const std::int64_t launched = at + 1000 * (k + 1);
          const std::uint32_t call = b.launch(thread, launched, launched + 400 + jitter(100));
          const std::int64_t ends = launched + 2600 + jitter(400) + slower,
                             begins = launched + 2000 + jitter(300);
          b.kernel(call,
                   k == 2 ? "gemm<" + std::to_string(layer % 2) + ">" : "relu",
                   begins,
                   ends,
                   stream,
                   1 + static_cast<std::uint32_t>(k));
        }
      }
      at += length;
    }
    if (plan.gpu && plan.paces)
      b.launch(thread, at - 900, at - jitter(600), model::LaunchKind::kSynchronize);
    if (plan.gpu) {
      const std::uint32_t call = b.launch(thread, at, at + 300, model::LaunchKind::kCopy);
      b.copy(call, at + 500, at + 1500, 4096 + rank, model::CopyKind::kHostToDevice, stream);
    }
    if (rank == plan.straggler) {
      b.range(thread, "straggle", at, at + 90'000);
      at += 90'000;
    }
    for (int k = 0; plan.gpu && k < plan.beside; ++k) {
      const std::int64_t begins = at + k * 400'000 / plan.beside;
      b.kernel(b.launch(thread, at - 300, at - 100),
               "late",
               begins,
               begins + 10'000 + jitter(9000),
               stream);
    }
    if (plan.messages)
      at = exchange(b, plan, rank, step, thread, stream, at, mine);
    meet += 600'000 + static_cast<std::int64_t>(random() % 5000);
    const std::uint32_t call = b.range(thread, "MPI_Allreduce", at, meet, "MPI");
    give(b.session, call, "MPI communicator ID", 1);
    give(b.session, call, "Message size [bytes]", 1 << 20);
    give(b.session, call, "No. of ranks", plan.ranks);
    at = meet + 200;
    b.session.ranges[outer].end_ns = at;
    at += 100;
  }
  for (std::uint32_t card = 0; plan.paces && rank == 0 && card < plan.ranks; ++card) {
    model::SampleStream& samples = b.session.samples.emplace_back();
    samples.uuid = "GPU-" + std::to_string(card);
    for (int i = 0; i < (card == 0 ? 500 : 100); ++i) {  // of the first more than a digest keeps
      samples.start_ns.push_back(zero + i * 100'000);
      samples.end_ns.push_back(zero + (i + 1) * 100'000);
    }
    const std::vector<float> hz(samples.start_ns.size(), 1.5e9F - 1e8F * static_cast<float>(card));
    std::vector<float> limited(hz.size());
    for (std::size_t i = 0; i < limited.size(); ++i)
      limited[i] = card == 0 ? 0.5F : static_cast<float>(i % 3) / 2;
    samples.metrics.resize(2);
    samples.metrics[0].name = "sm_clock";
    samples.metrics[0].values = hz;
    samples.metrics[1].name = "clock_limited";
    samples.metrics[1].values = limited;
  }
  if (!plan.gpu)
    b.range(thread, "on a CPU", at, at + 3000), at += 4000;
  if (plan.unlike && rank % 2 == 1) {
    const std::uint32_t other = b.thread(process, 5000 + rank);
    for (int i = 0; i < 9; ++i) {
      b.range(other, "load", zero + i * 50'000, zero + i * 50'000 + 30'000 + jitter(5000), "data");
      b.range(other, "decode", zero + i * 50'000 + 100, zero + i * 50'000 + 9000, "data");
      b.range(other,
              "prefetch",
              zero + i * 50'000,
              zero + i * 50'000 + 200'000,
              "",
              model::RangeKind::kStartEnd);
    }
    b.range(other, "never ends", zero + 900'000, model::kOpen);
    if (plan.gpu)
      b.kernel(
          b.launch(other, zero + 100, zero + 200), "outside", zero + 3000, zero + 4000, stream);
    b.session.losses.push_back({"cut_name", 2, "two names"});
  }
  b.session.begin_ns = zero;
  b.session.end_ns = std::max(b.session.end_ns, at);
  b.session.processes.back().start_ns = zero;
  b.session.processes.back().end_ns = b.session.end_ns;
  if (plan.memory && rank % 4 != 3)
    allocate(b.session, rank, thread);
  return std::move(b.session);
}

}  // namespace rangescope::analyze::tally
