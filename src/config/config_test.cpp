#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/source_dir.hpp"
#include "base/text.hpp"
#include "config/compose.hpp"
#include "config/record.hpp"
#include "config/yaml.hpp"

namespace rangescope::config {
namespace config_test {

namespace fs = std::filesystem;

/// A folder of YAML files that lives as long as the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "rangescope-config-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path); }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  fs::path path;
};

/// The argument of the command line at `position`.
Origin argument(int position, const std::string& written) {
  return {.source = Source::kOverride, .name = written, .argument = position};
}

Override given(const std::string& written, int position = 1) {
  return *parse_override(written, argument(position, written));
}

Inputs shipped(const std::vector<std::string>& arguments = {}) {
  Inputs inputs;
  inputs.shipped = fs::path(base::source_dir) / "conf";
  int index = 1;
  for (const std::string& written : arguments) {
    auto parsed = parse_override(written, argument(index++, written));
    EXPECT_TRUE(parsed.has_value())
        << written << ": " << (parsed ? "" : base::to_string(parsed.error()));
    if (parsed)
      inputs.overrides.push_back(*parsed);
  }
  return inputs;
}

std::string flow(const Config& config, std::string_view path) {
  const Value* value = at_path(config.root, path);
  return value ? to_flow(*value) : "(absent)";
}

/// The value of `path` after the overrides, or the error.
std::string after(const std::vector<std::string>& arguments, std::string_view path) {
  auto config = compose(shipped(arguments));
  return config ? flow(*config, path) : base::to_string(config.error());
}

// ---- overrides on the shipped configuration

TEST(Compose, ShippedConfigurationFitsItsSchemaAndNamesEveryKey) {
  auto config = compose(shipped());
  ASSERT_TRUE(config.has_value()) << base::to_string(config.error());
  for (const Key& key : keys())
    EXPECT_NE(at_path(config->root, key.path), nullptr) << key.path << " is in no shipped file";
  EXPECT_TRUE(config->flag("pipeline.native.enable"));
  EXPECT_FALSE(config->flag("pipeline.ncu.enable"));
}

TEST(Compose, EveryPresetComposes) {
  for (const auto& [group, options] : groups(shipped()))
    for (const std::string& option : options) {
      auto config = compose(shipped({group + "=" + option}));
      ASSERT_TRUE(config.has_value())
          << group << "=" << option << ": " << base::to_string(config.error());
    }
  EXPECT_EQ(after({"ncu=quick"}, "pipeline.ncu.ncu_cli.launch_count"), "5");
  EXPECT_EQ(after({"ncu=standard"}, "pipeline.ncu.ncu_cli.set"), "roofline");
  EXPECT_EQ(after({"ncu=comprehensive"}, "pipeline.ncu.ncu_cli.launch_count"), "100");
  EXPECT_EQ(after({"ncu=comprehensive"}, "pipeline.ncu.enable"), "true");
  EXPECT_EQ(after({"ncu=quick", "pipeline.ncu.enable=false"}, "pipeline.ncu.enable"), "false");
  EXPECT_EQ(after({"collector=all"}, "pipeline.nsys.enable"), "true");
}

TEST(Compose, TheFourCommandsOfTheManual) {
  const std::string cli = "pipeline.ncu.ncu_cli.";
  EXPECT_EQ(after({"pipeline.ncu.enable=true",
                   cli + "replay_mode=range",
                   cli + "nvtx.include=LLM@*",
                   cli + "sections=[SpeedOfLight,MemoryWorkloadAnalysis,Occupancy,SchedulerStats]"},
                  cli + "sections"),
            "[SpeedOfLight, MemoryWorkloadAnalysis, Occupancy, SchedulerStats]");
  EXPECT_EQ(after({cli + "nvtx.include=prefill*"}, cli + "nvtx.include"), "[prefill*]");
  EXPECT_EQ(after({cli + "kernel_name=regex:.*matmul.*", cli + "kernel_name_base=demangled"},
                  cli + "kernel_name"),
            "'regex:.*matmul.*'");
  EXPECT_EQ(after({"+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=decode"},
                  "pipeline.nsys.nvtx_capture"),
            "decode");
}

TEST(Compose, AddAndDelete) {
  EXPECT_EQ(after({"+run.keep=5"}, "run.keep"), "5");
  EXPECT_EQ(after({"run.keep=5", "+run.keep=6"}, "run.keep"), "6");
  EXPECT_EQ(after({"~run.keep"}, "run.keep"), "(absent)");
  EXPECT_EQ(after({"~run.nosuch"}, "").substr(0, 45),
            "argument 1: ~run.nosuch: unknown key 'run.nos");
}

TEST(Compose, UnknownKeyNamesTheNearestAndThePlace) {
  EXPECT_EQ(
      after({"pipeline.ncu.top_k=3"}, ""),
      "argument 1: pipeline.ncu.top_k=3: unknown key 'pipeline.ncu.top_k'\nhint: did you mean "
      "'pipeline.ncu.top_n', 'pipeline.ncu.path' or 'pipeline.ncu.env'?");
  EXPECT_EQ(after({"launch_count=3"}, ""),
            "argument 1: launch_count=3: unknown key 'launch_count'\nhint: did you mean "
            "'pipeline.ncu.ncu_cli.launch_count'?");
  EXPECT_EQ(compose(shipped({"nosuch=1"})).error().code, base::Code::kConfig);
  EXPECT_EQ(after({"run=5"}, ""),
            "argument 1: run=5: run is a section of keys and cannot be '5'\nhint: Set one of its "
            "keys: `rangescope "
            "config show run` lists them.");
}

TEST(Compose, TypesAndRanges) {
  const std::string cli = "pipeline.ncu.ncu_cli.";
  EXPECT_EQ(after({"run.keep=0"}, ""),
            "argument 1: run.keep=0: run.keep: '0' is not a whole number from 1 to 1000000");
  EXPECT_EQ(after({"run.keep=many"}, ""),
            "argument 1: run.keep=many: run.keep: 'many' is not a whole number from 1 to 1000000");
  EXPECT_EQ(after({cli + "replay_mode=rnage"}, "").substr(0, 200),
            "argument 1: pipeline.ncu.ncu_cli.replay_mode=rnage: pipeline.ncu.ncu_cli.replay_mode: "
            "'rnage' is not one "
            "of auto, kernel, application, range, app-range, range-or-kernel, "
            "app-range-or-kernel\nhint: did ");
  EXPECT_EQ(after({"pipeline.ncu.enable=on"}, "pipeline.ncu.enable"), "true");
  EXPECT_EQ(after({"pipeline.ncu.enable=maybe"}, ""),
            "argument 1: pipeline.ncu.enable=maybe: pipeline.ncu.enable: 'maybe' is not a boolean "
            "(true or false)");
  EXPECT_EQ(after({cli + "kernel_name=007"}, cli + "kernel_name"), "007");
  EXPECT_EQ(after({"run.timeout=5m"}, "run.timeout"), "5m");
  EXPECT_EQ(after({"run.timeout=soon"}, "").substr(0, 60),
            "argument 1: run.timeout=soon: run.timeout: 'soon' is not a d");
  EXPECT_EQ(after({"pipeline.nsys.trace=cuda"}, "pipeline.nsys.trace"), "[cuda]");
  EXPECT_EQ(after({"workload.env.FOO=bar", "workload.env.N=3"}, "workload.env"),
            "{FOO: bar, N: 3}");
  EXPECT_EQ(after({"workload.env={A:1}", "workload.env.B=2"}, "workload.env"), "{A: 1, B: 2}");
  EXPECT_EQ(parse_duration("1.5h"), 5400'000'000'000);
  EXPECT_EQ(parse_duration("90"), 90'000'000'000);
  EXPECT_EQ(parse_duration("250ms"), 250'000'000);
  EXPECT_EQ(parse_duration("-1s"), std::nullopt);
  EXPECT_EQ(parse_size("4G"), 4ull << 30);
  EXPECT_EQ(parse_size("1.5 KiB"), 1536u);
}

TEST(Compose, GroupsNobodyHas) {
  EXPECT_EQ(after({"ncu=compre"}, ""),
            "argument 1: ncu=compre: group 'ncu' has no option 'compre'\nhint: did you mean "
            "'compute' or 'comprehensive'?");
  EXPECT_EQ(after({"~ncu"}, "pipeline.ncu.top_n"), "'10'");
  EXPECT_EQ(after({"ncuu=quick"}, ""),
            "argument 1: ncuu=quick: unknown key 'ncuu'\nhint: did you mean 'ncu'?");
  EXPECT_EQ(after({"run/keep=5"}, ""),
            "argument 1: run/keep=5: there is no configuration group 'run/keep'\nhint: did you "
            "mean 'run.keep'?");
}

// ---- files

TEST(Compose, LayersInOrder) {
  Folder folder;
  folder.put("dir/config.yaml", "run: {keep: 2, retries: 2}\n");
  folder.put("dir/ncu/mine.yaml",
             "pipeline: {ncu: {ncu_cli: {set: basic, launch_count: 7}, top_n: 8}}\n");
  folder.put("rangescope.yaml", "ncu: mine\nrun:\n  keep: 3\n  timeout: 10s\n");
  folder.put("extra.yaml", "run:\n  keep: 4\n");
  Inputs inputs = shipped({"pipeline.ncu.top_n=9"});
  inputs.config_dirs = {folder.path / "dir"};
  inputs.project_file = folder.path / "rangescope.yaml";
  inputs.project_trusted = true;
  inputs.config_files = {folder.path / "extra.yaml"};
  inputs.environment = {{"RANGESCOPE__RUN__RETRIES", "8"},
                        {"RANGESCOPE__WORKLOAD__ENV__OMP_NUM_THREADS", "4"}};
  auto config = compose(inputs);
  ASSERT_TRUE(config.has_value()) << base::to_string(config.error());
  EXPECT_EQ(flow(*config, "run.keep"), "4");
  EXPECT_EQ(flow(*config, "run.timeout"), "10s");
  EXPECT_EQ(flow(*config, "run.retries"), "8");
  EXPECT_EQ(flow(*config, "workload.env"), "{OMP_NUM_THREADS: 4}");
  EXPECT_EQ(flow(*config, "pipeline.ncu.ncu_cli.launch_count"), "7");
  EXPECT_EQ(flow(*config, "pipeline.ncu.ncu_cli.set"), "basic");
  EXPECT_EQ(flow(*config, "pipeline.ncu.top_n"), "'9'");
  const auto told = explain(*config, "run.keep");
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(*told,
            "run.keep\n"
            "  run directories kept under run.root; older ones are removed after a successful run; "
            "null keeps all\n"
            "  type:  a whole number from 1 to 1000000\n"
            "  flag:  --keep\n"
            "  value: 4\n"
            "  set by " +
                (folder.path / "extra.yaml").string() +
                ":2:9: 4\n"
                "  before " +
                (folder.path / "rangescope.yaml").string() +
                ":3:9: 3\n"
                "  before " +
                (folder.path / "dir/config.yaml").string() +
                ":1:13: 2\n"
                "  before " +
                (fs::path(base::source_dir) / "conf/config.yaml").string() + ":22:9: null\n");
  EXPECT_TRUE(config->set_by_user("run.keep"));
  EXPECT_FALSE(config->set_by_user("device"));
}

// ---- groups

/// The options of `ncu` that were laid over each other, of a configuration whose layers are these
/// files.
struct Chosen {
  Folder folder;
  Inputs inputs = shipped();
  Chosen() {
    inputs.config_dirs = {folder.path / "dir"};
    folder.put("dir/ncu/mine.yaml", "pipeline: {ncu: {ncu_cli: {launch_count: 7}}}\n");
    folder.put("dir/team/fast.yaml", "pipeline: {ncu: {ncu_cli: {launch_count: 2}}}\n");
  }
  void project(const std::string& text) {
    folder.put("rangescope.yaml", text);
    inputs.project_file = folder.path / "rangescope.yaml";
    inputs.project_trusted = true;
  }
  std::string operator()(std::string_view key) const {
    auto config = compose(inputs);
    if (config)
      return flow(*config, key);
    return base::replace_all(base::to_string(config.error()), folder.path.string() + "/", "");
  }
};

constexpr std::string_view kLaunchCount = "pipeline.ncu.ncu_cli.launch_count";

TEST(Groups, TheOptionChosenLastCounts) {
  Chosen chosen;
  EXPECT_EQ(chosen(kLaunchCount), "null");
  chosen.folder.put("dir/config.yaml", "ncu: quick\n");
  EXPECT_EQ(chosen(kLaunchCount), "5");
  chosen.project("ncu: mine\n");
  EXPECT_EQ(chosen(kLaunchCount), "7");
  chosen.folder.put("extra.yaml", "ncu: high\n");
  chosen.inputs.config_files = {chosen.folder.path / "extra.yaml"};
  EXPECT_EQ(chosen(kLaunchCount), "50");
  EXPECT_EQ(chosen("pipeline.ncu.ncu_cli.set"), "detailed");
  chosen.inputs.environment = {{"RANGESCOPE__NCU", "memory"}};
  EXPECT_EQ(chosen(kLaunchCount), "20");
  chosen.inputs.overrides = {given("ncu=comprehensive")};
  EXPECT_EQ(chosen(kLaunchCount), "100");
  chosen.inputs.overrides.push_back(given("~ncu", 2));
  EXPECT_EQ(chosen(kLaunchCount), "null");
}

TEST(Groups, AnOptionLiesUnderEveryFileOfTheUser) {
  Chosen chosen;
  chosen.folder.put("dir/config.yaml", "pipeline: {ncu: {ncu_cli: {launch_count: 9}}}\n");
  chosen.inputs.overrides = {given("ncu=quick")};
  EXPECT_EQ(chosen(kLaunchCount), "9");
  EXPECT_EQ(chosen("pipeline.ncu.ncu_cli.set"), "basic");
}

TEST(Groups, LaterGroupsLieOverEarlierOnes) {
  Chosen chosen;
  chosen.inputs.overrides = {given("team=fast"), given("ncu=quick", 2)};
  EXPECT_EQ(chosen(kLaunchCount), "2");  // conf/config.yaml was the first to choose one of ncu
  EXPECT_EQ(chosen("pipeline.ncu.ncu_cli.set"), "basic");
  const auto config = compose(chosen.inputs);
  ASSERT_TRUE(config.has_value());
  std::string order;
  for (const Choice& choice : config->choices)
    order += choice.group + "=" + choice.option + " ";
  EXPECT_EQ(order, "collector=native nsys=default ncu=quick team=fast ");
}

TEST(Groups, AnOptionChoosesNoOther) {
  Chosen chosen;
  chosen.folder.put("dir/team/fast.yaml", "ncu: quick\n");
  chosen.project("team: fast\n");
  EXPECT_EQ(chosen(""),
            "dir/team/fast.yaml:1:6: an option of group 'team' cannot choose one of group 'ncu'\n"
            "hint: Choose it in a rangescope.yaml or on the command line.");
}

TEST(Groups, AChoiceIsTheNameOfAnOption) {
  Chosen chosen;
  chosen.project("ncu: qick\n");
  EXPECT_EQ(chosen(""),
            "rangescope.yaml:1:6: group 'ncu' has no option 'qick'\nhint: did you mean 'quick'?");
  chosen.project("ncu: [quick, high]\n");
  EXPECT_EQ(chosen(""), "rangescope.yaml:1:6: group 'ncu' takes the name of an option");
  chosen.project("nsy: default\n");
  EXPECT_EQ(
      chosen(""),
      "rangescope.yaml:1:6: unknown key 'nsy'\nhint: did you mean 'nsys', 'pipeline.nsys.env' or "
      "'pipeline.nsys.enable'?");
}

TEST(Groups, NoFileOutsideTheirFoldersIsRead) {
  Chosen chosen;
  chosen.folder.put("evil.yaml", "pipeline: {nsys: {path: /tmp/evil}}\n");
  for (const std::string& option : {(chosen.folder.path / "evil").string(),
                                    std::string("../evil"),
                                    std::string("../../evil"),
                                    std::string("./quick")}) {
    chosen.project("ncu: '" + option + "'\n");
    chosen.inputs.project_trusted = false;
    EXPECT_NE(chosen("").find("group 'ncu' has no option '"), std::string::npos) << option;
  }
}

// ---- files that were written for Hydra

/// What a preset `text` of ncu is refused with.
std::string refused_preset(const std::string& text) {
  Chosen chosen;
  chosen.folder.put("dir/ncu/mine.yaml", text);
  chosen.inputs.overrides = {given("ncu=mine")};
  return chosen("");
}

/// A preset as llm-perf-opt has them: its keys are those of pipeline.ncu.
TEST(HydraFiles, APresetIsRefusedWithItsIndentation) {
  EXPECT_EQ(refused_preset("ncu_cli:\n  launch_count: 7\n"),
            "dir/ncu/mine.yaml:2:3: unknown key 'ncu_cli'\n"
            "hint: Write `pipeline:` and `  ncu:` above `ncu_cli:`, and indent `ncu_cli:` and the "
            "lines below it by 4 "
            "spaces.");
  EXPECT_EQ(refused_preset("pipeline:\n  ncu:\n    ncu_cli:\n      launch_count: many\n"),
            "dir/ncu/mine.yaml:4:21: pipeline.ncu.ncu_cli.launch_count: 'many' is not a whole "
            "number of at "
            "least 1");
  EXPECT_EQ(refused_preset("enable: true\nncu_cli:\n  launch_count: 7\n"),
            "dir/ncu/mine.yaml:1:9: unknown key 'enable'\n"
            "hint: Write `pipeline:` and `  ncu:` above `enable:`, and indent `enable:`, "
            "`ncu_cli:` and the lines "
            "below them by 4 spaces.");
  EXPECT_EQ(
      refused_preset("launch_count: 7\n"),
      "dir/ncu/mine.yaml:1:15: unknown key 'launch_count'\n"
      "hint: Write `pipeline:` and `  ncu:` and `    ncu_cli:` above `launch_count:`, and indent "
      "`launch_count:` and the lines below it by 6 spaces.");
}

TEST(HydraFiles, SharedNamesBelongToTheSectionOfTheGroup) {
  EXPECT_EQ(refused_preset("enable: true\n"),
            "dir/ncu/mine.yaml:1:9: unknown key 'enable'\n"
            "hint: Write `pipeline:` and `  ncu:` above `enable:`, and indent `enable:` and the "
            "lines below it by 4 "
            "spaces.");
  Chosen chosen;
  chosen.project("enable: true\n");  // of native, nsys or ncu
  EXPECT_EQ(chosen("").find("Write"), std::string::npos) << chosen("");
  chosen.project("ncu: {ncu_cli: {launch_count: 7}}\n");
  EXPECT_EQ(chosen(""),
            "rangescope.yaml:1:6: unknown key 'ncu'\n"
            "hint: Write `pipeline:` above `ncu:`, and indent `ncu:` and the lines below it by 2 "
            "spaces.");
}

TEST(HydraFiles, APackageIsRefusedWithItsIndentation) {
  EXPECT_EQ(refused_preset("# Mine.\n# @package pipeline.ncu\nncu_cli:\n  launch_count: 7\n"),
            "dir/ncu/mine.yaml:2:1: `# @package` is not supported: keys are nested from the root\n"
            "hint: Write `pipeline:` and `  ncu:` in its place, and indent the rest by 4 spaces.");
  EXPECT_EQ(refused_preset("# @package _global_\npipeline: {}\n"),
            "dir/ncu/mine.yaml:1:1: `# @package` is not supported: keys are nested from the root\n"
            "hint: Remove this line, and write each key inside its sections, as `rangescope config "
            "show` does.");
  Chosen chosen;
  chosen.project("run: {keep: 3}\n# @package is what Hydra reads\n");
  EXPECT_EQ(chosen("run.keep"), "3");
}

TEST(HydraFiles, ADefaultsListIsRefusedWithTheChoicesToWrite) {
  EXPECT_EQ(refused_preset("defaults:\n  - default\nrun: {keep: 3}\n"),
            "dir/ncu/mine.yaml:2:3: defaults lists are not supported\n"
            "hint: Remove it: an option always lies over conf/config.yaml.");
  EXPECT_EQ(refused_preset("defaults: [quick, _self_]\nrun: {keep: 3}\n"),
            "dir/ncu/mine.yaml:1:11: defaults lists are not supported\n"
            "hint: Remove it, and copy the keys that you need from quick.yaml.");
  Chosen chosen;
  chosen.project(
      "defaults:\n  - _self_\n  - ncu: quick\n  - override /nsys: cpu\nrun: {keep: 3}\n");
  EXPECT_EQ(chosen(""),
            "rangescope.yaml:2:3: defaults lists are not supported\n"
            "hint: Write `ncu: quick` and `nsys: cpu` in its place, not indented.");
  chosen.project("ncu: quick\nnsys: cpu\nrun: {keep: 3}\n");
  EXPECT_EQ(chosen(kLaunchCount), "5");
  chosen.project("defaults:\n  - profiling/ncu@pipeline.ncu: high\n");
  EXPECT_NE(chosen("").find("Write `ncu: high` in its place"), std::string::npos) << chosen("");
  chosen.project("defaults: [_self_]\n");
  EXPECT_NE(chosen("").find("Remove it: a file always lies over"), std::string::npos) << chosen("");
  chosen.project("defaults:\n");
  EXPECT_NE(chosen("").find("defaults lists are not supported"), std::string::npos) << chosen("");
}

TEST(Compose, MistakesInFilesAreLocated) {
  Folder folder;
  Inputs inputs = shipped();
  const fs::path file = folder.path / "rangescope.yaml";
  inputs.project_file = file;
  inputs.project_trusted = true;
  const auto error = [&](const std::string& text) {
    folder.put("rangescope.yaml", text);
    auto config = compose(inputs);
    return config ? "no error"
                  : base::replace_all(base::to_string(config.error()), file.string(), "FILE");
  };
  EXPECT_EQ(
      error("run:\n  keep: 1\n  keep: 2\n"),
      "FILE:3:3: key 'keep' is in one map twice (first at FILE:2:9)\nhint: Remove one of the two.");
  EXPECT_EQ(error("run:\n  kep: 1\n"),
            "FILE:2:8: unknown key 'run.kep'\nhint: did you mean 'run.keep'?");
  EXPECT_EQ(error("pipeline:\n  native: {overhead: 1%}\n").substr(0, 117),
            "FILE:2:22: unknown key 'pipeline.native.overhead'\nhint: pipeline.native.overhead was "
            "removed: write --after "
            "30s --for");
  EXPECT_EQ(error("run: {keep: -1}\n"),
            "FILE:1:13: run.keep: '-1' is not a whole number from 1 to 1000000");
  EXPECT_EQ(error("run: [1\n").substr(0, 9), "FILE:2:1:");
  EXPECT_EQ(error("- a\n").substr(0, 68),
            "FILE:1:1: the root of a configuration file must be a map of keys\nhin");
  EXPECT_EQ(error("run: {keep: 1}\n---\nrun: {}\n").substr(0, 50),
            "FILE: the file holds more than one YAML document\nh");
  EXPECT_EQ(error("a: &x [1]\nb: *y\n").substr(0, 8), "FILE:2:4");
  EXPECT_EQ(
      error("run.keep: 5\n"),
      "FILE:1:11: key 'run.keep' has a dot in it\nhint: Write `run:` and below it `keep: ...`.");
  EXPECT_EQ(error("vars: {a.b: 5}\n"), "no error");
  EXPECT_EQ(error(""), "no error");
}

// ---- interpolation

TEST(Interpolation, EveryForm) {
  Inputs inputs = shipped();
  inputs.environment = {{"HOME_DIR", "/h"}, {"N", "3"}, {"HF_TOKEN", "abc"}};
  inputs.now = std::chrono::system_clock::time_point(std::chrono::seconds(0));
  Folder folder;
  folder.put("c.yaml", R"(
run: {dir: /runs/1}
vars:
  a: {b: 5, list: [x, y]}
  alone: ${vars.a.b}
  inside: n=${vars.a.b}!
  item: ${vars.a.list.1}${vars.a.list[0]}
  sibling: ${.alone}
  deep: {up: '${..alone}', near: '${.up}'}
  name: b
  nested: ${vars.a.${vars.name}}
  env: ${env:HOME_DIR}/x
  typed: ${env:N}
  fallback: ${env:NOSUCH,7}
  old: ${oc.env:NOSUCH,'a b'}
  year: ${now:%Y}
  dir: ${run.dir}/out
  escaped: \${run.dir}
  token: ${env:HF_TOKEN}
  whole: ${vars.a.list}
)");
  inputs.config_files = {folder.path / "c.yaml"};
  auto config = compose(inputs);
  ASSERT_TRUE(config.has_value()) << base::to_string(config.error());
  const auto is = [&](const char* name, const char* expected) {
    EXPECT_EQ(flow(*config, std::string("vars.") + name), expected) << name;
  };
  is("alone", "5");
  EXPECT_EQ(config->get("vars.alone")->kind, Kind::kInt);
  is("inside", "n=5!");
  is("item", "yx");
  is("sibling", "5");
  is("deep", "{up: 5, near: 5}");
  is("nested", "5");
  is("env", "/h/x");
  is("typed", "3");
  is("fallback", "7");
  is("old", "a b");
  EXPECT_TRUE(config->text("vars.year") == "1970" || config->text("vars.year") == "1969");
  is("dir", "/runs/1/out");
  is("escaped", "'${run.dir}'");
  EXPECT_TRUE(flow(*config, "vars.token").starts_with("<redacted:"));
  is("whole", "[x, y]");
}

TEST(Interpolation, BombsAreRefused) {
  std::string nested;
  for (int i = 0; i < 5000; ++i)
    nested += "${";
  EXPECT_NE(after({"vars.a=" + nested + "x" + std::string(5000, '}')}, "").find("deeper than"),
            std::string::npos);
  Folder folder;
  std::string doubling = "vars:\n  v0: xxxxxxxxxxxxxxxx\n", chain = "vars:\n  v0: x\n",
              lists = "vars:\n  v0: [a]\n";
  for (int i = 1; i <= 60; ++i) {
    const std::string before = "${vars.v" + std::to_string(i - 1) + "}",
                      name = "  v" + std::to_string(i);
    doubling += name + ": '" + before + before + "'\n";
    lists += name + ": ['" + before + "', '" + before + "']\n";
  }
  for (int i = 1; i <= 3000; ++i)
    chain += "  v" + std::to_string(i) + ": '${vars.v" + std::to_string(i + 1 > 3000 ? 0 : i + 1) +
             "}'\n";
  for (const auto& [text, says] :
       {std::pair(doubling, "16 MiB"), {lists, "16 MiB"}, {chain, "deeper than"}}) {
    folder.put("c.yaml", text);
    Inputs inputs = shipped();
    inputs.config_files = {folder.path / "c.yaml"};
    const auto config = compose(inputs);
    ASSERT_FALSE(config.has_value());
    EXPECT_NE(config.error().what.find(says), std::string::npos) << config.error().what;
  }
}

TEST(Interpolation, Mistakes) {
  EXPECT_EQ(
      after({"vars.a=${vars.b}", "vars.b=${vars.a}"}, "").substr(0, 200),
      "argument 1: vars.a=${vars.b}: the interpolation of 'vars.a' is circular\nhint: Break the "
      "circle with a plain value.");
  EXPECT_EQ(after({"vars.a=${run.kep}"}, ""),
            "argument 1: vars.a=${run.kep}: ${run.kep}: there is no key 'run.kep'\nhint: did you "
            "mean 'run.keep'?");
  EXPECT_EQ(after({"vars.a=${env:RANGESCOPE_NOSUCH}"}, "").substr(0, 107),
            "argument 1: vars.a=${env:RANGESCOPE_NOSUCH}: environment variable 'RANGESCOPE_NOSUCH' "
            "is not set\nhint: Set ");
  EXPECT_EQ(after({"vars.a=${nwo:%Y}"}, "").substr(0, 100),
            "argument 1: vars.a=${nwo:%Y}: ${nwo:...}: there is no resolver 'nwo'\nhint: did you "
            "mean 'now'?");
}

TEST(Interpolation, FlagsAreTakenAsTheyStand) {
  Inputs inputs = shipped();
  inputs.overrides = {
      set_list("workload.command", {"echo", "${run.dir}"}, {.source = Source::kProgram}),
      set_text("pipeline.ncu.ncu_cli.kernel_name",
               "a,b${x}",
               {.source = Source::kFlag, .name = "--kernel-name", .argument = 1})};
  auto config = compose(inputs);
  ASSERT_TRUE(config.has_value()) << base::to_string(config.error());
  EXPECT_EQ(config->list("workload.command"), (std::vector<std::string>{"echo", "${run.dir}"}));
  EXPECT_EQ(config->text("pipeline.ncu.ncu_cli.kernel_name"), "a,b${x}");
}

// ---- origins

TEST(Origins, AreWrittenAsPlaces) {
  const auto text = [](const Origin& origin) { return to_string(origin); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({.source = Source::kUserFile, .name = "a.yaml"}), "a.yaml");
  EXPECT_EQ(text({.source = Source::kShippedFile, .name = "a.yaml", .line = 12, .column = 3}),
            "a.yaml:12:3");
  EXPECT_EQ(text({.source = Source::kEnvironment, .name = "RANGESCOPE__RUN__KEEP"}),
            "environment RANGESCOPE__RUN__KEEP");
  EXPECT_EQ(text(argument(2, "run.keep=5")), "argument 2: run.keep=5");
  EXPECT_EQ(text({.source = Source::kFlag, .name = "--keep", .argument = 3}), "argument 3: --keep");
  EXPECT_EQ(text({.source = Source::kProgram}), "the program after --");
  EXPECT_EQ(text({.source = Source::kImplied, .name = "pipeline.nsys.gating_nvtx"}),
            "implied by pipeline.nsys.gating_nvtx");
}

TEST(Origins, EveryValueHasOne) {
  Chosen chosen;
  chosen.project("ncu: mine\nrun: {keep: 3}\n");
  chosen.inputs.environment = {{"RANGESCOPE__RUN__RETRIES", "8"}};
  chosen.inputs.overrides = {given("run.timeout=5s")};
  const auto config = compose(chosen.inputs);
  ASSERT_TRUE(config.has_value());
  const auto source = [&](std::string_view key) { return config->origin(key).source; };
  EXPECT_EQ(source("device"), Source::kShippedFile);
  EXPECT_EQ(source("run.keep"), Source::kUserFile);
  EXPECT_EQ(source(kLaunchCount), Source::kUserFile);
  EXPECT_EQ(source("run.retries"), Source::kEnvironment);
  EXPECT_EQ(source("run.timeout"), Source::kOverride);
  EXPECT_EQ(source("run.nosuch"), Source::kNone);
  EXPECT_EQ(config->origin("run.keep").line, 2);
  EXPECT_TRUE(config->origin("run.timeout").on_command_line());
  EXPECT_FALSE(config->origin("run.retries").on_command_line());
}

TEST(Origins, ShippedPresetsAreNoWishOfTheUser) {
  Chosen chosen;
  chosen.inputs.overrides = {given("ncu=quick"), given("+run.keep=2", 2), given("~run.retries", 3)};
  auto config = compose(chosen.inputs);
  ASSERT_TRUE(config.has_value());
  EXPECT_FALSE(config->set_by_user(kLaunchCount));
  EXPECT_TRUE(config->set_by_user("run.keep"));
  EXPECT_TRUE(config->set_by_user("run.retries"));
  EXPECT_FALSE(config->set_by_user("run.nosuch"));
  chosen.inputs.overrides = {given("ncu=mine")};
  config = compose(chosen.inputs);
  ASSERT_TRUE(config.has_value());
  EXPECT_TRUE(config->set_by_user(kLaunchCount));
}

TEST(Origins, RecordsNameVariablesWithoutTheirValues) {
  const auto config = compose(shipped({"workload.env.HF_TOKEN=abcdef", "run.job=plain"}));
  ASSERT_TRUE(config.has_value());
  const std::string recorded = recorded_inputs(*config);
  EXPECT_EQ(recorded.find("abcdef"), std::string::npos) << recorded;
  EXPECT_NE(recorded.find("by: 'argument 1: workload.env.HF_TOKEN'}"), std::string::npos)
      << recorded;
  EXPECT_NE(recorded.find("by: 'argument 2: run.job=plain'}"), std::string::npos) << recorded;
}

// ---- writing and finding

TEST(Yaml, WhatIsWrittenReadsBackTheSame) {
  auto config =
      compose(shipped({"ncu=standard",
                       "vars={a:'yes',b:'1',c:' x',d:\"q'q\",e:'',f:'a: b',g:'#x',h:null}",
                       "workload.command=[python,'-c','print(1)\n#\ttab']"}));
  ASSERT_TRUE(config.has_value()) << base::to_string(config.error());
  const std::string written = to_yaml(config->root);
  auto read = parse_yaml(written, "written");
  ASSERT_TRUE(read.has_value()) << base::to_string(read.error()) << written;
  EXPECT_EQ(to_yaml(*read), written);
  EXPECT_EQ(at_path(*read, "vars.a")->kind, Kind::kText);
  EXPECT_EQ(at_path(*read, "vars.b")->kind, Kind::kText);
  EXPECT_EQ(at_path(*read, "workload.command.2")->text, "print(1)\n#\ttab");
}

TEST(Yaml, ABillionLaughsAreRefused) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k)
      text += "," + before;
    text += "]\n";
  }
  auto read = parse_yaml(text, "bomb");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, base::Code::kConfig);
}

