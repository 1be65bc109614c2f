#include "profile/captures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analyze/tree/backward.hpp"
#include "analyze/tree/balance.hpp"
#include "base/fs.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "profile/jobs.hpp"
#include "read/fingerprint.hpp"
#include "read/join.hpp"
#include "read/registry.hpp"
#include "report/formats/tables/database.hpp"
#include "runs/imports.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "wire/cpu.hpp"
#include "wire/gpu.hpp"
#include "wire/native.hpp"
#include "wire/samples.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

struct Input {
  fs::path path;
  model::Session session;
};

bool has_results(const model::Session& session) {
  return !session.ranges.empty() || !session.kernels.empty() || !session.measurements.empty();
}

/// The run of which `path` is a capture that was made there; "" for other files and for imported
/// ones.
fs::path profiled_run_of(const fs::path& path) {
  fs::path run = runs::run_of(path);
  if (run.empty())
    return run;
  for (fs::path series = runs::run_of(run); !series.empty(); series = runs::run_of(run))
    run = std::move(series);
  const auto imports = runs::read_imports(run);
  if (!imports || !imports->empty())
    return {};
  return run;
}

std::uint64_t bytes_of(const std::vector<fs::path>& parts) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const fs::path& part : parts) {
    if (fs::is_regular_file(part, error))
      bytes += fs::file_size(part, error);
    for (fs::recursive_directory_iterator entry(part, error), end; !error && entry != end;
         entry.increment(error))
      if (std::error_code ignored; entry->is_regular_file(ignored))
        bytes += entry->file_size(ignored);
    error.clear();
  }
  return bytes;
}

std::string within(const fs::path& path, const fs::path& run) {
  std::error_code error;
  return fs::absolute(path, error).lexically_normal().lexically_relative(run).string();
}

/// True where the processes' ranks are known, and none is wanted. Only the native reader picks
/// processes of a file.
bool is_of_others(const model::Session& session, const std::vector<std::uint32_t>& wanted) {
  bool has_rank = false;
  for (const model::Process& process : session.processes) {
    if (std::find(wanted.begin(), wanted.end(), process.rank) != wanted.end())
      return false;
    has_rank = has_rank || process.rank != model::kNone;
  }
  return has_rank && !wanted.empty();
}

bool is_native(const Input& input) {
  const std::vector<model::Source>& sources = input.session.sources;
  return !sources.empty() && sources.front().maker == model::Maker::kRangescope;
}

/// The inputs of each profiled run that are to give times, the native one first.
std::map<fs::path, std::vector<std::size_t>> timelines_by_run(const std::vector<Input>& inputs) {
  std::map<fs::path, std::vector<std::size_t>> by_run;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!read::has_timeline(inputs[i].session) && has_results(inputs[i].session))
      continue;
    const fs::path run = profiled_run_of(inputs[i].path);
    if (!run.empty())
      by_run[run].push_back(i);
  }
  const auto is_native_input = [&](std::size_t i) { return is_native(inputs[i]); };
  for (auto& [run, timelines] : by_run)
    std::stable_partition(timelines.begin(), timelines.end(), is_native_input);
  return by_run;
}

/// Of equally good ones the native one.
std::size_t best_timeline(const std::vector<Input>& inputs,
                          const std::vector<std::size_t>& timelines) {
  std::size_t best = timelines.front();
  for (const std::size_t i : timelines) {
    const model::Session* candidate = &inputs[i].session;
    if (better_timeline(&inputs[best].session, candidate) == candidate)
      best = i;
  }
  return best;
}

/// A capture of nsys that repeats leaves several files of one run of the program.
bool are_of_one_nsys_run(const Input& input, const Input& other) {
  const fs::path folder = input.path.parent_path();
  return folder == other.path.parent_path() && folder.filename() == "nsys";
}

/// Leaves one timeline of each profiled run.
void choose_timelines(std::vector<Input>& inputs, std::vector<std::string>& notes) {
  std::vector<std::size_t> dropped;
  for (const auto& [run, timelines] : timelines_by_run(inputs)) {
    const std::size_t best = best_timeline(inputs, timelines);
    for (const std::size_t i : timelines) {
      if (i == best || are_of_one_nsys_run(inputs[i], inputs[best]))
        continue;
      dropped.push_back(i);
      if (!has_results(inputs[i].session))
        continue;
      std::string note = "times are those of " + within(inputs[best].path, run);
      note += "; " + within(inputs[i].path, run);
      note += " is another run of the program: report it by its path";
      notes.push_back(std::move(note));
    }
  }
  std::sort(dropped.rbegin(), dropped.rend());
  for (const std::size_t i : dropped)
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(i));
}

/// Leaves out what is read already: a file that is named twice, a copy, or a report next to its
/// export.
void leave_out_repeated(std::vector<Input>& inputs, std::vector<std::string>& notes) {
  std::map<std::uint64_t, fs::path> first_with;
  std::vector<Input> kept;
  for (Input& input : inputs) {
    const std::uint64_t print = read::fingerprint(input.session);
    const auto [first, is_new] = first_with.emplace(print, input.path);
    if (is_new || print == read::kNoFingerprint) {
      kept.push_back(std::move(input));
      continue;
    }
    std::string note = base::printable(input.path.string());
    note += " was left out: it is the same recording as ";
    note += base::printable(first->second.string());
    notes.push_back(std::move(note));
  }
  inputs = std::move(kept);
}

