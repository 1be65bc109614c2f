// What a GPU can do at most: the roofs of the roofline. From conf/device/ (data sheets) or measured
// by `calibrate`.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::model {

struct Peaks {
  std::string id;                  ///< "h200-sxm": name of its file
  std::string name;                ///< "NVIDIA H200 SXM"
  std::vector<std::string> match;  ///< substrings of the device name; the longest that fits wins
  std::string chip;                ///< "GH100"
  std::string source;              ///< data sheet or "measured by rangescope calibrate, 2026-11-21"
  bool measured = false;           ///< on this user's machine, by calibrate; wins over a data sheet
  double memory_bytes_per_s = 0;
  double l2_bytes_per_s = 0;                 ///< 0: unknown
  double host_link_bytes_per_s = 0;          ///< to the CPU's memory, in one direction; 0: unknown
  std::map<std::string, double> flop_per_s;  ///< "fp64 fp32 tensor_bf16 ..." to FLOP/s, dense
};

/// The peaks whose `match` fits `device_name` longest, or nullptr.
[[nodiscard]] const Peaks* find_peaks(std::span<const Peaks> peaks, std::string_view device_name);
/// Bytes per second, of the first of these GPUs whose link is known; 0 where none is.
[[nodiscard]] double host_link_of(std::span<const Peaks> peaks, std::span<const std::string> gpus);

}  // namespace rangescope::model
