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

constexpr std::size_t kMostBytes = 4u << 20;
constexpr std::size_t kMostText = 160;
constexpr std::array<std::string_view, 12> kSources = {
    ".cu", ".cuh", ".cc", ".cpp", ".cxx", ".c", ".hpp", ".hxx", ".hh", ".h", ".inl", ".py"};

}  // namespace

std::string source_text(const model::StallLine& line, std::int64_t made_unix_ns) {
  const std::filesystem::path path(line.file);
  if (line.line == 0 || !path.is_absolute() ||
      std::ranges::find(kSources, path.extension().string()) == kSources.end())
    return {};
  struct ::stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  const std::int64_t changed_ns =
      std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (made_unix_ns > 0 && changed_ns > made_unix_ns) return {};
  const auto text = base::read_regular(path, kMostBytes);
  if (!text) return {};
  std::uint32_t number = 0;
  for (const std::string_view each : base::split(*text, '\n'))
    if (++number == line.line) return base::elide(base::printable(base::trim(each)), kMostText);
  return {};
}

}  // namespace rangescope::report
