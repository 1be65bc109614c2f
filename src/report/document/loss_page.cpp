#include "report/document/loss_page.hpp"

#include <fmt/format.h>

#include "model/loss.hpp"

namespace rangescope::report {
namespace {

/// By model::LossArea.
constexpr std::string_view kChapters[] = {"The program's ranges",
                                          "Captures",
                                          "GPU activity",
                                          "CPU samples",
                                          "Counters",
                                          "Files",
                                          "Files of Nsight Systems",
                                          "Results of Nsight Compute",
                                          "Analysis",
                                          "Stages of a run"};

}  // namespace

std::string loss_page() {
  std::string page =
      "# Losses\n\nA loss says what is missing from a report although the run went on. `info` changes no number of the "
      "report;\n`--strict` fails at a `warning` or an `error`; after an `error` numbers are known to be too small.\n"
      "`rangescope help losses` prints this page.\n";
  const model::LossEntry* before = nullptr;
  for (const model::LossEntry& entry : model::loss_table()) {
    if (before == nullptr || before->area != entry.area)
      page += fmt::format("\n## {}\n\n| loss | severity | meaning | cure |\n|:--|:--|:--|:--|\n",
                          kChapters[static_cast<std::size_t>(entry.area)]);
    page += fmt::format("| `{}` | {} | {} | {} |\n", entry.id, model::severity_name(entry.severity), entry.meaning,
                        entry.cure);
    before = &entry;
  }
  return page;
}

}  // namespace rangescope::report
