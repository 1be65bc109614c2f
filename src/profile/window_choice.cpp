#include "profile/window_choice.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "config/schema.hpp"
#include "wire/control.hpp"

namespace rangescope::profile {

base::Result<WindowChoice::Counted> parse_counted(const std::string& text) {
  const auto colon = text.rfind(':');
  std::string numbers;
  if (colon != std::string::npos)
    numbers = text.substr(colon + 1);
  const auto dash = numbers.find('-');
  const auto first = base::to_uint(numbers.substr(0, dash));
  auto last = first;
  if (dash != std::string::npos)
    last = base::to_uint(numbers.substr(dash + 1));
  constexpr std::uint64_t kMost = 1u << 31;
  const bool is_interval = first && last && *first >= 1 && *last >= *first && *last <= kMost;
  const bool has_name = colon > 0 && colon < sizeof wire::control::Page::name;
  if (!is_interval || !has_name)
    return base::fail(base::Code::kUsage,
                      "'" + base::printable(text) + "' does not name instances of a range",
                      "--window",
                      "Write a range, the first and the last one: --window step:100-110");
  WindowChoice::Counted counted;
  counted.range = text.substr(0, colon);
  counted.first = static_cast<std::uint32_t>(*first);
  counted.last = static_cast<std::uint32_t>(*last);
  return counted;
}

std::optional<double> limit_ns(const WindowChoice::When& when,
                               const model::Distribution& lengths_ns) {
  constexpr std::uint64_t kFew = 100;  // instances before their quantile says anything
  if (when.limit_ns > 0)
    return when.limit_ns;
  const std::uint64_t count = lengths_ns.moments.n;
  if (count < kFew)
    return std::nullopt;
  const double longer_instances = static_cast<double>(count) * (1 - when.quantile);
  const auto place = count - 1 - std::min(static_cast<std::uint64_t>(longer_instances), count - 1);
  return lengths_ns.value_at(place) * when.factor;
}

base::Result<WindowChoice::When> parse_when(const std::string& text) {
  const auto wrong = [&] {
    return base::fail(base::Code::kUsage,
                      "'" + base::printable(text) + "' is not a condition",
                      "--when",
                      "Write a range and what it is longer than: --when 'step > p99 * 1.5', --when "
                      "'step > 20ms'");
  };
  const auto above = text.rfind('>');
  if (above == std::string::npos)
    return wrong();
  WindowChoice::When when;
  when.range = base::trim(std::string_view(text).substr(0, above));
  const auto words = base::split(std::string_view(text).substr(above + 1), '*');
  const std::string limit(base::trim(words.front()));
  std::optional<double> factor = 1;
  if (words.size() == 2)
    factor = base::to_double(base::trim(words[1]));
  if (const auto duration = config::parse_duration(limit)) {
    when.limit_ns = static_cast<double>(*duration);
  } else if (limit.starts_with('p')) {
    if (const auto percent = base::to_double(limit.substr(1)))
      when.quantile = *percent / 100;
  }
  const bool is_factor = factor && std::isfinite(*factor) && *factor > 0;
  const bool is_quantile = when.quantile > 0 && when.quantile < 1;
  const bool is_time = when.limit_ns > 0;
  const bool is_scaled_time = is_time && words.size() == 2;
  const bool lacks_quantile = !is_time && !is_quantile;
  if (when.range.empty() || words.size() > 2 || !is_factor || is_scaled_time || lacks_quantile)
    return wrong();
  when.factor = *factor;
  return when;
}

}  // namespace rangescope::profile
