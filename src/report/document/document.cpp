#include "report/document/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "report/sink.hpp"

namespace rangescope::report {

std::string markup_escaped(std::string_view text) {
  // U+FFFE and U+FFFF are UTF-8, but no characters of XML.
  constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"\xEF\xBF\xBE", "\\xef\\xbf\\xbe"},
      {"\xEF\xBF\xBF", "\\xef\\xbf\\xbf"},
      {"&", "&amp;"},
      {"<", "&lt;"},
      {">", "&gt;"},
      {"\"", "&quot;"},
      {"'", "&#39;"}};
  std::string out = base::printable(text);
  for (const auto& [from, to] : kEscapes) out = base::replace_all(out, from, to);
  return out;
}

std::string md_escaped(std::string_view text) {
  std::string out;
  for (const char c : base::printable(text)) {
    if (std::string_view("\\|`*_[]<>#").find(c) != std::string_view::npos) out += '\\';
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
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string pad = longest > 0 ? " " : "";
  return fence + pad + shown + pad + fence;
}

constexpr std::size_t kDeepest =
    24;  // levels that a terminal indents; deeper ones show their level as a number

std::vector<const Section*> filled(const Document& document, bool terminal = false) {
  const auto shown = [&](const auto& block) {
    const auto* line = std::get_if<Line>(&block);
    return !terminal || (line != nullptr ? !line->detail : std::holds_alternative<Grid>(block));
  };
  std::vector<const Section*> list;
  for (const Section& section : document.sections)
    if (std::any_of(section.blocks.begin(), section.blocks.end(), shown)) list.push_back(&section);
  return list;
}

class Terminal {
 public:
  Terminal(const Style& style, Sink& sink) : style_(style), sink_(sink) {}

  void section(const Section& section, bool first) {
    if (!first) sink_.write("\n");
    if (!section.title.empty() && !section.quiet)
      toned(base::printable(section.title), base::Tone::kBold);
    number_ = 0;
    for (const auto& block : section.blocks) {
      if (const auto* one = std::get_if<Line>(&block); one != nullptr && !one->detail) line(*one);
      if (const auto* one = std::get_if<Grid>(&block)) grid(*one);
    }
  }

 private:
  void toned(std::string text, base::Tone tone) {
    sink_.write(base::toned(std::move(text), tone, style_.color) + "\n");
  }

  void line(const Line& line) {
    std::string text = line.name.empty() ? "" : base::printable(line.name) + ": ";
    text += base::printable(line.text);
    if (!line.code.empty())
      text += (text.empty() || text.ends_with(' ') ? "" : " ") + base::printable(line.code);
    if (line.shape == Line::kNumbered) {
      const std::string number = std::to_string(++number_) + ". ";
      for (std::string& one : base::wrapped(number + text, style_.width, number.size()))
        toned(std::move(one), line.tone);
    } else if (line.shape == Line::kBelow) {
      const std::size_t indent = number_ > 0 ? 3 : 2;
      const std::size_t width =
          line.code.empty() && style_.width > indent ? style_.width - indent : 0;
      for (std::string& one : base::wrapped(text, number_ > 0 ? width : 0, indent))
        toned(std::string(indent, ' ') + one, line.tone);
    } else if (line.shape == Line::kItem && style_.wrap &&
               line.code.empty()) {  // a command stays whole
      for (std::string& one : base::wrapped(text, style_.width, 2))
        toned(std::move(one), line.tone);
    } else {
      toned(std::move(text), line.tone);
    }
  }

  void grid(const Grid& grid) {
    base::Table table(grid.columns);
    for (const auto& row : grid.rows) {
      std::vector<base::Table::Cell> cells;
      for (const GridCell& cell : row)
        cells.push_back({cell.depth <= kDeepest
                             ? std::string(2 * cell.depth, ' ') + cell.text
                             : fmt::format("{:>{}}: {}", cell.depth, 2 * kDeepest, cell.text),
                         cell.tone});
      table.add(std::move(cells));
    }
    std::vector<std::string> dropped;
    sink_.write(table.render(style_.width, style_.color, &dropped, grid.least));
    if (!grid.more.empty()) toned("(" + grid.more + ")", base::Tone::kDim);
    if (!dropped.empty())
      toned("(no room for: " + base::join(dropped, ", ") + ")", base::Tone::kDim);
  }

  const Style& style_;
  Sink& sink_;
  std::size_t number_ = 0;
};

std::string md_line(const Line& line, std::size_t& number) {
  std::string text = line.shape == Line::kItem       ? "- "
                     : line.shape == Line::kNumbered ? std::to_string(++number) + ". "
                     : line.shape == Line::kBelow    ? (number > 0 ? "   - " : "  - ")
                                                     : "";
  if (!line.name.empty())
    text += line.shape == Line::kBelow ? md_escaped(line.name) + ": "
                                       : "**" + md_escaped(line.name) + "**: ";
  text += md_escaped(line.text);
  if (!line.code.empty())
    text += (text.empty() || text.ends_with(' ') ? "" : " ") + md_code(line.code);
  return text + (line.shape == Line::kPlain ? "\n\n" : "\n");
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
      for (std::size_t i = 0; i < cell.depth; ++i) text += "&nbsp;&nbsp;";
      const bool loud = cell.tone == base::Tone::kBad || cell.tone == base::Tone::kGood;
      text += (loud ? "**" : "") + md_escaped(cell.text) + (loud ? "**" : "") + " |";
    }
    text += "\n";
  }
  return text + (grid.more.empty() ? "" : "\n" + md_escaped(grid.more) + "\n");
}

