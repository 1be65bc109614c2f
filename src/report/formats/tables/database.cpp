#include "report/formats/tables/database.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/fs.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "report/document/csv_text.hpp"

namespace rangescope::report::tables {
namespace {

/// "RSCP", in the file's header, where file(1) finds it.
constexpr std::uint32_t kApplicationId = 0x52534350;

/// A table by its INSERT.
class Insert final : public Rows {
 public:
  explicit Insert(base::Statement statement) : statement_(std::move(statement)) {}
  void integer(std::int64_t value) override { statement_.bind(++column_, value); }
  void real(double value) override { statement_.bind(++column_, value); }
  void text(std::string_view value) override { statement_.bind(++column_, value); }
  void null() override { statement_.bind_null(++column_); }
  base::Result<void> end() override {
    column_ = 0;
    TRY(statement_.step());
    statement_.reset();
    return {};
  }
  base::Result<void> finish() override { return {}; }

 private:
  base::Statement statement_;
  int column_ = 0;
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(base::Database& database) : database_(database) {}
  base::Result<std::unique_ptr<Rows>> begin(std::string_view table,
                                            const std::vector<TableColumn>& columns) override {
    constexpr const char* kTypes[] = {" integer", " real", " text"};
    std::vector<std::string> declarations, parameters;
    for (const TableColumn& column : columns) {
      std::string declaration = column.name + kTypes[column.type];
      if (declarations.empty() && column.name == "id")
        declaration += " primary key";
      declarations.push_back(std::move(declaration));
      parameters.emplace_back("?");
    }
    const std::string name(table);
    TRY(database_.execute("create table " + name + '(' + base::join(declarations, ", ") + ')'));
    const std::string values = base::join(parameters, ",");
    auto statement = TRY(database_.prepare("insert into " + name + " values(" + values + ")"));
    return std::make_unique<Insert>(std::move(statement));
  }

 private:
  base::Database& database_;
};

bool is_own_export(std::string_view head) {
  if (head.size() < 72 || !base::is_sqlite(head))
    return false;
  std::uint32_t id = 0;  // big-endian, at 68
  for (std::size_t i = 68; i < 72; ++i)
    id = id << 8 | static_cast<unsigned char>(head[i]);
  return id == kApplicationId;
}

template <class Source>
nlohmann::ordered_json json_row(Source& statement) {
  nlohmann::ordered_json object;
  for (int i = 0; i < statement.columns(); ++i) {
    auto& value = object[std::string(statement.column_name(i))];
    if (statement.is_null(i))
      continue;
    if (!statement.is_number(i))
      value = base::printable(statement.text(i));
    else if (const auto integer = base::to_int(statement.text(i)))
      value = *integer;
    else
      value = statement.real(i);
  }
  return object;
}

template <class Source>
base::Result<void> print_json(Source& statement, Sink& sink) {
  for (;;) {
    const auto has_row = TRY(statement.step());
    if (!has_row)
      return {};
    sink.write(base::printable_json(json_row(statement).dump()) + '\n');
  }
}

template <class Source>
base::Result<void> print_csv(Source& statement, Sink& sink) {
  std::vector<std::string> fields;
  for (int i = 0; i < statement.columns(); ++i)
    fields.push_back(csv_field(statement.column_name(i)));
  csv_row(sink, fields);
  for (;;) {
    const auto has_row = TRY(statement.step());
    if (!has_row)
      return {};
    for (int i = 0; i < statement.columns(); ++i)
      fields[static_cast<std::size_t>(i)] = csv_field(statement.text(i));
    csv_row(sink, fields);
  }
}

template <class Source>
base::Result<void> print_table(Source& statement, Sink& sink, std::size_t width) {
  std::vector<base::Table::Column> columns;
  for (int i = 0; i < statement.columns(); ++i)
    columns.push_back({std::string(statement.column_name(i)), true, i == 0, 0});
  base::Table table(columns);
  for (;;) {
    const auto has_row = TRY(statement.step());
    if (!has_row)
      break;
    std::vector<base::Table::Cell> cells;
    for (int i = 0; i < statement.columns(); ++i)
      cells.push_back({base::printable(statement.text(i)), base::Tone::kPlain});
    table.add(std::move(cells));
  }
  sink.write(table.render(width, false));
  return {};
}

template <class Source>
base::Result<void> print(Source& statement, RowFormat format, Sink& sink, std::size_t width) {
  if (format == RowFormat::kTable)
    return print_table(statement, sink, width);
  if (format == RowFormat::kCsv)
    return print_csv(statement, sink);
  return print_json(statement, sink);
}

}  // namespace

base::Result<void> write_database(const Input& input,
                                  base::Database& database,
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
    if (!written)
      return written;
  }
  return file.commit();
}

std::optional<std::string> exported_run(const std::filesystem::path& file) {
  const auto head = base::read_head(file, 256);
  if (!head || !is_own_export(*head))
    return std::nullopt;
  auto database = base::Database::open_readonly(file);
  if (!database)
    return "";
  auto statement = database->prepare("select value from run where key = 'id'");
  if (!statement)
    return "";
  const auto row = statement->step();
  if (!row || !*row)
    return "";
  return std::string(statement->text(0));
}

base::Result<void> print_rows(base::Statement& statement,
                              RowFormat format,
                              Sink& sink,
                              std::size_t width) {
  return print(statement, format, sink, width);
}

base::Result<void> print_rows(base::DuckRows& rows,
                              RowFormat format,
                              Sink& sink,
                              std::size_t width) {
  return print(rows, format, sink, width);
}

}  // namespace rangescope::report::tables
