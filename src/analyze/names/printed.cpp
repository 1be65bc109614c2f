#include "analyze/names/printed.hpp"

#include <algorithm>

#include "analyze/names/fold.hpp"
#include "base/text.hpp"
#include "model/module_name.hpp"

namespace rangescope::analyze {
namespace {

constexpr std::string_view kBelow = " > ";

/// "layers.# (Layer) x32" without " x32".
std::string_view without_count(std::string_view written) {
  const std::size_t mark = written.rfind(" x");
  if (mark == std::string_view::npos)
    return written;
  const std::string_view count = written.substr(mark + 2);
  const bool is_number = !count.empty() && base::to_uint(count).has_value();
  return is_number ? written.substr(0, mark) : written;
}

/// "model.layers.3 (Layer)" without its type.
std::string_view without_type(std::string_view name) {
  return name.ends_with(')') ? model::without_class(name) : name;
}

/// "mlp (Mlp)" of "model.layers.3.mlp (Mlp)" below "model.layers.3 (Layer)".
std::string_view without_path(std::string_view name, std::string_view above) {
  const std::string path = std::string(without_type(above)) + ".";
  return name.starts_with(path) ? name.substr(path.size()) : name;
}

bool is_printed_as(std::string_view name, std::string_view above, std::string_view printed) {
  for (const std::string_view shorter : {name, without_path(name, above)})
    for (const std::string_view shown : {shorter, without_type(shorter)}) {
      const std::string text = base::printable(shown);
      if (text == printed || folded_name(text, FoldNames::kNumbers) == printed)
        return true;
    }
  return false;
}

}  // namespace

PrintedPath::PrintedPath(std::string_view written) {
  written = without_count(base::trim(written));
  while (true) {
    const std::size_t end = written.find(kBelow);
    names_.emplace_back(base::trim(written.substr(0, end)));
    if (end == std::string_view::npos)
      return;
    written.remove_prefix(end + kBelow.size());
  }
}

bool PrintedPath::names(std::string_view domain, std::span<const std::string_view> path) const {
  if (path.size() < names_.size())
    return false;
  const std::size_t first = path.size() - names_.size();
  const auto above = [&](std::size_t level) {
    return level > 0 ? path[level - 1] : std::string_view();
  };
  for (std::size_t i = 1; i < names_.size(); ++i)
    if (!is_printed_as(path[first + i], above(first + i), names_[i]))
      return false;
  if (is_printed_as(path[first], above(first), names_.front()))
    return true;
  const std::string with_domain = base::printable(domain) + "@";
  return !domain.empty() && names_.front().starts_with(with_domain) &&
         is_printed_as(path[first], above(first), names_.front().substr(with_domain.size()));
}

}  // namespace rangescope::analyze
