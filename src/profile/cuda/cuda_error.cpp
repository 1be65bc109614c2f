#include "profile/cuda/cuda_error.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/elf_file.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/native/cuda_error.hpp"
#include "wire/cuda_error.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kDriverPatience_s = 20;
/// Where nvcc puts the code for GPUs.
constexpr std::string_view kGpuCodeSection = ".nv_fatbin";
constexpr std::string_view kCudaLibraries[] = {
    "libcudart.so",
    "libtorch_cuda.so",
    "libcublas.so",
    "libcudnn",
};

bool has_cuda(const model::Session& session) {
  return !session.devices.empty() || !session.launches.empty() || !session.kernels.empty() ||
         !session.clock.gpu.empty();
}

/// Files of the program's processes: the one that was started, and those that were sampled and have
/// the name of a process.
std::set<std::string> executables_of(const std::string& program, const model::Session& session) {
  std::set<std::string> executables;
  if (const auto started = base::find_on_path(program))
    executables.insert(started->string());
  constexpr std::size_t kMostOfName = 15;  // Linux keeps no more of the name of a process
  std::set<std::string_view> names;
  for (const model::Process& process : session.processes) {
    const std::string_view name = session.strings.view(process.name);
    if (name.starts_with('/'))
      executables.insert(std::string(name));
    names.insert(base::file_name(name).substr(0, kMostOfName));
  }
  for (const model::CpuFrame& frame : session.cpu.frames) {
    const std::string_view module = session.strings.view(frame.module);
    const bool is_executable = names.contains(base::file_name(module).substr(0, kMostOfName));
    if (module.starts_with('/') && is_executable)
      executables.insert(std::string(module));
  }
  return executables;
}

/// The name of the program's executable with GPU code; "" if there is none.
std::string cuda_executable_of(const std::string& program, const model::Session& session) {
  for (const std::string& executable : executables_of(program, session))
    if (base::ElfFile(executable).has_section(kGpuCodeSection))
      return std::string(base::file_name(executable));
  return {};
}

/// A CUDA library that the program was seen in; "" if there is none.
std::string cuda_library_of(const model::Session& session) {
  std::set<std::string_view> libraries;
  for (const model::CpuFrame& frame : session.cpu.frames) {
    const std::string_view library = base::file_name(session.strings.view(frame.module));
    const auto is_start = [&](std::string_view name) { return library.starts_with(name); };
    if (std::ranges::any_of(kCudaLibraries, is_start))
      libraries.insert(library);
  }
  if (libraries.empty())
    return {};
  return std::string(*libraries.begin());
}

/// "" if CUDA starts.
std::string answer_of_driver() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr)
    return fmt::format(
        "there is no CUDA driver here ({}), so that its CUDA calls fail with error 35, "
        "cudaErrorInsufficientDriver",
        ::dlerror());
  const auto start = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  using Describe = int (*)(int, const char**);
  const auto name_of = reinterpret_cast<Describe>(::dlsym(driver, "cuGetErrorName"));
  const auto text_of = reinterpret_cast<Describe>(::dlsym(driver, "cuGetErrorString"));
  if (start == nullptr)
    return "libcuda.so.1 here is no CUDA driver: it has no cuInit";
  const int code = start(0);
  if (code == 0)
    return {};
  std::string answer = fmt::format("cuInit fails here with error {}", code);
  for (const Describe ask : {name_of, text_of}) {
    const char* text = nullptr;
    if (ask != nullptr && ask(code, &text) == 0 && text != nullptr)
      answer += std::string(", ") + text;
  }
  return answer;
}

/// In a process of its own: a driver starts threads, may hang and may crash.
std::string answer_of_driver_aside() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kDriverPatience_s);
    const std::string answer = answer_of_driver();
    (void)!::write(ends[1], answer.data(), answer.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string answer(4096, '\0');
  const ssize_t bytes = child > 0 ? ::read(ends[0], answer.data(), answer.size()) : 0;
  ::close(ends[0]);
  if (child > 0)
    ::waitpid(child, nullptr, 0);
  answer.resize(static_cast<std::size_t>(std::max<ssize_t>(0, bytes)));
  return answer;
}

}  // namespace

void explain_missing_cuda(const fs::path& captures,
                          const std::string& program,
                          bool failed,
                          model::Session& session) {
  if (has_cuda(session))
    return;
  std::string file = cuda_executable_of(program, session);
  if (file.empty() && failed)
    file = cuda_library_of(session);
  if (file.empty())
    return;
  const std::string answer = answer_of_driver_aside();
  if (answer.empty())
    return;
  const std::string text = fmt::format("{} uses CUDA, but {}", file, answer);
  if (base::write_file(captures / wire::kCudaErrorFile, text + "\n"))
    read::native::note_cuda_error(captures, session);
}

}  // namespace rangescope::profile
