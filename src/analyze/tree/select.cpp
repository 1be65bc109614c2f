#include "analyze/tree/select.hpp"

#include <algorithm>

#include "analyze/names/printed.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

/// Names that an error message searches for the nearest ones.
constexpr std::size_t kMostSearched = 2000;

/// Distinct ranges: the name and the expression of each.
struct SeenRanges {
  std::vector<std::string> names, forms;
};

SeenRanges seen_ranges(const Tree& tree, const model::Session& session) {
  SeenRanges seen;
  for (const std::uint32_t number : tree.depth_first) {
    const Node& node = tree.nodes[number];
    const std::string_view domain = session.strings.view(session.domains[node.domain].name);
    const std::string name(session.strings.view(node.name));
    std::string form = model::expression_of(domain, std::vector<std::string>{name}, node.kind);
    if (std::find(seen.forms.begin(), seen.forms.end(), form) != seen.forms.end())
      continue;
    seen.names.push_back(name);
    seen.forms.push_back(std::move(form));
    if (seen.forms.size() == kMostSearched)
      break;
  }
  return seen;
}

/// "'decode/' or 'LLM@decode_all/'": expressions of the ranges whose names are nearest, else of the
/// first ones seen.
std::string nearest_ranges(const Tree& tree,
                           const model::Session& session,
                           std::span<const model::RangeTerm> terms) {
  const auto& [names, forms] = seen_ranges(tree, session);
  std::vector<std::string> chosen;
  const auto add = [&](const std::string& form) {
    if (chosen.size() < 5 && std::find(chosen.begin(), chosen.end(), form) == chosen.end())
      chosen.push_back(form);
  };
  for (const model::RangeTerm& term : terms) {
    for (const auto& element : term.forms.front().parts().elements) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == element.text)
          add(forms[i]);  // right name, wrong domain, place or kind
      }
      for (const std::string& near : base::nearest(element.text, names)) {
        for (std::size_t i = 0; i < names.size(); ++i) {
          if (names[i] == near)
            add(forms[i]);
        }
      }
    }
  }
  for (const std::string& form : forms) {
    if (!chosen.empty() && chosen.size() >= 3)
      break;
    add(form);
  }
  std::vector<std::string> quoted;
  for (const std::string& form : chosen)
    quoted.push_back("'" + base::printable(form) + "'");
  return base::join(quoted, ", ");
}

/// Names as tables print them hold what an expression means otherwise: "a/b", "f, g", "x;y"; or
/// they are shorter than the path (analyze/names/printed.hpp).
class PrintedNames {
 public:
  explicit PrintedNames(std::span<const model::RangeTerm> terms) {
    for (const model::RangeTerm& term : terms)
      written_.push_back(term.written);
    if (written_.size() > 1)
      written_.push_back(base::join(written_, ";"));
    for (const std::string& written : written_)
      printed_.emplace_back(written);
  }

  /// Is it the name of that range, or its path?
  [[nodiscard]] bool are_of(const Tree& tree,
                            const model::Session& session,
                            std::uint32_t node) const {
    const std::vector<std::string_view> names = path_of(tree, session, node);
    const model::Domain& recorded = session.domains[tree.nodes[node].domain];
    const std::string_view domain = session.strings.view(recorded.name);
    std::vector<std::string> path;
    for (const std::string_view name : names)
      path.push_back(base::printable(name));
    const std::string name(base::trim(path.back()));
    const std::string whole_path = base::join(path, " > ");
    const auto is_it = [&](const std::string& text) { return text == name || text == whole_path; };
    const auto is_printed = [&](const PrintedPath& printed) {
      return printed.names(domain, names);
    };
    return std::ranges::any_of(written_, is_it) || std::ranges::any_of(printed_, is_printed);
  }

 private:
  std::vector<std::string> written_;
  std::vector<PrintedPath> printed_;
};

