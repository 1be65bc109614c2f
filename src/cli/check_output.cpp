// What an output may replace: base::Replacement refuses what is no plain file; here stands what a plain file may not
// be.
#include <algorithm>

#include "base/fs.hpp"
#include "cli/app.hpp"
#include "cli/destination.hpp"
#include "profile/captures.hpp"

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
  if (const std::string what = profile::kept_file(to); !what.empty())
    return base::fail(base::Code::kUsage, "it is " + what + ", which is not overwritten", to.string(),
                      "Name another file, or remove this one first.");
  return {};
}

}  // namespace rangescope::cli
