#include "analyze/select.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <memory>

#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::RangeExpression;
using model::RangeKind;

/// "'decode/' or 'LLM@decode_all/'": expressions of the ranges whose names are nearest, else of the first ones seen.
std::string nearest_ranges(const Tree& tree, const model::Session& session, const std::vector<std::string>& texts) {
  std::vector<std::string> names, forms;
  for (const std::uint32_t node : tree.depth_first) {
    const Node& each = tree.nodes[node];
    const std::string_view domain = session.strings.view(session.domains[each.domain].name);
    std::vector<std::string> path;
    for (const auto name : path_of(tree, session, node)) path.emplace_back(name);
    std::string form = model::expression_of(domain, std::vector<std::string>{path.back()}, each.kind);
    if (std::find(forms.begin(), forms.end(), form) != forms.end()) continue;
    names.push_back(path.back());
    forms.push_back(std::move(form));
    if (forms.size() == 2000) break;
  }
  std::vector<std::string> chosen;
  const auto add = [&](const std::string& form) {
    if (chosen.size() < 5 && std::find(chosen.begin(), chosen.end(), form) == chosen.end()) chosen.push_back(form);
  };
  for (const std::string& text : texts) {
    const auto parsed = RangeExpression::parse(text);
    for (const auto& element : parsed->parts().elements) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == element.text) add(forms[i]);  // right name, wrong domain, place or kind
      }
      for (const std::string& near : base::nearest(element.text, names)) {
        for (std::size_t i = 0; i < names.size(); ++i) {
          if (names[i] == near) add(forms[i]);
        }
      }
    }
  }
  for (const std::string& form : forms) {
    if (!chosen.empty() && chosen.size() >= 3) break;
    add(form);
  }
  std::string text;
  for (const std::string& form : chosen) text += (text.empty() ? "'" : ", '") + base::printable(form) + "'";
  return text;
}

class Pattern {
 public:
  static base::Result<Pattern> make(const std::string& text) {
    Pattern pattern;
    pattern.text_ = text;
    constexpr std::string_view kRegex = "regex:";
    if (text.starts_with(kRegex)) {
      re2::RE2::Options options;
      options.set_log_errors(false);
      pattern.regex_ = std::make_unique<re2::RE2>(text.substr(kRegex.size()), options);
      if (!pattern.regex_->ok()) {
        return base::fail(base::Code::kUsage, "kernel pattern: not a regular expression: " + pattern.regex_->error(),
                          "'" + text + "'",
                          "Escape brackets of template names with a backslash, or give the name without regex:.");
      }
    } else if (text.empty()) {
      return base::fail(base::Code::kUsage, "kernel pattern: it is empty", "''",
                        "Give a kernel name or regex:PATTERN.");
    }
    return pattern;
  }

  bool matches(const model::Session& session, const model::KernelName& kernel) const {
    const std::string_view demangled = session.strings.view(kernel.demangled),
                           plain = session.strings.view(kernel.short_name);
    if (!regex_) return text_ == demangled || text_ == plain || text_ == session.strings.view(kernel.mangled);
    return found_in(demangled) || found_in(plain);
  }

  const std::string& text() const { return text_; }

 private:
  bool found_in(std::string_view name) const {
    return !name.empty() && re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *regex_);
  }
  std::string text_;
  std::unique_ptr<re2::RE2> regex_;
};

base::Result<std::vector<Pattern>> patterns_of(const std::vector<std::string>& texts) {
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) {
    auto pattern = Pattern::make(text);
    if (!pattern) return base::fail(std::move(pattern));
    patterns.push_back(std::move(*pattern));
  }
  return patterns;
}

}  // namespace

bool matches(const RangeExpression& expression, const model::RangeState& state) {
  if (expression.parts().kind == RangeKind::kPushPop) return expression.matches(state);
  return std::any_of(state.start_end.begin(), state.start_end.end(),
                     [&](const auto& open) { return expression.names_start_end(open.domain, open.name); });
}

