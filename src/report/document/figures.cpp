#include "report/document/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {
namespace {

constexpr double kWidth = 720, kHeight = 420, kFigureLeft = 70, kTop = 36, kRight = 20,
                 kBottom = 50;

constexpr std::size_t kEveryName = SIZE_MAX;

/// A logarithmic axis over whole decades.
struct Axis {
  double low, high, from, to;
  Axis(double least, double most, double from_px, double to_px)
      : low(std::floor(std::log10(least))),
        high(std::ceil(std::log10(most))),
        from(from_px),
        to(to_px) {
    if (high <= low) high = low + 1;
  }
  [[nodiscard]] double at(double value) const {
    return from + (to - from) * (std::log10(value) - low) / (high - low);
  }
};

std::string opened(const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n<title>{}</title>\n"
      "<text x=\"8\" y=\"20\" font-size=\"14\">{}</text>\n",
      kWidth, kHeight, markup_escaped(title), markup_escaped(title));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view stroke) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, stroke);
}

std::string words(double x, double y, std::string_view anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     markup_escaped(text));
}

struct Dot {
  std::string name;
  const model::RooflinePoint* point;
};

std::vector<Dot> dots(const model::Report& report) {
  std::vector<Dot> out;
  const auto add = [&](const std::string& name, const std::vector<model::RooflinePoint>& points) {
    for (const model::RooflinePoint& point : points)
      if (point.level == "dram" && point.intensity > 0 && point.flop_per_s > 0)
        out.push_back({name, &point});
  };
  for (const model::Region& region : report.regions)
    if (!region.process && !region.thread) add(model::path_text(region), region.roofline);
  return out;
}

/// Kernels that counters were collected for, those with the most time first.
std::vector<Dot> kernel_dots(const model::Report& report) {
  std::vector<Dot> out;
  for (const model::KernelCounters& kernel : report.kernel_counters)
    for (const model::RooflinePoint& point : kernel.roofline)
      if (point.level == "dram" && point.intensity > 0 && point.flop_per_s > 0)
        out.push_back({kernel.name, &point});
  return out;
}

/// Dots under their roofs; the first `most_named` have their names.
std::string roofline_of(const std::vector<Dot>& all, const std::string& title,
                        std::size_t most_named) {
  if (all.empty()) return {};
  double least = all.front().point->intensity, most = least, slow = all.front().point->flop_per_s,
         fast = slow;
  std::map<std::pair<double, double>, std::string> roofs;
  for (const Dot& dot : all) {
    const model::RooflinePoint& point = *dot.point;
    least = std::min(least, point.intensity), most = std::max(most, point.intensity);
    slow = std::min(slow, point.flop_per_s),
    fast = std::max({fast, point.flop_per_s, point.peak_flop_per_s});
    if (!(point.peak_flop_per_s > 0 && point.peak_bytes_per_s > 0)) continue;
    roofs[{point.peak_flop_per_s, point.peak_bytes_per_s}] = point.precision;
    most = std::max(most, 2 * point.peak_flop_per_s / point.peak_bytes_per_s);
  }
  const Axis x(least, most, kFigureLeft, kWidth - kRight), y(slow, fast, kHeight - kBottom, kTop);
  std::string out = opened(title);
  for (double decade = x.low; decade <= x.high; ++decade)
    out += line(x.at(std::pow(10, decade)), kTop, x.at(std::pow(10, decade)), kHeight - kBottom,
                "#dddddd") +
           words(x.at(std::pow(10, decade)), kHeight - kBottom + 16, "middle",
                 fmt::format("{:g}", std::pow(10, decade)));
  for (double decade = y.low; decade <= y.high; ++decade)
    out += line(kFigureLeft, y.at(std::pow(10, decade)), kWidth - kRight,
                y.at(std::pow(10, decade)), "#dddddd") +
           words(kFigureLeft - 6, y.at(std::pow(10, decade)) + 4, "end",
                 fmt::format("1e{:g}", decade));
  out += words(kWidth / 2, kHeight - 12, "middle", "FLOP per byte");
  for (const auto& [peaks, precision] : roofs) {
    const auto [flop, bytes] = peaks;
    const double low = std::max(std::pow(10, x.low), std::pow(10, y.low) / bytes),
                 ridge = flop / bytes;
    out += line(x.at(low), y.at(low * bytes), x.at(ridge), y.at(flop), "#444444") +
           line(x.at(ridge), y.at(flop), kWidth - kRight, y.at(flop), "#444444") +
           words(kWidth - kRight, y.at(flop) - 4, "end", precision);
  }
  std::size_t named = 0;
  for (const Dot& dot : all) {
    const double dot_x = x.at(dot.point->intensity), dot_y = y.at(dot.point->flop_per_s);
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" "
        "fill=\"#3b6ea5\"><title>{}</title></circle>\n",
        dot_x, dot_y, markup_escaped(dot.name));
    if (named++ < most_named) out += words(dot_x + 7, dot_y + 4, "start", dot.name.substr(0, 40));
  }
  return out + "</svg>\n";
}

}  // namespace

