#include "base/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace rangescope::base {
namespace {

// Four significant digits without exponents, for 0 <= value < 10000.
std::string digits(double value) {
  const double size = std::fabs(value);
  if (size >= 999.95)
    return fmt::format("{:.0f}", value);
  if (size >= 99.995)
    return fmt::format("{:.1f}", value);
  if (size >= 9.9995)
    return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

}  // namespace

std::string format_ns(double nanoseconds) {
  if (!std::isfinite(nanoseconds))
    return "-";
  const double size = std::fabs(nanoseconds);
  if (nanoseconds == std::floor(nanoseconds) && size < 1e3)
    return fmt::format("{:.0f} ns", nanoseconds);
  if (size < 1e3)
    return digits(nanoseconds) + " ns";
  if (size < 1e6)
    return digits(nanoseconds / 1e3) + " us";
  if (size < 1e9)
    return digits(nanoseconds / 1e6) + " ms";
  return digits(nanoseconds / 1e9) + " s";
}

std::string format_ns_interval(double nanoseconds, double error_ns) {
  if (!std::isfinite(nanoseconds) || !std::isfinite(error_ns))
    return format_ns(nanoseconds);
  using Unit = std::pair<double, const char*>;
  constexpr std::array<Unit, 4> kUnits = {{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  const double larger_ns = std::max(std::fabs(nanoseconds), std::fabs(error_ns));
  const auto is_reached = [larger_ns](const Unit& unit) { return larger_ns >= unit.first; };
  const auto* unit = std::ranges::find_if(kUnits, is_reached);
  if (unit == kUnits.end())
    return format_ns(nanoseconds);

  const auto& [unit_ns, name] = *unit;
  constexpr int kMostDecimals = 3;
  int decimals = 2;
  if (larger_ns / unit_ns >= 10)
    decimals = 1;
  if (larger_ns / unit_ns >= 100)
    decimals = 0;
  const double value = nanoseconds / unit_ns, error = error_ns / unit_ns;
  while (error > 0 && error < 0.5 * std::pow(10, -decimals) && decimals < kMostDecimals)
    ++decimals;
  return fmt::format("{:.{}f} ± {:.{}f} {}", value, decimals, error, decimals, name);
}

std::string format_bytes(double bytes) {
  if (!std::isfinite(bytes))
    return "-";
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < kUnits.size())
    bytes /= 1024, ++unit;
  if (unit == 0)
    return fmt::format("{:.0f} B", bytes);
  return fmt::format("{} {}", digits(bytes), kUnits[unit]);
}

std::string format_count(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t place = text.size(); place > first + 3;)
    text.insert(place -= 3, ",");
  return text;
}

std::string counted(std::uint64_t count, std::string_view singular, std::string_view plural) {
  std::string text = format_count(static_cast<std::int64_t>(count)) + " ";
  if (count == 1)
    return text.append(singular);
  if (!plural.empty())
    return text.append(plural);
  const auto ends = [singular](std::string_view end) { return singular.ends_with(end); };
  if (ends("y") && !ends("ey") && !ends("ay"))
    return text.append(singular.substr(0, singular.size() - 1)).append("ies");
  const bool ends_in_sibilant = ends("s") || ends("x") || ends("ch") || ends("sh");
  return text.append(singular).append(ends_in_sibilant ? "es" : "s");
}

std::string format_share(double share) {
  if (!std::isfinite(share))
    return "-";
  const double percent = share * 100, size = std::fabs(percent);
  if (size >= 0.05 || size == 0)
    return fmt::format("{:.1f} %", percent);
  if (size >= 0.001)
    return fmt::format("{:.1g} %", percent);
  return percent < 0 ? ">-0.001 %" : "<0.001 %";
}

std::string format_si(double value, std::string_view unit) {
  if (!std::isfinite(value))
    return "-";
  constexpr std::array<const char*, 7> kPrefixes = {"", "K", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (std::fabs(value) >= 1000 && prefix + 1 < kPrefixes.size())
    value /= 1000, ++prefix;
  const bool is_whole = prefix == 0 && value == std::floor(value);
  const std::string number = is_whole ? fmt::format("{:.0f}", value) : digits(value);
  if (unit.empty())
    return number + kPrefixes[prefix];
  return fmt::format("{} {}{}", number, kPrefixes[prefix], unit);
}

}  // namespace rangescope::base
