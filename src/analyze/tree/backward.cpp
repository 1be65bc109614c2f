#include "analyze/tree/backward.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::kEvaluates;
using model::kNone;
using model::Range;

constexpr std::string_view kSequence = ", seq = ";

std::int64_t number_in(std::string_view name) {
  const std::size_t at = name.rfind(kSequence);
  if (at == std::string_view::npos)
    return -1;
  name.remove_prefix(at + kSequence.size());
  return base::to_int(name.substr(0, name.find(','))).value_or(-1);
}

struct EvaluatedFunction {
  std::uint32_t range = 0;
  std::int64_t number = -1;
};

class BackwardModules {
 public:
  explicit BackwardModules(model::Session& session)
      : s_(session), domain_(model::module_domain(session, false)) {}

  std::string add() {
    if (!model::has_evaluated_functions(s_))
      return s_.backward.text("launch");
    sweep();
    if (chains_.size() < 2 || functions_.empty())
      return {};
    std::stable_sort(
        operators_.begin(), operators_.end(), [](const Numbered& a, const Numbered& b) {
          return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
                 std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
        });
    domain_ = model::module_domain(s_, true);
    model::BackwardShares shares{0, 0, functions_.size()};
    std::uint32_t last = kNone, thread = kNone;
    std::int64_t last_number = -1, until_ns = 0;
    std::vector<model::StringId> names;
    std::vector<std::uint32_t> calls;  // ranges of these names
    for (const EvaluatedFunction& function : functions_) {
      const Range range = s_.ranges[function.range];
      if (range.thread != thread) {
        last = kNone;
        last_number = -1;
        until_ns = range.start_ns;
        calls.clear();
      }
      thread = range.thread;
      if (function.number >= 0) {
        last =
            maker_of({s_.threads[thread].process, function.number, range.start_ns, 0}, operators_);
        shares.by_number += last != kNone ? 1 : 0;
      } else {
        shares.by_place += last != kNone ? 1 : 0;
      }
      std::vector<model::StringId> chain{s_.strings.intern(model::kBackward)};
      if (last != kNone)
        chain.insert(chain.end(), chains_[last]->begin(), chains_[last]->end());
      if (range.start_ns < until_ns) {  // in another function: a backward pass of its own
        for (const model::StringId name : chain)
          put(range, name);
        continue;
      }
      std::size_t same =
          0;  // numbers fall within a pass: what made a function came later than what it waits for
      while (function.number < last_number && same < std::min(calls.size(), chain.size()) &&
             names[same] == chain[same])
        s_.ranges[calls[same++]].end_ns = range.end_ns;
      calls.resize(same);
      for (std::size_t i = same; i < chain.size(); ++i) {
        calls.push_back(static_cast<std::uint32_t>(s_.ranges.size()));
        put(range, chain[i]);
      }
      names = std::move(chain);
      until_ns = range.end_ns;
      if (function.number >= 0)
        last_number = function.number;
    }
    return shares.text("function");
  }

 private:
  [[nodiscard]] std::int64_t number_of(const Range& range) const {
    if (range.module || range.domain == domain_)
      return -1;
    if (!s_.processes[s_.threads[range.thread].process].operators)
      return number_in(s_.strings.view(range.name));
    if (range.domain != 0 || range.attributes >= s_.attributes.size())
      return -1;
    const model::Attributes& with = s_.attributes[range.attributes];
    return with.payload_type == model::PayloadType::kInt64 ? with.payload_i64 : -1;
  }
  [[nodiscard]] bool is_module(const Range& range) const {
    return range.module || range.domain == domain_;
  }

  /// Functions with their numbers, and operators with the modules that they are in.
  void sweep() {
    struct Of {
      std::uint32_t range;
      std::int64_t number;
      bool function;
    };
    std::vector<Of> all;
    for (std::uint32_t r = 0; r < s_.ranges.size(); ++r) {
      const Range& range = s_.ranges[r];
      if (range.kind != model::RangeKind::kPushPop || range.end_ns == model::kOpen)
        continue;
      const Of of{r, number_of(range), s_.strings.view(range.name).starts_with(kEvaluates)};
      if (of.number >= 0 || of.function || is_module(range))
        all.push_back(of);
    }
    std::sort(all.begin(), all.end(), [&](const Of& x, const Of& y) {
      const Range &a = s_.ranges[x.range], &b = s_.ranges[y.range];
      return std::tie(a.thread, a.start_ns, b.end_ns, x.range) <
             std::tie(b.thread, b.start_ns, a.end_ns, y.range);
    });
    std::vector<Of> open;
    for (const Of& of : all) {
      const Range& range = s_.ranges[of.range];
      std::erase_if(open, [&](const Of& one) {
        const Range& before = s_.ranges[one.range];
        return before.thread != range.thread || before.end_ns < range.start_ns ||
               (before.end_ns == range.start_ns && before.start_ns < range.start_ns);
      });
      if (of.function)
        functions_.push_back({of.range, of.number});
      open.push_back(of);
      const auto function =
          std::find_if(open.begin(), open.end(), [](const Of& one) { return one.function; });
      if (function !=
          open.end()) {  // under emit_nvtx the number is that of the range of the same name in it
        const std::string_view name = s_.strings.view(range.name);
        const std::string_view around = s_.strings.view(s_.ranges[functions_.back().range].name);
        if (functions_.back().number < 0 && name.starts_with(plain(around)))
          functions_.back().number = of.number;
        continue;
      }
      // In traces modules are around operators; where launches told them they are inside.
      const auto made_by =
          std::find_if(open.rbegin(), open.rend(), [](const Of& one) { return one.number >= 0; });
      if (made_by == open.rend() || (is_module(range) && !range.module))
        continue;
      const Range& made = s_.ranges[made_by->range];
      std::vector<model::StringId> chain;
      for (const Of& one : open)
        if (is_module(s_.ranges[one.range]))
          chain.push_back(s_.ranges[one.range].name);
      if (chain.empty() && domain_ == kNone)
        continue;
      const auto at =
          numbers_.try_emplace(std::move(chain), static_cast<std::uint32_t>(chains_.size()));
      if (at.second)
        chains_.push_back(&at.first->first);
      operators_.emplace_back(
          s_.threads[made.thread].process, made_by->number, made.start_ns, at.first->second);
    }
  }

  /// The function's own name.
  static std::string_view plain(std::string_view name) {
    name.remove_prefix(kEvaluates.size());
    return name.substr(0, name.find(','));
  }

  void put(const Range& function, model::StringId name) {
    Range made;
    made.start_ns = function.start_ns;
    made.end_ns = function.end_ns;
    made.thread = function.thread;
    made.name = name;
    made.domain = domain_;
    made.module = true;
    s_.ranges.push_back(made);
  }

  model::Session& s_;
  std::uint32_t domain_ = kNone;
  std::vector<EvaluatedFunction> functions_;
  std::map<std::vector<model::StringId>, std::uint32_t> numbers_;
  std::vector<const std::vector<model::StringId>*> chains_;
  std::vector<Numbered> operators_;
};

}  // namespace

std::uint32_t maker_of(const Numbered& function, const std::vector<Numbered>& operators) {
  const auto& [process, number, start, none] = function;
  const auto next =
      std::lower_bound(operators.begin(), operators.end(), Numbered{process, number, start, 0});
  if (next == operators.begin())
    return kNone;
  const auto& [of_process, of_number, of_start, made] = *std::prev(next);
  return of_process == process && of_number == number ? made : kNone;
}

std::string add_backward_modules(model::Session& session) {
  return BackwardModules(session).add();
}

}  // namespace rangescope::analyze
