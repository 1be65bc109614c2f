#include "collect/native/native.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/fs.hpp"
#include "wire/names.hpp"

namespace rangescope::collect::native {
namespace {

// One injection variable, and the one through which our library learns whom to hand calls on to.
struct Hook {
  const char* variable;
  const char* chain;
};
constexpr std::array kHooks = {
    Hook{wire::kNvtxInjection, wire::kChainNvtx},
    Hook{wire::kCudaInjection, wire::kChainCuda},
};

std::optional<std::string> getenv_of(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

using Environment = std::function<std::optional<std::string>(const std::string&)>;

// The library that the program would load through `hook` already, unless it is ours (rangescope
// within rangescope).
std::optional<std::string> other_library(const Hook& hook, const Request& request,
                                         const Environment& environment) {
  const auto asked = request.env.find(hook.variable);
  const auto value =
      asked != request.env.end() ? std::optional(asked->second) : environment(hook.variable);
  if (!value || value->empty() || std::filesystem::path(*value).filename() == kLibraryName)
    return std::nullopt;
  return value;
}

base::Result<void> hook_up(const Hook& hook, const Options& options, const Request& request,
                           const Environment& environment, Plan& plan) {
  plan.set_env[hook.variable] = options.library.string();
  const auto other = other_library(hook, request, environment);
  if (!other) {
    if (environment(hook.chain)) plan.unset_env.emplace_back(hook.chain);
    return {};
  }
  if (!options.chain_injection) {
    return base::fail(
        base::Code::kUsage, "another injection library is set in the environment: '" + *other + "'",
        hook.variable,
        std::string(
            "Add --chain-injection to load both (rangescope's passes every call on), or unset ") +
            hook.variable);
  }
  plan.set_env[hook.chain] = *other;
  plan.notes.push_back(std::string(hook.variable) +
                       ": rangescope's library is loaded first and passes every call on to '" +
                       *other + "'");
  return {};
}

}  // namespace

base::Result<Plan> plan(const Options& options, const Request& request) {
  if (request.command.empty()) return base::fail(base::Code::kUsage, "there is no program to run");
  const Environment environment = options.environment ? options.environment : getenv_of;
  Plan plan;
  plan.collector = "native";
  plan.argv = request.command;
  plan.cwd = request.cwd;
  plan.timeout = request.timeout;
  plan.set_env = request.env;
  const bool light = options.extra_env.contains(wire::kLight);
  for (const Hook& hook : kHooks) {
    if (light && hook.variable == wire::kCudaInjection) {  // another profiler's library stays
      const auto there = environment(hook.variable);
      if (there && std::filesystem::path(*there).filename() == kLibraryName)
        plan.unset_env.emplace_back(hook.variable);
      continue;
    }
    TRY(hook_up(hook, options, request, environment, plan));
  }
  const std::filesystem::path folder = request.run_dir / "native";
  plan.set_env[wire::kDir] = folder.string();
  plan.set_env[wire::kMaxCaptureSize] = std::to_string(options.max_capture_bytes);
  if (!options.mpi_library.empty()) {
    const auto asked = request.env.find("LD_PRELOAD");
    const auto there = asked != request.env.end()
                           ? asked->second
                           : environment("LD_PRELOAD").value_or(std::string());
    plan.set_env["LD_PRELOAD"] = options.mpi_library.string() + (there.empty() ? "" : ":" + there);
  }
  for (const auto& [name, value] : options.extra_env) plan.set_env[name] = value;
  plan.folders.push_back(folder);
  return plan;
}

std::filesystem::path mpi_library(const std::filesystem::path& library,
                                  const std::vector<std::string>& command, bool asked) {
  constexpr std::array kVariables = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  constexpr std::array kLaunchers = {"mpirun", "mpiexec", "orterun", "prterun",
                                     "srun"};  // mpirun.mpich too
  const std::string program =
      command.empty() ? "" : std::filesystem::path(command.front()).filename().string();
  const std::string launcher = program.substr(0, program.find('.'));
  if (!asked && std::find(kLaunchers.begin(), kLaunchers.end(), launcher) == kLaunchers.end() &&
      std::none_of(kVariables.begin(), kVariables.end(),
                   [](const char* name) { return getenv_of(name).has_value(); }))
    return {};
  std::error_code error;
  const std::filesystem::path beside = library.parent_path() / "librangescope_mpi.so";
  return std::filesystem::is_regular_file(beside, error) ? beside : std::filesystem::path();
}

base::Result<std::filesystem::path> find_library() {
  if (const auto named = getenv_of("RANGESCOPE_INJECT"); named && !named->empty()) {
    std::error_code error;
    if (std::filesystem::is_regular_file(*named, error))
      return std::filesystem::absolute(*named, error);
    return base::fail(
        base::Code::kToolMissing, "there is no such library", "RANGESCOPE_INJECT=" + *named,
        "Unset RANGESCOPE_INJECT, or name librangescope_inject.so with its whole path");
  }
  const std::filesystem::path here = base::self_path().parent_path();
  // Installed: bin/ beside lib/ (or lib/<triplet>/). Built: src/ with src/inject/ in it.
  std::vector<std::filesystem::path> folders = {here, here / "inject", here.parent_path() / "lib",
                                                here.parent_path() / "lib64"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(here.parent_path() / "lib", error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && entry.path().filename().string().ends_with("-linux-gnu"))
      folders.push_back(entry.path());
  }
  std::string tried;
  for (const auto& folder : folders) {
    const std::filesystem::path candidate = folder / kLibraryName;
    if (std::filesystem::is_regular_file(candidate, error))
      return std::filesystem::canonical(candidate, error);
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  return base::fail(base::Code::kToolMissing,
                    std::string(kLibraryName) + " was not found in " + tried, {},
                    "Install it next to rangescope, or name it in RANGESCOPE_INJECT");
}

}  // namespace rangescope::collect::native
