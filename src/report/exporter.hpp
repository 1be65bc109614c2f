// An exporter writes a report in one format. It formats and computes nothing.
//
// To add one: a folder in formats/, a function, one line in registry.cpp, and a page in
// docs/formats/ if programs read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report {

/// Where the bytes go: a file, standard output, a string. finish() reports write errors.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view bytes) = 0;
  [[nodiscard]] virtual base::Result<void> finish() = 0;
};

/// How a table is shown. Formats for programs ignore most of it.
struct Style {
  std::size_t width = 100;  ///< columns of the terminal
  bool color = false;
  bool wrap = false;      ///< notes and data losses too: for a person, not for grep
  int depth = 0;          ///< deepest level shown, 0 for all
  std::string sort;       ///< measure tag; "" keeps tree order (first start)
  std::size_t top = 0;    ///< at most this many regions; 0: a screen of them, all for programs
  bool flat = false;      ///< a list by self time, not a tree
  bool all = false;       ///< every region of every process, not folded
  bool per_rank = false;  ///< a table of each rank too
  std::vector<std::string>
      columns;           ///< measure tags or metrics.<name>; empty for the default choice
  bool explain = false;  ///< print formulas and reasons
  std::size_t top_kernels = 5;
  std::string cpu;  ///< a range whose CPU time is shown instead of the tables
};

/// `session` is for timelines (HTML, Perfetto) and may be null: then there is no timeline.
using Write = base::Result<void>(const model::Report& report,
                                 const model::Session* session,
                                 const Style& style,
                                 Sink& sink);

struct Exporter {
  enum class Kind : std::uint8_t {
    kData,   ///< one document for programs
    kSheet,  ///< opened by spreadsheets
    kText,   ///< for people; reports can be concatenated
    kFile,   ///< only useful as a file
  };
  std::string_view name;       ///< "json": the -f argument
  std::string_view extension;  ///< "json": report.<extension>
  Kind kind;
  Write* write;
};

/// The format without -f.
inline constexpr std::string_view kDefaultFormat = "table";
/// Every exporter.
[[nodiscard]] std::span<const Exporter> exporters();
/// The exporter of that name, or kUsage with the nearest name.
[[nodiscard]] base::Result<const Exporter*> find_exporter(std::string_view name);

}  // namespace rangescope::report
