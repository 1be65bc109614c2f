#include "inject/counters/plan.hpp"

#include <locale.h>
#include <regex.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rangescope::inject::counters {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Undoes percent-encoding in place; false for a broken escape or an encoded NUL (names of C strings
// hold none).
bool decode(char* text, std::size_t& bytes) {
  std::size_t out = 0;
  for (std::size_t i = 0; text[i] != '\0'; ++i, ++out) {
    if (text[i] != '%') {
      text[out] = text[i];
      continue;
    }
    const int high = hex_digit(text[i + 1]);
    const int low = high < 0 ? -1 : hex_digit(text[i + 2]);
    if (low < 0 || (high == 0 && low == 0)) return false;
    text[out] = static_cast<char>(high * 16 + low);
    i += 2;
  }
  text[out] = '\0';
  bytes = out;
  return true;
}

// The program's own locale would say what a character is; patterns mean the same in every program.
// Null where the system has no such locale: then the program's counts.
locale_t utf8() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
  return locale;
}

class InUtf8 {
 public:
  InUtf8() : before_(utf8() != nullptr ? uselocale(utf8()) : nullptr) {}
  ~InUtf8() {
    if (before_ != nullptr) uselocale(before_);
  }
  InUtf8& operator=(InUtf8&&) = delete;

 private:
  locale_t before_;
};

bool name_element(char* text, bool regular, Element& element) {
  if (!decode(text, element.bytes)) return false;
  element.text = text;
  if (!regular) return true;
  const InUtf8 in_utf8;
  auto* compiled = static_cast<regex_t*>(std::calloc(1, sizeof(regex_t)));
  if (compiled == nullptr || regcomp(compiled, text, REG_EXTENDED | REG_NOSUB) != 0) {
    std::free(compiled);
    return false;
  }
  element.regex = compiled;
  return true;
}

const char* parse_expression(char* rest, Expression& out) {
  char* save = nullptr;
  const char* kind = strtok_r(rest, " ", &save);
  const char* style = strtok_r(nullptr, " ", &save);
  const char* anchors = strtok_r(nullptr, " ", &save);
  char* domain = strtok_r(nullptr, " ", &save);
  if (domain == nullptr) return "an expression needs kind, style, anchors and domain";
  out.start_end = kind[0] == 's';
  const bool regular = style[0] == 'r';
  out.bottom = std::strchr(anchors, '[') != nullptr;
  out.top = std::strchr(anchors, ']') != nullptr;
  if (domain[0] == '=' && !name_element(domain + 1, regular, out.domain))
    return "the domain cannot be understood";
  for (char* item = strtok_r(nullptr, " ", &save); item != nullptr;
       item = strtok_r(nullptr, " ", &save)) {
    if (out.count == kMaxElements) return "an expression has too many names";
    Element& element = out.elements[out.count++];
    if (item[0] == '*')
      element.kind = Element::Kind::kAny;
    else if (item[0] == '+')
      element.kind = Element::Kind::kOne;
    else if (item[0] != 'n' || !name_element(item + 1, regular, element))
      return "a name cannot be understood";
  }
  return out.count == 0 ? "an expression names no range" : nullptr;
}

const char* parse_kernel(char* rest, Element* elements, std::size_t& count) {
  if (count == kMaxKernels) return "too many kernels";
  const bool regular = rest[0] == 'r';
  if (rest[0] == '\0' || rest[1] != ' ' || !name_element(rest + 2, regular, elements[count++]))
    return "a kernel's name cannot be understood";
  return nullptr;
}

