#include "collect/native/counter_plan.hpp"

#include <regex.h>

#include <algorithm>

#include "wire/counter_plan.hpp"

namespace rangescope::collect::native {
namespace {

using base::Code;
using base::Result;
using model::RangeExpression;

namespace limits = wire::counters;

std::string encoded(std::string_view name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    out += '%';
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// POSIX extended regular expressions and RE2's differ in what they add to the common ground, and
// glibc adds more. Here everything is written in the common ground.
class Posix {
 public:
  explicit Posix(const std::string& pattern) : in_(pattern) {}

  Result<std::string> run() {
    TRY(anchors());
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        TRY(escape());
      } else if (c == '[') {
        TRY(bracket());
      } else if (c == '(' && in_.compare(at_, 2, "(?") == 0) {
        if (in_.compare(at_, 3, "(?:") != 0)
          return refuse("groups with (?", "Use plain groups: (a|b).");
        out_ += '(';
        at_ += 3;
      } else if (c == '*' || c == '+' || c == '?') {
        if (ends_with_anchor_) return refuse("a repeated ^ or $", "Leave the repetition out.");
        out_ += c;
        ++at_;
        lazy();
        continue;
      } else if (c == '{') {
        if (!repetition()) out_ += "\\{", ++at_;  // RE2 takes it literally
        continue;
      } else if (c == '.') {
        out_ += "[^\n]";  // RE2's dot is no newline
        ++at_;
      } else {
        out_ += c;
        ++at_;
      }
      ends_with_anchor_ = c == '^' || c == '$';
    }
    return out_;
  }

 private:
  tl::unexpected<base::Error> refuse(const std::string& what, std::string hint) const {
    return base::fail(Code::kUsage,
                      "counters take POSIX extended regular expressions, which have no " + what,
                      in_, std::move(hint));
  }
  // RE2 never finds anything before ^ or behind $; glibc does where a name has a line end. So they
  // belong at the ends of the pattern or of an alternative, and groups that hold them do too.
  Result<void> anchors() const {
    struct Level {
      bool starts;  // what is before the group may begin a match
      bool dollar;  // it holds a $
      bool begun;   // something precedes, in this alternative
    };
    std::vector<Level> levels = {{true, false, false}};
    const auto middle = [&] {
      return refuse("anchors within a pattern", "Put ^ first and $ last.");
    };
    bool ended = false;  // a $ was passed: nothing but ) and | may follow
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const char c = in_[i];
      Level& level = levels.back();
      if (c == '|') {
        if (levels.size() > 1 && ended) level.dollar = true;
        ended = false;
        level.begun = false;
        continue;
      }
      if (c == ')') {
        const bool dollar = ended || level.dollar;
        if (levels.size() > 1) levels.pop_back();
        levels.back().begun = true;
        ended = dollar;
        continue;
      }
      if (ended) return middle();
      if (c == '^') {
        if (!level.starts || level.begun) return middle();
        level.begun = false;
        continue;
      }
      if (c == '$') {
        ended = true;
        level.begun = true;
        continue;
      }
      if (c == '(') {
        levels.push_back({level.starts && !level.begun, false, false});
        if (in_.compare(i, 3, "(?:") == 0) i += 2;
        continue;
      }
      if (c == '\\') ++i;
      if (c == '[') {  // to its end; bracket() looks at it closely
        std::size_t end = i + 1;
        if (end < in_.size() && in_[end] == '^') ++end;
        if (end < in_.size() && in_[end] == ']') ++end;
        while (end < in_.size() && in_[end] != ']')
          end = in_.compare(end, 2, "[:") == 0 && in_.find(":]", end) != std::string::npos
                    ? in_.find(":]", end) + 2
                    : end + 1;
        i = end;
      }
      level.begun = true;
    }
    return {};
  }
  void lazy() {  // whether there is a match does not depend on which is taken
    if (at_ < in_.size() && in_[at_] == '?') ++at_;
  }
  static const char* word_class(char c) {
    switch (c) {
      case 'd': return "0-9";
      case 'w': return "0-9A-Za-z_";
      case 's': return "\t\n\f\r ";
      default: return nullptr;
    }
  }

