// A document for people, before layout: sections of sentences, lists and tables. It is built once
// from a report, a comparison or the doctor's findings; terminal, Markdown and HTML only render it.
//
// Texts may come from the profiled program: each renderer makes them printable and escapes its own
// syntax.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/table.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

/// A sentence: "NAME: TEXT CODE"; empty parts are left out.
struct Line {
  enum Shape : std::uint8_t {
    kPlain,
    kItem,      ///< of a list
    kNumbered,  ///< of a numbered list
    kBelow,     ///< indented below the preceding item
  };
  std::string text;
  Shape shape = kPlain;
  base::Tone tone = base::Tone::kPlain;
  std::string name;     ///< its subject
  std::string code;     ///< a command
  bool detail = false;  ///< not on a terminal
};

struct GridCell {
  std::string text;
  base::Tone tone = base::Tone::kPlain;
  std::size_t depth = 0;     ///< indentation levels
  std::string hint, figure;  ///< HTML only: a tooltip; an SVG before the text
};

struct Grid {
  std::vector<base::Table::Column> columns;
  std::vector<std::vector<GridCell>> rows;
  std::string omitted;  ///< which rows are missing, and how to see them: "3 more ranks: -f json"
  std::size_t min_shrunk_width = 16;  ///< the column that shrinks keeps this width on a terminal

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
  bool folded = false;  ///< closed until the reader opens it
  std::vector<std::variant<Line, Grid, Markup>> blocks;

  Section& add(Line line) { return blocks.emplace_back(std::move(line)), *this; }
  Section& add(Grid grid) { return blocks.emplace_back(std::move(grid)), *this; }
};

/// Renderers skip sections without blocks. The first section's title is the document's.
struct Document {
  std::vector<Section> sections;
  std::size_t level = 1;  ///< of the first title in Markdown
  Section& begin(std::string title, bool quiet = true) {
    return sections.emplace_back(Section{std::move(title), quiet});
  }
};

/// Escaped for an element or a double-quoted attribute of HTML or XML: & < > " ' become entities.
/// Control characters and bytes that are not UTF-8 are made printable first: XML 1.0 cannot write
/// them.
[[nodiscard]] std::string markup_escaped(std::string_view text);
/// Escaped for a table cell or a paragraph of Markdown, HTML included.
[[nodiscard]] std::string md_escaped(std::string_view text);

void render_terminal(const Document& document, const Style& style, Sink& sink);
[[nodiscard]] std::string terminal_text(const Document& document, const Style& style);
void render_markdown(const Document& document, Sink& sink);
[[nodiscard]] std::string markdown_text(const Document& document);
/// Writes what goes into <body>.
void render_html(const Document& document, Sink& sink);

}  // namespace rangescope::report
