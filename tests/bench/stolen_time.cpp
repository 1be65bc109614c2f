// What interrupts take from a program: it reads the clock without pause and adds up the gaps
// between two readings. Usage: stolen_time DEPTH SECONDS: below so many frames of 1 KB. Prints the
// share of the time that gaps of less than a millisecond took; longer ones are other programs'.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Clock = std::chrono::steady_clock;

int spin(double seconds) {
  using namespace std::chrono_literals;
  const Clock::time_point begun = Clock::now();
  const auto end = begun + std::chrono::duration<double>(seconds);
  Clock::duration stolen{};
  long gaps = 0;
  Clock::time_point last = begun;
  while (last < end) {
    const Clock::time_point now = Clock::now();
    if (now - last > 500ns && now - last < 1ms)
      stolen += now - last, ++gaps;
    last = now;
  }
  std::printf(
      "stolen %.4f %% gaps %ld\n",
      100 * std::chrono::duration<double>(stolen) / std::chrono::duration<double>(last - begun),
      gaps);
  return 0;
}

[[gnu::noinline]] int down(int depth, double seconds) {
  volatile char frame[1000];
  std::memset(const_cast<char*>(frame), depth, sizeof frame);
  return (depth > 0 ? down(depth - 1, seconds) : spin(seconds)) + frame[7] - frame[7];
}

}  // namespace

int main(int argc, char** argv) {
  return argc == 3 ? down(std::atoi(argv[1]), std::atof(argv[2])) : 2;
}
