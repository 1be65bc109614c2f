// The doctor of command lines: each mistake is named, alone and combined; every corrected line is
// without a mistake; a right line gets no complaint.
#include "collect/nsight/explain/explain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/text.hpp"
#include "collect/nsight/explain/shell.hpp"
#include "collect/nsight/options.hpp"
#include "doctor/causes.hpp"

namespace rangescope::doctor {
namespace explain_test {

namespace fs = std::filesystem;
using namespace collect;
using namespace collect::command;

collect::Abilities abilities(const std::string& name) {
  auto text = base::read_file(fs::path(base::source_dir) / "conf/tools" / (name + ".json"));
  EXPECT_TRUE(text.has_value()) << name;
  auto parsed = collect::from_json(text ? *text : "");
  EXPECT_TRUE(parsed.has_value()) << name;
  return parsed ? *parsed : collect::Abilities{};
}

struct Case {
  std::string line;
  std::string causes;     ///< ids without "command.", with a "?" where it is a warning
  std::string corrected;  ///< "" for the line as it stands, "-" for none
};

std::set<std::string>& seen_causes() {
  static std::set<std::string> seen;
  return seen;
}

std::string ids(const Explained& explained) {
  std::string text;
  for (const auto& bare : explained.findings) {
    const model::Finding finding = doctor::explained(bare);
    seen_causes().insert(finding.id);
    EXPECT_TRUE(finding.id.starts_with("command.")) << finding.id;
    EXPECT_NE(find_cause(finding.id), nullptr) << finding.id;
    EXPECT_FALSE(finding.found.empty()) << finding.id;
    EXPECT_FALSE(finding.hint.empty()) << finding.id;
    EXPECT_FALSE(finding.why.empty()) << finding.id;
    EXPECT_FALSE(finding.question.empty()) << finding.id;
    text += (text.empty() ? "" : " ") + finding.id.substr(8) +
            (finding.verdict == model::Grade::kWarn ? "?" : "");
  }
  return text;
}

void check(const std::vector<Case>& cases, const collect::Abilities* tool) {
  ExplainOptions options;
  options.tool = tool;
  for (const Case& each : cases) {
    const auto explained = explain(each.line, options);
    ASSERT_TRUE(explained.has_value()) << each.line << ": " << explained.error().what;
    EXPECT_EQ(ids(*explained), each.causes) << each.line;
    EXPECT_EQ(explained->corrected.value_or("-"),
              each.corrected.empty() ? each.line : each.corrected)
        << each.line;
    if (!explained->corrected)
      continue;
    const auto again = explain(*explained->corrected, options);
    ASSERT_TRUE(again.has_value()) << *explained->corrected;
    EXPECT_EQ(ids(*again), "") << "corrected: " << *explained->corrected;
    EXPECT_EQ(again->corrected, explained->corrected);
  }
}

TEST(Shell, WordsAsAShellCutsThem) {
  const auto words = [](std::string_view text) {
    auto line = split_shell(text);
    EXPECT_TRUE(line.has_value()) << text;
    std::string out;
    if (!line)
      return out;
    for (const Word& word : line->words)
      out += "[" + word.text + "]";
    return out + line->rest;
  };
  EXPECT_EQ(words("a  'b c' \"d \\\" e\" f\\ g"), "[a][b c][d \" e][f g]");
  EXPECT_EQ(words("a \\\n b"), "[a][b]");
  EXPECT_EQ(words("--x='a'\"b\"c ''"), "[--x=abc][]");
  EXPECT_EQ(words("a > log 2>&1"), "[a]> log 2>&1");
  EXPECT_EQ(words("a 2>&1 | tee x"), "[a]2>&1 | tee x");
  EXPECT_EQ(words("a;b"), "[a];b");
  EXPECT_EQ(words("a # b"), "[a]# b");
  EXPECT_EQ(words(""), "");
  for (const char* open : {"a 'b", "a \"b"})
    EXPECT_FALSE(split_shell(open).has_value());
  // What the shell would expand stays as it was typed.
  for (const char* kept : {"ncu -o $OUT/x ./app",
                           "ncu -o \"$OUT\" ./app *.bin",
                           "ncu -o ~/x ./app \"$@\"",
                           "A='b c' ncu ./app > log 2>&1"}) {
    const auto explained = explain(kept, {});
    ASSERT_TRUE(explained.has_value());
    EXPECT_EQ(explained->corrected, kept);
  }
}

// Lines that are right: those of the recorded runs that captured something, and of the manuals.
TEST(Explain, RightLinesGetNoComplaint) {
  const auto ncu = abilities("ncu-2025.3.1");
  check({{"ncu --clock-control none --force-overwrite --nvtx --nvtx-include decode/ --set basic -o "
          "k_decode ./zoo",
          "",
          ""},
         {"ncu --nvtx --nvtx-include prefill/layer1/ --metrics "
          "gpu__time_duration.sum,dram__bytes.sum ./zoo",
          "",
          ""},
         {"ncu --nvtx --nvtx-include LLM@decode_all/ --launch-count 6 ./zoo", "", ""},
         {"ncu --nvtx --nvtx-include 'regex:layer.*/' --launch-count 6 ./zoo", "", ""},
         {"ncu --nvtx --nvtx-include decode/ --kernel-name 'regex:gemm.*' --kernel-name-base "
          "function --launch-skip 2 "
          "--launch-count 3 --set detailed -o k_kern ./zoo",
          "",
          ""},
         {"ncu --nvtx --nvtx-include main_thread/ --nvtx-push-pop-scope process ./zoo", "", ""},
         {"ncu --nvtx --nvtx-include prefill/ --nvtx-exclude regex:layer0/ ./zoo", "", ""},
         {"ncu --nvtx --nvtx-include decode/ --nvtx-include A/ --replay-mode range --set basic -o "
          "r ./zoo",
          "",
          ""},
         {"ncu --nvtx --nvtx-include decode/ --nvtx-include LLM@decode_all/ --replay-mode "
          "app-range ./zoo",
          "",
          ""},
         {"ncu --nvtx --nvtx-include '[A/*/B]' ./zoo", "", ""},
         {"ncu --nvtx --nvtx-include request/ --nvtx-include request ./zoo", "", ""},
         {"ncu --import k_decode.ncu-rep --nvtx-include decode/ --page raw --csv", "", ""},
         {"ncu --list-sets", "", ""},
         {"ncu --version", "", ""},
         {"ncu -k gemm -c 2 ./zoo --set of its own", "", ""},
         {"ncu --kernel-name 'softmax_like(float *, int)' --kernel-name-base demangled ./zoo",
          "",
          ""},
         {"ncu --kernel-id ::foobar:2 ./zoo", "", ""},
         {"ncu --kernel-id :7:regex:^foo: ./zoo", "", ""},
         {"ncu --kernel-id ':::.*5|3' ./zoo", "", ""},
         {"ncu --kernel-id ':::5|10|15' ./zoo", "", ""},
         {"ncu --section SpeedOfLight --section 'regex:Mem.*' ./zoo", "", ""},
         {"ncu --nvtx-incl A/ --nvtx ./zoo", "", ""},
         {"CUDA_VISIBLE_DEVICES=1 sudo -E /opt/nvidia/nsight-compute/2025.3.1/ncu --set full "
          "python train.py --lr 0.1",
          "",
          ""},
         {"mpirun -np 4 ncu --target-processes all -o 'rank%q{RANK}' ./zoo > log 2>&1", "", ""},
         {"ncu --mode attach --hostname 127.0.0.1", "", ""}},
        &ncu);
  const auto nsys = abilities("nsys-2025.3.1");
  check({{"nsys profile --trace=cuda,nvtx,osrt --sample=none --cpuctxsw=none --force-overwrite "
          "true -o all ./zoo risky",
          "",
          ""},
         {"nsys profile --capture-range=nvtx --nvtx-capture=decode "
          "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0 "
          "--capture-range-end=stop -o gate ./zoo",
          "",
          ""},
         {"nsys profile --capture-range=nvtx --nvtx-capture=decode_all@LLM "
          "--capture-range-end=repeat:2 ./zoo",
          "",
          ""},
         {"NSYS_NVTX_PROFILER_REGISTER_ONLY=0 nsys profile -c nvtx -p decode ./zoo", "", ""},
         {"nsys profile -t cuda,nvtx -s none -o x -f true --stats=true python train.py", "", ""},
         {"nsys profile --cuda-graph-trace=node ./zoo", "", ""},
         {"nsys profile -c cudaProfilerApi ./zoo", "", ""},
         {"nsys profile --trace=cuda --capture-range=nvtx --nvtx-capture=step@NCCL ./zoo", "", ""},
         {"nsys profile ./zoo", "", ""},
         {"nsys stats --report nvtx_sum x.nsys-rep", "", ""},
         {"nsys start -c nvtx -p x", "", ""},
         {"nsys profile --sample=system-wide --duration=5", "", ""}},
        &nsys);
}

// What is in front of the tool: launchers, shells, notebooks and other commands.
TEST(Explain, LaunchersAndShells) {
  const auto ncu = abilities("ncu-2025.3.1"), nsys = abilities("nsys-2025.3.1");
  check({{"mpirun -n 4 nsys profile -o rep ./zoo",
          "one_file_of_all_ranks",
          "mpirun -n 4 nsys profile -o 'rep_%q{OMPI_COMM_WORLD_RANK}' ./zoo"},
         {"srun --ntasks=8 nsys profile --output=rep ./zoo",
          "one_file_of_all_ranks",
          "srun --ntasks=8 nsys profile --output='rep_%q{SLURM_PROCID}' ./zoo"},
         {"mpirun -np 1 nsys profile -o rep ./zoo", "", ""},
         {"mpirun -n 4 nsys profile -o rep_%p ./zoo", "", ""},
         {"mpirun -n 4 nsys profile ./zoo", "", ""},
         {"nsys profile -o rep mpirun -n 4 ./zoo", "", ""},
         {"!nsys profile ./zoo", "", "nsys profile ./zoo"},
         {"cd build && nsys profile ./zoo", "", "nsys profile ./zoo"},
         {"bash -lc \"nsys profile ./zoo\"", "", "nsys profile ./zoo"}},
        &nsys);
  check({{"ncu --csv --log-file log.csv -o r ./zoo",
          "csv_without_page",
          "ncu --csv --log-file log.csv -o r --page raw ./zoo"},
         {"ncu --csv --log-file log.csv ./zoo", "", ""},
         {"ncu --csv --page details --log-file log.csv -o r ./zoo", "", ""},
         {"docker exec c bash -c 'cd /src; ncu --set fulll ./zoo'",
          "unknown_set",
          "ncu --set full ./zoo"}},
        &ncu);
}

TEST(Explain, RangeExpressions) {
  const auto ncu = abilities("ncu-2025.3.1");
  const auto line = [](const std::string& filters) {
    return "ncu --nvtx" + (filters.empty() ? "" : " " + filters) + " ./zoo";
  };
  const auto one =
      [&](const std::string& written, const std::string& cause, const std::string& right) {
        check({{line("--nvtx-include " + written), cause, line(right)}}, &ncu);
      };
  one("decode", "missing_slash?", "--nvtx-include decode/ --nvtx-include decode");
  one("LLM@decode", "missing_slash?", "--nvtx-include LLM@decode/ --nvtx-include LLM@decode");
  one("'regex:layer.*'",
      "missing_slash?",
      "--nvtx-include 'regex:layer.*/' --nvtx-include 'regex:layer.*'");
  one("/decode/", "", "--nvtx-include /decode/");
  one("decode//layer0/", "", "--nvtx-include decode//layer0/");
  one("'layer*/'", "glob_in_expression", "--nvtx-include 'regex:^layer.*/'");
  one("'A;B;A::A1'",
      "list_in_expression",
      "--nvtx-include A/ --nvtx-include A --nvtx-include B/ --nvtx-include B --nvtx-include A::A1/ "
      "--nvtx-include "
      "A::A1");
  one("A/,B/", "list_in_expression", "--nvtx-include A/ --nvtx-include B/");
  one("A/,B", "list_in_expression", "--nvtx-include A/ --nvtx-include B/");
  one("A,B", "comma_means_both?", "--nvtx-include A/ --nvtx-include B/ --nvtx-include A,B");
  one("'\"decode/\"'", "quoted_expression", "--nvtx-include decode/");
  one("'[A]'", "single_anchors", "--nvtx-include '[A'");
  one("' A/'", "blank_in_expression", "--nvtx-include A/");
  one("@A/", "bad_expression", "--nvtx-include A/");
  one("decode/@LLM", "reversed_domain?", "--nvtx-include LLM@decode/");
  one("decode@LLM/", "reversed_domain?", "--nvtx-include LLM@decode/");
  one("decode@libcudf", "reversed_domain?", "--nvtx-include libcudf@decode/");
  one("decode@default", "reversed_domain?", "--nvtx-include decode/");
  one("'LLM@*'",
      "glob_in_expression",
      "--nvtx-include 'regex:^LLM$@.*/' --nvtx-include 'regex:^LLM$@.*'");
  one("'decode@*'", "reversed_domain", "--nvtx-include 'regex:.*@^decode$/'");
  one("A@B@C/", "bad_expression", "");
  one("'decode|prefill'",
      "list_in_expression?",
      "--nvtx-include decode/ --nvtx-include decode --nvtx-include prefill/ --nvtx-include "
      "prefill");
  // Written without quotes, `;` never reaches ncu.
  check({{"ncu --nvtx --nvtx-include A/;B/ ./zoo",
          "shell_operator list_in_expression",
          line("--nvtx-include A/ --nvtx-include B/")},
         {"ncu --nvtx --nvtx-include A/ B/ ./zoo",
          "list_in_expression",
          line("--nvtx-include A/ --nvtx-include B/")},
         {"ncu --nvtx-include A/ ./zoo", "no_nvtx", line("--nvtx-include A/")},
         {line("--nvtx-include A/ --nvtx-exclude warmup"),
          "missing_slash?",
          line("--nvtx-include A/ --nvtx-exclude warmup/ --nvtx-exclude warmup")}},
        &ncu);
}

// Every row of the truth tables that ncu accepts and that matches nothing, or that it refuses, is
// complained of; every other is not (but for the kind of range that is meant).
TEST(Explain, AgreesWithTheTruthTables) {
  const auto ncu = abilities("ncu-2024.1.1");
  const auto text = base::read_file(fs::path(base::source_dir) /
                                    "tests/golden/nvtx-grammar/nvtx_grammar_2024.1.txt");
  ASSERT_TRUE(text.has_value());
  std::size_t rows = 0;
  for (const std::string_view row : base::split(*text, '\n')) {
    if (row.size() < 3 || row.front() != '\'')
      continue;
    const auto end = row.find('\'', 1);
    const std::string expression(row.substr(1, end - 1));
    if (expression.find('\\') != std::string::npos)
      continue;  // repr's own escapes
    const std::string_view answer = base::trim(row.substr(end + 1));
    ExplainOptions options;
    options.tool = &ncu;
    const auto explained =
        explain("ncu --nvtx --nvtx-include " + base::shell_quote(expression) + " ./zoo", options);
    ASSERT_TRUE(explained.has_value()) << expression;
    const bool complained =
        std::any_of(explained->findings.begin(), explained->findings.end(), [](const auto& f) {
          return f.verdict == model::Grade::kFail;
        });
    const bool useless = answer.starts_with("rc=");
    if (useless) {
      EXPECT_TRUE(complained) << expression << " -> " << answer;
    }
    ++rows;
  }
  EXPECT_GT(rows, 40u);
}

TEST(Explain, NcuOptions) {
  const auto ncu = abilities("ncu-2025.3.1");
  check(
      {{"ncu --set brief ./zoo", "unknown_set", "ncu ./zoo"},
       {"ncu --set default ./zoo", "unknown_set", "ncu --set basic ./zoo"},
       {"ncu --set ful ./zoo", "unknown_set", "ncu --set full ./zoo"},
       {"ncu --section MemoryWorkload ./zoo",
        "unknown_section",
        "ncu --section MemoryWorkloadAnalysis ./zoo"},
       {"ncu --metrics no_such_metric ./zoo", "unknown_metric", "ncu ./zoo"},
       {"ncu --metrics dram__byte.sum,gpu__time_duration.sum ./zoo",
        "unknown_metric",
        "ncu --metrics dram__bytes.sum,gpu__time_duration.sum ./zoo"},
       {"ncu --kernel-replay-mode range ./zoo", "unknown_option", "ncu --replay-mode range ./zoo"},
       {"ncu --target-processes 1 ./zoo", "invalid_value", "ncu --target-processes all ./zoo"},
       {"ncu --replay-mode ranges ./zoo", "invalid_value", "ncu --replay-mode range ./zoo"},
       {"ncu --nvtx-includ A/ --nvtx ./zoo", "", ""},
       {"ncu --nvtx-inlcude A/ --nvtx ./zoo",
        "unknown_option",
        "ncu --nvtx-include A/ --nvtx ./zoo"},
       {"ncu --kernel-regex 'gemm.*' ./zoo",
        "unknown_option",
        "ncu --kernel-name 'regex:gemm.*' ./zoo"},
       {"ncu --trace=cuda,nvtx ./zoo", "unknown_option", "ncu ./zoo"},
       {"ncu --import x.ncu-rep --print-summary",
        "value_missing",
        "ncu --import x.ncu-rep --print-summary per-kernel"},
       {"ncu --nvtx-include --nvtx ./zoo", "value_missing", "ncu --nvtx ./zoo"},
       {"ncu --set full --set roofline ./zoo", "repeated_option", "ncu --set roofline ./zoo"},
       {"ncu --metrics dram__bytes.sum --metrics gpu__time_duration.sum ./zoo",
        "repeated_option",
        "ncu --metrics dram__bytes.sum,gpu__time_duration.sum ./zoo"},
       {"ncu -k gemm -k softmax ./zoo", "repeated_option", "ncu -k 'regex:^(gemm|softmax)$' ./zoo"},
       {"ncu --nvtx --nvtx ./zoo", "repeated_option", "ncu --nvtx ./zoo"},
       {"ncu -- ./zoo", "", ""},
       {"ncu profile ./zoo", "foreign_verb", "ncu ./zoo"},
       {"ncu --set full", "no_program", "-"},
       {"ncu --launch-count 0 ./zoo", "invalid_value", "ncu ./zoo"},
       {"ncu --kill maybe -c 2 ./zoo", "invalid_value", "ncu -c 2 ./zoo"},
       {"ncu -c 2 --kill ./zoo --big", "value_missing", "ncu -c 2 --kill yes ./zoo --big"},
       {"ncu --kill yes ./zoo", "needs_option", "ncu ./zoo"},
       {"ncu ./zoo --nvtx --nvtx-include decode/",
        "option_behind_program?",
        "ncu --nvtx --nvtx-include decode/ ./zoo"},
       {"ncu --print-summary per-nvtx ./zoo",
        "needs_option",
        "ncu --print-summary per-nvtx --nvtx ./zoo"}},
      &ncu);
}

TEST(Explain, Kernels) {
  const auto ncu = abilities("ncu-2025.3.1");
  check({{"ncu --kernel-name '*gemm*' ./zoo",
          "kernel_name_pattern",
          "ncu --kernel-name 'regex:.*gemm.*' ./zoo"},
         {"ncu -k 'gemm*' ./zoo", "kernel_name_pattern", "ncu -k 'regex:^gemm.*' ./zoo"},
         {"ncu -k 'gemm.*|softmax' ./zoo",
          "kernel_name_pattern",
          "ncu -k 'regex:gemm.*|softmax' ./zoo"},
         {"ncu -k gemm,softmax ./zoo",
          "kernel_name_pattern",
          "ncu -k 'regex:^(gemm|softmax)$' ./zoo"},
         {"ncu -k 'gemm<float>' ./zoo",
          "kernel_name_base",
          "ncu -k 'gemm<float>' --kernel-name-base demangled ./zoo"},
         {"ncu -k _Z4gemmPf ./zoo",
          "kernel_name_base",
          "ncu -k _Z4gemmPf --kernel-name-base mangled ./zoo"},
         {"ncu --kernel-id 5::10::2 ./zoo",
          "kernel_id",
          "ncu --launch-skip 5 --launch-count 10 ./zoo"},
         {"ncu --kernel-id gemm ./zoo", "kernel_id", "ncu --kernel-id ::gemm: ./zoo"},
         {"ncu --kernel-id gemm:2 ./zoo", "kernel_id", "ncu --kernel-id ::gemm:2 ./zoo"},
         {"ncu --kernel-id ':::regex:.*5' ./zoo", "kernel_id", "ncu --kernel-id ':::.*5' ./zoo"},
         {"ncu --kernel-id ::gemm:2 --launch-skip 3 ./zoo",
          "mode_conflict",
          "ncu --kernel-id ::gemm:2 ./zoo"},
         {"ncu --kernel-id ctx::gemm:2 ./zoo",
          "needs_option",
          "ncu --kernel-id ctx::gemm:2 --nvtx ./zoo"},
         {"ncu --kernel-name 'regex:(' ./zoo", "bad_regex", "-"},
         {"ncu --kernel-name '.*gemm.*' ./zoo",
          "kernel_name_pattern",
          "ncu --kernel-name 'regex:.*gemm.*' ./zoo"},
         {"ncu --kernel-id a:b:c:d:e:f ./zoo", "kernel_id", "-"}},
        &ncu);
}

TEST(Explain, ReplayModes) {
  const auto ncu = abilities("ncu-2025.3.1");
  check(
      {{"ncu --replay-mode range --kernel-name gemm ./zoo",
        "mode_conflict",
        "ncu --replay-mode range ./zoo"},
       {"ncu --replay-mode app-range --profile-from-start off ./zoo",
        "mode_conflict",
        "ncu --replay-mode app-range ./zoo"},
       {"ncu --app-replay-match all ./zoo", "mode_conflict", "ncu ./zoo"},
       {"ncu --nvtx --nvtx-include A/ --nvtx-exclude B/ --replay-mode range ./zoo",
        "mode_conflict",
        "ncu --nvtx --nvtx-include A/ --replay-mode range ./zoo"},
       {"ncu --set --graph-profiling graph ./zoo",
        "value_missing",
        "ncu --graph-profiling graph ./zoo"},
       {"ncu --target-processes -k regex:x ./zoo",
        "value_missing",
        "ncu --target-processes all -k regex:x ./zoo"},
       {"ncu --replay-mode application --range-replay-options enable-greedy-sync ./zoo",
        "mode_conflict",
        "ncu --replay-mode application ./zoo"},
       {"ncu --replay-mode application --app-replay-mode relaxed --app-replay-buffer memory ./zoo",
        "mode_conflict",
        "ncu --replay-mode application --app-replay-mode relaxed ./zoo"},
       {"ncu --replay-mode application --app-replay-match all ./zoo", "", ""}},
      &ncu);
}

TEST(Explain, WhatTheInstalledVersionLacks) {
  const auto old = abilities("ncu-2022.3.0");
  check({{"ncu --replay-mode app-range ./zoo", "invalid_value", "ncu --replay-mode range ./zoo"},
         {"ncu -- ./zoo", "double_dash", "ncu ./zoo"},
         {"ncu --set basic ./zoo", "unknown_set", "ncu --set default ./zoo"},
         {"ncu --nvtx --nvtx-include A/ --nvtx-push-pop-scope process ./zoo",
          "unknown_option",
          "ncu --nvtx --nvtx-include A/ ./zoo"},
         {"ncu --warp-sampling-interval 2 ./zoo",
          "unknown_option",
          "ncu --sampling-interval 2 ./zoo"},
         {"ncu --print-details all ./zoo", "unknown_option", "ncu --details-all ./zoo"},
         {"ncu --clock-control boost ./zoo", "invalid_value", "ncu ./zoo"},
         {"ncu --summary per-gpu ./zoo", "", ""},
         {"ncu --set full torchrun --nproc-per-node 2 train.py",
          "children_not_profiled?",
          "ncu --set full --target-processes all torchrun --nproc-per-node 2 train.py"}},
        &old);
  const auto older = abilities("ncu-2020.3.1");
  check({{"ncu --kernel-name gemm ./zoo", "unknown_option", "ncu --kernel-regex '^gemm$' ./zoo"},
         {"ncu --kernel-name regex:gemm ./zoo", "unknown_option", "ncu --kernel-regex gemm ./zoo"}},
        &older);
  const auto nsys = abilities("nsys-2022.4.2");
  check({{"nsys profile -- ./zoo", "double_dash", "nsys profile ./zoo"},
         {"nsys profile --gpu-metrics-devices=0 ./zoo",
          "unknown_option",
          "nsys profile --gpu-metrics-device=0 ./zoo"},
         {"nsys profile --pytorch=autograd-nvtx ./zoo", "unknown_option", "nsys profile ./zoo"}},
        &nsys);
  const auto nsys_old = abilities("nsys-2020.4.3");
  check({{"nsys profile -c cudaProfilerApi --capture-range-end=stop ./zoo",
          "unknown_option",
          "nsys profile -c cudaProfilerApi --stop-on-range-end=true ./zoo"}},
        &nsys_old);
  // No tool is installed: only what holds for all versions.
  check(
      {{"ncu --set brief --no-such-option 1 ./zoo", "", ""},
       {"ncu --kernel-replay-mode range ./zoo", "unknown_option", "ncu --replay-mode range ./zoo"},
       {"ncu --target-processes 1 ./zoo", "invalid_value", "ncu --target-processes all ./zoo"}},
      nullptr);
}

TEST(Explain, Nsys) {
  const auto nsys = abilities("nsys-2025.3.1");
  const std::string gate = "nsys profile --capture-range=nvtx --nvtx-capture=";
  const std::string set = " --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0 ./zoo";
  check(
      {{gate + "decode ./zoo", "unregistered_strings?", gate + "decode" + set},
       {gate + "range ./zoo", "placeholder_capture?", "nsys profile ./zoo"},
       {gate + "range@domain ./zoo", "placeholder_capture?", "nsys profile ./zoo"},
       {gate + "decode/" + set, "slash_in_capture", gate + "decode" + set},
       {gate + "'[decode'" + set, "slash_in_capture", gate + "decode" + set},
       {gate + "LLM@decode_all ./zoo", "reversed_domain?", gate + "decode_all@LLM ./zoo"},
       {gate + "LLM@decode_all/ ./zoo", "reversed_domain", gate + "decode_all@LLM ./zoo"},
       {gate + "'*@decode'" + set, "reversed_domain", gate + "'decode@*'" + set},
       {gate + "decode@default" + set, "default_domain", gate + "decode" + set},
       {gate + "'decode*' ./zoo", "pattern_in_capture", "nsys profile ./zoo"},
       {gate + "'A;B' ./zoo", "list_in_expression", "nsys profile ./zoo"},
       {gate + "'regex:dec.*/' ./zoo", "pattern_in_capture", "nsys profile ./zoo"},
       {"nsys profile --nvtx-capture=decode@LLM ./zoo",
        "capture_not_gated",
        "nsys profile --nvtx-capture=decode@LLM --capture-range=nvtx ./zoo"},
       {"nsys profile -c cudaProfilerApi -p x ./zoo",
        "capture_not_gated",
        "nsys profile -c cudaProfilerApi ./zoo"},
       {"nsys profile --capture-range=nvtx ./zoo", "capture_without_range", "nsys profile ./zoo"},
       {"nsys profile --capture-range-end=stop ./zoo", "capture_end_alone", "nsys profile ./zoo"},
       {"nsys profile -e A=B -c nvtx -p decode ./zoo",
        "unregistered_strings?",
        "nsys profile -e A=B,NSYS_NVTX_PROFILER_REGISTER_ONLY=0 -c nvtx -p decode ./zoo"},
       {"nsys profile --trace cuda, nvtx ./zoo",
        "blank_in_list",
        "nsys profile --trace cuda,nvtx ./zoo"},
       {"nsys profile --trace=CUDA,nvtxx ./zoo",
        "invalid_value",
        "nsys profile --trace=cuda,nvtx ./zoo"},
       {"nsys profile -t=nvtx ./zoo", "equals_behind_letter", "nsys profile -t nvtx ./zoo"},
       {"nsys profile -f ./zoo", "value_missing", "nsys profile -f true ./zoo"},
       {"nsys profile -f -o x ./zoo", "value_missing", "nsys profile -f true -o x ./zoo"},
       {"nsys ./zoo", "no_verb", "nsys profile ./zoo"},
       {"nsys --trace=cuda ./zoo", "no_verb", "nsys profile --trace=cuda ./zoo"},
       {"nsys profile -- ./zoo", "double_dash?", "nsys profile ./zoo"},
       {"nsys profile --trace=cuda", "no_program", "-"},
       {"nsys profile --nvtx --nvtx-include decode/ ./zoo",
        "unknown_option unknown_option unregistered_strings?",
        "nsys profile --capture-range=nvtx --nvtx-capture=decode" + set},
       {"nsys profile --nvtx-domain-include=A --nvtx-domain-exclude=B ./zoo",
        "domains_both",
        "nsys profile --nvtx-domain-include=A ./zoo"},
       {"nsys profile -c nvtx -p x@D --capture-range-end=repeat-shutdown ./zoo",
        "invalid_value",
        "nsys profile -c nvtx -p x@D --capture-range-end=repeat ./zoo"},
       {"nsys profile --kill=maybe ./zoo", "invalid_value", "nsys profile ./zoo"},
       {"nsys profile \u2013\u2013stats=true ./zoo",
        "lookalike",
        "nsys profile --stats=true ./zoo"},
       {"nsys profile\n -t cuda ./zoo", "broken_line", "nsys profile -t cuda ./zoo"},
       {"nsys profile \\ \n -t cuda ./zoo", "blank_after_backslash", "nsys profile -t cuda ./zoo"},
       {"nsys stats -r gpukernsum x.sqlite",
        "unknown_report",
        "nsys stats -r cuda_gpu_kern_sum x.sqlite"}},
      &nsys);
  ExplainOptions exported;
  exported.tool = &nsys;
  exported.environment = {{"NSYS_NVTX_PROFILER_REGISTER_ONLY", "0"}};
  EXPECT_EQ(ids(*explain(gate + "decode ./zoo", exported)), "");
}

TEST(Explain, CombinedMistakesAreAllNamed) {
  const auto ncu = abilities("ncu-2025.3.1");
  check({{"ncu --kernel-replay-mode range --target-processes 1 --set brief --nvtx-include "
          "'layer*/;decode' -k '*gemm*' "
          "python work.py",
          "unknown_option invalid_value unknown_set list_in_expression no_nvtx kernel_name_pattern "
          "mode_conflict",
          "ncu --nvtx --replay-mode range --target-processes all --nvtx-include 'regex:^layer.*/' "
          "--nvtx-include decode/ "
          "--nvtx-include decode python work.py"}},
        &ncu);
  const auto nsys = abilities("nsys-2025.3.1");
  check({{"nsys --trace cuda, nvtx --nvtx-capture=default@decode/ -f ./zoo --big",
          "no_verb blank_in_list value_missing capture_not_gated reversed_domain "
          "unregistered_strings?",
          "nsys profile --trace cuda,nvtx --nvtx-capture=decode -f true --capture-range=nvtx "
          "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0 ./zoo --big"}},
        &nsys);
}

// The help texts of the tools themselves: ncu writes `arg` behind an option that takes a value,
// nsys a `=`.
TEST(Explain, ArityIsThatOfTheHelpTexts) {
  std::size_t options = 0;
  for (const auto& file :
       fs::directory_iterator(fs::path(base::source_dir) / "tests/golden/help")) {
    const std::string name = file.path().stem().string(), tool = name.substr(0, name.find('-'));
    const auto text = base::read_file(file.path());
    ASSERT_TRUE(text.has_value());
    const collect::Abilities can = abilities(name);
    for (std::string_view line : base::split(*text, '\n')) {
      const std::string_view start = base::trim(line);
      if (!start.starts_with('-') || (tool == "ncu" && !line.starts_with("  -")) ||
          (tool == "nsys" && !line.starts_with('\t')))
        continue;
      const auto at = start.find("--");
      if (at == std::string_view::npos)
        continue;
      const std::string option(start.substr(at, start.substr(at).find_first_of(" =,[")));
      if (option.size() < 4 || !can.has(option) || option == "--help")
        continue;
      const std::string_view behind = start.substr(at + option.size());
      const bool value = tool == "ncu" ? behind.starts_with(" arg") || behind.starts_with(" ] arg")
                                       : behind.starts_with('=');
      const Takes kind = takes(tool, option, &can);
      EXPECT_EQ(kind == Takes::kValue || kind == Takes::kValueEach, value) << name << ": " << start;
      ++options;
    }
  }
  EXPECT_GT(options, 400u);
}

// Whatever is put together: one correction is enough, and it is always a line that the doctor
// itself finds right.
void check_mixtures(const std::string& head,
                    const std::vector<std::string>& parts,
                    const collect::Abilities* tool,
                    const std::string& tail) {
  ExplainOptions options;
  options.tool = tool;
  std::mt19937 random(20261121);
  const auto pick = [&](std::size_t n) { return random() % n; };
  for (int i = 0; i < 120; ++i) {
    std::string line = head;
    for (std::size_t n = 1 + pick(6); n > 0; --n)
      line += " " + parts[pick(parts.size())];
    line += tail;
    const auto first = explain(line, options);
    ASSERT_TRUE(first.has_value()) << line;
    (void)ids(*first);
    if (!first->corrected)
      continue;
    const auto second = explain(*first->corrected, options);
    ASSERT_TRUE(second.has_value()) << line << "\n" << *first->corrected;
    ASSERT_EQ(ids(*second), "") << line << "\n"
                                << *first->corrected << "\n"
                                << second->corrected.value_or("-");
  }
}

TEST(Explain, AnyMixtureIsCorrectedAtOnce) {
  const auto ncu = abilities("ncu-2025.3.1"), old = abilities("ncu-2022.3.0");
  const std::vector<std::string> of_ncu{"--nvtx",
                                        "--nvtx-include A",
                                        "--nvtx-include A/",
                                        "--nvtx-include 'A;B'",
                                        "--nvtx-include 'l*/'",
                                        "--nvtx-include A,B",
                                        "--nvtx-exclude '[A]'",
                                        "--nvtx-include decode/@LLM",
                                        "--nvtx-include",
                                        "--nvtx-include=A/,B/",
                                        "--nvtx-include 'x@*'",
                                        "--set brief",
                                        "--set full",
                                        "--set",
                                        "--section NoSuch",
                                        "--section SpeedOfLight",
                                        "--metrics a,",
                                        "--metrics dram__bytes.sum",
                                        "-k 'gemm*'",
                                        "-k=x",
                                        "-k regex:x",
                                        "--kernel-id 5::2",
                                        "--kernel-id gemm",
                                        "--replay-mode range",
                                        "--replay-mode app-range",
                                        "--replay-mode application",
                                        "--replay-mode what",
                                        "--kernel-replay-mode range",
                                        "--app-replay-match all",
                                        "--app-replay-mode relaxed",
                                        "--range-replay-options enable-greedy-sync",
                                        "--import-source yes",
                                        "--kill",
                                        "--kill yes",
                                        "-c 2",
                                        "-c 0",
                                        "-c x",
                                        "--target-processes 1",
                                        "--target-processes",
                                        "--print-summary per-nvtx",
                                        "--print-summary",
                                        "--range-filter ::1",
                                        "--range-filter 1",
                                        "--no-such-option",
                                        "--trace=cuda",
                                        "--nvtx-capture=a@B",
                                        "-o x",
                                        "-f",
                                        "--",
                                        "--print-details all",
                                        "--graph-profiling graph",
                                        "--filter-mode per-launch-config",
                                        "--kernel-name-base mangled",
                                        "''",
                                        "-"};
  const std::vector<std::string> of_nsys{"--trace cuda, nvtx",
                                         "--trace=CUDA",
                                         "-t=nvtx",
                                         "-t cuda,nvtx",
                                         "--capture-range=nvtx",
                                         "-c cudaProfilerApi",
                                         "-p decode",
                                         "--nvtx-capture=decode/",
                                         "--nvtx-capture=LLM@decode",
                                         "--nvtx-capture='*@x'",
                                         "--nvtx-capture=range",
                                         "--nvtx-capture='a*'",
                                         "--nvtx-capture=x@default",
                                         "--nvtx-capture='\"a\"'",
                                         "--capture-range-end=stop",
                                         "--capture-range-end=repeat-shutdown",
                                         "--capture-range-end=what",
                                         "--nvtx-domain-include=A",
                                         "--nvtx-domain-exclude=B",
                                         "--nvtx-include A/",
                                         "--nvtx",
                                         "-f",
                                         "-f true",
                                         "--stats",
                                         "--stats=what",
                                         "-e A=B",
                                         "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
                                         "--set full",
                                         "--no-such",
                                         "--kill=x",
                                         "--cuda-graph-trace=nodes",
                                         "--gpu-metrics-device=0",
                                         "--sample=none",
                                         "-o x",
                                         "--",
                                         "''",
                                         "-"};
  for (const char* tail : {" ./zoo",
                           " ./zoo --nvtx-include A/ --nvtx",
                           " > log",
                           " python t.py --capture-range x | cat"}) {
    check_mixtures("ncu", of_ncu, &ncu, tail);
    check_mixtures("ncu", of_ncu, &old, tail);
    check_mixtures("ncu", of_ncu, nullptr, tail);
    const auto nsys = abilities("nsys-2025.3.1");
    check_mixtures("nsys profile", of_nsys, &nsys, tail);
    check_mixtures("nsys", of_nsys, nullptr, tail);
  }
}

TEST(Explain, RefusesWhatIsNoLineOfATool) {
  for (const char* line : {"", "python train.py", "perf stat ./zoo", "ncu 'x"}) {
    const auto explained = explain(line, {});
    ASSERT_FALSE(explained.has_value()) << line;
    EXPECT_EQ(explained.error().code, base::Code::kUsage);
    EXPECT_FALSE(explained.error().hint.empty());
  }
  EXPECT_EQ(named_tool("sudo /opt/x/ncu ./a")->executable, "/opt/x/ncu");
  EXPECT_EQ(named_tool("nsys profile ./a")->tool, "nsys");
}

// Runs last: every cause of the catalogue was named by a case above.
TEST(Explain, EveryCauseHasACase) {
  if (testing::GTEST_FLAG(filter) != "*")
    GTEST_SKIP() << "only where all cases ran";
  for (const Chapter& chapter : chapters())
    for (const Cause& cause : chapter.causes)
      EXPECT_TRUE(chapter.name != "command" || seen_causes().contains(cause.id)) << cause.id;
}

}  // namespace explain_test
}  // namespace rangescope::doctor
