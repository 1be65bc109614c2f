#include "doctor/machine/facts.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/duckdb.hpp"
#include "base/fs.hpp"
#include "base/library.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "collect/native/native.hpp"
#include "collect/native/planner.hpp"
#include "collect/nsight/tools.hpp"

namespace rangescope::doctor {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  return base::read_file(path).value_or("");
}

bool there_is(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The value of `name<separator> value` on a line of its own; "" where there is none.
std::string field(const std::string& text, std::string_view name) {
  for (const std::string_view line : base::split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && base::trim(line.substr(0, colon)) == name)
      return std::string(base::trim(line.substr(colon + 1)));
  }
  return {};
}

// /proc/driver/nvidia/version:
//   NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build
//   (dvs-builder@...)
std::string module_version(const std::string& text) {
  const std::string line = field(text, "NVRM version");
  for (const std::string_view word : base::split(line, ' ')) {
    const auto parts = base::split(word, '.');
    if (parts.size() >= 2 &&
        std::all_of(parts.begin(), parts.end(), [](auto p) { return base::to_uint(p); }))
      return std::string(word);
  }
  if (line.empty())
    return {};
  return "of unknown version";
}

void read_driver(const fs::path& root, MachineFacts& facts) {
  const fs::path driver = root / "proc/driver/nvidia";
  facts.kernel_module = module_version(text_of(driver / "version"));
  const std::string params = text_of(driver / "params");
  for (const std::string_view line : base::split(params, '\n')) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos)
      facts.module_params.emplace(base::trim(line.substr(0, colon)),
                                  base::trim(line.substr(colon + 1)));
  }
  std::error_code ignored;
  for (const auto& gpu : fs::directory_iterator(driver / "gpus", ignored))
    facts.kernel_gpus.push_back(field(text_of(gpu.path() / "information"), "Model"));
  std::sort(facts.kernel_gpus.begin(), facts.kernel_gpus.end());
  facts.device_nodes = there_is(root / "dev/nvidiactl");
}

void read_process(const fs::path& root, MachineFacts& facts) {
  const std::string hex = field(text_of(root / "proc/self/status"), "CapEff");
  if (!hex.empty() && hex.size() <= 16 &&
      hex.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos)
    facts.capabilities = std::stoull(hex, nullptr, 16);
  std::vector<std::string> map;
  const std::string ids = base::replace_all(text_of(root / "proc/self/uid_map"), "\n", " ");
  for (const std::string_view word : base::split(ids, ' '))
    if (!word.empty())
      map.emplace_back(word);
  facts.user_namespace = !map.empty() && map != std::vector<std::string>{"0", "0", "4294967295"};

  // "Max open files            1024                 1048576              files"
  const std::string limits = text_of(root / "proc/self/limits");
  facts.limits_known = !limits.empty();
  for (const std::string_view line : base::split(limits, '\n')) {
    constexpr std::size_t kName = 26;  // the kernel prints names in 25 columns and a blank
    if (line.size() <= kName || !line.starts_with("Max "))
      continue;
    const std::string_view rest = base::trim(line.substr(kName));
    if (const auto number = base::to_uint(rest.substr(0, rest.find(' '))))
      facts.soft_limits.emplace(base::trim(line.substr(4, kName - 4)), *number);
  }
  const std::string paranoid = text_of(root / "proc/sys/kernel/perf_event_paranoid");
  if (const auto level = base::to_int(base::trim(paranoid)))
    facts.perf_event_paranoid = static_cast<int>(*level);
  if (const auto scope =
          base::to_int(base::trim(text_of(root / "proc/sys/kernel/yama/ptrace_scope"))))
    facts.ptrace_scope = static_cast<int>(*scope);
}

