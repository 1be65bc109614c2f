#include "profile/starter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "config/compose.hpp"
#include "config/metric_groups.hpp"
#include "model/range_expression.hpp"
#include "profile/counters.hpp"
#include "profile/look.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;
using doctor::SeenRange;

constexpr std::size_t kMostIncludes = 10;
constexpr std::size_t kManyAlike = 4;  // names that differ in digits only, from here on one pattern
constexpr std::uint64_t kTraced = 3;   // occurrences that go to the timeline before counters begin
constexpr const char* kGroups[] = {"quick", "speed_of_light", "tensor", "memory", "occupancy", "flops", "stalls"};

struct Include {
  std::string expression;
  std::uint64_t occurrences = 0, kernels = 0;
  std::int64_t total_ns = 0;
};

/// Text as a YAML scalar that reads back as it is, `${` in it too.
std::string yaml(std::string_view text) {
  const std::string escaped = base::replace_all(text, "${", "\\${");
  if (base::printable(escaped) != escaped) return config::to_flow(config::text_value(escaped, {}));
  return "'" + base::replace_all(escaped, "'", "''") + "'";
}

std::string without_digits(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '0')
      out += '0';
  }
  return out;
}

bool writable(const SeenRange& seen) {
  return std::all_of(seen.path.begin(), seen.path.end(),
                     [](const std::string& name) { return !name.empty() && base::printable(name) == name; });
}

bool below(const SeenRange& child, const SeenRange& parent) {
  return child.kind == parent.kind && child.domain == parent.domain && child.path.size() == parent.path.size() + 1 &&
         std::equal(parent.path.begin(), parent.path.end(), child.path.begin());
}

/// The ranges worth measuring: outermost ones with GPU work (any, in a program without), but not a single one around
/// everything: then those inside it. The most work first.
/// Ranges that differ in numbers only have one key.
std::pair<std::string, std::string> family(const SeenRange& seen) {
  return {seen.domain + (seen.kind == model::RangeKind::kPushPop ? "/" : ""), without_digits(seen.path.back())};
}

std::vector<const SeenRange*> choose(const doctor::ProgramFacts& facts) {
  const auto work = [&](const SeenRange& seen) {
    return facts.kernels + facts.graph_launches > 0
               ? seen.kernels + seen.graph_launches
               : static_cast<std::uint64_t>(std::max<std::int64_t>(seen.total_ns, 0));
  };
  std::vector<const SeenRange*> chosen;
  for (const SeenRange& seen : facts.ranges)
    if (seen.path.size() == 1 && seen.occurrences > seen.unclosed && work(seen) > 0 && writable(seen))
      chosen.push_back(&seen);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto members = std::count_if(chosen.begin(), chosen.end(),
                                         [&](const SeenRange* other) { return family(*other) == family(*chosen[i]); });
      if (chosen[i]->occurrences != 1 || members >= static_cast<std::ptrdiff_t>(kManyAlike)) continue;
      std::vector<const SeenRange*> inside;
      std::uint64_t sum = 0;
      for (const SeenRange& seen : facts.ranges)
        if (below(seen, *chosen[i]) && work(seen) > 0 && writable(seen)) {
          inside.push_back(&seen);
          sum += work(seen);
        }
      if (inside.empty() || sum * 10 < work(*chosen[i]) * 9) continue;
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
      chosen.insert(chosen.end(), inside.begin(), inside.end());
      changed = true;
      break;
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const SeenRange* a, const SeenRange* b) { return work(*a) > work(*b); });
  return chosen;
}

std::vector<Include> includes_of(const doctor::ProgramFacts& facts) {
  std::vector<const SeenRange*> chosen = choose(facts);
  std::map<std::pair<std::string, std::string>, std::size_t> alike;
  for (const SeenRange* seen : chosen) ++alike[family(*seen)];
  std::vector<Include> out;
  std::map<std::pair<std::string, std::string>, std::size_t> placed;
  for (const SeenRange* seen : chosen) {
    const bool pattern = alike[family(*seen)] >= kManyAlike;
    std::size_t at = out.size();
    if (pattern) at = placed.try_emplace(family(*seen), at).first->second;
    if (at == out.size()) {
      Include include;
      if (pattern) {
        std::string name = base::replace_all(model::escape_regex(without_digits(seen->path.back())), "0", "[0-9]+");
        include.expression = "regex:" + (seen->domain.empty() ? "" : "^" + model::escape_regex(seen->domain) + "$@") +
                             "^" + name + "$" + (seen->kind == model::RangeKind::kPushPop ? "/" : "");
      } else {
        include.expression = model::expression_of(seen->domain, seen->path, seen->kind);
      }
      out.push_back(std::move(include));
    }
    out[at].occurrences += seen->occurrences - seen->unclosed;
    out[at].kernels += seen->kernels;
    out[at].total_ns += seen->total_ns;
  }
  if (out.size() > kMostIncludes) out.resize(kMostIncludes);
  return out;
}