std::string roofline_figure(const model::Report& report) {
  return roofline_of(dots(report), "Roofline: FLOP/s by FLOP per byte of DRAM", kEveryName);
}

std::string kernel_roofline_figure(const model::Report& report) {
  constexpr std::size_t kNamedKernels = 8;
  return roofline_of(kernel_dots(report), "Kernels: FLOP/s by FLOP per byte of DRAM",
                     kNamedKernels);
}

std::string distribution_figure(const std::string& title, const std::string& unit,
                                std::span<const double> values) {
  if (values.size() < 2) return {};
  constexpr std::size_t kBins = 20;
  const auto [least, most] = std::ranges::minmax(values);
  const double bin_width = most > least ? (most - least) / kBins : 1;
  std::vector<std::size_t> bins(kBins);
  for (const double value : values)
    ++bins[std::min(kBins - 1, static_cast<std::size_t>((value - least) / bin_width))];
  const std::size_t fullest = std::ranges::max(bins);
  const double width = (kWidth - kFigureLeft - kRight) / kBins;
  std::string out = opened(title);
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const double left = kFigureLeft + width * static_cast<double>(bin);
    const double height =
        (kHeight - kTop - kBottom) * static_cast<double>(bins[bin]) / static_cast<double>(fullest);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"#3b6ea5\"><title>{}</title></rect>\n",
        left, kHeight - kBottom - height, width - 1, height, bins[bin]);
    if (bin % 4 == 0)
      out += words(left, kHeight - kBottom + 16, "start",
                   fmt::format("{:.3g}", least + bin_width * static_cast<double>(bin)));
  }
  out += line(kFigureLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "#444444");
  out += words(kFigureLeft - 6, kTop + 10, "end", std::to_string(fullest));
  out += words(kWidth / 2, kHeight - 12, "middle",
               base::counted(values.size(), "kernel") + " by " + title +
                   (unit.empty() ? std::string() : ", " + unit));
  return out + "</svg>\n";
}

std::string histogram_figure(const std::string& title, std::span<const double> durations_ns) {
  std::vector<double> values;
  for (const double value : durations_ns)
    if (value > 0 && std::isfinite(value)) values.push_back(value);
  if (values.size() < 2) return {};
  constexpr double kBins = 5;  // a decade
  std::map<int, std::size_t> bins;
  for (const double value : values) ++bins[static_cast<int>(std::floor(kBins * std::log10(value)))];
  const int first = bins.begin()->first, last = bins.rbegin()->first;
  std::size_t most = 0;
  for (const auto& [bin, count] : bins) most = std::max(most, count);
  const double width = (kWidth - kFigureLeft - kRight) / (last - first + 1);
  std::string out = opened(title);
  for (const auto& [bin, count] : bins) {
    const double height =
        (kHeight - kTop - kBottom) * static_cast<double>(count) / static_cast<double>(most);
    const double left = kFigureLeft + width * (bin - first);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"#3b6ea5\"><title>{}</title></rect>\n",
        left, kHeight - kBottom - height, std::max(1.0, width - 1), height, count);
    if ((bin - first) % 5 == 0 || last - first < 12)
      out +=
          words(left, kHeight - kBottom + 16, "start", base::format_ns(std::pow(10, bin / kBins)));
  }
  out += line(kFigureLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "#444444") +
         words(kFigureLeft - 6, kTop + 10, "end", std::to_string(most)) +
         words(kWidth / 2, kHeight - 12, "middle",
               base::counted(values.size(), "call") + " by duration");
  return out + "</svg>\n";
}

std::string bars_figure(const std::string& title,
                        std::span<const std::pair<std::string, double>> ns) {
  constexpr double kRow = 28, kLeft = 220, kBar = 380;
  const double most = ns.empty() ? 1 : ns.front().second;
  std::string out = opened(title);
  for (std::size_t i = 0; i < ns.size(); ++i) {
    const auto& [name, value] = ns[i];
    const double y = kTop + kRow * static_cast<double>(i), width = kBar * value / most;
    out +=
        words(kLeft - 8, y + 14, "end",
              name.size() > 30 ? "..." + name.substr(name.size() - 27) : name) +
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"18\" fill=\"#3b6ea5\"/>\n",
                    kLeft, y, width) +
        words(kLeft + width + 6, y + 14, "start", base::format_ns(value));
  }
  return out + "</svg>\n";
}

}  // namespace rangescope::report
