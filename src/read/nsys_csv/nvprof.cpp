#include "read/nsys_csv/nvprof.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "read/csv.hpp"

namespace rangescope::read::nsys_csv {
namespace {

constexpr std::size_t kNumbers = 6;  ///< share, time, calls, average, minimum, maximum

std::string_view word(std::string_view& line) {
  line = base::trim(line);
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view out = line.substr(0, end);
  line = base::trim(line.substr(end));
  return out;
}

/// A number with a point or, in other locales, a comma; nanoseconds where a unit of time stands behind it or in `unit`.
std::optional<double> quantity(std::string_view text, std::string_view unit = {}) {
  const std::size_t letters = std::min(text.find_first_not_of("0123456789.,e+-"), text.size());
  if (letters < text.size()) unit = text.substr(letters);
  const auto value = base::to_double(base::replace_all(text.substr(0, letters), ",", "."));
  if (!value || *value < 0) return std::nullopt;
  for (const auto& [name, scale] : {std::pair{"", 1.0}, {"%", 1.0}, {"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}})
    if (unit == name) return *value * scale;
  return std::nullopt;
}

class Summary {
 public:
  std::string read(std::string_view text) {
    std::size_t at = 0;
    std::uint64_t number = 1;
    for (std::size_t begin = 0; begin < text.size(); begin = at) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = base::trim(text.substr(begin, end - begin));
      at = end + 1;
      if (line.starts_with("==")) {
        in_table_ = false;
        in_ranges_ |= line.find("NVTX result") != std::string_view::npos;
        in_ranges_ &= line.find("Profiling result") == std::string_view::npos;
      } else if (line.starts_with('"') && line.find("\"Time(%)\"") != std::string_view::npos) {
        at = begin;
        csv(text, at, number);
      } else if (line.find("Time(%)") != std::string_view::npos && line.ends_with("Name") &&
                 line.find(',') == std::string_view::npos) {
        in_table_ = true;
        type_ = kGpu;
      } else if (in_table_) {
        printed(line);
      }
    }
    std::string out;
    const auto table = [&](std::string_view report, std::string_view columns, const std::string& rows) {
      if (rows.empty()) return;
      out += "\nProcessing [" + std::string(report) + "]\n\"Time (%)\",\"Total Time (ns)\"," + std::string(columns) +
             '\n' + rows;
    };
    table("cuda_gpu_kern_sum", R"-("Instances","Avg (ns)","Min (ns)","Max (ns)","Name")-", kernels_);
    table("cuda_gpu_mem_time_sum", R"-("Count","Avg (ns)","Min (ns)","Max (ns)","Operation")-", copies_);
    table("nvtx_pushpop_sum", R"-("Instances","Avg (ns)","Min (ns)","Max (ns)","Range")-", ranges_);
    return out;
  }

 private:
  static constexpr std::string_view kGpu = "GPU activities", kRange = "Range";

  /// "GPU activities:  99.94%  1.11524s  301  3.7051ms  3.6928ms  3.7174ms  name"
  void printed(std::string_view line) {
    for (const std::string_view type :
         {kGpu, kRange, std::string_view("API calls"), std::string_view("OpenACC (excl)")})
      if (line.starts_with(type) && line.substr(type.size()).starts_with(':')) {
        type_ = type;
        line.remove_prefix(type.size() + 1);
      }
    std::array<std::optional<double>, kNumbers> numbers;
    for (auto& value : numbers) value = quantity(word(line));
    add(numbers, line);
  }

  /// The rows below a header of --csv, with their row of units.
  void csv(std::string_view text, std::size_t& at, std::uint64_t& number) {
    read::Row row;
    std::vector<std::string> columns, units;
    std::size_t before = at;
    for (; next_row(text, at, number, row); before = at) {
      std::vector<std::string> cells(row.cells.begin(), row.cells.end());
      if (columns.empty()) {
        columns = std::move(cells);
        continue;
      }
      if (cells.size() != columns.size()) break;
      if (units.empty()) {
        units = std::move(cells);
        continue;
      }
      std::array<std::optional<double>, kNumbers> numbers;
      std::string_view name;
      type_ = kGpu;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        constexpr std::array<std::string_view, kNumbers> kNames{"Time(%)", "Time", "Calls", "Avg", "Min", "Max"};
        const auto known = std::find(kNames.begin(), kNames.end(), columns[i]);
        if (known != kNames.end())
          numbers[static_cast<std::size_t>(known - kNames.begin())] = quantity(cells[i], units[i]);
        if (columns[i] == "Name") name = cells[i];
        if (columns[i] == "Type") type_ = cells[i] == kGpu ? kGpu : cells[i] == kRange ? kRange : "";
      }
      add(numbers, name);
    }
    at = std::max(before, at);
  }

  void add(const std::array<std::optional<double>, kNumbers>& numbers, std::string_view name) {
    const bool gpu = type_ == kGpu && !in_ranges_, range = type_ == kRange;
    if ((!gpu && !range) || name.empty() ||
        std::any_of(numbers.begin(), numbers.end(), [](const auto& n) { return !n; }))
      return;
    std::string line;
    for (const auto& number : numbers) line += '"' + std::to_string(std::llround(*number)) + "\",";
    line += '"' + base::replace_all(range ? ':' + std::string(name) : std::string(name), "\"", "\"\"") + "\"\n";
    (range ? ranges_ : name.starts_with("[CUDA mem") ? copies_ : kernels_) += line;
  }

  std::string kernels_, copies_, ranges_;
  std::string_view type_ = kGpu;
  bool in_table_ = false, in_ranges_ = false;
};

}  // namespace

std::string nvprof_as_csv(std::string_view text) {
  return text.find("Time(%)") == std::string_view::npos ? std::string() : Summary().read(text);
}

std::size_t nvprof_results(std::string_view text) {
  std::size_t results = 0;
  for (const std::string_view line : base::split(text, '\n'))
    results += line.starts_with("==") && line.find("Profiling result:") != std::string_view::npos;
  return results;
}

}  // namespace rangescope::read::nsys_csv
