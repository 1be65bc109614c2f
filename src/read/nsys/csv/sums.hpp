// Tables of sums of nsys stats, one row a name: they become model::Summary.
#pragma once

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/session.hpp"
#include "read/nsys/csv/header.hpp"

namespace rangescope::read::nsys_csv {

class Sums {
 public:
  explicit Sums(model::Session& session) : s_(session) {}

  /// False when a number that the table lives by is not one. `kind` counts where the row does not say it.
  bool add(const Header& header, const Row& row, model::RangeKind kind);

 private:
  std::pair<model::StringId, model::StringId> split(std::string_view range);
  model::RangeSummary& range(const Row& row, std::string_view column, model::RangeKind kind);
  bool add_range(const Row& row, model::RangeKind kind);
  bool add_projection(const Row& row, model::RangeKind kind);
  bool add_kernel(const Row& row);
  bool add_range_kernel(const Row& row, model::RangeKind kind);
  bool add_copy(const Row& row, bool sizes);

  model::Session& s_;
  std::map<std::tuple<model::StringId, model::StringId, model::RangeKind>, std::size_t> range_of_;
  std::map<model::StringId, std::size_t> kernel_of_;  ///< of the whole run, in summary.kernels
  bool bare_names_ = false;
};

}  // namespace rangescope::read::nsys_csv
