// A job of full captures, to time its report: job_captures FOLDER RANKS KERNELS. Prints the bytes
// of all.
//
// Each rank trains: steps of 40 layers, 20 kernels of 60 names and shapes launched in each, a wait
// for the GPU, an AllReduce of NCCL with its kernel at the end of the step, which all ranks leave
// together. Every fourth rank is of another host, whose clock is ahead. Written as the injected
// library would have (wire/native.hpp, wire/gpu.hpp).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "base/fs.hpp"
#include "wire/gpu.hpp"
#include "wire/native.hpp"

namespace {

namespace gpu = rangescope::wire::gpu;
namespace native = rangescope::wire::native;
constexpr std::int64_t kBegin = 1'000'000'000'000, kUtc = 1'700'000'000'000'000'000;
constexpr std::uint32_t kLayers = 40, kKernels = 20, kKinds = 60, kNccl = 1;

class Bytes {
 public:
  std::string bytes;

  template <class T>
  void put(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  /// A record and a text behind it, padded.
  template <class T>
  void text(T record, std::string_view text) {
    record.head.words = static_cast<std::uint16_t>((sizeof record + text.size() + 7) / 8);
    put(record);
    bytes += text;
    bytes.resize((bytes.size() + 7) / 8 * 8);
  }
};

class Rank {
 public:
  Rank(std::uint32_t rank, std::uint32_t world)
      : rank_(rank), world_(world), random_(rank), ahead_(rank % 4 == 3 ? 400'000 : 0) {
    trace_.text(native::Text{{native::Type::kDomain, 0, 0, kNccl}, 4}, "NCCL");
    for (const char* name :
         {"step", "wait", "ncclAllReduce", "NCCL communicator ID", "Message size [bytes]"})
      string(name);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer)
      string("layer_" + std::to_string(layer));
    trace_.put(native::Schema{{native::Type::kSchema, 0, 6, 1}, 2});
    trace_.put(native::SchemaEntry{4, 1, 8, 0, 0});
    trace_.put(native::SchemaEntry{5, 1, 8, 0, 8});
    info(gpu::Info{{gpu::Type::kInfo, 0, 0, 0}, 0, 0}, std::string_view("clock\0callback", 14));
    info(gpu::Name{{gpu::Type::kApi, 0, 0, 1}, 0, 0}, "cudaLaunchKernel");
    info(gpu::Name{{gpu::Type::kApi, 0, 0, 2}, 0, 0}, "cudaStreamSynchronize");
    gpu::Device device{{gpu::Type::kDevice, 0, 0, 0},
                       {},
                       1ull << 37,
                       1 << 25,
                       4'000'000'000'000,
                       1'000'000'000,
                       9,
                       0,
                       132,
                       4};
    device.uuid[0] = static_cast<std::uint8_t>(rank + 1);
    gpu_.text(device, "H200");
    gpu_.put(gpu::Context{{gpu::Type::kContext, 0, 3, 1}, 0, 7, 0, 0});
    gpu_.put(gpu::Stream{{gpu::Type::kStream, 0, 3, 0}, 0, 1, 7, 0});
    for (std::uint32_t kind = 0; kind <= kKinds; ++kind) {
      info(gpu::Name{{gpu::Type::kName, 0, 0, kind + 1}, 0, 0},
           kind < kKinds ? "_Z7gemm_" + std::to_string(10 + kind % 30) + "Pf"
                         : "ncclDevKernel_AllReduce");
      gpu_.put(gpu::KernelKind{{gpu::Type::kKind, 0, 8, kind},
                               kind + 1,
                               0,
                               {64 + kind, 1, 1},
                               {256, 1, 1},
                               {0, 0, 0},
                               32,
                               0,
                               0});
    }
  }

  /// `meet` is when all ranks leave the AllReduce of a step.
  void step(std::int64_t meet) {
    push(1, at_);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      push(6 + layer, at_);
      for (std::uint32_t k = 0; k < kKernels; ++k) {
        const std::int64_t start = std::max(at_ + 6000, busy_);
        busy_ = start + 3000 + random_() % 2000;
        kernel((layer * kKernels + k) % kKinds, at_, start, busy_);
        at_ += 4500 + random_() % 500;
      }
      pop(at_, 0);
    }
    push(2, at_);
    call(2, at_, busy_);
    at_ = std::max(at_, busy_) + 1000;
    pop(at_, 0);
    native::RecordHeader head{native::Type::kPush, native::kHasScope, 3, 3};
    trace_.put(native::Timed{head, moment(at_)});
    trace_.put(native::Scope{kNccl, 0});
    trace_.put(native::StructuredPayload{{native::Type::kPayload, 0, 4, 1}, kNccl, 16});
    trace_.put(std::uint64_t{0xabc});
    trace_.put(std::uint64_t{8 << 20});
    kernel(kKinds, at_ + 500, at_ + 9000, meet);
    pop(at_ + 7000, kNccl);
    at_ = busy_ = meet;
    pop(at_, 0);
    at_ += 2000;
  }
  [[nodiscard]] std::int64_t ready() const { return at_; }