  Result<void> escape() {
    if (at_ + 1 == in_.size()) return refuse("backslash at the end", "Write \\\\ for a backslash.");
    const char c = in_[at_ + 1];
    at_ += 2;
    const char low = static_cast<char>(c | 0x20);
    if (const char* set = word_class(low); set != nullptr) {
      out_ += c == low ? "[" : "[^";
      out_ += set;
      out_ += ']';
      return {};
    }
    constexpr std::string_view kNames = "nrtfva", kChars = "\n\r\t\f\v\a";
    if (const auto found = kNames.find(c); found != std::string_view::npos) {
      out_ += kChars[found];
      return {};
    }
    const bool plain = (c >= '0' && c <= '9') || (low >= 'a' && low <= 'z');
    if (plain) return refuse(std::string("\\") + c, "Write character classes out: [0-9A-Za-z_].");
    if (std::string_view("\\.[]()*+?{}|^$").find(c) != std::string_view::npos) out_ += '\\';
    out_ += c;
    return {};
  }

  // {n}, {n,} and {n,m} as they are; anything else is no repetition for RE2.
  bool repetition() {
    std::size_t at = at_ + 1;
    const auto digits = [&] {
      const std::size_t from = at;
      while (at < in_.size() && in_[at] >= '0' && in_[at] <= '9') ++at;
      return at > from;
    };
    if (!digits()) return false;
    if (at < in_.size() && in_[at] == ',') {
      ++at;
      (void)digits();
    }
    if (at == in_.size() || in_[at] != '}') return false;
    out_.append(in_, at_, at + 1 - at_);
    at_ = at + 1;
    lazy();
    return true;
  }

  Result<void> bracket() {
    std::size_t at = at_ + 1;
    std::string set = "[";
    if (at < in_.size() && in_[at] == '^') set += in_[at++];
    for (bool first = true; at < in_.size() && (first || in_[at] != ']'); first = false) {
      if (in_[at] == '\\') {
        const char* word = at + 1 < in_.size() ? word_class(in_[at + 1]) : nullptr;
        if (word == nullptr)
          return refuse("backslashes in brackets other than \\d, \\w and \\s",
                        "Put ] first, - last and ^ not first: []a^-].");
        set += word;
        at += 2;
      } else if (in_.compare(at, 2, "[:") == 0) {
        const std::size_t end = in_.find(":]", at);
        if (end == std::string::npos) return refuse("open [: class", "Close it: [[:digit:]].");
        const std::string name = in_.substr(at + 2, end - at - 2);
        const char* ascii = name == "digit"    ? "0-9"
                            : name == "alpha"  ? "A-Za-z"
                            : name == "alnum"  ? "0-9A-Za-z"
                            : name == "upper"  ? "A-Z"
                            : name == "lower"  ? "a-z"
                            : name == "space"  ? "\t\n\v\f\r "
                            : name == "xdigit" ? "0-9A-Fa-f"
                                               : nullptr;
        if (ascii == nullptr)
          return refuse("[:" + name + ":] that is ASCII only", "Write the characters out.");
        set += ascii;
        at = end + 2;
      } else if (in_.compare(at, 2, "[.") == 0 || in_.compare(at, 2, "[=") == 0) {
        return refuse("plain " + in_.substr(at, 2) + " in brackets",
                      "Write the dot or = before the bracket: [.[].");
      } else {
        set += in_[at++];
      }
    }
    if (at == in_.size()) return refuse("open bracket", "Close it.");
    out_ += set + "]";
    at_ = at + 1;
    return {};
  }

  const std::string& in_;
  std::string out_;
  std::size_t at_ = 0;
  bool ends_with_anchor_ = false;
};

Result<std::string> line(std::string_view key, const RangeExpression& expression) {
  const RangeExpression::Parts& parts = expression.parts();
  if (parts.elements.size() > limits::kMaxElements)
    return base::fail(
        Code::kUsage,
        "an expression of more than " + std::to_string(limits::kMaxElements) + " names",
        expression.text());
  std::string out(key);
  out += parts.kind == model::RangeKind::kStartEnd ? " s" : " p";
  out += parts.regex ? " r" : " x";
  out += std::string(" ") + (parts.bottom ? "[" : "") + (parts.top ? "]" : "") +
         (parts.bottom || parts.top ? "" : "-");
  const auto name = [&](const std::string& text) {
    return parts.regex ? posix_regex(text) : Result<std::string>(text);
  };
  const std::string domain = TRY(parts.domain ? name(*parts.domain) : Result<std::string>());
  out += parts.domain ? " =" + encoded(domain) : " -";
  for (const auto& element : parts.elements) {
    switch (element.kind) {
      case RangeExpression::Element::Kind::kAny: out += " *"; break;
      case RangeExpression::Element::Kind::kOne: out += " +"; break;
      case RangeExpression::Element::Kind::kName: {
        const std::string text = TRY(name(element.text));
        out += " n" + encoded(text);
        break;
      }
    }
  }
  return out + "\n";
}

}  // namespace

