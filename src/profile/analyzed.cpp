#include "profile/analyzed.hpp"

#include <algorithm>

#include "analyze/names/nest.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "config/yaml.hpp"
#include "profile/counters.hpp"
#include "profile/foreign_run.hpp"
#include "profile/judged_apart.hpp"
#include "profile/sampling.hpp"
#include "report/formats/tables/database.hpp"
#include "report/sink.hpp"
#include "runs/baselines.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"

namespace rangescope::profile {
namespace {

/// What is known of a run, or of an input that is none.
analyze::RunFacts run_facts(const std::filesystem::path& input, const std::filesystem::path& run) {
  analyze::RunFacts facts;
  facts.named = named_input(input, run);
  if (!run.empty())
    facts.info = runs::run_info(run);
  if (facts.info.id.empty())
    facts.info.id = input.filename().string();
  std::error_code error;
  const bool is_repeat = run.parent_path().filename() == "repeats";
  if (!is_repeat || !std::filesystem::exists(run / "report.json", error))
    return facts;
  for (const auto& repeat : runs::repeats_of(run.parent_path().parent_path())) {
    auto digest = runs::read_report(repeat / "report.json");
    if (digest)
      facts.repetitions.push_back(std::move(*digest));
  }
  return facts;
}

/// Why a tool recorded nothing: its own diagnostics, else the option that is most often forgotten.
std::string diagnosed(const model::Session& session) {
  // nsys adds "Not all NVTX events might have been collected." to every message: the rest is the
  // reason.
  const model::Loss* cause = nullptr;
  for (const model::Loss& loss : session.losses) {
    if (loss.kind != "nsys_diagnostic")
      continue;
    const bool reason = !loss.detail.ends_with("events might have been collected.") &&
                        loss.detail.find("No NVTX events collected") == std::string::npos;
    if (cause == nullptr || reason)
      cause = &loss;
    if (reason)
      break;
  }
  if (cause != nullptr)
    return cause->detail;
  static constexpr std::pair<std::string_view, const char*> kHints[] = {
      {"nsys", "Check that nsys recorded with --trace=cuda,nvtx"},
      {"ncu", "Check ncu's filters: they matched no kernel"},
      {"kineto",
       "Check that the profiler was active: torch.profiler records CPU and CUDA between start() "
       "and stop()"}};
  for (const auto& [format, hint] : kHints)
    if (session.sources.front().format.starts_with(format))
      return hint;
  return "Check the tool's recording options";
}

/// What to check where rangescope's own capture holds no range.
const char* hint_without_ranges(const model::Session& session) {
  if (!session.processes.empty())
    return "Check that the part of the program with ranges ran";
  const bool lacks_file =
      std::any_of(session.losses.begin(), session.losses.end(), [](const model::Loss& loss) {
        return loss.kind == "no_capture_file";
      });
  if (lacks_file)
    return "Let the program open and write files: ulimit -n and ulimit -f, free space, memory";
  return "Check that the program calls NVTX 3 (C and C++: nvtx3 headers; Python: the nvtx package "
         "or torch.cuda.nvtx), may open files, and is neither setuid nor run in a separate "
         "container; if it continued in the background, report on the run once that has ended";
}

base::Error nothing(const std::filesystem::path& input, const model::Session& session) {
  base::Error error{base::Code::kNothingCaptured, {}, input.string(), {}};
  if (!session.sources.empty() && session.sources.front().maker != model::Maker::kRangescope) {
    error.what = "the file was read (" + analyze::describe(session.sources.front()) +
                 ") and holds no range, kernel or result";
    error.hint = diagnosed(session);
  } else {
    error.what = "nothing was captured: " + why_no_range(session);
    error.hint = hint_without_ranges(session);
  }
  return error;
}

/// The configuration that the run was made with; empty where there is none.
config::Value settings_of(const std::filesystem::path& run) {
  if (run.empty())
    return {};
  return config::read_yaml(run / "config.yaml").value_or(config::Value{});
}

std::string unmatched_in(const config::Value& settings,
                         std::span<const std::string> command,
                         const model::Session& session) {
  const config::Value* functions = config::at_path(settings, "pipeline.native.functions");
  std::vector<std::string> patterns;
  if (functions != nullptr)
    for (const config::Value& pattern : functions->items)
      patterns.push_back(pattern.text);
  return unmatched_functions(patterns, command, session);
}

std::string text_at(const config::Value& settings, std::string_view key) {
  const config::Value* value = config::at_path(settings, key);
  if (value == nullptr)
    return {};
  return value->text;
}

analyze::FoldNames fold_names_at(const config::Value& settings) {
  const std::string name = text_at(settings, "report.fold_names");
  if (name == "numbers")
    return analyze::FoldNames::kNumbers;
  if (name == "off")
    return analyze::FoldNames::kOff;
  return analyze::FoldNames::kAuto;
}

/// The options, and where they leave something open what the run was made with.
analyze::Options options_with(const config::Value& settings,
                              const std::filesystem::path& run,
                              analyze::Options options) {
  if (!options.fold_names)
    options.fold_names = fold_names_at(settings);
  if (options.nest.empty())
    options.nest = text_at(settings, "report.nest");
  if (options.device.empty())
    options.device = text_at(settings, "device");
  options.by_payload = options.by_payload || counted_by_payload(run) ||
                       text_at(settings, "report.bucket_by") == "payload";
  return options;
}

}  // namespace

std::string named_input(const std::filesystem::path& input, const std::filesystem::path& run) {
  std::error_code error;
  const std::filesystem::path named = std::filesystem::path("rangescope-runs") / run.filename();
  if (!run.empty() && std::filesystem::equivalent(named, run, error))
    return run.filename().string();
  return (run.empty() ? input : run).string();
}

bool holds_program(const model::Session& session) {
  return !session.cpu.samples.empty() ||
         (!session.processes.empty() && !session.sources.empty() &&
          session.sources.front().maker == model::Maker::kRangescope);
}

std::string why_no_range(const model::Session& native) {
  if (!native.processes.empty())
    return base::counted(native.processes.size(), "process") + ", but none opened a range";
  for (const model::Loss& loss : native.losses)
    if (loss.kind == "no_capture_file" || model::explains_missing_ranges(loss))
      return loss.detail;
  return "no process loaded rangescope's library, or those that did could not write into the run "
         "directory";
}

// The folder for captures is there, and nothing is in it.
bool is_empty_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) && std::filesystem::is_empty(path, error);
}

