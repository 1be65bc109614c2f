// Every kind of NVTX range that a CPU program can make. Each is timed by the program as well, just
// inside and just outside of its two NVTX calls, and at the end the medians are printed, a line a
// range: "domain TAB kind TAB path TAB inside_ns TAB outside_ns", paths joined by ">". A profiler's
// durations lie between the two on any machine, however busy.
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void spin(int microseconds) {
  const auto end = Clock::now() + std::chrono::microseconds(microseconds);
  while (Clock::now() < end) {
  }
}

struct Durations {
  std::vector<long long> inside_ns, outside_ns;
};

/// By "domain TAB kind TAB path". The threads take turns, so it needs no lock.
std::map<std::string, Durations> durations;

/// Runs `open`, `body` and `close`, and notes how long it took with and without the two calls.
template <class Open, class Body, class Close>
void timed(const std::string& key, Open open, Body body, Close close) {
  const auto before_open = Clock::now();
  open();
  const auto after_open = Clock::now();
  body();
  const auto before_close = Clock::now();
  close();
  const auto after_close = Clock::now();
  const auto ns = [](auto duration) { return std::chrono::nanoseconds(duration).count(); };
  durations[key].inside_ns.push_back(ns(before_close - after_open));
  durations[key].outside_ns.push_back(ns(after_close - before_open));
}

/// A push/pop range of the default domain.
template <class Body>
void pushed(const char* name, const std::string& path, Body body) {
  timed(
      "\tpush_pop\t" + path, [&] { nvtxRangePushA(name); }, body, [] { nvtxRangePop(); });
}

long long median(std::vector<long long> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

nvtxEventAttributes_t attributes(const char* text, unsigned color) {
  nvtxEventAttributes_t a{};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = text;
  a.colorType = NVTX_COLOR_ARGB;
  a.color = color;
  return a;
}

void compute(nvtxDomainHandle_t domain, nvtxStringHandle_t registered) {
  const nvtxEventAttributes_t colored = attributes("colored", 0xff00ff00);
  timed(
      "\tpush_pop\tstep>compute>colored",
      [&] { nvtxRangePushEx(&colored); },
      [] { spin(200); },
      [] { nvtxRangePop(); });
  nvtxEventAttributes_t named = attributes("", 0);
  named.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  named.message.registered = registered;
  timed(
      "library\tpush_pop\tregistered",
      [&] { nvtxDomainRangePushEx(domain, &named); },
      [] { spin(150); },
      [&] { nvtxDomainRangePop(domain); });
}

void step(nvtxDomainHandle_t domain, nvtxStringHandle_t registered) {
  pushed("load", "step>load", [] { spin(100); });
  pushed("compute", "step>compute", [&] { compute(domain, registered); });
  timed(
      "\tpush_pop\tstep>wide",
      [] { nvtxRangePushW(L"wide"); },
      [] { spin(50); },
      [] { nvtxRangePop(); });
  nvtxMarkA("mark");
  // A name that stands at two places of one parent is one region.
  pushed("load", "step>load", [] { spin(100); });
}

}  // namespace

int main() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered");
  for (int i = 0; i < 60; ++i) {
    nvtxRangeId_t iteration = 0;
    timed(
        "\tstart_end\titeration",
        [&] { iteration = nvtxRangeStartA("iteration"); },
        [&] { pushed("step", "step", [&] { step(domain, registered); }); },
        [&] { nvtxRangeEnd(iteration); });
  }
  std::thread worker([] {
    for (int i = 0; i < 40; ++i)
      pushed("worker", "worker", [] { pushed("load", "worker>load", [] { spin(120); }); });
  });
  worker.join();
  nvtxDomainDestroy(domain);
  for (const auto& [key, lists] : durations)
    std::printf("%s\t%lld\t%lld\n", key.c_str(), median(lists.inside_ns), median(lists.outside_ns));
  return 0;
}
