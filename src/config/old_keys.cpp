// What the configuration of llm-perf-opt and other Hydra applications around nsys and ncu called otherwise. Keys below
// pipeline.nsys and pipeline.ncu.ncu_cli kept their names.
#include <array>

#include "config/schema.hpp"

namespace rangescope::config {
namespace {

struct OldKey {
  std::string_view path, instead;
};

constexpr std::string_view kProgramsOwn =
    "It is an option of your program: write it behind --, where words are not touched.";

// The longest that fits counts.
constexpr std::array kOldKeys{
    OldKey{"hydra.run.dir",
           "Write run.dir=DIR (--run-dir) for this run's folder, or run.root=DIR (--runs) for the folder of all runs."},
    OldKey{"hydra",
           "There is no Hydra here: run.dir, run.root and workload.cwd say where, and `rangescope runs` keeps runs "
           "apart."},
    OldKey{"pipeline.workload.module", "Write the program behind --: rangescope profile -- python -m MODULE."},
    OldKey{"pipeline.workload", "Write the program behind --, or workload.command, workload.cwd and workload.env."},
    OldKey{"pipeline.torch_profiler",
           "Let the program export PyTorch's trace (export_chrome_trace), then: rangescope report trace.json."},
    OldKey{"torch_profiler",
           "Let the program export PyTorch's trace (export_chrome_trace), then: rangescope report trace.json."},
    OldKey{"pipeline.static_analysis",
           "Write --flops auto=CONFIG.json (report.flops): FLOPs and MFU from the model's config.json."},
    OldKey{"pipeline.direct_inference", "Run the program without rangescope, or with --no-nsys --no-ncu."},
    OldKey{"dataset.subset_filelist", "Write workload.subset=FILE; the command line gets it as ${workload.subset}."},
    OldKey{
        "dataset.root",
        "Write workload.inputs=[PATH,...]: they are checked and recorded; the program gets its own options behind --."},
    OldKey{"dataset.sampling.num_epochs", "Write --repeat N (run.repeat), or the program's own option behind --."},
    OldKey{"dataset", kProgramsOwn},
    OldKey{"infer", kProgramsOwn},
    OldKey{"model", kProgramsOwn},
    OldKey{"use_flash_attn", kProgramsOwn},
    OldKey{"outputs", kProgramsOwn},
    OldKey{"repeats", "Write --repeat N (run.repeat)."},
    OldKey{"experiment", "A run is named by its folder: run.root=DIR or run.dir=DIR."},
    OldKey{"runner", "Choose stages: collector=native, nsys, ncu or all."},
    OldKey{"stage1_runner", "Choose stages: collector=native, nsys, ncu or all."},
    OldKey{"profiling.ncu", "Write ncu=default, quick, standard, high, comprehensive, memory or compute."},
    OldKey{"profiling.nsys", "Write nsys=default, timeline, graphs or cpu."},
    OldKey{"profiling", "Choose a preset with ncu=... and nsys=...: `rangescope config groups` lists them."},
};

}  // namespace

std::string_view instead_of(std::string_view path) {
  const OldKey* best = nullptr;
  for (const OldKey& old : kOldKeys)
    if (path.starts_with(old.path) && (path.size() == old.path.size() || path[old.path.size()] == '.') &&
        (!best || old.path.size() > best->path.size()))
      best = &old;
  return best ? best->instead : std::string_view{};
}

}  // namespace rangescope::config
