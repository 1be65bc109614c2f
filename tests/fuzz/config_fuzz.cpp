// A project file that somebody else wrote: a configuration or a located error, and never something
// to run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "config/compose.hpp"
#include "config/record.hpp"
#include "config/yaml.hpp"
#include "share.hpp"

namespace {

namespace fs = std::filesystem;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  static const base::TemporaryFolder folder("rangescope-fuzz");  // gone when the process ends
  if (folder.path().empty())
    __builtin_trap();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = config::parse_yaml(text, "fuzz");
  if (!parsed) {
    if (parsed.error().what.empty())
      __builtin_trap();
    return ::fuzz::count(false);
  }
  bool read = false;
  if (!base::write_file(folder.path() / "rangescope.yaml", text))
    __builtin_trap();
  for (const bool trusted : {false, true}) {
    config::Inputs inputs;
    inputs.shipped = RANGESCOPE_CONF_FOLDER;
    inputs.environment = {{"HF_TOKEN", "a-secret-token"}};
    inputs.project_file = folder.path() / "rangescope.yaml";
    inputs.project_trusted = trusted;
    const auto config = config::compose(inputs);
    if (!config) {
      if (config.error().what.empty())
        __builtin_trap();
      continue;
    }
    if (!trusted &&
        (!config->list("workload.command").empty() || config->text("pipeline.nsys.path") ||
         config->text("pipeline.ncu.path") || config->flag("run.record_args") ||
         config->flag("run.share") || config->text("run.timeout") || config->integer("run.keep")))
      __builtin_trap();
    read = true;
    (void)config::recorded_values(*config);
    (void)config::recorded_inputs(*config);
  }
  return ::fuzz::count(read);
}
