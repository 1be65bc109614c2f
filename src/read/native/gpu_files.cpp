#include "read/native/gpu_files.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "read/native/gpu.hpp"

namespace rangescope::read::native {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> streams_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::path& place : {folder, folder / "native"}) {
    std::error_code error;
    for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".gpu") found.push_back(entry->path());
    }
    if (!found.empty()) break;
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The driver loads the library when CUDA starts, long after the image began; an exec in the same pid begins a new
// image.
std::uint32_t process_of(const GpuStreamHead& head, model::Session& session) {
  std::uint32_t best = model::kNone;
  for (std::uint32_t i = 0; i < session.processes.size(); ++i) {
    const model::Process& process = session.processes[i];
    if (process.pid != head.pid || process.start_ns > head.start_ns) continue;
    if (best == model::kNone || process.start_ns >= session.processes[best].start_ns) best = i;
  }
  if (best == model::kNone) {
    best = static_cast<std::uint32_t>(session.processes.size());
    session.processes.push_back({head.pid, 0, 0, head.start_ns, head.start_ns});
  }
  return best;
}

void lose(model::Session& session, const fs::path& path, const std::string& why) {
  session.losses.push_back({"unreadable_gpu_stream", 1, path.string() + ": " + why});
}

}  // namespace

void read_gpu_files(const fs::path& folder, const std::set<std::uint32_t>& left_out, model::Session& session) {
  const std::vector<fs::path> streams = streams_in(folder);
  std::uintmax_t bytes = 0;  // a kernel and its launch take 48 of them
  for (const fs::path& path : streams) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    bytes += error ? 0 : size;
  }
  const std::uintmax_t kernels = std::min<std::uintmax_t>(bytes / 48, std::uintmax_t{1} << 25);
  session.kernels.reserve(kernels);
  session.launches.reserve(kernels);
  for (const fs::path& path : streams) {
    const auto mapping = base::Mapping::open(path);
    if (!mapping) {
      lose(session, path, mapping.error().what);
      continue;
    }
    const auto head = gpu_stream_head(mapping->bytes());
    if (!head) {
      lose(session, path, "not a GPU stream of rangescope");
      continue;
    }
    if (left_out.count(head->pid) > 0) continue;
    const std::uint32_t process = process_of(*head, session);
    if (const auto read = read_gpu(mapping->bytes(), path.filename().string(), process, session); !read) {
      lose(session, path, read.error().what);
    }
  }
}

}  // namespace rangescope::read::native
