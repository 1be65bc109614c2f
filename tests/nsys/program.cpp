// Every kind of NVTX range that a CPU program can make, each of a fixed length: it spins until its
// time is over, so that two runs of the program under two profilers can be compared.
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

void spin(int microseconds) {
  const auto end = Clock::now() + std::chrono::microseconds(microseconds);
  while (Clock::now() < end) {
  }
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

void step(nvtxDomainHandle_t domain, nvtxStringHandle_t registered) {
  nvtxRangePushA("step");
  nvtxRangePushA("load");
  spin(100);
  nvtxRangePop();
  nvtxRangePushA("compute");
  const nvtxEventAttributes_t inner = attributes("colored", 0xff00ff00);
  nvtxRangePushEx(&inner);
  spin(200);
  nvtxRangePop();
  nvtxEventAttributes_t named = attributes("", 0);
  named.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  named.message.registered = registered;
  nvtxDomainRangePushEx(domain, &named);
  spin(150);
  nvtxDomainRangePop(domain);
  nvtxRangePop();
  nvtxRangePushW(L"wide");
  spin(50);
  nvtxRangePop();
  nvtxMarkA("mark");
  nvtxRangePushA("load");  // a name that stands at two places of one parent is one region
  spin(100);
  nvtxRangePop();
  nvtxRangePop();
}

}  // namespace

int main() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered");
  for (int i = 0; i < 60; ++i) {
    const nvtxRangeId_t whole = nvtxRangeStartA("iteration");
    step(domain, registered);
    nvtxRangeEnd(whole);
  }
  std::thread worker([&] {
    for (int i = 0; i < 40; ++i) {
      nvtxRangePushA("worker");
      nvtxRangePushA("load");
      spin(120);
      nvtxRangePop();
      nvtxRangePop();
    }
  });
  worker.join();
  nvtxDomainDestroy(domain);
  return 0;
}
