#include "config/override.hpp"

#include "base/text.hpp"

namespace rangescope::config {
namespace {

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_space(char c) {
  return c == ' ' || c == '\t';
}

/// Recursive descent over one value; linear in its length.
class Parser {
 public:
  Parser(std::string_view text, std::size_t at, const std::string& where) : text_(text), at_(at), where_(where) {}

  base::Result<Value> whole() {
    skip();
    if (at_ == text_.size()) return text_value("", where_);  // `key=` is the empty text, as in Hydra
    auto value = element(0);
    if (!value) return value;
    skip();
    if (at_ < text_.size() && text_[at_] == ',')
      return refuse("a comma at the top would be a sweep over several values, and there are none here",
                    "Write [a,b] for a list, or 'quotes' around a value that holds a comma.");
    if (at_ < text_.size())
      return refuse(std::string("unexpected '") + text_[at_] + "'",
                    "Quote the value: key='...' inside the shell's quotes.");
    return value;
  }

 private:
  tl::unexpected<base::Error> refuse(const std::string& what, const std::string& hint = {}) const {
    return base::fail(base::Code::kConfig,
                      what + ", at column " + std::to_string(at_ + 1) + " of " + std::string(text_), where_, hint);
  }

  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  /// `depth` 0 is the top, where only a comma ends plain text.
  base::Result<Value> element(int depth) {
    if (depth > 100) return refuse("nested more than 100 deep");
    skip();
    if (at_ == text_.size()) return refuse("a value is missing");
    const char c = text_[at_];
    if (c == '[') return list(depth);
    if (c == '{') return map(depth);
    if (c == '\'' || c == '"') return quoted();
    if (auto refused = refused_call()) return *refused;
    return plain(depth);
  }

  base::Result<Value> list(int depth) {
    Value value;
    value.kind = Kind::kList;
    value.where = where_;
    const std::size_t opened = at_++;
    skip();
    if (at_ < text_.size() && text_[at_] == ']') return ++at_, value;
    while (true) {
      auto item = element(depth + 1);
      if (!item) return item;
      value.items.push_back(std::move(*item));
      skip();
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < text_.size() && text_[at_] == ']') return ++at_, value;
      return refuse("the list opened at column " + std::to_string(opened + 1) + " is not closed",
                    "Close it with ], or quote the value when it is text that begins with a bracket: key='\"[A\"'.");
    }
  }

  base::Result<Value> map(int depth) {
    Value value;
    value.kind = Kind::kMap;
    value.where = where_;
    const std::size_t opened = at_++;
    skip();
    if (at_ < text_.size() && text_[at_] == '}') return ++at_, value;
    while (true) {
      skip();
      std::string key;
      if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
        auto name = quoted();
        if (!name) return name;
        key = name->text;
      } else {
        while (at_ < text_.size() && std::string_view(":,{}[]").find(text_[at_]) == std::string_view::npos) {
          if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
          key += text_[at_++];
        }
        key = base::trim(key);
      }
      if (key.empty()) return refuse("a key is missing in the map");
      skip();
      if (at_ == text_.size() || text_[at_] != ':') return refuse("expected ':' after the key '" + key + "'");
      ++at_;
      skip();
      if (value.find(key)) return refuse("key '" + key + "' stands twice in the map");
      Value item;
      if (at_ < text_.size() && (text_[at_] == ',' || text_[at_] == '}')) {
        item = text_value("", where_);
      } else {
        auto read = element(depth + 1);
        if (!read) return read;
        item = std::move(*read);
      }
      value.entries.push_back({key, std::move(item)});
      skip();
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < text_.size() && text_[at_] == '}') return ++at_, value;
      return refuse("the map opened at column " + std::to_string(opened + 1) + " is not closed", "Close it with }.");
    }
  }

  base::Result<Value> quoted() {
    const char quote = text_[at_];
    const std::size_t opened = at_++;
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return text_value(out, where_);
      }
      if (c == '\\') {  // only backslashes that lead up to a quote escape anything
        std::size_t run = 0;
        while (at_ + run < text_.size() && text_[at_ + run] == '\\') ++run;
        const bool before_quote = at_ + run < text_.size() && text_[at_ + run] == quote;
        if (before_quote) {
          out.append(run / 2, '\\');
          at_ += run;
          if (run % 2) {
            out += quote;
            ++at_;
          }
          continue;
        }
        out.append(run, '\\');
        at_ += run;
        continue;
      }
      out += c;
      ++at_;
    }
    at_ = opened;
    return refuse("the quote is not closed", "Close it, or escape it with a backslash.");
  }

  /// Hydra's functions make sweeps and types, and a key has its type here. Other text with a parenthesis is text.
  std::optional<base::Result<Value>> refused_call() {
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_ || end == text_.size() || text_[end] != '(') return std::nullopt;
    const std::string name(text_.substr(at_, end - at_));
    for (const char* function : {"choice", "range", "interval", "glob", "sort", "shuffle", "tag", "extend_list", "int",
                                 "float", "str", "bool", "json_str"})
      if (name == function)
        return base::Result<Value>(refuse(name + "() is a function of Hydra that has no meaning here",
                                          "Write the value itself, or [a,b] for a list."));
    return std::nullopt;
  }

  base::Result<Value> plain(int depth) {
    std::string out;
    std::size_t keep = 0;  // trailing white space goes, unless it was escaped
    bool escaped = false;
    int brackets = 0, braces = 0, round = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\\()[]{}:=, \t").find(text_[at_ + 1]) != std::string_view::npos) {
        out += text_[at_ + 1];
        at_ += 2;
        keep = out.size();
        escaped = true;
        continue;
      }
      if (c == '$' && at_ + 1 < text_.size() && text_[at_ + 1] == '{') {  // an interpolation is copied whole
        int open = 0;
        const std::size_t begin = at_;
        for (; at_ < text_.size(); ++at_) {
          if (text_[at_] == '{') ++open;
          if (text_[at_] == '}' && --open == 0) break;
        }
        if (at_ == text_.size()) {
          at_ = begin;
          return refuse("the interpolation is not closed", "Close it with }.");
        }
        ++at_;
        out += text_.substr(begin, at_ - begin);
        keep = out.size();
        continue;
      }
      if (c == ',' && brackets <= 0 && braces <= 0 && round <= 0) break;
      if (depth > 0 && ((c == ']' && brackets == 0) || (c == '}' && braces == 0) || (c == ')' && round == 0))) break;
      brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
      braces += c == '{' ? 1 : c == '}' ? -1 : 0;
      round += c == '(' ? 1 : c == ')' ? -1 : 0;
      out += c;
      ++at_;
      if (!is_space(c)) keep = out.size();
    }
    out.resize(keep);
    if (out.empty()) return refuse("a value is missing");
    return escaped ? text_value(out, where_) : plain_scalar(out, where_);
  }

  std::string_view text_;
  std::size_t at_;
  const std::string& where_;
};

