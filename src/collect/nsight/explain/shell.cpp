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
      } else if (const std::size_t length = continued(at_); length > 0) {
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
        const std::size_t from = redirected() ? begin_ : at_;
        if (from == at_) {
          line_.glued = open_;
          end_word();
        }
        line_.rest = text_.substr(from);
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
  /// The length of a backslash and a line end, of Windows too: the shell takes both away, also
  /// within a word.
  [[nodiscard]] std::size_t continued(std::size_t at) const {
    const std::string_view text = text_.substr(at);
    return text.starts_with("\\\n") ? 2 : text.starts_with("\\\r\n") ? 3 : 0;
  }
  [[nodiscard]] std::size_t broken_continuation() const {
    if (text_[at_] != '\\') return 0;
    const std::size_t end = text_.find_first_not_of(" \t\r", at_ + 1);
    return end != std::string_view::npos && end > at_ + 1 && text_[end] == '\n' ? end + 1 - at_ : 0;
  }
  [[nodiscard]] bool is_operator(char c) const {
    if (std::string_view("|&;<>()").find(c) == std::string_view::npos) return false;
    if (operators_ || !open_) return true;
    return at_ + 1 >= text_.size() || blank(text_[at_ + 1]) ||
           text_[at_ + 1] == '\n';  // A;B is a word then, `A;` ends one
  }
  /// `2>`: the digits belong to the operator.
  [[nodiscard]] bool redirected() const {
    return open_ && (text_[at_] == '>' || text_[at_] == '<') &&
           base::to_uint(text_.substr(begin_, at_ - begin_));
  }

  void begin() {
    if (!open_) begin_ = at_;
    open_ = true;
  }
  void end_word() {
    if (!open_) return;
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
      if (end == std::string_view::npos) return unclosed("'");
      word_ += text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return {};
    }
    if (c == '"') return take_double();
    if (c == '\\' && at_ + 1 < text_.size()) {
      word_ += text_[at_ + 1];
      at_ += 2;
      return {};
    }
    // A variable or command anywhere, a home folder at the start.
    if (c == '$' || c == '`' || (c == '~' && first)) expands_ = true;
    word_ += c;
    ++at_;
    return {};
  }

  base::Result<void> take_double() {
    const std::size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_];
      if (const std::size_t length = continued(at_); length > 0) {
        at_ += length;
        continue;
      }
      if (c == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\\\"$`").find(text_[at_ + 1]) != std::string_view::npos) {
        word_ += text_[at_ + 1];
        at_ += 2;
        continue;
      }
      // "$/" and "$" at the end are literal: the end of a regular expression.
      if (c == '`' || (c == '$' && at_ + 1 < text_.size() && names(text_[at_ + 1])))
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

  static bool names(char c) {
    return c == '{' || c == '(' || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
  }
  [[nodiscard]] tl::unexpected<base::Error> unclosed(const char* quote) const {
    return base::fail(base::Code::kUsage, std::string("the quote ") + quote + " is not closed",
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
  return expands ? raw : base::shell_quote(text);
}

Word literal(std::string_view text) {
  return {std::string(text), base::shell_quote(text), false};
}

base::Result<ShellLine> split_shell(std::string_view text, bool operators) {
  return Splitter(text, operators).run();
}

}  // namespace rangescope::collect::command
