// The doctor of machines against machines made of files: every complaint comes from a machine that
// has the fault, and a sound machine gets none.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/text.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"

namespace rangescope::doctor {
namespace machine_test {

namespace fs = std::filesystem;
using model::Grade;

/// A folder that stands for a machine.
class Machine {
 public:
  Machine() {
    std::string name = (fs::temp_directory_path() / "rangescope-doctor-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    sources_.root = name;
    sources_.nvml = "";
    sources_.runs = root() / "runs";
    sources_.environment = {{"HOME", name}};
    // What the files of a sound machine with one H200 say (driver 580, Linux 6).
    file("proc/driver/nvidia/version",
         "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  "
         "(dvs-builder@U22)\n"
         "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n");
    file("proc/driver/nvidia/params",
         "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\nTemporaryFilePath: \"\"\n");
    file("proc/driver/nvidia/gpus/0000:18:00.0/information",
         "Model: \t\t NVIDIA H200\nIRQ:   \t\t 18\nGPU UUID: \t GPU-1\nBus Location: \t "
         "0000:18:00.0\n");
    file("dev/nvidiactl", "");
    capabilities("0000000000000000");
    file("proc/self/uid_map", "         0          0 4294967295\n");
    file("proc/self/limits",
         "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max file size             unlimited            unlimited            bytes     \n"
         "Max open files            1024                 1048576              files     \n"
         "Max locked memory         8388608              8388608              bytes     \n"
         "Max address space         unlimited            unlimited            bytes     \n");
    file("proc/sys/kernel/perf_event_paranoid", "2\n");
    file("proc/1/cgroup", "0::/init.scope\n");
    file("proc/1/comm", "systemd\n");
    file("proc/4711/comm", "python3\n");
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() {
    std::error_code ignored;
    fs::remove_all(root(), ignored);
  }

  [[nodiscard]] const fs::path& root() const { return sources_.root; }
  MachineSources& sources() { return sources_; }
  void file(const fs::path& path, const std::string& text) {
    fs::create_directories((root() / path).parent_path());
    EXPECT_TRUE(base::write_file(root() / path, text).has_value());
  }
  void script(const fs::path& path, const std::string& text) {
    file(path, "#!/bin/sh\n" + text);
    EXPECT_EQ(::chmod((root() / path).c_str(), 0755), 0);
  }
  void remove(const fs::path& path) { fs::remove_all(root() / path); }
  void capabilities(const std::string& hex) {
    file("proc/self/status", "Name:\tbash\nCapEff:\t" + hex + "\n");
  }

  /// Gathered from the files, then `change`d where files cannot say it (NVML).
  [[nodiscard]] MachineFacts facts() const {
    MachineFacts facts = gather_machine(sources_);
    facts.nvml = Nvml{};
    facts.nvml.loaded = true;
    facts.nvml.driver = "580.159.03";
    facts.nvml.cuda_version = 13000;
    NvmlGpu gpu;
    gpu.name = "NVIDIA H200";
    gpu.mig = false;
    gpu.clock_limits = 1;  // idle
    gpu.application_clock_mhz = gpu.default_application_clock_mhz = 1980;
    facts.nvml.gpus = {gpu};
    facts.inject_library = "/usr/lib/librangescope_inject.so";
    facts.inject_error.clear();
    facts.cupti = "CUPTI 13.0.1, /usr/local/cuda/lib64/libcupti.so.13";
    return facts;
  }

 private:
  MachineSources sources_;
};

Findings examine(const MachineFacts& facts) {
  return run_checks(kMachineChecks, facts);
}

/// "warn machine.no_nsys", one line each, of what is not well.
std::string complaints(const Findings& findings) {
  std::string text;
  for (const auto& finding : findings) {
    if (finding.verdict == Grade::kOk || finding.verdict == Grade::kSkip)
      continue;
    text += (finding.verdict == Grade::kWarn ? "warn " : "fail ") + finding.id + "\n";
    EXPECT_FALSE(finding.hint.empty()) << finding.id;  // nobody is left without a next step
    EXPECT_FALSE(finding.why.empty()) << finding.id << " is not in the catalogue";
    EXPECT_FALSE(finding.question.empty()) << finding.id;
    EXPECT_FALSE(finding.found.empty()) << finding.id;
  }
  return text;
}
std::string complaints(const Machine& machine) {
  return complaints(examine(machine.facts()));
}

// Without nsys and ncu: what a machine of files has by default.
const std::string kNoTools = "warn machine.no_nsys\nwarn machine.no_ncu\n";

const model::Finding* find(const Findings& findings, const std::string& id) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const auto& f) { return f.id == id; });
  return found == findings.end() ? nullptr : &*found;
}

TEST(Machine, SoundMachineGetsNoComplaint) {
  Machine machine;
  const Findings findings = examine(machine.facts());
  EXPECT_EQ(complaints(findings), kNoTools);
  ASSERT_NE(find(findings, "machine.driver"), nullptr);
  EXPECT_EQ(find(findings, "machine.driver")->found,
            "driver 580.159.03, serves programs up to CUDA 13.0");
  EXPECT_EQ(find(findings, "machine.gpus")->found, "1 GPU: NVIDIA H200");
  EXPECT_EQ(find(findings, "machine.counters")->found,
            "every user may (RmProfilingAdminOnly is 0)");
  EXPECT_EQ(find(findings, "machine.limits")->found,
            "1024 open files, 8.000 MiB locked memory, file size unlimited");
}

TEST(Machine, WhatIsInstalledIsNamed) {
  Machine machine;
  MachineFacts facts = machine.facts();
  facts.mpi_library.clear();
  facts.duckdb.clear();
  Findings findings = examine(facts);
  EXPECT_EQ(find(findings, "machine.library")->found.find("rangescope 0"), 0u);
  EXPECT_EQ(find(findings, "machine.mpi")->verdict, Grade::kSkip);
  EXPECT_EQ(find(findings, "machine.duckdb")->verdict, Grade::kSkip);
  facts.mpi_library = "/usr/lib/librangescope_mpi.so";
  facts.launcher = "/usr/bin/mpirun";
  facts.duckdb = "v1.1.3";
  findings = examine(facts);
  EXPECT_EQ(find(findings, "machine.mpi")->found, "/usr/lib/librangescope_mpi.so, /usr/bin/mpirun");
  EXPECT_EQ(find(findings, "machine.duckdb")->found, "DuckDB v1.1.3");
}

TEST(Machine, EveryCheckAnswersOnEveryMachine) {
  Machine machine;
  machine.remove("proc");
  machine.remove("dev");
  MachineFacts bare =
      gather_machine(machine.sources());  // no driver, no NVML, no /proc, no tools, no library
  bare.inject_error = "librangescope_inject.so was not found";
  const Findings findings = examine(bare);
  EXPECT_EQ(findings.size(), std::size(kMachineChecks));
  EXPECT_EQ(complaints(findings),
            "warn machine.no_driver\nfail machine.no_inject_library\n" + kNoTools);
  EXPECT_EQ(examine(MachineFacts{}).size(), std::size(kMachineChecks));
}

TEST(Machine, Driver) {
  const auto driver = [](auto change) {
    Machine machine;
    MachineFacts facts = machine.facts();
    change(facts);
    const std::string all = complaints(examine(facts));
    return base::replace_all(all, kNoTools, "");
  };
  EXPECT_EQ(driver([](MachineFacts& f) {
              f.nvml.error_code = kNvmlVersionMismatch;
              f.nvml.error = "Driver/library version mismatch";
            }),
            "fail machine.driver_mismatch\n");
  EXPECT_EQ(driver([](MachineFacts& f) {
              f.kernel_module.clear();
              f.nvml.error_code = kNvmlDriverNotLoaded;
              f.nvml.error = "Driver Not Loaded";
            }),
            "fail machine.no_kernel_module\n");
  EXPECT_EQ(driver([](MachineFacts& f) { f.nvml = Nvml{}; }), "warn machine.no_driver_libraries\n");
  EXPECT_EQ(driver([](MachineFacts& f) {
              f.nvml = Nvml{};
              f.container = "/.dockerenv";
            }),
            "fail machine.no_driver_libraries\n");
  EXPECT_EQ(driver([](MachineFacts& f) { f.device_nodes = false; }),
            "fail machine.no_device_nodes\n");
  EXPECT_EQ(driver([](MachineFacts& f) {
              f.nvml.error_code = 999;
              f.nvml.error = "Unknown Error";
            }),
            "fail machine.driver_silent\n");
  EXPECT_EQ(driver([](MachineFacts& f) { f.nvml.gpus[0].mig = true; }), "warn machine.mig_on\n");
  EXPECT_EQ(driver([](MachineFacts& f) { f.nvml.gpus[0].clock_limits = 0x40 | 0x4; }),
            "warn machine.clocks_held\n");
  EXPECT_EQ(driver([](MachineFacts& f) { f.nvml.gpus[0].application_clock_mhz = 1200; }),
            "warn machine.application_clocks\n");
  for (const char* hidden : {"", "-1", "NoDevFiles"})
    EXPECT_EQ(driver([&](MachineFacts& f) { f.environment["CUDA_VISIBLE_DEVICES"] = hidden; }),
              "fail machine.gpus_hidden\n");
  EXPECT_EQ(driver([](MachineFacts& f) { f.environment["CUDA_VISIBLE_DEVICES"] = "0"; }), "");
}

TEST(Machine, CountersForAdministrators) {
  Machine machine;
  machine.file("proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
  EXPECT_EQ(complaints(machine), "fail machine.counters_locked\n" + kNoTools);
  machine.file(".dockerenv", "");
  EXPECT_EQ(complaints(machine), "fail machine.counters_locked_container\n" + kNoTools);
  machine.capabilities("00000000a80425fb");  // docker's default set: no CAP_SYS_ADMIN
  EXPECT_EQ(complaints(machine), "fail machine.counters_locked_container\n" + kNoTools);
  EXPECT_EQ(exit_code_of(examine(machine.facts())), 77);
  machine.capabilities("000001ffffffffff");
  EXPECT_EQ(complaints(machine), kNoTools);
  machine.file("proc/self/uid_map",
               "         0       1000          1\n         1     100000      65536\n");
  EXPECT_EQ(complaints(machine), "fail machine.counters_locked_namespace\n" + kNoTools);
}

TEST(Machine, HoldersOfTheCounters) {
  Machine machine;
  machine.file("proc/812/comm", "nv-hostengine\n");
  const Findings dcgm = examine(machine.facts());
  EXPECT_EQ(complaints(dcgm), "warn machine.dcgm_running\n" + kNoTools);
  EXPECT_EQ(find(dcgm, "machine.dcgm_running")->found, "nv-hostengine (pid 812)");
  machine.remove("proc/812");
  machine.file("proc/99/comm", "ncu\n");
  machine.file("proc/98/comm", "nsys\n");
  const Findings tools = examine(machine.facts());
  EXPECT_EQ(complaints(tools), "warn machine.profiler_running\n" + kNoTools);
  EXPECT_EQ(find(tools, "machine.profiler_running")->found, "nsys (pid 98), ncu (pid 99)");
}

TEST(Machine, Environment) {
  Machine machine;
  machine.sources().environment["NVTX_INJECTION64_PATH"] = "/opt/other.so";
  machine.sources().environment["CUDA_INJECTION64_PATH"] = "/opt/other.so";
  machine.sources().environment["LD_PRELOAD"] = "libtcmalloc.so";
  machine.sources().environment["LD_LIBRARY_PATH"] = "/a:/usr/local/cuda/lib64/stubs/:/b";
  const Findings findings = examine(machine.facts());
  EXPECT_EQ(
      complaints(findings),
      kNoTools + "warn machine.injection_set\nwarn machine.preload_set\nwarn machine.cuda_stubs\n");
  EXPECT_EQ(find(findings, "machine.injection_set")->commands,
            std::vector<std::string>{"unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH"});
}

TEST(Machine, Limits) {
  Machine machine;
  machine.file("proc/sys/kernel/perf_event_paranoid", "4\n");
  machine.file("proc/self/limits",
               "Limit                     Soft Limit           Hard Limit           Units     \n"
               "Max file size             1048576              unlimited            bytes     \n"
               "Max open files            32                   1048576              files     \n"
               "Max address space         4294967296           unlimited            bytes     \n");
  MachineFacts facts = machine.facts();
  facts.free_bytes = 1 << 20;
  const Findings findings = examine(facts);
  EXPECT_EQ(complaints(findings),
            kNoTools +
                "warn machine.perf_events_locked\nfail machine.disk_full\n"
                "warn machine.few_open_files\nwarn machine.file_size_limited\n"
                "warn machine.address_space_limited\n");
  facts.free_bytes = 1ull << 30;
  EXPECT_NE(complaints(examine(facts)).find("warn machine.disk_full"), std::string::npos);
  facts.runs_error = "/ is not writable";
  EXPECT_NE(complaints(examine(facts)).find("fail machine.runs_not_writable"), std::string::npos);
  EXPECT_GT(gather_machine(machine.sources()).free_bytes.value_or(0), 0u);
}

TEST(Machine, SaysWhetherTheCpuCanBeSampled) {
  Machine machine;
  MachineFacts facts = machine.facts();
  EXPECT_EQ(find(examine(facts), "machine.cpu_sampling")->verdict, Grade::kSkip);  // nobody asked
  facts.cpu_sampling = CpuSamplingSeen{.kernel = false};
  Findings findings = examine(facts);
  ASSERT_NE(find(findings, "machine.cpu_sampling"), nullptr);
  EXPECT_NE(find(findings, "machine.cpu_sampling")->found.find("computed"), std::string::npos);
  EXPECT_EQ(complaints(findings), kNoTools);
  facts.ptrace_scope = 2;
  EXPECT_EQ(complaints(examine(facts)), kNoTools + "warn machine.python_hidden\n");
  facts.capabilities = std::uint64_t{1} << 19;
  EXPECT_EQ(complaints(examine(facts)), kNoTools);
  facts.cpu_sampling = CpuSamplingSeen{
      "kernel.perf_event_paranoid is 3, which forbids perf_event_open", "Set it to 2"};
  findings = examine(facts);
  EXPECT_EQ(complaints(findings), kNoTools + "warn machine.cpu_not_sampled\n");
  EXPECT_EQ(find(findings, "machine.cpu_not_sampled")->hint, "Set it to 2");
}

// nsys 2022.4.2 as it lies in its package: CUPTIs beside it, importer in another folder.
void install_nsys(Machine& machine, const std::string& importer) {
  const std::string home = "opt/nvidia/nsight-systems/2022.4.2/";
  machine.script(
      home + "target-linux-x64/nsys",
      "case $1 in --version) echo 'NVIDIA Nsight Systems version 2022.4.2.1-df9881f';;\n"
      "*) printf '\\t-t, --trace=\\n\\n\\t   Possible values are cuda, nvtx.\\n';; esac\n");
  machine.file(home + "target-linux-x64/libcupti.so.10.2", "");
  machine.file(home + "target-linux-x64/libcupti.so.11.8", "");
  machine.script(home + "host-linux-x64/QdstrmImporter", importer);
}

TEST(Machine, NsysOlderThanTheDriver) {
  Machine machine;
  install_nsys(machine, "echo NVIDIA Nsight Systems 2022.4.2.1\n");
  MachineFacts facts = machine.facts();
  facts.nvml.cuda_version = 11080;
  EXPECT_EQ(complaints(examine(facts)), "warn machine.no_ncu\n");
  facts.nvml.cuda_version = 13000;
  const Findings findings = examine(facts);
  EXPECT_EQ(complaints(findings), "warn machine.nsys_older_than_cuda\nwarn machine.no_ncu\n");
  EXPECT_NE(find(findings, "machine.nsys_older_than_cuda")->found.find("up to CUDA 11.8"),
            std::string::npos);
  EXPECT_EQ(find(findings, "machine.importer")->verdict, Grade::kOk);
}

TEST(Machine, ImporterWithoutItsLibrary) {
  Machine machine;
  install_nsys(machine,
               "echo 'QdstrmImporter: error while loading shared libraries: libdw.so.1: cannot "
               "open shared object file' "
               ">&2; exit 127\n");
  MachineFacts facts = machine.facts();
  facts.nvml.cuda_version = 11080;
  const Findings findings = examine(facts);
  EXPECT_EQ(complaints(findings), "warn machine.importer_broken\nwarn machine.no_ncu\n");
  EXPECT_NE(find(findings, "machine.importer_broken")->found.find("libdw.so.1"), std::string::npos);
  machine.remove("opt/nvidia/nsight-systems/2022.4.2/host-linux-x64");
  facts = machine.facts();
  facts.nvml.cuda_version = 11080;
  if (!facts.nsys.importer) {  // unless this machine has one in Debian's place
    EXPECT_EQ(complaints(examine(facts)), "warn machine.no_importer\nwarn machine.no_ncu\n");
  }
}

TEST(Machine, ToolsThatDoNotRun) {
  Machine machine;
  machine.script("opt/nvidia/nsight-systems/2025.3.1/bin/nsys", "echo nothing; exit 1\n");
  machine.script("opt/nvidia/nsight-compute/2025.3.1/ncu", "exit 127\n");
  const std::string text = complaints(machine);
  EXPECT_NE(text.find("fail machine.nsys_broken"), std::string::npos) << text;
  EXPECT_NE(text.find("fail machine.ncu_broken"), std::string::npos) << text;
}

TEST(Machine, NcuOlderThanTheDriverOrWithoutSections) {
  Machine machine;
  MachineFacts facts = machine.facts();
  auto text = base::read_file(fs::path(base::source_dir) / "conf/tools/ncu-2022.3.0.json");
  ASSERT_TRUE(text.has_value());
  auto ncu = collect::from_json(*text);
  ASSERT_TRUE(ncu.has_value());
  facts.ncu.paths = {ncu->path};
  facts.ncu.in_use = *ncu;
  facts.nvml.cuda_version = 11080;
  EXPECT_EQ(complaints(examine(facts)), "warn machine.no_nsys\n");
  facts.nvml.cuda_version = 12040;
  EXPECT_EQ(complaints(examine(facts)), "warn machine.no_nsys\nwarn machine.ncu_older_than_cuda\n");
  facts.ncu.in_use->sets.clear();
  facts.ncu.in_use->sections.clear();
  EXPECT_EQ(complaints(examine(facts)),
            "warn machine.no_nsys\nfail machine.ncu_without_sections\n");
}

TEST(Machine, NoCupti) {
  Machine machine;
  MachineFacts facts = machine.facts();
  facts.cupti.clear();
  facts.cupti_error = "libcupti.so.13 was not found";
  EXPECT_EQ(complaints(examine(facts)), "warn machine.no_cupti\n" + kNoTools);
}

TEST(Machine, ThisOneIsGatheredWithoutComplaintOfItsOwn) {
  MachineSources sources = this_machine();
  sources.inject_library.clear();  // loads no CUPTI into a unit test
  sources.inject_error = "not looked for";
  const MachineFacts facts = gather_machine(sources);
  EXPECT_TRUE(facts.limits_known);
  EXPECT_TRUE(facts.capabilities.has_value());
  EXPECT_TRUE(facts.perf_event_paranoid.has_value() ||
              !fs::exists("/proc/sys/kernel/perf_event_paranoid"));
  (void)complaints(examine(facts));
}

}  // namespace machine_test
}  // namespace rangescope::doctor
