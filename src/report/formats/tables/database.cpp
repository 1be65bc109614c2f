#include "report/formats/tables/database.hpp"

#include <fmt/format.h>

#include "base/fs.hpp"

namespace rangescope::report::tables {
namespace {

constexpr std::uint32_t kApplicationId = 0x52534350;  // "RSCP", in the file's header (file(1) can tell)

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
  base::Result<std::unique_ptr<Rows>> begin(std::string_view table, const std::vector<Column>& columns) override {
    std::string declared, places;
    for (const Column& column : columns) {
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

}  // namespace rangescope::report::tables