const char* parse_line(char* line, Plan& plan) {
  char* rest = std::strchr(line, ' ');
  if (rest == nullptr) return "an item needs a value";
  *rest++ = '\0';
  const auto is = [line](const char* key) { return std::strcmp(line, key) == 0; };
  if (is("metric")) {
    if (plan.metric_count == kMaxMetrics) return "too many metrics";
    if (char* groups = std::strchr(rest, ' '); groups != nullptr) {
      *groups++ = '\0';
      plan.groups[plan.metric_count] = groups;
    }
    if (plan.metric_count == 0) plan.configuration_count = 1;
    plan.metrics[plan.metric_count++] = rest;
    plan.begins[plan.configuration_count] = plan.metric_count;
    return nullptr;
  }
  if (is("include")) {
    if (plan.include_count == kMaxExpressions) return "too many expressions";
    return parse_expression(rest, plan.include[plan.include_count++]);
  }
  if (is("exclude")) {
    if (plan.exclude_count == kMaxExpressions) return "too many expressions";
    return parse_expression(rest, plan.exclude[plan.exclude_count++]);
  }
  if (is("kernel")) return parse_kernel(rest, plan.kernels, plan.kernel_count);
  if (is("no-kernel")) return parse_kernel(rest, plan.no_kernels, plan.no_kernel_count);
  if (is("per")) {
    if (std::strcmp(rest, "range") == 0)
      plan.per = Per::kRange;
    else if (std::strcmp(rest, "kernel") == 0)
      plan.per = Per::kKernel;
    else if (std::strcmp(rest, "both") == 0)
      plan.per = Per::kBoth;
    else
      return "per is range, kernel or both";
    return nullptr;
  }
  if (is("cache")) {
    plan.flush_cache = std::strcmp(rest, "flush") == 0;
    return plan.flush_cache || std::strcmp(rest, "keep") == 0 ? nullptr : "cache is keep or flush";
  }
  if (is("by")) {
    plan.by_payload = std::strcmp(rest, "payload") == 0;
    return plan.by_payload ? nullptr : "ranges can be distinguished by payload only";
  }
  if (is("resume")) {
    std::size_t bytes = 0;
    plan.resume = rest;
    return decode(rest, bytes) ? nullptr : "a path cannot be understood";
  }
  char* end = nullptr;
  const long number = std::strtol(rest, &end, 10);
  if (end == rest || *end != '\0' || number < -1 || number > 1000000) return "a number is expected";
  if (is("skip-first"))
    plan.skip_first = static_cast<std::int32_t>(number);
  else if (number < 0)
    return "a number is expected";
  else if (is("configuration")) {
    // One more, after one with metrics.
    const std::size_t count = plan.configuration_count;
    if (static_cast<std::size_t>(number) != count + 1 || count == kMaxConfigurations ||
        count == 0 || plan.begins[count] == plan.begins[count - 1])
      return "configurations are numbered, and each has metrics";
    plan.begins[++plan.configuration_count] = plan.metric_count;
  } else if (is("rounds"))
    plan.rounds = static_cast<std::uint32_t>(number);
  else if (is("every") && number > 0)
    plan.every = static_cast<std::uint32_t>(number);
  else if (is("pc"))
    plan.pc = number != 0;
  else if (is("wait"))
    plan.wait = number != 0;
  else if (is("arm-wait"))
    plan.arm_wait_ms = number;
  else if (is("patience"))
    plan.patience_ms = number;
  else if (is("trace-first"))
    plan.trace_first = static_cast<std::uint32_t>(number);
  else
    return "unknown item";
  return nullptr;
}

bool same(const Element& element, Piece name) {
  if (element.regex != nullptr) {
    const InUtf8 in_utf8;
    // Names are not terminated; REG_STARTEND takes them as they are.
    regmatch_t bounds{0, static_cast<regoff_t>(name.bytes)};
    return regexec(static_cast<const regex_t*>(element.regex), name.text, 0, &bounds,
                   REG_STARTEND) == 0;
  }
  return element.bytes == name.bytes && std::memcmp(element.text, name.text, name.bytes) == 0;
}

bool same_domain(const Expression& expression, Piece domain) {
  if (expression.domain.text == nullptr) return domain.bytes == 0;
  constexpr char kDefault[] = "<default domain>";
  if (domain.bytes == 0) domain = {kDefault, sizeof kDefault - 1};
  return same(expression.domain, domain);
}

}  // namespace

