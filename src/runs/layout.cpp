#include "runs/layout.hpp"

#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "runs/imports.hpp"
#include "runs/manifest.hpp"

namespace rangescope::runs {
namespace {

// The host tells runs of several machines apart.
std::string host_suffix() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0')
    return {};
  const std::string_view first = base::split(name, '.').front();
  return "-" + base::sanitize_component(first.substr(0, 32));
}

std::string base_name() {
  return fmt::format(
      "{:%Y%m%d-%H%M%S}-{}{}", fmt::localtime(std::time(nullptr)), ::getpid(), host_suffix());
}

}  // namespace

base::Result<std::filesystem::path> make_run_dir(const std::filesystem::path& root) {
  std::error_code error;
  std::filesystem::create_directories(root, error);
  if (std::error_code ignored; error && !std::filesystem::is_directory(root, ignored)) {
    const bool refused =
        error == std::errc::permission_denied || error == std::errc::read_only_file_system;
    return base::fail(refused ? base::Code::kPermission : base::Code::kIo,
                      "cannot make the folder for runs: " + error.message(),
                      root.string(),
                      "Name a folder that can be written with --runs");
  }
  const std::string name = base_name();
  const std::filesystem::path whole =
      std::filesystem::absolute(root, error);  // as it is without a working directory
  for (int attempt = 1; attempt <= 10000; ++attempt) {
    const std::filesystem::path path =
        whole / (attempt == 1 ? name : name + "." + std::to_string(attempt));
    if (::mkdir(path.c_str(), 0700) == 0)
      return path;
    if (errno == EEXIST)
      continue;  // somebody with our pid (another machine or container) was faster
    const base::Code code =
        errno == EACCES || errno == EROFS ? base::Code::kPermission : base::Code::kIo;
    return base::fail(code,
                      std::string("cannot make the run directory: ") + std::strerror(errno),
                      path.string(),
                      "Name a folder that can be written with --runs");
  }
  return base::fail(base::Code::kIo, "no free name for a run directory", (root / name).string());
}

std::filesystem::path next_run_dir(const std::filesystem::path& root) {
  std::error_code ignored;
  return std::filesystem::absolute(root, ignored) / base_name();
}

bool is_run_dir(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return false;
  return read_manifest(path).has_value();
}

std::vector<std::filesystem::path> folders_by_start(
    const std::filesystem::path& root,
    const std::function<std::optional<std::int64_t>(const std::filesystem::path&)>& start_of) {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_directory(ignored))
      continue;
    if (entry->path().filename().string().starts_with('.'))
      continue;  // hidden
    if (const auto start = start_of(entry->path()))
      found.emplace_back(*start, entry->path());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::filesystem::path> folders;
  for (auto& [start, path] : found)
    folders.push_back(std::move(path));
  return folders;
}

std::vector<std::filesystem::path> list_runs(const std::filesystem::path& root) {
  return folders_by_start(root, [](const std::filesystem::path& folder) {
    const auto manifest = read_manifest(folder);
    return manifest ? std::optional(manifest->start_unix_ns) : std::nullopt;
  });
}

std::string state_root() {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return std::string(found == nullptr ? "" : found);
  };
  if (const std::string state = value("XDG_STATE_HOME"); state.starts_with('/'))
    return state + "/rangescope/runs";
  return value("HOME").empty() ? "" : value("HOME") + "/.local/state/rangescope/runs";
}

base::Result<std::filesystem::path> find_run(const std::filesystem::path& root,
                                             std::string_view said) {
  const std::filesystem::path path(said);
  std::error_code ignored;
  if (is_run_dir(path))
    return std::filesystem::absolute(path, ignored);
  const auto runs = list_runs(root);
  if (said == "latest") {
    if (!runs.empty())
      return runs.back();
    const std::string elsewhere = root == kDefaultRoot ? state_root() : std::string();
    return base::fail(
        base::Code::kNoInput,
        "there are no runs yet",
        root.string(),
        elsewhere.empty() || list_runs(elsewhere).empty()
            ? "Make one: rangescope profile -- <program>"
            : "Runs of folders that cannot be written are in another one: --runs " + elsewhere);
  }
  std::vector<std::filesystem::path> matching;
  std::vector<std::string> names;
  for (const auto& run : runs) {
    const std::string& name = names.emplace_back(run.filename().string());
    if (name == said)
      return run;
    if (!said.empty() && name.starts_with(said))
      matching.push_back(run);
  }
  if (matching.size() == 1)
    return matching.front();
  if (matching.size() > 1) {
    return base::fail(
        base::Code::kUsage,
        "'" + std::string(said) + "' is the start of " + std::to_string(matching.size()) + " runs",
        root.string(),
        "Give more of the name: " + matching[0].filename().string() + " or " +
            matching[1].filename().string());
  }
  std::string hint = base::did_you_mean(said, names);
  if (hint.empty())
    hint = runs.empty() ? "There are no runs in " + root.string() + "; name its folder with --runs"
                        : "List them: rangescope runs list";
  return base::fail(base::Code::kNoInput,
                    "there is no run '" + std::string(said) + "'",
                    root.string(),
                    std::move(hint));
}

std::vector<std::filesystem::path> repeats_of(const std::filesystem::path& run) {
  return list_runs(run / "repeats");
}

std::filesystem::path median_repeat(std::vector<std::filesystem::path> repeats) {
  const auto duration = [](const std::filesystem::path& run) {
    const auto manifest = read_manifest(run);
    return manifest && manifest->end_unix_ns > 0 ? manifest->end_unix_ns - manifest->start_unix_ns
                                                 : std::int64_t{0};
  };
  std::vector<std::pair<std::int64_t, std::filesystem::path>> by_time;
  for (std::filesystem::path& run : repeats)
    by_time.emplace_back(duration(run), std::move(run));
  std::sort(by_time.begin(), by_time.end());
  return by_time[(by_time.size() - 1) / 2].second;
}

std::vector<std::filesystem::path> captures_of(const std::filesystem::path& run) {
  namespace fs = std::filesystem;
  std::vector<fs::path> captures;
  std::error_code error;
  const auto add = [&](const fs::path& path) {
    if (fs::exists(path, error) &&
        std::find(captures.begin(), captures.end(), path) == captures.end())
      captures.push_back(path);
  };
  if (const auto imports = read_imports(run); imports && !imports->empty()) {
    for (const Import& import : *imports)
      add(run / import.file);
    return captures;
  }
  // The pipeline may have looked at the program once to see its ranges, when no native stage was
  // asked for.
  add(fs::is_directory(run / "native", error) ? run / "native" : run / "look" / "native");
  for (const char* tool : {"nsys", "ncu"}) {
    std::vector<fs::path> found;
    for (fs::directory_iterator entry(run / tool, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string(),
                        extension = entry->path().extension().string();
      // The pipeline first tries ranges on one occurrence; what it saw is in the report that
      // follows.
      if (name.starts_with("trial-"))
        continue;
      if (extension == ".sqlite" || extension == ".ncu-rep" || extension == ".ncu-repz")
        found.push_back(entry->path());
    }
    error.clear();
    std::sort(found.begin(), found.end());
    for (const fs::path& path : found)
      add(path);
  }
  return captures;
}

std::filesystem::path run_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error).lexically_normal();
  for (auto folder = absolute.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (is_run_dir(folder))
      return folder;
  return {};
}

}  // namespace rangescope::runs
