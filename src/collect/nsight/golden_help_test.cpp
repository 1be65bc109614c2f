// What the tools print of themselves (tests/golden/help, recorded from the executables) against
// what is made of it: the ability tables that the golden command lines rest on, and the versions
// that the option tables name.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/text.hpp"
#include "collect/nsight/ncu.hpp"
#include "collect/nsight/nsys.hpp"

namespace rangescope::collect {
namespace golden_help_test {

namespace fs = std::filesystem;
const fs::path kGolden = fs::path(base::source_dir) / "tests" / "golden";

const std::vector<std::string> kNcu{"2020.3.1", "2022.3.0", "2024.1.1", "2025.3.1"};
const std::vector<std::string> kNsys{"2020.4.3", "2022.4.2", "2023.4.4", "2025.3.1"};

/// The output of one command of a recording: "$ ncu --help" and the lines behind it.
std::string said(const std::string& recording, const std::string& command) {
  const std::string head = "$ " + command + "\n";
  const auto at = recording.starts_with(head) ? 0 : recording.find("\n" + head);
  EXPECT_NE(at, std::string::npos) << command;
  if (at == std::string::npos)
    return {};
  const auto begin = recording.find(head, at) + head.size(), end = recording.find("\n$ ", begin);
  return recording.substr(begin, end == std::string::npos ? end : end + 1 - begin);
}

Abilities asked(const std::string& tool, const std::string& version) {
  const auto text = base::read_file(kGolden / "help" / (tool + "-" + version + ".txt"));
  EXPECT_TRUE(text.has_value()) << tool << version;
  const std::string recording = text ? *text : "";
  Abilities can;
  can.tool = tool;
  can.version =
      parse_version(base::split(said(recording, tool + " --version"), '\n')[tool == "ncu" ? 2 : 0]);
  if (tool == "nsys") {
    can.options = parse_nsys_help(said(recording, "nsys profile --help"));
  } else {
    can.options = parse_ncu_help(said(recording, "ncu --help"));
    parse_ncu_sets(said(recording, "ncu --list-sets"), can);
    can.sections = parse_ncu_sections(said(recording, "ncu --list-sections"));
  }
  return can;
}

Abilities table(const std::string& tool, const std::string& version) {
  const auto text = base::read_file(fs::path(base::source_dir) / "conf" / "tools" /
                                    (tool + "-" + version + ".json"));
  auto parsed = from_json(text ? *text : "");
  EXPECT_TRUE(parsed.has_value()) << tool << version;
  return parsed ? *parsed : Abilities{};
}

void compare(const std::string& tool, const std::string& version) {
  const Abilities real = asked(tool, version), kept = table(tool, version);
  EXPECT_EQ(to_string(real.version), version);
  for (const auto& [option, values] : real.options) {
    const auto known = kept.options.find(option);
    EXPECT_TRUE(known != kept.options.end()) << tool << " " << version << " " << option;
    if (known != kept.options.end()) {
      EXPECT_EQ(known->second, values) << tool << " " << version << " " << option;
    }
  }
  for (const auto& [option, values] : kept.options)
    EXPECT_TRUE(real.has(option)) << tool << " " << version << " " << option;
  EXPECT_EQ(kept.sets, real.sets) << version;
  EXPECT_EQ(kept.default_set, real.default_set) << version;
  EXPECT_EQ(kept.sections, real.sections) << version;
}

TEST(GoldenHelp, AbilitiesAreWhatTheToolsSay) {
  for (const std::string& version : kNcu)
    compare("ncu", version);
  for (const std::string& version : kNsys)
    compare("nsys", version);
}

/// "2022.3" is not later than 2022.3.0.
bool reached(const Abilities& can, std::string_view since) {
  const Version first = parse_version(std::string(since) + ".0.");
  return !(can.version < first);
}

// An option that the table calls new is not in the versions before, and one that it does not is in
// all of them.
void check(const Abilities& can, const Option& row) {
  const std::string what = can.tool + " " + to_string(can.version) + " " + std::string(row.name);
  if (row.since.empty() || reached(can, row.since))
    EXPECT_TRUE(can.has(row.name) || !name_of(row, can).empty()) << what << " is missing";
  else
    EXPECT_FALSE(can.has(row.name)) << what << " is older than the table says";
}

TEST(GoldenHelp, TheTablesNameTheFirstVersion) {
  for (const std::string& version : kNcu)
    for (const Option& row : option_table("ncu"))
      check(asked("ncu", version), row);
  for (const std::string& version : kNsys)
    for (const Option& row : option_table("nsys"))
      check(asked("nsys", version), row);
}

}  // namespace golden_help_test
}  // namespace rangescope::collect
