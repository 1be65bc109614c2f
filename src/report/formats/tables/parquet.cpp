#include "report/formats/tables/parquet.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::report::tables {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker =
    "_rangescope.json";  // readers of Parquet folders skip what begins with '_'
constexpr std::string_view kSchema = "rangescope.parquet/1";
constexpr std::string_view kNullPartition = "__HIVE_DEFAULT_PARTITION__";

/// A value in a path, as Hive escapes it.
std::string hive_escape(std::string_view value) {
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || (c == '.' && !out.empty()))
      out += c;
    else
      out += fmt::format("%{:02X}", byte);
  }
  return out;
}

std::string declared(const std::vector<TableColumn>& columns) {
  constexpr const char* kTypes[] = {" bigint", " double", " varchar"};
  std::string text;
  for (const TableColumn& column : columns)
    text += (text.empty() ? "\"" : ", \"") + column.name + '"' + kTypes[column.type];
  return text;
}

/// A table of DuckDB; `partition` comes first in each of its rows, where it has columns for it.
class Appended : public Rows {
 public:
  Appended(base::DuckAppender appender, const Partition* partition)
      : appender_(std::move(appender)), partition_(partition) {}
  void integer(std::int64_t value) override { start().add(value); }
  void real(double value) override { start().add(value); }
  void text(std::string_view value) override {
    base::is_utf8(value) ? start().add(value)
                         : start().add(std::string_view(base::printable(value)));
  }
  void null() override { start().null(); }
  base::Result<void> end() override {
    started_ = false;
    return appender_.row();
  }
  base::Result<void> finish() override { return appender_.finish(); }

 private:
  base::DuckAppender& start() {
    if (!started_ && partition_ != nullptr) {
      appender_.add(std::string_view(partition_->job));
      partition_->rank ? appender_.add(std::int64_t{*partition_->rank}) : appender_.null();
    }
    started_ = true;
    return appender_;
  }
  base::DuckAppender appender_;
  const Partition* partition_;
  bool started_ = false;
};

class MemoryStore final : public Store {
 public:
  MemoryStore(const base::Duck& duck, const Partition& partition)
      : duck_(duck), partition_(partition) {}
  base::Result<std::unique_ptr<Rows>> begin(std::string_view table,
                                            const std::vector<TableColumn>& columns) override {
    const std::string name(table);
    TRY(duck_.execute("create table if not exists " + name + " (job varchar, rank bigint, " +
                      declared(columns) + ")"));
    auto appender = TRY(duck_.append(name));
    return std::make_unique<Appended>(std::move(appender), &partition_);
  }

 private:
  const base::Duck& duck_;
  const Partition& partition_;
};

/// A table of DuckDB that becomes a file.
class Copied final : public Appended {
 public:
  Copied(base::DuckAppender appender, const base::Duck& duck, std::string name,
         const std::string& file)
      : Appended(std::move(appender), nullptr), duck_(duck), name_(std::move(name)), file_(file) {}
  base::Result<void> finish() override {
    TRY(Appended::finish());
    auto copied = duck_.execute(
        "copy " + name_ + " to " + base::sql_quote(file_) +
        " (format parquet, compression zstd, use_tmp_file false); drop table " + name_);
    if (!copied)
      return base::fail(base::Code::kIo, "cannot be written: " + copied.error().what, file_);
    return {};
  }

 private:
  const base::Duck& duck_;
  std::string name_, file_;
};

class ParquetStore final : public Store {
 public:
  ParquetStore(const base::Duck& duck, const Partition& partition, fs::path folder)
      : duck_(duck),
        below_(fs::path("job=" + hive_escape(partition.job)) /
               ("rank=" +
                (partition.rank ? std::to_string(*partition.rank) : std::string(kNullPartition)))),
        folder_(std::move(folder)) {}
  base::Result<std::unique_ptr<Rows>> begin(std::string_view table,
                                            const std::vector<TableColumn>& columns) override {
    const std::string name(table);
    const fs::path folder = folder_ / name / below_;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      return base::fail(base::Code::kIo, "cannot make the folder: " + error.message(),
                        folder.string());
    auto file = TRY(base::Replacement::begin(folder / (name + ".parquet")));
    files_.push_back(std::move(file));
    TRY(duck_.execute("create table " + name + " (" + declared(columns) + ")"));
    auto appender = TRY(duck_.append(name));
    return std::make_unique<Copied>(std::move(appender), duck_, name, files_.back().temporary());
  }
  base::Result<void> commit() {
    for (base::Replacement& file : files_) TRY(file.commit());
    return {};
  }

