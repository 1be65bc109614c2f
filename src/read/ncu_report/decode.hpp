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
#include "read/ncu_report/file.hpp"

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

enum class Message : std::uint8_t { kNone = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

/// Attributes of an NVTX range as the program gave them; enum numbers of newer versions are kept as they are.
struct NvtxAttributes {
  std::uint32_t category = 0;
  std::uint32_t color_type = 0;  ///< 0 none, 1 ARGB
  std::uint32_t color = 0;
  std::uint32_t payload_type = 0;  ///< 0 none, 1 u64, 2 i64, 3 double, 4 u32, 5 i32, 6 float, 7 JSON, 8 registered JSON
  std::uint64_t payload_integer = 0;
  double payload_number = 0;
  std::string_view payload_text;
  std::uint32_t message_type = 0;  ///< Message
  std::string_view message;
  std::uint64_t message_handle = 0;
};

struct NvtxRange {
  std::uint64_t id = 0;             ///< start/end ranges, and push/pop ranges of process scope; else 0
  std::uint32_t domain = 0;         ///< id, see NvtxState::domain_name
  std::string_view name;            ///< as stored; effective_name() falls back on the message
  std::uint64_t last_api_call = 0;  ///< API calls of the process before it began: tells occurrences apart
  std::uint64_t thread = 0;         ///< tid that pushed or started it
  std::optional<NvtxAttributes> attributes;
};

struct NvtxDomain {
  std::uint32_t id = 0;
  std::string_view name;
  std::vector<std::pair<std::uint64_t, std::string_view>> strings;  ///< registered, by handle
  std::vector<std::pair<std::uint32_t, std::string_view>> categories;
};

/// The push/pop stacks of one thread, domain by domain in file order, each bottom to top.
struct NvtxThread {
  std::uint64_t tid = 0;
  std::vector<NvtxRange> stack;
};

/// What was open when the result began.
struct NvtxState {
  std::vector<NvtxDomain> domains;
  std::vector<NvtxThread> threads;
  std::vector<NvtxRange> start_end;
  bool process_scope = false;  ///< --nvtx-push-pop-scope process: push/pop ranges of every thread, numbered

  [[nodiscard]] const NvtxDomain* domain(std::uint32_t id) const;
  /// Name, or where it is empty the message (registered strings looked up in the domain).
  [[nodiscard]] std::string_view effective_name(const NvtxRange& range) const;
  [[nodiscard]] std::string_view message_text(const NvtxRange& range) const;
  [[nodiscard]] bool empty() const { return threads.empty() && start_end.empty(); }
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
  std::vector<Option> options;  ///< other metrics that stand in where their filter passes
};

struct Section {
  std::string_view identifier, display_name;
  std::int64_t order = 0;
  Filter filter;
  std::vector<SectionMetric> header;   ///< metrics of the header table, in its order
  std::vector<std::string_view> body;  ///< body items, not decoded
  std::vector<SectionMetric> metrics;  ///< all metrics of the section
};

enum class Severity : std::uint8_t { kNone = 0, kOk = 1, kWarning = 2, kError = 3, kOptimization = 4 };

struct RuleMessage {
  std::string_view text, title;
  std::uint32_t type = 0;         ///< Severity; numbers of newer versions are kept
  std::optional<double> speedup;  ///< percent
  bool speedup_is_global = false;
};

struct Rule {
  std::string_view identifier, display_name, section;
  std::vector<RuleMessage> messages;
};

struct Result {
  ResultKind kind = ResultKind::kKernel;
  std::uint32_t process = 0;
  std::uint64_t offset = 0;  ///< of the entry in the file
  std::uint64_t thread = 0;
  std::uint64_t api_call = 0;
  std::string_view mangled, function, demangled;  ///< "" for ranges and graphs; the display name for command lists
  std::optional<std::array<std::uint32_t, 3>> grid, block;
  std::optional<std::uint64_t> context, stream;
  std::uint64_t creation_time = 0;      ///< seconds since 1970
  std::optional<std::uint64_t> source;  ///< key of its source
  std::optional<std::uint32_t> clock_requested, clock_executed;
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

/// The value of a metric of this result by name, or nullptr. O(metrics).
[[nodiscard]] const MetricEntry* find_metric(const File& file, const Result& result, std::string_view name);

}  // namespace rangescope::read::ncu_report