constexpr std::string_view kHtmlClasses[] = {"",     "",      "dim",
                                             "less", "heavy", "more"};  // by base::Tone
std::string_view html_class(base::Tone tone) {
  return kHtmlClasses[static_cast<std::size_t>(tone)];
}

/// `title`: what assistive technology calls it.
void html_grid(const Grid& grid, const std::string& title, Sink& sink) {
  // What gives way on a narrow screen: what a terminal leaves out early.
  const auto style = [&](std::size_t i) {
    const base::Table::Column& column = grid.columns[i];
    return std::string(column.right ? "n" : "") +
           (column.importance > 0 && column.importance <= 3 ? " wide" : "");
  };
  const std::string label = title.empty() ? "table" : "table of " + title;
  sink.write("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" +
             markup_escaped(label) + "\"><table><thead><tr>");
  for (std::size_t i = 0; i < grid.columns.size(); ++i)
    sink.write(fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", style(i),
                           markup_escaped(grid.columns[i].title)));
  sink.write("</tr></thead><tbody>");
  for (const auto& row : grid.rows) {
    sink.write("<tr>");
    for (std::size_t i = 0; i < row.size(); ++i)
      sink.write(fmt::format("<td class=\"{} {}\" title=\"{}\">{}{}</td>", style(i),
                             html_class(row[i].tone), markup_escaped(row[i].hint), row[i].figure,
                             markup_escaped(row[i].text)));
    sink.write("</tr>\n");
  }
  sink.write("</tbody></table></div>");
  if (!grid.more.empty()) sink.write("<p class=\"dim\">" + markup_escaped(grid.more) + "</p>");
}

}  // namespace

void render_terminal(const Document& document, const Style& style, Sink& sink) {
  Terminal terminal(style, sink);
  bool first = true;
  for (const Section* section : filled(document, true))
    terminal.section(*section, std::exchange(first, false));
}

void render_markdown(const Document& document, Sink& sink) {
  bool first = true;
  for (const Section* section : filled(document)) {
    if (section->folded) {
      sink.write("\n<details><summary>" + md_escaped(section->title) + "</summary>\n\n");
    } else if (!section->title.empty()) {
      sink.write((first ? "" : "\n") + std::string(document.level + (first ? 0 : 1), '#') + " " +
                 md_escaped(section->title) + "\n\n");
    }
    first = false;
    std::size_t number = 0;
    bool table = false;
    for (const auto& block : section->blocks) {
      if (std::exchange(table, std::holds_alternative<Grid>(block))) sink.write("\n");
      if (const auto* one = std::get_if<Line>(&block)) sink.write(md_line(*one, number));
      if (const auto* one = std::get_if<Grid>(&block)) sink.write(md_grid(*one));
      if (const auto* one = std::get_if<Markup>(&block); one != nullptr && !one->picture.empty())
        sink.write("![" + md_escaped(one->alt) + "](" + one->picture + ")\n\n");
    }
    if (section->folded) sink.write("\n</details>\n");
  }
}

void render_html(const Document& document, Sink& sink) {
  bool first = true;
  for (const Section* section : filled(document)) {
    const char* level = std::exchange(first, false) ? "h1" : "h2";
    if (section->folded)
      sink.write("<details><summary>" + markup_escaped(section->title) + "</summary>");
    else if (!section->title.empty())
      sink.write(fmt::format("<{0}>{1}</{0}>", level, markup_escaped(section->title)));
    bool list = false;
    for (const auto& block : section->blocks) {
      const auto* line = std::get_if<Line>(&block);
      const bool item = line != nullptr && line->shape != Line::kPlain;
      if (item != list) sink.write(item ? "<ul>" : "</ul>");
      list = item;
      if (line != nullptr) {
        const std::string name =
            line->name.empty() ? "" : "<b>" + markup_escaped(line->name) + "</b>: ";
        const std::string code =
            line->code.empty() ? "" : " <code>" + markup_escaped(line->code) + "</code>";
        sink.write(fmt::format("<{0} class=\"{1}\">{2}{3}{4}</{0}>", item ? "li" : "p",
                               html_class(line->tone), name, markup_escaped(line->text), code));
      }
      if (const auto* one = std::get_if<Grid>(&block)) html_grid(*one, section->title, sink);
      if (const auto* one = std::get_if<Markup>(&block)) sink.write(one->html);
    }
    if (list) sink.write("</ul>");
    if (section->folded) sink.write("</details>");
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
