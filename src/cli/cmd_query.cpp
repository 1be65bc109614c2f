// `rangescope query` and `rangescope export`: the session and its report as tables, whole or asked.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "analyze/counters/places.hpp"
#include "base/deadline.hpp"
#include "base/duckdb.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "profile/jobs.hpp"
#include "report/formats/tables/database.hpp"
#include "report/formats/tables/parquet.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

using report::tables::RowFormat;

/// What was named as a database of SQLite with the wanted tables. `places` takes long, and fills
/// columns of others too.
base::Result<base::Database> sqlite_of(const std::string& root,
                                       const std::vector<std::string>& named,
                                       const analyze::Options& analysis,
                                       const read::Options& reading,
                                       bool places,
                                       const std::function<bool(std::string_view table)>& wanted) {
  const auto analyzed = TRY(profile::analyze_named(root, named, analysis, reading));
  auto database = TRY(base::Database::in_memory());
  model::Places found;
  if (places)
    found = analyze::find_places(analyzed.session, analysis);
  TRY(report::tables::write_database({analyzed.report, analyzed.session, found}, database, wanted));
  return database;
}

/// A database of DuckDB with a folder for what does not fit into its memory.
struct DuckHere {
  base::TemporaryFolder spill{"rangescope-duckdb"};
  base::Result<base::Duck> duck;
  explicit DuckHere(int threads) : duck(base::Duck::open(threads, spill.path())) {}
};

class Query final : public Subcommand {
 public:
  Query() : Subcommand("query") {}
  void options(const Arguments& app) override {
    app.add_option("input", input_).required();
    app.add_option("sql", sql_).required();
    std::vector<std::pair<std::string, RowFormat>> formats(std::begin(report::tables::kRowFormats),
                                                           std::end(report::tables::kRowFormats));
    app.add_choice("-f,--format", format_, formats);
    app.add_duration("--timeout", time_limit_, 1'000'000, kLongest);
    app.add_option("--runs", root_);
    bind_read(app, reading_);
    bind_analyze(app, analysis_);
  }
  [[nodiscard]] base::Result<int> run() override {
    TRY(check_analysis(analysis_));
    if (report::tables::is_parquet_folder(input_))
      return ask_duck(
          [&](const base::Duck& duck) { return report::tables::open_parquet(duck, input_); });
    const auto job = runs::job::find_job(root_, input_);
    if (job && *job && !base::Duck::version().empty())
      return ask_duck([&](const base::Duck& duck) -> base::Result<void> {
        auto written =
            profile::each_rank(root_,
                               {input_},
                               analysis_,
                               reading_,
                               [&](const profile::Analyzed& one,
                                   const std::string& name,
                                   std::optional<std::uint32_t> rank) {
                                 return report::tables::write_duck(
                                     {one.report, one.session, places(one)},
                                     {name, rank},
                                     duck,
                                     [this](std::string_view table) { return names(table); });
                               });
        if (!written)
          return written;
        return duck.lock({});
      });
    return ask_sqlite();
  }

 private:
  [[nodiscard]] bool names(std::string_view table) const {
    return base::lower(sql_).find(table) != std::string::npos;
  }

  [[nodiscard]] model::Places places(const profile::Analyzed& one) const {
    if (!names("place"))
      return {};
    return analyze::find_places(one.session, analysis_);
  }

  [[nodiscard]] base::Result<int> ask_duck(
      const std::function<base::Result<void>(const base::Duck&)>& fill) const {
    const DuckHere here(analysis_.threads);
    if (!here.duck)
      return tl::make_unexpected(here.duck.error());
    TRY(fill(*here.duck));
    base::info("DuckDB " + base::Duck::version() + " answers");
    auto rows = here.duck->select(sql_, time_limit_, [&] { give_up(&here.spill.path()); });
    if (!rows) {
      base::Error error = rows.error();
      if (error.code == base::Code::kUsage && error.hint.empty())
        error.hint = "Tables and columns: rangescope query " + base::shell_quote(input_) +
                     " 'select table_name, column_name from duckdb_columns()'";
      return tl::make_unexpected(std::move(error));
    }
    return print_all(*rows);
  }

  [[nodiscard]] base::Result<int> ask_sqlite() const {
    const auto database = TRY(sqlite_of(
        root_, {input_}, analysis_, reading_, names("place"), [&](std::string_view table) {
          return names(table);
        }));
    base::info("SQLite answers");
    auto statement = database.prepare(sql_);
    if (!statement) {
      return base::fail(base::Code::kUsage,
                        statement.error().what,
                        "SQL",
                        "Tables and columns: rangescope query " + base::shell_quote(input_) +
                            " \"select name, sql from sqlite_master\"");
    }
    if (statement->columns() == 0)
      return base::fail(base::Code::kUsage,
                        "this is not a SELECT",
                        "SQL",
                        "Write one SELECT; nothing can be changed here");
    base::Deadline timer(
        time_limit_,
        base::Deadline::thread_time(),
        [&] { database.interrupt(); },
        [] { give_up(nullptr); });
    return print_all(*statement, [&] { return timer.over(); });
  }

