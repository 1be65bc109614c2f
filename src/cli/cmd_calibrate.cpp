#include <fmt/format.h>
#include <ctime>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/subcommands.hpp"
#include "collect/native/calibrate.hpp"
#include "config/metric_groups.hpp"

namespace rangescope::cli {
namespace {

using collect::native::Calibration;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  ::gmtime_r(&now, &time);
  return fmt::format("{:04}-{:02}-{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday);
}

// "nvidia-h200.yaml" of "NVIDIA H200".
std::string file_name(const std::string& device) {
  std::string name;
  for (const char c : base::lower(device)) name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
  return name + ".yaml";
}

std::string quoted(const std::string& text) {
  return "\"" + base::replace_all(base::replace_all(text, "\\", "\\\\"), "\"", "\\\"") + "\"";
}

class Calibrate final : public Subcommand {
 public:
  [[nodiscard]] std::string_view name() const override { return "calibrate"; }
  [[nodiscard]] std::string_view summary() const override {
    return "Measure what this machine's GPU reaches, for roofline and utilization";
  }
  [[nodiscard]] std::string_view details() const override {
    return "Device memory bandwidth, FP32 and FP64 rates and, where cuBLAS is installed, the tensor cores. The "
           "results\n"
           "are kept below the user's configuration ($XDG_CONFIG_HOME/rangescope/device, else ~/.config/...) and then\n"
           "win over the data sheets of conf/device for GPUs of that name; what was not measured stays the data\n"
           "sheet's. Run it on an idle GPU.\n\n"
           "  rangescope calibrate\n"
           "  rangescope calibrate --device 1 --dry-run";
  }
  void options(const Arguments& app) override {
    app.add_option("--device", device_, "Which GPU, as CUDA counts them (0)").type_name("N").between(0, 1023);
    app.add_flag("--dry-run", dry_run_, "Measure and print, keep nothing");
  }

  [[nodiscard]] int run() override {
    auto shipped = config::known_peaks();
    if (!shipped) return say(shipped.error());
    auto measured = collect::native::calibrate(device_);
    if (!measured) return say(measured.error());
    std::erase_if(*shipped, [](const model::Peaks& peaks) { return peaks.measured; });
    const model::Peaks* sheet = model::find_peaks(*shipped, measured->device);
    for (const std::string& note : measured->notes) base::warn(note);
    if (const int failed = put(table(*measured, sheet)); failed != 0) return failed;
    if (dry_run_) return 0;
    const auto folder = config::user_devices();
    if (!folder) return say(folder.error());
    std::error_code error;
    std::filesystem::create_directories(*folder, error);
    const auto file = *folder / file_name(measured->device);
    if (auto written = base::write_file(file, yaml(*measured, sheet)); !written) return say(written.error());
    base::info("kept in " + file.string());
    return 0;
  }

 private:
  static std::string line(const std::string& what, double measured, const double* sheet, std::string_view unit) {
    std::string text = fmt::format("{:<14} {:>14}", what, base::format_si(measured, unit));
    if (sheet != nullptr && *sheet > 0)
      text += fmt::format(" {:>14}  {:>4.0f} %", base::format_si(*sheet, unit), measured / *sheet * 100);
    return text + "\n";
  }

  static std::string table(const Calibration& c, const model::Peaks* sheet) {
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

  static std::string yaml(const Calibration& c, const model::Peaks* sheet) {
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

  int device_ = 0;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_calibrate() {
  return std::make_unique<Calibrate>();
}

}  // namespace rangescope::cli
