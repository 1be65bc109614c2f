// rangescope-mpi: `mpirun -n 8 rangescope-mpi report JOB` is `rangescope report JOB --digests` with the digests shared
// over MPI's processes.
//
// Process 0 is rangescope: it reads the command line and prints. When it comes to merging it sends all others the runs;
// each merges every n-th of them, and the parts go up a binary tree, as MPI_Reduce would take them if they were of one
// size. Merging adds integers (analyze/tally/digest.hpp), so the report is the same to the digit as one machine's.
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyze/tally/file.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/subcommand.hpp"

namespace rangescope {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kPiece = 1 << 30;  // MPI counts with an int

void send(const std::string& bytes, int to) {
  const std::uint64_t size = bytes.size();
  MPI_Send(&size, 1, MPI_UINT64_T, to, 0, MPI_COMM_WORLD);
  for (std::uint64_t at = 0; at < size; at += kPiece)
    MPI_Send(bytes.data() + at, static_cast<int>(std::min(kPiece, size - at)), MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

std::string receive(int from) {
  std::uint64_t size = 0;
  MPI_Recv(&size, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::string bytes(size, '\0');
  for (std::uint64_t at = 0; at < size; at += kPiece)
    MPI_Recv(bytes.data() + at, static_cast<int>(std::min(kPiece, size - at)), MPI_BYTE, from, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  return bytes;
}

/// What process 0 has, on all processes.
std::string broadcast(std::string text) {
  std::uint64_t size = text.size();
  MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  text.resize(size);
  for (std::uint64_t at = 0; at < size; at += kPiece)
    MPI_Bcast(text.data() + at, static_cast<int>(std::min(kPiece, size - at)), MPI_BYTE, 0, MPI_COMM_WORLD);
  return text;
}

/// This process's share of the runs, and what the processes above it in the tree send; to the one below, or in
/// process 0 the whole. An error goes down too: "" is no digest.
base::Result<analyze::tally::Digest> reduce(const std::vector<fs::path>& runs, int rank, int processes) {
  std::vector<fs::path> mine;
  for (std::size_t i = static_cast<std::size_t>(rank); i < runs.size(); i += static_cast<std::size_t>(processes))
    mine.push_back(runs[i]);
  auto merged = profile::merge_runs(mine);
  for (int step = 1; step < processes; step *= 2) {
    if (rank % (2 * step) != 0) {
      auto bytes = merged ? analyze::tally::encode(std::move(*merged), 1) : tl::make_unexpected(merged.error());
      if (!bytes) base::warn("process " + std::to_string(rank) + ": " + base::to_string(bytes.error()));
      send(bytes.value_or(""), rank - step);
      return analyze::tally::Digest{};
    }
    if (rank + step >= processes) continue;
    analyze::tally::Digest other;
    const auto read = analyze::tally::decode(receive(rank + step), "process " + std::to_string(rank + step), other);
    if (!read) merged = tl::make_unexpected(read.error());
    if (merged) merged = analyze::tally::merge(*merged, other);
  }
  return merged;
}

int run(int argc, char** argv) {
  int rank = 0, processes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (rank != 0) {
    const std::string names = broadcast({});
    std::vector<fs::path> runs;
    for (const std::string_view name : base::split(names, '\0'))
      if (!name.empty()) runs.emplace_back(name);
    if (!runs.empty()) (void)reduce(runs, rank, processes);
    return 0;
  }
  bool asked = false;
  std::vector<std::unique_ptr<cli::Subcommand>> commands;
  commands.push_back(cli::make_report([&](const std::vector<fs::path>& runs) {
    asked = true;
    std::string names;
    for (const fs::path& run : runs) names += run.string() + '\0';
    broadcast(names);
    return reduce(runs, rank, processes);
  }));
  std::vector<char*> words(argv, argv + argc);
  std::string digests = "--digests";
  if (argc > 2) words.insert(words.begin() + 2, digests.data());
  const int code = cli::run_app(static_cast<int>(words.size()), words.data(), commands);
  if (!asked) broadcast({});  // the others have nothing to do
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
