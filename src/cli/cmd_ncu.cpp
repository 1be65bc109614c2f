// rangescope ncu: the pages of an Nsight Compute report, as ncu prints them, without ncu.
#include <unistd.h>

#include "base/log.hpp"
#include "cli/app.hpp"
#include "cli/subcommand.hpp"
#include "ncu_pages/pages.hpp"
#include "report/sink.hpp"

namespace rangescope::cli {
namespace {

namespace ncu = ncu_pages;

class Ncu final : public Subcommand {
 public:
  Ncu() : Subcommand("ncu") {}
  void options(const Arguments& app) override {
    app.add_option("file", file_);
    app.add_option("--import", imported_);
    app.add_choice("--page", page_.page,
                   {{"details", ncu::Page::kDetails},
                    {"raw", ncu::Page::kRaw},
                    {"source", ncu::Page::kSource},
                    {"session", ncu::Page::kSession}});
    app.add_flag("--csv", page_.csv);
    app.add_choice("--print-units", page_.base_units, {{"auto", false}, {"base", true}});
    app.add_flag("--print-fp", page_.fp);
    app.add_choice("--print-details", page_.part,
                   {{"header", ncu::Part::kHeader}, {"body", ncu::Part::kBody}, {"all", ncu::Part::kAll}});
    app.add_choice("--print-metric-name", page_.metric_name,
                   {{"label", ncu::MetricName::kLabel},
                    {"name", ncu::MetricName::kName},
                    {"label-name", ncu::MetricName::kLabelName}});
    app.add_choice(
        "--print-metric-instances", page_.instances,
        {{"none", ncu::Instances::kNone}, {"values", ncu::Instances::kValues}, {"details", ncu::Instances::kDetails}});
    app.add_choice("--print-summary", page_.summary,
                   {{"none", ncu::Summary::kNone},
                    {"per-kernel", ncu::Summary::kPerKernel},
                    {"per-gpu", ncu::Summary::kPerGpu},
                    {"per-nvtx", ncu::Summary::kPerNvtx}});
    app.add_choice("--print-source", page_.source,
                   {{"sass", ncu::Source::kSass}, {"ptx", ncu::Source::kPtx}, {"cuda", ncu::Source::kCuda}});
    app.add_option("--print-kernel-base", page_.print_kernel_base).one_of({"function", "demangled", "mangled"});
    app.add_option("--section", page_.sections).repeated();
    app.add_option("--metrics", page_.metrics).delimiter(',').repeated();
    app.add_option("--nvtx-include", page_.nvtx_include).repeated();
    app.add_option("--nvtx-exclude", page_.nvtx_exclude).repeated();
    app.add_option("-k,--kernel-name", page_.kernel_names).repeated();
    app.add_option("--kernel-name-base", page_.kernel_name_base).one_of({"function", "demangled", "mangled"});
    app.add_count("-s,--launch-skip", page_.launch_skip);
    app.add_count("-c,--launch-count", page_.launch_count);
    app.add_option("--number-format", page_.number_format).one_of({"C", "en", "de", "fr"});
    app.add_choice("--units-of", page_.spelling,
                   {{"2024.1", model::UnitSpelling::kNcu2024}, {"2025.3", model::UnitSpelling::kNcu2025}});
  }

  [[nodiscard]] base::Result<int> run() override {
    if (file_.empty() == imported_.empty())
      return base::fail(base::Code::kUsage, file_.empty() ? "file is required" : "two files were named", {},
                        "Write: rangescope ncu [options] file");
    auto file = TRY(ncu::File::open(file_.empty() ? imported_ : file_));
    report::DescriptorSink sink(STDOUT_FILENO, "standard output");
    std::vector<model::Loss> losses;
    const auto printed = ncu::print_pages(
        file, page_, [&](std::string_view text) { sink.write(text); }, losses);
    const auto written = sink.finish();
    for (const model::Loss& loss : losses) base::warn(loss.detail + " (" + std::to_string(loss.count) + ")");
    TRY(printed);
    TRY(written);
    return 0;
  }

 private:
  std::string file_, imported_;
  ncu::PageOptions page_;
};

}  // namespace

std::unique_ptr<Subcommand> make_ncu() {
  return std::make_unique<Ncu>();
}

}  // namespace rangescope::cli
