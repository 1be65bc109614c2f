#include "analyze/names/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "analyze/statistics/length.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;
using model::StringId;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/// What PyTorch prints, eaten from the front.
class Printed {
 public:
  explicit Printed(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool number() {
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    rest_.remove_prefix(end);
    return end > 0;
  }
  /// One shape: "[4, 8]", "[]".
  [[nodiscard]] bool shape() { return take("[]") || list(&Printed::number); }
  /// The number of an operation, and which of its outputs, -1 for an input that none made:
  /// "(21,0)".
  [[nodiscard]] bool producer() {
    return take("(") && number() && take(",") && (take("-") || true) && number() && take(")");
  }
  [[nodiscard]] bool list(bool (Printed::*item)()) {
    if (!take("["))
      return false;
    do {
      if (!(this->*item)())
        return false;
    } while (take(", "));
    return take("]");
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  bool take(std::string_view text) {
    if (!rest_.starts_with(text))
      return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view rest_;
};

/// The name without `key` and a value at its end.
template <class Value>
std::string_view without(std::string_view name, std::string_view key, Value value) {
  const std::size_t start = name.rfind(key);
  if (start == std::string_view::npos || start == 0)
    return name;
  Printed printed(name.substr(start + key.size()));
  const bool is_at_end = value(printed) && printed.at_end();
  if (!is_at_end)
    return name;
  return name.substr(0, start);
}

/// "XlaModule: jit_step" of XLA's "XlaModule:#hlo_module=jit_step,program_id=7#"; "" of other
/// names.
std::string of_xla(std::string_view name) {
  constexpr std::string_view kDomain = "TSL:";
  if (name.starts_with(kDomain))
    name.remove_prefix(kDomain.size());
  const std::size_t hash = name.find(":#");
  if (hash == std::string_view::npos || name.size() < hash + 3 || name.back() != '#')
    return {};
  const std::string_view title = name.substr(0, hash);
  const std::string_view pairs = name.substr(hash + 2, name.size() - hash - 3);
  for (const char* key : {"hlo_op", "hlo_module", "module", "name"}) {
    const std::string prefix = std::string(key) + "=";
    for (const std::string_view pair : base::split(pairs, ',')) {
      if (pair.size() <= prefix.size() || !pair.starts_with(prefix))
        continue;
      const std::string_view value = pair.substr(prefix.size());
      return std::string(title) + ": " + std::string(value);
    }
  }
  return {};
}

std::string_view without_metadata(std::string_view name) {
  if (name.empty() || (name.back() != ']' && !base::is_digit(name.back())))
    return name;
  const auto number = [](Printed& printed) { return printed.number(); };
  const auto shapes = [](Printed& printed) { return printed.list(&Printed::shape); };
  const auto producers = [](Printed& printed) { return printed.list(&Printed::producer); };
  name = without(name, ", input_op_ids = ", producers);
  name = without(name, ", sizes = ", shapes);
  name = without(name, ", op_id = ", number);
  return without(name, ", seq = ", number);
}

/// Do digits behind this word say what it is, and not which one?
bool is_format(std::string_view word) {
  if (word.size() == 1)
    return true;
  const std::string lower = base::lower(word);
  for (const char* format :
       {"int", "uint", "fp", "bf", "tf", "float", "bfloat", "complex", "utf", "sha", "md", "crc"})
    if (lower == format)
      return true;
  return false;
}

/// Is the number that begins at `at` one of its own, judged by the text before it?
bool begins_number(std::string_view name, std::size_t at) {
  std::size_t word = at;
  while (word > 0 && is_letter(name[word - 1]))
    --word;
  if (word == at)
    return true;
  return (word == 0 || !base::is_digit(name[word - 1])) && !is_format(name.substr(word, at - word));
}

bool is_word_byte(char c) {
  return base::is_digit(c) || is_letter(c);
}

bool is_hex_digit(char c) {
  return base::is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Where the hexadecimal id ends that begins at `at`; `at` where none does: "0x7f3a9c00",
/// "3fa9c1b2", or a group of a UUID. It is a whole word, with digits and letters, and long enough
/// not to say what something is ("fp16", "0x7f").
std::size_t end_of_hex_id(std::string_view name, std::size_t at) {
  constexpr std::size_t kShortest = 6, kShortestAddress = 4, kUuidGroup = 4;
  if (at > 0 && is_word_byte(name[at - 1]))
    return at;
  std::size_t end = at;
  while (end < name.size() && is_word_byte(name[end]))
    ++end;
  const std::string_view word = name.substr(at, end - at);
  const auto is_hex = [](std::string_view text) { return std::ranges::all_of(text, is_hex_digit); };
  if (word.starts_with("0x") || word.starts_with("0X")) {
    const std::string_view address = word.substr(2);
    if (address.size() < kShortestAddress || !is_hex(address))
      return at;
    return end;
  }
  if (!is_hex(word))
    return at;
  const bool has_both =
      std::ranges::any_of(word, base::is_digit) && std::ranges::any_of(word, is_letter);
  const bool between_hyphens =
      at > 0 && name[at - 1] == '-' && end < name.size() && name[end] == '-';
  const bool in_uuid = word.size() == kUuidGroup && between_hyphens;
  const bool is_long = word.size() >= kShortest || in_uuid;
  if (!has_both || !is_long)
    return at;
  return end;
}

std::string without_numbers(std::string_view name) {
  std::string out;
  const auto add_number_sign = [&] {
    if (!out.ends_with('#'))  // ProfilerStep#12
      out += '#';
  };
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t id_end = end_of_hex_id(name, i);
    if (id_end > i) {
      add_number_sign();
      i = id_end;
      continue;
    }
    std::size_t end = i;
    while (end < name.size() && base::is_digit(name[end]))
      ++end;
    if (end == i) {
      out += name[i++];
      continue;
    }
    const bool ends_number = end == name.size() || !is_letter(name[end]);
    if (ends_number && begins_number(name, i))
      add_number_sign();
    else
      out += name.substr(i, end - i);
    i = end;
  }
  return out;
}

/// Unknown where one of both is.
template <class Value, class Combine>
void combine(std::optional<Value>& to, const std::optional<Value>& from, Combine combined) {
  if (to && from)
    to = combined(*to, *from);
  else
    to = std::nullopt;
}

/// Totals of one name, put together; what cannot be known of the sum (its median) is absent.
void add(model::RangeSummary& to, const model::RangeSummary& from) {
  const bool is_count_known = to.occurrences >= 0 && from.occurrences >= 0;
  if (is_count_known)
    to.occurrences += from.occurrences;
  else
    to.occurrences = -1;
  combine(to.total_ns, from.total_ns, std::plus<>());
  combine(to.gpu_span_ns, from.gpu_span_ns, std::plus<>());
  combine(to.gpu_operations, from.gpu_operations, std::plus<>());
  const auto smaller = [](double a, double b) { return std::min(a, b); };
  const auto larger = [](double a, double b) { return std::max(a, b); };
  model::SummarySpread& spread = to.per_occurrence_ns;
  combine(spread.min, from.per_occurrence_ns.min, smaller);
  combine(spread.max, from.per_occurrence_ns.max, larger);
  spread.median = spread.stddev = spread.mean = std::nullopt;
  if (to.total_ns && to.occurrences > 0)
    spread.mean = *to.total_ns / static_cast<double>(to.occurrences);
}

template <class Rename>
void rename(Session& session, Rename rename) {
  for (model::Range& range : session.ranges)
    range.name = rename(range.name);
  for (model::Measurement& result : session.measurements)
    for (model::OpenRange& range : result.ranges)
      range.name = rename(range.name);
  for (model::CounterWait& wait : session.counter_waits)
    for (StringId& name : wait.path)
      name = rename(name);
  for (auto& path : session.captured_paths)
    for (model::OpenRange& range : path)
      range.name = rename(range.name);
}

template <class Fold>
void fold_summary(model::Summary& summary, Fold fold) {
  using Name = std::tuple<StringId, StringId, model::RangeKind>;
  std::map<Name, std::size_t> at;
  std::vector<model::RangeSummary> ranges;
  for (model::RangeSummary row : summary.ranges) {
    row.name = fold(row.name);
    const auto [found, added] = at.try_emplace({row.domain, row.name, row.kind}, ranges.size());
    if (added)
      ranges.push_back(row);
    else
      add(ranges[found->second], row);
  }
  summary.ranges = std::move(ranges);
  // A row counts the range in its thread; every kernel of that thread repeats the count.
  using Thread = std::pair<std::uint32_t, std::uint32_t>;
  std::map<std::tuple<Name, Thread>, std::int64_t> recorded, folded;
  for (const model::KernelSummary& row : summary.kernels) {
    std::int64_t& occurrences = recorded[{{row.domain, row.range, row.kind}, {row.pid, row.tid}}];
    occurrences = std::max(occurrences, row.occurrences);
  }
  for (const auto& [key, occurrences] : recorded) {
    const auto& [domain, range, kind] = std::get<Name>(key);
    folded[{{domain, fold(range), kind}, std::get<Thread>(key)}] += occurrences;
  }
  for (model::KernelSummary& row : summary.kernels) {
    row.range = fold(row.range);
    row.occurrences = folded[{{row.domain, row.range, row.kind}, {row.pid, row.tid}}];
  }
  std::map<StringId, std::vector<StringId>> paths;
  for (auto& [name, path] : summary.paths) {
    for (StringId& level : path)
      level = fold(level);
    paths.emplace(fold(name), std::move(path));
  }
  summary.paths = std::move(paths);
}

}  // namespace

std::string folded_name(std::string_view name, FoldNames how) {
  if (how == FoldNames::kOff)
    return std::string(name);
  std::string stem = of_xla(name);
  if (stem.empty())
    stem = std::string(without_metadata(name));
  if (how == FoldNames::kNumbers)
    return without_numbers(stem);
  return stem;
}

bool NameFolder::stays(std::string_view recorded, std::string_view folded) const {
  const auto as_recorded = [&](const model::RangeTerm& term) {
    return std::any_of(
        term.forms.begin(), term.forms.end(), [&](const model::RangeExpression& form) {
          return form.has_name(recorded) && !form.has_name(folded);
        });
  };
  return std::any_of(ranges_.include.begin(), ranges_.include.end(), as_recorded) ||
         std::any_of(ranges_.exclude.begin(), ranges_.exclude.end(), as_recorded);
}

std::string NameFolder::fold(Session& session) const {
  if (how_ == FoldNames::kOff)
    return {};
  return fold(session, how_);
}

std::string NameFolder::fold(Session& session, FoldNames how) const {
  constexpr StringId kUnknown = model::kNone;
  std::vector<StringId> known(session.strings.size(), kUnknown);
  std::unordered_set<StringId> results;
  std::uint64_t folded = 0, stayed = 0;
  const auto fold = [&](StringId id) {
    if (id >= known.size())
      return id;
    if (known[id] != kUnknown)
      return known[id];
    known[id] = id;
    const std::string_view recorded = session.strings.view(id);
    const std::string name = folded_name(recorded, how);
    if (name == recorded)
      return id;
    if (stays(recorded, name)) {
      ++stayed;
      return id;
    }
    ++folded;
    known[id] = session.strings.intern(name);
    results.insert(known[id]);
    return known[id];
  };
  rename(session, fold);
  if (!session.summary.empty())
    fold_summary(session.summary, fold);
  if (folded == 0)
    return {};
  std::string_view change = "seq, op_id and sizes of PyTorch's emit_nvtx were cut off";
  if (how == FoldNames::kNumbers)
    change = "numbers became #";
  std::string text = fmt::format("{} folded to {} ({}); --fold-names off keeps them",
                                 base::counted(folded, "range name was", "range names were"),
                                 base::counted(results.size(), "name"),
                                 change);
  if (stayed > 0)
    text += fmt::format(". {} as recorded: --include or --exclude names them so",
                        base::counted(stayed, "name stayed", "names stayed"));
  return text;
}

namespace {

struct TimedName {
  std::uint64_t time_ns = 0;
  StringId id = 0;
};

/// Of all ranges, by id.
std::vector<TimedName> timed_names(const Session& session) {
  std::vector<std::uint64_t> time_ns(session.strings.size());
  for (const model::Range& range : session.ranges) {
    std::int64_t end_ns = range.end_ns;
    if (end_ns == model::kOpen)
      end_ns = session.end_ns;
    if (range.name < time_ns.size())
      time_ns[range.name] += 1 + static_cast<std::uint64_t>(length_ns(range.start_ns, end_ns));
  }
  std::vector<TimedName> names;
  for (StringId id = 0; id < time_ns.size(); ++id)
    if (time_ns[id] > 0)
      names.push_back({time_ns[id], id});
  return names;
}

}  // namespace

void NameFolder::merge_others(std::vector<StringId> others, Session& session) const {
  const std::string merged_name = fmt::format("({} other names)", others.size());
  const StringId merged = session.strings.intern(merged_name);
  std::erase_if(others, [&](StringId id) { return stays(session.strings.view(id), merged_name); });
  std::vector<char> is_merged(session.strings.size());
  for (const StringId id : others)
    is_merged[id] = 1;
  rename(session, [&](StringId id) {
    if (id < is_merged.size() && is_merged[id] != 0)
      return merged;
    return id;
  });
}

void NameFolder::bound(Session& session) const {
  if (how_ == FoldNames::kOff || session.ranges.size() <= kMostNames)
    return;
  std::vector<TimedName> names = timed_names(session);
  const std::size_t recorded = names.size();
  if (recorded <= kMostNames)
    return;
  if (how_ == FoldNames::kAuto) {
    (void)fold(session, FoldNames::kNumbers);
    names = timed_names(session);
  }
  const std::size_t numbered = names.size();
  if (numbered > kMostNames) {
    std::ranges::stable_sort(names, std::ranges::greater(), &TimedName::time_ns);
    std::vector<StringId> others;
    for (std::size_t i = kMostNames; i < names.size(); ++i)
      others.push_back(names[i].id);
    merge_others(std::move(others), session);
  }
  std::vector<std::string> changes;
  if (numbered < recorded)
    changes.emplace_back("numbers became #");
  if (numbered > kMostNames)
    changes.push_back(
        fmt::format("those with the least time are '({} other names)'", numbered - kMostNames));
  session.losses.push_back(
      {"folded_names",
       recorded - std::min(numbered, kMostNames),
       fmt::format("a report cannot show {} range names: {}; --fold-names off keeps them",
                   recorded,
                   base::join(changes, ", and "))});
}

}  // namespace rangescope::analyze