/// Nodes of ranges that `terms` name as tables print them, and of those inside them.
std::vector<char> printed_nodes(const Tree& tree,
                                const model::Session& session,
                                std::span<const model::RangeTerm> terms) {
  const PrintedNames printed(terms);
  std::vector<char> is_named(tree.nodes.size());
  for (const std::uint32_t node : tree.depth_first) {
    const std::uint32_t parent = tree.nodes[node].parent;
    const bool is_inside = parent != kNone && is_named[parent] != 0;
    if (is_inside || printed.are_of(tree, session, node))
      is_named[node] = 1;
  }
  return is_named;
}

/// Ranges with a name that `ranges` includes as it is printed, and those inside them.
void select_printed(const Tree& tree,
                    const model::Session& session,
                    const model::RangeSelection& ranges,
                    std::vector<char>& selected,
                    std::vector<char>& included) {
  const std::vector<char> is_named = printed_nodes(tree, session, ranges.include);
  for (const std::uint32_t node : tree.depth_first) {
    if (is_named[node] == 0)
      continue;
    std::ranges::fill(included, 1);
    const model::RangeState state = state_of(tree, session, node);
    const auto leaves_out = [&](const model::RangeTerm& term) { return term.chooses(state); };
    selected[node] = static_cast<char>(std::ranges::none_of(ranges.exclude, leaves_out));
  }
}

/// Leaves out ranges with a name that `term` has as it is printed, and those inside them; false
/// where there are none.
bool exclude_printed(const Tree& tree,
                     const model::Session& session,
                     const model::RangeTerm& term,
                     std::vector<char>& selected) {
  const std::vector<char> is_named = printed_nodes(tree, session, std::span(&term, 1));
  for (std::size_t node = 0; node < is_named.size(); ++node)
    if (is_named[node] != 0)
      selected[node] = 0;
  return std::ranges::find(is_named, 1) != is_named.end();
}

/// Is none marked?
bool has_none(const std::vector<char>& marks) {
  return std::find(marks.begin(), marks.end(), 1) == marks.end();
}

tl::unexpected<base::Error> no_range_matches(const Tree& tree,
                                             const model::Session& session,
                                             std::span<const model::RangeTerm> include) {
  const std::string problem =
      "no range matches '" + base::join(model::written_of(include), "' or '") + "'";
  if (tree.nodes.empty()) {
    return base::fail(base::Code::kNothingCaptured,
                      problem + ": the program recorded no NVTX range at all",
                      {},
                      "Check that the program opens NVTX ranges and that the part with them ran.");
  }
  std::string hint = "Use one of the ranges seen: " + nearest_ranges(tree, session, include) + ".";
  for (const model::RangeTerm& term : include) {  // a comma is part of a name
    if (term.written.find(',') == std::string::npos)
      continue;
    const std::string without_blanks = base::replace_all(term.written, ", ", ",");
    hint += " For several ranges repeat the option: --include ";
    hint += base::replace_all(without_blanks, ",", " --include ") + ".";
  }
  return base::fail(base::Code::kNothingCaptured, problem, {}, std::move(hint));
}

/// Adds a note for each term that is not marked in `used`.
void note_unused(const Tree& tree,
                 const model::Session& session,
                 std::string_view list_name,
                 std::span<const model::RangeTerm> terms,
                 const std::vector<char>& used,
                 std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (used[i])
      continue;
    std::string note(list_name);
    note += " expression '" + terms[i].written + "' matched no range; nearest: ";
    note += nearest_ranges(tree, session, terms.subspan(i, 1)) + ".";
    notes.push_back(std::move(note));
  }
}

tl::unexpected<base::Error> no_kernel_matches(const model::Session& session,
                                              std::span<const model::KernelPattern> include) {
  std::vector<std::string> wanted;
  for (const model::KernelPattern& pattern : include)
    wanted.push_back(pattern.text());
  const std::string problem = "no kernel matches '" + base::join(wanted, "' or '") + "'";
  if (session.kernel_names.empty())
    return base::fail(base::Code::kNothingCaptured, problem + ": no kernel was recorded");
  std::vector<std::string> names;
  for (const model::KernelName& name : session.kernel_names) {
    model::StringId shown = name.short_name;
    if (shown == 0)
      shown = name.demangled;
    names.emplace_back(session.strings.view(shown));
    if (names.size() == kMostSearched)
      break;
  }
  std::vector<std::string> near = base::nearest(wanted.front(), names);
  for (std::size_t i = 0; i < names.size() && near.size() < 3; ++i) {
    if (std::find(near.begin(), near.end(), names[i]) == near.end())
      near.push_back(names[i]);
  }
  for (std::string& name : near)
    name = base::printable(name);
  return base::fail(base::Code::kNothingCaptured,
                    problem,
                    {},
                    "Use one of the kernels seen: '" + base::join(near, "', '") + "'.");
}

