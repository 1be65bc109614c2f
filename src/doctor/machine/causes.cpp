// "Known from" says where: H200 is the machine of tests/golden (driver 580.159, CUDA 13.0, ncu and nsys 2025.3.1).
#include "doctor/machine/causes.hpp"

#include <array>

namespace rangescope::doctor {
namespace {

using base::Code;

constexpr std::array kCauses{
    Cause{"machine.no_driver", "no NVIDIA driver",
          "GPU programs cannot run here. Wall times of ranges can be recorded all the same: NVTX needs no driver.",
          "Run on a machine with an NVIDIA GPU and driver to measure GPU work", "machines without a GPU",
          Code::kToolMissing},
    Cause{"machine.driver_mismatch", "library and kernel module of the driver differ",
          "The driver's libraries were updated and the old kernel module is still loaded (or a container brings "
          "libraries "
          "of its own): no CUDA program starts.",
          "Reboot, or reload the nvidia module; in a container take the libraries from the host (NVIDIA Container "
          "Toolkit)",
          "NVML documentation, NVML_ERROR_LIB_RM_VERSION_MISMATCH", Code::kToolMissing},
    Cause{"machine.no_kernel_module", "the kernel module is not loaded",
          "The driver's libraries are there, and no CUDA program can start without the kernel module.",
          "Load it with `sudo modprobe nvidia`; where that fails, see `dmesg` (secure boot, a kernel that was updated)",
          "NVML documentation, NVML_ERROR_DRIVER_NOT_LOADED", Code::kToolMissing},
    Cause{
        "machine.no_driver_libraries", "the driver's libraries are not to be found",
        "The host has a driver whose libraries this place cannot load: CUDA programs find no libcuda.so.1 either, "
        "unless "
        "it lies elsewhere.",
        "Start the container with GPUs (docker run --gpus all), or install the driver's libraries of the same version",
        "dlopen", Code::kToolMissing},
    Cause{"machine.no_device_nodes", "no device files",
          "The kernel module is loaded, but without /dev/nvidiactl no program reaches it.",
          "Start the container with GPUs (docker run --gpus all), or run `nvidia-smi` once as root, which makes the "
          "files",
          "NVIDIA driver documentation, device files", Code::kToolMissing},
    Cause{"machine.driver_silent", "NVML cannot reach the driver", "No CUDA program will reach it either.",
          "See what `nvidia-smi` and `dmesg` say", "NVML documentation", Code::kToolMissing},
    Cause{"machine.gpus_hidden", "CUDA_VISIBLE_DEVICES hides every GPU",
          "CUDA shows a program the devices of this list up to the first that does not exist; an empty list is no "
          "device.",
          "Unset CUDA_VISIBLE_DEVICES, or list devices that exist", "CUDA programming guide, environment variables",
          Code::kConfig},
    Cause{"machine.mig_on", "MIG mode",
          "A MIG instance shows its own share of the GPU: counters of units that are shared with other instances "
          "cannot be "
          "measured there, ncu cannot fix the clocks, and peaks of the whole GPU do not apply.",
          "Profile on an instance that owns the whole GPU, or turn MIG off (nvidia-smi -mig 0, as root)",
          "Nsight Compute documentation, Multi-Instance GPU", Code::kPermission},
    Cause{
        "machine.counters_locked", "performance counters are for administrators",
        "ncu ends with ERR_NVGPUCTRPERM, and `--metrics` of rangescope measures nothing. Timelines (kernels, copies, "
        "ranges) are not affected.",
        "Have NVreg_RestrictProfilingToAdminUsers=0 set as an option of the nvidia module and the machine rebooted, or "
        "run as root",
        "ncu 2020.3 to 2025.3: ERR_NVGPUCTRPERM", Code::kPermission},
    Cause{"machine.counters_locked_container",
          "performance counters are for administrators, and this container has none",
          "Being root in a container is not enough: the driver asks for CAP_SYS_ADMIN. ncu ends with ERR_NVGPUCTRPERM.",
          "Start the container with --cap-add=SYS_ADMIN, or have NVreg_RestrictProfilingToAdminUsers=0 set on the host",
          "ncu documentation, ERR_NVGPUCTRPERM", Code::kPermission},
    Cause{"machine.counters_locked_namespace", "performance counters are for administrators of the host",
          "In a user namespace (rootless container) every capability holds for the namespace only; the driver asks for "
          "one "
          "of the host.",
          "Have NVreg_RestrictProfilingToAdminUsers=0 set on the host, or use a container that is not rootless",
          "capabilities(7), user_namespaces(7)", Code::kPermission},
    Cause{"machine.no_counters", "metrics that nothing here can measure",
          "`profile --metrics` ran the program without hardware counters; times are there, metrics are not.",
          "Run on a machine whose GPU and driver give counters; with --strict the run does not start without them",
          "machines without a GPU"},
    Cause{"machine.dcgm_running", "DCGM runs",
          "Where DCGM samples profiling metrics it holds the GPU's counters: ncu then says that a driver resource was "
          "unavailable, and `--metrics` of rangescope fails. DCGM that samples none does no harm.",
          "Pause it while you measure: dcgmi profiling --pause, and --resume afterwards",
          "ncu documentation, `a driver resource was unavailable`", Code::kToolMissing},
    Cause{"machine.profiler_running", "another profiler runs",
          "Only one process at a time can hold a GPU's performance counters: ncu, nsys with GPU metrics, or rangescope "
          "with "
          "`--metrics`.",
          "Wait for it to end, or end it", "ncu documentation, `a driver resource was unavailable`",
          Code::kToolMissing},
    Cause{"machine.clocks_held", "clocks are held down",
          "Times measured now are longer than the GPU's own clocks would give, and may change from run to run.",
          "Let the GPU cool down or become idle, raise the power cap, or compare only runs made in the same state",
          "NVML documentation, clocks event reasons", Code::kConfig},
    Cause{
        "machine.application_clocks", "application clocks were changed",
        "Kernels run at other clocks than by default; ncu, which sets base clocks itself (--clock-control base), and a "
        "plain run then differ for this reason too.",
        "Set them back with `sudo nvidia-smi -rac`, or keep them for every run that is compared",
        "NVML documentation, application clocks", Code::kConfig},
    Cause{"machine.no_inject_library", "librangescope_inject.so is missing",
          "It is what records ranges within the program; without it rangescope reads only other tools' files.",
          "Install rangescope again, or name the library with RANGESCOPE_INJECT", "rangescope", Code::kToolMissing},
    Cause{"machine.no_cupti", "no CUPTI",
          "Ranges are recorded, but no kernels, copies or counters. A program that brings its own CUPTI (PyTorch does) "
          "is "
          "recorded with that one.",
          "Install CUDA 12.6 or newer, or set RANGESCOPE_CUPTI to the path of its libcupti.so",
          "rangescope without a toolkit", Code::kToolMissing},
    Cause{"machine.no_nsys", "no Nsight Systems",
          "rangescope needs it only for `--nsys` and for reading .nsys-rep files.",
          "Install Nsight Systems, or set RANGESCOPE_NSYS to its executable", "rangescope", Code::kToolMissing},
    Cause{"machine.nsys_broken", "nsys does not run", "`profile --nsys` will not work with it.",
          "Install what it names, or set RANGESCOPE_NSYS to another nsys",
          "rangescope, with executables that do not run", Code::kToolMissing},
    Cause{"machine.nsys_older_than_cuda", "nsys is older than the driver's CUDA",
          "nsys traces CUDA through a CUPTI of its own for each generation of CUDA. Programs built with the newer CUDA "
          "may "
          "be recorded without kernels; their ranges are recorded.",
          "Install an nsys of the driver's CUDA version or newer",
          "nsys 2020.4.3, 2022.4.2 and 2023.4.4 carry CUPTI up to 11.2, 11.8 and 12.4", Code::kToolMissing},
    Cause{"machine.no_importer", "nsys has no importer",
          "nsys then leaves a .qdstrm in place of a report and exits with 0.",
          "Install the host part of Nsight Systems (package nsight-systems)", "nsys 2022.4.2 (Debian) and 2025.3.1",
          Code::kToolMissing},
    Cause{"machine.importer_broken", "nsys's importer does not run",
          "nsys then leaves a .qdstrm in place of a report and exits with 0.",
          "Install the library that it names (libdw.so.1: package libdw1; libelf.so.1: package libelf1)",
          "nsys 2025.3.1 on a bare machine, libdw.so.1", Code::kToolMissing},
    Cause{"machine.no_ncu", "no Nsight Compute",
          "rangescope needs it only for `ncu=...` presets; counters per range (`--metrics`) come without it.",
          "Install Nsight Compute, or set RANGESCOPE_NCU to its executable", "rangescope", Code::kToolMissing},
    Cause{"machine.ncu_broken", "ncu does not run", "Presets `ncu=...` will not work with it.",
          "Install what it names, or set RANGESCOPE_NCU to another ncu", "rangescope, with executables that do not run",
          Code::kToolMissing},
    Cause{"machine.ncu_without_sections", "ncu finds no section files",
          "Every --set and --section then collects nothing, with exit code 0; --metrics works.",
          "Install the package that holds its sections folder (nsight-compute), or pass --section-folder",
          "rangescope, ncu --list-sets and --list-sections", Code::kToolMissing},
    Cause{"machine.ncu_older_than_cuda", "ncu is older than the driver's CUDA",
          "ncu knows the GPUs of its own time: newer ones answer `Profiling is not supported on device`.",
          "Install an ncu of the driver's CUDA version or newer", "ncu documentation, supported GPUs",
          Code::kToolMissing},
    Cause{"machine.injection_set", "an injection variable is set already",
          "NVTX and CUDA load one library each, named by these variables: whoever set them (another profiler's shell, "
          "a job "
          "script) gets the ranges, and rangescope refuses to push it aside.",
          "Unset them, or pass --chain-injection to record and hand on", "NVTX 3 headers, CUDA driver", Code::kConfig},
    Cause{
        "machine.preload_set", "LD_PRELOAD is set",
        "Every program started here, ncu and nsys included, loads that library first. Profilers that work this way can "
        "get in each other's way.",
        "Unset LD_PRELOAD unless the program needs it", "ld.so(8)", Code::kConfig},
    Cause{"machine.cuda_stubs", "the library path leads to stubs",
          "The stub libcuda.so of a toolkit is for linking only; a program or ncu that finds it in place of the driver "
          "sees "
          "no GPU.",
          "Take CUDA's stubs folder out of LD_LIBRARY_PATH", "CUDA toolkit documentation; ncu 2022.3.0", Code::kConfig},
    Cause{
        "machine.perf_events_locked", "perf events are for administrators",
        "nsys cannot sample the CPU (--sample, --cpuctxsw). Ranges, CUDA calls and kernels are recorded all the same.",
        "Set kernel.perf_event_paranoid to 2 or less, or pass --sample=none --cpuctxsw=none to nsys",
        "Nsight Systems documentation, CPU profiling requirements", Code::kPermission},
    Cause{"machine.runs_not_writable", "the folder for runs cannot be written",
          "Every run leaves a folder with its capture and report.", "Name another folder with --runs DIR", "rangescope",
          Code::kIo},
    Cause{"machine.disk_full", "little room for runs",
          "A native capture may grow to 4 GiB a process (--max-capture-size); a full disk cuts it short.",
          "Make room, prune old runs (rangescope runs prune), or name another folder with --runs DIR", "rangescope",
          Code::kIo},
    Cause{
        "machine.few_open_files", "few open files allowed",
        "nsys opens some twenty files itself and ends with `pipe(2) failed: Too many open files` where it may not; the "
        "program's own come on top.",
        "Raise the limit: ulimit -n 1024", "nsys 2022.4.2, at 16", Code::kConfig},
    Cause{"machine.file_size_limited", "files may not grow",
          "A capture stops growing at this size: the program goes on, and what comes later is counted as the loss "
          "file_size_limit.",
          "Lift the limit: ulimit -f unlimited", "rangescope under ulimit -f", Code::kConfig},
    Cause{"machine.address_space_limited", "address space is limited",
          "CUDA reserves address space for the memory of all GPUs when it starts, and fails where that is not allowed.",
          "Lift the limit: ulimit -v unlimited", "CUDA programming guide, unified addressing; getrlimit(2)",
          Code::kConfig},
};

}  // namespace

std::span<const Cause> machine_causes() {
  return kCauses;
}

}  // namespace rangescope::doctor
