// `rangescope query` and `rangescope export`: the session and its report as SQLite, whole or asked.
#include <unistd.h>

#include <optional>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommands.hpp"
#include "profile/jobs.hpp"
#include "report/csv_text.hpp"
#include "report/sink.hpp"
#include "report/sqlite/database.hpp"
#include "report/sqlite/rows.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

using report::sqlite::RowFormat;

class Query final : public Subcommand {
 public:
  Query()
      : Subcommand(
            "query", "Ask a run or file with SQL",
            "Tables: run, verdict, regions, region_kernels, metrics, operators, ranges, launches, kernels, copies,\n"
            "samples, cpu_samples, cpu_waits, cpu_counts, frames, losses (docs/formats/sqlite-view.md).\n"
            "Nothing is written to the input.\n\n"
            "  rangescope query latest 'select path, occurrences, gpu_kernel_ns from regions order by 3 desc'\n"
            "  rangescope query trace.sqlite 'select name, count(*) from kernels group by name' -f csv") {}
  void options(const Arguments& app) override {
    app.add_option("input", input_, "Run or file").type_name("RUN|FILE").required();
    app.add_option("sql", sql_, "One SELECT").type_name("SQL").required();
    std::vector<std::pair<std::string, RowFormat>> formats(std::begin(report::sqlite::kRowFormats),
                                                           std::end(report::sqlite::kRowFormats));
    app.add_choice("-f,--format", format_, formats, "How the rows are written (table)");
    app.add_option("--runs", root_, "Folder of the runs (rangescope-runs)").type_name("DIR");
    bind_read(app, reading_);
    bind_analyze(app, analysis_);
  }
  [[nodiscard]] int run() override {
    if (auto checked = check_analysis(analysis_); !checked) return say(checked.error());
    auto database = base::Database::in_memory();
    if (!database) return say(database.error());
    const auto analyzed = profile::analyze_named(root_, {input_}, analysis_, reading_);
    if (!analyzed) return say(analyzed.error());
    const std::string asked = base::lower(sql_);
    auto written =
        report::sqlite::write_database(analyzed->report, analyzed->session, *database,
                                       [&](std::string_view table) { return asked.find(table) != std::string::npos; });
    if (!written) return say(written.error());
    auto statement = database->prepare(sql_);
    if (!statement) {
      return say({base::Code::kUsage, statement.error().what, "SQL",
                  "Tables and columns: rangescope query " + base::shell_quote(input_) +
                      " \"select name, sql from sqlite_master\""});
    }
    if (statement->columns() == 0)
      return say({base::Code::kUsage, "this is no SELECT", "SQL", "Write one SELECT; nothing can be changed here"});
    report::DescriptorSink sink(STDOUT_FILENO, "standard output");
    ReportChoice choice;
    auto printed = report::sqlite::print_rows(*statement, format_, sink, style_on(STDOUT_FILENO, choice).width);
    return printed ? 0 : say(printed.error());
  }

 private:
  std::string input_, sql_;
  RowFormat format_ = RowFormat::kTable;
  std::string root_{runs::kDefaultRoot};
  read::Options reading_;
  analyze::Options analysis_;
};

class Export final : public Subcommand {
 public:
  Export()
      : Subcommand(
            "export", "Write a run or file as SQLite, CSV or JSON lines",
            "sqlite holds all tables (docs/formats/sqlite-view.md); csv and jsonl hold one, --table regions if not "
            "said.\n\n"
            "  rangescope export latest --to sqlite -o run.sqlite\n"
            "  rangescope export trace.nsys-rep --to csv --table kernels > kernels.csv") {}
  void options(const Arguments& app) override {
    app.add_option("input", inputs_, "Runs or files").type_name("RUN|FILE").required().expected(1, 1000);
    std::vector<std::pair<std::string, std::optional<RowFormat>>> formats = {{"sqlite", std::nullopt}};
    for (const auto& [name, format] : report::sqlite::kRowFormats)
      if (format != RowFormat::kTable) formats.emplace_back(name, format);
    app.add_choice("--to", to_, formats, "All tables as a database, or one").required();
    app.add_option("-o,--output", output_, "File; standard output for csv and jsonl").type_name("FILE");
    app.add_flag("--raw-cells", raw_cells_,
                 "csv to a file: no apostrophe before cells that a spreadsheet would compute");
    app.add_option("--table", table_, "Table of csv and jsonl").one_of(report::sqlite::table_names());
    app.add_option("--runs", root_, "Folder of the runs (rangescope-runs)").type_name("DIR");
    bind_read(app, reading_);
    bind_analyze(app, analysis_);
  }
  [[nodiscard]] int run() override {
    if (!to_ && (output_.empty() || output_ == "-"))
      return say({base::Code::kUsage, "a database cannot go to standard output", "--to sqlite", "Name a file with -o"});
    if (auto checked = check_analysis(analysis_); !checked) return say(checked.error());
    if (!output_.empty() && output_ != "-")
      if (auto allowed = check_output(output_); !allowed) return say(allowed.error());
    const auto analyzed = profile::analyze_named(root_, inputs_, analysis_, reading_);
    if (!analyzed) return say(analyzed.error());
    if (!to_) {
      const auto written = report::sqlite::write_file(analyzed->report, analyzed->session, output_);
      return written ? 0 : say(written.error());
    }
    auto database = base::Database::in_memory();
    if (!database) return say(database.error());
    auto written = report::sqlite::write_database(analyzed->report, analyzed->session, *database,
                                                  [&](std::string_view table) { return table == table_; });
    if (!written) return say(written.error());
    auto statement = database->prepare("select * from " + table_);
    if (!statement) return say(statement.error());
    if (output_.empty() || output_ == "-") {
      report::DescriptorSink sink(STDOUT_FILENO, "standard output");
      auto printed = report::sqlite::print_rows(*statement, *to_, sink, 0);
      return printed ? 0 : say(printed.error());
    }
    report::FileSink sink(output_);
    report::FormulaGuard guarded(sink);
    const bool guard = to_ == RowFormat::kCsv && !raw_cells_;
    auto printed = report::sqlite::print_rows(*statement, *to_, guard ? static_cast<report::Sink&>(guarded) : sink, 0);
    return printed ? 0 : say(printed.error());
  }

 private:
  std::vector<std::string> inputs_;
  std::optional<RowFormat> to_;  ///< nothing: a database
  std::string output_, table_ = "regions";
  bool raw_cells_ = false;
  std::string root_{runs::kDefaultRoot};
  read::Options reading_;
  analyze::Options analysis_;
};

}  // namespace

std::unique_ptr<Subcommand> make_query() {
  return std::make_unique<Query>();
}

std::unique_ptr<Subcommand> make_export() {
  return std::make_unique<Export>();
}

}  // namespace rangescope::cli
