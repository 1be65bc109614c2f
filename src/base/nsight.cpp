#include "base/nsight.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

namespace fs = std::filesystem;

/// How a tool is named where it is looked for.
struct ToolNames {
  const char* variable;
  const char* toolkit_folder;  ///< begins the name of its folder in a CUDA toolkit
  const char* program;         ///< in that folder
};
constexpr ToolNames kNsysNames = {"RANGESCOPE_NSYS", "nsight-systems", "bin/nsys"};
constexpr ToolNames kNcuNames = {"RANGESCOPE_NCU", "nsight-compute", "ncu"};

/// Folders of `parent` whose names begin with `prefix`, the highest version in the name first.
std::vector<fs::path> versioned(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(prefix))
      out.push_back(entry.path());
  std::ranges::sort(out, [](const fs::path& a, const fs::path& b) {
    return ::strverscmp(a.c_str(), b.c_str()) > 0;
  });
  return out;
}

}  // namespace

std::string to_string(const ToolVersion& version) {
  return std::to_string(version.year) + "." + std::to_string(version.release) + "." +
         std::to_string(version.patch);
}

ToolVersion parse_version(std::string_view text) {
  const auto is_point = [&](std::size_t place) {
    return place < text.size() && (text[place] == '.' || text[place] == '@');
  };
  for (std::size_t start = 0; start + 6 <= text.size(); ++start) {
    const bool has_year = text[start] == '2' && text[start + 1] == '0' && is_point(start + 4);
    const bool follows_digit = start > 0 && is_digit(text[start - 1]);
    if (!has_year || follows_digit)
      continue;
    ToolVersion version;
    int* const parts[] = {&version.year, &version.release, &version.patch};
    std::size_t digit = start;
    for (int* part : parts) {
      const std::size_t begin = digit;
      while (digit < text.size() && is_digit(text[digit]) && digit - begin < 6)
        *part = *part * 10 + (text[digit++] - '0');
      if (digit == begin || !is_point(digit))
        break;
      ++digit;
    }
    if (version.year >= 2018 && version.year < 2100)
      return version;
  }
  return {};
}

std::string ToolSearch::variable(const std::string& name) const {
  const auto found = environment.find(name);
  if (found == environment.end())
    return {};
  return found->second;
}

ToolSearch tool_search() {
  ToolSearch search;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const auto equal = text.find('=');
    if (equal != std::string_view::npos)
      search.environment.emplace(text.substr(0, equal), text.substr(equal + 1));
  }
  return search;
}

std::vector<fs::path> find_tools(std::string_view tool, const ToolSearch& search) {
  std::vector<fs::path> out;
  const auto add = [&](const fs::path& path) {
    if (runnable(path) && std::find(out.begin(), out.end(), path) == out.end())
      out.push_back(path);
  };
  if (!search.configured.empty())
    add(search.configured);
  const bool is_nsys = tool == "nsys";
  const ToolNames& names = is_nsys ? kNsysNames : kNcuNames;
  const std::string named = search.variable(names.variable);
  if (!named.empty())
    add(named);
  const std::string path = search.variable("PATH");
  for (const std::string_view folder : split(path, ':'))
    if (!folder.empty())
      add(fs::path(folder) / tool);
  const fs::path& root = search.root;
  if (is_nsys) {
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-systems", "2")) {
      add(version / "bin/nsys");
      add(version / "target-linux-x64/nsys");
    }
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-systems-cli", "2"))
      add(version / "bin/nsys");
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-compute", "2"))
      add(version / "host/target-linux-x64/nsys");
  } else {
    for (const fs::path& version : versioned(root / "opt/nvidia/nsight-compute", "2"))
      add(version / "ncu");
  }
  std::vector<fs::path> toolkits;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string folder = search.variable(name); !folder.empty())
      toolkits.emplace_back(folder);
  for (const fs::path& kit : versioned(root / "usr/local", "cuda"))
    toolkits.push_back(kit);
  for (const fs::path& kit : toolkits) {
    add(kit / "bin" / tool);
    for (const fs::path& version : versioned(kit, names.toolkit_folder)) {
      add(version / names.program);
      if (is_nsys)
        add(version / "target-linux-x64/nsys");
    }
  }
  if (is_nsys) {
    add(root / "usr/lib/nsight-systems/bin/nsys");
    add(root / "usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys");
  } else {
    add(root / "usr/lib/nsight-compute/ncu");
    add(root / "usr/lib/x86_64-linux-gnu/nsight-compute/target/linux-desktop-glibc_2_11_3-x64/ncu");
  }
  return out;
}

std::optional<fs::path> find_importer(const fs::path& nsys) {
  // Every place that the links on the way to the executable pass by: Debian's /usr/bin/nsys leads
  // over /usr/lib/nsight-systems/bin/nsys, which has the importer, to
  // /usr/lib/x86_64-linux-gnu, which has not.
  std::error_code ignored;
  std::vector<fs::path> links{fs::absolute(nsys, ignored)};
  for (int i = 0; i < 10 && fs::is_symlink(links.back(), ignored); ++i)
    links.push_back(
        (links.back().parent_path() / fs::read_symlink(links.back(), ignored)).lexically_normal());
  links.push_back(fs::weakly_canonical(nsys, ignored));
  const auto in = [](const fs::path& folder) { return folder / "QdstrmImporter"; };
  for (const fs::path& link : links) {
    fs::path folder = link.parent_path();
    if (runnable(in(folder)))
      return in(folder);
    for (int up = 0; up < 4 && folder.has_relative_path() && folder != "/usr";
         ++up, folder = folder.parent_path()) {
      std::vector<fs::path> hosts = versioned(folder, "host-linux");
      // Inside Nsight Compute; unpacked packages of Debian, whose two parts lie in two trees.
      for (fs::path& desktop : versioned(folder / "host", "linux-desktop"))
        hosts.push_back(std::move(desktop));
      for (fs::path& desktop : versioned(folder, "linux-desktop"))
        hosts.push_back(std::move(desktop));
      hosts.push_back(folder / "nsight-systems" / "host-linux-x64");
      for (const fs::path& host : hosts)
        if (runnable(in(host)))
          return in(host);
    }
  }
  return std::nullopt;
}

}  // namespace rangescope::base
