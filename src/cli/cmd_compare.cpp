#include <unistd.h>

#include "analyze/compare/compare.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "report/compare/formats.hpp"

namespace rangescope::cli {
namespace {

class Compare final : public Subcommand {
 public:
  Compare() : Subcommand("compare") {}
  void options(const Arguments& app) override {
    app.add_option("run", sides_).required().expected(1, 100);
    bind_comparison(app, from_, options_, renames_);
    app.under("Comparison").add_option("--alpha", options_.alpha).between(0.0001, 0.5);
    choice_.style.top = 30;
    choice_.style.top_kernels = 10;
    std::vector<std::string> formats;
    for (const auto& format : report::comparison_formats()) formats.emplace_back(format.name);
    const Arguments report = app.under("Report");
    report.add_option("-f,--format", choice_.format).type_name(base::join(formats, "|"));
    bind_json(app, choice_.format);
    bind_destination(app, choice_);
    report.add_count("--top", choice_.style.top);
    report.add_option("--cpu", choice_.style.cpu);
    report.add_count("--top-kernels", choice_.style.top_kernels);
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto format = TRY(report::find_comparison_format(choice_.format));
    TRY(finish_comparison(options_, renames_));
    if (sides_.size() < 2)
      return base::fail(base::Code::kUsage, "a comparison takes two sides", {},
                        "Name two runs: rangescope compare A B");
    std::vector<model::Side> sides;
    for (const std::string& written : sides_) {
      auto side = TRY(load_side(written, from_));
      sides.push_back(std::move(side));
    }
    const auto comparison = TRY(analyze::compare(sides, options_));
    TRY(report::check_sampled(comparison, choice_.format, choice_.style));
    const auto written =
        write_to(choice_, STDOUT_FILENO, [&](report::Sink& sink, const report::Style& style) -> base::Result<void> {
          format->write(comparison, style, sink);
          return {};
        });
    TRY(written);
    return 0;
  }

 private:
  std::vector<std::string> sides_, renames_;
  profile::SideOptions from_;
  analyze::CompareOptions options_;
  ReportChoice choice_;
};

}  // namespace

std::unique_ptr<Subcommand> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace rangescope::cli
