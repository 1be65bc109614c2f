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

namespace fs = std::filesystem;

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

/// "" where it is not set.
std::string variable(const char* name) {
  if (const char* value = std::getenv(name))
    return value;
  return {};
}

base::Error no_runs_yet(const fs::path& root) {
  std::string hint = "Make one: rangescope profile -- <program>";
  if (root == kDefaultRoot) {
    const std::string elsewhere = state_root();
    if (!elsewhere.empty() && !list_runs(elsewhere).empty())
      hint = "Runs of folders that cannot be written are in another one: --runs " + elsewhere;
  }
  return {base::Code::kNoInput, "there are no runs yet", root.string(), std::move(hint)};
}

}  // namespace

base::Code code_of_unwritable(int error) {
  if (error == EACCES || error == EROFS)
    return base::Code::kPermission;
  return base::Code::kIo;
}

base::Result<fs::path> make_run_dir(const fs::path& root) {
  std::error_code error;
  fs::create_directories(root, error);
  if (std::error_code ignored; error && !fs::is_directory(root, ignored))
    return base::fail(code_of_unwritable(error.value()),
                      "cannot make the folder for runs: " + error.message(),
                      root.string(),
                      "Name a folder that can be written with --runs");
  const std::string name = base_name();
  // It stays as it is without a working directory.
  const fs::path absolute_root = fs::absolute(root, error);
  for (int attempt = 1; attempt <= 10000; ++attempt) {
    fs::path path = absolute_root / name;
    if (attempt > 1)
      path += "." + std::to_string(attempt);
    if (::mkdir(path.c_str(), 0700) == 0)
      return path;
    if (errno == EEXIST)
      continue;  // somebody with our pid (another machine or container) was faster
    return base::fail(code_of_unwritable(errno),
                      std::string("cannot make the run directory: ") + std::strerror(errno),
                      path.string(),
                      "Name a folder that can be written with --runs");
  }
  return base::fail(base::Code::kIo, "no free name for a run directory", (root / name).string());
}

fs::path next_run_dir(const fs::path& root) {
  std::error_code ignored;
  return fs::absolute(root, ignored) / base_name();
}

bool is_run_dir(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return false;
  return read_manifest(path).has_value();
}

std::vector<fs::path> folders_by_start(
    const fs::path& root,
    const std::function<std::optional<std::int64_t>(const fs::path&)>& start_of) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_directory(ignored))
      continue;
    if (entry->path().filename().string().starts_with('.'))
      continue;  // hidden
    if (const auto start = start_of(entry->path()))
      found.emplace_back(*start, entry->path());
  }
  std::ranges::sort(found);
  std::vector<fs::path> folders;
  for (auto& [start, path] : found)
    folders.push_back(std::move(path));
  return folders;
}

std::vector<fs::path> list_runs(const fs::path& root) {
  using Start = std::optional<std::int64_t>;
  return folders_by_start(root, [](const fs::path& folder) -> Start {
    const auto manifest = read_manifest(folder);
    if (!manifest)
      return std::nullopt;
    return manifest->start_unix_ns;
  });
}

std::string state_root() {
  if (const std::string state = variable("XDG_STATE_HOME"); state.starts_with('/'))
    return state + "/rangescope/runs";
  if (const std::string home = variable("HOME"); !home.empty())
    return home + "/.local/state/rangescope/runs";
  return {};
}

base::Result<fs::path> find_run(const fs::path& root, std::string_view said) {
  const fs::path path(said);
  std::error_code ignored;
  if (is_run_dir(path))
    return fs::absolute(path, ignored);
  const auto runs = list_runs(root);
  if (said == "latest") {
    if (!runs.empty())
      return runs.back();
    return tl::make_unexpected(no_runs_yet(root));
  }
  std::vector<fs::path> matching;
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
  if (runs.empty())
    hint = "There are no runs in " + root.string() + "; name its folder with --runs";
  else if (hint.empty())
    hint = "List them: rangescope runs list";
  return base::fail(base::Code::kNoInput,
                    "there is no run '" + std::string(said) + "'",
                    root.string(),
                    std::move(hint));
}

std::vector<fs::path> repeats_of(const fs::path& run) {
  return list_runs(run / "repeats");
}

fs::path median_repeat(std::vector<fs::path> repeats) {
  const auto duration = [](const fs::path& run) -> std::int64_t {
    const auto manifest = read_manifest(run);
    if (!manifest || manifest->end_unix_ns <= 0)
      return 0;
    return manifest->end_unix_ns - manifest->start_unix_ns;
  };
  std::vector<std::pair<std::int64_t, fs::path>> by_time;
  for (fs::path& run : repeats)
    by_time.emplace_back(duration(run), std::move(run));
  std::ranges::sort(by_time);
  return by_time[(by_time.size() - 1) / 2].second;
}

std::vector<fs::path> captures_of(const fs::path& run) {
  std::vector<fs::path> captures;
  std::error_code error;
  const auto add = [&](const fs::path& path) {
    if (fs::exists(path, error) && std::ranges::find(captures, path) == captures.end())
      captures.push_back(path);
  };
  if (const auto imports = read_imports(run); imports && !imports->empty()) {
    for (const Import& import : *imports)
      add(run / import.file);
    return captures;
  }
  // Without a native stage the pipeline may have made a probe run to see the ranges.
  if (fs::is_directory(run / "native", error))
    add(run / "native");
  else
    add(run / "look" / "native");
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
    std::ranges::sort(found);
    for (const fs::path& path : found)
      add(path);
  }
  return captures;
}

fs::path run_of(const fs::path& path) {
  std::error_code error;
  const auto absolute = fs::absolute(path, error).lexically_normal();
  for (auto folder = absolute.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (is_run_dir(folder))
      return folder;
  return {};
}

}  // namespace rangescope::runs
