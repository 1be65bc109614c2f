// main() of a fuzz target where libFuzzer is not at hand. Every file of the corpus folder, whole,
// cut at 50 places, and with single bytes changed at 200 places; then seven mutators take turns
// over random files. A crash, or an input that takes more than a minute, is the failure, and tells
// how it comes again:
//
//   RANGESCOPE_FUZZ_SEED    of the random numbers (1)
//   RANGESCOPE_FUZZ_ROUNDS  mutated inputs (350)
//
// Exit code 1 for an empty corpus.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

char current[600];  // what is being fed

void on_failure(int signal) {
  (void)!::write(STDERR_FILENO, current, std::strlen(current));
  std::signal(signal == SIGALRM ? SIGABRT : signal, SIG_DFL);
  std::raise(signal == SIGALRM ? SIGABRT : signal);
}

void feed(const Bytes& bytes) {
  ::alarm(60);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ::alarm(0);
}

void replay(const std::string& name, const Bytes& whole) {
  std::snprintf(current, sizeof current, "\nfailed in the replay of %s\n", name.c_str());
  feed(whole);
  for (std::size_t i = 0; i < 50; ++i) {
    feed(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * i / 50)));
  }
  std::uint32_t state = 1;
  for (int i = 0; i < 200 && !whole.empty(); ++i) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator: any will do
    Bytes changed = whole;
    changed[(state >> 8) % changed.size()] ^= static_cast<std::uint8_t>(1 + (state >> 24) % 255);
    feed(changed);
  }
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  static constexpr const char* kNames[] = {
      "flip bits", "truncate", "splice", "duplicate", "lengths", "zero", "swap blocks"};

  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void mutate(std::size_t how, Bytes& bytes, const Bytes& other) {
    const std::size_t times = 1 + below(4);
    for (std::size_t i = 0; i < times && !bytes.empty(); ++i)
      once(how, bytes, other);
  }

 private:
  struct Block {
    std::size_t at, size;
  };
  // Mostly small ones, as records are, and where those begin: at multiples of 1, 8 or 4096.
  Block block(const Bytes& bytes) {
    const std::size_t unit = std::size_t{1} << (below(3) == 0 ? 0 : below(2) == 0 ? 3 : 12);
    const std::size_t at = below(bytes.size()) / unit * unit;
    const std::size_t most = std::min<std::size_t>(bytes.size() - at, std::size_t{1} << below(16));
    return {at, 1 + below(most)};
  }

  void once(std::size_t how, Bytes& bytes, const Bytes& other) {
    const auto [at, size] = block(bytes);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at),
               end = begin + static_cast<std::ptrdiff_t>(size);
    switch (how) {
      case 0:
        for (std::size_t i = 0; i < 1 + size % 8; ++i)
          bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1: bytes.resize(at); break;
      case 2: {
        if (other.empty())
          break;
        const auto [from, length] = block(other);
        const Bytes piece(other.begin() + static_cast<std::ptrdiff_t>(from),
                          below(2) == 0
                              ? other.end()
                              : other.begin() + static_cast<std::ptrdiff_t>(from + length));
        if (below(2) == 0)
          bytes.resize(at);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
        break;
      }
      case 3: {
        const Bytes copy(begin, end);
        for (std::size_t i = 0; i < 1 + below(8); ++i)
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), copy.begin(), copy.end());
        break;
      }
      case 4: lengths(bytes, at); break;
      case 5: std::fill(begin, end, std::uint8_t{0}); break;
      default: {
        const auto [to, length] = block(bytes);
        const std::size_t common = std::min(size, length);
        for (std::size_t i = 0; i < common; ++i)
          std::swap(bytes[at + i], bytes[to + i]);
      }
    }
  }

  // What a count, an offset or a length would be, in either order of bytes.
  void lengths(Bytes& bytes, std::size_t at) {
    const std::uint64_t values[] = {0,
                                    1,
                                    0x7f,
                                    0xff,
                                    0x7fff,
                                    0xffff,
                                    0x7fffffff,
                                    0xffffffff,
                                    0x7fffffffffffffff,
                                    ~0ull,
                                    bytes.size(),
                                    bytes.size() + 1,
                                    std::uint64_t{1} << below(64),
                                    random_()};
    const std::uint64_t value = values[below(std::size(values))];
    const std::size_t width = std::min(std::size_t{1} << below(4), bytes.size() - at);
    const bool big = below(4) == 0;
    for (std::size_t i = 0; i < width; ++i)
      bytes[at + i] = static_cast<std::uint8_t>(value >> 8 * (big ? width - 1 - i : i));
  }

  std::mt19937_64 random_;
};

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2)
    return 64;
  for (const int signal : {SIGSEGV, SIGABRT, SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGALRM})
    std::signal(signal, on_failure);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1]))
    if (entry.is_regular_file())
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>{});
    replay(path.string(), files.back());
  }
  if (files.empty())
    return 1;
  const std::uint64_t seed = number("RANGESCOPE_FUZZ_SEED", 1),
                      rounds = number("RANGESCOPE_FUZZ_ROUNDS", 350);
  Mutator mutator(seed);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::size_t how = round % std::size(Mutator::kNames), file = mutator.below(files.size());
    std::snprintf(current,
                  sizeof current,
                  "\nfailed with RANGESCOPE_FUZZ_SEED=%llu in round %llu: %s of %s\n",
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(round),
                  Mutator::kNames[how],
                  paths[file].c_str());
    Bytes bytes = files[file];
    mutator.mutate(how, bytes, files[mutator.below(files.size())]);
    feed(bytes);
  }
  std::printf("%zu corpus files replayed, %llu mutated inputs of seed %llu\n",
              files.size(),
              static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(seed));
  return 0;
}