std::string container_evidence(const fs::path& root,
                               const std::map<std::string, std::string>& environment) {
  for (const char* file : {".dockerenv", "run/.containerenv", ".singularity.d"})
    if (there_is(root / file))
      return "/" + std::string(file);
  if (environment.count("KUBERNETES_SERVICE_HOST"))
    return "KUBERNETES_SERVICE_HOST";
  const std::string groups = text_of(root / "proc/1/cgroup");
  for (const char* name : {"docker", "kubepods", "containerd", "lxc", "libpod"})
    if (groups.find(name) != std::string::npos)
      return "/proc/1/cgroup names " + std::string(name);
  return {};
}

// Names of /proc/<pid>/comm, which the kernel cuts to 15 letters.
constexpr std::array kHolders{
    "nv-hostengine", "dcgm-exporter", "dcgmproftester", "ncu", "nsys", "nv-nsight-cu-cl"};

std::vector<ProcessSeen> find_holders(const fs::path& root) {
  std::vector<ProcessSeen> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "proc", ignored)) {
    const auto pid = base::to_uint(entry.path().filename().string());
    if (!pid)
      continue;
    const std::string name{base::trim(text_of(entry.path() / "comm"))};
    if (std::any_of(kHolders.begin(), kHolders.end(), [&](const char* h) { return name == h; }))
      out.push_back({static_cast<std::uint32_t>(*pid), name});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return out;
}

// nsys carries one CUPTI for each generation of CUDA that it can trace: libcupti.so.11.8,
// libcupti.so.12.4.
std::vector<collect::Version> bundled_cupti(const fs::path& nsys) {
  std::vector<collect::Version> out;
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(nsys, ignored);
  for (const fs::path& folder :
       {real.parent_path(), real.parent_path().parent_path() / "target-linux-x64"}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("libcupti.so."))
        continue;
      const std::string tail = name.substr(12);
      const auto parts = base::split(tail, '.');
      const auto major = base::to_uint(parts[0]);
      const auto minor = parts.size() > 1 ? base::to_uint(parts[1]) : std::uint64_t{0};
      if (major && minor && *major < 1000 && *minor < 1000)
        out.push_back({static_cast<int>(*major), static_cast<int>(*minor), 0});
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

ToolSeen look_for_tool(std::string_view tool, const MachineSources& sources) {
  collect::ToolSearch search;
  search.environment = sources.environment;
  search.root = sources.root;
  ToolSeen seen;
  seen.paths = collect::find_tools(tool, search);
  auto abilities = collect::probe_tool(tool, search);
  if (abilities)
    seen.in_use = std::move(*abilities);
  else
    seen.error = abilities.error().what;
  if (tool != "nsys" || seen.paths.empty())
    return seen;
  seen.bundled_cupti = bundled_cupti(seen.paths.front());
  seen.importer = collect::find_importer(seen.paths.front());
  if (!seen.importer)
    return seen;
  const auto ended =
      base::run(base::question({seen.importer->string(), "--version"}, std::chrono::seconds(20)));
  if (!ended)
    seen.importer_error = ended.error().what;
  else if (!ended->ok())
    seen.importer_error =
        base::describe(*ended) + ": " +
        base::printable(base::trim(ended->err.empty() ? ended->out : ended->err).substr(0, 300));
  return seen;
}

void look_at_runs(const fs::path& runs, MachineFacts& facts) {
  std::error_code failed;
  facts.runs = fs::absolute(runs, failed);
  fs::path there = facts.runs;
  while (!there_is(there) && there.has_relative_path())
    there = there.parent_path();
  struct statvfs space {};
  if (::statvfs(there.c_str(), &space) == 0)
    facts.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  if (::access(there.c_str(), W_OK | X_OK) != 0)
    facts.runs_error = there.string() + " is not writable";
}

void look_for_cupti(const fs::path& library, MachineFacts& facts) {
  if (library.empty())
    return;
  auto planner = collect::native::Planner::open(library);
  if (planner)
    facts.cupti = planner->cupti();
  else
    facts.cupti_error = planner.error().what;
}

using Library = base::Nvml;
using Device = base::Nvml::Device;

constexpr unsigned kGraphics = 0, kSm = 1;  // nvmlClockType_t

std::optional<unsigned> clock_of(const Library& nvml,
                                 const char* name,
                                 Device device,
                                 unsigned type) {
  unsigned mhz = 0;
  if (nvml.call(name, device, type, &mhz) != 0)
    return std::nullopt;
  return mhz;
}

NvmlGpu gpu_of(const Library& nvml, Device device) {
  NvmlGpu gpu;
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  unsigned mig = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetMigMode", device, &mig, &pending) == 0)
    gpu.mig = mig != 0;
  unsigned long long limits = 0;
  if (nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &limits) == 0)
    gpu.clock_limits = limits;
  gpu.sm_clock_mhz = clock_of(nvml, "nvmlDeviceGetClockInfo", device, kSm);
  gpu.max_sm_clock_mhz = clock_of(nvml, "nvmlDeviceGetMaxClockInfo", device, kSm);
  gpu.application_clock_mhz = clock_of(nvml, "nvmlDeviceGetApplicationsClock", device, kGraphics);
  gpu.default_application_clock_mhz =
      clock_of(nvml, "nvmlDeviceGetDefaultApplicationsClock", device, kGraphics);
  return gpu;
}

