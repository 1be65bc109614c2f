// The pages of `ncu --import`, natively: details, raw, source and session, as text and CSV, and the summaries.
//
// It prints what read/ncu_report holds, result by result, and computes nothing but the scale of units and the
// summaries' minimum, maximum and mean. Raw and details CSV are byte-equal to ncu 2025.3.1 for every recorded report
// (docs/manual/ncu-pages.md lists the differences that are left). Costs: one pass over the results for columns, one to
// print; memory of one result.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/metric_unit.hpp"
#include "model/name_regex.hpp"
#include "read/ncu/report/decode.hpp"
#include "read/ncu/report/file.hpp"

namespace rangescope::ncu_pages {

using namespace read::ncu_report;  // the format whose pages these are

enum class Page : std::uint8_t { kDetails, kRaw, kSource, kSession };
enum class Part : std::uint8_t { kHeader, kBody, kAll };
enum class Instances : std::uint8_t { kNone, kValues, kDetails };
enum class MetricName : std::uint8_t { kLabel, kName, kLabelName };
enum class Summary : std::uint8_t { kNone, kPerKernel, kPerGpu, kPerNvtx };
enum class Source : std::uint8_t { kSass, kPtx, kCuda };

struct PageOptions {
  Page page = Page::kDetails;
  bool csv = false;
  bool base_units = false;  ///< --print-units base
  bool fp = false;          ///< --print-fp
  Part part = Part::kHeader;
  Instances instances = Instances::kNone;
  MetricName metric_name = MetricName::kLabel;
  Summary summary = Summary::kNone;
  Source source = Source::kSass;
  std::vector<std::string> sections;  ///< identifiers, or regex:...; empty for all
  std::vector<std::string> metrics;   ///< names, or regex:...; empty for all
  std::vector<std::string> nvtx_include, nvtx_exclude;
  std::vector<std::string> kernel_names;  ///< exact, or regex:...
  std::string kernel_name_base = "function";
  std::string print_kernel_base = "demangled";
  std::vector<std::uint32_t> results;       ///< only these, by their number in the file, ascending; empty for all
  std::uint64_t launch_skip = 0;            ///< matching results left out at the start
  std::uint64_t launch_count = UINT64_MAX;  ///< at most so many after that
  std::string number_format = "C";          ///< "C", "en", "de", "fr": separators
  model::UnitSpelling spelling = model::UnitSpelling::kNcu2025;
};

using Out = std::function<void(std::string_view)>;

/// Prints. kUsage for an expression that cannot be parsed or a section that the report does not have (with the nearest
/// name); kNothingCaptured when the filters leave no result. Damaged results are left out and counted in `losses`.
[[nodiscard]] base::Result<void> print_pages(const File& file, const PageOptions& options, const Out& out,
                                             std::vector<model::Loss>& losses);

/// What the page printers share: the chosen results of a file, decoded one after the other.
class Selection {
 public:
  [[nodiscard]] static base::Result<Selection> make(const File& file, const PageOptions& options,
                                                    std::vector<model::Loss>& losses);
  /// Calls `take(id, result)` for each chosen result in file order.
  void for_each(Wanted wanted, const std::function<void(std::uint32_t, const Result&)>& take) const;
  [[nodiscard]] const File& file() const { return *file_; }

 private:
  const File* file_ = nullptr;
  std::vector<std::uint32_t> ids_;
};

/// Compute capability and ordinal of a result's device.
struct DeviceLabel {
  std::string ordinal, capability;
  std::uint64_t number = 0;  ///< 90 for 9.0
};
/// Finds them by string ids, since every result names the same metrics.
class DeviceLabels {
 public:
  explicit DeviceLabels(const File& file);
  [[nodiscard]] DeviceLabel of(const Result& result) const;

 private:
  const File& file_;
  std::vector<std::uint8_t> roles_;  // by string id: 1 device index, 2 major, 3 minor
};

/// Name of a result: the kernel's by the base asked for, "range", "graph" or the command list's.
[[nodiscard]] std::string_view result_name(const Result& result, std::string_view base);

/// Exact names or regex:..., any of them; an empty list takes everything.
class NameFilter {
 public:
  [[nodiscard]] static base::Result<NameFilter> make(const std::vector<std::string>& names, std::string_view option);
  [[nodiscard]] bool matches(std::string_view name) const;
  [[nodiscard]] bool empty() const { return exact_.empty() && patterns_.empty(); }

 private:
  std::vector<std::string> exact_;
  std::vector<model::NameRegex> patterns_;
};

[[nodiscard]] base::Result<void> print_raw(const Selection& selection, const PageOptions& options, const Out& out);
[[nodiscard]] base::Result<void> print_details(const Selection& selection, const PageOptions& options, const Out& out);
[[nodiscard]] base::Result<void> print_summary(const Selection& selection, const PageOptions& options, const Out& out);
[[nodiscard]] base::Result<void> print_source(const Selection& selection, const PageOptions& options, const Out& out);
[[nodiscard]] base::Result<void> print_session(const File& file, const PageOptions& options, const Out& out);

}  // namespace rangescope::ncu_pages