base::Result<std::vector<std::filesystem::path>> find_inputs(const std::filesystem::path& root,
                                                             const std::string& written,
                                                             std::filesystem::path& run) {
  std::filesystem::path input(written);
  std::error_code error;
  if (std::filesystem::exists(input, error) && !runs::is_run_dir(input)) {
    const auto inside = runs::list_runs(input);
    if (inside.size() > 1)
      return base::fail(base::Code::kUsage,
                        "this is a folder of runs",
                        written,
                        "Name one of them: " + base::shell_quote(inside.back().string()));
    if (inside.size() == 1)
      return find_inputs(root, inside.front().string(), run);
    // Our own export is its run, where that is still there; the export holds no events to report
    // on.
    const auto exported = report::tables::exported_run(input);
    if (exported && !exported->empty() && runs::find_run(root, *exported)) {
      base::info(base::printable(written) + " is an export of run '" + base::printable(*exported) +
                 "': this is that run");
      return find_inputs(root, *exported, run);
    }
    auto captures = captures_of_foreign_run(input);
    if (captures.empty())
      return std::vector{input};
    std::vector<std::string> names;
    for (const auto& capture : captures)
      names.push_back(base::printable(capture.lexically_relative(input).string()));
    base::info(base::printable(written) +
               " is a run folder of another tool; read from it: " + base::join(names, ", "));
    return captures;
  }
  auto found = runs::find_run(root, written);
  if (!found) {
    base::Error failure = found.error();
    if (written.find('/') != std::string::npos || written.find('.') != std::string::npos)
      failure.what = "there is no such file or run: " + base::printable(written);
    return tl::make_unexpected(std::move(failure));
  }
  auto captures = captures_to_read(*found);
  if (const auto repeats = runs::repeats_of(*found); !repeats.empty()) {
    const std::size_t count = repeats.size();
    *found = runs::median_repeat(repeats);
    base::info("the repetition of median duration, " + found->filename().string() + " of " +
               std::to_string(count) + "; the others are in " + found->parent_path().string());
  }
  if (run.empty())
    run = *found;
  if (captures.empty()) {
    return base::fail(base::Code::kNothingCaptured,
                      "the run holds no capture",
                      found->string(),
                      "See what happened: rangescope runs show " + base::shell_quote(written));
  }
  return captures;
}

