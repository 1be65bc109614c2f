// The JSON files of a run directory that somebody else made: each is read as what it says it is and
// as what it is not. A value or an error that says something; names of files stay in the run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "runs/imports.hpp"
#include "runs/json_text.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/provenance.hpp"
#include "runs/retention.hpp"
#include "runs/stages.hpp"
#include "runs/status.hpp"
#include "share.hpp"

namespace {

namespace fs = std::filesystem;

template <class T>
bool right(const rangescope::base::Result<T>& result) {
  if (!result && result.error().what.empty())
    __builtin_trap();
  return result.has_value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  static const base::TemporaryFolder root("rangescope-fuzz");  // gone when the process ends
  if (root.path().empty())
    __builtin_trap();
  const fs::path run = root.path() / "run";
  fs::create_directories(run);
  for (const char* name :
       {"manifest.json", "status.json", "import.json", "env.json", "stages.json"})
    if (!base::write_file(run / name, {reinterpret_cast<const char*>(data), size}))
      __builtin_trap();
  bool read = false;
  if (const auto manifest = runs::read_manifest(run); right(manifest)) {
    read = true;
    for (const auto& [path, proof] : manifest->files)
      if (!runs::lies_in_run(path))
        __builtin_trap();
    (void)right(runs::verify(run));
    (void)runs::run_info(run);
    if (!right(runs::write_manifest(run, *manifest)))
      __builtin_trap();
    if (!right(runs::read_manifest(run)))
      __builtin_trap();  // what was read and written reads back
  }
  if (const auto status = runs::read_status(run); right(status)) {
    read = true;
    if (!right(runs::write_done(run, *status)))
      __builtin_trap();
  }
  if (const auto imports = runs::read_imports(run); right(imports)) {
    read = true;
    for (const auto& import : *imports)
      if (!runs::lies_in_run(import.file))
        __builtin_trap();
  }
  read |= right(runs::read_provenance(run));
  read |= right(runs::read_stages(run));
  for (const fs::path& capture : runs::captures_of(run))
    if (capture.lexically_relative(run).string().starts_with(".."))
      __builtin_trap();
  (void)runs::prunable(root.path(), {.keep = 0, .older_than = {}}, 1);
  return ::fuzz::count(read);
}
