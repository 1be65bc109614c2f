// Python frames of a sample, from those that were read a moment later: functions that were called
// since are taken off, and those that have returned since are put back below the function that
// calls them. Who calls whom is known from all frames that were read.
#include <algorithm>

#include "sample/cpu/python.hpp"

namespace rangescope::sample::cpu {
namespace {

/// Of functions whose callers are known, and of the callers of each.
constexpr std::size_t kMostCalled = 16 << 10, kMostCallers = 16;
/// A caller seen this many times less often than another may be wrong: frames can change while
/// they are read.
constexpr std::uint32_t kRareCaller = 16;
/// Functions that have returned since a sample.
constexpr std::size_t kMostReturned = 16;

}  // namespace

const PythonCode* Python::code_with(std::uint64_t instruction) const {
  const auto after = by_instruction_.upper_bound(instruction);
  if (after == by_instruction_.begin())
    return nullptr;
  const PythonCode* code = std::prev(after)->second;
  return instruction < code->end ? code : nullptr;
}

void Python::note_callers(const std::vector<PythonFrame>& frames) {
  if (noted_callers_.size() > kMostCalled)
    noted_callers_.clear();
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    const PythonCode* code = frames[i + 1].code;
    const bool through_c = frames[i].entry;
    std::vector<Caller>& callers = noted_callers_[frames[i].code];
    auto caller = std::ranges::find_if(callers, [&](const Caller& noted) {
      return noted.code == code && noted.through_c == through_c;
    });
    if (caller == callers.end()) {
      if (callers.size() == kMostCallers)
        continue;
      caller = callers.insert(caller, {code, through_c, 0});
    }
    ++caller->count;
  }
}

std::vector<Python::Caller> Python::callers_of(const PythonCode* code) const {
  const auto noted = noted_callers_.find(code);
  if (noted == noted_callers_.end())
    return {};
  std::vector<Caller> callers = noted->second;
  std::uint32_t highest_count = 0;
  for (const Caller& caller : callers)
    highest_count = std::max(highest_count, caller.count);
  std::erase_if(callers,
                [&](const Caller& caller) { return caller.count < highest_count / kRareCaller; });
  return callers;
}

// Between the function that ran and a frame that is still there, each function has one caller, or
// which of them it was is not known.
bool Python::go_back(const PythonCode& running,
                     std::size_t calls,
                     std::vector<PythonFrame>& frames) const {
  std::vector<std::size_t> calls_from(frames.size() + 1);  // of a frame and its callers
  for (std::size_t i = frames.size(); i-- > 0;)
    calls_from[i] = calls_from[i + 1] + (frames[i].entry ? 1 : 0);
  const auto keep_from = [&](std::size_t first) {
    if (first > 0)
      frames[first].line = 0;  // it was read at the call that came later
    frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(first));
  };
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].code != &running || calls_from[i] != calls)
      continue;
    keep_from(i);
    return true;
  }
  std::vector<PythonFrame> returned;
  std::size_t calls_of_returned = 0;
  for (const PythonCode* code = &running; returned.size() < kMostReturned;) {
    const std::vector<Caller> callers = callers_of(code);
    if (callers.empty())
      return false;
    for (const Caller& caller : callers) {
      const std::size_t inner_calls = calls_of_returned + (caller.through_c ? 1 : 0);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        if (frames[i].code != caller.code || calls_from[i] + inner_calls != calls)
          continue;
        returned.push_back({code, caller.through_c, 0});
        keep_from(i);
        frames.front().line = 0;
        frames.insert(frames.begin(), returned.begin(), returned.end());
        return true;
      }
    }
    if (callers.size() > 1)
      return false;
    const Caller only = callers.front();
    returned.push_back({code, only.through_c, 0});
    if (only.through_c)
      ++calls_of_returned;
    code = only.code;
  }
  return false;
}

}  // namespace rangescope::sample::cpu
