#include "collect/nsight/tools.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

extern char** environ;

namespace rangescope::collect {
namespace {

namespace fs = std::filesystem;

std::string variable(const ToolSearch& search, const std::string& name) {
  const auto found = search.environment.find(name);
  return found == search.environment.end() ? std::string{} : found->second;
}

bool runnable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

/// Folders of `parent` whose names begin with `prefix`, the highest version in the name first.
std::vector<fs::path> versioned(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(prefix)) out.push_back(entry.path());
  const auto numbers = [](const fs::path& path) {
    std::vector<long> parts;
    const std::string name = path.filename().string();
    for (std::size_t at = 0; at < name.size();) {
      if (name[at] < '0' || name[at] > '9') {
        ++at;
        continue;
      }
      long number = 0;
      while (at < name.size() && name[at] >= '0' && name[at] <= '9' && number < 100000000)
        number = number * 10 + (name[at++] - '0');
      parts.push_back(number);
    }
    return parts;
  };
  std::stable_sort(out.begin(), out.end(), [&](const fs::path& a, const fs::path& b) {
    const auto na = numbers(a), nb = numbers(b);
    return na != nb ? na > nb : a < b;
  });
  return out;
}

base::Result<base::Ended> tool_run(const fs::path& path, std::vector<std::string> arguments,
                                   std::chrono::seconds limit = std::chrono::seconds(60)) {
  base::Command command;
  command.argv = {path.string()};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.set_env = {{"LC_ALL", "C"}};
  command.out = command.err = {.pass = false, .keep = true, .file = {}};
  command.own_group = true;
  command.null_stdin = true;
  command.timeout = limit;
  return base::run(command);
}

fs::path cache_file(std::string_view tool, const fs::path& path, const ToolSearch& search) {
  fs::path home = variable(search, "XDG_CACHE_HOME");
  if (home.empty()) {
    const std::string user = variable(search, "HOME");
    if (user.empty()) return {};
    home = fs::path(user) / ".cache";
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  const std::string identity = fs::weakly_canonical(path).string() + ":" + std::to_string(info.st_size) + ":" +
                               std::to_string(info.st_mtime) + ":1";
  return home / "rangescope" / "tools" / (std::string(tool) + "-" + base::sha256(identity).substr(0, 16) + ".json");
}

void keep(const Abilities& abilities, const ToolSearch& search) {
  const fs::path file = cache_file(abilities.tool, abilities.path, search);
  if (file.empty()) return;
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  // A cache that cannot be written only costs the next start half a second.
  if (auto written = base::write_file(file, to_json(abilities)); !written) return;
}

}  // namespace

ToolSearch tool_search() {
  ToolSearch search;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const auto equal = text.find('=');
    if (equal != std::string_view::npos) search.environment.emplace(text.substr(0, equal), text.substr(equal + 1));
  }
  return search;
}

std::vector<fs::path> find_tools(std::string_view tool, const ToolSearch& search) {
  std::vector<fs::path> out;
  const auto add = [&](const fs::path& path) {
    if (runnable(path) && std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
  };
  if (!search.configured.empty()) add(search.configured);
  const std::string named = variable(search, tool == "nsys" ? "RANGESCOPE_NSYS" : "RANGESCOPE_NCU");
  if (!named.empty()) add(named);
  const std::string path = variable(search, "PATH");
  for (const std::string_view folder : base::split(path, ':'))
    if (!folder.empty()) add(fs::path(folder) / tool);
  const fs::path& root = search.root;
  if (tool == "nsys") {
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-systems", "2")) {
      add(version / "bin/nsys");
      add(version / "target-linux-x64/nsys");
    }
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-systems-cli", "2")) add(version / "bin/nsys");
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-compute", "2"))
      add(version / "host/target-linux-x64/nsys");
  } else {
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-compute", "2")) add(version / "ncu");
  }
  std::vector<fs::path> toolkits;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string given = variable(search, name); !given.empty()) toolkits.emplace_back(given);
  for (const fs::path& kit : versioned(root / "usr/local", "cuda")) toolkits.push_back(kit);
  for (const fs::path& kit : toolkits) {
    add(kit / "bin" / tool);
    for (const fs::path& version : versioned(kit, tool == "nsys" ? "nsight-systems" : "nsight-compute")) {
      add(version / (tool == "nsys" ? "bin/nsys" : "ncu"));
      if (tool == "nsys") add(version / "target-linux-x64/nsys");
    }
  }
  if (tool == "nsys") {
    add(root / "usr/lib/nsight-systems/bin/nsys");
    add(root / "usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys");
  } else {
    add(root / "usr/lib/nsight-compute/ncu");
    add(root / "usr/lib/x86_64-linux-gnu/nsight-compute/target/linux-desktop-glibc_2_11_3-x64/ncu");
  }
  return out;
}

