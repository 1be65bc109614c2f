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

// Readers of Parquet folders skip names that start with '_'.
constexpr std::string_view kMarker = "_rangescope.json";
constexpr std::string_view kSchema = "rangescope.parquet/1";
constexpr std::string_view kNullPartition = "__HIVE_DEFAULT_PARTITION__";

/// A value in a path, as Hive escapes it.
std::string hive_escape(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_inner_dot = c == '.' && !escaped.empty();
    const bool is_plain = std::isalnum(byte) != 0 || c == '-' || c == '_' || is_inner_dot;
    if (is_plain)
      escaped += c;
    else
      escaped += fmt::format("%{:02X}", byte);
  }
  return escaped;
}

std::string declarations(const std::vector<TableColumn>& columns) {
  constexpr const char* kTypes[] = {" bigint", " double", " varchar"};
  std::vector<std::string> texts;
  for (const TableColumn& column : columns)
    texts.push_back('"' + column.name + '"' + kTypes[column.type]);
  return base::join(texts, ", ");
}

/// Rows of a table of DuckDB. With a partition, its job and rank are the first values of each row.
class Appended : public Rows {
 public:
  Appended(base::DuckAppender appender, const Partition* partition)
      : appender_(std::move(appender)), partition_(partition) {}
  void integer(std::int64_t value) override { start().add(value); }
  void real(double value) override { start().add(value); }
  void text(std::string_view value) override {
    if (base::is_utf8(value))
      start().add(value);
    else
      start().add(std::string_view(base::printable(value)));
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
      if (partition_->rank)
        appender_.add(std::int64_t{*partition_->rank});
      else
        appender_.null();
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
                      declarations(columns) + ")"));
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
  Copied(base::DuckAppender appender,
         const base::Duck& duck,
         std::string name,
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
      : duck_(duck), folder_(std::move(folder)) {
    std::string rank(kNullPartition);
    if (partition.rank)
      rank = std::to_string(*partition.rank);
    partition_path_ = fs::path("job=" + hive_escape(partition.job)) / ("rank=" + rank);
  }
  base::Result<std::unique_ptr<Rows>> begin(std::string_view table,
                                            const std::vector<TableColumn>& columns) override {
    const std::string name(table);
    const fs::path folder = folder_ / name / partition_path_;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      return base::fail(
          base::Code::kIo, "cannot make the folder: " + error.message(), folder.string());
    auto file = TRY(base::Replacement::begin(folder / (name + ".parquet")));
    files_.push_back(std::move(file));
    TRY(duck_.execute("create table " + name + " (" + declarations(columns) + ")"));
    auto appender = TRY(duck_.append(name));
    return std::make_unique<Copied>(std::move(appender), duck_, name, files_.back().temporary());
  }
  base::Result<void> commit() {
    for (base::Replacement& file : files_)
      TRY(file.commit());
    return {};
  }

 private:
  const base::Duck& duck_;
  fs::path partition_path_, folder_;
  std::vector<base::Replacement> files_;
};

/// The folders in `folder` whose names start with `prefix`, without links.
std::vector<fs::path> partitions_in(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const bool is_folder = entry.symlink_status(error).type() == fs::file_type::directory;
    if (is_folder && entry.path().filename().string().starts_with(prefix))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> files_of(const fs::path& folder, const std::string& table) {
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::symlink_status(folder / table, error).type() != fs::file_type::directory)
    return files;
  for (const fs::path& job : partitions_in(folder / table, "job=")) {
    for (const fs::path& rank : partitions_in(job, "rank=")) {
      const fs::path file = rank / (table + ".parquet");
      if (fs::symlink_status(file, error).type() == fs::file_type::regular)
        files.push_back(file);
    }
  }
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
    fs::path existing = fs::absolute(folder, error).lexically_normal().parent_path();
    const bool ends_in_slash = !folder.has_filename();  // "new/" ends in an empty name
    if (ends_in_slash)
      existing = existing.parent_path();
    if (fs::is_directory(existing, error))
      return {};
    return base::fail(base::Code::kIo,
                      "cannot make the folder: its parent does not exist",
                      folder.string(),
                      "Make that first: mkdir -p " + base::shell_quote(existing.string()));
  }
  if (!fs::is_directory(status))
    return base::fail(base::Code::kUsage,
                      "Parquet goes into a folder, and this is not one",
                      folder.string(),
                      "Name a new folder");
  if (is_parquet_folder(folder) || fs::is_empty(folder, error))
    return {};
  return base::fail(base::Code::kUsage,
                    "the folder is not empty, and holds no export of rangescope",
                    folder.string(),
                    "Name a new folder, or one that an export has written");
}

base::Result<void> write_parquet(const Input& input,
                                 const Partition& partition,
                                 const base::Duck& duck,
                                 const fs::path& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error)
    return base::fail(
        base::Code::kIo, "cannot make the folder: " + error.message(), folder.string());
  if (!is_parquet_folder(folder))
    TRY(base::write_file(folder / kMarker, "{ \"schema\": \"" + std::string(kSchema) + "\" }\n"));
  ParquetStore store(duck, partition, folder);
  auto written = write_tables(input, store, [](std::string_view) { return true; });
  if (!written)
    return written;
  return store.commit();
}

base::Result<void> open_parquet(const base::Duck& duck, const fs::path& folder) {
  std::error_code error;
  const fs::path canonical = fs::canonical(folder, error);
  std::vector<fs::path> readable;
  for (const std::string& table : table_names()) {
    const auto files = files_of(canonical, table);
    if (files.empty())
      continue;
    std::vector<std::string> patterns;
    for (const fs::path& file : files)
      patterns.push_back(base::sql_quote(base::sql_glob_escape(file.string())));
    const auto view = duck.execute(
        "create view " + table + " as select job, rank, * exclude (job, rank) from read_parquet([" +
        base::join(patterns, ", ") +
        "], union_by_name = true, hive_partitioning = true, hive_types_autocast = false, " +
        "hive_types = {'job': varchar, 'rank': bigint})");
    if (!view)
      return base::fail(base::Code::kBadData,
                        "table " + table + " cannot be read: " + view.error().what,
                        folder.string(),
                        "Export it again");
    for (const fs::path& file : files) {  // DuckDB also opens the pattern itself
      readable.push_back(file);
      const std::string pattern = base::sql_glob_escape(file.string());
      if (pattern != file)
        readable.emplace_back(pattern);
    }
  }
  if (readable.empty())
    return base::fail(
        base::Code::kNoInput,
        "the folder holds no table",
        folder.string(),
        "Export one: rangescope export RUN -f parquet -o " + base::shell_quote(folder.string()));
  return duck.lock(readable);
}

base::Result<void> write_duck(const Input& input,
                              const Partition& partition,
                              const base::Duck& duck,
                              const std::function<bool(std::string_view table)>& wanted) {
  MemoryStore store(duck, partition);
  return write_tables(input, store, wanted);
}

}  // namespace rangescope::report::tables
