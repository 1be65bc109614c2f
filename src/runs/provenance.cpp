#include "runs/provenance.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/process.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runs/json_text.hpp"
#include "runs/manifest.hpp"

extern char** environ;

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

using Facts = std::map<std::string, std::string>;

constexpr std::string_view kEnvSchema = "rangescope.env/1";
constexpr std::string_view kEnvFile = "env.json";

// What changes how a GPU program behaves. Whole names, and prefixes.
constexpr std::array<std::string_view, 10> kNames = {"LANG",
                                                     "LC_ALL",
                                                     "OMP_NUM_THREADS",
                                                     "MKL_NUM_THREADS",
                                                     "PYTHONHASHSEED",
                                                     "WORLD_SIZE",
                                                     "RANK",
                                                     "LOCAL_RANK",
                                                     "SLURM_JOB_ID",
                                                     "SLURM_PROCID"};
constexpr std::array<std::string_view, 9> kPrefixes = {
    "CUDA_", "NVIDIA_", "NCCL_", "CUBLAS_", "CUDNN_", "PYTORCH_", "TORCH_", "NVTX_", "RANGESCOPE_"};
// What a program prints; nothing where it is not there, fails or takes longer than two seconds.
std::optional<std::string> ask(std::vector<std::string> argv, const fs::path& cwd = {}) {
  if (!base::find_on_path(argv.front()))
    return std::nullopt;
  base::Command command = base::question(std::move(argv), std::chrono::seconds(2));
  command.cwd = cwd;
  // Nothing that we look with may be profiled by somebody's injection, nor ask for a password.
  command.unset_env = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "LD_PRELOAD"};
  command.set_env.insert({{"GIT_TERMINAL_PROMPT", "0"}, {"GIT_OPTIONAL_LOCKS", "0"}});
  const auto ended = base::run(command);
  if (!ended || !ended->ok())
    return std::nullopt;
  return ended->out;
}

std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return text.substr(1, text.size() - 2);
  return text;
}

std::string first_value(const fs::path& file, std::string_view key, char separator) {
  const auto text = base::read_file(file);
  if (!text)
    return {};
  for (const std::string_view line : base::split(*text, '\n')) {
    const auto end_of_key = line.find(separator);
    if (end_of_key == std::string_view::npos || base::trim(line.substr(0, end_of_key)) != key)
      continue;
    const std::string_view value = base::trim(line.substr(end_of_key + 1));
    return std::string(without_quotes(value));
  }
  return {};
}

/// Keys of a repository's own configuration with which `git status` starts no program. Others can
/// make it: the programs of core.fsmonitor and filter.*.clean, a remote of a partial clone.
bool harmless(std::string_view key) {
  constexpr std::array<std::string_view, 9> kWhole = {"core.repositoryformatversion",
                                                      "core.filemode",
                                                      "core.bare",
                                                      "core.logallrefupdates",
                                                      "core.ignorecase",
                                                      "core.precomposeunicode",
                                                      "core.autocrlf",
                                                      "core.symlinks",
                                                      "extensions.worktreeconfig"};
  constexpr std::array<std::string_view, 8> kSections = {
      "branch.", "user.", "pull.", "push.", "gui.", "lfs.", "init.", "submodule."};
  if (std::ranges::find(kWhole, key) != kWhole.end())
    return true;
  if (key.starts_with("remote."))
    return key.ends_with(".url") || key.ends_with(".fetch") || key.ends_with(".pushurl");
  return std::ranges::any_of(kSections,
                             [&](std::string_view section) { return key.starts_with(section); });
}

// A repository's .git may have been written by another user, who packed the folder. Reading its
// configuration starts nothing.
bool status_is_safe(const fs::path& cwd) {
  const auto keys = ask({"git", "config", "--list", "--show-scope", "--name-only"}, cwd);
  if (!keys)
    return false;
  for (const std::string_view line : base::split(*keys, '\n')) {
    const auto tab = line.find('\t');
    if (tab == std::string_view::npos)
      continue;
    const std::string_view scope = line.substr(0, tab);
    const bool is_of_user = scope == "system" || scope == "global" || scope == "command";
    if (!is_of_user && !harmless(line.substr(tab + 1)))
      return false;
  }
  return true;
}

void look_at_git(const fs::path& cwd, Facts& facts) {
  const auto head = ask({"git", "rev-parse", "HEAD"}, cwd);
  if (!head)
    return;
  facts["git.commit"] = std::string(base::trim(*head));
  // Of a repository too large for the time limit, or with a configuration that starts programs, it
  // is not known.
  if (!status_is_safe(cwd))
    return;
  if (const auto status = ask({"git",
                               "-c",
                               "core.fsmonitor=false",
                               "status",
                               "--porcelain",
                               "--untracked-files=no",
                               "--ignore-submodules=all"},
                              cwd))
    facts["git.dirty"] = status->empty() ? "false" : "true";
}

