// What people read, before it is laid out: sections of sentences, lists and tables of cells. Built
// once from a report, a comparison or an answer of the doctor; terminal, Markdown and HTML only
// render it.
//
// Texts may come from a program: each renderer makes them printable and escapes what it would take
// for its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/table.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

/// A sentence: "NAME: TEXT CODE", each part where there is one.
struct Line {
  enum Shape : std::uint8_t {
    kPlain,
    kItem,      ///< of a list
    kNumbered,  ///< of a list in order
    kBelow,     ///< below the item before
  };
  std::string text;
  Shape shape = kPlain;
  base::Tone tone = base::Tone::kPlain;
  std::string name;     ///< what it speaks of
  std::string code;     ///< a command
  bool detail = false;  ///< not on a terminal
};

struct GridCell {
  std::string text;
  base::Tone tone = base::Tone::kPlain;
  std::size_t depth = 0;     ///< levels that it is indented
  std::string hint, figure;  ///< in HTML: what a pointer shows; an SVG in front
};

struct Grid {
  std::vector<base::Table::Column> columns;
  std::vector<std::vector<GridCell>> rows;
  std::string more;        ///< what it leaves out, and how to see it
  std::size_t least = 16;  ///< columns of a terminal that the shrinking column keeps

  /// Text, which shrinks, then numbers.
  explicit Grid(std::vector<base::Table::Column> heads = {}) : columns(std::move(heads)) {}
  void add(std::vector<GridCell> row) { rows.push_back(std::move(row)); }
};

/// HTML as it is, for HTML; a picture's file, for Markdown.
struct Markup {
  std::string html, picture, alt;
};

struct Section {
  std::string title;
  bool quiet = false;   ///< a terminal does not print its title
  bool folded = false;  ///< opened by who wants it
  std::vector<std::variant<Line, Grid, Markup>> blocks;

  Section& add(Line line) { return blocks.emplace_back(std::move(line)), *this; }
  Section& add(Grid grid) { return blocks.emplace_back(std::move(grid)), *this; }
};

/// Sections without a block are left out. The first one's title is that of the whole.
struct Document {
  std::vector<Section> sections;
  std::size_t level = 1;  ///< of the first title in Markdown
  Section& begin(std::string title, bool quiet = true) {
    return sections.emplace_back(Section{std::move(title), quiet});
  }
};

/// Fit for an element or an attribute in double quotes of HTML or XML: & < > " ' as entities,
/// control characters and what is not UTF-8 made printable first (XML 1.0 has no way to write
/// them).
[[nodiscard]] std::string markup_escaped(std::string_view text);
/// For a table cell or paragraph of Markdown: what it or HTML would take for its own is escaped.
[[nodiscard]] std::string md_escaped(std::string_view text);

void render_terminal(const Document& document, const Style& style, Sink& sink);
[[nodiscard]] std::string terminal_text(const Document& document, const Style& style);
void render_markdown(const Document& document, Sink& sink);
[[nodiscard]] std::string markdown_text(const Document& document);
/// Sections as they are within <body>.
void render_html(const Document& document, Sink& sink);

}  // namespace rangescope::report