  /// Bytes written, 0 where that failed.
  std::size_t write(const std::filesystem::path& run) {
    const std::string pid = std::to_string(1000 + rank_), number = std::to_string(rank_);
    native::FileHeader file{};
    std::memcpy(file.magic, native::kMagic, sizeof file.magic);
    file.major = native::kMajor, file.minor = native::kMinor, file.header_bytes = native::kPage;
    file.pid = 1000 + rank_, file.parent_pid = 1;
    file.monotonic_ns = kBegin, file.realtime_ns = kUtc + ahead_, file.end_ns = moment(at_);
    file.first_range_id = 1, file.rank_plus_1 = rank_ + 1, file.local_rank_plus_1 = rank_ + 1,
    file.world_size = world_;
    Bytes trace;
    trace.put(file);
    const std::size_t size =
        (sizeof(native::ChunkHeader) + trace_.bytes.size() + 8 + native::kPage - 1) / native::kPage;
    trace.put(
        native::ChunkHeader{native::kChunkMagic, 0, 0, 1000 + rank_, size * native::kPage, {}});
    trace.bytes += trace_.bytes;
    trace.bytes.resize((size + 1) * native::kPage);
    info(gpu::Info{{gpu::Type::kInfo, 0, 0, 0}, 0, 0}, std::string_view("end\0clean", 9));
    Bytes work;
    gpu::FileHeader head{
        {}, gpu::kVersion, sizeof(gpu::FileHeader), 1000 + rank_, 130000, kBegin, kUtc + ahead_};
    std::memcpy(head.magic, gpu::kMagic, sizeof head.magic);
    work.put(head);
    work.put(gpu::BlockHeader{gpu::kBlockMagic,
                              static_cast<std::uint32_t>(gpu_.bytes.size()),
                              gpu::checksum(gpu_.bytes.data(), gpu_.bytes.size())});
    work.bytes += gpu_.bytes;
    std::filesystem::create_directories(run / "native");
    const std::string host = ahead_ > 0 ? "node1" : "node0";
    for (
        const auto& [path, text] :
        {std::pair{"native/" + pid + ".0.rstrace", trace.bytes},
         {"native/" + pid + ".gpu", work.bytes},
         {"status.json",
          R"({"schema": "rangescope.status/1", "state": "done", "outcome": "ok", "exit_code": 0})"},
         {"manifest.json", R"({"schema": "rangescope.run/1", "id": "rank-)" + number + "\"}"},
         {"rank.json",
          R"({"schema": "rangescope.rank/1", "job": "bench", "rank": )" + number +
              R"(, "local_rank": )" + number + R"(, "world_size": )" + std::to_string(world_) +
              R"(, "host": ")" + host + "\"}"}})
      if (!rangescope::base::write_file(run / path, text))
        return 0;
    return trace.bytes.size() + work.bytes.size();
  }

 private:
  [[nodiscard]] static std::int64_t moment(std::int64_t at) { return kBegin + at; }
  void string(std::string_view text) {
    trace_.text(native::Text{{native::Type::kString, 0, 0, ++strings_}, text.size()}, text);
  }
  template <class T>
  void info(T record, std::string_view text) {
    record.bytes = static_cast<std::uint32_t>(text.size());
    gpu_.text(record, text);
  }
  void push(std::uint32_t name, std::int64_t at) {
    trace_.put(native::Timed{{native::Type::kPush, 0, 2, name}, moment(at)});
  }
  void pop(std::int64_t at, std::uint32_t domain) {
    trace_.put(native::Timed{{native::Type::kPop, 0, 2, domain}, moment(at)});
  }
  void call(std::uint8_t api, std::int64_t start, std::int64_t end) {
    const auto ns = static_cast<std::uint32_t>(std::max<std::int64_t>(end - start, 500));
    gpu_.put(gpu::Launch{{gpu::Type::kLaunch, api, 3, ++calls_}, moment(start), ns, 1000 + rank_});
  }
  void kernel(std::uint32_t kind, std::int64_t launched, std::int64_t start, std::int64_t end) {
    call(1, launched, launched + 4000);
    gpu_.put(gpu::Kernel{{gpu::Type::kKernel, 0, 3, calls_},
                         moment(start),
                         static_cast<std::uint32_t>(end - start),
                         kind});
  }

  std::uint32_t rank_, world_, strings_ = 0, calls_ = 0;
  std::mt19937 random_;
  std::int64_t ahead_, at_ = 1000, busy_ = 0;
  Bytes trace_, gpu_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4)
    return 64;
  const std::filesystem::path folder(argv[1]);
  const auto world = static_cast<std::uint32_t>(std::atoi(argv[2])),
             steps = static_cast<std::uint32_t>(std::atoi(argv[3])) / (kLayers * kKernels + 1);
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    ranks.emplace_back(rank, world);
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::int64_t meet = 0;
    for (const Rank& rank : ranks)
      meet = std::max(meet, rank.ready());
    meet += 5'000'000;  // later than any of them is ready
    for (Rank& rank : ranks)
      rank.step(meet);
  }
  std::filesystem::create_directories(folder);
  if (!rangescope::base::write_file(
          folder / "job.json",
          R"({"schema": "rangescope.job/1", "name": "bench", "launcher": "", "key": "", )"
          R"("world_size": )" +
              std::to_string(world) + R"(, "profiled": null, "started_unix_ns": 1})"))
    return 74;
  std::size_t bytes = 0;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const std::size_t written = ranks[rank].write(folder / ("rank-" + std::to_string(rank)));
    if (written == 0)
      return 74;
    bytes += written;
  }
  std::printf("%zu\n", bytes);
}
