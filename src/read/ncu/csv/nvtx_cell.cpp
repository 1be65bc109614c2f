#include "read/ncu/csv/nvtx_cell.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"

namespace rangescope::read::ncu_csv {
namespace {

using namespace std::string_view_literals;

// Longer than any range's name, and more quotes: they bound the work on damaged cells.
constexpr std::size_t kMostEntry = 64 * 1024;
constexpr int kMostQuotes = 64;
constexpr std::string_view kDefault = "<default domain>";
constexpr std::array kPayloads{"none"sv,
                               "Uint64"sv,
                               "Int64"sv,
                               "Double"sv,
                               "Uint32"sv,
                               "Int32"sv,
                               "Float"sv,
                               "Json"sv,
                               "JsonRegistered"sv};
constexpr std::array kMessages{
    "none"sv, "ASCII"sv, "UNICODE"sv, "Unicode"sv, "REGISTERED"sv, "Registered"sv, "UNKNOWN"sv};

bool one_of(std::string_view word, auto& words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_color_type(std::string_view word) {
  return word == "none" || word == "RGB" || word == "ARGB" || word == "UNKNOWN";
}

bool is_color(std::string_view word) {
  return word == "none" || (!word.empty() && word.find_first_not_of("0123456789abcdefxABCDEFX#-") ==
                                                 std::string_view::npos);
}

struct Split {
  std::string_view head;     // "domain:name"
  std::string_view message;  // "" when there is none
  bool sure = false;         // no message, or one that repeats the name: the entry surely ends here
};

/// Splits "head:PL:value:CLR:color:MSG:message" (or "head:PL:value", 2020) where the words fit. Of
/// several ways the one whose message is the end of its head, else the one with the longest head.
std::optional<Split> split_entry(std::string_view entry) {
  std::vector<std::size_t> colons;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    if (entry[i] == ':')
      colons.push_back(i);
  }
  const auto field = [&](std::size_t c) {  // between colon c and the next
    const std::size_t begin = colons[c] + 1,
                      end = c + 1 < colons.size() ? colons[c + 1] : entry.size();
    return entry.substr(begin, end - begin);
  };
  std::optional<Split> longest;
  const std::size_t n = colons.size();
  for (std::size_t c = n; c-- > 0;) {  // c: the colon before PL_Type
    if (!one_of(field(c), kPayloads))
      continue;
    // a payload (JSON) may hold colons itself, so the colour's place is searched
    for (std::size_t k = c + 2; k + 3 <= n && k < c + 40; ++k) {
      if (k + 2 >= n || !is_color_type(field(k)) || !is_color(field(k + 1)) ||
          !one_of(field(k + 2), kMessages))
        continue;
      const std::string_view message_type = field(k + 2);
      std::string_view message;
      if (k + 3 < n)
        message = entry.substr(colons[k + 3] + 1);
      if (message_type == "none" && message != "none")
        continue;
      const Split found{entry.substr(0, colons[c]),
                        message_type == "none" ? std::string_view{} : message,
                        message_type == "none"};
      if (found.message.empty() && message_type == "none") {
        if (!longest)
          longest = found;
      } else if (found.head == found.message ||
                 found.head.ends_with(":" + std::string(found.message))) {
        return Split{found.head, found.message, true};
      } else if (!longest) {
        longest = found;
      }
      break;
    }
  }
  if (longest)
    return longest;
  if (n >= 2 && one_of(field(n - 2), kPayloads))
    return Split{entry.substr(0, colons[n - 2]), {}, true};
  return std::nullopt;
}

CellRange named(const Split& split, bool has_domain) {
  CellRange range;
  if (!has_domain) {
    range.name = split.head;
    return range;
  }
  const std::string_view head = split.head;
  std::size_t colon = std::string_view::npos;
  if (head.starts_with(kDefault) && head.size() > kDefault.size() && head[kDefault.size()] == ':') {
    colon = kDefault.size();
  } else if (!split.message.empty() && head.size() > split.message.size() &&
             head.ends_with(split.message) && head[head.size() - split.message.size() - 1] == ':') {
    colon = head.size() - split.message.size() - 1;
  } else {
    colon = head.find(':');
  }
  if (colon == std::string_view::npos) {
    range.name = head;
    return range;
  }
  range.domain = head.substr(0, colon);
  if (range.domain == kDefault)
    range.domain = {};
  range.name = head.substr(colon + 1);
  return range;
}

/// Walks the quoted entries; where a name holds quotes, the entry is the shortest one that splits
/// and is followed by a blank or the end.
template <class Take>
void for_each_entry(std::string_view cell, std::uint64_t& left_over, Take&& take) {
  std::uint64_t thread = 0;
  std::size_t offset = 0;
  while (offset < cell.size()) {
    if (cell[offset] == ' ') {
      ++offset;
      continue;
    }
    if (cell[offset] != '"') {
      const std::size_t end = std::min(cell.find(' ', offset), cell.size());
      const auto number = base::to_uint(cell.substr(offset, end - offset));
      if (number)
        thread = *number;
      else
        ++left_over;
      offset = end;
      continue;
    }
    std::optional<Split> found;
    std::size_t end = offset;
    int candidates = 0;
    for (std::size_t close = cell.find('"', offset + 1); close != std::string_view::npos;
         close = cell.find('"', close + 1)) {
      if (close + 1 < cell.size() && cell[close + 1] != ' ')
        continue;
      if (close - offset > kMostEntry || ++candidates > kMostQuotes)
        break;
      const auto split = split_entry(cell.substr(offset + 1, close - offset - 1));
      if (!split || (found && !split->sure))
        continue;
      found = split;
      end = close + 1;
      if (split->sure)
        break;
    }
    if (!found) {
      ++left_over;
      return;
    }
    take(*found, thread);
    offset = end;
  }
}

}  // namespace

std::vector<CellRange> parse_cell(std::string_view cell,
                                  Cell kind,
                                  std::string_view domain,
                                  std::uint64_t& left_over) {
  std::vector<CellRange> ranges;
  for_each_entry(cell, left_over, [&](Split split, std::uint64_t thread) {
    std::uint64_t id = 0;
    if (kind == Cell::kStartEnd) {
      const std::size_t colon = std::min(split.head.find(':'), split.head.size() - 1);
      const auto number = base::to_uint(split.head.substr(0, colon));
      if (!number)
        return void(++left_over);
      id = *number;
      split.head.remove_prefix(colon + 1);
    }
    CellRange& range = ranges.emplace_back(named(split, kind != Cell::kSummary));
    if (kind == Cell::kSummary)
      range.domain = domain == kDefault ? std::string_view{} : domain;
    if (kind == Cell::kPushPop)
      range.thread = thread;
    range.id = id;
  });
  return ranges;
}

}  // namespace rangescope::read::ncu_csv