/// When the recording began, as UTC; nothing where that is unknown.
std::optional<std::int64_t> begin_unix_ns(const model::Session& session) {
  const bool has_utc = read::has_timeline(session) && session.clock.anchor_unix_ns != 0;
  if (!has_utc)
    return std::nullopt;
  return session.begin_ns - session.clock.anchor_ns + session.clock.anchor_unix_ns;
}

/// The rank of a recording's processes; nothing where they have none, or several.
std::optional<std::uint32_t> rank_of(const model::Session& session) {
  if (session.processes.empty())
    return std::nullopt;
  const std::uint32_t rank = session.processes.front().rank;
  const auto has_rank = [&](const model::Process& process) { return process.rank == rank; };
  if (rank == model::kNone || !std::ranges::all_of(session.processes, has_rank))
    return std::nullopt;
  return rank;
}

/// Puts recordings in the order in which they were made, and ranks in theirs, whatever order they
/// are named in: a shell lists `app10` before `app2`. Those whose time is unknown come last.
void order_captures(std::vector<Input>& inputs) {
  const bool are_ranks = std::ranges::all_of(
      inputs, [](const Input& input) { return rank_of(input.session).has_value(); });
  const auto place_of = [&](const Input& input) {
    const auto begin = begin_unix_ns(input.session);
    const std::uint32_t rank = are_ranks ? *rank_of(input.session) : 0;
    return std::tuple(rank, !begin, begin.value_or(0), input.path.string());
  };
  std::ranges::stable_sort(inputs, {}, place_of);
}

}  // namespace

const model::Session* better_timeline(const model::Session* native, const model::Session* nsys) {
  if (!native)
    return nsys;
  const bool nsys_has_gpu = nsys && !nsys->kernels.empty();
  if (!native->kernels.empty() || (!nsys_has_gpu && has_results(*native)))
    return native;
  if (nsys)
    return nsys;
  return native;
}

namespace {

base::Error is_an_export(const fs::path& path, const std::string& run) {
  std::string problem = "this is an export of ";
  std::string hint = "Report on the run itself";
  if (run.empty()) {
    problem += "a run";
  } else {
    const std::string name = base::printable(run);
    problem += "run '" + name + "'";
    hint += ": rangescope report " + base::shell_quote(name);
  }
  hint += ". SQLite reads the export: sqlite3 " + base::shell_quote(path.string());
  return {base::Code::kUsage, problem, path.string(), hint};
}

/// What was read of the inputs, before it is joined.
struct InputsRead {
  std::vector<Input> inputs;
  std::vector<base::Error> unread;
};

base::Result<InputsRead> read_inputs(std::span<const fs::path> paths,
                                     const read::Options& options,
                                     Sessions& read,
                                     std::vector<std::string>& notes) {
  InputsRead out;
  const auto recordings = read::recordings(paths);
  std::size_t number = 0;
  for (const std::vector<fs::path>& parts : recordings) {
    const fs::path& path = parts.front();
    ++number;
    if (const fs::path* source = read::whole_of(parts, paths)) {
      notes.push_back(path.string() + " was left out: it was made from " + source->string() +
                      ", which is already read");
      continue;
    }
    if (const auto run = report::tables::exported_run(path))
      return tl::make_unexpected(is_an_export(path, *run));
    std::string activity = "reading " + base::printable(path.filename().string());
    if (recordings.size() > 1)
      activity += fmt::format(" ({} of {})", number, recordings.size());
    const base::Work reading(std::move(activity), bytes_of(parts));
    auto already_read = read.extract(path);
    auto session = already_read.empty() ? read::read_recording(parts, options)
                                        : std::move(already_read.mapped());
    if (session) {
      label_processes(path, *session);
      if (!is_of_others(*session, options.ranks))
        out.inputs.push_back({path, std::move(*session)});
      continue;
    }
    // What one tool left of a run may be damaged; what the others saw still counts.
    if (paths.size() == 1 || profiled_run_of(path).empty())
      return base::fail(std::move(session));
    out.unread.push_back(session.error());
  }
  return out;
}

/// Lists which measurements come from which input that ncu can print again: those of whole reports.
std::vector<NcuPart> pages_of(const std::vector<Input>& inputs) {
  std::vector<NcuPart> parts;
  std::size_t first = 0;
  for (const Input& input : inputs) {
    const model::Session& session = input.session;
    const std::size_t count = session.measurements.size();
    const bool is_damaged =
        std::any_of(session.losses.begin(), session.losses.end(), [](const model::Loss& loss) {
          return loss.kind == "damaged_result";
        });
    const bool has_pages = !session.sources.empty() && session.sources.front().paged;
    if (count > 0 && !is_damaged && has_pages)
      parts.push_back({input.path, first, count});
    first += count;
  }
  return parts;
}

}  // namespace

