#include "base/fs.hpp"
#include "base/log.hpp"
#include "cli/app.hpp"
#include "cli/subcommands.hpp"
#include "collect/native/calibrate.hpp"
#include "config/metric_groups.hpp"
#include "pages/calibration.hpp"

namespace rangescope::cli {
namespace {

class Calibrate final : public Subcommand {
 public:
  Calibrate()
      : Subcommand("calibrate", "Measure what this machine's GPU reaches, for roofline and utilization",
                   R"(Device memory bandwidth, FP32 and FP64 rates and, where cuBLAS is installed, the tensor cores. The
results are kept below the user's configuration ($XDG_CONFIG_HOME/rangescope/device, else ~/.config/...) and
then win over the data sheets of conf/device for GPUs of that name; what was not measured stays the data
sheet's. Run it on an idle GPU.

  rangescope calibrate
  rangescope calibrate --device 1 --dry-run)") {}
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
    if (const int failed = put(pages::calibration_table(*measured, sheet)); failed != 0) return failed;
    if (dry_run_) return 0;
    const auto folder = config::user_devices();
    if (!folder) return say(folder.error());
    std::error_code error;
    std::filesystem::create_directories(*folder, error);
    const auto file = *folder / pages::calibration_file(measured->device);
    if (auto written = base::write_file(file, pages::calibration_yaml(*measured, sheet)); !written)
      return say(written.error());
    base::info("kept in " + file.string());
    return 0;
  }

 private:
  int device_ = 0;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_calibrate() {
  return std::make_unique<Calibrate>();
}

}  // namespace rangescope::cli
