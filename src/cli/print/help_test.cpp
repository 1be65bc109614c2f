#include "cli/print/help.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace rangescope::cli {
namespace help_test {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

HelpOption option(std::vector<std::string> names,
                  const std::string& value,
                  const std::string& text) {
  HelpOption made;
  made.names = std::move(names);
  made.value = value;
  made.text = text;
  made.group = "Run";
  return made;
}

HelpOption free_word(const std::string& name, bool required, bool several = false) {
  HelpOption made = option({}, name, "what it is");
  made.required = required;
  made.several = several;
  return made;
}

HelpOption hidden(HelpOption made) {
  made.group = "";
  return made;
}

HelpCommand command(const std::string& name, std::vector<HelpOption> options) {
  HelpCommand made;
  made.name = name;
  made.summary = "Does a thing";
  made.group = "Commands";
  made.options = std::move(options);
  return made;
}

TEST(Usage, FreeWordsShowWhetherTheyAreNeededAndMayRepeat) {
  EXPECT_EQ(usage(command("gate", {free_word("run", true), free_word("window", false)}), "gate"),
            "rangescope gate [options] run [window]");
  EXPECT_EQ(usage(command("report", {free_word("input", false, true)}), "report"),
            "rangescope report [options] [input...]");
}

TEST(Usage, AProgramEndsTheLineAndHiddenWordsAreNotShown) {
  HelpCommand profile = command("profile", {hidden(free_word("overrides", false))});
  profile.program = true;
  EXPECT_EQ(usage(profile, "profile"), "rangescope profile [options] [--] program [arguments]");
}

TEST(HelpText, ShortHelpHasTheMainOptionsAndSaysWhereAllAre) {
  HelpCommand profile = command("profile",
                                {option({"--keep"}, "N", "Keep this many"),
                                 option({"-o", "--output"}, "FILE", "Write there")});
  profile.mainly = {"--output"};
  const std::string brief = help_text(profile, false);
  EXPECT_TRUE(contains(brief, "  -o, --output FILE       Write there\n")) << brief;
  EXPECT_FALSE(contains(brief, "--keep")) << brief;
  EXPECT_TRUE(contains(brief, "More: rangescope profile --help-all")) << brief;
  EXPECT_TRUE(contains(help_text(profile, true), "--keep N"));
}

TEST(HelpText, WithoutAChoiceAllButTheCommonOptionsAreMain) {
  HelpOption quiet = option({"-q", "--quiet"}, "", "Print less");
  quiet.group = "Output";
  const HelpCommand runs = command("show", {option({"--json"}, "", "As JSON"), quiet});
  EXPECT_TRUE(contains(help_text(runs, false), "--json"));
  EXPECT_FALSE(contains(help_text(runs, false), "--quiet"));
}

TEST(HelpText, HiddenOptionsAreNowhere) {
  const HelpCommand runs = command("runs", {hidden(option({"--old"}, "", "An earlier name"))});
  EXPECT_FALSE(contains(help_text(runs, false), "--old"));
  EXPECT_FALSE(contains(help_text(runs, true), "--old"));
  EXPECT_FALSE(contains(man_page(runs), "old"));
}

TEST(HelpText, ALongListOfValuesIsInTheDescription) {
  HelpOption format = option({"-f", "--format"}, "table|json|jsonl|csv|html", "Output format");
  format.values = {"table", "json", "jsonl", "csv", "html"};
  const std::string text = help_text(command("report", {format}), true);
  EXPECT_TRUE(
      contains(text, "  -f, --format FORMAT     Output format: table, json, jsonl, csv, html"))
      << text;
  HelpOption color = option({"--color"}, "auto|always|never", "Color");
  color.values = {"auto", "always", "never"};
  EXPECT_TRUE(contains(help_text(command("report", {color}), true), "--color auto|always|never"));
}

TEST(HelpText, LinesFitATerminalOf80Columns) {
  std::string long_text = "Write";
  for (int word = 0; word < 40; ++word)
    long_text += " something";
  HelpCommand report = command("report", {option({"--a-very-long-name"}, "VALUE", long_text)});
  report.details = long_text + "\n\n  rangescope report  # an example stays as it is";
  for (const std::string_view line : base::split(help_text(report, true), '\n'))
    EXPECT_LE(line.size(), 80u) << line;
  EXPECT_TRUE(contains(help_text(report, false), "\nExamples:\n  rangescope report  # an example"));
}

TEST(HelpText, ACommandWithVerbsShowsEachWithItsWords) {
  HelpCommand runs = command("runs", {});
  runs.words = {command("list", {}), command("show", {free_word("run", false)})};
  const std::string brief = help_text(runs, false);
  EXPECT_TRUE(contains(brief, "where <verb> is one of\n  list ")) << brief;
  EXPECT_TRUE(contains(brief, "\n  show [run] ")) << brief;
  EXPECT_EQ(word_of(runs, runs.words[1]).name, "runs show");
}

TEST(ManPage, LinesThatRoffWouldReadAreEscaped) {
  HelpCommand report = command("report", {option({"--top"}, "N", "A back\\slash")});
  report.details = ".hidden files count\n\n'quoted' too";
  const std::string page = man_page(report);
  EXPECT_TRUE(contains(page, "\n\\&.hidden files count\n")) << page;
  EXPECT_TRUE(contains(page, "\n\\&'quoted' too\n")) << page;
  EXPECT_TRUE(contains(page, "\n.B \\-\\-top N\nA back\\eslash\n")) << page;
}

TEST(Overview, CommandsStandBelowTheirTitle) {
  HelpCommand report = command("report", {});
  report.group = "After a run";
  const std::vector<HelpCommand> commands{command("profile", {}), command("ctl", {}), report};
  const std::string text = overview(commands);
  EXPECT_TRUE(contains(text,
                       "\nCommands:\n  profile   Does a thing\n  ctl       Does a thing\n"
                       "\nAfter a run:\n  report    Does a thing\n"))
      << text;
}

/// `report`, with a choice, a list, a file and a run; and `profile`, which takes a program.
std::vector<HelpCommand> completed_commands() {
  HelpOption format = option({"-f", "--format"}, "table|json", "The user's format");
  format.values = {"table", "json"};
  HelpOption columns = option({"--columns"}, "NAME,...", "Values");
  columns.values = {"wall", "gpu"};
  columns.list = true;
  HelpOption run = free_word("input", false, true);
  run.run = true;
  HelpCommand profile = command("profile", {option({"-o"}, "FILE", "Write there")});
  profile.program = true;
  return {command("report", {run, format, columns, hidden(option({"--old"}, "", "Earlier"))}),
          profile};
}

TEST(Completion, BashOffersLongOptionsRunsAndValues) {
  const std::string script = completion(completed_commands(), "bash");
  EXPECT_TRUE(contains(script, "    report) words=\"--format --columns $runs\" ;;\n")) << script;
  EXPECT_TRUE(contains(script, "    'report -f') values='table json' ;;\n")) << script;
  EXPECT_TRUE(contains(script, "    'report --format') values='table json' ;;\n")) << script;
  EXPECT_TRUE(contains(script, "    profile) words=\"\" ;;\n")) << script;
}

TEST(Completion, ZshOffersListsProgramsAndFiles) {
  const std::string script = completion(completed_commands(), "zsh");
  EXPECT_TRUE(contains(script, "'--format=''[The user'\\''s format]'':value:(table json)'"))
      << script;
  EXPECT_TRUE(contains(script, "'-o+''[Write there]'':value:_files'")) << script;
  EXPECT_TRUE(contains(script, "':group:_sequence compadd - wall gpu'")) << script;
  EXPECT_TRUE(contains(script, "'*:: :_normal'")) << script;
  EXPECT_TRUE(contains(script, "'runs:run:($runs)'")) << script;
}

TEST(Completion, FishOffersValuesAndRuns) {
  const std::string script = completion(completed_commands(), "fish");
  EXPECT_TRUE(contains(script,
                       "'__fish_seen_subcommand_from report' -s f -l format -x -a 'table json' -d "
                       "'The user'\\''s format'\n"))
      << script;
  EXPECT_TRUE(contains(script, "'__fish_seen_subcommand_from report' -a '(__rangescope_runs)'\n"));
  EXPECT_TRUE(contains(script, "'__fish_seen_subcommand_from profile' -s o -r -d 'Write there'\n"));
}

TEST(Completion, HiddenOptionsAreNotOffered) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_FALSE(contains(completion(completed_commands(), shell), "old")) << shell;
}

}  // namespace help_test
}  // namespace rangescope::cli
