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

/// Percent-encoded.
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

// Translates a regular expression of RE2 into what RE2, POSIX extended expressions and glibc have
// in common.
class PosixTranslator {
 public:
  explicit PosixTranslator(const std::string& pattern) : in_(pattern) {}

  Result<std::string> run() {
    TRY(anchors());
    while (next_ < in_.size()) {
      const char c = in_[next_];
      const bool is_repetition = c == '*' || c == '+' || c == '?' || c == '{';
      if (is_repetition) {
        TRY(repeat(c));
        continue;
      }
      TRY(element(c));
      ends_with_anchor_ = c == '^' || c == '$';
    }
    return out_;
  }

 private:
  /// A repetition of the element before it.
  Result<void> repeat(char c) {
    if (c == '{') {
      if (!repetition()) {  // RE2 takes it literally
        out_ += "\\{";
        ++next_;
      }
      return {};
    }
    if (ends_with_anchor_)
      return refuse("a repeated ^ or $", "Leave the repetition out.");
    out_ += c;
    ++next_;
    skip_lazy();
    return {};
  }

  Result<void> element(char c) {
    if (c == '\\')
      return escape();
    if (c == '[')
      return bracket();
    if (in_.compare(next_, 2, "(?") == 0) {
      if (in_.compare(next_, 3, "(?:") != 0)
        return refuse("groups with (?", "Use plain groups: (a|b).");
      out_ += '(';
      next_ += 3;
      return {};
    }
    if (c == '.')
      out_ += "[^\n]";  // RE2's dot is no newline
    else
      out_ += c;
    ++next_;
    return {};
  }

