#include "report/document/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "report/sink.hpp"

namespace rangescope::report {

std::string markup_escaped(std::string_view text) {
  // U+FFFE and U+FFFF are valid UTF-8, but not characters of XML.
  constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"\xEF\xBF\xBE", "\\xef\\xbf\\xbe"},
      {"\xEF\xBF\xBF", "\\xef\\xbf\\xbf"},
      {"&", "&amp;"},
      {"<", "&lt;"},
      {">", "&gt;"},
      {"\"", "&quot;"},
      {"'", "&#39;"}};
  std::string out = base::printable(text);
  for (const auto& [character, escape] : kEscapes)
    out = base::replace_all(out, character, escape);
  return out;
}

std::string md_escaped(std::string_view text) {
  std::string out;
  for (const char c : base::printable(text)) {
    if (std::string_view("\\|`*_[]<>#").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

namespace {

/// `text` as inline code; the fence is longer than any run of backticks in it.
std::string md_code(std::string_view text) {
  const std::string shown = base::printable(text);
  std::size_t longest = 0, run = 0;
  for (const char c : shown) {
    if (c != '`') {
      run = 0;
      continue;
    }
    ++run;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string pad = longest > 0 ? " " : "";
  return fence + pad + shown + pad + fence;
}

/// Levels that a terminal indents; cells of deeper levels show their level as a number.
constexpr std::size_t kMaxIndentLevels = 24;

/// Sections with something to show. A terminal shows neither details nor pictures.
std::vector<const Section*> shown_sections(const Document& document, bool on_terminal = false) {
  const auto is_shown = [&](const auto& block) {
    if (!on_terminal)
      return true;
    if (const auto* line = std::get_if<Line>(&block))
      return !line->detail;
    return std::holds_alternative<Grid>(block);
  };
  std::vector<const Section*> sections;
  for (const Section& section : document.sections) {
    if (std::ranges::any_of(section.blocks, is_shown))
      sections.push_back(&section);
  }
  return sections;
}

/// Appends `code`, after a space if `text` does not end in one.
void append_code(std::string& text, const std::string& code) {
  if (!text.empty() && !text.ends_with(' '))
    text += ' ';
  text += code;
}

class TerminalRenderer {
 public:
  TerminalRenderer(const Style& style, Sink& sink) : style_(style), sink_(sink) {}

  void section(const Section& section, bool is_first) {
    if (!is_first)
      sink_.write("\n");
    if (!section.title.empty() && !section.quiet)
      write_line(base::printable(section.title), base::Tone::kBold);
    number_ = 0;
    for (const auto& block : section.blocks) {
      if (const auto* text = std::get_if<Line>(&block); text != nullptr && !text->detail)
        line(*text);
      if (const auto* table = std::get_if<Grid>(&block))
        grid(*table);
    }
  }

 private:
  void write_line(std::string text, base::Tone tone) {
    sink_.write(base::toned(std::move(text), tone, style_.color) + "\n");
  }

  void write_wrapped(const std::string& text, std::size_t hanging_indent, base::Tone tone) {
    for (std::string& part : base::wrapped(text, style_.width, hanging_indent))
      write_line(std::move(part), tone);
  }

  void line(const Line& line) {
    std::string text;
    if (!line.name.empty())
      text = base::printable(line.name) + ": ";
    text += base::printable(line.text);
    if (!line.code.empty())
      append_code(text, base::printable(line.code));

    const bool wraps = style_.wrap && line.code.empty();  // a command stays on one line
    if (line.shape == Line::kNumbered) {
      const std::string number = std::to_string(++number_) + ". ";
      write_wrapped(number + text, number.size(), line.tone);
    } else if (line.shape == Line::kBelow) {
      line_below(line, text);
    } else if (line.shape == Line::kItem && wraps) {
      write_wrapped(text, 2, line.tone);
    } else {
      write_line(std::move(text), line.tone);
    }
  }

  /// Only below a numbered line is the text wrapped; a command never is.
  void line_below(const Line& line, const std::string& text) {
    const bool below_number = number_ > 0;
    const std::size_t indent = below_number ? 3 : 2;
    std::size_t width = 0;  // no wrapping
    if (below_number && line.code.empty() && style_.width > indent)
      width = style_.width - indent;
    const std::string margin(indent, ' ');
    for (const std::string& part : base::wrapped(text, width, indent))
      write_line(margin + part, line.tone);
  }

  void grid(const Grid& grid) {
    base::Table table(grid.columns);
    for (const auto& row : grid.rows) {
      std::vector<base::Table::Cell> cells;
      for (const GridCell& cell : row)
        cells.push_back({indented(cell), cell.tone});
      table.add(std::move(cells));
    }
    std::vector<std::string> dropped;
    sink_.write(table.render(style_.width, style_.color, &dropped, grid.min_shrunk_width));
    if (!grid.omitted.empty())
      write_line("(" + grid.omitted + ")", base::Tone::kDim);
    if (!dropped.empty())
      write_line("(no room for: " + base::join(dropped, ", ") + ")", base::Tone::kDim);
  }

  static std::string indented(const GridCell& cell) {
    if (cell.depth <= kMaxIndentLevels)
      return std::string(2 * cell.depth, ' ') + cell.text;
    return fmt::format("{:>{}}: {}", cell.depth, 2 * kMaxIndentLevels, cell.text);
  }

  const Style& style_;
  Sink& sink_;
  std::size_t number_ = 0;  ///< of the last numbered line of this section
};

/// `number`: of the last numbered line, counted on here.
std::string md_bullet(Line::Shape shape, std::size_t& number) {
  switch (shape) {
    case Line::kPlain: return "";
    case Line::kItem: return "- ";
    case Line::kNumbered: return std::to_string(++number) + ". ";
    case Line::kBelow: break;
  }
  return number > 0 ? "   - " : "  - ";
}

std::string md_line(const Line& line, std::size_t& number) {
  std::string text = md_bullet(line.shape, number);
  if (!line.name.empty()) {
    const std::string_view mark = line.shape == Line::kBelow ? "" : "**";
    text += fmt::format("{0}{1}{0}: ", mark, md_escaped(line.name));
  }
  text += md_escaped(line.text);
  if (!line.code.empty())
    append_code(text, md_code(line.code));
  text += '\n';
  if (line.shape == Line::kPlain)
    text += '\n';
  return text;
}

std::string md_grid(const Grid& grid) {
  std::string text = "|", rule = "|";
  for (const base::Table::Column& column : grid.columns) {
    text += " " + md_escaped(column.title) + " |";
    rule += column.right ? "--:|" : ":--|";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : grid.rows) {
    text += "|";
    for (const GridCell& cell : row) {
      text += " ";
      for (std::size_t i = 0; i < cell.depth; ++i)
        text += "&nbsp;&nbsp;";
      const bool is_bold = cell.tone == base::Tone::kBad || cell.tone == base::Tone::kGood;
      const std::string_view mark = is_bold ? "**" : "";
      text += fmt::format("{0}{1}{0} |", mark, md_escaped(cell.text));
    }
    text += "\n";
  }
  if (!grid.omitted.empty())
    text += "\n" + md_escaped(grid.omitted) + "\n";
  return text;
}

std::string_view html_class(base::Tone tone) {
  static constexpr std::string_view kClassByTone[] = {"", "", "dim", "less", "heavy", "more"};
  return kClassByTone[static_cast<std::size_t>(tone)];
}

/// "n": numbers, aligned right. "wide": hidden on a narrow screen.
std::string html_column_classes(const base::Table::Column& column) {
  constexpr int kDroppedEarly = 3;  // importance
  std::string classes = column.right ? "n" : "";
  if (column.importance > 0 && column.importance <= kDroppedEarly)
    classes += " wide";
  return classes;
}

/// `title` is its name for assistive technology.
void html_grid(const Grid& grid, const std::string& title, Sink& sink) {
  std::vector<std::string> classes;
  for (const base::Table::Column& column : grid.columns)
    classes.push_back(html_column_classes(column));
  std::string label = "table";
  if (!title.empty())
    label += " of " + title;
  sink.write("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" +
             markup_escaped(label) + "\"><table><thead><tr>");
  for (std::size_t i = 0; i < grid.columns.size(); ++i)
    sink.write(fmt::format("<th scope=\"col\" class=\"{}\">{}</th>",
                           classes[i],
                           markup_escaped(grid.columns[i].title)));
  sink.write("</tr></thead><tbody>");
  for (const auto& row : grid.rows) {
    sink.write("<tr>");
    for (std::size_t i = 0; i < row.size(); ++i) {
      const GridCell& cell = row[i];
      sink.write(fmt::format("<td class=\"{} {}\" title=\"{}\">{}{}</td>",
                             classes[i],
                             html_class(cell.tone),
                             markup_escaped(cell.hint),
                             cell.figure,
                             markup_escaped(cell.text)));
    }
    sink.write("</tr>\n");
  }
  sink.write("</tbody></table></div>");
  if (!grid.omitted.empty())
    sink.write("<p class=\"dim\">" + markup_escaped(grid.omitted) + "</p>");
}

void html_line(const Line& line, Sink& sink) {
  const std::string_view element = line.shape == Line::kPlain ? "p" : "li";
  std::string text;
  if (!line.name.empty())
    text = "<b>" + markup_escaped(line.name) + "</b>: ";
  text += markup_escaped(line.text);
  if (!line.code.empty())
    text += " <code>" + markup_escaped(line.code) + "</code>";
  sink.write(fmt::format("<{0} class=\"{1}\">{2}</{0}>", element, html_class(line.tone), text));
}

}  // namespace

void render_terminal(const Document& document, const Style& style, Sink& sink) {
  TerminalRenderer terminal(style, sink);
  bool is_first = true;
  for (const Section* section : shown_sections(document, true))
    terminal.section(*section, std::exchange(is_first, false));
}

void render_markdown(const Document& document, Sink& sink) {
  bool is_first = true;
  for (const Section* section : shown_sections(document)) {
    const std::string title = md_escaped(section->title);
    const std::size_t level = is_first ? document.level : document.level + 1;
    const std::string heading = std::string(level, '#') + " " + title + "\n\n";
    if (section->folded) {
      sink.write("\n<details><summary>" + title + "</summary>\n\n");
    } else if (!section->title.empty()) {
      if (!is_first)
        sink.write("\n");
      sink.write(heading);
    }
    is_first = false;
    std::size_t number = 0;
    bool after_table = false;
    for (const auto& block : section->blocks) {
      if (std::exchange(after_table, std::holds_alternative<Grid>(block)))
        sink.write("\n");
      if (const auto* line = std::get_if<Line>(&block))
        sink.write(md_line(*line, number));
      if (const auto* grid = std::get_if<Grid>(&block))
        sink.write(md_grid(*grid));
      const auto* markup = std::get_if<Markup>(&block);
      if (markup != nullptr && !markup->picture.empty())
        sink.write("![" + md_escaped(markup->alt) + "](" + markup->picture + ")\n\n");
    }
    if (section->folded)
      sink.write("\n</details>\n");
  }
}

void render_html(const Document& document, Sink& sink) {
  bool is_first = true;
  for (const Section* section : shown_sections(document)) {
    const char* heading = is_first ? "h1" : "h2";
    is_first = false;
    if (section->folded)
      sink.write("<details><summary>" + markup_escaped(section->title) + "</summary>");
    else if (!section->title.empty())
      sink.write(fmt::format("<{0}>{1}</{0}>", heading, markup_escaped(section->title)));
    bool in_list = false;
    for (const auto& block : section->blocks) {
      const auto* line = std::get_if<Line>(&block);
      const bool is_item = line != nullptr && line->shape != Line::kPlain;
      if (is_item != in_list)
        sink.write(is_item ? "<ul>" : "</ul>");
      in_list = is_item;
      if (line != nullptr)
        html_line(*line, sink);
      if (const auto* grid = std::get_if<Grid>(&block))
        html_grid(*grid, section->title, sink);
      if (const auto* markup = std::get_if<Markup>(&block))
        sink.write(markup->html);
    }
    if (in_list)
      sink.write("</ul>");
    if (section->folded)
      sink.write("</details>");
  }
}

std::string terminal_text(const Document& document, const Style& style) {
  StringSink sink;
  render_terminal(document, style, sink);
  return sink.text();
}

std::string markdown_text(const Document& document) {
  StringSink sink;
  render_markdown(document, sink);
  return sink.text();
}

}  // namespace rangescope::report
