// Which context switches are recorded. More than kMost_per_s cost the program more than its samples
// do: then only those of an eightieth of the time, as long as they come so fast. The events stay
// open, for which a switch costs a third of a microsecond: with them closed the kernel no longer
// exchanges the contexts of two threads of one program as a whole, and a switch costs ten times
// that.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rangescope::sample::cpu {

class SwitchWatch {
 public:
  explicit SwitchWatch(std::int64_t now_ns) : since_ns_(now_ns) {}
  /// After each drain, and the records that it had. True where watching begins or ends.
  bool turns(std::int64_t now_ns, std::uint64_t records) {
    records_ += records;
    const std::int64_t passed = now_ns - since_ns_;
    const auto affordable =
        static_cast<std::uint64_t>(kMost_per_s * (static_cast<double>(passed) * 1e-9));
    const bool is_too_fast = records_ > affordable && records_ > kFew;
    const std::int64_t window_ns = has_just_turned() ? kAgain_ns : kWindow_ns;
    const bool ends = on_ && passed >= window_ns && is_too_fast;
    const bool begins = !on_ && passed >= kBlind_ns + kToggles * turning_ns_;
    if (!ends && !begins) {
      if (on_ && passed > 4 * kWindow_ns)
        since_ns_ = now_ns, records_ = 0;
      return false;
    }
    on_ = begins;
    since_ns_ = now_ns;
    records_ = 0;
    return true;
  }
  [[nodiscard]] bool on() const { return on_; }
  /// How soon turns() wants to be asked again.
  [[nodiscard]] std::int64_t patience_ns(std::int64_t limit_ns) const {
    if (on_ && has_just_turned())
      return std::min<std::int64_t>(limit_ns, 1'000'000);
    return limit_ns;
  }
  /// What turning took: with many threads it takes long, and is done less often.
  void turned(std::int64_t now_ns) {
    turning_ns_ = now_ns - since_ns_;
    since_ns_ = turned_ns_ = now_ns;
  }

 private:
  [[nodiscard]] bool has_just_turned() const { return since_ns_ == turned_ns_; }
  static constexpr double kMost_per_s = 40'000;
  static constexpr std::uint64_t kFew = 200;
  static constexpr std::int64_t kWindow_ns = 5'000'000, kAgain_ns = 2'000'000,
                                kBlind_ns = 158'000'000, kToggles = 100;
  bool on_ = true;
  std::int64_t since_ns_, turned_ns_ = -1, turning_ns_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace rangescope::sample::cpu
