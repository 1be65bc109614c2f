// A job as its ranks' digests alone, to time their merge: job_digests FOLDER RANKS REGIONS; and
// job_digests FOLDER, which only reads and unpacks them, on one thread.
//
// Rank 0's digest is made of a recording: steps of nested ranges, 20 instances of each, kernels and
// a copy in the innermost ones, a collective a step. Those of the others are the same with times of
// their own. Prints the bytes of all.
#include <zstd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "analyze/session_test.hpp"
#include "analyze/tally/file.hpp"
#include "analyze/tally/make.hpp"
#include "base/fs.hpp"

namespace {

using namespace rangescope;

model::Session recording(std::uint32_t regions, std::uint32_t world) {
  constexpr std::uint32_t kSteps = 20, kBelow = 9;
  analyze::testing::SessionBuilder b;
  std::mt19937 random(3);
  const std::uint32_t process = b.process(100), thread = b.thread(process, 100);
  model::Process& facts = b.session.processes.back();
  facts.rank = 0;
  facts.world = world;
  facts.name = b.session.strings.intern("/usr/bin/python3");
  facts.host = b.session.strings.intern("node0");
  b.session.clock = {"CLOCK_MONOTONIC", 0, 1'700'000'000'000'000'000, {}};
  const std::uint32_t stream = b.stream(process, b.device(process, 0, "GPU-0"), 7);
  std::int64_t at = 0;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const std::uint32_t outer = b.range(thread, "step", at, model::kOpen);
    for (std::uint32_t region = 0; region + 1 < regions; ++region) {
      const std::string name =
          "block_" + std::string(1, static_cast<char>('a' + region % 26)) + std::to_string(region);
      if (region % (kBelow + 1) == 0) {
        b.range(thread, name, at, at + kBelow * 30'000);
        continue;
      }
      const std::int64_t end = at + 20'000 + static_cast<std::int64_t>(random() % 8000);
      b.range(thread, name, at, end);
      const std::uint32_t call = b.launch(thread, at + 100, at + 3000);
      b.kernel(call,
               "gemm_" + std::to_string(region % 50),
               at + 5000,
               at + 9000 + static_cast<std::int64_t>(random() % 2000),
               stream);
      at += 30'000;
    }
    const std::uint32_t call = b.range(thread, "ncclAllReduce", at, at + 100'000, "NCCL");
    b.session.payload_fields.push_back(
        {call, b.session.strings.intern("NCCL communicator ID"), model::PayloadType::kUint64, 7});
    b.session.payload_fields.push_back({call,
                                        b.session.strings.intern("Message size [bytes]"),
                                        model::PayloadType::kUint64,
                                        1 << 20});
    at += 100'000;
    b.session.ranges[outer].end_ns = at;
    at += 1000;
  }
  b.session.processes.back().end_ns = b.session.end_ns = at;
  return std::move(b.session);
}

void become(analyze::tally::Digest& one, std::uint32_t rank) {
  one.processes.front().rank = rank;
  one.processes.front().pid = 100 + rank;
  for (std::string& name : one.names)
    if (name == "GPU-0")
      name += "-" + std::to_string(rank);
  std::mt19937 random(rank);
  for (analyze::tally::Region& region : one.regions) {
    const std::int64_t more = random() % 1000;
    for (auto& longest : region.ordinals.longest)
      longest = {longest.ns + random() % 1000, rank};
    for (auto& of_rank : region.ranks)
      of_rank = {rank, of_rank.sum_ns + more, of_rank.own_ns + more, of_rank.paced_ns + more};
    region.inclusive_ns += more;
    region.of_processes = {1,
                           region.inclusive_ns,
                           region.inclusive_ns,
                           region.inclusive_ns,
                           std::uint64_t{rank} << 32};
  }
  for (analyze::WorkOfRank& work : one.works)
    work.rank = rank;
  for (analyze::tally::Calls& calls : one.collectives)
    for (analyze::tally::Calls::Call& call : calls.calls)
      call.start_ns += random() % 50'000;
}

bool put(const std::filesystem::path& path, const std::string& text) {
  const bool written = base::write_file(path, text).has_value();
  if (!written)
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return written;
}

int unpack(const std::filesystem::path& folder) {
  std::string into;
  std::size_t bytes = 0;
  for (const auto& run : std::filesystem::directory_iterator(folder)) {
    const auto file = base::read_file(run.path() / analyze::tally::kFileName);
    if (!file)
      continue;
    constexpr std::size_t kHeader = 24;
    into.resize(ZSTD_getFrameContentSize(file->data() + kHeader, file->size() - kHeader));
    bytes +=
        ZSTD_decompress(into.data(), into.size(), file->data() + kHeader, file->size() - kHeader);
  }
  std::printf("%zu\n", bytes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2)
    return unpack(argv[1]);
  if (argc != 4)
    return 64;
  const std::filesystem::path folder(argv[1]);
  const auto ranks = static_cast<std::uint32_t>(std::atoi(argv[2])),
             regions = static_cast<std::uint32_t>(std::atoi(argv[3]));
  const auto made = analyze::tally::digest_of(recording(regions, ranks), {});
  if (!made)
    return 70;
  std::filesystem::create_directories(folder);
  const std::string world = std::to_string(ranks);
  std::size_t bytes = 0;
  if (!put(
          folder / "job.json",
          R"({"schema": "rangescope.job/1", "name": "bench", "launcher": "slurm", "key": "", "world_size": )" +
              world + R"(, "profiled": null, "started_unix_ns": 1700000000000000000})"))
    return 74;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    analyze::tally::Digest one = *made;
    if (rank > 0)
      become(one, rank);
    const std::filesystem::path run = folder / ("rank-" + std::to_string(rank));
    std::filesystem::create_directories(run);
    const auto packed = analyze::tally::encode(std::move(one));
    if (!packed || !put(run / analyze::tally::kFileName, *packed))
      return 74;
    bytes += packed->size();
    const std::string number = std::to_string(rank);
    if (!put(run / "rank.json",
             R"({"schema": "rangescope.rank/1", "job": "bench", "rank": )" + number +
                 R"(, "local_rank": 0, "world_size": )" + world + R"(, "host": "node0"})") ||
        !put(
            run / "status.json",
            R"({"schema": "rangescope.status/1", "state": "done", "outcome": "ok", "exit_code": 0})"))
      return 74;
  }
  std::printf("%zu\n", bytes);
}