std::vector<std::filesystem::path> captures_to_read(const std::filesystem::path& run) {
  auto captures = runs::captures_of(run);
  if (const auto repeats = runs::repeats_of(run); !repeats.empty()) {
    const auto median = runs::captures_of(runs::median_repeat(repeats));
    captures.insert(captures.begin(), median.begin(), median.end());
  }
  if (captures.size() > 1)
    std::erase_if(captures, is_empty_folder);
  return captures;
}

std::vector<std::filesystem::path> filled_captures(const std::filesystem::path& run) {
  auto captures = captures_to_read(run);
  std::erase_if(captures, is_empty_folder);
  return captures;
}

namespace {

/// Captures that the run had when it ended, as losses before the others. kBadData if what is left
/// holds nothing to report on.
base::Result<void> add_missing_captures(std::span<const std::filesystem::path> inputs,
                                        const std::filesystem::path& run,
                                        model::Session& session) {
  std::filesystem::path run_of_inputs = run;
  if (run.empty())
    run_of_inputs = runs::run_of(inputs.front());
  const auto missing = missing_captures(run_of_inputs, inputs, session.losses);
  session.losses.insert(session.losses.begin(), missing.begin(), missing.end());
  const bool holds_nothing = session.ranges.empty() && !holds_program(session);
  if (missing.empty() || !holds_nothing)
    return {};
  return base::fail(base::Code::kBadData,
                    missing.front().detail,
                    inputs.front().string(),
                    "Restore the run from a copy; see `rangescope runs verify`");
}

}  // namespace

base::Result<Analyzed> analyze_inputs(std::span<const std::filesystem::path> inputs,
                                      const std::filesystem::path& run,
                                      const analyze::Options& wanted,
                                      read::Options reading,
                                      Sessions read,
                                      std::optional<analyze::RunFacts> job_facts,
                                      base::Result<analyze::tally::Digest>* tally) {
  for (const auto& input : inputs) {
    const bool is_of_run = !run.empty() || !runs::run_of(input).empty();
    if (is_of_run && is_empty_folder(input))
      return tl::make_unexpected(nothing(input, {}));
  }
  reading.threads = wanted.threads;
  const config::Value settings = settings_of(run);
  const analyze::Options options = options_with(settings, run, wanted);
  if (options.domains == analyze::Domains::kNested)
    reading.listed = 0;  // what is counted is of each domain's own stack
  const analyze::NameFolder names(*options.fold_names, options.ranges);
  auto captured = TRY(read_captures(inputs, reading, names, std::move(read)));
  model::Session& session = captured.session;
  TRY(add_missing_captures(inputs, run, session));
  if (!model::holds_anything(session) && !holds_program(session))
    return tl::make_unexpected(nothing(inputs.front(), session));
  analyze::nest_names(session, options.nest);
  const base::Work analyzing("analyzing");
  analyze::RunFacts facts;
  if (job_facts)
    facts = std::move(*job_facts);
  else
    facts = run_facts(captured.in_order.front(), run);
  facts.notes = std::move(captured.notes);
  std::string unmatched = unmatched_in(settings, facts.info.command, session);
  if (!unmatched.empty())
    facts.notes.push_back(std::move(unmatched));
  const analyze::Reference reference = reference_of(run, !session.measurements.empty());
  auto report = TRY(analyze::answer(session, options, reference, std::move(facts), tally));
  if (session.far_apart)
    TRY(judge_each_recording(captured.in_order, wanted, reading, report));
  return Analyzed{std::move(session), std::move(report), std::move(captured.parts)};
}

base::Result<Analyzed> analyze_input(const std::filesystem::path& input,
                                     const std::filesystem::path& run,
                                     const analyze::Options& options) {
  return analyze_inputs(std::span(&input, 1), run, options);
}

base::Result<void> write_report(const Analyzed& analyzed,
                                std::string_view format,
                                const std::filesystem::path& to) {
  auto exporter = TRY(report::find_exporter(format));
  report::FileSink sink(to);
  TRY(exporter->write(analyzed.report, &analyzed.session, {.width = 120}, sink));
  return sink.finish();
}

bool has_loss(const model::Report& report) {
  return std::any_of(report.losses.begin(), report.losses.end(), [](const model::Loss& loss) {
    return loss.severity != model::Severity::kInfo;
  });
}

}  // namespace rangescope::profile
