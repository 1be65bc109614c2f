#include "inject/counters/plan.hpp"

#include <locale.h>
#include <regex.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rangescope::inject::counters {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return -1;
}

// Undoes percent-encoding in place. False for a broken escape or an encoded NUL, which C strings
// cannot contain.
bool decode(char* text, std::size_t& bytes) {
  std::size_t out = 0;
  for (std::size_t i = 0; text[i] != '\0'; ++i, ++out) {
    if (text[i] != '%') {
      text[out] = text[i];
      continue;
    }
    const int high = hex_digit(text[i + 1]);
    const int low = high < 0 ? -1 : hex_digit(text[i + 2]);
    if (low < 0 || (high == 0 && low == 0))
      return false;
    text[out] = static_cast<char>(high * 16 + low);
    i += 2;
  }
  text[out] = '\0';
  bytes = out;
  return true;
}

// A fixed locale, so that patterns mean the same in every program. Null if the system does not have
// it: then the program's own locale applies.
locale_t utf8() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
  return locale;
}

/// Uses that locale on this thread as long as the object lives.
class InUtf8 {
 public:
  InUtf8() : previous_(utf8() != nullptr ? uselocale(utf8()) : nullptr) {}
  ~InUtf8() {
    if (previous_ != nullptr)
      uselocale(previous_);
  }
  InUtf8& operator=(InUtf8&&) = delete;

 private:
  locale_t previous_;
};

bool name_element(char* text, bool regular, Element& element) {
  if (!decode(text, element.bytes))
    return false;
  element.text = text;
  if (!regular)
    return true;
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
  if (domain == nullptr)
    return "an expression needs kind, style, anchors and domain";
  out.start_end = kind[0] == 's';
  const bool regular = style[0] == 'r';
  out.bottom = std::strchr(anchors, '[') != nullptr;
  out.top = std::strchr(anchors, ']') != nullptr;
  if (domain[0] == '=' && !name_element(domain + 1, regular, out.domain))
    return "the domain cannot be understood";
  for (char* item = strtok_r(nullptr, " ", &save); item != nullptr;
       item = strtok_r(nullptr, " ", &save)) {
    if (out.count == kMaxElements)
      return "an expression has too many names";
    Element& element = out.elements[out.count++];
    if (item[0] == '*')
      element.kind = Element::Kind::kAny;
    else if (item[0] == '+')
      element.kind = Element::Kind::kOne;
    else if (item[0] != 'n' || !name_element(item + 1, regular, element))
      return "a name cannot be understood";
  }
  if (out.count == 0)
    return "an expression names no range";
  return nullptr;
}

const char* parse_kernel(char* rest, Element* elements, std::size_t& count) {
  if (count == kMaxKernels)
    return "too many kernels";
  const bool regular = rest[0] == 'r';
  if (rest[0] == '\0' || rest[1] != ' ' || !name_element(rest + 2, regular, elements[count++]))
    return "a kernel's name cannot be understood";
  return nullptr;
}

const char* parse_metric(char* rest, Plan& plan) {
  if (plan.metric_count == kMaxMetrics)
    return "too many metrics";
  if (char* groups = std::strchr(rest, ' '); groups != nullptr) {
    *groups++ = '\0';
    plan.groups[plan.metric_count] = groups;
  }
  if (plan.metric_count == 0)
    plan.configuration_count = 1;
  plan.metrics[plan.metric_count++] = rest;
  plan.begins[plan.configuration_count] = plan.metric_count;
  return nullptr;
}

const char* parse_per(const char* rest, Per& per) {
  if (std::strcmp(rest, "range") == 0)
    per = Per::kRange;
  else if (std::strcmp(rest, "kernel") == 0)
    per = Per::kKernel;
  else if (std::strcmp(rest, "both") == 0)
    per = Per::kBoth;
  else
    return "per is range, kernel or both";
  return nullptr;
}

const char* parse_cache(const char* rest, bool& flush) {
  flush = std::strcmp(rest, "flush") == 0;
  if (!flush && std::strcmp(rest, "keep") != 0)
    return "cache is keep or flush";
  return nullptr;
}

