#include "cli/print/calibration.hpp"

#include <fmt/format.h>

#include <ctime>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::cli {
namespace {

using collect::native::Calibration;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  ::gmtime_r(&now, &time);
  return fmt::format("{:04}-{:02}-{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday);
}

std::string quoted(const std::string& text) {
  return "\"" + base::replace_all(base::replace_all(text, "\\", "\\\\"), "\"", "\\\"") + "\"";
}

std::string line(const std::string& what, double measured, const double* sheet, std::string_view unit) {
  std::string text = fmt::format("{:<14} {:>14}", what, base::format_si(measured, unit));
  if (sheet != nullptr && *sheet > 0)
    text += fmt::format(" {:>14}  {:>4.0f} %", base::format_si(*sheet, unit), measured / *sheet * 100);
  return text + "\n";
}

}  // namespace

std::string calibration_table(const Calibration& c, const model::Peaks* sheet) {
  std::string text = c.device + ", driver for CUDA " + c.driver + "\n" +
                     fmt::format("{:<14} {:>14} {:>14}\n", "", "measured", sheet != nullptr ? "data sheet" : "");
  text += line("memory", c.memory_bytes_per_s, sheet != nullptr ? &sheet->memory_bytes_per_s : nullptr, "B/s");
  for (const auto& [key, rate] : c.flop_per_s) {
    const auto found = sheet == nullptr ? c.flop_per_s.end() : sheet->flop_per_s.find(key);
    const bool known = sheet != nullptr && found != sheet->flop_per_s.end();
    text += line(key, rate, known ? &found->second : nullptr, "FLOP/s");
  }
  return text;
}

std::string calibration_yaml(const Calibration& c, const model::Peaks* sheet) {
  std::string others;
  std::string rates;
  for (const auto& [key, rate] : c.flop_per_s) rates += fmt::format("  {}: {:.4g}\n", key, rate);
  if (sheet != nullptr) {
    for (const auto& [key, rate] : sheet->flop_per_s) {
      if (c.flop_per_s.contains(key)) continue;
      rates += fmt::format("  {}: {:.6g}\n", key, rate);
      others += (others.empty() ? "; " : ", ") + key;
    }
    if (!others.empty()) others += " from: " + sheet->source;
  }
  return "name: " + quoted(c.device + ", calibrated") + "\nmatch: [" + quoted(c.device) +
         "]\nchip: " + (sheet != nullptr ? sheet->chip : std::string("unknown")) + "\nsource: " +
         quoted("measured by rangescope calibrate, " + today() + ", driver for CUDA " + c.driver + others) +
         fmt::format("\nmemory_bytes_per_s: {:.4g}\nflop_per_s:\n", c.memory_bytes_per_s) + rates;
}

std::string calibration_file(const std::string& device) {
  std::string name;
  for (const char c : base::lower(device)) name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
  return name + ".yaml";
}

}  // namespace rangescope::cli
