#include "collect/nsight/tools.hpp"

#include <sys/stat.h>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace rangescope::collect {
namespace {

namespace fs = std::filesystem;

base::Result<base::Ended> tool_run(const fs::path& path,
                                   std::vector<std::string> arguments,
                                   std::chrono::seconds limit = std::chrono::seconds(60)) {
  arguments.insert(arguments.begin(), path.string());
  return base::run(base::question(std::move(arguments), limit));
}

/// The variable that names the tool's executable.
std::string path_variable(std::string_view tool) {
  return tool == "nsys" ? "RANGESCOPE_NSYS" : "RANGESCOPE_NCU";
}

fs::path cache_file(std::string_view tool, const fs::path& path, const ToolSearch& search) {
  fs::path home = search.variable("XDG_CACHE_HOME");
  if (home.empty()) {
    const std::string user = search.variable("HOME");
    if (user.empty())
      return {};
    home = fs::path(user) / ".cache";
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return {};
  std::error_code ignored;
  const std::string identity = fs::weakly_canonical(path, ignored).string() + ":" +
                               std::to_string(info.st_size) + ":" + std::to_string(info.st_mtime) +
                               ":1";
  return home / "rangescope" / "tools" /
         (std::string(tool) + "-" + base::sha256(identity).substr(0, 16) + ".json");
}

void keep(const Abilities& abilities, const ToolSearch& search) {
  const fs::path file = cache_file(abilities.tool, abilities.path, search);
  if (file.empty())
    return;
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  // A cache that cannot be written only costs the next start half a second.
  if (auto written = base::write_file(file, to_json(abilities)); !written)
    return;
}

}  // namespace

base::Result<Abilities> ask_tool(std::string_view tool, const fs::path& path) {
  auto version = TRY(tool_run(path, {"--version"}));
  Abilities abilities;
  abilities.tool = tool;
  abilities.path = path;
  for (const std::string_view line : base::split(version.out, '\n'))
    if (parse_version(line).year)
      abilities.version_text = base::trim(line);
  abilities.version = parse_version(abilities.version_text);
  if (abilities.version.year == 0) {
    const std::string output(base::trim(version.err.empty() ? version.out : version.err));
    std::string problem =
        std::string(tool) + " does not print its version (" + base::describe(version) + ")";
    if (!output.empty())
      problem += ": " + base::printable(output.substr(0, 300));
    const bool lacks_library = output.find("shared libraries") != std::string::npos;
    std::string hint = "Name another one with " + path_variable(tool) + ".";
    if (lacks_library)
      hint = "Install the library that it names.";
    return base::fail(base::Code::kToolMissing, problem, path.string(), std::move(hint));
  }
  if (tool == "nsys") {
    if (auto help = tool_run(path, {"profile", "--help"}))
      abilities.options = parse_nsys_help(help->out + help->err);
  } else {
    if (auto help = tool_run(path, {"--help"}))
      abilities.options = parse_ncu_help(help->out + help->err);
    if (auto sets = tool_run(path, {"--list-sets"}))
      parse_ncu_sets(sets->out, abilities);
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
  const std::string variable = path_variable(tool);
  const std::string named = search.variable(variable);
  for (const auto& [path, who] :
       {std::pair{search.configured, "pipeline." + std::string(tool) + ".path"},
        {named, "environment " + variable}})
    if (!path.empty() && !base::runnable(path))
      return base::fail(base::Code::kConfig,
                        path + " is not an executable file",
                        who,
                        "Name the " + std::string(tool) + " executable itself.");
  const auto found = find_tools(tool, search);
  if (found.empty()) {
    const std::string product = tool == "nsys" ? "Nsight Systems" : "Nsight Compute";
    return base::fail(
        base::Code::kToolMissing,
        std::string(tool) +
            " was not found on PATH, in /opt/nvidia, in a CUDA toolkit or in /usr/lib",
        {},
        "Install " + product + ", or set " + variable + " to its executable.");
  }
  const fs::path cached = cache_file(tool, found.front(), search);
  if (!cached.empty())
    if (auto text = base::read_file(cached))
      if (auto abilities = from_json(*text); abilities && abilities->path == found.front())
        return abilities;
  auto abilities = ask_tool(tool, found.front());
  if (abilities)
    keep(*abilities, search);
  return abilities;
}

namespace {

/// "ga100,gh100": the chips that `ncu --list-chips` lists, a line each or all in one line.
std::string chip_list(std::string_view text) {
  std::vector<std::string> chips;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string_view trimmed = base::trim(line);
    const bool is_chip = !trimmed.empty() && !trimmed.starts_with("==") &&
                         trimmed.find(' ') == std::string_view::npos;
    if (is_chip)
      chips.emplace_back(trimmed);
    else if (trimmed.find(',') != std::string_view::npos)
      chips = {base::replace_all(std::string(trimmed), " ", "")};
  }
  return base::join(chips, ",");
}

}  // namespace

void probe_metrics(Abilities& ncu, const ToolSearch& search) {
  constexpr std::chrono::seconds kLimit(120);
  if (!ncu.metrics.empty())
    return;
  const auto of_this_machine = tool_run(ncu.path, {"--query-metrics"}, kLimit);
  if (of_this_machine)
    ncu.metrics = parse_ncu_metrics(of_this_machine->out);
  if (ncu.metrics.empty()) {  // without a driver: of every chip
    const auto listed = tool_run(ncu.path, {"--list-chips"});
    std::string chips;
    if (listed)
      chips = chip_list(listed->out);
    if (!chips.empty()) {
      const auto of_chips = tool_run(ncu.path, {"--query-metrics", "--chips", chips}, kLimit);
      if (of_chips)
        ncu.metrics = parse_ncu_metrics(of_chips->out);
    }
  }
  if (!ncu.metrics.empty())
    keep(ncu, search);
}

}  // namespace rangescope::collect
