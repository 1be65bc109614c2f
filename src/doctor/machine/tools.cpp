// Checks of what measures: rangescope's own library, CUPTI, nsys with its importer, ncu; and
// whether they fit the driver.
#include <fmt/format.h>

#include "base/text.hpp"
#include "base/version.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Grade;

std::string others(const ToolSeen& tool) {
  std::vector<std::string> paths;
  for (std::size_t i = 1; i < tool.paths.size(); ++i)
    paths.push_back(tool.paths[i].string());
  if (paths.empty())
    return {};
  return "; also there: " + base::join(paths, ", ");
}

// The version of ncu in the CUDA toolkit that brought a new major version: an older ncu was built
// before it. (Release notes of the toolkits: 11.0 carried ncu 2020.1, 12.0 2022.4, 13.0 2025.3.)
struct FirstNcu {
  int cuda_major;
  collect::Version ncu;
};
constexpr FirstNcu kFirstNcu[] = {{11, {2020, 1, 0}}, {12, {2022, 4, 0}}, {13, {2025, 3, 0}}};

}  // namespace

Findings check_library(const MachineFacts& facts) {
  if (!facts.inject_library.empty())
    return {well(base::tool_version() + ", " + facts.inject_library)};
  return {finding_of("machine.no_inject_library", Grade::kFail, facts.inject_error)};
}

Findings check_cupti(const MachineFacts& facts) {
  if (!facts.cupti.empty())
    return {well(facts.cupti)};
  if (facts.inject_library.empty())
    return {skipped("rangescope's own library is missing")};
  return {finding_of("machine.no_cupti", Grade::kWarn, facts.cupti_error)};
}

Findings check_mpi(const MachineFacts& facts) {
  if (facts.mpi_library.empty())
    return {
        skipped("no librangescope_mpi.so next to rangescope's own library: waits for other ranks "
                "are not recorded")};
  if (facts.launcher.empty())
    return {well(facts.mpi_library + "; no mpirun or srun on PATH")};
  return {well(facts.mpi_library + ", " + facts.launcher)};
}

Findings check_duckdb(const MachineFacts& facts) {
  if (facts.duckdb.empty())
    return {skipped("no libduckdb.so: exports are SQLite; RANGESCOPE_DUCKDB may name one")};
  return {well("DuckDB " + facts.duckdb)};
}

Findings check_nsys(const MachineFacts& facts) {
  const ToolSeen& nsys = facts.nsys;
  if (nsys.paths.empty())
    return {finding_of("machine.no_nsys",
                       Grade::kWarn,
                       "not on PATH, in /opt/nvidia, in a CUDA toolkit or in /usr/lib")};
  if (!nsys.in_use)
    return {finding_of(
        "machine.nsys_broken", Grade::kFail, nsys.paths.front().string() + ": " + nsys.error)};
  const std::string text =
      "nsys " + to_string(nsys.in_use->version) + " at " + nsys.in_use->path.string();
  const int driver = facts.nvml.cuda_version;
  if (driver > 0 && !nsys.bundled_cupti.empty() && nsys.bundled_cupti.back().year < driver / 1000)
    return {finding_of(
        "machine.nsys_older_than_cuda",
        Grade::kWarn,
        fmt::format("{} carries CUPTI up to CUDA {}.{}, and the driver serves CUDA {}.{}",
                    text,
                    nsys.bundled_cupti.back().year,
                    nsys.bundled_cupti.back().release,
                    driver / 1000,
                    driver % 1000 / 10))};
  return {well(text + others(nsys))};
}

Findings check_importer(const MachineFacts& facts) {
  const ToolSeen& nsys = facts.nsys;
  if (nsys.paths.empty())
    return {skipped("there is no nsys")};
  if (!nsys.importer)
    return {finding_of("machine.no_importer",
                       Grade::kWarn,
                       "no QdstrmImporter next to " + nsys.paths.front().string())};
  if (!nsys.importer_error.empty())
    return {finding_of("machine.importer_broken",
                       Grade::kWarn,
                       nsys.importer->string() + ": " + nsys.importer_error)};
  return {well(nsys.importer->string() + " runs")};
}

Findings check_ncu(const MachineFacts& facts) {
  const ToolSeen& ncu = facts.ncu;
  if (ncu.paths.empty())
    return {finding_of("machine.no_ncu",
                       Grade::kWarn,
                       "not on PATH, in /opt/nvidia, in a CUDA toolkit or in /usr/lib")};
  if (!ncu.in_use)
    return {finding_of(
        "machine.ncu_broken", Grade::kFail, ncu.paths.front().string() + ": " + ncu.error)};
  const std::string text =
      "ncu " + to_string(ncu.in_use->version) + " at " + ncu.in_use->path.string();
  if (ncu.in_use->sets.empty() && ncu.in_use->sections.empty())
    return {finding_of(
        "machine.ncu_without_sections", Grade::kFail, text + " lists no section and no set")};
  const int driver = facts.nvml.cuda_version / 1000;
  for (const FirstNcu& first : kFirstNcu)
    if (first.cuda_major == driver && ncu.in_use->version < first.ncu)
      return {finding_of("machine.ncu_older_than_cuda",
                         Grade::kWarn,
                         fmt::format("{}, and the driver serves CUDA {}, which came with ncu {}",
                                     text,
                                     driver,
                                     to_string(first.ncu)))};
  return {well(text + others(ncu))};
}

}  // namespace rangescope::doctor
