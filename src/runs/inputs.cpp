#include "runs/inputs.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runs/manifest.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kHashed = 64u << 20;
constexpr std::size_t kMostFiles = 100'000;

std::string changed(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return "unknown";
  const auto system = std::chrono::file_clock::to_sys(time);
  return utc_text(std::chrono::duration_cast<std::chrono::nanoseconds>(system.time_since_epoch()).count());
}

base::Result<std::string> folder(const fs::path& path) {
  std::vector<std::string> lines;
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator each(path, fs::directory_options::skip_permission_denied, error), end;
       !error && each != end; each.increment(error)) {
    std::error_code gone;
    if (!each->is_regular_file(gone) || gone) continue;
    const std::uintmax_t size = each->file_size(gone);
    if (gone) continue;
    bytes += size;
    lines.push_back(each->path().lexically_relative(path).string() + " " + std::to_string(size) + " " +
                    changed(each->path()));
    if (lines.size() == kMostFiles) break;
  }
  if (error) return base::fail(base::Code::kNoInput, "the folder cannot be read: " + error.message(), path.string());
  std::sort(lines.begin(), lines.end());
  const std::string more = lines.size() == kMostFiles ? "at least " : "";
  return more + base::counted(lines.size(), "file") + ", " + std::to_string(bytes) + " bytes, sha256 of the list " +
         base::sha256(base::join(lines, "\n"));
}

base::Result<std::string> file(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  const std::string bytes = error ? "no regular file" : std::to_string(size) + " bytes";
  if (error || size > kHashed) return bytes + ", changed " + changed(path);
  auto hash = TRY(base::sha256_file(path));
  return bytes + ", sha256 " + hash;
}

}  // namespace

base::Result<std::map<std::string, std::string>> look_at_inputs(std::span<const std::string> paths,
                                                                const fs::path& cwd) {
  std::map<std::string, std::string> facts;
  for (const std::string& written : paths) {
    const fs::path path = cwd / written;
    std::error_code error;
    if (!fs::exists(path, error) || ::access(path.c_str(), R_OK) != 0)
      return base::fail(base::Code::kNoInput,
                        error || fs::exists(path, error) ? "the input cannot be read" : "there is no such input",
                        path.string(), "Correct workload.inputs or workload.subset, or leave it out.");
    auto seen = TRY(fs::is_directory(path, error) ? folder(path) : file(path));
    facts["input." + written] = std::move(seen);
  }
  return facts;
}

}  // namespace rangescope::runs
