#include "read/nsys/rep/tools.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace rangescope::read::nsys_rep {
namespace {

namespace fs = std::filesystem;

/// Folders below `folder` (not deeper), newest name first: versions sort by name.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory(error)) out.push_back(at->path());
  }
  std::sort(out.rbegin(), out.rend());
  return out;
}

bool runnable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> usual_places() {
  std::vector<fs::path> out;
  if (auto found = base::find_on_path("nsys")) out.push_back(*found);
  for (const char* root : {"/opt/nvidia/nsight-systems", "/opt/nvidia/nsight-systems-cli"}) {
    for (const fs::path& version : folders_in(root)) {
      out.push_back(version / "bin/nsys");
      for (const fs::path& target : folders_in(version)) {
        if (target.filename().string().starts_with("target-linux")) out.push_back(target / "nsys");
      }
    }
  }
  for (const fs::path& cuda : folders_in("/usr/local")) {
    if (cuda.filename().string().starts_with("cuda")) out.push_back(cuda / "bin/nsys");
  }
  out.emplace_back("/usr/bin/nsys");
  out.emplace_back("/usr/lib/nsight-systems/target-linux-x64/nsys");
  return out;
}

std::optional<Version> version_of(const fs::path& nsys) {
  base::Command command;
  command.argv = {nsys.string(), "--version"};
  command.out = {.pass = false, .keep = true, .file = {}};
  command.err = {.pass = false, .keep = true, .file = {}};
  command.set_env = {{"LC_ALL", "C"}};
  command.null_stdin = true;
  command.timeout = std::chrono::seconds(60);
  const auto ended = base::run(command);
  return ended ? find_version(ended->out + ended->err) : std::nullopt;
}

/// In the folder of `nsys`, or in the host folder of an installation that it lies in.
std::optional<fs::path> importer_near(const fs::path& nsys) {
  fs::path folder = nsys.parent_path();
  if (runnable(folder / "QdstrmImporter")) return folder / "QdstrmImporter";
  for (int up = 0; up < 4 && folder.has_relative_path() && folder != "/usr"; ++up) {
    for (const fs::path& host : folders_in(folder)) {
      const std::string name = host.filename().string();
      if (name.starts_with("host-linux") && runnable(host / "QdstrmImporter")) return host / "QdstrmImporter";
      if (name != "host") continue;  // inside Nsight Compute: host/linux-desktop-glibc_2_11_3-x64
      for (const fs::path& desktop : folders_in(host)) {
        if (runnable(desktop / "QdstrmImporter")) return desktop / "QdstrmImporter";
      }
    }
    folder = folder.parent_path();
  }
  return std::nullopt;
}

}  // namespace

std::string Version::text() const {
  return std::to_string(year) + '.' + std::to_string(release) + '.' + std::to_string(patch);
}

std::optional<Version> find_version(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && (text[at - 1] >= '0' && text[at - 1] <= '9')) continue;
    int numbers[3] = {};
    std::size_t p = at;
    int i = 0;
    for (; i < 3; ++i) {
      const std::size_t begin = p;
      while (p < text.size() && p - begin < 5 && text[p] >= '0' && text[p] <= '9')
        numbers[i] = numbers[i] * 10 + (text[p++] - '0');
      if (p == begin) break;
      if (i < 2 && (p >= text.size() || (text[p] != '.' && text[p] != '@'))) break;
      if (i < 2) ++p;
    }
    if (i == 3 && numbers[0] >= 2018 && numbers[0] < 2100) return Version{numbers[0], numbers[1], numbers[2]};
  }
  return std::nullopt;
}

base::Result<std::vector<Nsys>> find_nsys(std::string_view asked) {
  const char* from_environment = std::getenv("RANGESCOPE_NSYS");
  const bool by_name = !asked.empty();
  if (!by_name && from_environment != nullptr && *from_environment != '\0') asked = from_environment;
  std::vector<Nsys> out;
  if (!asked.empty()) {
    const auto path = base::find_on_path(asked);
    const auto version = path ? version_of(*path) : std::nullopt;
    if (!version) {
      return base::fail(base::Code::kToolMissing, path ? "it does not answer --version like nsys" : "no such program",
                        std::string(asked),
                        by_name ? "Give the path of the nsys executable."
                                : "Set RANGESCOPE_NSYS to the nsys executable, or unset it.");
    }
    out.push_back({*path, *version});
    return out;
  }
  std::vector<fs::path> seen;
  for (const fs::path& place : usual_places()) {
    if (!runnable(place)) continue;
    std::error_code error;
    const fs::path real = fs::canonical(place, error);
    if (error || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    if (const auto version = version_of(place)) out.push_back({place, *version});
  }
  return out;
}

std::optional<fs::path> find_importer(const fs::path& nsys) {
  // Every place that the links on the way to the executable pass by: Debian's /usr/bin/nsys leads over
  // /usr/lib/nsight-systems/bin/nsys, which has the importer beside it, to /usr/lib/x86_64-linux-gnu, which has not.
  std::error_code error;
  std::vector<fs::path> places{fs::absolute(nsys, error)};
  for (int links = 0; links < 10 && fs::is_symlink(places.back(), error); ++links) {
    const fs::path target = fs::read_symlink(places.back(), error);
    places.push_back((places.back().parent_path() / target).lexically_normal());
  }
  places.push_back(fs::canonical(nsys, error));
  for (const fs::path& place : places)
    if (auto found = importer_near(place)) return found;
  return std::nullopt;
}

std::vector<std::string> missing_libraries(const fs::path& program) {
  std::vector<std::string> out;
  base::Command command;
  command.argv = {"ldd", program.string()};
  command.out = {.pass = false, .keep = true, .file = {}};
  command.err = {.pass = false, .keep = true, .file = {}};
  command.set_env = {{"LC_ALL", "C"}};
  command.null_stdin = true;
  const auto ended = base::run(command);
  if (!ended) return out;
  for (const std::string_view line : base::split(ended->out, '\n')) {
    const auto arrow = line.find(" => not found");
    if (arrow == std::string_view::npos) continue;
    // ldd names a library once for each library that wants it
    if (std::string name(base::trim(line.substr(0, arrow))); std::find(out.begin(), out.end(), name) == out.end())
      out.push_back(std::move(name));
  }
  return out;
}

}  // namespace rangescope::read::nsys_rep
