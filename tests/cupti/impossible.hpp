// Times that cannot be, in records of the stand-in for CUPTI.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace standin {

// STANDIN_IMPOSSIBLE=kernel:backward makes the times of the first kernel impossible: `backward`, it
// ends before it starts; `early`, it starts before its launch; `later` and `past`, it is of another
// clock. So of copy, set and graph.
template <typename Record>
void spoil(Record& record, const char* work) {
  static const std::string wanted = [] {
    const char* text = std::getenv("STANDIN_IMPOSSIBLE");
    return std::string(text != nullptr ? text : "");
  }();
  static bool spoilt = false;
  const std::string beginning = std::string(work) + ':';
  if (spoilt || wanted.rfind(beginning, 0) != 0)
    return;
  spoilt = true;
  const std::string how = wanted.substr(beginning.size());
  constexpr std::uint64_t kEarly_ns = 2'000'000, kHour_ns = 3'600'000'000'000;
  if (how == "backward") {
    const std::uint64_t start = record.start;  // a packed field, which no reference binds to
    record.start = record.end;
    record.end = start;
  }
  if (how == "early") {
    record.start -= kEarly_ns;
    record.end -= kEarly_ns;
  }
  if (how == "later") {
    record.start += kHour_ns;
    record.end += kHour_ns;
  }
  if (how == "past") {
    record.end = record.end - record.start + 1000;
    record.start = 1000;
  }
}

}  // namespace standin