/// Adds a note for each pattern that is not marked in `used`.
void note_unused(std::string_view kind,
                 std::span<const model::KernelPattern> patterns,
                 const std::vector<char>& used,
                 std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      notes.push_back(std::string(kind) + " '" + patterns[i].text() + "' matched no kernel.");
  }
}

}  // namespace

base::Result<std::vector<char>> select_nodes(const Tree& tree,
                                             const model::Session& session,
                                             const Options& options,
                                             std::vector<std::string>& notes) {
  const std::vector<model::RangeTerm>& include = options.ranges.include;
  const std::vector<model::RangeTerm>& exclude = options.ranges.exclude;
  std::vector<char> selected(tree.nodes.size(), static_cast<char>(include.empty()));
  if (options.ranges.empty())
    return selected;
  std::vector<char> included(include.size());  // terms that matched
  std::vector<char> excluded(exclude.size());
  for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
    const model::RangeState state = state_of(tree, session, node);
    for (std::size_t i = 0; i < include.size(); ++i) {
      if (include[i].chooses(state))
        selected[node] = included[i] = 1;
    }
    for (std::size_t i = 0; i < exclude.size(); ++i) {
      if (!exclude[i].chooses(state))
        continue;
      excluded[i] = 1;
      selected[node] = 0;
    }
  }
  if (!include.empty() && has_none(included))
    select_printed(tree, session, options.ranges, selected, included);
  for (std::size_t i = 0; i < exclude.size(); ++i)
    if (excluded[i] == 0 && exclude_printed(tree, session, exclude[i], selected))
      excluded[i] = 1;
  if (!include.empty() && has_none(included))
    return no_range_matches(tree, session, include);
  if (!tree.nodes.empty() && has_none(selected)) {
    return base::fail(
        base::Code::kNothingCaptured,
        "every range that was included is also excluded",
        {},
        "Narrow the exclude expressions '" + base::join(model::written_of(exclude), "', '") + "'.");
  }
  note_unused(tree, session, "include", include, included, notes);
  note_unused(tree, session, "exclude", exclude, excluded, notes);
  return selected;
}

base::Result<std::vector<char>> select_kernels(const model::Session& session,
                                               const Options& options,
                                               std::vector<std::string>& notes) {
  const std::vector<model::KernelPattern>& include = options.kernels.include;
  const std::vector<model::KernelPattern>& exclude = options.kernels.exclude;
  std::vector<char> selected(session.kernel_names.size(), static_cast<char>(include.empty()));
  std::vector<char> included(include.size());  // patterns that matched
  std::vector<char> excluded(exclude.size());
  for (std::size_t k = 0; k < session.kernel_names.size(); ++k) {
    const model::KernelName& name = session.kernel_names[k];
    const auto matches = [&](const model::KernelPattern& pattern) {
      return pattern.matches(session.strings.view(name.demangled),
                             session.strings.view(name.short_name),
                             session.strings.view(name.mangled));
    };
    for (std::size_t i = 0; i < include.size(); ++i) {
      if (matches(include[i]))
        selected[k] = included[i] = 1;
    }
    for (std::size_t i = 0; i < exclude.size(); ++i) {
      if (!matches(exclude[i]))
        continue;
      excluded[i] = 1;
      selected[k] = 0;
    }
  }
  if (!include.empty() && has_none(included))
    return no_kernel_matches(session, include);
  note_unused("kernel pattern", include, included, notes);
  note_unused("kernel exclude pattern", exclude, excluded, notes);
  return selected;
}

}  // namespace rangescope::analyze
