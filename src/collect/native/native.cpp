#include "collect/native/native.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "wire/names.hpp"

namespace rangescope::collect::native {
namespace {

/// An injection variable, and the one that names the library to which ours passes calls on.
struct Hook {
  const char* variable;
  const char* chain;
};
constexpr std::array kHooks = {
    Hook{wire::kNvtxInjection, wire::kChainNvtx},
    Hook{wire::kCudaInjection, wire::kChainCuda},
};

std::optional<std::string> getenv_of(const std::string& name) {
  if (const char* value = std::getenv(name.c_str()))
    return value;
  return std::nullopt;
}

using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// The value that the program would get.
std::optional<std::string> variable_of(const std::string& name,
                                       const Request& request,
                                       const Environment& environment) {
  const auto added = request.env.find(name);
  if (added != request.env.end())
    return added->second;
  return environment(name);
}

bool is_our_library(const std::filesystem::path& library) {
  return library.filename() == kLibraryName;
}

/// The library that the program would load through the hook without us, unless it is ours
/// (rangescope within rangescope).
std::optional<std::string> other_library(const Hook& hook,
                                         const Request& request,
                                         const Environment& environment) {
  const auto value = variable_of(hook.variable, request, environment);
  if (!value || value->empty() || is_our_library(*value))
    return std::nullopt;
  return value;
}

base::Result<void> set_hook(const Hook& hook,
                            const Options& options,
                            const Request& request,
                            const Environment& environment,
                            Plan& plan) {
  plan.set_env[hook.variable] = options.library.string();
  const auto other = other_library(hook, request, environment);
  if (!other) {
    if (environment(hook.chain))
      plan.unset_env.emplace_back(hook.chain);
    return {};
  }
  if (!options.chain_injection) {
    return base::fail(
        base::Code::kUsage,
        "another injection library is set in the environment: '" + *other + "'",
        hook.variable,
        "Add --chain-injection to load both (rangescope's passes every call on), or unset " +
            std::string(hook.variable));
  }
  plan.set_env[hook.chain] = *other;
  plan.notes.push_back(std::string(hook.variable) +
                       ": rangescope's library is loaded first and passes every call on to '" +
                       *other + "'");
  return {};
}

}  // namespace

base::Result<Plan> plan(const Options& options, const Request& request) {
  if (request.command.empty())
    return base::fail(base::Code::kUsage, "there is no program to run");
  const Environment environment = options.environment ? options.environment : getenv_of;
  Plan plan;
  plan.collector = "native";
  plan.argv = request.command;
  plan.cwd = request.cwd;
  plan.timeout = request.timeout;
  plan.set_env = request.env;
  const bool is_light = options.extra_env.contains(wire::kLight);
  for (const Hook& hook : kHooks) {
    if (is_light && hook.variable == wire::kCudaInjection) {  // another profiler's library stays
      const auto inherited = environment(hook.variable);
      if (inherited && is_our_library(*inherited))
        plan.unset_env.emplace_back(hook.variable);
      continue;
    }
    TRY(set_hook(hook, options, request, environment, plan));
  }
  const std::filesystem::path folder = request.run_dir / "native";
  plan.set_env[wire::kDir] = folder.string();
  plan.set_env[wire::kMaxCaptureSize] = std::to_string(options.max_capture_bytes);
  if (!options.mpi_library.empty()) {
    const std::string inherited =
        variable_of("LD_PRELOAD", request, environment).value_or(std::string());
    std::string& preloaded = plan.set_env["LD_PRELOAD"];
    preloaded = options.mpi_library.string();
    if (!inherited.empty())
      preloaded += ":" + inherited;
  }
  for (const auto& [name, value] : options.extra_env)
    plan.set_env[name] = value;
  plan.folders.push_back(folder);
  return plan;
}

namespace {

/// Does the environment or the command start processes of MPI?
bool starts_mpi(const std::vector<std::string>& command) {
  constexpr std::array kVariables = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  constexpr std::array<std::string_view, 5> kLaunchers = {
      "mpirun", "mpiexec", "orterun", "prterun", "srun"};
  const bool is_process =
      std::ranges::any_of(kVariables, [](const char* name) { return getenv_of(name).has_value(); });
  if (is_process || command.empty())
    return is_process;
  const std::string program = std::filesystem::path(command.front()).filename().string();
  const std::string launcher = program.substr(0, program.find('.'));  // of "mpirun.mpich" too
  return std::ranges::find(kLaunchers, launcher) != kLaunchers.end();
}

}  // namespace

std::filesystem::path mpi_library(const std::filesystem::path& library,
                                  const std::vector<std::string>& command,
                                  bool is_requested) {
  if (!is_requested && !starts_mpi(command))
    return {};
  std::error_code error;
  const std::filesystem::path candidate = library.parent_path() / "librangescope_mpi.so";
  if (!std::filesystem::is_regular_file(candidate, error))
    return {};
  return candidate;
}

base::Result<std::filesystem::path> find_library() {
  if (const auto named = getenv_of("RANGESCOPE_INJECT"); named && !named->empty()) {
    std::error_code error;
    if (std::filesystem::is_regular_file(*named, error))
      return std::filesystem::absolute(*named, error);
    return base::fail(
        base::Code::kToolMissing,
        "there is no such library",
        "RANGESCOPE_INJECT=" + *named,
        "Unset RANGESCOPE_INJECT, or name librangescope_inject.so with its whole path");
  }
  const std::filesystem::path program_folder = base::self_path().parent_path();
  // Installed: bin/ and lib/ (or lib/<triplet>/) in one folder. Built: src/ contains src/inject/.
  std::vector<std::filesystem::path> folders = {program_folder,
                                                program_folder / "inject",
                                                program_folder.parent_path() / "lib",
                                                program_folder.parent_path() / "lib64"};
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(program_folder.parent_path() / "lib", error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && entry.path().filename().string().ends_with("-linux-gnu"))
      folders.push_back(entry.path());
  }
  std::vector<std::string> tried;
  for (const auto& folder : folders) {
    const std::filesystem::path candidate = folder / kLibraryName;
    if (std::filesystem::is_regular_file(candidate, error))
      return std::filesystem::canonical(candidate, error);
    tried.push_back(folder.string());
  }
  return base::fail(base::Code::kToolMissing,
                    std::string(kLibraryName) + " was not found in " + base::join(tried, ", "),
                    {},
                    "Install it next to rangescope, or name it in RANGESCOPE_INJECT");
}

}  // namespace rangescope::collect::native
