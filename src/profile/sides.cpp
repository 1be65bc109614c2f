#include "profile/sides.hpp"

#include <algorithm>

#include "analyze/compare/digest.hpp"
#include "analyze/compare/surroundings.hpp"
#include "base/text.hpp"
#include "profile/analyzed.hpp"
#include "profile/jobs.hpp"
#include "runs/baselines.hpp"
#include "runs/manifest.hpp"
#include "runs/store.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

base::Result<model::Digest> analyzed(std::span<const fs::path> inputs,
                                     const fs::path& run,
                                     const SideOptions& options) {
  analyze::Options analysis;
  analysis.per_process = false;
  analysis.threads = options.threads;
  read::Options reading;
  reading.nsys_path = options.nsys;
  const auto done = TRY(analyze_inputs(inputs, run, analysis, std::move(reading)));
  return analyze::digest(done.report, &done.session);
}

/// The captures where they are, else the report that was made of them.
base::Result<model::Digest> load_run(const fs::path& run, const SideOptions& options) {
  const auto captures = captures_to_read(run);
  if (!captures.empty())
    return analyzed(captures, run, options);
  std::error_code error;
  if (fs::exists(run / "report.json", error))
    return runs::read_report(run / "report.json");
  return base::fail(base::Code::kNothingCaptured,
                    "the run holds no capture and no report",
                    run.string(),
                    "See what happened: rangescope runs show " + base::shell_quote(run.string()));
}

base::Result<void> add_file(const fs::path& file,
                            const SideOptions& options,
                            std::vector<model::Digest>& into) {
  const auto schema = runs::json_schema_of(file);
  if (schema == "rangescope.baseline/1") {
    auto baseline = TRY(runs::read_baseline(file));
    std::move(baseline.runs.begin(), baseline.runs.end(), std::back_inserter(into));
    return {};
  }
  auto digest = TRY(schema ? runs::read_report(file) : analyzed(std::span(&file, 1), {}, options));
  into.push_back(std::move(digest));
  return {};
}

std::vector<fs::path> reports_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json" && runs::json_schema_of(entry.path()))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

base::Result<model::Side> load_stored(const std::string& written,
                                      const std::vector<model::Digest>* now) {
  const runs::StoreAddress address = runs::split_address(written);
  const auto store = TRY(runs::Store::open(address.url));
  return store.load(address.push, now);
}

base::Result<model::Side> load_side(const std::string& written, const SideOptions& options) {
  if (base::Postgres::is_address(written))
    return load_stored(written, nullptr);
  model::Side side{written, {}};
  const fs::path path(written);
  std::error_code error;
  const auto add_runs = [&](const std::vector<fs::path>& runs) -> base::Result<void> {
    for (const fs::path& run : runs) {
      auto digest = TRY(load_run(run, options));
      side.runs.push_back(std::move(digest));
    }
    return {};
  };
  base::Result<void> loaded;
  if (fs::exists(path, error) && !runs::is_run_dir(path)) {
    const bool folder = fs::is_directory(path, error);
    const auto inside = folder ? runs::list_runs(path) : std::vector<fs::path>{};
    const auto reports = folder ? reports_in(path) : std::vector<fs::path>{};
    if (!inside.empty()) {
      std::vector<fs::path> runs_and_repeats;
      for (const fs::path& run : inside) {
        auto repeats = runs::repeats_of(run);
        if (repeats.empty())
          repeats.push_back(run);
        runs_and_repeats.insert(runs_and_repeats.end(), repeats.begin(), repeats.end());
      }
      loaded = add_runs(runs_and_repeats);
    } else if (!reports.empty()) {
      for (const fs::path& file : reports) {
        loaded = add_file(file, options, side.runs);
        if (!loaded)
          break;
      }
    } else {
      loaded = add_file(path, options, side.runs);
    }
  } else {
    auto run = runs::find_run(options.root, written);
    if (!run) {
      base::Error failure = run.error();
      if (written.find('/') != std::string::npos || written.find('.') != std::string::npos)
        failure.what = "there is no such file or run: " + base::printable(written);
      return tl::make_unexpected(std::move(failure));
    }
    if (written == "latest")
      side.label = run->filename().string();
    const auto repeats = runs::repeats_of(*run);
    loaded = add_runs(repeats.empty() ? std::vector{*run} : repeats);
  }
  if (!loaded)
    return base::fail(std::move(loaded));
  return side;
}

base::Result<model::Side> load_pushed(const std::string& written, const SideOptions& options) {
  if (base::Postgres::is_address(written))
    return base::fail(
        base::Code::kUsage, "this is a store, not a run to push", "RUN", "Name a run");
  const auto job = TRY(runs::job::find_job(options.root, written));
  if (job) {
    analyze::Options analysis;
    analysis.per_process = false;
    const auto analyzed = TRY(analyze_job(*job, analysis, {}));
    return model::Side{job->name, {analyze::digest(analyzed.report)}};
  }
  auto side = load_side(written, options);
  if (!side)
    return side;
  const fs::path label = fs::path(side->label).lexically_normal();
  side->label = (label.has_filename() ? label : label.parent_path()).filename().string();
  if (const std::string& id = side->runs.front().run.id; side->runs.size() == 1 && !id.empty())
    side->label = id;
  return side;
}

base::Result<fs::path> save_baseline(const fs::path& folder,
                                     const std::string& name,
                                     model::Side side) {
  TRY(analyze::check_repetitions(side));
  for (const model::Digest& run : side.runs)
    if (run.run.exit_code.value_or(0) != 0 || run.run.signal)
      return base::fail(base::Code::kNotComparable,
                        "the program failed, so its numbers cannot be a baseline",
                        run.run.id,
                        "Make it end with 0 first");
  std::string machine = runs::machine_kind(side.runs.front());
  return runs::save_baseline(folder,
                             {name, std::move(machine), runs::unix_now_ns(), std::move(side.runs)});
}

}  // namespace rangescope::profile
