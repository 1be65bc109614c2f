#include <unistd.h>

#include <algorithm>

#include "analyze/compare.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommands.hpp"
#include "model/measure.hpp"
#include "profile/sides.hpp"
#include "report/comparison/formats.hpp"
#include "report/comparison/view.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

class Compare final : public Subcommand {
 public:
  Compare()
      : Subcommand(
            "compare", "Say what changed between runs, and whether it stands out of the noise",
            "Each side is a run (a directory, a name, latest), a folder of repeated runs, a report.json, a baseline, "
            "a\n"
            "capture of any format, or a run that a team's PostgreSQL keeps (postgresql://host/database#RUN); the "
            "others are compared with the first. Sums are per occurrence. What differs "
            "around\n"
            "the runs is said first. Noise is taken from repeated runs where there are enough on each side, else from\n"
            "the occurrences inside the runs, which do not show what differs from run to run.\n\n"
            "  rangescope profile --repeat 5 --runs before -- ./app\n"
            "  rangescope profile --repeat 5 --runs after -- ./app --new\n"
            "  rangescope compare before after\n"
            "  rangescope compare before after --metric gpu.busy_ns --include decode -f html -o changes.html\n"
            "  rangescope compare before after -f collapsed | flamegraph.pl > differential.svg") {}
  void options(const Arguments& app) override {
    app.add_option("sides", sides_, "Runs, folders of runs, or files; the first is what the others are compared with")
        .type_name("RUN|DIR|FILE|URL")
        .required()
        .expected(1, 100);
    app.add_option("--runs", from_.root, "Folder of the runs (rangescope-runs)").type_name("DIR");
    app.add_option("--nsys", from_.nsys, "nsys to export .nsys-rep, .qdrep and .qdstrm with").type_name("PATH");
    bind_comparison(app, options_, renames_);
    app.add_option("--alpha", options_.alpha, "Chance of a false alarm over all values together (0.05)")
        .type_name("P")
        .between(0.0001, 0.5)
        .group("Comparison");
    choice_.style.top = 30;
    choice_.style.top_kernels = 10;
    std::vector<std::string> formats;
    for (const auto& format : report::comparison_formats()) formats.emplace_back(format.name);
    app.add_option("-f,--format", choice_.format, "How it is written (table)")
        .type_name(base::join(formats, "|"))
        .group("Report");
    bind_json(app, choice_.format);
    bind_destination(app, choice_);
    app.add_option("--top", choice_.style.top, "So many regions, what changed most first; 0: all (30)")
        .type_name("N")
        .between(0, kMost)
        .group("Report");
    app.add_option(
           "--cpu", choice_.style.cpu,
           "Every function of this range's threads on the CPU, where the runs sampled it (those that stand out)")
        .type_name("RANGE")
        .group("Report");
    app.add_option("--top-kernels", choice_.style.top_kernels, "So many kernels; 0: none (10)")
        .type_name("N")
        .between(0, kMost)
        .group("Report");
  }

  [[nodiscard]] int run() override {
    const auto format = report::find_comparison_format(choice_.format);
    if (!format) return say(format.error());
    if (auto ready = finish_comparison(options_, renames_); !ready) return say(ready.error());
    if (sides_.size() < 2)
      return say({base::Code::kUsage, "a comparison takes two sides", {}, "Name two runs: rangescope compare A B"});
    std::vector<model::Side> sides;
    for (const std::string& said : sides_) {
      auto side = load_side(said, from_);
      if (!side) return say(side.error());
      sides.push_back(std::move(*side));
    }
    const auto comparison = analyze::compare(sides, options_);
    if (!comparison) return say(comparison.error());
    if (!choice_.style.cpu.empty() && report::functions_shown(*comparison, choice_.style.cpu) == nullptr) {
      std::vector<std::string> names;
      for (const model::ComparedRegion& region : comparison->regions)
        if (!region.functions.empty()) names.push_back(model::path_text("", region.path));
      return say({base::Code::kNothingCaptured,
                  "no range '" + base::printable(choice_.style.cpu) + "' was sampled on every side", "--cpu",
                  names.empty() ? "Record all sides with rangescope profile --cpu"
                                : base::did_you_mean(choice_.style.cpu, names)});
    }
    const auto sampled = [](const model::ComparedRegion& region) { return !region.chains.empty(); };
    if (choice_.format == "collapsed" && std::none_of(comparison->regions.begin(), comparison->regions.end(), sampled))
      return say({base::Code::kNothingCaptured, "no range on all sides has call chains of the CPU", "--format",
                  "Record with rangescope profile --cpu, and name runs: reports and baselines hold no chains"});
    const auto written =
        write_to(choice_, STDOUT_FILENO, [&](report::Sink& sink, const report::Style& style) -> base::Result<void> {
          (*format)->write(*comparison, style, sink);
          return {};
        });
    return written ? 0 : say(written.error());
  }

 private:
  std::vector<std::string> sides_, renames_;
  profile::SideOptions from_{std::string(runs::kDefaultRoot), {}, 0};
  analyze::CompareOptions options_;
  ReportChoice choice_;
};

}  // namespace

std::unique_ptr<Subcommand> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace rangescope::cli
