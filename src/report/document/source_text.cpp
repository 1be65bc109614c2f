#include "report/document/source_text.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::report {
namespace {

constexpr std::size_t kMaxFileBytes = 4u << 20;
constexpr std::size_t kMaxLineWidth = 160;
constexpr std::array<std::string_view, 12> kSourceExtensions = {
    ".cu", ".cuh", ".cc", ".cpp", ".cxx", ".c", ".hpp", ".hxx", ".hh", ".h", ".inl", ".py"};

}  // namespace

std::string source_text(const model::StallLine& line, std::int64_t recorded_unix_ns) {
  const std::filesystem::path path(line.file);
  if (line.line == 0 || !path.is_absolute())
    return {};
  const bool is_source =
      std::ranges::find(kSourceExtensions, path.extension().string()) != kSourceExtensions.end();
  if (!is_source)
    return {};
  struct ::stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return {};
  const std::int64_t changed_ns =
      std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (recorded_unix_ns > 0 && changed_ns > recorded_unix_ns)
    return {};
  const auto text = base::read_regular(path, kMaxFileBytes);
  if (!text)
    return {};
  std::uint32_t number = 0;
  for (const std::string_view source_line : base::split(*text, '\n')) {
    if (++number == line.line)
      return base::elide(base::printable(base::trim(source_line)), kMaxLineWidth);
  }
  return {};
}

}  // namespace rangescope::report