bool parse_plan(const char* text, std::size_t bytes, Plan& plan, char* why, std::size_t why_bytes) {
  auto* copy = static_cast<char*>(std::malloc(bytes + 1));
  if (copy == nullptr) {
    std::snprintf(why, why_bytes, "no memory for the counters plan");
    return false;
  }
  plan.text = copy;
  std::memcpy(copy, text, bytes);
  copy[bytes] = '\0';
  std::size_t number = 0;
  char* save = nullptr;
  for (char* line = strtok_r(copy, "\n", &save); line != nullptr;
       line = strtok_r(nullptr, "\n", &save)) {
    const char* wrong = nullptr;
    if (++number == 1)
      wrong = std::strcmp(line, wire::counters::kPlanHead) == 0
                  ? nullptr
                  : "not a counters plan of version 1";
    else
      wrong = parse_line(line, plan);
    if (wrong != nullptr) {
      std::snprintf(why, why_bytes, "counters plan, line %zu: %s", number, wrong);
      return false;
    }
  }
  const std::size_t last = plan.configuration_count;
  const bool metrics = last > 0 && plan.begins[last] > plan.begins[last - 1];
  if (metrics == plan.pc || plan.include_count == 0) {
    std::snprintf(why, why_bytes, "counters plan: needs metrics or pc, and include expressions");
    return false;
  }
  return true;
}

void release_plan(Plan& plan) {
  const auto release = [](Element& element) {
    if (element.regex == nullptr) return;
    regfree(static_cast<regex_t*>(element.regex));
    std::free(element.regex);
    element.regex = nullptr;
  };
  const auto release_all = [&](Expression* expressions, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      release(expressions[i].domain);
      for (std::size_t e = 0; e < expressions[i].count; ++e) release(expressions[i].elements[e]);
    }
  };
  release_all(plan.include, plan.include_count);
  release_all(plan.exclude, plan.exclude_count);
  for (std::size_t i = 0; i < plan.kernel_count; ++i) release(plan.kernels[i]);
  for (std::size_t i = 0; i < plan.no_kernel_count; ++i) release(plan.no_kernels[i]);
  std::free(plan.text);
  plan.text = nullptr;
}

bool matches_stack(const Expression& x, Piece domain, const Piece* stack, std::size_t depth) {
  if (x.start_end || depth == 0 || !same_domain(x, domain)) return false;
  return wire::stack_matches(
      {x.count, x.bottom, x.top, x.elements[0].regex != nullptr}, depth,
      [&](std::size_t i) { return x.elements[i].kind; },
      [&](std::size_t i, std::size_t j) {
        const Element &a = x.elements[i], &b = x.elements[j];
        return a.bytes == b.bytes && std::memcmp(a.text, b.text, a.bytes) == 0;
      },
      [&](std::size_t i, std::size_t position) { return same(x.elements[i], stack[position]); });
}

bool matches_start_end(const Expression& x, Piece domain, Piece name) {
  if (!x.start_end || !same_domain(x, domain)) return false;
  for (std::size_t e = 0; e < x.count; ++e) {
    if (same(x.elements[e], name)) return true;
  }
  return false;
}

bool is_target(const Plan& plan, Piece domain, const Piece* stack, std::size_t depth) {
  bool begins = false;
  for (std::size_t i = 0; i < plan.include_count && !begins; ++i) {
    begins = wire::begins_to_match(
        depth, [&](std::size_t to) { return matches_stack(plan.include[i], domain, stack, to); });
  }
  for (std::size_t i = 0; i < plan.exclude_count && begins; ++i)
    begins = !matches_stack(plan.exclude[i], domain, stack, depth);
  return begins;
}

bool is_start_end_target(const Plan& plan, Piece domain, Piece name) {
  bool named = false;
  for (std::size_t i = 0; i < plan.include_count && !named; ++i)
    named = matches_start_end(plan.include[i], domain, name);
  for (std::size_t i = 0; i < plan.exclude_count && named; ++i)
    named = !matches_start_end(plan.exclude[i], domain, name);
  return named;
}

bool chooses_kernel(const Plan& plan, Piece demangled, Piece short_name, Piece mangled) {
  const auto named = [&](const Element* elements, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool regular = elements[i].regex != nullptr;  // searched for in what people read
      if (same(elements[i], demangled) || same(elements[i], short_name) ||
          (!regular && same(elements[i], mangled)))
        return true;
    }
    return false;
  };
  return (plan.kernel_count == 0 || named(plan.kernels, plan.kernel_count)) &&
         !named(plan.no_kernels, plan.no_kernel_count);
}

}  // namespace rangescope::inject::counters
