#include "report/formats/tables/database.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/fs.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "report/document/csv_text.hpp"

namespace rangescope::report::tables {
namespace {

constexpr std::uint32_t kApplicationId =
    0x52534350;  // "RSCP", in the file's header (file(1) can tell)

/// A table by its INSERT.
class Insert final : public Rows {
 public:
  explicit Insert(base::Statement statement) : statement_(std::move(statement)) {}
  void integer(std::int64_t value) override { statement_.bind(++at_, value); }
  void real(double value) override { statement_.bind(++at_, value); }
  void text(std::string_view value) override { statement_.bind(++at_, value); }
  void null() override { statement_.bind_null(++at_); }
  base::Result<void> end() override {
    at_ = 0;
    TRY(statement_.step());
    statement_.reset();
    return {};
  }
  base::Result<void> finish() override { return {}; }

 private:
  base::Statement statement_;
  int at_ = 0;
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(base::Database& database) : database_(database) {}
  base::Result<std::unique_ptr<Rows>> begin(std::string_view table,
                                            const std::vector<TableColumn>& columns) override {
    std::string declared, places;
    for (const TableColumn& column : columns) {
      constexpr const char* kTypes[] = {" integer", " real", " text"};
      declared += (declared.empty() ? "" : ", ") + column.name + kTypes[column.type];
      if (places.empty() && column.name == "id") declared += " primary key";
      places += places.empty() ? "?" : ",?";
    }
    const std::string name(table);
    TRY(database_.execute("create table " + name + '(' + declared + ')'));
    auto statement = TRY(database_.prepare("insert into " + name + " values(" + places + ")"));
    return std::make_unique<Insert>(std::move(statement));
  }

 private:
  base::Database& database_;
};

bool is_own_export(std::string_view head) {
  if (head.size() < 72 || !head.starts_with("SQLite format 3")) return false;
  std::uint32_t id = 0;  // big-endian, at 68
  for (std::size_t i = 68; i < 72; ++i) id = id << 8 | static_cast<unsigned char>(head[i]);
  return id == kApplicationId;
}

template <class Source>
base::Result<void> print(Source& statement, RowFormat format, Sink& sink, std::size_t width) {
  std::vector<base::Table::Column> columns;
  std::vector<std::string> fields;
  for (int i = 0; i < statement.columns(); ++i) {
    columns.push_back({std::string(statement.column_name(i)), true, i == 0, 0});
    fields.push_back(csv_field(statement.column_name(i)));
  }
  base::Table table(columns);
  if (format == RowFormat::kCsv) csv_row(sink, fields);
  for (;;) {
    auto more = TRY(statement.step());
    if (!more) break;
    if (format == RowFormat::kTable) {
      std::vector<base::Table::Cell> cells;
      for (int i = 0; i < statement.columns(); ++i)
        cells.push_back({base::printable(statement.text(i)), base::Tone::kPlain});
      table.add(std::move(cells));
    } else if (format == RowFormat::kCsv) {
      for (int i = 0; i < statement.columns(); ++i)
        fields[static_cast<std::size_t>(i)] = csv_field(statement.text(i));
      csv_row(sink, fields);
    } else {
      nlohmann::ordered_json object;
      for (int i = 0; i < statement.columns(); ++i) {
        auto& value = object[std::string(statement.column_name(i))];
        if (statement.is_null(i)) continue;
        if (!statement.is_number(i))
          value = base::printable(statement.text(i));
        else if (const auto whole = base::to_int(statement.text(i)))
          value = *whole;
        else
          value = statement.real(i);
      }
      sink.write(base::printable_json(object.dump()) + '\n');
    }
  }
  if (format == RowFormat::kTable) sink.write(table.render(width, false));
  return {};
}

}  // namespace

base::Result<void> write_database(const Input& input, base::Database& database,
                                  const std::function<bool(std::string_view table)>& wanted) {
  TRY(database.execute(fmt::format("pragma application_id={}", kApplicationId)));
  TRY(database.execute("begin"));
  SqliteStore store(database);
  TRY(write_tables(input, store, wanted));
  return database.execute("commit");
}

base::Result<void> write_file(const Input& input, const std::filesystem::path& to) {
  auto file = TRY(base::Replacement::begin(to));
  {
    auto database = TRY(base::Database::create(file.temporary()));
    auto written = write_database(input, database, [](std::string_view) { return true; });
    if (!written) return written;
  }
  return file.commit();
}

std::optional<std::string> exported_run(const std::filesystem::path& file) {
  const auto head = base::read_head(file, 256);
  if (!head || !is_own_export(*head)) return std::nullopt;
  auto database = base::Database::open_readonly(file);
  if (!database) return "";
  auto statement = database->prepare("select value from run where key = 'id'");
  if (!statement) return "";
  const auto row = statement->step();
  return row && *row ? std::string(statement->text(0)) : "";
}

base::Result<void> print_rows(base::Statement& statement, RowFormat format, Sink& sink,
                              std::size_t width) {
  return print(statement, format, sink, width);
}

base::Result<void> print_rows(base::DuckRows& rows, RowFormat format, Sink& sink,
                              std::size_t width) {
  return print(rows, format, sink, width);
}

}  // namespace rangescope::report::tables