/// Never fails: values that NVML does not give are absent.
Nvml ask_nvml(const std::filesystem::path& library) {
  Nvml answer;
  if (library.empty()) {
    answer.error = "NVML was not asked";
    return answer;
  }
  const Library nvml(library.c_str());
  if (!nvml.loaded()) {
    answer.error = "cannot be loaded";
    if (const char* reason = ::dlerror())
      answer.error = reason;
    return answer;
  }
  answer.loaded = true;
  answer.error_code = nvml.call("nvmlInit_v2");
  if (answer.error_code != 0) {
    answer.error = nvml.words_of(answer.error_code);
    return answer;
  }
  answer.driver = nvml.text("nvmlSystemGetDriverVersion");
  int cuda = 0;
  if (nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0)
    answer.cuda_version = cuda;
  unsigned count = 0;
  if (nvml.call("nvmlDeviceGetCount_v2", &count) == 0) {
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0)
        answer.gpus.push_back(gpu_of(nvml, device));
    }
  }
  (void)nvml.call("nvmlShutdown");
  return answer;
}

}  // namespace

MachineSources this_machine() {
  MachineSources sources;
  sources.environment = collect::tool_search().environment;
  if (auto library = collect::native::find_library())
    sources.inject_library = *library;
  else
    sources.inject_error = library.error().what;
  for (const char* name : {"mpirun", "srun"})
    if (sources.launcher.empty())
      sources.launcher = base::find_on_path(name).value_or("").string();
  sources.duckdb = base::Duck::version();
  return sources;
}

MachineFacts gather_machine(const MachineSources& sources) {
  MachineFacts facts;
  facts.environment = sources.environment;
  read_driver(sources.root, facts);
  read_process(sources.root, facts);
  facts.nvml = ask_nvml(sources.nvml);
  facts.container = container_evidence(sources.root, sources.environment);
  facts.holders = find_holders(sources.root);
  facts.nsys = look_for_tool("nsys", sources);
  facts.ncu = look_for_tool("ncu", sources);
  facts.inject_library = sources.inject_library.string();
  facts.inject_error = sources.inject_error;
  facts.mpi_library = collect::native::mpi_library(sources.inject_library, {}, true).string();
  facts.launcher = sources.launcher;
  facts.duckdb = sources.duckdb;
  look_for_cupti(sources.inject_library, facts);
  look_at_runs(sources.runs, facts);
  return facts;
}

bool is_administrator(const MachineFacts& facts) {
  constexpr std::uint64_t kSysAdmin = 1ull << 21;
  return facts.capabilities && (*facts.capabilities & kSysAdmin) != 0 && !facts.user_namespace;
}

}  // namespace rangescope::doctor
