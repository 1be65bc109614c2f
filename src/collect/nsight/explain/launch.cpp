// What is in front of the tool and where its output goes: launchers whose processes write one file,
// and a CSV of ncu that gets no rows.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"

namespace rangescope::collect::command {
namespace {

constexpr std::string_view kRankLaunchers[] = {"mpirun", "mpiexec", "srun", "orterun", "jsrun"};
constexpr std::string_view kCounts[] = {"-n", "-np", "--ntasks", "--np"};

/// The processes that a launcher in front of the tool starts; 0 where no number is given.
std::uint64_t launched_processes(const Words& before) {
  const auto launcher = std::ranges::find_if(before, [](const Word& word) {
    return std::ranges::find(kRankLaunchers, base::file_name(word.text)) !=
           std::end(kRankLaunchers);
  });
  if (launcher == before.end())
    return 0;
  for (auto word = launcher; word != before.end(); ++word) {
    const std::string_view text = word->text;
    const std::size_t equal = std::min(text.find('='), text.size());
    if (std::ranges::find(kCounts, text.substr(0, equal)) == std::end(kCounts))
      continue;
    if (equal < text.size())
      return base::to_uint(text.substr(equal + 1)).value_or(0);
    if (word + 1 == before.end())
      return 0;
    return base::to_uint((word + 1)->text).value_or(0);
  }
  return 0;
}

/// A name of its own for each process: %q{VARIABLE}, %p, %h, or a variable that the shell of each
/// expands.
bool differs_by_process(const Word& file) {
  for (const std::string_view part : {"%q{", "%p", "%h", "%i"})
    if (file.text.find(part) != std::string::npos)
      return true;
  return file.expands;
}

bool starts_with_slurm(const Words& before) {
  const auto is_srun = [](const Word& word) { return base::file_name(word.text) == "srun"; };
  return std::ranges::any_of(before, is_srun);
}

void judge_one_file(Explaining& about) {
  CommandLine& line = about.line;
  const char* option = line.tool == "ncu" ? "--export" : "--output";
  const Argument* output = line.find(option);
  const std::uint64_t processes = launched_processes(line.before);
  if (processes < 2 || output == nullptr || !output->value)
    return;
  if (differs_by_process(*output->value))
    return;
  const std::string file = output->value->text;
  const bool by_slurm = starts_with_slurm(line.before);
  const char* rank = by_slurm ? "%q{SLURM_PROCID}" : "%q{OMPI_COMM_WORLD_RANK}";
  const std::string right = file + "_" + rank;
  std::string found = std::to_string(processes);
  found += " processes write one file: " + base::shell_quote(file);
  std::string hint = "Write " + output->written + " " + base::shell_quote(right);
  about.fail("one_file_of_all_ranks", std::move(found), std::move(hint));
  line.set(option, right);
}

void judge_csv(Explaining& about) {
  CommandLine& line = about.line;
  if (line.tool != "ncu" || !line.has("--csv") || !line.has("--export"))
    return;
  if (line.has("--page") || line.has("--import"))
    return;
  about.fail("csv_without_page", "--csv together with -o, without --page");
  line.set("--page", "raw");
}

}  // namespace

void judge_launch(Explaining& about) {
  judge_one_file(about);
  judge_csv(about);
}

}  // namespace rangescope::collect::command
