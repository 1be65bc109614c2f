// Numbers for people: durations, byte counts, rates, shares. The model holds SI; only reports
// format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rangescope::base {

/// `1.234 ms`: three or four significant digits, unit ns, us, ms or s.
[[nodiscard]] std::string format_ns(double nanoseconds);
/// `51.9 ± 2.6 ms`: a duration and its error in one unit, with as many digits as the larger needs
/// and the error has.
[[nodiscard]] std::string format_ns_interval(double nanoseconds, double error_ns);
/// `1.5 GiB`: binary multiples.
[[nodiscard]] std::string format_bytes(double bytes);
/// `12,345` with thousands separators.
[[nodiscard]] std::string format_count(std::int64_t count);
/// `1 kernel`, `12,345 kernels`, `2 copies`: a count with its noun. `plural` is for words that are
/// not the noun alone, as in counted(n, "range has", "ranges have").
[[nodiscard]] std::string counted(std::uint64_t count,
                                  std::string_view singular,
                                  std::string_view plural = {});
/// `12.3 %` from 0.123.
[[nodiscard]] std::string format_share(double share);
/// A value with an SI prefix and its unit: (1.2e12, "FLOP/s") -> `1.20 TFLOP/s`; "" gives a bare
/// number.
[[nodiscard]] std::string format_si(double value, std::string_view unit);

}  // namespace rangescope::base
