#include "profile/foreign_run.hpp"

#include <algorithm>
#include <string>

#include "read/registry.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

bool is_table(const fs::path& file) {
  return file.extension() == ".csv";
}

std::vector<fs::path> readable_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const bool is_file = entry->is_regular_file(ignored);
    if (is_file && read::find_reader(entry->path()))
      files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

void leave_best(std::vector<fs::path>& files) {
  const std::vector<fs::path> all = files;
  const bool has_recording = !std::ranges::all_of(all, is_table);
  std::erase_if(files, [&](const fs::path& file) {
    if (is_table(file))
      return has_recording;
    if (file.extension() != ".nsys-rep")
      return false;
    return std::ranges::find(all, fs::path(file).replace_extension(".sqlite")) != all.end();
  });
}

}  // namespace

std::vector<fs::path> captures_of_foreign_run(const fs::path& folder) {
  std::vector<fs::path> captures;
  for (const char* tool : {"nsys", "ncu", "torch_profiler"}) {
    std::vector<fs::path> files = readable_files(folder / tool);
    leave_best(files);
    captures.insert(captures.end(), files.begin(), files.end());
  }
  return captures;
}

}  // namespace rangescope::profile