 private:
  const base::Duck& duck_;
  fs::path below_, folder_;
  std::vector<base::Replacement> files_;
};

/// The folders in `folder` that begin so. A link is none of ours.
std::vector<fs::path> partitions_in(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.symlink_status(error).type() == fs::file_type::directory &&
        entry.path().filename().string().starts_with(prefix))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> files_of(const fs::path& folder, const std::string& table) {
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::symlink_status(folder / table, error).type() != fs::file_type::directory) return files;
  for (const fs::path& job : partitions_in(folder / table, "job="))
    for (const fs::path& rank : partitions_in(job, "rank="))
      if (const fs::path file = rank / (table + ".parquet");
          fs::symlink_status(file, error).type() == fs::file_type::regular)
        files.push_back(file);
  return files;
}

}  // namespace

bool is_parquet_folder(const fs::path& folder) {
  const auto marker = base::read_regular(folder / kMarker, 4096);
  return marker && marker->find('"' + std::string(kSchema) + '"') != std::string::npos;
}

base::Result<void> check_parquet_folder(const fs::path& folder) {
  std::error_code error;
  const auto status = fs::symlink_status(folder, error);
  if (!fs::exists(status)) {
    const fs::path parent = fs::absolute(folder, error).lexically_normal().parent_path();
    const fs::path above = folder.has_filename() ? parent : parent.parent_path();
    if (fs::is_directory(above, error)) return {};
    return base::fail(base::Code::kIo, "cannot make the folder: its parent does not exist",
                      folder.string(),
                      "Make that first: mkdir -p " + base::shell_quote(above.string()));
  }
  if (!fs::is_directory(status))
    return base::fail(base::Code::kUsage, "Parquet goes into a folder, and this is not one",
                      folder.string(), "Name a new folder");
  if (is_parquet_folder(folder) || fs::is_empty(folder, error)) return {};
  return base::fail(base::Code::kUsage,
                    "the folder is not empty, and holds no export of rangescope", folder.string(),
                    "Name a new folder, or one that an export has written");
}

base::Result<void> write_parquet(const Input& input, const Partition& partition,
                                 const base::Duck& duck, const fs::path& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error)
    return base::fail(base::Code::kIo, "cannot make the folder: " + error.message(),
                      folder.string());
  if (!is_parquet_folder(folder))
    TRY(base::write_file(folder / kMarker, "{ \"schema\": \"" + std::string(kSchema) + "\" }\n"));
  ParquetStore store(duck, partition, folder);
  auto written = write_tables(input, store, [](std::string_view) { return true; });
  return written ? store.commit() : written;
}

base::Result<void> open_parquet(const base::Duck& duck, const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  std::vector<fs::path> readable;
  for (const std::string& table : table_names()) {
    const auto files = files_of(whole, table);
    if (files.empty()) continue;
    std::string list;
    for (const fs::path& file : files)
      list += (list.empty() ? "" : ", ") + base::sql_quote(base::sql_glob_escape(file.string()));
    auto made = duck.execute(
        "create view " + table + " as select job, rank, * exclude (job, rank) from read_parquet([" +
        list + "], union_by_name = true, hive_partitioning = true, hive_types_autocast = false, " +
        "hive_types = {'job': varchar, 'rank': bigint})");
    if (!made)
      return base::fail(base::Code::kBadData,
                        "table " + table + " cannot be read: " + made.error().what, folder.string(),
                        "Export it again");
    for (const fs::path& file : files) {  // the pattern is looked for too
      readable.push_back(file);
      if (const std::string escaped = base::sql_glob_escape(file.string()); escaped != file)
        readable.emplace_back(escaped);
    }
  }
  if (readable.empty())
    return base::fail(
        base::Code::kNoInput, "the folder holds no table", folder.string(),
        "Export one: rangescope export RUN -f parquet -o " + base::shell_quote(folder.string()));
  return duck.lock(readable);
}

base::Result<void> write_duck(const Input& input, const Partition& partition,
                              const base::Duck& duck,
                              const std::function<bool(std::string_view table)>& wanted) {
  MemoryStore store(duck, partition);
  return write_tables(input, store, wanted);
}

}  // namespace rangescope::report::tables
