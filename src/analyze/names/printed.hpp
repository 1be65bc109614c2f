// Names as tables print them, copied back into an option: `Model > model > layers.# x32` is the
// region of the path Model, model (Decoder), model.layers.3 (Layer), and of its 31 siblings.
//
// A table shortens: numbers of siblings are `#`, with their count behind the name; a module below
// another one has no path, and inside a chain no type; what is around a row is in other rows. So
// several paths may be printed alike. Options ask for this only where nothing has what was written
// as its name or matches it as an expression.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::analyze {

class PrintedPath {
 public:
  explicit PrintedPath(std::string_view written);
  /// Does a table print the region of that path so?
  [[nodiscard]] bool names(std::string_view domain, std::span<const std::string_view> path) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace rangescope::analyze
