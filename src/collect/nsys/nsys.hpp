// Plans Nsight Systems: `nsys profile`, the import of a .qdstrm, `nsys export`; never `nsys stats`.
//
// nsys wants range and domain in the reverse order of ncu, takes no patterns, and by default starts a gated recording
// only at a *registered* string: all of that is translated here, and the translation is a note of the plan.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collect/abilities.hpp"
#include "collect/collector.hpp"

namespace rangescope::collect::nsys {

enum class Form : std::uint8_t { kValue, kTrueFalse, kComma, kSeconds, kSpecial };

/// One key below pipeline.nsys and the option that it stands for.
struct OptionRow {
  std::string_view key;     ///< "cuda_graph_trace"
  std::string_view option;  ///< "--cuda-graph-trace"
  Form form = Form::kValue;
  std::string_view since = {};
  std::string_view other = {};  ///< another name of it in newer versions
};
[[nodiscard]] std::span<const OptionRow> option_table();

struct Options {
  std::map<std::string, std::vector<std::string>> values;  ///< key of option_table() -> value(s); durations in seconds
  std::set<std::string> asked;                             ///< keys that the user set
  bool gating = false;                                     ///< record only while nvtx_capture is open
  std::optional<bool> registered;  ///< the range's name is a registered string; unknown where absent
  std::map<std::string, std::string> env;
  std::vector<std::string> extra_args;
};

class Collector final : public collect::Collector {
 public:
  Collector(Abilities abilities, Options options) : abilities_(std::move(abilities)), options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const override { return "nsys"; }
  /// kConfig for what this nsys cannot do, with what it can.
  [[nodiscard]] base::Result<Plan> plan(const Request& request) const override;

 private:
  Abilities abilities_;
  Options options_;
};

/// An ncu-style range (`decode/`, `LLM@decode`, `decode`) as nsys's --nvtx-capture: `decode`, `decode@LLM`. kConfig for
/// patterns, nested ranges and lists, which nsys cannot gate on.
[[nodiscard]] base::Result<std::string> capture_of(std::string_view range, bool own_form = true);
/// A domain for --nvtx-domain-include: commas, and a domain that is itself called "default", are escaped.
[[nodiscard]] std::string escape_domain(std::string_view domain);

/// <run_dir>/nsys/nsys, to which nsys adds .nsys-rep (or .qdrep, .qdstrm; or .1.nsys-rep ... when a capture repeats).
[[nodiscard]] std::filesystem::path report_base(const Request& request);

/// QdstrmImporter on a .qdstrm; `libraries` goes before LD_LIBRARY_PATH when it is not empty.
[[nodiscard]] Plan import_plan(const std::filesystem::path& importer, const std::filesystem::path& stream,
                               const std::filesystem::path& report, const std::string& libraries);
/// `nsys export --type sqlite`.
[[nodiscard]] Plan export_plan(const Abilities& abilities, const std::filesystem::path& report,
                               const std::filesystem::path& sqlite);

}  // namespace rangescope::collect::nsys