base::Result<Abilities> ask_tool(std::string_view tool, const fs::path& path) {
  auto version = tool_run(path, {"--version"});
  if (!version) return base::fail(std::move(version));
  Abilities abilities;
  abilities.tool = tool;
  abilities.path = path;
  for (const std::string_view line : base::split(version->out, '\n'))
    if (parse_version(line).year) abilities.version_text = base::trim(line);
  abilities.version = parse_version(abilities.version_text);
  if (abilities.version.year == 0) {
    const std::string output = std::string(base::trim(version->err.empty() ? version->out : version->err));
    return base::fail(base::Code::kToolMissing,
                      std::string(tool) + " does not say its version (" + base::describe(*version) + ")" +
                          (output.empty() ? "" : ": " + base::printable(output.substr(0, 300))),
                      path.string(),
                      output.find("shared libraries") != std::string::npos
                          ? "Install the library that it names."
                          : "Name another one with RANGESCOPE_" + std::string(tool == "nsys" ? "NSYS" : "NCU") + ".");
  }
  if (tool == "nsys") {
    if (auto help = tool_run(path, {"profile", "--help"})) abilities.options = parse_nsys_help(help->out + help->err);
  } else {
    if (auto help = tool_run(path, {"--help"})) abilities.options = parse_ncu_help(help->out + help->err);
    if (auto sets = tool_run(path, {"--list-sets"})) parse_ncu_sets(sets->out, abilities);
    if (auto sections = tool_run(path, {"--list-sections"})) abilities.sections = parse_ncu_sections(sections->out);
  }
  if (abilities.options.empty())
    return base::fail(base::Code::kToolMissing,
                      std::string(tool) + " " + to_string(abilities.version) + " printed no help that could be read",
                      path.string());
  return abilities;
}

base::Result<Abilities> probe_tool(std::string_view tool, const ToolSearch& search) {
  const std::string upper = tool == "nsys" ? "NSYS" : "NCU";
  const std::string named = variable(search, "RANGESCOPE_" + upper);
  for (const auto& [path, who] : {std::pair{search.configured, "pipeline." + std::string(tool) + ".path"},
                                  {named, "environment RANGESCOPE_" + upper}})
    if (!path.empty() && !runnable(path))
      return base::fail(base::Code::kConfig, path + " is no executable file", who,
                        "Name the " + std::string(tool) + " executable itself.");
  const auto found = find_tools(tool, search);
  if (found.empty())
    return base::fail(base::Code::kToolMissing,
                      std::string(tool) + " was not found on PATH, in /opt/nvidia, in a CUDA toolkit or in /usr/lib",
                      {},
                      std::string(tool == "nsys" ? "Install Nsight Systems" : "Install Nsight Compute") +
                          ", or set RANGESCOPE_" + upper + " to its executable.");
  const fs::path cached = cache_file(tool, found.front(), search);
  if (!cached.empty())
    if (auto text = base::read_file(cached))
      if (auto abilities = from_json(*text); abilities && abilities->path == found.front()) return abilities;
  auto abilities = ask_tool(tool, found.front());
  if (abilities) keep(*abilities, search);
  return abilities;
}

void probe_metrics(Abilities& ncu, const ToolSearch& search) {
  if (!ncu.metrics.empty()) return;
  auto here = tool_run(ncu.path, {"--query-metrics"}, std::chrono::seconds(120));
  if (here) ncu.metrics = parse_ncu_metrics(here->out);
  if (ncu.metrics.empty()) {  // no driver: ask for every chip
    auto chips = tool_run(ncu.path, {"--list-chips"});
    std::string names;
    if (chips)
      for (const std::string_view line : base::split(chips->out, '\n')) {
        const std::string_view text = base::trim(line);
        if (!text.empty() && !text.starts_with("==") && text.find(' ') == std::string_view::npos)
          names += (names.empty() ? "" : ",") + std::string(text);
        else if (text.find(',') != std::string_view::npos)
          names = base::replace_all(std::string(text), " ", "");
      }
    if (!names.empty())
      if (auto all = tool_run(ncu.path, {"--query-metrics", "--chips", names}, std::chrono::seconds(120)))
        ncu.metrics = parse_ncu_metrics(all->out);
  }
  if (!ncu.metrics.empty()) keep(ncu, search);
}

std::optional<fs::path> find_importer(const fs::path& nsys) {
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(nsys, ignored);
  // <root>/target-linux-x64/nsys or <root>/bin/nsys beside <root>/host-linux-x64; Debian keeps the two in two trees;
  // and inside Nsight Compute it is host/target-linux-x64/nsys beside host/linux-desktop-*.
  const fs::path up = real.parent_path().parent_path();
  std::vector<fs::path> places{nsys.parent_path(), up / "host-linux-x64", real.parent_path()};
  for (const fs::path& host : versioned(up, "linux-desktop")) places.push_back(host);
  for (const fs::path& host : versioned(up / "host", "linux-desktop")) places.push_back(host);
  places.emplace_back("/usr/lib/nsight-systems/host-linux-x64");
  if (const auto at = real.string().find("/usr/lib/"); at != std::string::npos)
    places.emplace_back(real.string().substr(0, at) + "/usr/lib/nsight-systems/host-linux-x64");
  for (const fs::path& place : places)
    if (runnable(place / "QdstrmImporter")) return place / "QdstrmImporter";
  return std::nullopt;
}

}  // namespace rangescope::collect