  /// What runs does not listen: the process ends with it.
  [[noreturn]] static void give_up(const std::filesystem::path* spill) {
    std::error_code ignored;
    if (spill != nullptr)
      std::filesystem::remove_all(*spill, ignored);
    const int code = say(base::took_too_long());
    std::fflush(nullptr);
    ::_exit(code);
  }

  template <class Rows>
  [[nodiscard]] base::Result<int> print_all(Rows& rows,
                                            const std::function<bool()>& over = {}) const {
    report::DescriptorSink sink(STDOUT_FILENO, "standard output");
    auto printed =
        report::tables::print_rows(rows, format_, sink, style_on(STDOUT_FILENO, {}).width);
    if (printed)
      printed = sink.finish();
    if (!printed && over && over())
      return tl::make_unexpected(base::took_too_long());
    TRY(printed);
    return 0;
  }

  std::string input_, sql_;
  RowFormat format_ = RowFormat::kTable;
  std::chrono::nanoseconds time_limit_ = std::chrono::seconds(300);
  std::string root_{runs::kDefaultRoot};
  read::Options reading_;
  analyze::Options analysis_;
};

class Export final : public Subcommand {
 public:
  Export() : Subcommand("export") {}
  void options(const Arguments& app) override {
    app.add_option("input", inputs_).required().expected(1, 1000);
    const std::vector<FormatName> formats = {{"sqlite", "sqlite"},
                                             {"sqlite", "sqlite3"},
                                             {"sqlite", "db"},
                                             {"csv", "csv"},
                                             {"jsonl", "jsonl"},
                                             {"parquet", "parquet"}};
    app.add_option("-f,--format", choice_.format).one_of({"sqlite", "csv", "jsonl", "parquet"});
    app.add_option("-o,--output", choice_.to);
    choose_format_by_ending(app, formats, choice_);
    app.add_flag("--raw-cells", choice_.raw_cells);
    app.add_option("--table", table_).one_of(report::tables::table_names());
    app.add_option("--runs", root_);
    bind_read(app, reading_);
    bind_analyze(app, analysis_);
  }
  [[nodiscard]] base::Result<int> run() override {
    if (choice_.format.empty())
      return base::fail(base::Code::kUsage,
                        "the format is not known",
                        "--format",
                        "Name a file, -o run.sqlite, or a format: -f csv");
    if (choice_.format == "parquet")
      return parquet();
    const bool is_database = choice_.format == "sqlite";
    const bool has_file = !choice_.to.empty() && choice_.to != "-";
    if (is_database && !has_file)
      return base::fail(base::Code::kUsage,
                        "a database cannot go to standard output",
                        "--format",
                        "Name a file with -o");
    TRY(check_analysis(analysis_));
    if (has_file)
      TRY(check_output(choice_.to));
    if (is_database) {
      const auto analyzed = TRY(profile::analyze_named(root_, inputs_, analysis_, reading_));
      const auto places = analyze::find_places(analyzed.session, analysis_);
      const base::Work writing("writing " + base::printable(choice_.to));
      TRY(report::tables::write_file({analyzed.report, analyzed.session, places}, choice_.to));
      return 0;
    }
    const auto database =
        TRY(sqlite_of(root_, inputs_, analysis_, reading_, true, [&](std::string_view table) {
          return table == table_;
        }));
    auto statement = TRY(database.prepare("select * from " + table_));
    const RowFormat rows = choice_.format == "csv" ? RowFormat::kCsv : RowFormat::kJsonLines;
    TRY(write_to(choice_, STDOUT_FILENO, [&](report::Sink& sink, const report::Style&) {
      return report::tables::print_rows(statement, rows, sink, 0);
    }));
    return 0;
  }

 private:
  [[nodiscard]] base::Result<int> parquet() {
    if (choice_.to.empty() && inputs_.size() > 1) {
      choice_.to = inputs_.back();
      inputs_.pop_back();
    }
    if (choice_.to.empty() || choice_.to == "-")
      return base::fail(
          base::Code::kUsage, "Parquet goes into a folder", "--format", "Name one: -f parquet DIR");
    TRY(check_analysis(analysis_));
    TRY(report::tables::check_parquet_folder(choice_.to));
    const DuckHere here(analysis_.threads);
    if (!here.duck)
      return tl::make_unexpected(here.duck.error());
    std::size_t ranks = 0;
    const auto written = profile::each_rank(
        root_,
        inputs_,
        analysis_,
        reading_,
        [&](const profile::Analyzed& one,
            const std::string& job,
            std::optional<std::uint32_t> rank) {
          ++ranks;
          const std::string folder = base::printable(choice_.to);
          const base::Work writing(fmt::format("writing {}, rank {}", folder, ranks));
          return report::tables::write_parquet(
              {one.report, one.session, analyze::find_places(one.session, analysis_)},
              {job, rank},
              *here.duck,
              choice_.to);
        });
    TRY(written);
    base::info(base::counted(ranks, "rank") + " in " + choice_.to + "; ask it: rangescope query " +
               base::shell_quote(choice_.to) + " SQL");
    return 0;
  }

  std::vector<std::string> inputs_;
  ReportChoice choice_{.format = {}};
  std::string table_ = "regions";
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
