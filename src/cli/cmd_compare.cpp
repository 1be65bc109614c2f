#include <unistd.h>

#include "analyze/compare/compare.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/measure/measure.hpp"
#include "cli/subcommand.hpp"
#include "report/compare/formats.hpp"

namespace rangescope::cli {
namespace {

class Compare final : public Subcommand {
 public:
  Compare() : Subcommand("compare", true) {}
  [[nodiscard]] bool needs_separator() const override { return true; }
  void options(const Arguments& app) override {
    app.add_option("run", sides_).expected(1, 100);
    app.add_count("--measure", turns_);
    bind_comparison(app, from_, options_, renames_);
    app.under("Comparison").add_option("--alpha", options_.alpha).between(0.0001, 0.5);
    choice_.style.top = 30;
    choice_.style.top_kernels = 10;
    std::vector<FormatName> formats;
    for (const auto& format : report::comparison_formats())
      formats.push_back({format.name, format.extension});
    const Arguments report = app.under("Report");
    bind_format(report, formats, choice_);
    bind_destination(app, choice_);
    report.add_count("--top", choice_.style.top);
    report.add_option("--cpu", choice_.style.cpu);
    report.add_count("--top-kernels", choice_.style.top_kernels);
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto format = TRY(report::find_comparison_format(choice_.format));
    TRY(finish_comparison(options_, renames_));
    options_.in_turns = turns_ > 0;
    TRY(check_words());
    TRY(check_destination(choice_, STDOUT_FILENO));
    if (options_.in_turns)
      sides_ = TRY(measure_in_turns(program_, turns_, from_.root));
    std::vector<model::Side> sides;
    for (const std::string& written : sides_) {
      auto side = TRY(load_side(written, from_));
      sides.push_back(std::move(side));
    }
    const auto comparison = TRY(analyze::compare(sides, options_));
    TRY(report::check_sampled(comparison, choice_.format, choice_.style));
    const auto written =
        write_to(choice_,
                 STDOUT_FILENO,
                 [&](report::Sink& sink, const report::Style& style) -> base::Result<void> {
                   format->write(comparison, style, sink);
                   return {};
                 });
    TRY(written);
    return 0;
  }

 private:
  /// Either commands behind `--measure N --`, or two runs or more.
  [[nodiscard]] base::Result<void> check_words() const {
    using Text = std::string;
    const auto refuse = [](const Text& what, const Text& where, const Text& hint) {
      return base::fail(base::Code::kUsage, what, where, hint);
    };
    const Text measure = "rangescope compare --measure 10 -- ./old :: ./new";
    if (options_.in_turns) {
      if (sides_.empty())
        return {};
      const Text what = "with --measure, commands are compared instead of runs";
      return refuse(what, base::printable(sides_.front()), "Write: " + measure);
    }
    if (!program_.empty()) {
      const Text what = "no program is run without --measure";
      return refuse(what, "--", "Write: " + measure);
    }
    if (sides_.empty()) {
      const Text hint = "Write: rangescope compare [options] run..., or: " + measure;
      return refuse("missing: run", {}, hint);
    }
    if (sides_.size() == 1) {
      const Text hint = "Name two runs: rangescope compare A B";
      return refuse("a comparison takes two sides", {}, hint);
    }
    return {};
  }

  std::vector<std::string> sides_, renames_;
  std::size_t turns_ = 0;
  profile::SideOptions from_;
  analyze::CompareOptions options_;
  ReportChoice choice_;
};

}  // namespace

std::unique_ptr<Subcommand> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace rangescope::cli