bool key_char(char c) {
  return is_word(c) || c == '.' || c == '/' || c == '-' || c == '$' || c == ':';
}

}  // namespace

base::Result<Value> parse_value(std::string_view text, const std::string& where) {
  return Parser(text, 0, where).whole();
}

bool looks_like_override(std::string_view word) {
  std::size_t at = 0;
  if (word.starts_with("++"))
    at = 2;
  else if (word.starts_with('+') || word.starts_with('~'))
    at = 1;
  const bool marked = at > 0;
  if (at == word.size() || !is_word(word[at])) return false;
  const auto equal = word.find('=');
  const std::string_view key = word.substr(at, equal == std::string_view::npos ? std::string_view::npos : equal - at);
  for (const char c : key)
    if (!key_char(c) && c != '@') return false;
  return equal != std::string_view::npos || (marked && word.front() == '~');
}

base::Result<Override> parse_override(std::string_view text, const std::string& where) {
  Override result;
  result.where = where;
  std::size_t at = 0;
  if (text.starts_with("++")) {
    result.kind = Override::Kind::kForce;
    at = 2;
  } else if (text.starts_with('+')) {
    result.kind = Override::Kind::kAdd;
    at = 1;
  } else if (text.starts_with('~')) {
    result.kind = Override::Kind::kDelete;
    at = 1;
  }
  const auto equal = text.find('=', at);
  if (equal == std::string_view::npos && result.kind != Override::Kind::kDelete)
    return base::fail(base::Code::kConfig, "'" + std::string(text) + "' is no override: there is no '='", where,
                      "Write key=value, ++key=value or ~key.");
  const std::string_view key = text.substr(at, equal == std::string_view::npos ? std::string_view::npos : equal - at);
  result.key = base::trim(key);
  if (result.key.empty()) return base::fail(base::Code::kConfig, "'" + std::string(text) + "' names no key", where);
  for (const char c : result.key)
    if (!key_char(c))
      return base::fail(base::Code::kConfig,
                        "'" + result.key + "' is no key: '" + std::string(1, c) + "' cannot stand in one", where,
                        c == '@' ? "Choose a preset by its group: ncu=default, nsys=default (`config show` lists them)."
                                 : "Write names joined by dots: run.keep=5.");
  if (equal != std::string_view::npos) {
    auto value = Parser(text, equal + 1, where).whole();
    if (!value) return base::fail(std::move(value));
    result.value = std::move(*value);
  }
  return result;
}

Override set_text(std::string key, std::string_view text, std::string where) {
  Override result;
  result.kind = Override::Kind::kForce;
  result.key = std::move(key);
  result.value = plain_scalar(text, where);
  result.value->literal = true;
  result.where = std::move(where);
  return result;
}

Override set_list(std::string key, const std::vector<std::string>& items, const std::string& where) {
  Override result;
  result.kind = Override::Kind::kForce;
  result.key = std::move(key);
  result.value = list_value(items, where);
  for (Value& item : result.value->items) item.literal = true;
  result.where = where;
  return result;
}

}  // namespace rangescope::config
