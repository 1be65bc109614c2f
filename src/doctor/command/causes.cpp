// "Known from" names the versions that were run. Without a GPU: ncu 2022.3.0 and 2024.1.1, nsys 2022.4.2 and 2023.4.4;
// on an H200: ncu and nsys 2025.3.1.
#include "doctor/command/causes.hpp"

#include <array>

namespace rangescope::doctor {
namespace {

// Range expressions of ncu: model/range_expression.hpp holds the grammar; the truth tables are in
// tests/golden/nvtx-grammar.
constexpr std::array kCauses{
    // The line itself.
    Cause{"command.shell_operator", "an operator of the shell within a value",
          "Unquoted, `;`, `|` and `&` end the command: the tool never sees what follows, and the shell runs it as a "
          "command "
          "of its own.",
          "Quote the value", "POSIX shell"},
    Cause{"command.no_verb", "nsys without a command",
          "nsys wants a command before its options: profile, launch, stats and others.", "Write nsys profile",
          "nsys 2022.4.2 and 2023.4.4, `Unknown command`"},
    Cause{"command.foreign_verb", "ncu with a command of nsys",
          "ncu has no commands: its first word that is no option is the program.", "Leave the word out",
          "ncu 2022.3.0 and 2024.1.1, `'profile' does not exist or is not an executable`"},
    Cause{
        "command.double_dash", "-- before the program",
        "Up to 2024.1, ncu takes `--` for the beginning of any option and refuses it as ambiguous; so does nsys up to "
        "2023.4. Newer versions may take it (ncu 2025.3.1 does); nothing is lost without it.",
        "Leave it out", "ncu 2022.3.0 and 2024.1.1, nsys 2022.4.2 and 2023.4.4, `option is ambiguous`"},
    Cause{"command.no_program", "no program", "There is nothing to profile.",
          "Write the program and its arguments behind the options", "ncu 2024.1.1, `Missing executable to launch`"},
    Cause{
        "command.option_behind_program", "options behind the program",
        "Everything behind the program's name is the program's. The profiler runs as if these options were not there, "
        "unless the program really has options of these names.",
        "Move them before the program", "ncu and nsys, usage lines"},
    Cause{"command.value_missing", "an option without its value",
          "An option that needs a value takes the next word for it, whatever that is: another option, or the program.",
          "Give the value",
          "ncu 2024.1.1, `the required argument for option ... is missing`; nsys 2023.4.4, `requires a "
          "target application`"},
    Cause{"command.blank_in_list", "a blank in a list",
          "The value ends at the blank; the rest of the list becomes the program.", "Write the list without blanks",
          "nsys 2022.4.2 and 2023.4.4, `Program not found: nvtx`"},
    Cause{"command.equals_behind_letter", "= behind a one-letter option",
          "Behind one letter the value follows at once or after a blank; a `=` becomes part of it.", "Leave the = out",
          "nsys 2023.4.4, `Illegal --trace argument '=nvtx'`"},
    // Options.
    Cause{
        "command.unknown_option", "an option that this version lacks",
        "The tool refuses the line. Options come, go and change their names between versions, and some that are often "
        "seen in texts never existed (--kernel-replay-mode).",
        "Leave it out, or use a version that has it", "ncu 2020.3.1 to 2025.3.1, `unrecognised option`; nsys likewise"},
    Cause{"command.repeated_option", "an option twice",
          "Most options may stand once; ncu takes several --section, --nvtx-include, --nvtx-exclude, --rule and "
          "--section-folder, nsys several --export.",
          "Give it once",
          "ncu 2022.3.0 and 2024.1.1, nsys 2022.4.2 and 2023.4.4, `cannot be specified more than once`"},
    Cause{"command.invalid_value", "a value that this version does not take",
          "The tool refuses the line, or takes the value and does something else.",
          "Choose one of the values that it takes",
          "ncu 2025.3.1, `--target-processes 1`; nsys 2023.4.4, `Illegal --trace argument`"},
    Cause{"command.needs_option", "an option that needs another", "The tool refuses the one without the other.",
          "Add the other, or leave it out",
          "ncu 2022.3.0 and 2024.1.1, `Use option --nvtx to view per-nvtx summary`, `--kill cannot be used when launch "
          "count "
          "is zero`"},
    Cause{"command.mode_conflict", "an option that this replay mode refuses",
          "ncu takes some options in some replay modes only: ranges are measured as a whole, so kernels cannot be "
          "chosen in "
          "them, and options of application replay mean nothing elsewhere.",
          "Leave it out, or choose another --replay-mode",
          "ncu 2022.3.0 and 2024.1.1, `is not supported during range replay`, `is not supported with '--replay-mode "
          "kernel'`"},
    // Ranges.
    Cause{"command.no_nvtx", "a range filter without --nvtx",
          "ncu refuses --nvtx-include and --nvtx-exclude without --nvtx.", "Add --nvtx",
          "ncu 2022.3.0 and 2024.1.1, `--nvtx-include requires --nvtx`"},
    Cause{"command.missing_slash", "a name without slash",
          "Without a slash an expression names start/end ranges (nvtxRangeStart); push/pop ranges (nvtxRangePush, "
          "PyTorch, "
          "most Python) are written with one. If the range is not of that kind ncu profiles nothing and exits with 0. "
          "Right as "
          "it stands where the range is a start/end range.",
          "Write a slash behind the name; both forms together match either kind",
          "ncu 2022.3.0, 2024.1.1 and 2025.3.1, `match only start/end ranges`"},
    Cause{"command.comma_means_both", "a comma between names",
          "A comma means and: a kernel is profiled while all of these start/end ranges are open. It is no list, and it "
          "names no "
          "push/pop ranges. Right as it stands where that is meant.",
          "Repeat the option, once for each range", "ncu 2022.3.0 and 2024.1.1, truth tables"},
    Cause{"command.list_in_expression", "a list where one range is meant",
          "An expression names one range. `A;B` and `A/,B/` are taken without complaint and match nothing; the exit "
          "code is 0.",
          "Repeat the option, once for each range; nsys can gate on one range only",
          "ncu 2022.3.0, 2024.1.1 and 2025.3.1: nothing profiled"},
    Cause{"command.glob_in_expression", "* in a name",
          "In a plain name `*` is a letter, and between slashes it stands for any number of ranges; `layer*/` matches "
          "nothing, "
          "with exit code 0.",
          "Write a regular expression: regex:^layer.*/", "ncu 2022.3.0, 2024.1.1 and 2025.3.1: nothing profiled"},
    Cause{"command.quoted_expression", "quotes within the value",
          "These quotes reach the tool and become letters of the name: no range is called that.",
          "Quote once, for the shell only", "ncu 2022.3.0 and 2024.1.1, truth tables"},
    Cause{"command.blank_in_expression", "blanks around a name", "Blanks are letters of the name, also at its ends.",
          "Write it without them", "ncu 2022.3.0 and 2024.1.1, truth tables"},
    Cause{"command.single_anchors", "[ and ] around one name",
          "`[A` asks for A at the bottom of the stack, `A]` for A at its top; both around a single name match nothing.",
          "Write [A, A] or A/", "ncu 2022.3.0 and 2024.1.1, truth tables"},
    Cause{"command.bad_expression", "no range expression",
          "ncu refuses the expression, or takes it and matches nothing.", "Name one range: decode/",
          "ncu 2022.3.0 and 2024.1.1, truth tables"},
    Cause{"command.reversed_domain", "range and domain in the wrong order",
          "ncu writes DOMAIN@RANGE/, nsys RANGE@DOMAIN. The other order names a range that is not there: nothing is "
          "captured, "
          "with exit code 0. Right as it stands where the names are really so.",
          "Swap them", "ncu and nsys documentation; nsys 2025.3.1, decode_all@LLM captures"},
    // What is collected.
    Cause{"command.unknown_set", "a set that this ncu lacks",
          "ncu warns `No metrics to collect found in sections`, measures nothing and exits with 0. The default set was "
          "called "
          "default until 2022 and is called basic since 2023; a set brief never existed.",
          "Leave --set out for the default set, or take one of `ncu --list-sets`",
          "ncu 2020.3.1, 2022.3.0, 2024.1.1, 2025.3.1"},
    Cause{"command.unknown_section", "a section that this ncu lacks", "ncu refuses the line.",
          "Take one of `ncu --list-sections`", "ncu 2024.1.1 and 2025.3.1, `did not match any section`"},
    Cause{"command.unknown_metric", "a metric that this ncu lacks",
          "It shows at the first kernel only: ncu then ends the program, with exit code 9.",
          "Look for it with `rangescope metrics search WORD`", "ncu 2025.3.1, `Failed to find metric`"},
    Cause{"command.kernel_name_pattern", "a pattern as kernel name",
          "--kernel-name compares the whole name, letter by letter, unless it begins with regex:. Nothing is profiled, "
          "with "
          "exit code 0.",
          "Write regex: before a regular expression", "ncu 2022.3.0, --help; 2025.3.1"},
    Cause{"command.kernel_name_base", "another kind of kernel name",
          "By default names of functions are compared: gemm, not gemm<float>(int) and not _Z4gemmi. Nothing is "
          "profiled, with "
          "exit code 0.",
          "Say which kind with --kernel-name-base demangled or mangled", "ncu 2022.3.0, --help"},
    Cause{
        "command.kernel_id", "no kernel id",
        "A kernel id is context:stream:[regex:]name:invocation, each part may be empty. The invocation is a number, or "
        "an expression of digits without letters that has to match it whole. It is no place for skip and count.",
        "Write ::NAME:2 for the second launch of NAME, '::NAME:.*0' for every tenth; to skip and count use "
        "--launch-skip and --launch-count",
        "ncu 2022.3.0 and 2024.1.1, `Invalid kernel identifier`, `Invalid name operator '10'`, `Invalid invocation 5a "
        "in kernel regex`"},
    Cause{"command.bad_regex", "no regular expression", "ncu refuses the line.",
          "Correct the expression behind regex:, or leave regex: out for one exact name",
          "ncu 2022.3.0 and 2024.1.1, `Invalid regex provided to --kernel option`"},
    Cause{"command.children_not_profiled", "child processes are not profiled",
          "The program is a launcher that starts others. Until 2023.2 ncu profiles the application process alone "
          "unless told "
          "otherwise: no kernel is found, and the exit code is 0.",
          "Write --target-processes all", "ncu 2022.3.0, `Profiling kernels launched by child processes requires ...`"},
    // nsys: gating.
    Cause{"command.capture_without_range", "gated by NVTX, and no range named",
          "nsys waits for a range that has no name: nothing is recorded, and the exit code is 0.",
          "Name it with --nvtx-capture, or leave --capture-range=nvtx out", "nsys 2022.4.2 and 2023.4.4: no report"},
    Cause{"command.capture_not_gated", "--nvtx-capture without --capture-range=nvtx",
          "nsys ignores the range without a word and records what it would record without it: everything, or what "
          "cudaProfilerStart opens.",
          "Write --capture-range=nvtx, or leave --nvtx-capture out",
          "nsys 2022.4.2 and 2023.4.4: whole program recorded"},
    Cause{"command.capture_end_alone", "--capture-range-end without --capture-range", "nsys refuses the line.",
          "Leave it out, or gate the recording with --capture-range",
          "nsys 2022.4.2 and 2023.4.4, `only allowed when --capture-range option-argument is not 'none'`"},
    Cause{"command.placeholder_capture", "a placeholder as range",
          "`range` and `range@domain` stand in nsys's help for the name of a range of yours. No report is generated, "
          "with exit "
          "code 0. Right as it stands where the range is really called range.",
          "Write the name of a range of the program; without one record everything",
          "nsys 2025.3.1, `No reports were generated`"},
    Cause{"command.slash_in_capture", "ncu's slashes in nsys's range",
          "nsys takes the name of a range as it is: slashes and brackets are letters of it. No report is generated, "
          "with exit "
          "code 0.",
          "Write the name alone: --nvtx-capture=decode", "nsys 2022.4.2: no report"},
    Cause{"command.pattern_in_capture", "a pattern as range of nsys",
          "nsys gates on one range by its exact name; only the domain may be *. No report is generated, with exit code "
          "0.",
          "Name one range exactly, or record everything and filter the report", "nsys documentation, --nvtx-capture"},
    Cause{
        "command.unregistered_strings", "gated by a string that may not be registered",
        "By default nsys opens the recording at registered strings only (nvtxDomainRegisterString). Ranges of PyTorch "
        "and of "
        "plain nvtxRangePush are not registered: no report is generated, with exit code 0. The setting does no harm to "
        "registered ones.",
        "Set NSYS_NVTX_PROFILER_REGISTER_ONLY=0 for the program (--env-var)",
        "nsys 2022.4.2 and 2025.3.1: no report without it, a report with it"},
    Cause{"command.default_domain", "the default domain by a foreign name",
          "In --nvtx-capture nsys means the default domain where no domain is written; in its domain lists it is "
          "called default. "
          "ncu calls it <default domain>.",
          "Leave the domain out, or write default in a domain list", "nsys documentation"},
    Cause{"command.domains_both", "domains both included and excluded", "nsys refuses the line.",
          "Leave one of them out", "nsys 2022.4.2 and 2023.4.4"},
};

}  // namespace

std::span<const Cause> command_causes() {
  return kCauses;
}

}  // namespace rangescope::doctor