  tl::unexpected<base::Error> refuse(const std::string& what, std::string hint) const {
    return base::fail(Code::kUsage,
                      "counters take POSIX extended regular expressions, which have no " + what,
                      in_,
                      std::move(hint));
  }
  // RE2 never matches anything before ^ or after $; glibc does if a name has a line end. So anchors
  // have to be at the ends of the pattern or of an alternative, also groups that contain them.
  Result<void> anchors() const {
    struct Level {
      bool may_start;     // nothing precedes the group
      bool has_dollar;    // it contains a $
      bool has_contents;  // something precedes in this alternative
    };
    std::vector<Level> levels = {{true, false, false}};
    const auto refuse_inner = [&] {
      return refuse("anchors within a pattern", "Put ^ first and $ last.");
    };
    bool is_ended = false;  // after a $ only ) and | may follow
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const char c = in_[i];
      Level& level = levels.back();
      if (c == '|') {
        if (levels.size() > 1 && is_ended)
          level.has_dollar = true;
        is_ended = false;
        level.has_contents = false;
        continue;
      }
      if (c == ')') {
        is_ended = is_ended || level.has_dollar;
        if (levels.size() > 1)
          levels.pop_back();
        levels.back().has_contents = true;
        continue;
      }
      if (is_ended)
        return refuse_inner();
      if (c == '^') {
        if (!level.may_start || level.has_contents)
          return refuse_inner();
        continue;
      }
      if (c == '(') {
        levels.push_back({level.may_start && !level.has_contents, false, false});
        if (in_.compare(i, 3, "(?:") == 0)
          i += 2;
        continue;
      }
      level.has_contents = true;
      if (c == '$')
        is_ended = true;
      if (c == '\\')
        ++i;
      if (c == '[')
        i = bracket_end(i);
    }
    return {};
  }
  /// The index of the ] that ends the bracket expression; bracket() checks its contents.
  [[nodiscard]] std::size_t bracket_end(std::size_t begin) const {
    std::size_t end = begin + 1;
    if (end < in_.size() && in_[end] == '^')
      ++end;
    if (end < in_.size() && in_[end] == ']')
      ++end;
    while (end < in_.size() && in_[end] != ']') {
      std::size_t class_end = std::string::npos;
      if (in_.compare(end, 2, "[:") == 0)
        class_end = in_.find(":]", end);
      if (class_end == std::string::npos)
        ++end;
      else
        end = class_end + 2;
    }
    return end;
  }
  /// Skips the ? of a lazy repetition, which does not change whether there is a match.
  void skip_lazy() {
    if (next_ < in_.size() && in_[next_] == '?')
      ++next_;
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
    if (next_ + 1 == in_.size())
      return refuse("backslash at the end", "Write \\\\ for a backslash.");
    const char c = in_[next_ + 1];
    next_ += 2;
    const char low = static_cast<char>(c | 0x20);
    if (const char* set = word_class(low); set != nullptr) {
      const bool is_negated = c != low;
      out_ += '[';
      if (is_negated)
        out_ += '^';
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
    if (plain)
      return refuse(std::string("\\") + c, "Write character classes out: [0-9A-Za-z_].");
    if (std::string_view("\\.[]()*+?{}|^$").find(c) != std::string_view::npos)
      out_ += '\\';
    out_ += c;
    return {};
  }

  /// Copies {n}, {n,} or {n,m}; false for anything else, which RE2 takes literally.
  bool repetition() {
    std::size_t end = next_ + 1;
    const auto skip_digits = [&] {
      const std::size_t first = end;
      while (end < in_.size() && in_[end] >= '0' && in_[end] <= '9')
        ++end;
      return end > first;
    };
    if (!skip_digits())
      return false;
    if (end < in_.size() && in_[end] == ',') {
      ++end;
      (void)skip_digits();
    }
    if (end == in_.size() || in_[end] != '}')
      return false;
    out_.append(in_, next_, end + 1 - next_);
    next_ = end + 1;
    skip_lazy();
    return true;
  }

  /// The characters of [:digit:] and others, in ASCII; null for an unknown class.
  static const char* ascii_class(std::string_view name) {
    static constexpr std::pair<std::string_view, const char*> kClasses[] = {
        {"digit", "0-9"},
        {"alpha", "A-Za-z"},
        {"alnum", "0-9A-Za-z"},
        {"upper", "A-Z"},
        {"lower", "a-z"},
        {"space", "\t\n\v\f\r "},
        {"xdigit", "0-9A-Fa-f"}};
    for (const auto& [class_name, characters] : kClasses)
      if (class_name == name)
        return characters;
    return nullptr;
  }

  Result<void> bracket() {
    std::size_t i = next_ + 1;
    std::string set = "[";
    if (i < in_.size() && in_[i] == '^')
      set += in_[i++];
    for (bool first = true; i < in_.size() && (first || in_[i] != ']'); first = false) {
      if (in_[i] == '\\') {
        const char* characters = nullptr;
        if (i + 1 < in_.size())
          characters = word_class(in_[i + 1]);
        if (characters == nullptr)
          return refuse("backslashes in brackets other than \\d, \\w and \\s",
                        "Put ] first, - last and ^ not first: []a^-].");
        set += characters;
        i += 2;
      } else if (in_.compare(i, 2, "[:") == 0) {
        const std::size_t end = in_.find(":]", i);
        if (end == std::string::npos)
          return refuse("open [: class", "Close it: [[:digit:]].");
        const std::string name = in_.substr(i + 2, end - i - 2);
        const char* ascii = ascii_class(name);
        if (ascii == nullptr)
          return refuse("[:" + name + ":] that is ASCII only", "Write the characters out.");
        set += ascii;
        i = end + 2;
      } else if (in_.compare(i, 2, "[.") == 0 || in_.compare(i, 2, "[=") == 0) {
        return refuse("plain " + in_.substr(i, 2) + " in brackets",
                      "Write the dot or = before the bracket: [.[].");
      } else {
        set += in_[i++];
      }
    }
    if (i == in_.size())
      return refuse("open bracket", "Close it.");
    out_ += set + "]";
    next_ = i + 1;
    return {};
  }

  const std::string& in_;
  std::string out_;
  std::size_t next_ = 0;
  bool ends_with_anchor_ = false;
};

