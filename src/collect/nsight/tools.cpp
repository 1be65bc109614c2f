#include "collect/nsight/tools.hpp"

#include <sys/stat.h>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace rangescope::collect {
namespace {

namespace fs = std::filesystem;

base::Result<base::Ended> tool_run(const fs::path& path, std::vector<std::string> arguments,
                                   std::chrono::seconds limit = std::chrono::seconds(60)) {
  arguments.insert(arguments.begin(), path.string());
  return base::run(base::question(std::move(arguments), limit));
}

fs::path cache_file(std::string_view tool, const fs::path& path, const ToolSearch& search) {
  fs::path home = search.variable("XDG_CACHE_HOME");
  if (home.empty()) {
    const std::string user = search.variable("HOME");
    if (user.empty()) return {};
    home = fs::path(user) / ".cache";
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  std::error_code ignored;
  const std::string identity = fs::weakly_canonical(path, ignored).string() + ":" +
                               std::to_string(info.st_size) + ":" + std::to_string(info.st_mtime) +
                               ":1";
  return home / "rangescope" / "tools" /
         (std::string(tool) + "-" + base::sha256(identity).substr(0, 16) + ".json");
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

base::Result<Abilities> ask_tool(std::string_view tool, const fs::path& path) {
  auto version = TRY(tool_run(path, {"--version"}));
  Abilities abilities;
  abilities.tool = tool;
  abilities.path = path;
  for (const std::string_view line : base::split(version.out, '\n'))
    if (parse_version(line).year) abilities.version_text = base::trim(line);
  abilities.version = parse_version(abilities.version_text);
  if (abilities.version.year == 0) {
    const std::string output =
        std::string(base::trim(version.err.empty() ? version.out : version.err));
    return base::fail(base::Code::kToolMissing,
                      std::string(tool) + " does not print its version (" +
                          base::describe(version) + ")" +
                          (output.empty() ? "" : ": " + base::printable(output.substr(0, 300))),
                      path.string(),
                      output.find("shared libraries") != std::string::npos
                          ? "Install the library that it names."
                          : "Name another one with RANGESCOPE_" +
                                std::string(tool == "nsys" ? "NSYS" : "NCU") + ".");
  }
  if (tool == "nsys") {
    if (auto help = tool_run(path, {"profile", "--help"}))
      abilities.options = parse_nsys_help(help->out + help->err);
  } else {
    if (auto help = tool_run(path, {"--help"}))
      abilities.options = parse_ncu_help(help->out + help->err);
    if (auto sets = tool_run(path, {"--list-sets"})) parse_ncu_sets(sets->out, abilities);
    if (auto sections = tool_run(path, {"--list-sections"}))
      abilities.sections = parse_ncu_sections(sections->out);
  }
  if (abilities.options.empty())
    return base::fail(base::Code::kToolMissing,
                      std::string(tool) + " " + to_string(abilities.version) +
                          " printed no help that could be read",
                      path.string());
  return abilities;
}

base::Result<Abilities> probe_tool(std::string_view tool, const ToolSearch& search) {
  const std::string upper = tool == "nsys" ? "NSYS" : "NCU";
  const std::string named = search.variable("RANGESCOPE_" + upper);
  for (const auto& [path, who] :
       {std::pair{search.configured, "pipeline." + std::string(tool) + ".path"},
        {named, "environment RANGESCOPE_" + upper}})
    if (!path.empty() && !base::runnable(path))
      return base::fail(base::Code::kConfig, path + " is not an executable file", who,
                        "Name the " + std::string(tool) + " executable itself.");
  const auto found = find_tools(tool, search);
  if (found.empty())
    return base::fail(
        base::Code::kToolMissing,
        std::string(tool) +
            " was not found on PATH, in /opt/nvidia, in a CUDA toolkit or in /usr/lib",
        {},
        std::string(tool == "nsys" ? "Install Nsight Systems" : "Install Nsight Compute") +
            ", or set RANGESCOPE_" + upper + " to its executable.");
  const fs::path cached = cache_file(tool, found.front(), search);
  if (!cached.empty())
    if (auto text = base::read_file(cached))
      if (auto abilities = from_json(*text); abilities && abilities->path == found.front())
        return abilities;
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
      if (auto all =
              tool_run(ncu.path, {"--query-metrics", "--chips", names}, std::chrono::seconds(120)))
        ncu.metrics = parse_ncu_metrics(all->out);
  }
  if (!ncu.metrics.empty()) keep(ncu, search);
}

}  // namespace rangescope::collect
