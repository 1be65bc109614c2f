#include "read/registry.hpp"

#include <array>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/native/reader.hpp"
#include "read/ncu_csv/reader.hpp"
#include "read/ncu_report/reader.hpp"
#include "read/nsys_csv/reader.hpp"
#include "read/nsys_rep/reader.hpp"
#include "read/nsys_sqlite/reader.hpp"

namespace rangescope::read {
namespace {

constexpr std::size_t kHead = 4096;

}  // namespace

std::span<const std::unique_ptr<Reader>> readers() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Reader>> list;
    list.push_back(std::make_unique<native::NativeReader>());
    list.push_back(std::make_unique<nsys_sqlite::NsysSqliteReader>());
    list.push_back(std::make_unique<nsys_rep::NsysRepReader>());
    list.push_back(std::make_unique<nsys_csv::NsysCsvReader>());
    list.push_back(std::make_unique<ncu_report::NcuReportReader>());
    list.push_back(std::make_unique<ncu_csv::NcuCsvReader>());
    return list;
  }();
  return all;
}

base::Result<const Reader*> find_reader(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return base::fail(base::Code::kNoInput, "no such file or directory", path.string());
  }
  std::string head;
  if (!std::filesystem::is_directory(path, error)) {
    auto read = base::read_head(path, kHead);
    if (!read) return base::fail(std::move(read));
    head = std::move(*read);
  }
  const auto bytes = std::as_bytes(std::span(head));
  std::string known;
  for (const auto& reader : readers()) {
    if (reader->sniff(bytes, path)) return reader.get();
    known += (known.empty() ? "" : ", ") + std::string(reader->name());
  }
  const std::string begins = head.empty() ? std::string("it is empty or a directory")
                                          : "it begins with \"" + base::printable(head.substr(0, 24)) + '"';
  return base::fail(base::Code::kBadData, "no reader understands this: " + begins, path.string(),
                    "Give a file of one of these formats: " + known + ".");
}

base::Result<model::Session> read_any(const std::filesystem::path& path, const Options& options) {
  auto reader = find_reader(path);
  if (!reader) return base::fail(std::move(reader));
  return (*reader)->read(path, options);
}

}  // namespace rangescope::read