/// "include p x - - ndecode": a line of the plan for an expression.
Result<std::string> expression_line(std::string_view key, const RangeExpression& expression) {
  const RangeExpression::Parts& parts = expression.parts();
  if (parts.elements.size() > limits::kMaxElements)
    return base::fail(
        Code::kUsage,
        "an expression of more than " + std::to_string(limits::kMaxElements) + " names",
        expression.text());
  std::string out(key);
  out += parts.kind == model::RangeKind::kStartEnd ? " s" : " p";
  out += parts.regex ? " r" : " x";
  out += ' ';
  if (parts.bottom)
    out += '[';
  if (parts.top)
    out += ']';
  if (!parts.bottom && !parts.top)
    out += '-';
  const auto name = [&](const std::string& text) -> Result<std::string> {
    if (parts.regex)
      return posix_regex(text);
    return text;
  };
  if (parts.domain) {
    const std::string domain = TRY(name(*parts.domain));
    out += " =" + encoded(domain);
  } else {
    out += " -";
  }
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
  auto translated = PosixTranslator(pattern).run();
  if (!translated)
    return translated;
  regex_t compiled{};
  if (regcomp(&compiled, translated->c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return base::fail(
        Code::kUsage,
        "counters take POSIX extended regular expressions, and this is not one: " + pattern,
        pattern,
        "Use . [] () * + ? {} | ^ $ only.");
  }
  regfree(&compiled);
  return translated;
}

namespace {

base::Error too_many(std::size_t limit,
                     const std::string& what,
                     const std::string& option,
                     const std::string& hint) {
  return {Code::kUsage, "more than " + std::to_string(limit) + " " + what, option, hint};
}

std::string metric_lines(const CounterRequest& request) {
  std::string text;
  std::size_t configurations = 1;
  for (std::size_t i = 0; i < request.metrics.size(); ++i) {
    if (std::ranges::count(request.splits, i) > 0)
      text += "configuration " + std::to_string(++configurations) + "\n";
    const std::string& metric = request.metrics[i];
    text += "metric " + metric;
    const auto groups = request.wanted_by.find(metric);
    if (groups != request.wanted_by.end())
      text += " " + groups->second;
    text += "\n";
  }
  return text;
}

std::string setting_lines(const CounterRequest& request, bool samples_pc) {
  std::string text;
  if (samples_pc)
    text += "pc 1\n";
  std::string per = request.per;
  if (samples_pc)
    per = "range";
  text += "per " + per + "\n";
  text += "rounds " + std::to_string(request.rounds) + "\n";
  text += "skip-first " + std::to_string(request.skip_first) + "\n";
  if (request.every > 1)
    text += "every " + std::to_string(request.every) + "\n";
  const std::uint32_t trace_first = request.is_relaunch ? 0 : request.trace_first;
  text += "trace-first " + std::to_string(trace_first) + "\n";
  if (request.arm_wait_ms != CounterRequest{}.arm_wait_ms)
    text += "arm-wait " + std::to_string(request.arm_wait_ms) + "\n";
  if (request.cache != "keep")
    text += "cache " + request.cache + "\n";
  if (request.by_payload)
    text += "by payload\n";
  if (!request.resume.empty())
    text += "resume " + encoded(request.resume) + "\n";
  if (request.is_relaunch)
    text += "wait 1\n";
  return text;
}

Result<std::string> range_lines(const std::string& key,
                                const std::vector<model::RangeTerm>& terms) {
  std::string text;
  std::size_t expressions = 0;
  for (const model::RangeTerm& term : terms) {
    for (const RangeExpression& expression : term.forms) {
      if (++expressions > limits::kMaxExpressions)
        return tl::make_unexpected(too_many(limits::kMaxExpressions,
                                            "range expressions",
                                            "--" + key,
                                            "Use a regular expression: regex:^layer[0-9]+$/"));
      text += TRY(expression_line(key, expression));
    }
  }
  return text;
}

Result<std::string> kernel_lines(const std::string& key,
                                 const std::vector<model::KernelPattern>& patterns) {
  if (patterns.size() > limits::kMaxKernels)
    return tl::make_unexpected(too_many(limits::kMaxKernels,
                                        "kernels",
                                        "--kernel",
                                        "Use a regular expression: regex:^(gemm|softmax)"));
  std::string text;
  for (const model::KernelPattern& pattern : patterns) {
    if (pattern.is_regex()) {
      const std::string regex = pattern.text().substr(model::kRegexPrefix.size());
      const std::string translated = TRY(posix_regex(regex));
      text += key + " r " + encoded(translated) + "\n";
    } else {
      text += key + " x " + encoded(pattern.text()) + "\n";
    }
  }
  return text;
}

}  // namespace

Result<std::string> counter_plan(const CounterRequest& request) {
  const bool samples_pc = request.metrics.empty() && request.pc != "off";
  if (request.ranges.include.empty() && !samples_pc) {
    return base::fail(Code::kUsage,
                      "counters need ranges to measure",
                      "--metrics",
                      "Add --include 'decode' with the name of a range.");
  }
  if (request.metrics.size() > limits::kMaxMetrics)
    return tl::make_unexpected(
        too_many(limits::kMaxMetrics, "metrics", "--metrics", "Ask for fewer at a time."));
  std::string text = std::string(limits::kPlanHead) + "\n";
  text += metric_lines(request);
  text += setting_lines(request, samples_pc);
  if (request.ranges.include.empty())
    text += "include p r [ - n.\n";
  text += TRY(range_lines("include", request.ranges.include));
  text += TRY(range_lines("exclude", request.ranges.exclude));
  if (request.per != "range") {
    text += TRY(kernel_lines("kernel", request.kernels.include));
    text += TRY(kernel_lines("no-kernel", request.kernels.exclude));
  }
  return text;
}

}  // namespace rangescope::collect::native