// "580.95.05" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build
// ...".
std::string driver_version(std::string_view text) {
  const std::string_view first_line = base::split(text, '\n').front();
  for (const std::string_view word : base::split(first_line, ' ')) {
    const bool has_dot = word.find('.') != std::string_view::npos;
    const bool is_numeric = word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (has_dot && is_numeric)
      return std::string(word);
  }
  return {};
}

/// Models of the GPUs, by the driver's files; empty where these are hidden.
std::vector<std::string> gpus_of_driver() {
  std::error_code error;
  std::vector<fs::path> cards;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error))
    cards.push_back(entry.path() / "information");
  std::ranges::sort(cards);
  std::vector<std::string> models;
  for (const fs::path& card : cards) {
    std::string model = first_value(card, "Model", ':');
    if (!model.empty())
      models.push_back(std::move(model));
  }
  return models;
}

/// The same by nvidia-smi, which adds the driver's version to the facts.
std::vector<std::string> gpus_of_nvidia_smi(Facts& facts) {
  std::vector<std::string> models;
  const auto list = ask({"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"});
  if (!list)
    return models;
  for (const std::string_view line : base::split(*list, '\n')) {
    if (base::trim(line).empty())
      continue;
    const auto fields = base::split(line, ',');
    models.emplace_back(base::trim(fields.front()));
    if (fields.size() > 1)
      facts["driver"] = std::string(base::trim(fields[1]));
  }
  return models;
}

// The driver's own files cost nothing; nvidia-smi takes a tenth of a second or more and is asked
// where they are hidden.
void look_at_gpus(Facts& facts) {
  if (const auto text = base::read_file("/proc/driver/nvidia/version")) {
    if (auto version = driver_version(*text); !version.empty())
      facts["driver"] = std::move(version);
  }
  std::vector<std::string> models = gpus_of_driver();
  if (models.empty())
    models = gpus_of_nvidia_smi(facts);
  for (std::size_t i = 0; i < models.size(); ++i)
    facts["gpu." + std::to_string(i)] = models[i];
}

struct Package {
  std::string name, version;
};

/// torch and 2.11.0+cu130 of "torch-2.11.0+cu130.dist-info".
std::optional<Package> package_of(const std::string& folder_name) {
  auto version_end = folder_name.find(".egg-info");
  if (constexpr std::string_view kInfo = ".dist-info"; folder_name.ends_with(kInfo))
    version_end = folder_name.size() - kInfo.size();
  const auto dash = folder_name.find('-');
  if (dash == std::string::npos || version_end == std::string::npos || version_end < dash)
    return std::nullopt;
  const auto version_begin = dash + 1;
  return Package{folder_name.substr(0, dash),
                 folder_name.substr(version_begin, version_end - version_begin)};
}

/// Of every folder of packages below `prefix`.
void look_at_packages(const fs::path& prefix, Facts& facts) {
  constexpr std::array<std::string_view, 7> kPackages = {
      "torch", "transformers", "triton", "numpy", "jax", "vllm", "tensorflow"};
  std::error_code error;
  for (const auto& version : fs::directory_iterator(prefix / "lib", error)) {
    if (!version.path().filename().string().starts_with("python3"))
      continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const auto& entry : fs::directory_iterator(version.path() / packages, error)) {
        const auto package = package_of(entry.path().filename().string());
        if (!package)
          continue;
        if (std::ranges::find(kPackages, package->name) == kPackages.end())
          continue;
        // The first one counts, as for Python: a virtual environment goes before the system.
        facts.emplace("python." + package->name, package->version);
      }
    }
  }
}

bool runs_python(const std::string& program) {
  constexpr std::array<std::string_view, 4> kLaunchers = {
      "torchrun", "accelerate", "deepspeed", "vllm"};
  if (program.starts_with("python"))
    return true;
  return std::ranges::find(kLaunchers, program) != kLaunchers.end();
}

void look_at_python(const std::vector<std::string>& program, Facts& facts) {
  if (program.empty())
    return;
  fs::path path = program.front();
  if (path.string().find('/') == std::string::npos)
    path = base::find_on_path(program.front()).value_or(path);
  if (!runs_python(path.filename().string()))
    return;
  std::error_code error;
  look_at_packages(path.parent_path().parent_path(), facts);
  const auto real = fs::weakly_canonical(path, error).parent_path().parent_path();
  look_at_packages(real, facts);
  if (real == "/usr")
    look_at_packages("/usr/local", facts);
}

constexpr std::uintmax_t kHashed = 64u << 20;
constexpr std::size_t kMostFiles = 100'000;

std::string changed(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error)
    return "unknown";
  const auto since_epoch = std::chrono::file_clock::to_sys(time).time_since_epoch();
  const auto unix_time = std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch);
  return utc_text(unix_time.count());
}

