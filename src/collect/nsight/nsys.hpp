// Plans Nsight Systems: `nsys profile`, the import of a .qdstrm, `nsys export`; never `nsys stats`.
//
// nsys wants range and domain in the reverse order of ncu, takes no patterns, and by default starts
// a gated recording only at a *registered* string: all of that is translated here, and the
// translation is a note of the plan.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collect/nsight/planning.hpp"

namespace rangescope::collect::nsys {

struct Options : ToolOptions {
  std::optional<bool>
      registered;  ///< the range's name is a registered string; unknown where absent
};

/// kConfig for what this nsys cannot do, with what it can.
[[nodiscard]] base::Result<Plan> plan(const Abilities& can,
                                      const Options& options,
                                      const Request& request);

/// A range as nsys's --nvtx-capture: `decode`, `decode@LLM`. `own_form`: as that option takes it,
/// range first; a slash, or a domain that is written as domains are (`LLM@decode`), says that it is
/// in ncu's order. Else ncu's order, as ranges.include has it. kConfig for patterns, nested ranges
/// and lists, which nsys cannot gate on.
[[nodiscard]] base::Result<std::string> capture_of(std::string_view range, bool own_form = true);
/// `range` or `range@domain`: placeholders of nsys's help for a range of the program.
[[nodiscard]] bool is_placeholder(std::string_view capture);
/// A domain for --nvtx-domain-include: commas, and a domain that is itself called "default", are
/// escaped.
[[nodiscard]] std::string escape_domain(std::string_view domain);

/// <run_dir>/nsys/nsys, to which nsys adds .nsys-rep (or .qdrep, .qdstrm; or .1.nsys-rep ... when a
/// capture repeats).
[[nodiscard]] std::filesystem::path report_base(const Request& request);

/// QdstrmImporter on a .qdstrm.
[[nodiscard]] Plan import_plan(const std::filesystem::path& importer,
                               const std::filesystem::path& stream,
                               const std::filesystem::path& report);
/// `nsys export --type sqlite`.
[[nodiscard]] Plan export_plan(const Abilities& abilities,
                               const std::filesystem::path& report,
                               const std::filesystem::path& sqlite);

}  // namespace rangescope::collect::nsys
