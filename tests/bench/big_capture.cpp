// A native capture of many short ranges, to time its report: big_capture FILE MEGABYTES. Prints the
// truth as JSON: of each path of ranges the number, the sums of its wall time with and without its
// children, least, median, 95th percentile and most, counted while the file is written.
//
// Two threads push without pause, as wire/native.hpp has it: `step` holds 20 times `layer`, which
// holds `gemm` and `norm`; a range takes 16 bytes. Lengths are pseudo-random, below 65,536 ns, so
// that every quantile is known exactly.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "wire/native.hpp"

namespace {

namespace native = rangescope::wire::native;
constexpr std::int64_t kBegin = 1'000'000'000'000;
constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr const char* kNames[] = {"step", "layer", "gemm", "norm"};

struct Path {
  std::uint64_t count = 0, inclusive = 0, exclusive = 0;
  std::vector<std::uint64_t> lengths = std::vector<std::uint64_t>(1 << 20);
};

double quantile(const Path& path, double p) {
  const double place = p * static_cast<double>(path.count - 1);
  const auto at = [&](std::uint64_t wanted) {
    std::uint64_t seen = 0;
    for (std::size_t length = 0; length < path.lengths.size(); ++length)
      if ((seen += path.lengths[length]) > wanted)
        return static_cast<double>(length);
    return 0.0;
  };
  const auto low = static_cast<std::uint64_t>(place);
  const double below = at(low), above = at(std::min(low + 1, path.count - 1));
  return below + (place - static_cast<double>(low)) * (above - below);
}

class Thread {
 public:
  Thread(std::FILE* file, std::uint32_t stream, Path* paths)
      : file_(file), stream_(stream), paths_(paths) {
    chunk_.reserve(kChunk);
    random_ += stream;
  }

  void step() {
    const std::int64_t begin = push(0);
    std::int64_t layers = 0;
    for (int i = 0; i < 20; ++i) {
      const std::int64_t layer = push(1);
      const std::int64_t gemm = leaf(2, 40 + draw(2000)), norm = leaf(3, 20 + draw(100));
      const std::int64_t took = pop(draw(50)) - layer;
      add(1, took, took - gemm - norm);
      layers += took;
    }
    const std::int64_t took = pop(draw(500)) - begin;
    add(0, took, took - layers);
  }
  void close() {
    if (chunk_.empty())
      return;
    chunk_.resize(kChunk);
    if (std::fwrite(chunk_.data(), 1, kChunk, file_) != kChunk)
      std::exit(1);
    chunk_.clear();
  }

 private:
  std::uint32_t draw(std::uint32_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>((random_ >> 33) % below);
  }
  template <class T>
  void put(const T& value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    chunk_.insert(chunk_.end(), bytes, bytes + sizeof value);
  }
  void room() {
    if (!chunk_.empty() && chunk_.size() + 64 <= kChunk)
      return;
    close();
    put(native::ChunkHeader{native::kChunkMagic, stream_, sequence_++, 100 + stream_, kChunk, {}});
    latest_ = 0;
    if (sequence_ > 1)
      return;
    for (std::uint32_t name = 0; name < 4; ++name) {
      const std::size_t bytes = std::strlen(kNames[name]);
      put(native::Text{{native::Type::kString, 0, 3, name + 1}, bytes});
      char text[8] = {};
      std::memcpy(text, kNames[name], bytes);
      put(text);
    }
  }
  std::int64_t push(std::uint32_t name) {
    at_ += 5 + draw(40);
    room();
    if (latest_ == 0)
      put(native::Timed{{native::Type::kPush, 0, 2, name + 1}, at_});
    else
      put(native::RecordHeader{
          native::Type::kShortPush,
          0,
          1,
          native::ShortPush{static_cast<std::uint32_t>(at_ - latest_), name + 1}.value()});
    return latest_ = at_;
  }
  std::int64_t pop(std::uint32_t after) {
    at_ += after;
    room();
    if (latest_ == 0)
      put(native::Timed{{native::Type::kPop, 0, 2, 0}, at_});
    else
      put(native::RecordHeader{
          native::Type::kShortPop, 0, 1, static_cast<std::uint32_t>(at_ - latest_)});
    return latest_ = at_;
  }
  std::int64_t leaf(std::uint32_t name, std::uint32_t length) {
    const std::int64_t begin = push(name), took = pop(length) - begin;
    add(name, took, took);
    return took;
  }
  void add(std::uint32_t path, std::int64_t inclusive, std::int64_t exclusive) {
    ++paths_[path].count;
    paths_[path].inclusive += static_cast<std::uint64_t>(inclusive);
    paths_[path].exclusive += static_cast<std::uint64_t>(exclusive);
    ++paths_[path].lengths[static_cast<std::size_t>(inclusive)];
  }

  std::FILE* file_;
  std::uint32_t stream_, sequence_ = 0;
  Path* paths_;
  std::vector<char> chunk_;
  std::int64_t at_ = kBegin, latest_ = 0;
  std::uint64_t random_ = 88172645463325252u;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3)
    return 64;
  std::FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr)
    return 74;
  native::FileHeader header{};
  std::memcpy(header.magic, native::kMagic, sizeof header.magic);
  header.major = native::kMajor;
  header.header_bytes = native::kPage;
  header.pid = 42;
  header.monotonic_ns = kBegin;
  header.realtime_ns = 1'700'000'000'000'000'000;
  std::fwrite(&header, 1, sizeof header, file);
  std::vector<Path> paths(4);
  const auto most = std::strtol(argv[2], nullptr, 10) * 1'000'000 - 2 * static_cast<long>(kChunk);
  Thread one(file, 0, paths.data()), other(file, 1, paths.data());
  while (std::ftell(file) < most) {
    one.step();
    other.step();
  }
  one.close();
  other.close();
  if (std::fclose(file) != 0)
    return 74;
  std::printf("[");
  for (std::size_t p = 0; p < paths.size(); ++p) {
    const auto& lengths = paths[p].lengths;
    const auto least = std::find_if(lengths.begin(), lengths.end(), [](auto n) { return n > 0; }) -
                       lengths.begin();
    const auto most_ns =
        lengths.rend() -
        std::find_if(lengths.rbegin(), lengths.rend(), [](auto n) { return n > 0; });
    std::printf(
        "%s{\"name\": \"%s\", \"occurrences\": %llu, \"inclusive\": %llu, \"exclusive\": %llu, "
        "\"min\": %td, "
        "\"median\": %.17g, \"p95\": %.17g, \"max\": %td}",
        p == 0 ? "" : ", ",
        kNames[p],
        static_cast<unsigned long long>(paths[p].count),
        static_cast<unsigned long long>(paths[p].inclusive),
        static_cast<unsigned long long>(paths[p].exclusive),
        least,
        quantile(paths[p], 0.5),
        quantile(paths[p], 0.95),
        most_ns - 1);
  }
  std::printf("]\n");
}
