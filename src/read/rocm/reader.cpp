#include "read/rocm/reader.hpp"

#include "base/fs.hpp"

namespace rangescope::read::rocm {

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return is_stats(text) || is_trace(text) || is_database(path);
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  if (is_database(path))
    return read_database(path);
  auto text = TRY(base::read_file(path));
  return read_text(text, path.string());
}

base::Result<model::Session> read_text(std::string_view text, const std::string& name) {
  return is_stats(text) ? read_stats(text, name) : read_trace(text, name);
}

const Reader kReader{"rocm", sniff, read};

}  // namespace rangescope::read::rocm
