#include "read/rocm/reader.hpp"

#include "base/fs.hpp"

namespace rangescope::read::rocm {

bool RocmReader::sniff(std::span<const std::byte> head, const std::filesystem::path& path) const {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return is_stats(text) || is_trace(text) || is_database(path);
}

base::Result<model::Session> RocmReader::read(const std::filesystem::path& path, const Options&) const {
  if (is_database(path)) return read_database(path);
  auto text = base::read_file(path);
  if (!text) return base::fail(std::move(text));
  return read_text(*text, path.string());
}

base::Result<model::Session> read_text(std::string_view text, const std::string& name) {
  return is_stats(text) ? read_stats(text, name) : read_trace(text, name);
}

}  // namespace rangescope::read::rocm
