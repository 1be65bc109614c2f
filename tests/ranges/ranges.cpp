// A program that uses include/rangescope/range.hpp: step > layer (domain LLM) twice with payloads 3
// and 5, one early return. With an argument first two ranges that cross.
#include "rangescope/range.hpp"

#include <cstdio>
#include <memory>

namespace {

int synchronized = 0;

int early(bool leave) {
  const rangescope::Range range("early");
  if (leave)
    return 1;
  return 0;
}

/// As a coroutine does that is resumed inside another range.
void cross() {
  auto outer = std::make_unique<rangescope::Range>("outer");
  auto inner = std::make_unique<rangescope::Range>("inner");
  outer.reset();
  inner.reset();
}

}  // namespace

int main(int count, char**) {
  if (count > 1)
    cross();
  static const rangescope::Domain llm("LLM");
  for (const int tokens : {3, 5}) {
    rangescope::RangeOptions options;
    options.payload = static_cast<std::uint64_t>(tokens);
    const rangescope::Range step("step", options);
    rangescope::RangeOptions inside;
    inside.domain = &llm;
    inside.sync_after = [] { ++synchronized; };
    const rangescope::Range layer("layer", inside);
  }
  const int left = early(true);
  std::printf("%d %d\n", synchronized, left);
  return 0;
}
