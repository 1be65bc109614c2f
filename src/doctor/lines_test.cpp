// Command lines as people paste them: wrong ones, whose cause has to be named first and whose
// correction has to be the line that was meant, and right ones, of NVIDIA's documentation and of
// tutorials, that get no complaint.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "collect/nsight/explain/explain.hpp"
#include "doctor/causes.hpp"

namespace rangescope::doctor {
namespace lines_test {

collect::Abilities abilities(const std::string& name) {
  const auto text =
      base::read_file(std::filesystem::path(base::source_dir) / "conf/tools" / (name + ".json"));
  auto parsed = collect::from_json(text.value_or(""));
  EXPECT_TRUE(parsed.has_value()) << name;
  return parsed.value_or(collect::Abilities{});
}

struct Wrong {
  std::string line, first,
      meant;  ///< `first` without "command."; `meant` "-" where nobody can know
};

void check(const std::string& tool, const std::vector<Wrong>& lines) {
  const collect::Abilities can = abilities(tool);
  collect::command::ExplainOptions options;
  options.tool = &can;
  for (const Wrong& each : lines) {
    const auto explained = collect::command::explain(each.line, options);
    ASSERT_TRUE(explained.has_value()) << each.line;
    EXPECT_EQ(explained->findings.empty() ? "(nothing)" : explained->findings.front().id,
              "command." + each.first)
        << each.line;
    EXPECT_EQ(explained->corrected.value_or("-"), each.meant) << each.line;
    for (const auto& finding : explained->findings)
      EXPECT_NE(find_cause(finding.id), nullptr) << finding.id;
    if (!explained->corrected)
      continue;
    const auto again = collect::command::explain(*explained->corrected, options);
    ASSERT_TRUE(again.has_value()) << *explained->corrected;
    EXPECT_TRUE(again->findings.empty())
        << *explained->corrected << ": " << again->findings.front().id;
  }
}

TEST(PastedLines, WrongOnesOfNcu) {
  const std::string ab = "ncu --nvtx --nvtx-include layer1/ --nvtx-include layer2/ ./app";
  check(
      "ncu-2025.3.1",
      {
          {"ncu --nvtx --nvtx-include \"layer1/, layer2/\" ./app", "list_in_expression", ab},
          {"ncu --nvtx --nvtx-include layer1/, layer2/ ./app", "list_in_expression", ab},
          {"ncu --nvtx --nvtx-include layer1/,layer2 ./app", "list_in_expression", ab},
          {"ncu --nvtx --nvtx-include 'layer1/ layer2/' ./app", "list_in_expression", ab},
          {"ncu --nvtx --nvtx-include 'layer1/;layer2/' ./app", "list_in_expression", ab},
          {"ncu --nvtx --nvtx-include layer1/;layer2/ ./app", "shell_operator", ab},
          {"ncu --nvtx --nvtx-include layer1/ layer2/ ./app", "list_in_expression", ab},
          {"ncu --nvtx --nvtx-include 'default@decode/' ./app",
           "default_domain",
           "ncu --nvtx --nvtx-include decode/ ./app"},
          {"ncu --nvtx --nvtx-include 'regex:\"layer.*/\"' ./app",
           "quoted_expression",
           "ncu --nvtx --nvtx-include 'regex:layer.*/' ./app"},
          {"ncu --nvtx --nvtx-include '\"decode/\"' ./app",
           "quoted_expression",
           "ncu --nvtx --nvtx-include decode/ ./app"},
          {"ncu -k 'regex:\"gemm.*\"' ./app", "quoted_expression", "ncu -k 'regex:gemm.*' ./app"},
          {"ncu --nvtx --nvtx-include 'decode*/' ./app",
           "glob_in_expression",
           "ncu --nvtx --nvtx-include 'regex:^decode.*/' ./app"},
          {"ncu --nvtx --nvtx-include decode ./app",
           "missing_slash",
           "ncu --nvtx --nvtx-include decode/ --nvtx-include decode ./app"},
          {"ncu --nvtx-include decode/ ./app",
           "no_nvtx",
           "ncu --nvtx --nvtx-include decode/ ./app"},
          {"ncu --nvtx --nvtx-include decode@LLM/ ./app",
           "reversed_domain",
           "ncu --nvtx --nvtx-include LLM@decode/ ./app"},
          {"ncu --import r.ncu-rep --nvtx --nvtx-include decode/",
           "mode_conflict",
           "ncu --import r.ncu-rep --nvtx-include decode/"},
          {"ncu -i r.ncu-rep --set full --page raw",
           "mode_conflict",
           "ncu -i r.ncu-rep --page raw"},
          {"ncu --import r.ncu-rep --replay-mode range --csv",
           "mode_conflict",
           "ncu --import r.ncu-rep --csv"},
          {"ncu --set full \\ \n  -o out ./app",
           "blank_after_backslash",
           "ncu --set full -o out ./app"},
          {"ncu --set full \\\t\n  -o out \\ \n ./app",
           "blank_after_backslash",
           "ncu --set full -o out ./app"},
          {"ncu --set full\n  -o out ./app", "broken_line", "ncu --set full -o out ./app"},
          {"ncu --set full -o out \n ./app", "broken_line", "ncu --set full -o out ./app"},
          {"ncu \u2013\u2013set full ./app", "lookalike", "ncu --set full ./app"},
          {"ncu \u2013\u2013nvtx \u2014nvtx-include \u201cdecode/\u201d ./app",
           "lookalike",
           "ncu --nvtx --nvtx-include decode/ ./app"},
          {"ncu ./app --set full", "option_behind_program", "ncu --set full ./app"},
          {"ncu ./app --replay-mode application -o out",
           "option_behind_program",
           "ncu --replay-mode application ./app -o out"},
          {"ncu python train.py --lr 0.1 --launch-count 5",
           "option_behind_program",
           "ncu --launch-count 5 python train.py --lr 0.1"},
          {"ncu ./app --metrics dram__bytes.sum",
           "option_behind_program",
           "ncu --metrics dram__bytes.sum ./app"},
          {"ncu ./app -k gemm", "option_behind_program", "ncu -k gemm ./app"},
          {"ncu --section SpeedOfLight Occupancy ./app",
           "list_in_expression",
           "ncu --section SpeedOfLight --section Occupancy ./app"},
          {"ncu --metrics dram__bytes.sum, gpu__time_duration.sum ./app",
           "blank_in_list",
           "ncu --metrics dram__bytes.sum,gpu__time_duration.sum ./app"},
          {"ncu --metrics dram__bytes.sum gpu__time_duration.sum ./app",
           "blank_in_list",
           "ncu --metrics dram__bytes.sum,gpu__time_duration.sum ./app"},
          {"ncu --metrics 'dram__bytes*' ./app",
           "unknown_metric",
           "ncu --metrics 'regex:^dram__bytes.*' ./app"},
          {"ncu --kernel-name \"gemm*\" ./app",
           "kernel_name_pattern",
           "ncu --kernel-name 'regex:^gemm.*' ./app"},
          {"ncu --kernel-id 5::10::2 ./app",
           "kernel_id",
           "ncu --launch-skip 5 --launch-count 10 ./app"},
          {"ncu --kernel-regex gemm ./app", "unknown_option", "ncu --kernel-name regex:gemm ./app"},
          {"ncu --kernel-replay-mode range ./app",
           "unknown_option",
           "ncu --replay-mode range ./app"},
          {"ncu --set brief ./app", "unknown_set", "ncu ./app"},
          {"ncu --section SpeedOfLigth ./app",
           "unknown_section",
           "ncu --section SpeedOfLight ./app"},
          {"ncu --target-processes 1 ./app", "invalid_value", "ncu --target-processes all ./app"},
          {"ncu --replay-mode app_range ./app",
           "invalid_value",
           "ncu --replay-mode app-range ./app"},
          {"ncu --clock-control off ./app", "invalid_value", "ncu ./app"},
          {"ncu --launch-count=0 ./app", "invalid_value", "ncu ./app"},
          {"ncu --import r.ncu-rep --print-summary",
           "value_missing",
           "ncu --import r.ncu-rep --print-summary per-kernel"},
          {"ncu profile -o out ./app", "foreign_verb", "ncu -o out ./app"},
          {"ncu --output out ./app", "unknown_option", "ncu --export out ./app"},
          {"ncu --stats=true ./app", "unknown_option", "ncu ./app"},
          {"ncu --range-filter ::2 --nvtx --nvtx-include A/ --nvtx-exclude B/ ./app",
           "mode_conflict",
           "ncu --nvtx --nvtx-include A/ --nvtx-exclude B/ ./app"},
          {"ncu --replay-mode range -k gemm ./app",
           "mode_conflict",
           "ncu --replay-mode range ./app"},
          {"ncu --replay-mode app-range --graph-profiling graph ./app",
           "mode_conflict",
           "ncu --replay-mode app-range ./app"},
          {"ncu --set full", "no_program", "-"},
      });
  // A value that a backslash and a line end cut is one value to the shell.
  const collect::Abilities can = abilities("ncu-2025.3.1");
  collect::command::ExplainOptions options;
  options.tool = &can;
  const auto cut = collect::command::explain(
      "ncu --nvtx \\\n  --nvtx-include \"dec\\\node/\" \\\r\n ./app", options);
  ASSERT_TRUE(cut.has_value());
  EXPECT_TRUE(cut->findings.empty());
  EXPECT_EQ(cut->corrected, "ncu --nvtx --nvtx-include decode/ ./app");
}

TEST(PastedLines, WrongOnesOfNsys) {
  const std::string gate = "nsys profile --capture-range=nvtx --nvtx-capture=";
  const std::string set = " --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0 ./app";
  check(
      "nsys-2025.3.1",
      {
          {"nsys profile --trace cuda, nvtx ./app",
           "blank_in_list",
           "nsys profile --trace cuda,nvtx ./app"},
          {"nsys profile --trace cuda nvtx ./app",
           "blank_in_list",
           "nsys profile --trace cuda,nvtx ./app"},
          {"nsys profile -t cuda,nvtx, osrt python train.py",
           "blank_in_list",
           "nsys profile -t cuda,nvtx,osrt python train.py"},
          {"nsys profile --trace='cuda, nvtx' ./app",
           "invalid_value",
           "nsys profile --trace=cuda,nvtx ./app"},
          {"nsys profile --trace=cuda,nvxt ./app",
           "invalid_value",
           "nsys profile --trace=cuda,nvtx ./app"},
          {"nsys profile -t=cuda,nvtx ./app",
           "equals_behind_letter",
           "nsys profile -t cuda,nvtx ./app"},
          {"nsys profile ./app --trace=cuda,nvtx",
           "option_behind_program",
           "nsys profile --trace=cuda,nvtx ./app"},
          {"nsys profile ./app --capture-range=cudaProfilerApi",
           "option_behind_program",
           "nsys profile --capture-range=cudaProfilerApi ./app"},
          {"nsys profil ./app", "no_verb", "nsys profile ./app"},
          {"nsys --trace=cuda ./app", "no_verb", "nsys profile --trace=cuda ./app"},
          {"nsys ./app", "no_verb", "nsys profile ./app"},
          {"nsys profile --stats=yes ./app", "invalid_value", "nsys profile --stats=true ./app"},
          {"nsys profile --stats ./app", "value_missing", "nsys profile --stats true ./app"},
          {"nsys profile -f -o out ./app", "value_missing", "nsys profile -f true -o out ./app"},
          {"nsys profile --cpuctxsw=off ./app", "invalid_value", "nsys profile ./app"},
          {"nsys profile --sample=proces-tree ./app",
           "invalid_value",
           "nsys profile --sample=process-tree ./app"},
          {gate + "decode ./app", "unregistered_strings", gate + "decode" + set},
          {gate + "decode/" + set, "slash_in_capture", gate + "decode" + set},
          {gate + "default@decode" + set, "reversed_domain", gate + "decode" + set},
          {gate + "range@domain ./app", "placeholder_capture", "nsys profile ./app"},
          {gate + "LLM@decode_all ./app", "reversed_domain", gate + "decode_all@LLM ./app"},
          {"nsys profile --nvtx-capture=decode@LLM ./app",
           "capture_not_gated",
           "nsys profile --nvtx-capture=decode@LLM --capture-range=nvtx ./app"},
          {"nsys profile --capture-range=nvtx ./app",
           "capture_without_range",
           "nsys profile ./app"},
          {"nsys profile --capture-range-end=stop ./app",
           "capture_end_alone",
           "nsys profile ./app"},
          {"nsys profile -e A=1 -e B=2 ./app", "repeated_option", "nsys profile -e A=1,B=2 ./app"},
          {"nsys profile \u2013\u2013trace=cuda ./app",
           "lookalike",
           "nsys profile --trace=cuda ./app"},
          {"nsys export --type=sqlit r.nsys-rep",
           "invalid_value",
           "nsys export --type=sqlite r.nsys-rep"},
          {"nsys export -t sql r.nsys-rep", "invalid_value", "nsys export -t sqlite r.nsys-rep"},
          {"nsys export --type=sqlite", "no_program", "-"},
          {"nsys stats --report gpukernsum r.nsys-rep",
           "unknown_report",
           "nsys stats --report cuda_gpu_kern_sum r.nsys-rep"},
          {"nsys stats -r cuda_gpu_kernel_sum r.nsys-rep",
           "unknown_report",
           "nsys stats -r cuda_gpu_kern_sum r.nsys-rep"},
      });
  check("nsys-2022.4.2",
        {{"nsys stats --report cuda_gpu_kern_sum r.nsys-rep",
          "unknown_report",
          "nsys stats --report gpukernsum r.nsys-rep"},
         {"nsys stats --report nvtx_sum,cuda_api_sum:base r.nsys-rep",
          "unknown_report",
          "nsys stats --report nvtxsum,cudaapisum:base r.nsys-rep"},
         {"nsys export --type=parquetdir r.nsys-rep", "invalid_value", "nsys export r.nsys-rep"}});
}

TEST(PastedLines, RightOnes) {
  const auto silent = [](const std::string& tool, const std::vector<std::string>& lines) {
    const collect::Abilities can = abilities(tool);
    collect::command::ExplainOptions options;
    options.tool = &can;
    options.environment = {{"NSYS_NVTX_PROFILER_REGISTER_ONLY", "0"}};
    for (const std::string& line : lines) {
      const auto explained = collect::command::explain(line, options);
      ASSERT_TRUE(explained.has_value()) << line;
      for (const auto& finding : explained->findings)
        ADD_FAILURE() << line << ": " << finding.id << ": " << finding.found;
    }
  };
  silent("ncu-2025.3.1",
         {"ncu --nvtx --nvtx-include \"Domain-A@A_range/\" CuNvtx.exe",
          "ncu --nvtx --nvtx-include \"[A_range\" CuNvtx.exe",
          "ncu --nvtx --nvtx-include \"A_range/*/B range\" CuNvtx.exe",
          "ncu --nvtx --nvtx-include \"A_range/\" --nvtx-exclude \"B range]\" CuNvtx.exe",
          "ncu --nvtx --nvtx-include \"regex:Domain[A-Z]@Range[0-9]/\" CuNvtx.exe",
          "ncu --nvtx --nvtx-include \"A_range\\[i\\]/\" CuNvtx.exe",
          "ncu --kernel-id ::foobar:2 CuVectorAddDrv.exe",
          "ncu --kernel-id :7:regex:^foo: CuVectorAddDrv.exe",
          "ncu -k regex:vec -c 2 --page details CuVectorAddDrv.exe",
          "ncu --query-metrics --chips ga100",
          "ncu -o profile --set full --import-source yes ./app arg1",
          "ncu --import profile.ncu-rep --csv --page raw --print-units base",
          "ncu -i profile.ncu-rep --nvtx-include decode/ -k regex:gemm -o less",
          "ncu --target-processes all -o multi python -m torch.distributed.run --nproc-per-node 2 "
          "train.py",
          "ncu --set full \\\n    --nvtx \\\n    --nvtx-include decode/ \\\n    -o out \\\n    "
          "./app --batch 4",
          "cd build\nncu --set full ./app",
          "ncu --set full ./app\nls -l",
          "ncu ./app --set of its own --csv",
          "ncu --metrics sm__throughput.avg.pct_of_peak_sustained_elapsed,dram__bytes.sum ./app",
          "ncu --metrics regex:dram__bytes,gpu__time_duration.sum ./app",
          "ncu --print-summary per-kernel -o out -f ./app --trace 3",
          "mpirun -np 4 ncu --target-processes all -o 'rank%q{RANK}' ./app"});
  silent("nsys-2025.3.1",
         {"nsys profile ./app",
          "nsys profile -t cuda,nvtx,osrt -o out -f true --stats=true python train.py",
          "nsys profile --trace=cuda,nvtx, ./app",
          "nsys profile -c nvtx -p decode@LLM --capture-range-end=repeat:3 ./app",
          "nsys profile --sample=cpu ./app",
          "nsys launch -t cuda ./app",
          "nsys start -c cudaProfilerApi",
          "nsys profile --gpu-metrics-devices=all ./app",
          "nsys stats --report cuda_gpu_kern_sum,nvtx_sum --format csv r.nsys-rep",
          "nsys stats -r /my/report.py r.sqlite",
          "nsys stats r.nsys-rep",
          "nsys export -t sqlite -o x.sqlite -f true r.nsys-rep",
          "nsys export --type=jsonlines r.nsys-rep",
          "nsys profile -o out python train.py --trace 5 -t 3"});
  silent("nsys-2022.4.2",
         {"nsys stats --report gpukernsum r.nsys-rep", "nsys export --type=arrow r.nsys-rep"});
  silent("nsys-2023.4.4", {"nsys stats --report gpukernsum,cuda_gpu_kern_gb_sum r.nsys-rep"});
}

}  // namespace lines_test
}  // namespace rangescope::doctor