base::Result<Captured> read_captures(std::span<const fs::path> paths,
                                     const read::Options& options,
                                     const analyze::NameFolder& names,
                                     Sessions read) {
  if (paths.empty())
    return base::fail(
        base::Code::kUsage, "no input was given", {}, "Name a run directory or a file.");
  Captured captured;
  auto [inputs, unread] = TRY(read_inputs(paths, options, read, captured.notes));
  if (inputs.empty() && unread.empty())
    return base::fail(base::Code::kNothingCaptured,
                      "no process here is of these ranks",
                      paths.front().string(),
                      "Leave out --rank.");
  if (inputs.empty())
    return tl::make_unexpected(unread.front());
  if (inputs.size() > 1) {
    order_captures(inputs);
    leave_out_repeated(inputs, captured.notes);
  }
  choose_timelines(inputs, captured.notes);
  for (Input& input : inputs)
    analyze::mend_push_pop(input.session);
  for (Input& input : inputs) {  // names hold sequence numbers until they are folded
    std::string prefix;
    if (inputs.size() > 1)
      prefix = input.path.string() + ": ";
    for (const std::string& note :
         {analyze::add_backward_modules(input.session), names.fold(input.session)})
      if (!note.empty())
        captured.notes.push_back(prefix + note);
  }
  for (const Input& input : inputs)
    captured.in_order.push_back(input.path);
  // The order of join(): then measurements are where they are counted to be.
  std::stable_partition(
      inputs.begin(), inputs.end(), [](const Input& i) { return read::has_timeline(i.session); });
  captured.parts = pages_of(inputs);
  std::vector<model::Session> sessions;
  for (Input& input : inputs)
    sessions.push_back(std::move(input.session));
  captured.session = read::join(std::move(sessions));
  for (const base::Error& error : unread)
    captured.session.losses.push_back(
        {"unreadable_capture", 1, base::replace_all(base::to_string(error), "\nhint: ", ". ")});
  return captured;
}

std::vector<model::Loss> missing_captures(const fs::path& run,
                                          std::span<const fs::path> inputs,
                                          const std::vector<model::Loss>& known) {
  const auto manifest = runs::read_manifest(run);
  if (!manifest || manifest->end_unix_ns == 0)
    return {};
  std::error_code error;
  const fs::path whole = fs::absolute(run, error).lexically_normal();
  const auto is_read = [&](const fs::path& name) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const fs::path& input) {
      const fs::path below = name.lexically_relative(within(input, whole));
      return !below.empty() && *below.begin() != "..";
    });
  };
  std::vector<std::string> gone;
  std::vector<std::string> cut;
  std::uint64_t bytes = 0;
  for (const auto& [name, proof] : manifest->files) {
    const std::string extension = fs::path(name).extension().string();
    const bool capture = extension == wire::native::kSuffix || extension == wire::gpu::kSuffix ||
                         extension == wire::cpu::kSuffix || extension == wire::samples::kSuffix;
    if (!capture || !is_read(name))
      continue;
    if (const std::uint64_t size = fs::file_size(whole / name, error); error) {
      gone.push_back(base::printable(name));
    } else if (size < proof.bytes) {
      cut.push_back(base::printable(name));
      bytes += proof.bytes - size;
    }
  }
  const auto names = [](std::vector<std::string>& all) {
    const std::size_t count = all.size();
    constexpr std::size_t kNamed = 3;
    if (count > kNamed)
      all.resize(kNamed);
    std::string text = base::join(all, ", ");
    if (count > kNamed)
      text += " and " + std::to_string(count - kNamed) + " more";
    return text;
  };
  std::vector<model::Loss> losses;
  if (const std::size_t count = gone.size(); count > 0)
    losses.push_back({"unreadable_captures",
                      count,
                      "the run had more captures when it ended; missing: " + names(gone)});
  const bool noticed = std::any_of(known.begin(), known.end(), [](const model::Loss& loss) {
    return loss.kind == "torn_tail" || loss.kind == "truncated_header" ||
           loss.kind == "torn_samples";
  });
  if (!cut.empty() && !noticed)
    losses.push_back({"torn_tail",
                      bytes,
                      "bytes that captures had when the run ended are missing: " + names(cut)});
  return losses;
}

std::string kept_file(const fs::path& file) {
  const auto head = base::read_head(file, 256);
  if (!head || report::tables::exported_run(file))
    return {};  // our own exports
  if (const auto reader = read::find_reader(file))
    return "a recording (" + std::string((*reader)->name) + ")";
  if (head->starts_with("\x28\xb5\x2f\xfd"))
    return "an archive";
  if (head->find("rangescope.baseline/") != std::string::npos)
    return "a baseline";
  const fs::path run = runs::run_of(file);
  std::error_code error;
  const bool report = file.filename().string().starts_with("report.") &&
                      fs::equivalent(run, fs::absolute(file, error).parent_path(), error);
  if (run.empty() || report)
    return {};
  return "a part of the run " + run.filename().string();
}

}  // namespace rangescope::profile
