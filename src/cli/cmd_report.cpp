#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/log.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "profile/analyzed.hpp"
#include "profile/jobs.hpp"
#include "profile/split_regions.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

class Report final : public Subcommand {
 public:
  Report() : Subcommand("report") {}
  void options(const Arguments& app) override {
    app.add_option("input", inputs_).expected(0, 1000);
    app.add_option("--runs", root_);
    app.add_flag("--separate", separate_);
    app.add_option("--split-regions", split_);
    app.add_option("--cpu", choice_.style.cpu);
    app.add_flag("--captures", [this] { from_ = profile::JobFrom::kCaptures; });
    app.add_flag("--digests", [this] { from_ = profile::JobFrom::kDigests; });
    app.add_option("--merged", merged_);
    app.add_option("--what-if", analysis_.what_if).type_name("CHANGE").repeated();
    app.add_flag("--strict", strict_);
    bind_read(app, reading_);
    bind_report(app, choice_);
    bind_analyze(app, analysis_);
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto exporter = TRY(report::find_exporter(choice_.format));
    TRY(check_destination(choice_, STDOUT_FILENO));
    TRY(check_analysis(analysis_));
    if (inputs_.empty())
      inputs_.emplace_back("latest");
    TRY(choose_source());
    for (std::string& input : inputs_) {
      if (input != "-")
        continue;
      auto read = TRY(standard_input());
      input = read.string();
    }
    if (!separate_)
      return report_on(inputs_);
    if (inputs_.size() > 1 && exporter->kind != report::Exporter::Kind::kText) {
      return base::fail(base::Code::kUsage,
                        std::to_string(inputs_.size()) + " separate inputs in one " +
                            choice_.format + " document",
                        "--format",
                        "Write one report for each input, or leave --separate out");
    }
    if (inputs_.size() > 1 && !split_.empty())
      return base::fail(base::Code::kUsage,
                        "several separate inputs and one folder of regions",
                        "--split-regions",
                        "Write one report for each input");
    if (inputs_.size() > 1 && !choice_.to.empty() && choice_.to != "-")
      return base::fail(base::Code::kUsage,
                        "several separate inputs and one file",
                        "--output",
                        "Write one report for each input");
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (i > 0 && ::write(STDOUT_FILENO, "\n", 1) < 0)
        return base::fail(base::Code::kIo, "writing failed", "standard output", {});
      TRY(report_on({inputs_[i]}));
    }
    return 0;
  }

 private:
  /// Digests have no timeline, and nothing by rank but sums.
  [[nodiscard]] base::Result<void> choose_source() {
    const bool table = choice_.format == "table" || choice_.format == "md" ||
                       choice_.format == "csv" || choice_.format == "json" ||
                       choice_.format == "jsonl";
    const bool suffice = table && reading_.ranks.empty() && !choice_.style.per_rank &&
                         !choice_.style.all && choice_.style.cpu.empty() && split_.empty() &&
                         profile::digests_suffice(analysis_);
    if (!merged_.empty())
      from_ = profile::JobFrom::kDigests;
    if (from_ == profile::JobFrom::kDigests && !suffice)
      return base::fail(base::Code::kUsage,
                        "digests cannot answer this",
                        merged_.empty() ? "--digests" : "--merged",
                        "Leave it out to open the captures of all ranks");
    if (!suffice)
      from_ = profile::JobFrom::kCaptures;
    return {};
  }

  /// Readers go back and forth in a file, so standard input becomes one for as long as this lives.
  [[nodiscard]] base::Result<std::filesystem::path> standard_input() {
    if (::isatty(STDIN_FILENO) != 0)
      return base::fail(
          base::Code::kUsage, "standard input is a terminal", "-", "Pipe a report into it");
    if (!folder_)
      folder_.emplace("rangescope-report");
    const std::filesystem::path file = folder_->path() / "standard-input";
    report::FileSink sink(file.string());
    char buffer[1 << 16];
    for (ssize_t n = 0; (n = ::read(STDIN_FILENO, buffer, sizeof buffer)) != 0;) {
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return base::fail(base::Code::kIo,
                          std::string("reading failed: ") + std::strerror(errno),
                          "standard input");
      sink.write({buffer, static_cast<std::size_t>(n)});
    }
    TRY(sink.finish());
    return file;
  }
  [[nodiscard]] base::Result<int> report_on(const std::vector<std::string>& inputs) const {
    const auto analyzed =
        TRY(profile::analyze_named(root_, inputs, analysis_, reading_, from_, merged_));
    TRY(write_report(analyzed, choice_, STDOUT_FILENO));
    if (!split_.empty()) {
      const auto folders = TRY(profile::split_regions(split_, analyzed));
      base::info(base::counted(folders, "region") + " in " + split_);
    }
    if (strict_ && profile::has_loss(analyzed.report)) {
      return base::fail(
          base::Code::kDataLoss,
          "data was lost",
          base::join(inputs, ", "),
          "See the data losses below the table; without --strict they do not fail the command");
    }
    return 0;
  }

  std::optional<base::TemporaryFolder> folder_;
  std::vector<std::string> inputs_;
  std::string root_{runs::kDefaultRoot};
  std::string split_, merged_;
  read::Options reading_;
  profile::JobFrom from_ = profile::JobFrom::kAuto;
  bool strict_ = false, separate_ = false;
  ReportChoice choice_;
  analyze::Options analysis_;
};

}  // namespace

std::unique_ptr<Subcommand> make_report() {
  return std::make_unique<Report>();
}

}  // namespace rangescope::cli
