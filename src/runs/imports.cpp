#include "runs/imports.hpp"

#include "base/text.hpp"
#include "runs/json_text.hpp"

namespace rangescope::runs {
namespace {

constexpr std::string_view kImportsSchema = "rangescope.import/1";
constexpr const char* kImportsFile = "import.json";

}  // namespace

base::Result<void> write_imports(const std::filesystem::path& run, const std::vector<Import>& imports) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Import& import : imports) {
    nlohmann::ordered_json one;
    one["file"] = base::printable(import.file);
    if (!import.original.empty()) one["original"] = base::printable(import.original);
    one["from"] = base::printable(import.from);
    one["bytes"] = import.bytes;
    one["sha256"] = import.sha256;
    one["modified_unix_ns"] = import.modified_unix_ns;
    one["format"] = import.format;
    one["tool"] = base::printable(import.tool);
    one["version"] = base::printable(import.version);
    one["redacted"] = import.redacted;
    list.push_back(std::move(one));
  }
  return write_json(run / kImportsFile, {{"schema", kImportsSchema}, {"files", std::move(list)}});
}

base::Result<std::vector<Import>> read_imports(const std::filesystem::path& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(run / kImportsFile, ignored)) return std::vector<Import>{};
  auto json = read_json(run / kImportsFile, kImportsSchema);
  if (!json) return base::fail(std::move(json));
  std::vector<Import> out;
  try {
    for (const auto& one : json->at("files")) {
      Import import;
      import.file = one.at("file");
      import.original = one.value("original", "");
      import.from = one.at("from");
      import.bytes = one.at("bytes");
      import.sha256 = one.at("sha256");
      import.modified_unix_ns = one.at("modified_unix_ns");
      import.format = one.at("format");
      import.tool = one.at("tool");
      import.version = one.at("version");
      import.redacted = one.at("redacted");
      if (!lies_in_run(import.file))
        return base::fail(base::Code::kBadData, "names a file outside the run: " + base::printable(import.file),
                          (run / kImportsFile).string());
      out.push_back(std::move(import));
    }
  } catch (const std::exception& error) {
    return base::fail(base::Code::kBadData, std::string("damaged: ") + error.what(), (run / kImportsFile).string());
  }
  return out;
}

}  // namespace rangescope::runs
