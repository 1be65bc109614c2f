#include "model/advice.hpp"

#include <limits>
#include <string>

namespace rangescope::model {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

/// The most particular rows of a kind stand first. `word`: in the text, lower case; `evidence` within [from, to).
struct Advice {
  std::string_view kind, text;
  std::string_view evidence = {};
  double from = -kAny, to = kAny;
  std::string_view word = {};
};

constexpr Advice kAdvice[] = {
    {"launch_bound",
     "Capture the step in a CUDA graph (torch.compile mode=\"reduce-overhead\"): one launch for all of them",
     "kernels_per_occurrence", 20},
    {"launch_bound", "Fuse kernels (torch.compile) or use larger batches: a launch costs more than its kernel"},
    {"waits_for_cpu", "Feed the GPU earlier: more dataloader workers and prefetching, since the CPU waits itself",
     "cpu_waiting_share", 0.3},
    {"waits_for_cpu",
     "Tokenize ahead of time, or in a thread of a fast tokenizer: the GPU waits for it",
     {},
     -kAny,
     kAny,
     "token"},
    {"waits_for_cpu", "Take Python out of the step: torch.compile or CUDA graphs, since it holds the GPU up",
     "cpu_python_share", 0.3},
    {"waits_for_cpu", "Capture the launches in a CUDA graph, since the CPU spends its time launching", "cpu_cuda_share",
     0.3},
    {"waits_for_cpu", "Use CUDA graphs or larger batches: many short kernels are launched one by one",
     "kernels_per_occurrence", 20},
    {"waits_for_cpu", "Queue work earlier or in larger batches: the GPU has nothing to do meanwhile"},
    {"synchronization", "Use fewer .item(), .cpu() and tensor prints in the loop: each is a synchronization",
     "syncs_per_occurrence", 2},
    {"synchronization", "Queue the next work before waiting, or wait once at the end"},
    {"copies", "Copy in larger pieces: most of the time of small copies is their start", "bytes_per_copy", 0, 65536},
    {"copies", "Keep the data on the GPU: the same volume goes back to the host", "to_host_share", 0.3},
    {"copies", "Pin the host memory and copy with non_blocking=True on a stream of its own, beside the kernels"},
    {"memory_bound",
     "Coalesce accesses and use shared memory: L1/TEX is the level at its peak",
     {},
     -kAny,
     kAny,
     "l1/tex"},
    {"memory_bound",
     "Tile for reuse in registers and shared memory: L2 is the level at its peak",
     {},
     -kAny,
     kAny,
     "l2"},
    {"memory_bound", "Move fewer bytes: fuse kernels, use smaller types, larger batches for weights that are reused"},
    {"compute_bound",
     "Use a lower precision (FP8) where results allow it: the tensor cores are the limit",
     {},
     -kAny,
     kAny,
     "tensor"},
    {"compute_bound", "Use the tensor cores (TF32, BF16): plain FP32 units are the limit", {}, -kAny, kAny, "fp32"},
    {"compute_bound", "Execute fewer instructions: vectorize loads, hoist address arithmetic, use the tensor cores"},
    {"latency_bound", "Launch more blocks, or give this kernel more work: the grid does not fill the GPU once",
     "launch__waves_per_multiprocessor", -kAny, 1},
    {"latency_bound", "Raise occupancy (fewer registers, less shared memory a block): too few warps hide latency",
     "occupancy", -kAny, 0.25},
    {"latency_bound", "Give each kernel more independent work: larger tiles or batches"},
    {"hardly_used", "Fuse the kernels or capture them in a CUDA graph: most of the range is gaps between them"},
    {"balanced", "Fuse kernels to save both memory traffic and instructions: both are near their limit"},
    {"padding", "Choose sizes that fill whole tiles, or group inputs of like length: padding is computed too"},
    {"held_by_another", "Hold it for less, or give each thread its own: while one thread has it, this range waits"},
    {"warm_up", "Warm up before the loop and leave that out of measurements: it loads kernels and allocates memory"},
    {"uneven_occurrences",
     "Look for what the slow ones do (allocation, garbage collection, I/O), or leave a core free"},
    {"straggler", "Rebalance the ranks' work, or look for what holds this rank up: the others wait for it"},
    {"uneven_work", "Distribute the input more evenly (by tokens, not by samples): this rank has more to do"},
    {"slow_gpu", "Compare power limit, temperature and clocks with the other GPUs: the kernels are the same"},
    {"slow_host", "Compare CPU governor, core binding and other load with the other hosts: the work is the same"},
    {"slow_link", "Check this link's NIC, NVLink and topology (nvidia-smi topo -m): the messages are alike"},
    {"uneven_processes", "Split the work more evenly: the slowest process decides when all are done"},
    {"uneven_threads", "Split the work more evenly: the slowest thread decides when all are done"},
    {"outside_ranges", "Open ranges around the work between: nothing says what it is", "between_share", 0.1},
    {"outside_ranges", "Profile a longer run: start-up and exit are most of this one", "start_share", 0.5},
    {"start_up", "Profile a longer run: start-up and exit are most of this one"},
    {"clock_limited", "Compare runs with locked clocks (nvidia-smi -lgc), or cool and power the GPU better"},
    {"too_short", "Put a range around several of them: recording one costs as much as it takes"},
    {"hot_region",
     "Wait for an event instead of sleeping: a timer decides how long it takes",
     {},
     -kAny,
     kAny,
     "waiting: sleep"},
    {"hot_region",
     "Hold the lock for less, or split what it guards: threads wait for it",
     {},
     -kAny,
     kAny,
     "waiting: lock"},
    {"hot_region", "Read ahead (more workers, prefetching): it waits for input", {}, -kAny, kAny, "waiting: i/o"},
    {"hot_region", "Move the hot loop to native code (NumPy, Numba, torch.compile), or to worker processes",
     "cpu_python_share", 0.5},
    {"dominant_kernel", "Launch more blocks, or give this kernel more work: the grid does not fill the GPU once",
     "launch__waves_per_multiprocessor", -kAny, 1},
    {"idle_gpu", "Queue more work at once, or run it on the CPU: the GPU has nothing to do most of the time"},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

std::string advice_for(const Verdict& verdict) {
  const std::string text = lower(verdict.path + " " + verdict.text);
  for (const Advice& advice : kAdvice) {
    if (verdict.kind != advice.kind &&
        !(verdict.kind == "dominant_kernel" && verdict.evidence.contains(std::string(advice.kind))))
      continue;
    if (!advice.word.empty() && text.find(advice.word) == std::string::npos) continue;
    if (!advice.evidence.empty()) {
      const auto found = verdict.evidence.find(std::string(advice.evidence));
      if (found == verdict.evidence.end() || !(found->second >= advice.from && found->second < advice.to)) continue;
    }
    return std::string(advice.text);
  }
  return {};
}

}  // namespace rangescope::model
