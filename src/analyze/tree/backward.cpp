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
  const std::size_t start = name.rfind(kSequence);
  if (start == std::string_view::npos)
    return -1;
  name.remove_prefix(start + kSequence.size());
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
    collect();
    if (chains_.size() < 2 || functions_.empty())
      return {};
    std::stable_sort(
        operators_.begin(), operators_.end(), [](const Numbered& a, const Numbered& b) {
          return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
                 std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
        });
    domain_ = model::module_domain(s_, true);
    model::BackwardShares shares{0, 0, functions_.size()};
    ThreadPass pass;
    for (const EvaluatedFunction& function : functions_)
      add_function(function, pass, shares);
    return shares.text("function");
  }

 private:
  /// The backward pass of a thread as far as its functions have been added.
  struct ThreadPass {
    std::uint32_t thread = kNone;
    std::uint32_t maker = kNone;    ///< of the latest function: what made it
    std::int64_t last_number = -1;  ///< of the latest function with a number
    std::int64_t until_ns = 0;      ///< end of the latest function
    std::vector<model::StringId> names;
    std::vector<std::uint32_t> ranges;  ///< of these names, as far as they can go on
  };

  /// A range with a sequence number, a function of the backward pass, or a module.
  struct Entry {
    std::uint32_t range;
    std::int64_t number;
    bool function;
  };

  /// Adds the ranges around a function, or lets those of the previous function go on.
  void add_function(const EvaluatedFunction& function,
                    ThreadPass& pass,
                    model::BackwardShares& shares) {
    const Range range = s_.ranges[function.range];
    if (range.thread != pass.thread)
      pass = {.thread = range.thread, .until_ns = range.start_ns};
    if (function.number >= 0) {
      const std::uint32_t process = s_.threads[range.thread].process;
      pass.maker = maker_of({process, function.number, range.start_ns, 0}, operators_);
    }
    if (pass.maker != kNone)
      ++(function.number >= 0 ? shares.by_number : shares.by_place);
    std::vector<model::StringId> chain{s_.strings.intern(model::kBackward)};
    if (pass.maker != kNone)
      chain.insert(chain.end(), chains_[pass.maker]->begin(), chains_[pass.maker]->end());
    const bool is_in_another = range.start_ns < pass.until_ns;
    if (is_in_another) {  // a backward pass of its own
      for (const model::StringId name : chain)
        append_range(range, name);
      return;
    }
    std::size_t shared = 0;
    // Numbers fall within a pass: what made a function came later than what it waits for.
    if (function.number < pass.last_number)
      shared = extend_shared(chain, range.end_ns, pass);
    pass.ranges.resize(shared);
    for (std::size_t i = shared; i < chain.size(); ++i) {
      pass.ranges.push_back(static_cast<std::uint32_t>(s_.ranges.size()));
      append_range(range, chain[i]);
    }
    pass.names = std::move(chain);
    pass.until_ns = range.end_ns;
    if (function.number >= 0)
      pass.last_number = function.number;
  }

  /// Lets the ranges of `pass` that `chain` begins with last until `end_ns`; returns how many.
  std::size_t extend_shared(const std::vector<model::StringId>& chain,
                            std::int64_t end_ns,
                            const ThreadPass& pass) {
    const std::size_t most_shared = std::min(pass.ranges.size(), chain.size());
    std::size_t shared = 0;
    for (; shared < most_shared && pass.names[shared] == chain[shared]; ++shared)
      s_.ranges[pass.ranges[shared]].end_ns = end_ns;
    return shared;
  }

  [[nodiscard]] std::int64_t number_of(const Range& range) const {
    if (range.module || range.domain == domain_)
      return -1;
    if (!s_.processes[s_.threads[range.thread].process].operators)
      return number_in(s_.strings.view(range.name));
    if (range.domain != 0 || range.attributes >= s_.attributes.size())
      return -1;
    const model::Attributes& attributes = s_.attributes[range.attributes];
    return attributes.payload_type == model::PayloadType::kInt64 ? attributes.payload_i64 : -1;
  }
  [[nodiscard]] bool is_module(const Range& range) const {
    return range.module || range.domain == domain_;
  }

  /// Functions with their numbers, and operators with the modules that they are in.
  void collect() {
    std::vector<Entry> open;
    for (const Entry& entry : entries()) {
      const Range& range = s_.ranges[entry.range];
      std::erase_if(
          open, [&](const Entry& earlier) { return !is_open_at(s_.ranges[earlier.range], range); });
      open.push_back(entry);
      if (entry.function)
        functions_.push_back({entry.range, entry.number});
      if (std::ranges::any_of(open, &Entry::function))
        number_function(entry);
      else
        add_operator(open);
    }
  }

  /// Outer ranges before those in them, thread by thread.
  [[nodiscard]] std::vector<Entry> entries() const {
    std::vector<Entry> entries;
    for (std::uint32_t r = 0; r < s_.ranges.size(); ++r) {
      const Range& range = s_.ranges[r];
      if (range.kind != model::RangeKind::kPushPop || range.end_ns == model::kOpen)
        continue;
      const bool function = s_.strings.view(range.name).starts_with(kEvaluates);
      const Entry entry{r, number_of(range), function};
      if (entry.number >= 0 || entry.function || is_module(range))
        entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end(), [&](const Entry& x, const Entry& y) {
      const Range& a = s_.ranges[x.range];
      const Range& b = s_.ranges[y.range];
      return std::tie(a.thread, a.start_ns, b.end_ns, x.range) <
             std::tie(b.thread, b.start_ns, a.end_ns, y.range);
    });
    return entries;
  }

  /// Is `earlier` still open where `range` begins, on the same thread?
  static bool is_open_at(const Range& earlier, const Range& range) {
    if (earlier.thread != range.thread || earlier.end_ns < range.start_ns)
      return false;
    return earlier.end_ns != range.start_ns || earlier.start_ns >= range.start_ns;
  }

  /// Under emit_nvtx a function's number is that of the range of the same name in it.
  void number_function(const Entry& inside) {
    EvaluatedFunction& function = functions_.back();
    const std::string_view name = s_.strings.view(s_.ranges[inside.range].name);
    const std::string_view function_name = s_.strings.view(s_.ranges[function.range].name);
    if (function.number < 0 && name.starts_with(plain(function_name)))
      function.number = inside.number;
  }

  /// Adds the innermost operator of `open` with the modules of `open`.
  void add_operator(const std::vector<Entry>& open) {
    // In traces modules are around operators; modules that launches reported are inside.
    const Range& innermost = s_.ranges[open.back().range];
    if (is_module(innermost) && !innermost.module)
      return;
    const auto numbered =
        std::find_if(open.rbegin(), open.rend(), [](const Entry& e) { return e.number >= 0; });
    if (numbered == open.rend())
      return;
    std::vector<model::StringId> chain;
    for (const Entry& entry : open)
      if (is_module(s_.ranges[entry.range]))
        chain.push_back(s_.ranges[entry.range].name);
    if (chain.empty() && domain_ == kNone)
      return;
    const auto [chain_number, added] =
        numbers_.try_emplace(std::move(chain), static_cast<std::uint32_t>(chains_.size()));
    if (added)
      chains_.push_back(&chain_number->first);
    const Range& range = s_.ranges[numbered->range];
    const std::uint32_t process = s_.threads[range.thread].process;
    operators_.emplace_back(process, numbered->number, range.start_ns, chain_number->second);
  }

  /// The function's own name.
  static std::string_view plain(std::string_view name) {
    name.remove_prefix(kEvaluates.size());
    return name.substr(0, name.find(','));
  }

  /// Appends a range for the time of `function`.
  void append_range(const Range& function, model::StringId name) {
    Range range;
    range.start_ns = function.start_ns;
    range.end_ns = function.end_ns;
    range.thread = function.thread;
    range.name = name;
    range.domain = domain_;
    range.module = true;
    s_.ranges.push_back(range);
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
