#include "read/ncu/report/reader.hpp"

#include "base/fs.hpp"
#include "read/ncu/report/file.hpp"
#include "read/ncu/report/session.hpp"
#include "read/ncu/report/unpack.hpp"

namespace rangescope::read::ncu_report {

bool NcuReportReader::sniff(std::span<const std::byte> head, const std::filesystem::path& path) const {
  const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
  if (!is_zstd(bytes)) return File::sniff(bytes);
  // nothing of a zstd block can be unpacked before all of it (up to 128 KiB) is there
  const auto block = base::read_head(path, 2 * kMostBlock);
  return File::sniff(block ? std::string_view(*block) : bytes);
}

base::Result<model::Session> NcuReportReader::read(const std::filesystem::path& path, const Options&) const {
  auto file = TRY(File::open(path));
  return to_session(file);
}

}  // namespace rangescope::read::ncu_report