Result<std::string> posix_regex(const std::string& pattern) {
  auto translated = Posix(pattern).run();
  if (!translated) return translated;
  regex_t compiled{};
  if (regcomp(&compiled, translated->c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return base::fail(
        Code::kUsage,
        "counters take POSIX extended regular expressions, and this is not one: " + pattern,
        pattern, "Use . [] () * + ? {} | ^ $ only.");
  }
  regfree(&compiled);
  return translated;
}

Result<std::string> counter_plan(const CounterRequest& request) {
  const bool pc = request.metrics.empty() && request.pc != "off";
  if (request.ranges.include.empty() && !pc) {
    return base::fail(Code::kUsage, "counters need ranges to measure", "--metrics",
                      "Add --include 'decode' with the name of a range.");
  }
  if (request.metrics.size() > limits::kMaxMetrics)
    return base::fail(Code::kUsage, "more than " + std::to_string(limits::kMaxMetrics) + " metrics",
                      "--metrics", "Ask for fewer at a time.");
  std::string text = std::string(limits::kPlanHead) + "\n";
  std::size_t configurations = 1;
  for (std::size_t i = 0; i < request.metrics.size(); ++i) {
    if (std::count(request.splits.begin(), request.splits.end(), i) > 0)
      text += "configuration " + std::to_string(++configurations) + "\n";
    const auto groups = request.wanted_by.find(request.metrics[i]);
    text += "metric " + request.metrics[i] +
            (groups == request.wanted_by.end() ? "" : " " + groups->second) + "\n";
  }
  if (pc) text += "pc 1\n";
  text += "per " + (pc ? std::string("range") : request.per) + "\n";
  text += "rounds " + std::to_string(request.rounds) + "\n";
  text += "skip-first " + std::to_string(request.skip_first) + "\n";
  if (request.every > 1) text += "every " + std::to_string(request.every) + "\n";
  text += "trace-first " + std::to_string(request.again ? 0 : request.trace_first) + "\n";
  if (request.arm_wait_ms != CounterRequest{}.arm_wait_ms)
    text += "arm-wait " + std::to_string(request.arm_wait_ms) + "\n";
  if (request.cache != "keep") text += "cache " + request.cache + "\n";
  if (request.by_payload) text += "by payload\n";
  if (!request.resume.empty()) text += "resume " + encoded(request.resume) + "\n";
  if (request.again) text += "wait 1\n";
  if (request.ranges.include.empty()) text += "include p r [ - n.\n";
  for (const auto& [key, terms] : {std::pair{"include", &request.ranges.include},
                                   std::pair{"exclude", &request.ranges.exclude}}) {
    std::size_t expressions = 0;
    for (const model::RangeTerm& term : *terms) {
      for (const RangeExpression& expression : term.forms) {
        if (++expressions > limits::kMaxExpressions)
          return base::fail(
              Code::kUsage,
              "more than " + std::to_string(limits::kMaxExpressions) + " range expressions",
              std::string("--") + key, "Use a regular expression: regex:^layer[0-9]+$/");
        auto written = TRY(line(key, expression));
        text += written;
      }
    }
  }
  for (const auto& [key, patterns] : {std::pair{"kernel", &request.kernels.include},
                                      std::pair{"no-kernel", &request.kernels.exclude}}) {
    if (request.per == "range") break;
    if (patterns->size() > limits::kMaxKernels)
      return base::fail(Code::kUsage,
                        "more than " + std::to_string(limits::kMaxKernels) + " kernels", "--kernel",
                        "Use a regular expression: regex:^(gemm|softmax)");
    for (const model::KernelPattern& pattern : *patterns) {
      const auto name =
          TRY(pattern.is_regex() ? posix_regex(pattern.text().substr(model::kRegexPrefix.size()))
                                 : pattern.text());
      text += std::string(key) + (pattern.is_regex() ? " r " : " x ") + encoded(name) + "\n";
    }
  }
  return text;
}

}  // namespace rangescope::collect::native
