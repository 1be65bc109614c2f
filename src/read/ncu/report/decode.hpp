// One result of a report, decoded: a kernel, a range, a command list or a graph, with metrics, NVTX state, sections,
// rules.
//
// Everything is views into the file. Instances of metrics are counted while decoding and read only when asked for
// (instances()), since a full report holds hundreds of thousands of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "read/ncu/report/file.hpp"
#include "read/ncu/report/nvtx_state.hpp"

namespace rangescope::read::ncu_report {

struct MetricEntry {
  std::uint32_t name = 0;  ///< File::string
  Value value;
  std::uint32_t instances = 0;
  std::string_view message;  ///< for instances()
};

struct Instance {
  Value correlation, value;
};

/// Which results a section or a metric of it is meant for.
struct Filter {
  std::uint64_t least_capability = 0;  ///< 90 for 9.0; 0 for any
  std::uint64_t most_capability = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      capabilities;         ///< least and most (0: any), one of them; empty for all
  std::uint32_t kinds = 0;  ///< bit n for workloads of kind n (1 kernel, 2 range, 3 graph); 0 for all
};

struct SectionMetric {
  struct Option {
    std::string_view name;
    Filter filter;
  };
  std::string_view name, label;
  Filter filter;
  std::vector<Option> options;  ///< other metrics that replace it where their filter passes
};

struct Section {
  std::string_view identifier, display_name;
  std::int64_t order = 0;
  Filter filter;
  std::vector<SectionMetric> header;   ///< metrics of the header table, in its order
  std::vector<SectionMetric> metrics;  ///< all metrics of the section
};

enum class Severity : std::uint8_t { kNone = 0, kOk = 1, kWarning = 2, kError = 3, kOptimization = 4 };

struct RuleMessage {
  std::string_view text;
  std::uint32_t type = 0;         ///< Severity; numbers of newer versions are kept
  std::optional<double> speedup;  ///< percent
  bool speedup_is_global = false;
};

struct Rule {
  std::string_view identifier, section;
  std::vector<RuleMessage> messages;
};

struct Result {
  ResultKind kind = ResultKind::kKernel;
  std::uint32_t process = 0;
  std::uint64_t offset = 0;  ///< of the entry in the file
  std::uint64_t thread = 0;
  std::string_view mangled, function, demangled;  ///< "" for ranges and graphs; the display name for command lists
  std::optional<std::array<std::uint32_t, 3>> grid, block;
  std::optional<std::uint64_t> context, stream;
  std::optional<std::uint64_t> source;  ///< key of its source
  std::optional<std::uint32_t> clock_executed;
  std::vector<MetricEntry> metrics;
  std::vector<Section> sections;
  std::vector<Rule> rules;
  std::optional<NvtxState> nvtx;
};

/// What decode() should leave out, for speed.
struct Wanted {
  bool sections = true;
  bool rules = true;
  bool metrics = true;
};

/// Decodes one entry. Unknown fields are counted in `unknown`; damage is kBadData with the entry's offset.
[[nodiscard]] base::Result<Result> decode(const File& file, const Entry& entry, std::uint64_t& unknown,
                                          Wanted wanted = {});

/// The instances of a metric, in file order; those before the damage when its message is damaged.
[[nodiscard]] std::vector<Instance> instances(const MetricEntry& metric);

}  // namespace rangescope::read::ncu_report
