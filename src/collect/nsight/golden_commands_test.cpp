// Every option of both tools, in every version whose abilities are recorded, as the command line
// that it gives: text in tests/golden/commands, compared line by line. RANGESCOPE_UPDATE_GOLDEN=1
// writes the text anew (read the diff).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/text.hpp"
#include "collect/nsight/ncu.hpp"
#include "collect/nsight/nsys.hpp"
#include "model/range_expression.hpp"

namespace rangescope::collect {
namespace golden_commands_test {

namespace fs = std::filesystem;
const fs::path kGolden = fs::path(base::source_dir) / "tests" / "golden";

Abilities abilities(const std::string& name) {
  auto text = base::read_file(fs::path(base::source_dir) / "conf" / "tools" / (name + ".json"));
  EXPECT_TRUE(text.has_value()) << name;
  auto parsed = from_json(text ? *text : "");
  EXPECT_TRUE(parsed.has_value()) << name << (parsed ? "" : parsed.error().what);
  return parsed ? *parsed : Abilities{};
}

Request request(const std::vector<std::string>& include = {},
                const std::vector<std::string>& exclude = {}) {
  Request out;
  out.command = {"python", "train.py", "--note=a b"};
  out.cwd = "/work dir";
  out.run_dir = "/runs/1";
  auto ranges = model::RangeSelection::parse(include, exclude);
  EXPECT_TRUE(ranges.has_value());
  if (ranges)
    out.ranges = std::move(*ranges);
  return out;
}

/// The plan as text: environment, command line, notes; or the refusal.
std::string show(const base::Result<Plan>& plan) {
  if (!plan)
    return "  refused: " + base::replace_all(base::to_string(plan.error()), "\n", "\n    ") + "\n";
  std::string out = "  ";
  for (const auto& [name, value] : plan->set_env)
    out += name + "=" + base::shell_quote(value) + " ";
  out += base::shell_quote(plan->argv) + "\n";
  for (const std::string& note : plan->notes)
    out += "  note: " + note + "\n";
  return out;
}

/// What an option changes against the plan without it.
std::string change(const base::Result<Plan>& before, const base::Result<Plan>& after) {
  if (!before || !after)
    return show(after);
  std::vector<std::string> gone = before->argv, come;
  for (const std::string& word : after->argv) {
    const auto same = std::find(gone.begin(), gone.end(), word);
    if (same == gone.end())
      come.push_back(word);
    else
      gone.erase(same);
  }
  std::string out =
      "  +" + (come.empty() ? std::string(" (nothing)") : " " + base::shell_quote(come)) + "\n";
  if (!gone.empty())
    out += "  - " + base::shell_quote(gone) + "\n";
  for (const std::string& note : after->notes)
    if (std::find(before->notes.begin(), before->notes.end(), note) == before->notes.end())
      out += "  note: " + note + "\n";
  return out;
}

void compare(const std::string& name, const std::string& text) {
  const fs::path file = kGolden / "commands" / name;
  if (std::getenv("RANGESCOPE_UPDATE_GOLDEN")) {
    ASSERT_TRUE(base::write_file(file, text).has_value());
    return;
  }
  auto golden = base::read_file(file);
  ASSERT_TRUE(golden.has_value()) << file;
  const auto want = base::split(*golden, '\n'), have = base::split(text, '\n');
  for (std::size_t i = 0; i < std::max(want.size(), have.size()); ++i)
    ASSERT_EQ(i < have.size() ? have[i] : "(nothing)", i < want.size() ? want[i] : "(nothing)")
        << name << ":" << i + 1;
}

/// The values that conf/ncu/default.yaml gives.
ncu::Options ncu_defaults(const std::string& mode) {
  ncu::Options options;
  options.replay_mode = mode;
  options.values = {{"target_processes", {"all"}},
                    {"app_replay_match", {"grid"}},
                    {"app_replay_mode", {"strict"}},
                    {"app_replay_buffer", {"file"}},
                    {"clock_control", {"base"}},
                    {"cache_control", {"all"}},
                    {"graph_profiling", {"node"}},
                    {"kernel_name_base", {"function"}},
                    {"rename_kernels", {"true"}},
                    {"force_overwrite", {"true"}}};
  return options;
}

const std::vector<std::string> kNcu{"2020.3.1", "2022.3.0", "2024.1.1", "2025.3.1", "2026.1.0"};
const std::vector<std::string> kNsys{"2020.4.3", "2022.4.2", "2023.4.4", "2025.3.1", "2026.1.1"};
const std::vector<std::string> kModes{"kernel", "application", "range", "app-range"};

TEST(GoldenCommands, NcuWholeCommandLines) {
  std::string text;
  for (const std::string& version : kNcu)
    for (const std::string& mode : kModes) {
      const Abilities can = abilities("ncu-" + version);
      const bool ranges = mode == "range" || mode == "app-range";
      text += "ncu " + version + ", replay mode " + mode + "\n";
      text += show(ncu::plan(can,
                             ncu_defaults(mode),
                             ranges ? request({"decode"}) : request({"decode"}, {"warmup/"})));
      if (ranges && can.takes("--replay-mode", mode))
        text += "with an exclusion\n" +
                show(ncu::plan(can, ncu_defaults(mode), request({"decode"}, {"warmup/"})));
    }
  compare("ncu-modes.txt", text);
}

TEST(GoldenCommands, NcuPages) {
  std::string text;
  for (const std::string& version : kNcu) {
    const Abilities can = abilities("ncu-" + version);
    text += "ncu " + version + "\n";
    for (const ncu::PageFile& page : {ncu::kRawCsv, ncu::kDetailsCsv, ncu::kSectionsText})
      text += show(ncu::page_plan(can, "/runs/1/ncu/ncu.ncu-rep", page));
    for (const std::string& word :
         ncu::page_plan(can, "/runs/1/ncu/ncu.ncu-rep", ncu::kRawCsv).argv)
      EXPECT_TRUE(!word.starts_with("--") || can.has(word)) << version << ": " << word;
  }
  compare("ncu-pages.txt", text);
}

TEST(NcuPages, EachReportHasItsOwn) {
  EXPECT_EQ(ncu::page_path("/runs/1/ncu/ncu.ncu-rep", ncu::kRawCsv), "/runs/1/ncu/raw.csv");
  EXPECT_EQ(ncu::page_path("/runs/1/ncu/ncu-2.ncu-repz", ncu::kRawCsv),
            "/runs/1/ncu/ncu-2-raw.csv");
  Abilities can = abilities("ncu-2026.1.0");
  EXPECT_EQ(ncu::report_extension(can), ".ncu-rep");
  can.version = {2026, 3, 0};
  EXPECT_EQ(ncu::report_extension(can), ".ncu-repz");
}

TEST(GoldenCommands, NcuEveryOption) {
  const std::map<std::string, std::vector<std::string>> samples{
      {"target_processes", {"application-only"}},
      {"target_processes_filter", {"python", "exclude:bash"}},
      {"clock_control", {"none"}},
      {"cache_control", {"none"}},
      {"pipeline_boost_state", {"dynamic"}},
      {"app_replay_match", {"all"}},
      {"app_replay_mode", {"relaxed"}},
      {"app_replay_buffer", {"memory"}},
      {"range_replay_options", {"enable-greedy-sync", "disable-host-restore"}},
      {"graph_profiling", {"graph"}},
      {"push_pop_scope", {"process"}},
      {"range_filter", {"yes:2:[1-3]"}},
      {"set", {"full"}},
      {"sections", {"SpeedOfLight", "Occupancy"}},
      {"metrics", {"dram__bytes.sum", "launch__grid_size"}},
      {"disable_extra_suffixes", {"true"}},
      {"section_folders", {"/a", "/b"}},
      {"apply_rules", {"false"}},
      {"rules", {"SOLBottleneck"}},
      {"kernel_name", {"regex:.*matmul.*"}},
      {"kernel_name_base", {"demangled"}},
      {"kernel_id", {"::regex:gemm:2"}},
      {"launch_skip", {"5"}},
      {"launch_skip_before_match", {"6"}},
      {"launch_count", {"10"}},
      {"filter_mode", {"per-launch-config"}},
      {"devices", {"0", "1"}},
      {"kill", {"true"}},
      {"profile_from_start", {"false"}},
      {"check_exit_code", {"false"}},
      {"call_stack", {"true"}},
      {"import_source", {"true"}},
      {"source_folders", {"/s"}},
      {"pm_sampling_interval", {"1000"}},
      {"pm_sampling_buffer_size", {"4096"}},
      {"pm_sampling_max_passes", {"3"}},
      {"warp_sampling_interval", {"auto"}},
      {"warp_sampling_max_passes", {"4"}},
      {"warp_sampling_buffer_size", {"65536"}},
      {"rename_kernels", {"false"}},
      {"force_overwrite", {"false"}}};
  std::string text;
  for (const Option& row : option_table("ncu")) {
    const auto sample = samples.find(std::string(row.key));
    if (sample == samples.end()) {
      const std::vector<std::string> elsewhere{"replay_mode", "nvtx.include", "nvtx.exclude"};
      EXPECT_NE(std::find(elsewhere.begin(), elsewhere.end(), row.key), elsewhere.end())
          << row.key << " has no sample";
      continue;
    }
    for (const std::string& version : kNcu)
      for (const char* mode : {"kernel", "application", "range"}) {
        const Abilities can = abilities("ncu-" + version);
        if (!can.takes("--replay-mode", mode))
          continue;
        ncu::Options options = ncu_defaults(mode);
        const auto before = ncu::plan(can, options, request({"decode/"}));
        options.values[sample->first] = sample->second;
        options.asked.insert(sample->first);
        if (row.key == "kill")
          options.values["launch_count"] = {"10"};
        if (row.key == "kernel_name_base")
          options.values["kernel_name"] = {"matmul"};
        text += std::string(row.key) + "=" + base::join(sample->second, ",") + ", " + version +
                ", " + mode + "\n";
        text += change(before, ncu::plan(can, options, request({"decode/"})));
      }
  }
  compare("ncu-options.txt", text);
}

TEST(GoldenCommands, NcuEveryExpression) {
  std::string text;
  for (const std::string written : {"decode",
                                    "decode/",
                                    "decode*",
                                    "LLM@*",
                                    "LLM@decode/",
                                    "*@decode",
                                    "A::A1",
                                    "prefill;decode",
                                    "A,B",
                                    "A/*/B",
                                    "[A",
                                    "A]",
                                    "regex:^layer[0-9]/",
                                    "a/b [x], y@z/",
                                    "request"}) {
    auto normal = model::normalize(written);
    text += written + "\n";
    if (!normal) {
      text +=
          "  refused: " + base::replace_all(base::to_string(normal.error()), "\n", "\n    ") + "\n";
      continue;
    }
    const Abilities can = abilities("ncu-2025.3.1");
    const auto before = ncu::plan(can, ncu_defaults("range"), request());
    auto after = ncu::plan(can, ncu_defaults("range"), request({written}));
    text += change(before, after);
    for (const std::string& note : normal->notes)
      text += "  note: " + note + "\n";
  }
  compare("ncu-expressions.txt", text);
}

TEST(GoldenCommands, NcuTraps) {
  struct Case {
    const char* what;
    const char* version;
    const char* mode;
    std::map<std::string, std::vector<std::string>> values;
    std::vector<std::string> extra = {};
  };
  const std::vector<Case> cases{
      {"a set that nobody has", "2025.3.1", "kernel", {{"set", {"brief"}}}},
      {"the default set's old name", "2025.3.1", "kernel", {{"set", {"default"}}}},
      {"the default set's new name", "2022.3.0", "kernel", {{"set", {"basic"}}}},
      {"a section that nobody has", "2025.3.1", "kernel", {{"sections", {"MemoryWorkload"}}}},
      {"a metric that nobody has", "2025.3.1", "kernel", {{"metrics", {"dram__byte.sum"}}}},
      {"a replay mode too new", "2022.3.0", "app-range", {}},
      {"a replay mode too new", "2020.3.1", "range", {}},
      {"a kernel filter in range mode", "2025.3.1", "range", {{"kernel_name", {"regex:gemm"}}}},
      {"a skip:count:stride kernel id", "2025.3.1", "kernel", {{"kernel_id", {"5::10::2"}}}},
      {"a glob as kernel name", "2025.3.1", "kernel", {{"kernel_name", {"*gemm*"}}}},
      {"an exact name for an old ncu", "2020.3.1", "kernel", {{"kernel_name", {"gemm<float>"}}}},
      {"kill without a count", "2025.3.1", "kernel", {{"kill", {"true"}}}},
      {"relaxed in memory",
       "2025.3.1",
       "application",
       {{"app_replay_mode", {"relaxed"}}, {"app_replay_buffer", {"memory"}}}},
      {"balanced where it is unknown",
       "2024.1.1",
       "application",
       {{"app_replay_mode", {"balanced"}}}},
      {"boost where it is unknown", "2025.3.1", "kernel", {{"clock_control", {"boost"}}}},
      {"a range filter with two parts", "2025.3.1", "range", {{"range_filter", {"1:2"}}}},
      {"an option of no version", "2025.3.1", "kernel", {}, {"--kernel-replay-mode", "range"}},
      {"an option that rangescope passes", "2025.3.1", "kernel", {}, {"--export=x"}},
      {"a further option", "2025.3.1", "kernel", {}, {"--verbose"}},
      {"a further option that repeats",
       "2025.3.1",
       "kernel",
       {{"sections", {"Occupancy"}}},
       {"--section", "LaunchStats"}},
      {"an option that a key passes", "2025.3.1", "kernel", {}, {"--clock-control=none"}},
      {"a short option", "2025.3.1", "kernel", {}, {"-c", "5"}},
      {"a word that is no option", "2025.3.1", "kernel", {}, {"verbose"}},
  };
  std::string text;
  for (const Case& one : cases) {
    ncu::Options options = ncu_defaults(one.mode);
    const Abilities can = abilities(std::string("ncu-") + one.version);
    const auto before = ncu::plan(can, options, request({"decode/"}));
    for (const auto& [key, value] : one.values) {
      options.values[key] = value;
      options.asked.insert(key);
    }
    options.extra_args = one.extra;
    text += std::string(one.what) + ", " + one.version + ", " + one.mode + "\n" +
            change(before, ncu::plan(can, options, request({"decode/"})));
  }
  compare("ncu-traps.txt", text);
}

TEST(GoldenCommands, NsysEveryOption) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> samples{
      {"trace", {"cuda", "nvtx", "mpi"}},
      {"sample", {"process-tree"}},
      {"sample", {"cpu"}},
      {"cpuctxsw", {"process-tree"}},
      {"capture_range", {"cudaProfilerApi"}},
      {"nvtx_capture", {"LLM@decode"}},
      {"nvtx_capture", {"range"}},
      {"capture_range_end", {"repeat:2"}},
      {"nvtx_domain_include", {"default", "LLM", "a,b"}},
      {"nvtx_domain_exclude", {"NCCL"}},
      {"cuda_graph_trace", {"node"}},
      {"cuda_memory_usage", {"true"}},
      {"kill", {"none"}},
      {"duration", {"30"}},
      {"delay", {"2"}},
      {"wait", {"primary"}},
      {"stop_on_exit", {"false"}},
      {"trace_fork_before_exec", {"true"}},
      {"gpu_metrics_device", {"0"}},
      {"gpu_metrics_set", {"gh100"}},
      {"gpu_metrics_frequency", {"1000"}}};
  const auto defaults = [] {
    nsys::Options options;
    options.values = {
        {"trace", {"cuda", "nvtx", "osrt"}}, {"sample", {"none"}}, {"cpuctxsw", {"none"}}};
    return options;
  };
  std::string text;
  for (const std::string& version : kNsys) {
    const Abilities can = abilities("nsys-" + version);
    text += "nsys " + version + "\n" + show(nsys::plan(can, defaults(), request({"decode"})));
  }
  std::set<std::string> met;
  for (const auto& [key, value] : samples) {
    met.insert(key);
    for (const std::string& version : kNsys) {
      const Abilities can = abilities("nsys-" + version);
      nsys::Options options = defaults();
      options.gating = key == "capture_range_end";  // a range that is named is a gate by itself
      if (key == "capture_range_end")
        options.values["nvtx_capture"] = {"decode"};
      const auto before = nsys::plan(can, defaults(), request({"decode"}));
      options.values[key] = value;
      options.asked.insert(key);
      text += key + "=" + base::join(value, ",") + ", " + version + "\n" +
              change(before, nsys::plan(can, options, request({"decode"})));
    }
  }
  for (const Option& row : option_table("nsys")) {
    EXPECT_EQ(met.count(std::string(row.key)), 1u) << row.key;
  }
  compare("nsys-options.txt", text);
}

TEST(GoldenCommands, NsysEveryCaptureRange) {
  std::string text;
  for (const char* written : {"decode",
                              "decode/",
                              "LLM@decode",
                              "LLM@decode/",
                              "*@decode",
                              "mail\\@host",
                              "decode*",
                              "A/B",
                              "prefill;decode",
                              "decode@*",
                              "range",
                              "decode@LLM",
                              "range@domain"}) {
    auto capture = nsys::capture_of(written);
    text += std::string(written) + " -> " +
            (capture ? *capture
                     : "refused: " +
                           base::replace_all(base::to_string(capture.error()), "\n", "\n    ")) +
            "\n";
  }
  compare("nsys-captures.txt", text);
}

TEST(NcuKernels, OneEscapedExpressionBoundedInLength) {
  EXPECT_EQ(ncu::kernel_regex(std::vector<std::string>{"gemm<float>(a*)", "copy"}),
            "regex:^(gemm<float>\\(a\\*\\)|copy)$");
  const std::vector<std::string> names{"aaaa", "bbbb", "cccc"};
  EXPECT_EQ(ncu::split_kernels(names, 20),
            (std::vector<std::vector<std::string>>{{"aaaa", "bbbb"}, {"cccc"}}));
  EXPECT_EQ(ncu::split_kernels(names, 1).size(), 3u);
  EXPECT_EQ(ncu::split_kernels(names).size(), 1u);
}

// As ncu 2022.3.0 judges them.
TEST(NcuKernels, KernelIds) {
  for (const char* good : {"::foobar:2",
                           ":7:regex:^foo:",
                           "regex.1|2::foo:2",
                           ":::.*5|3",
                           ":::.*0",
                           ":::5|10|15",
                           ":::",
                           "::a:",
                           "::regex::5",
                           "::a:[05]0",
                           "::a:^5$",
                           "::a:(5|6)",
                           "::a:1,5",
                           "::a: 5",
                           "::a:5?",
                           "::a:+5",
                           "::a:0",
                           "::regex:a(?=b):1"})
    EXPECT_EQ(ncu::kernel_id_mistake(good), "") << good;
  EXPECT_EQ(ncu::kernel_id_mistake("5::10::2"), "'10' is not a name operator; only regex is");
  EXPECT_EQ(ncu::kernel_id_mistake(":::regex:.*5"), "'' is not a name operator; only regex is");
  EXPECT_EQ(ncu::kernel_id_mistake("foo:2"), "it has 2 parts, not 4");
  EXPECT_EQ(ncu::kernel_id_mistake("::regex:a:b:5"), "it has 6 parts, not 4");
  for (const char* bad :
       {"::foo:x", "::foo:5a", "::foo:.*", "::foo:\\d", "::foo:5|a", "::foo:0x5", "::foo: "})
    EXPECT_TRUE(ncu::kernel_id_mistake(bad).ends_with(
        "is neither a number nor an expression of digits without letters"))
        << bad;
  EXPECT_EQ(ncu::kernel_id_mistake("::regex:(:5"),
            "'regex:(' is not a regular expression: missing ): (");
  EXPECT_EQ(ncu::kernel_id_mistake("1:2:foo:5", false), "");
  EXPECT_EQ(ncu::kernel_id_mistake("stream:::5", false),
            "a context or stream is named, which needs --nvtx");
}

}  // namespace golden_commands_test
}  // namespace rangescope::collect