base::Result<std::vector<char>> select_nodes(const Tree& tree, const model::Session& session, const Options& options,
                                             std::vector<std::string>& notes) {
  auto include = model::parse_expressions(options.include);
  if (!include) return base::fail(std::move(include));
  auto exclude = model::parse_expressions(options.exclude);
  if (!exclude) return base::fail(std::move(exclude));
  std::vector<char> selected(tree.nodes.size(), include->empty() ? 1 : 0);
  std::vector<char> used(include->size() + exclude->size(), 0);
  if (include->empty() && exclude->empty()) return selected;
  for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
    const model::RangeState state = state_of(tree, session, node);
    for (std::size_t i = 0; i < include->size(); ++i) {
      if (matches((*include)[i], state)) selected[node] = used[i] = 1;
    }
    for (std::size_t i = 0; i < exclude->size(); ++i) {
      if (!matches((*exclude)[i], state)) continue;
      used[include->size() + i] = 1;
      selected[node] = 0;
    }
  }
  const bool any_included =
      include->empty() || std::any_of(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(include->size()),
                                      [](char u) { return u != 0; });
  if (!any_included) {
    const std::string what = "no range matches '" + base::join(options.include, "' or '") + "'";
    if (tree.nodes.empty()) {
      return base::fail(base::Code::kNothingCaptured, what + ": the program recorded no NVTX range at all", {},
                        "Check that the program opens NVTX ranges and that the part with them ran.");
    }
    return base::fail(base::Code::kNothingCaptured, what, {},
                      "Use one of the ranges seen: " + nearest_ranges(tree, session, options.include) + ".");
  }
  if (!tree.nodes.empty() && std::none_of(selected.begin(), selected.end(), [](char s) { return s != 0; })) {
    return base::fail(base::Code::kNothingCaptured, "every range that was included is also excluded", {},
                      "Narrow the exclude expressions '" + base::join(options.exclude, "', '") + "'.");
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const bool included = i < include->size();
    const std::string& text = included ? options.include[i] : options.exclude[i - include->size()];
    notes.push_back(std::string(included ? "include" : "exclude") + " expression '" + text +
                    "' matched no range; nearest: " + nearest_ranges(tree, session, {text}) + ".");
  }
  return selected;
}

base::Result<std::vector<char>> select_kernels(const model::Session& session, const Options& options,
                                               std::vector<std::string>& notes) {
  auto include = patterns_of(options.kernel_include);
  if (!include) return base::fail(std::move(include));
  auto exclude = patterns_of(options.kernel_exclude);
  if (!exclude) return base::fail(std::move(exclude));
  std::vector<char> selected(session.kernel_names.size(), include->empty() ? 1 : 0);
  bool any = include->empty();
  std::vector<char> used(exclude->size(), 0);
  for (std::size_t k = 0; k < session.kernel_names.size(); ++k) {
    for (const Pattern& pattern : *include) {
      if (pattern.matches(session, session.kernel_names[k])) selected[k] = 1, any = true;
    }
    for (std::size_t i = 0; i < exclude->size(); ++i) {
      if ((*exclude)[i].matches(session, session.kernel_names[k])) selected[k] = 0, used[i] = 1;
    }
  }
  if (!any) {
    const std::string what = "no kernel matches '" + base::join(options.kernel_include, "' or '") + "'";
    if (session.kernel_names.empty())
      return base::fail(base::Code::kNothingCaptured, what + ": no kernel was recorded");
    std::vector<std::string> names;
    for (const model::KernelName& name : session.kernel_names) {
      names.emplace_back(session.strings.view(name.short_name ? name.short_name : name.demangled));
      if (names.size() == 2000) break;
    }
    std::vector<std::string> near = base::nearest(options.kernel_include.front(), names);
    for (std::size_t i = 0; i < names.size() && near.size() < 3; ++i) {
      if (std::find(near.begin(), near.end(), names[i]) == near.end()) near.push_back(names[i]);
    }
    for (std::string& name : near) name = base::printable(name);
    return base::fail(base::Code::kNothingCaptured, what, {},
                      "Use one of the kernels seen: '" + base::join(near, "', '") + "'.");
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) notes.push_back("kernel exclude pattern '" + (*exclude)[i].text() + "' matched no kernel.");
  }
  return selected;
}

}  // namespace rangescope::analyze
