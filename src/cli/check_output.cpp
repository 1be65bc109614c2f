// What an output may replace: base::Replacement refuses what is no plain file; here stands what a plain file may not
// be.
#include <algorithm>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/destination.hpp"
#include "read/registry.hpp"
#include "report/sqlite/database.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

/// Does another word of the command line, the program's among them, name this file? What stands behind an option for
/// outputs is the output itself.
bool is_input(const fs::path& to) {
  static constexpr std::string_view kOutputs[] = {"-o", "--output", "--to", "--json", "--junit", "--markdown"};
  const auto& words = arguments();
  std::error_code error;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto names_output = [&](std::string_view word) {
      return std::find(std::begin(kOutputs), std::end(kOutputs), word) != std::end(kOutputs);
    };
    if (i > 0 && names_output(words[i - 1])) continue;
    const auto equals = words[i].find('=');
    if (equals != std::string::npos && names_output(words[i].substr(0, equals))) continue;
    if (words[i].starts_with("-o")) continue;
    for (const std::string& word : {words[i], equals == std::string::npos ? words[i] : words[i].substr(equals + 1)})
      if (!word.empty() && fs::equivalent(word, to, error)) return true;
  }
  return false;
}

/// What the file is, where it is something that others read; "" for any other.
std::string kept(const fs::path& to) {
  const auto head = base::read_head(to, 256);
  if (!head) return {};
  if (report::sqlite::is_own_export(*head)) return {};
  if (const auto reader = read::find_reader(to)) return "a recording (" + std::string((*reader)->name()) + ")";
  if (head->starts_with("\x28\xb5\x2f\xfd")) return "an archive";
  if (head->find("rangescope.baseline/") != std::string::npos) return "a baseline";
  const fs::path run = runs::run_of(to);
  std::error_code error;
  const bool report =
      to.filename().string().starts_with("report.") && fs::equivalent(run, fs::absolute(to).parent_path(), error);
  return run.empty() || report ? std::string() : "a part of the run " + run.filename().string();
}

}  // namespace

base::Result<void> check_output(const fs::path& to) {
  std::error_code error;
  const auto status = fs::symlink_status(to, error);
  if (!fs::exists(status)) return {};
  if (!fs::is_regular_file(status)) {
    auto refused = base::Replacement::begin(to);  // says what it is
    return refused ? base::Result<void>() : base::fail(std::move(refused));
  }
  if (is_input(to)) return base::fail(base::Code::kUsage, "the output is an input", to.string(), "Name another file.");
  if (const std::string what = kept(to); !what.empty())
    return base::fail(base::Code::kUsage, "it is " + what + ", which is not overwritten", to.string(),
                      "Name another file, or remove this one first.");
  return {};
}

}  // namespace rangescope::cli
