// rangescope-mpi: `mpirun -n 8 rangescope-mpi report JOB` merges the digests of a job's ranks into
// one file, shared over MPI's processes, and prints what `rangescope report JOB --merged FILE`
// prints. With --merged FILE the file is kept, and used as it is where it exists.
//
// Process 0 is rangescope: it reads the command line and prints. It sends all others the runs of
// the job; each merges every n-th of them, and the parts go up a binary tree, as MPI_Reduce would
// take them if they were of one size. Merging adds integers (analyze/tally/digest.hpp), so the
// report is the same to the digit as one machine's.
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyze/tally/file.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/subcommand.hpp"
#include "profile/digests.hpp"
#include "runs/job/folder.hpp"
#include "runs/layout.hpp"

namespace rangescope {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kPiece = 1 << 30;  // MPI counts with an int

void send(const std::string& bytes, int to) {
  const std::uint64_t size = bytes.size();
  MPI_Send(&size, 1, MPI_UINT64_T, to, 0, MPI_COMM_WORLD);
  for (std::uint64_t offset = 0; offset < size; offset += kPiece)
    MPI_Send(bytes.data() + offset,
             static_cast<int>(std::min(kPiece, size - offset)),
             MPI_BYTE,
             to,
             0,
             MPI_COMM_WORLD);
}

std::string receive(int from) {
  std::uint64_t size = 0;
  MPI_Recv(&size, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::string bytes(size, '\0');
  for (std::uint64_t offset = 0; offset < size; offset += kPiece)
    MPI_Recv(bytes.data() + offset,
             static_cast<int>(std::min(kPiece, size - offset)),
             MPI_BYTE,
             from,
             0,
             MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  return bytes;
}

/// What process 0 has, on all processes.
std::string broadcast(std::string text) {
  std::uint64_t size = text.size();
  MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  text.resize(size);
  for (std::uint64_t offset = 0; offset < size; offset += kPiece)
    MPI_Bcast(text.data() + offset,
              static_cast<int>(std::min(kPiece, size - offset)),
              MPI_BYTE,
              0,
              MPI_COMM_WORLD);
  return text;
}

base::Result<std::string> encoded(base::Result<analyze::tally::Digest> digest) {
  if (!digest)
    return tl::make_unexpected(digest.error());
  return analyze::tally::encode(std::move(*digest), 1);
}

/// This process's share of the runs, and what the processes above it in the tree send; to the one
/// below, or in process 0 the whole. An error goes down too: "" is no digest.
base::Result<analyze::tally::Digest> reduce(const std::vector<fs::path>& runs,
                                            int rank,
                                            int processes) {
  std::vector<fs::path> mine;
  for (std::size_t i = static_cast<std::size_t>(rank); i < runs.size();
       i += static_cast<std::size_t>(processes))
    mine.push_back(runs[i]);
  auto merged = profile::merge_runs(mine);
  for (int step = 1; step < processes; step *= 2) {
    if (rank % (2 * step) != 0) {
      auto bytes = encoded(std::move(merged));
      if (!bytes)
        base::warn("process " + std::to_string(rank) + ": " + base::to_string(bytes.error()));
      send(bytes.value_or(""), rank - step);
      return analyze::tally::Digest{};
    }
    if (rank + step >= processes)
      continue;
    analyze::tally::Digest other;
    const auto read = analyze::tally::decode(
        receive(rank + step), "process " + std::to_string(rank + step), other);
    if (!read)
      merged = tl::make_unexpected(read.error());
    if (merged)
      merged = analyze::tally::merge(*merged, other);
  }
  return merged;
}

/// `report`, which merges the digests first.
class MergedReport final : public cli::Subcommand {
 public:
  /// `shared`: becomes true once the other processes have got their share.
  MergedReport(int processes, bool& shared)
      : Subcommand("report"), report_(cli::make_report()), processes_(processes), shared_(shared) {}

  void options(const cli::Arguments& app) override {
    app_ = app;
    report_->options(app);
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto job = TRY(job_to_merge());
    if (!job || job->members.empty())
      return report_->run();
    const base::TemporaryFolder folder("rangescope-mpi");
    const std::string file =
        last_of("--merged", (folder.path() / analyze::tally::kFileName).string());
    std::error_code error;
    if (fs::exists(file, error))
      return report_->run();
    auto digest = TRY(merge(*job));
    TRY(analyze::tally::write(file, std::move(digest)));
    TRY(app_.set("--merged", {file}, "rangescope-mpi"));
    return report_->run();
  }

 private:
  [[nodiscard]] std::string last_of(const std::string& option, const std::string& otherwise) const {
    const std::vector<std::string> values = app_.results(option);
    if (values.empty())
      return otherwise;
    return values.back();
  }

  /// Nothing where no job is named, or its captures are asked for.
  [[nodiscard]] base::Result<std::optional<runs::job::Job>> job_to_merge() const {
    if (app_.results("input").size() > 1 || !app_.results("--captures").empty())
      return std::nullopt;
    return runs::job::find_job(last_of("--runs", std::string(runs::kDefaultRoot)),
                               last_of("input", "latest"));
  }

  [[nodiscard]] base::Result<analyze::tally::Digest> merge(const runs::job::Job& job) const {
    std::vector<fs::path> runs;
    std::string names;
    for (const runs::job::Member& member : job.members) {
      runs.push_back(member.run);
      names += member.run.string() + '\0';
    }
    shared_ = true;
    broadcast(names);
    return reduce(runs, 0, processes_);
  }

  std::unique_ptr<cli::Subcommand> report_;
  cli::Arguments app_;
  int processes_;
  bool& shared_;
};

int run(int argc, char** argv) {
  int rank = 0, processes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (rank != 0) {
    const std::string names = broadcast({});
    std::vector<fs::path> runs;
    for (const std::string_view name : base::split(names, '\0'))
      if (!name.empty())
        runs.emplace_back(name);
    if (!runs.empty())
      (void)reduce(runs, rank, processes);
    return 0;
  }
  bool shared = false;
  std::vector<std::unique_ptr<cli::Subcommand>> commands;
  commands.push_back(std::make_unique<MergedReport>(processes, shared));
  const int code = cli::run_app(argc, argv, commands);
  if (!shared)
    broadcast({});  // the others have nothing to do
  return code;
}

}  // namespace
}  // namespace rangescope

int main(int argc, char** argv) {
  rangescope::base::outlive_file_limit();
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  const int code = rangescope::run(argc, argv);
  MPI_Finalize();
  return code;
}
