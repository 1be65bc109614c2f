// main() of a fuzz target where libFuzzer is not at hand: every file of the corpus folder, whole, cut at 50 places, and
// with single bytes changed at 200 places. Deterministic; a crash is the failure. Exit code 1 for an empty corpus.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

void feed(const Bytes& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void replay(const Bytes& whole) {
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    replay(Bytes(std::istreambuf_iterator<char>(in), {}));
    ++files;
  }
  std::printf("%d corpus files replayed\n", files);
  return files > 0 ? 0 : 1;
}