base::Result<std::string> folder(const fs::path& path) {
  std::vector<std::string> lines;
  std::uintmax_t bytes = 0;
  std::error_code error;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(path, kOptions, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone) || gone)
      continue;
    const std::uintmax_t size = entry->file_size(gone);
    if (gone)
      continue;
    bytes += size;
    std::string& line = lines.emplace_back();
    line = entry->path().lexically_relative(path).string();
    line += " " + std::to_string(size);
    line += " " + changed(entry->path());
    if (lines.size() == kMostFiles)
      break;
  }
  if (error)
    return base::fail(
        base::Code::kNoInput, "the folder cannot be read: " + error.message(), path.string());
  std::ranges::sort(lines);
  std::string count = base::counted(lines.size(), "file");
  if (lines.size() == kMostFiles)
    count = "at least " + count;
  const std::string hash = base::sha256(base::join(lines, "\n"));
  return count + ", " + std::to_string(bytes) + " bytes, sha256 of the list " + hash;
}

base::Result<std::string> file(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error)
    return "no regular file, changed " + changed(path);
  const std::string bytes = std::to_string(size) + " bytes";
  if (size > kHashed)
    return bytes + ", changed " + changed(path);
  auto hash = TRY(base::sha256_file(path));
  return bytes + ", sha256 " + hash;
}

/// Size and hash of a file or of all files in a folder; kNoInput where it cannot be read.
base::Result<std::string> input_fact(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error) || ::access(path.c_str(), R_OK) != 0) {
    std::string problem = "there is no such input";
    if (error || fs::exists(path, error))
      problem = "the input cannot be read";
    return base::fail(base::Code::kNoInput,
                      std::move(problem),
                      path.string(),
                      "Correct workload.inputs or workload.subset, or leave it out.");
  }
  if (fs::is_directory(path, error))
    return folder(path);
  return file(path);
}

void look_at_machine(Facts& facts) {
  utsname system{};
  if (::uname(&system) == 0) {
    facts["host"] = system.nodename;
    facts["kernel"] = std::string(system.sysname) + " " + system.release;
    facts["arch"] = system.machine;
  }
  const auto add_if_known = [&](const char* fact, const std::string& value) {
    if (!value.empty())
      facts[fact] = value;
  };
  add_if_known("os", first_value("/etc/os-release", "PRETTY_NAME", '='));
  add_if_known("cpu", first_value("/proc/cpuinfo", "model name", ':'));
  facts["cpus"] = std::to_string(std::thread::hardware_concurrency());
  add_if_known("memory", first_value("/proc/meminfo", "MemTotal", ':'));
}

/// Variables of this process, as "NAME=value".
std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    entries.emplace_back(*entry);
  return entries;
}

/// The allowed ones, redacted.
std::map<std::string, std::string> variables_of(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> variables;
  const base::Redactor redactor;
  for (const std::string_view entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos)
      continue;
    const std::string_view name = entry.substr(0, equals);
    if (is_allowed_variable(name))
      variables[std::string(name)] = redactor.variable(name, entry.substr(equals + 1));
  }
  return variables;
}

}  // namespace

bool is_allowed_variable(std::string_view name) {
  if (std::ranges::find(kNames, name) != kNames.end())
    return true;
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Provenance look(const fs::path& cwd,
                const std::vector<std::string>& program,
                const std::vector<std::string>* environment) {
  Provenance provenance;
  look_at_machine(provenance.facts);
  look_at_git(cwd, provenance.facts);
  look_at_gpus(provenance.facts);
  look_at_python(program, provenance.facts);
  if (environment != nullptr)
    provenance.variables = variables_of(*environment);
  else
    provenance.variables = variables_of(own_environment());
  return provenance;
}

base::Result<void> write_provenance(const fs::path& run, const Provenance& provenance) {
  OrderedJson facts = OrderedJson::object();
  OrderedJson variables = OrderedJson::object();
  for (const auto& [name, value] : provenance.facts)
    facts[name] = base::printable(value);
  for (const auto& [name, value] : provenance.variables)
    variables[base::printable(name)] = base::printable(value);
  return write_json(
      run / kEnvFile,
      {{"schema", kEnvSchema}, {"facts", std::move(facts)}, {"variables", std::move(variables)}});
}

base::Result<Provenance> read_provenance(const fs::path& run) {
  auto json = TRY(read_json(run / kEnvFile, kEnvSchema));
  try {
    Provenance provenance;
    provenance.facts = json.value("facts", provenance.facts);
    provenance.variables = json.value("variables", provenance.variables);
    return provenance;
  } catch (const nlohmann::json::exception& error) {
    return base::fail(base::Code::kBadData,
                      std::string("is not a provenance: ") + error.what(),
                      (run / kEnvFile).string());
  }
}

base::Result<Facts> look_at_inputs(std::span<const std::string> paths, const fs::path& cwd) {
  Facts facts;
  for (const std::string& written : paths) {
    auto fact = TRY(input_fact(cwd / written));
    facts["input." + written] = std::move(fact);
  }
  return facts;
}

}  // namespace rangescope::runs
