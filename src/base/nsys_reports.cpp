#include "base/nsys_reports.hpp"

#include "base/embedded.hpp"

RANGESCOPE_EMBED(nsys_reports, RANGESCOPE_TSV);

namespace rangescope::base {

std::span<const NsysReport> nsys_reports() {
  static const auto table = [] {
    std::vector<NsysReport> out;
    for (const auto& [now, old, read] : rows<3>(rangescope_nsys_reports))
      out.push_back({now, old, !read.empty()});
    return out;
  }();
  return table;
}

}  // namespace rangescope::base
