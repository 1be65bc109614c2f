#include "analyze/names/kernel_labels.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

constexpr std::size_t kMostWords = 3;
// Rows of one short name whose words are compared: more are labelled by their shape.
constexpr std::size_t kMostAlike = 300;

bool is_identifier_byte(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  const bool is_beyond_ascii = static_cast<unsigned char>(c) >= 0x80;
  return is_letter || is_beyond_ascii || base::is_digit(c);
}

std::string without_anonymous(std::string_view name) {
  const std::string without_long = base::replace_all(name, "(anonymous namespace)::", "");
  return base::replace_all(without_long, "<unnamed>::", "");
}

/// WordSet behind the short name, each once, in their order: template arguments, then parameters.
std::vector<std::string> words_of(const model::KernelRow& row) {
  const std::string name = without_anonymous(row.name);
  const std::size_t short_name = name.find(row.short_name);
  std::string_view rest = name;
  if (short_name != std::string::npos)
    rest.remove_prefix(short_name + row.short_name.size());
  std::vector<std::string> words;
  std::set<std::string_view> seen;
  while (!rest.empty()) {
    std::size_t end = 0;
    while (end < rest.size() && is_identifier_byte(rest[end]))
      ++end;
    const std::string_view word = rest.substr(0, end);
    const bool is_namespace = rest.substr(end).starts_with("::");
    if (end > 0 && !is_namespace && seen.insert(word).second)
      words.emplace_back(word);
    rest.remove_prefix(std::max<std::size_t>(end, 1));
  }
  return words;
}

std::string shape_text(const model::KernelShape& shape) {
  const auto size_text = [](const std::array<std::uint32_t, 3>& size) {
    std::string text = std::to_string(size[0]);
    if (size[1] > 1 || size[2] > 1)
      text += "x" + std::to_string(size[1]);
    if (size[2] > 1)
      text += "x" + std::to_string(size[2]);
    return text;
  };
  return "grid " + size_text(shape.grid) + ", block " + size_text(shape.block);
}

using WordSet = std::set<std::string>;

/// The word of `own` that the fewest of `others` have: of equals the first, but a name rather than
/// a number. Null if all others have all of them.
const std::string* rarest_word(const std::vector<std::string>& own,
                               const std::vector<const WordSet*>& others) {
  const std::string* rarest = nullptr;
  std::size_t fewest = others.size();
  for (const std::string& word : own) {
    const auto shared = static_cast<std::size_t>(
        std::ranges::count_if(others, [&](const WordSet* other) { return other->contains(word); }));
    const bool is_name = word.size() > 2 && !base::is_digit(word[0]);
    const bool is_equal = rarest != nullptr && shared == fewest;
    const bool replaces_number = is_equal && is_name && base::is_digit((*rarest)[0]);
    if (shared >= fewest && !replaces_number)
      continue;
    fewest = shared;
    rarest = &word;
  }
  return rarest;
}

/// The words of `own` that the fewest of `others` have, as long as each leaves fewer that have all
/// of them.
std::vector<std::string> distinguishing_words(const std::vector<std::string>& own,
                                              std::vector<const WordSet*> others) {
  std::vector<std::string> chosen;
  while (!others.empty() && chosen.size() < kMostWords) {
    const std::string* word = rarest_word(own, others);
    if (word == nullptr)
      break;
    chosen.push_back(*word);
    std::erase_if(others, [&](const WordSet* other) { return !other->contains(*word); });
  }
  const auto place_of = [&](const std::string& word) {
    return std::ranges::find(own, word) - own.begin();
  };
  std::ranges::sort(chosen, {}, place_of);
  return chosen;
}

/// Functions of CUTLASS and Composable Kernel that run the kernel which their template argument
/// names.
constexpr std::string_view kWrappers[] = {"Kernel", "Kernel2", "device_kernel", "kentry"};

/// "Kernel2<cutlass_80_tensorop_s1688gemm>": by the first word that is no flag, number or
/// architecture.
void name_wrapped(model::KernelRow& row) {
  const std::vector<std::string> words = words_of(row);
  const auto first =
      std::ranges::find_if(words, [](const std::string& word) { return word.size() > 8; });
  if (first != words.end())
    row.label += "<" + *first + ">";
}

/// Adds to each label the words that distinguish the row.
void label_by_words(const std::string& name, const std::vector<model::KernelRow*>& rows) {
  std::vector<std::vector<std::string>> words;
  std::vector<WordSet> sets;
  for (const model::KernelRow* row : rows) {
    words.push_back(words_of(*row));
    sets.emplace_back(words.back().begin(), words.back().end());
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<const WordSet*> others;
    for (std::size_t k = 0; k < sets.size(); ++k)
      if (k != i)
        others.push_back(&sets[k]);
    const auto distinguishing = distinguishing_words(words[i], std::move(others));
    if (!distinguishing.empty())
      rows[i]->label = name + "<" + base::join(distinguishing, ", ") + ">";
  }
}

/// Labels rows of one short name by the words that differ, else by their shape.
void label_alike(const std::string& name, const std::vector<model::KernelRow*>& rows) {
  if (rows.size() <= kMostAlike)
    label_by_words(name, rows);
  std::map<std::string, std::size_t> used;
  for (const model::KernelRow* row : rows)
    ++used[row->label];
  for (model::KernelRow* row : rows)
    if (used[row->label] > 1)
      row->label += " (" + shape_text(row->shape) + ")";
}

}  // namespace

void tell_kernels_apart(model::Report& report) {
  std::map<std::string, std::vector<model::KernelRow*>> rows_of;
  for (model::KernelRow& row : report.kernels) {
    row.label = row.short_name;
    if (row.label.empty())
      row.label = row.name;
    rows_of[row.label].push_back(&row);
  }
  for (const auto& [name, rows] : rows_of) {
    if (rows.size() > 1)
      label_alike(name, rows);
    else if (std::ranges::find(kWrappers, name) != std::end(kWrappers))
      name_wrapped(*rows.front());
  }
  std::unordered_map<std::string_view, const std::string*> labels;
  for (const model::KernelRow& row : report.kernels)
    labels.emplace(row.name, &row.label);
  const auto apply = [&](base::Held<model::GpuWork>& work) {
    if (!work)
      return;
    for (model::KernelRow& row : work->top_kernels) {
      const auto found = labels.find(row.name);
      if (found != labels.end())
        row.label = *found->second;
    }
  };
  apply(report.total);
  apply(report.unattributed);
  for (model::Region& region : report.regions)
    apply(region.gpu);
}

std::string folded_kernel(std::string_view name) {
  const std::string text = base::replace_all(without_anonymous(name), "::operator()", "");
  // Everything in <> and () goes, with the numbers of lambdas in braces.
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool arrow = c == '>' && i > 0 && text[i - 1] == '-';
    if (c == '<' || c == '(' || c == '{' || c == '[')
      ++depth;
    if (depth == 0)
      out += c;
    if (depth > 0 && !arrow && (c == '>' || c == ')' || c == '}' || c == ']'))
      --depth;
  }
  std::string_view folded = base::trim(out);
  for (const std::string_view end : {" const", " [clone]"}) {
    if (folded.ends_with(end))
      folded = base::trim(folded.substr(0, folded.size() - end.size()));
  }
  // The return type is the text before the last space.
  if (const auto space = folded.rfind(' '); space != std::string_view::npos)
    folded = folded.substr(space + 1);
  if (folded.empty())
    return std::string(name);
  std::string kernel(folded);
  if (kernel.ends_with("::"))
    kernel += "{lambda}";
  return kernel;
}

}  // namespace rangescope::analyze