// Configurations have consecutive numbers, and the previous one must have metrics.
const char* begin_configuration(std::size_t number, Plan& plan) {
  const std::size_t count = plan.configuration_count;
  const bool is_next = number == count + 1 && count > 0 && count < kMaxConfigurations;
  if (!is_next || plan.begins[count] == plan.begins[count - 1])
    return "configurations are numbered, and each has metrics";
  plan.begins[++plan.configuration_count] = plan.metric_count;
  return nullptr;
}

const char* parse_number(const char* key, const char* rest, Plan& plan) {
  constexpr const char* kNoNumber = "a number is expected";
  const auto is = [key](const char* name) { return std::strcmp(key, name) == 0; };
  char* end = nullptr;
  const long number = std::strtol(rest, &end, 10);
  const bool is_number = end != rest && *end == '\0';
  if (!is_number || number < -1 || number > 1000000)
    return kNoNumber;
  if (is("skip-first")) {
    plan.skip_first = static_cast<std::int32_t>(number);
    return nullptr;
  }
  if (number < 0)
    return kNoNumber;
  if (is("configuration"))
    return begin_configuration(static_cast<std::size_t>(number), plan);
  if (is("rounds"))
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

// Null, or what is wrong with the line.
const char* parse_line(char* line, Plan& plan) {
  char* rest = std::strchr(line, ' ');
  if (rest == nullptr)
    return "an item needs a value";
  *rest++ = '\0';
  const auto is = [line](const char* key) { return std::strcmp(line, key) == 0; };
  if (is("metric"))
    return parse_metric(rest, plan);
  if (is("include")) {
    if (plan.include_count == kMaxExpressions)
      return "too many expressions";
    return parse_expression(rest, plan.include[plan.include_count++]);
  }
  if (is("exclude")) {
    if (plan.exclude_count == kMaxExpressions)
      return "too many expressions";
    return parse_expression(rest, plan.exclude[plan.exclude_count++]);
  }
  if (is("kernel"))
    return parse_kernel(rest, plan.kernels, plan.kernel_count);
  if (is("no-kernel"))
    return parse_kernel(rest, plan.no_kernels, plan.no_kernel_count);
  if (is("per"))
    return parse_per(rest, plan.per);
  if (is("cache"))
    return parse_cache(rest, plan.flush_cache);
  if (is("by")) {
    plan.by_payload = std::strcmp(rest, "payload") == 0;
    if (!plan.by_payload)
      return "ranges can be distinguished by payload only";
    return nullptr;
  }
  if (is("resume")) {
    std::size_t bytes = 0;
    plan.resume = rest;
    if (!decode(rest, bytes))
      return "a path cannot be understood";
    return nullptr;
  }
  return parse_number(line, rest, plan);
}

bool same(const Element& element, Piece name) {
  if (element.regex != nullptr) {
    const InUtf8 in_utf8;
    // Names are not terminated; REG_STARTEND takes them as they are.
    regmatch_t bounds{0, static_cast<regoff_t>(name.bytes)};
    return regexec(
               static_cast<const regex_t*>(element.regex), name.text, 0, &bounds, REG_STARTEND) ==
           0;
  }
  return element.bytes == name.bytes && std::memcmp(element.text, name.text, name.bytes) == 0;
}

bool same_domain(const Expression& expression, Piece domain) {
  if (expression.domain.text == nullptr)
    return domain.bytes == 0;
  constexpr char kDefault[] = "<default domain>";
  if (domain.bytes == 0)
    domain = {kDefault, sizeof kDefault - 1};
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
    const char* problem = nullptr;
    if (++number > 1)
      problem = parse_line(line, plan);
    else if (std::strcmp(line, wire::counters::kPlanHead) != 0)
      problem = "not a counters plan of version 1";
    if (problem != nullptr) {
      std::snprintf(why, why_bytes, "counters plan, line %zu: %s", number, problem);
      return false;
    }
  }
  const std::size_t last = plan.configuration_count;
  const bool has_metrics = last > 0 && plan.begins[last] > plan.begins[last - 1];
  if (has_metrics == plan.pc || plan.include_count == 0) {
    std::snprintf(why, why_bytes, "counters plan: needs metrics or pc, and include expressions");
    return false;
  }
  return true;
}

