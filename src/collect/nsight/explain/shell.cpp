#include "collect/nsight/explain/shell.hpp"

#include "base/text.hpp"

namespace rangescope::collect::command {
namespace {

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

class Splitter {
 public:
  Splitter(std::string_view text, bool operators) : text_(text), operators_(operators) {}

  base::Result<ShellLine> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (blank(c)) {
        end_word();
        ++at_;
      } else if (const std::size_t length = continuation_length(at_); length > 0) {
        at_ += length;
      } else if (const std::size_t gap = broken_continuation(); gap > 0) {
        end_word();
        line_.blank_after_backslash = true;
        at_ += gap;
      } else if (c == '\n') {
        end_word();
        if (!line_.words.empty()) {
          line_.rest = text_.substr(at_);
          break;
        }
        ++at_;
      } else if (is_operator(c)) {
        if (is_redirection()) {
          line_.rest = text_.substr(begin_);
        } else {
          line_.glued = open_;
          end_word();
          line_.rest = text_.substr(at_);
        }
        open_ = false;
        break;
      } else if (c == '#' && !open_) {
        line_.rest = text_.substr(at_);
        break;
      } else {
        TRY(take(c));
      }
    }
    end_word();
    return std::move(line_);
  }

 private:
  /// The length of a backslash with a line end, also of Windows; 0 without one. The shell removes
  /// them, also within a word.
  [[nodiscard]] std::size_t continuation_length(std::size_t position) const {
    for (const std::string_view continuation : {"\\\n", "\\\r\n"})
      if (text_.substr(position).starts_with(continuation))
        return continuation.size();
    return 0;
  }
  /// The length of a backslash with blanks and a line end; 0 without one.
  [[nodiscard]] std::size_t broken_continuation() const {
    if (text_[at_] != '\\')
      return 0;
    const std::size_t end = text_.find_first_not_of(" \t\r", at_ + 1);
    if (end == std::string_view::npos || end == at_ + 1)
      return 0;
    if (text_[end] != '\n')
      return 0;
    return end + 1 - at_;
  }
  [[nodiscard]] bool is_operator(char c) const {
    if (std::string_view("|&;<>()").find(c) == std::string_view::npos)
      return false;
    if (operators_ || !open_)
      return true;
    // Within a word: A;B is a word, `A;` ends one.
    if (at_ + 1 >= text_.size())
      return true;
    const char next = text_[at_ + 1];
    return blank(next) || next == '\n';
  }
  /// At the operator of `2>`, whose digits belong to it.
  [[nodiscard]] bool is_redirection() const {
    return open_ && (text_[at_] == '>' || text_[at_] == '<') &&
           base::to_uint(text_.substr(begin_, at_ - begin_));
  }

  void begin() {
    if (!open_)
      begin_ = at_;
    open_ = true;
  }
  void end_word() {
    if (!open_)
      return;
    Word word;
    word.text = std::move(word_);
    word.raw = base::replace_all(text_.substr(begin_, at_ - begin_), "\\\n", "");
    word.expands = expands_;
    line_.words.push_back(std::move(word));
    word_.clear();
    open_ = expands_ = false;
  }

  base::Result<void> take(char c) {
    const bool first = !open_;
    begin();
    if (c == '\'') {
      const auto end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos)
        return unclosed("'");
      word_ += text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return {};
    }
    if (c == '"')
      return take_double();
    if (c == '\\' && at_ + 1 < text_.size()) {
      word_ += text_[at_ + 1];
      at_ += 2;
      return {};
    }
    // A variable or command anywhere, a home folder at the start.
    if (c == '$' || c == '`' || (c == '~' && first))
      expands_ = true;
    word_ += c;
    ++at_;
    return {};
  }

  base::Result<void> take_double() {
    const std::size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_];
      if (const std::size_t length = continuation_length(at_); length > 0) {
        at_ += length;
        continue;
      }
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      const bool is_escape = c == '\\' && next != '\0' &&
                             std::string_view("\\\"$`").find(next) != std::string_view::npos;
      if (is_escape) {
        word_ += text_[at_ + 1];
        at_ += 2;
        continue;
      }
      // "$/" and "$" at the end are literal: the end of a regular expression.
      const bool is_variable = c == '$' && starts_variable(next);
      if (c == '`' || is_variable)
        expands_ = true;
      word_ += c;
      ++at_;
    }
    if (at_ >= text_.size()) {
      at_ = start;
      return unclosed("\"");
    }
    ++at_;
    return {};
  }

  static bool starts_variable(char c) {
    return c == '{' || c == '(' || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
  }
  [[nodiscard]] tl::unexpected<base::Error> unclosed(const char* quote) const {
    return base::fail(base::Code::kUsage,
                      std::string("the quote ") + quote + " is not closed",
                      "character " + std::to_string(at_ + 1),
                      "Close it, or escape it with a backslash");
  }

  std::string_view text_;
  const bool operators_;
  std::size_t at_ = 0, begin_ = 0;
  std::string word_;
  bool open_ = false, expands_ = false;
  ShellLine line_;
};

}  // namespace

std::string Word::shown() const {
  if (expands)
    return raw;
  return base::shell_quote(text);
}

Word literal(std::string_view text) {
  return {std::string(text), base::shell_quote(text), false};
}

base::Result<ShellLine> split_shell(std::string_view text, bool operators) {
  return Splitter(text, operators).run();
}

}  // namespace rangescope::collect::command
