#include "report/formats/tables/rows.hpp"

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/text.hpp"
#include "report/document/csv_text.hpp"

namespace rangescope::report::tables {

namespace {

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
      for (int i = 0; i < statement.columns(); ++i) fields[static_cast<std::size_t>(i)] = csv_field(statement.text(i));
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
  return sink.finish();
}

}  // namespace

base::Result<void> print_rows(base::Statement& statement, RowFormat format, Sink& sink, std::size_t width) {
  return print(statement, format, sink, width);
}

base::Result<void> print_rows(base::DuckRows& rows, RowFormat format, Sink& sink, std::size_t width) {
  return print(rows, format, sink, width);
}

}  // namespace rangescope::report::tables
