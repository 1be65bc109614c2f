#include "cli/peers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rangescope::cli {
namespace peers_test {

using Words = std::vector<std::string>;

/// The hint for an option in this line, given by a command that has only `declared`.
std::string option_hint(std::string_view option, const Words& line, const Words& declared) {
  return hint_for_peers_option(option, line, [&](const std::string& name) {
    return std::ranges::find(declared, name) != declared.end();
  });
}

std::string duration_hint(const Words& line) {
  return option_hint("--duration", line, {"--for"});
}

TEST(PeersOption, TheHintHasTheValueOfTheUser) {
  EXPECT_EQ(duration_hint({"--duration", "5s"}), "Write --for 5s");
  EXPECT_EQ(duration_hint({"--duration=250ms"}), "Write --for 250ms");
  EXPECT_EQ(option_hint("-k", {"-k", "my gemm"}, {"--kernel"}), "Write --kernel 'my gemm'");
}

TEST(PeersOption, ABareNumberGetsTheUnitOfTheExample) {
  EXPECT_EQ(duration_hint({"--duration", "5"}), "Write --for 5s");
  EXPECT_EQ(duration_hint({"--duration", "0.5"}), "Write --for 0.5s");
  EXPECT_EQ(option_hint("--rate", {"--rate", "99"}, {"--dump"}), "Samples a second are --cpu 99Hz");
}

TEST(PeersOption, WithoutAFittingValueTheExampleIsShown) {
  EXPECT_EQ(duration_hint({"--duration"}), "Write --for 10s");
  EXPECT_EQ(duration_hint({"--duration", "long"}), "Write --for 10s");
  EXPECT_EQ(duration_hint({"--duration", "--tree"}), "Write --for 10s");
  EXPECT_EQ(option_hint("-p", {"-p", "python"}, {}),
            "For a running process: rangescope attach PID");
}

TEST(PeersOption, OptionsOfTheProgramAreNotOurs) {
  EXPECT_EQ(duration_hint({"--duration", "--", "./app", "--duration", "7"}), "Write --for 10s");
}

// `profile --pid 4711` takes the number for the program, and puts the separator before it.
TEST(PeersOption, AProcessThatWasTakenForTheProgramIsTheValue) {
  EXPECT_EQ(option_hint("--pid", {"profile", "--pid", "--", "4711"}, {}),
            "For a running process: rangescope attach 4711");
  EXPECT_EQ(option_hint("--pid", {"profile", "--pid", "--", "./app"}, {}),
            "For a running process: rangescope attach PID");
}

TEST(PeersOption, OnlyWhatTheCommandHasIsSuggested) {
  EXPECT_EQ(option_hint("--duration", {"--duration", "5"}, {"--top"}), "");
  EXPECT_EQ(option_hint("-n", {"-n", "4"}, {"--top"}), "A number of rows is --top 4");
  EXPECT_EQ(option_hint("-n", {"-n", "4"}, {"--repeat"}),
            "A number of runs is --repeat 4; several processes: "
            "mpirun -n 4 rangescope profile -- ./app");
  EXPECT_EQ(option_hint("--no-such-option", {"--no-such-option"}, {"--for", "--top"}), "");
}

TEST(PeersCommand, AProcessIsAttachedTo) {
  EXPECT_EQ(hint_for_peers_command("record", {"-p", "4711"}), "Write: rangescope attach 4711");
  EXPECT_EQ(hint_for_peers_command("record", {"--pid=4711", "--duration=30"}),
            "Write: rangescope attach 4711 --for 30s");
  EXPECT_EQ(hint_for_peers_command("top", {"--pid", "4711"}),
            "Write: rangescope attach 4711 --watch");
  EXPECT_EQ(hint_for_peers_command("top", {"4711"}), "Write: rangescope attach 4711 --watch");
}

TEST(PeersCommand, AProgramIsProfiled) {
  EXPECT_EQ(hint_for_peers_command("record", {"-F", "999", "--", "./app", "--fast"}),
            "Write: rangescope profile --cpu 999Hz -- ./app --fast");
  EXPECT_EQ(hint_for_peers_command("top", {"./app"}), "Write: rangescope profile --watch -- ./app");
  EXPECT_EQ(hint_for_peers_command("stat", {"./my app", "4"}),
            "Write: rangescope profile -- './my app' 4");
}

TEST(PeersCommand, OptionsWithoutAnEquivalentAreLeftOutWithTheirValues) {
  EXPECT_EQ(hint_for_peers_command("record", {"-g", "--call-graph", "dwarf", "./app"}),
            "Write: rangescope profile -- ./app");
  EXPECT_EQ(hint_for_peers_command("record", {"--format=flamegraph", "-d", "5", "./app"}),
            "Write: rangescope profile --for 5s -- ./app");
}

TEST(PeersCommand, ADrawingIsAPageAndARecordingIsKeptAnyway) {
  EXPECT_EQ(hint_for_peers_command("record", {"-o", "flame.svg", "./app"}),
            "Write: rangescope profile -o flame.html -- ./app");
  EXPECT_EQ(hint_for_peers_command("record", {"-o", "perf.data", "./app"}),
            "Write: rangescope profile -- ./app");
  EXPECT_EQ(hint_for_peers_command("record", {"--output=out.txt", "./app"}),
            "Write: rangescope profile -o out.txt -- ./app");
}

TEST(PeersCommand, ADumpIsOfAProcessAndTakesNoOptions) {
  EXPECT_EQ(hint_for_peers_command("dump", {"--pid", "4711", "--rate", "10"}),
            "Write: rangescope attach 4711 --dump");
  EXPECT_EQ(hint_for_peers_command("dump", {"./app"}),
            "Write: rangescope attach PID --dump, "
            "or of a run: export RUN -f sqlite -o run.sqlite");
}

// What follows an unknown option may be its value or the program.
TEST(PeersCommand, ALineWithAnUnknownOptionIsNotTranslated) {
  EXPECT_EQ(hint_for_peers_command("record", {"--zap", "./app"}), "did you mean 'profile'?");
  EXPECT_EQ(hint_for_peers_command("record", {}), "did you mean 'profile'?");
}

TEST(PeersCommand, CommandsOfOthersHaveOurName) {
  EXPECT_EQ(hint_for_peers_command("diff", {}), "did you mean 'compare'?");
  EXPECT_EQ(hint_for_peers_command("import", {"x.nsys-rep"}), "Write: rangescope runs import FILE");
  EXPECT_EQ(hint_for_peers_command("cook", {"./app"}), "");
}

}  // namespace peers_test
}  // namespace rangescope::cli