TEST(Find, ProjectFileUpToTheRepository) {
  Folder folder;
  folder.put("repo/.git/x", "");
  folder.put("rangescope.yaml", "");
  fs::create_directories(folder.path / "repo/a/b");
  EXPECT_EQ(find_project_file(folder.path / "repo/a/b", "/nowhere"), std::nullopt);
  folder.put("repo/rangescope.yaml", "");
  EXPECT_EQ(find_project_file(folder.path / "repo/a/b", "/nowhere"),
            folder.path / "repo/rangescope.yaml");
  EXPECT_EQ(find_project_file(folder.path / "repo/a/b", folder.path / "repo/a"), std::nullopt);
}

TEST(Find, ConfInTheThreePlaces) {
  Folder folder;
  folder.put("prefix/share/rangescope/conf/config.yaml", "");
  folder.put("src/conf/config.yaml", "");
  EXPECT_EQ(find_conf(folder.path / "prefix/bin/rangescope", {}),
            folder.path / "prefix/share/rangescope/conf");
  EXPECT_EQ(find_conf(folder.path / "src/build/dev/src/rangescope", {}), folder.path / "src/conf");
  EXPECT_EQ(find_conf("/x/rangescope", {{"RANGESCOPE_CONF", (folder.path / "src/conf").string()}}),
            folder.path / "src/conf");
  EXPECT_FALSE(find_conf(folder.path / "src/build/rangescope", {{"RANGESCOPE_CONF", "/nosuch"}})
                   .has_value());
}

TEST(Schema, FlagsAreUniqueAndEveryKeyIsExplained) {
  std::map<std::string_view, std::string_view> flags;
  for (const Key& key : keys()) {
    EXPECT_FALSE(key.about.empty()) << key.path;
    if (key.flag.empty())
      continue;
    EXPECT_TRUE(flags.emplace(key.flag, key.path).second) << key.flag;
  }
  EXPECT_EQ(find_flag("--replay-mode")->path, "pipeline.ncu.ncu_cli.replay_mode");
}

}  // namespace config_test
}  // namespace rangescope::config