/// Groups of which at least one complete set fits into the occurrences of the rarest range, and what was counted.
std::pair<std::vector<std::string>, std::string> groups_that_fit(const std::string& chip, std::uint64_t occurrences) {
  const std::uint64_t room = occurrences > kTraced ? occurrences - kTraced : 0;
  std::vector<std::string> chosen;
  std::string told;
  const auto shipped = config::shipped_groups();
  const auto planner = open_planner();
  const std::pair uncounted{room > 0 ? std::vector<std::string>{"quick"} : chosen,
                            std::string("passes could not be counted here")};
  if (!shipped || !planner) return uncounted;
  bool counted = false;
  for (const char* group : kGroups) {
    auto wanted = chosen;
    wanted.emplace_back(group);
    const auto plan = planner->plan(chip, wanted, *shipped);
    if (!plan) continue;  // the chip lacks the group's counters
    counted = true;
    if (plan->passes > room) continue;
    chosen = std::move(wanted);
    told = fmt::format("{} on {}, and the rarest range occurs {}", base::counted(plan->passes, "pass"), chip,
                       base::counted(occurrences, "time"));
  }
  return counted ? std::pair{chosen, told} : uncounted;
}

}  // namespace

std::string starter(const doctor::ProgramLook& look) {
  const std::vector<Include> includes = includes_of(look.facts);
  if (includes.empty()) return {};
  const doctor::ProgramFacts& facts = look.facts;
  std::string text =
      "# Written by `rangescope config init` from a look of " +
      base::format_ns(static_cast<double>(look.ended.wall_ns)) +
      " at the program: " + base::counted(facts.ranges.size(), "range") + ", " +
      base::counted(facts.kernels, "kernel") + ".\n" +
      "# `rangescope config explain KEY` says what a key means; `rangescope config validate` checks this "
      "file.\nworkload:\n  command: [";
  for (std::size_t i = 0; i < look.command.size(); ++i) text += (i ? ", " : "") + yaml(look.command[i]);
  text += "]\nranges:\n  include:\n";
  std::uint64_t rarest = 0;
  for (const Include& include : includes) {
    text += "    - " + yaml(include.expression) + "  # " + base::counted(include.occurrences, "time") + ", " +
            base::format_ns(static_cast<double>(include.total_ns)) + " in all" +
            (facts.cuda ? ", " + base::counted(include.kernels, "kernel") : "") + "\n";
    rarest = rarest == 0 ? include.occurrences : std::min(rarest, include.occurrences);
  }
  if (facts.kernels + facts.graph_launches == 0) return text;
  const doctor::Tools tools = tools_here();
  const auto chip = chip_of_machine();
  const auto [groups, told] = groups_that_fit(chip ? *chip : "GH100", rarest);
  if (groups.empty()) {
    text += "# No metric group fits: the rarest range occurs " + base::counted(rarest, "time") +
            ", and each pass takes an occurrence. Take rare ranges out of include, or use ncu (--ncu).\n";
    return text;
  }
  text += "pipeline:\n  native:\n    # Counters per range, one pass an occurrence: " + told + ".\n";
  if (!tools.native_counters)
    text += "    # Not switched on, since this machine cannot: " + base::printable(tools.counters_reason) + ".\n";
  text += std::string("    ") + (tools.native_counters ? "" : "# ") + "metrics: [" + base::join(groups, ", ") + "]\n";
  return text;
}

base::Result<void> write_starter(const std::string& text, const fs::path& to) {
  const fs::path draft = to.string() + ".draft";
  TRY(base::write_file(draft, text));
  std::error_code ignored;
  config::Inputs inputs;
  inputs.shipped = TRY(config::shipped_folder());
  inputs.config_files = {draft};
  inputs.now = std::chrono::system_clock::now();
  if (auto composed = config::compose(inputs); !composed) {
    fs::remove(draft, ignored);
    return base::fail(base::Code::kInternal, "the file that was made is not valid: " + composed.error().what,
                      composed.error().where, "Report this, with the names of the program's ranges");
  }
  std::error_code error;
  fs::rename(draft, to, error);
  if (error) return base::fail(base::Code::kIo, "cannot write: " + error.message(), to.string());
  return {};
}

}  // namespace rangescope::profile