void release_plan(Plan& plan) {
  const auto release = [](Element& element) {
    if (element.regex == nullptr)
      return;
    regfree(static_cast<regex_t*>(element.regex));
    std::free(element.regex);
    element.regex = nullptr;
  };
  const auto release_all = [&](Expression* expressions, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      release(expressions[i].domain);
      for (std::size_t e = 0; e < expressions[i].count; ++e)
        release(expressions[i].elements[e]);
    }
  };
  release_all(plan.include, plan.include_count);
  release_all(plan.exclude, plan.exclude_count);
  for (std::size_t i = 0; i < plan.kernel_count; ++i)
    release(plan.kernels[i]);
  for (std::size_t i = 0; i < plan.no_kernel_count; ++i)
    release(plan.no_kernels[i]);
  std::free(plan.text);
  plan.text = nullptr;
}

bool matches_stack(const Expression& expression,
                   Piece domain,
                   const Piece* stack,
                   std::size_t depth) {
  if (expression.start_end || depth == 0 || !same_domain(expression, domain))
    return false;
  const Element* elements = expression.elements;
  const bool is_regular = elements[0].regex != nullptr;
  const auto kind = [&](std::size_t i) { return elements[i].kind; };
  const auto are_equal = [&](std::size_t i, std::size_t j) {
    const Piece other{elements[j].text, elements[j].bytes};
    return elements[i].bytes == other.bytes &&
           std::memcmp(elements[i].text, other.text, other.bytes) == 0;
  };
  const auto matches = [&](std::size_t i, std::size_t position) {
    return same(elements[i], stack[position]);
  };
  return wire::stack_matches({expression.count, expression.bottom, expression.top, is_regular},
                             depth,
                             kind,
                             are_equal,
                             matches);
}

bool matches_start_end(const Expression& expression, Piece domain, Piece name) {
  if (!expression.start_end || !same_domain(expression, domain))
    return false;
  for (std::size_t i = 0; i < expression.count; ++i) {
    if (same(expression.elements[i], name))
      return true;
  }
  return false;
}

bool is_target(const Plan& plan, Piece domain, const Piece* stack, std::size_t depth) {
  bool is_included = false;
  for (std::size_t i = 0; i < plan.include_count && !is_included; ++i) {
    const auto matches = [&](std::size_t height) {
      return matches_stack(plan.include[i], domain, stack, height);
    };
    is_included = wire::begins_to_match(depth, matches);
  }
  if (!is_included)
    return false;
  for (std::size_t i = 0; i < plan.exclude_count; ++i)
    if (matches_stack(plan.exclude[i], domain, stack, depth))
      return false;
  return true;
}

bool is_start_end_target(const Plan& plan, Piece domain, Piece name) {
  bool is_included = false;
  for (std::size_t i = 0; i < plan.include_count && !is_included; ++i)
    is_included = matches_start_end(plan.include[i], domain, name);
  if (!is_included)
    return false;
  for (std::size_t i = 0; i < plan.exclude_count; ++i)
    if (matches_start_end(plan.exclude[i], domain, name))
      return false;
  return true;
}

bool chooses_kernel(const Plan& plan, Piece demangled, Piece short_name, Piece mangled) {
  // Regular expressions search the names that people read only.
  const auto names_kernel = [&](const Element& element) {
    if (same(element, demangled) || same(element, short_name))
      return true;
    return element.regex == nullptr && same(element, mangled);
  };
  const auto list_names_kernel = [&](const Element* elements, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      if (names_kernel(elements[i]))
        return true;
    return false;
  };
  const bool is_included =
      plan.kernel_count == 0 || list_names_kernel(plan.kernels, plan.kernel_count);
  return is_included && !list_names_kernel(plan.no_kernels, plan.no_kernel_count);
}

}  // namespace rangescope::inject::counters
