#include "collect/native/counter_plan.hpp"

#include <regex.h>

#include "base/text.hpp"

namespace rangescope::collect::native {
namespace {

using base::Code;
using base::Result;
using model::RangeExpression;

constexpr std::size_t kMostMetrics = 512, kMostExpressions = 64, kMostElements = 16;

std::string encoded(std::string_view name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
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

bool posix_understands(const std::string& pattern) {
  regex_t compiled{};
  const bool good = regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) == 0;
  if (good) regfree(&compiled);
  return good && pattern.find("(?") == std::string::npos && pattern.find("\\d") == std::string::npos;
}

Result<std::string> line(std::string_view key, const std::string& text) {
  auto parsed = RangeExpression::parse(text);
  if (!parsed) return base::fail(std::move(parsed));
  const RangeExpression::Parts& parts = parsed->parts();
  if (parts.elements.size() > kMostElements)
    return base::fail(Code::kUsage, "an expression of more than 16 names", text);
  std::string out(key);
  out += parts.kind == model::RangeKind::kStartEnd ? " s" : " p";
  out += parts.regex ? " r" : " x";
  out += std::string(" ") + (parts.bottom ? "[" : "") + (parts.top ? "]" : "") + (parts.bottom || parts.top ? "" : "-");
  out += parts.domain ? " =" + encoded(*parts.domain) : " -";
  for (const auto& element : parts.elements) {
    switch (element.kind) {
      case RangeExpression::Element::Kind::kAny: out += " *"; break;
      case RangeExpression::Element::Kind::kOne: out += " +"; break;
      case RangeExpression::Element::Kind::kName:
        if (parts.regex && !posix_understands(element.text)) {
          return base::fail(Code::kUsage,
                            "counters take POSIX extended regular expressions, and this is none: " + element.text, text,
                            "Write character classes out: [0-9] for \\d, and no (?...) groups.");
        }
        out += " n" + encoded(element.text);
        break;
    }
  }
  return out + "\n";
}

}  // namespace

Result<std::string> counter_plan(const CounterRequest& request) {
  if (request.include.empty()) {
    return base::fail(Code::kUsage, "counters need ranges to measure", "--metrics",
                      "Add --include 'decode' with the name of a range.");
  }
  if (request.metrics.size() > kMostMetrics)
    return base::fail(Code::kUsage, "more than 512 metrics", "--metrics", "Ask for fewer at a time.");
  if (request.include.size() > kMostExpressions || request.exclude.size() > kMostExpressions) {
    return base::fail(Code::kUsage, "more than 64 range expressions", "--include",
                      "Use a regular expression: regex:^layer[0-9]+$/");
  }
  std::string text = "rangescope-counters 1\n";
  for (const std::string& metric : request.metrics) text += "metric " + metric + "\n";
  text += "per " + request.per + "\n";
  text += "rounds " + std::to_string(request.rounds) + "\n";
  text += "skip-first " + std::to_string(request.skip_first) + "\n";
  text += "trace-first " + std::to_string(request.trace_first) + "\n";
  for (const auto& [key, expressions] :
       {std::pair{"include", &request.include}, std::pair{"exclude", &request.exclude}}) {
    for (const std::string& expression : *expressions) {
      auto one = line(key, expression);
      if (!one) return one;
      text += *one;
    }
  }
  return text;
}

}  // namespace rangescope::collect::native
