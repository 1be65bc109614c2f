#include "common/ranges.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "common/backend.hpp"

namespace workload {
namespace {

struct Count {
  std::int64_t occurrences = 0;
  std::int64_t kernels = 0;
};

struct Open {
  std::string key;  // path, names separated by '\x1f'
  std::int64_t kernels_before;
};

std::mutex mutex;
std::map<std::string, Count> push_pop, start_end;
thread_local std::vector<Open> stack;

void append_region(
    std::string& out, const std::string& key, const char* kind, const Count& count, bool kernels) {
  if (out.back() != '[')
    out += ',';
  out += "\n  {\"path\": [\"";
  for (const char c : key) {
    if (c == '\x1f') {
      out += "\", \"";
    } else {
      out += c;
    }
  }
  out += std::string("\"], \"domain\": \"\", \"kind\": \"") + kind +
         "\", \"occurrences\": " + std::to_string(count.occurrences) +
         ", \"kernels\": " + (kernels ? std::to_string(count.kernels) : "null") + "}";
}

}  // namespace

Range::Range(const char* name) {
  std::string key = stack.empty() ? name : stack.back().key + '\x1f' + name;
  stack.push_back({std::move(key), launches()});
  nvtxRangePushA(name);
}

Range::~Range() {
  nvtxRangePop();
  const std::lock_guard lock(mutex);
  Count& count = push_pop[stack.back().key];
  ++count.occurrences;
  count.kernels += launches() - stack.back().kernels_before;
  stack.pop_back();
}

Interval::Interval(const char* name) : id_(nvtxRangeStartA(name)) {
  const std::lock_guard lock(mutex);
  ++start_end[name].occurrences;
}

Interval::~Interval() {
  nvtxRangeEnd(id_);
}

std::string truth_json(const std::string& header) {
  const std::lock_guard lock(mutex);
  std::string out = "{" + header + ", \"regions\": [";
  for (const auto& [key, count] : push_pop)
    append_region(out, key, "push_pop", count, launches_are_exact());
  for (const auto& [key, count] : start_end)
    append_region(out, key, "start_end", count, false);
  return out + "\n]}\n";
}

int finish(const std::string& header, bool truth, const std::string& file) {
  if (truth && file.empty()) {
    std::fputs(truth_json(header).c_str(), stdout);
    return 0;
  }
  std::printf("{%s}\n", header.c_str());
  if (truth) {
    std::FILE* out = std::fopen(file.c_str(), "w");
    if (!out || std::fputs(truth_json(header).c_str(), out) < 0 || std::fclose(out) != 0) {
      std::perror(file.c_str());
      return 74;
    }
  }
  return 0;
}

}  // namespace workload
