#include "runs/imports.hpp"

#include "base/text.hpp"
#include "runs/json_text.hpp"

namespace rangescope::runs {
namespace {

constexpr std::string_view kImportsSchema = "rangescope.import/1";
constexpr const char* kImportsFile = "import.json";

constexpr auto kImportFields = [](auto& import, auto field) {
  field("file", import.file);
  field("original", import.original, Missing::kEmpty);
  field("from", import.given_path);
  field("bytes", import.bytes);
  field("sha256", import.sha256);
  field("modified_unix_ns", import.modified_unix_ns);
  field("format", import.format);
  field("tool", import.tool);
  field("version", import.version);
  field("redacted", import.redacted);
};

}  // namespace

base::Result<void> write_imports(const std::filesystem::path& run,
                                 const std::vector<Import>& imports) {
  return write_list(run / kImportsFile, kImportsSchema, "files", imports, kImportFields);
}

base::Result<std::vector<Import>> read_imports(const std::filesystem::path& run) {
  auto imports = read_list<Import>(run / kImportsFile, kImportsSchema, "files", kImportFields);
  if (!imports)
    return imports;
  for (const Import& import : *imports)
    if (!lies_in_run(import.file))
      return base::fail(base::Code::kBadData,
                        "names a file outside the run: " + base::printable(import.file),
                        (run / kImportsFile).string());
  return imports;
}

}  // namespace rangescope::runs
