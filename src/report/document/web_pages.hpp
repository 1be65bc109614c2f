// What is built from web/ and embedded in the program.
#pragma once

#include <string>
#include <string_view>

#include "report/exporter.hpp"

namespace rangescope::report {

/// What stands in the report's page where the data goes.
inline constexpr std::string_view kDataPlace = "__RANGESCOPE_DATA__";

/// The page of a report.
[[nodiscard]] std::string_view html_template();
/// The flame graph of a comparison: style and script of the element #flame, drawn from the JSON in #flame-data.
[[nodiscard]] std::string_view html_flame();

/// Writes JSON that may stand within <script>: < > & and the line ends of JavaScript escaped.
class ScriptSink final : public Sink {
 public:
  explicit ScriptSink(Sink& to) : to_(to) {}
  void write(std::string_view bytes) override;
  [[nodiscard]] base::Result<void> finish() override { return {}; }

 private:
  Sink& to_;
  std::string buffer_;
  std::string kept_;  ///< beginning of a character that the next write completes
};

}  // namespace rangescope::report
