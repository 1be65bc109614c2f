#include "report/document/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

/// A logarithmic axis over whole decades.
struct Axis {
  double low, high;  ///< exponents of 10
  double from_px, to_px;
  Axis(double min_value, double max_value, double axis_from_px, double axis_to_px)
      : low(std::floor(std::log10(min_value))),
        high(std::ceil(std::log10(max_value))),
        from_px(axis_from_px),
        to_px(axis_to_px) {
    if (high <= low)
      high = low + 1;
  }
  [[nodiscard]] double px(double value) const {
    return from_px + (to_px - from_px) * (std::log10(value) - low) / (high - low);
  }
};

std::string svg_start(const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n<title>{}</title>\n"
      "<text x=\"8\" y=\"20\" font-size=\"14\">{}</text>\n",
      kWidth,
      kHeight,
      markup_escaped(title),
      markup_escaped(title));
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view stroke) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n",
      x1,
      y1,
      x2,
      y2,
      stroke);
}

std::string svg_text(double x, double y, std::string_view anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                     x,
                     y,
                     anchor,
                     markup_escaped(text));
}

struct Dot {
  std::string name;
  const model::RooflinePoint* point;
};

void add_dots(const std::string& name,
              const std::vector<model::RooflinePoint>& points,
              std::vector<Dot>& dots) {
  for (const model::RooflinePoint& point : points) {
    const bool has_axes = point.intensity > 0 && point.flop_per_s > 0;
    if (point.level == "dram" && has_axes)
      dots.push_back({name, &point});
  }
}

/// DRAM points of the regions over all processes.
std::vector<Dot> region_dots(const model::Report& report) {
  std::vector<Dot> dots;
  for (const model::Region& region : report.regions) {
    const bool is_aggregate = !region.process && !region.thread;
    if (is_aggregate)
      add_dots(model::path_text(region), region.roofline, dots);
  }
  return dots;
}

/// DRAM points of the kernels with counters, most time first.
std::vector<Dot> kernel_dots(const model::Report& report) {
  std::vector<Dot> dots;
  for (const model::KernelCounters& kernel : report.kernel_counters)
    add_dots(kernel.name, kernel.roofline, dots);
  return dots;
}

/// What the axes have to show.
struct Extent {
  double min_intensity, max_intensity, min_flop_per_s, max_flop_per_s;

  explicit Extent(const model::RooflinePoint& point)
      : min_intensity(point.intensity),
        max_intensity(point.intensity),
        min_flop_per_s(point.flop_per_s),
        max_flop_per_s(point.flop_per_s) {}

  void include(const model::RooflinePoint& point) {
    min_intensity = std::min(min_intensity, point.intensity);
    max_intensity = std::max(max_intensity, point.intensity);
    min_flop_per_s = std::min(min_flop_per_s, point.flop_per_s);
    max_flop_per_s = std::max({max_flop_per_s, point.flop_per_s, point.peak_flop_per_s});
    if (has_roof(point))  // its ridge too
      max_intensity = std::max(max_intensity, 2 * point.peak_flop_per_s / point.peak_bytes_per_s);
  }

  static bool has_roof(const model::RooflinePoint& point) {
    return point.peak_flop_per_s > 0 && point.peak_bytes_per_s > 0;
  }
};

constexpr double kFigureBottom = kHeight - kBottom, kFigureRight = kWidth - kRight;

/// Lines and labels at each decade.
std::string decade_lines(const Axis& x, const Axis& y) {
  constexpr std::string_view kGrey = "#dddddd";
  std::string svg;
  for (double decade = x.low; decade <= x.high; ++decade) {
    const double value = std::pow(10, decade), px = x.px(value);
    svg += svg_line(px, kTop, px, kFigureBottom, kGrey);
    svg += svg_text(px, kFigureBottom + 16, "middle", fmt::format("{:g}", value));
  }
  for (double decade = y.low; decade <= y.high; ++decade) {
    const double px = y.px(std::pow(10, decade));
    svg += svg_line(kFigureLeft, px, kFigureRight, px, kGrey);
    svg += svg_text(kFigureLeft - 6, px + 4, "end", fmt::format("1e{:g}", decade));
  }
  return svg;
}

/// The roof of a precision: memory bandwidth up to the ridge, then the peak of FLOP/s.
std::string roof_lines(const Axis& x,
                       const Axis& y,
                       double flop_per_s,
                       double bytes_per_s,
                       const std::string& precision) {
  constexpr std::string_view kDark = "#444444";
  const double ridge = flop_per_s / bytes_per_s;
  const double start = std::max(std::pow(10, x.low), std::pow(10, y.low) / bytes_per_s);
  const double ridge_px = x.px(ridge), peak_px = y.px(flop_per_s);
  std::string svg = svg_line(x.px(start), y.px(start * bytes_per_s), ridge_px, peak_px, kDark);
  svg += svg_line(ridge_px, peak_px, kFigureRight, peak_px, kDark);
  return svg + svg_text(kFigureRight, peak_px - 4, "end", precision);
}

std::string dot_circle(const Axis& x, const Axis& y, const Dot& dot, bool is_named) {
  constexpr std::size_t kMaxName = 40;
  const double x_px = x.px(dot.point->intensity), y_px = y.px(dot.point->flop_per_s);
  const std::string circle = fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" "
      "fill=\"#3b6ea5\"><title>{}</title></circle>\n",
      x_px,
      y_px,
      markup_escaped(dot.name));
  if (!is_named)
    return circle;
  return circle + svg_text(x_px + 7, y_px + 4, "start", dot.name.substr(0, kMaxName));
}

/// Dots under their roofs; the first `max_named` have their names.
std::string roofline_of(const std::vector<Dot>& points,
                        const std::string& title,
                        std::size_t max_named) {
  if (points.empty())
    return {};
  Extent extent(*points.front().point);
  std::map<std::pair<double, double>, std::string> roofs;  // precision by FLOP/s and bytes/s
  for (const Dot& dot : points) {
    const model::RooflinePoint& point = *dot.point;
    extent.include(point);
    if (Extent::has_roof(point))
      roofs[{point.peak_flop_per_s, point.peak_bytes_per_s}] = point.precision;
  }
  const Axis x(extent.min_intensity, extent.max_intensity, kFigureLeft, kFigureRight);
  const Axis y(extent.min_flop_per_s, extent.max_flop_per_s, kFigureBottom, kTop);
  std::string svg = svg_start(title);
  svg += decade_lines(x, y);
  svg += svg_text(kWidth / 2, kHeight - 12, "middle", "FLOP per byte");
  for (const auto& [peaks, precision] : roofs)
    svg += roof_lines(x, y, peaks.first, peaks.second, precision);
  for (std::size_t i = 0; i < points.size(); ++i)
    svg += dot_circle(x, y, points[i], i < max_named);
  return svg + "</svg>\n";
}

/// A bar of `count` out of `largest` between two positions.
std::string bin_bar(double left, double width, std::size_t count, std::size_t largest) {
  const double height =
      (kHeight - kTop - kBottom) * static_cast<double>(count) / static_cast<double>(largest);
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "fill=\"#3b6ea5\"><title>{}</title></rect>\n",
      left,
      kFigureBottom - height,
      width,
      height,
      count);
}

/// The axis below the bars, the count of the largest, and what was counted.
std::string bin_axes(std::size_t largest, const std::string& caption) {
  std::string svg = svg_line(kFigureLeft, kFigureBottom, kFigureRight, kFigureBottom, "#444444");
  svg += svg_text(kFigureLeft - 6, kTop + 10, "end", std::to_string(largest));
  return svg + svg_text(kWidth / 2, kHeight - 12, "middle", caption);
}

}  // namespace

std::string roofline_figure(const model::Report& report) {
  const std::vector<Dot> dots = region_dots(report);
  return roofline_of(dots, "Roofline: FLOP/s by FLOP per byte of DRAM", dots.size());
}

std::string kernel_roofline_figure(const model::Report& report) {
  constexpr std::size_t kMaxNamed = 8;
  return roofline_of(kernel_dots(report), "Kernels: FLOP/s by FLOP per byte of DRAM", kMaxNamed);
}

std::string distribution_figure(const std::string& title,
                                const std::string& unit,
                                std::span<const double> values) {
  constexpr std::size_t kBins = 20;
  if (values.size() < 2)
    return {};
  const auto [smallest, largest] = std::ranges::minmax(values);
  const double bin_width = largest > smallest ? (largest - smallest) / kBins : 1;
  std::vector<std::size_t> counts(kBins);
  for (const double value : values) {
    const auto bin = static_cast<std::size_t>((value - smallest) / bin_width);
    ++counts[std::min(kBins - 1, bin)];
  }
  const std::size_t largest_count = std::ranges::max(counts);
  const double width = (kWidth - kFigureLeft - kRight) / kBins;
  std::string svg = svg_start(title);
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const double left = kFigureLeft + width * static_cast<double>(bin);
    svg += bin_bar(left, width - 1, counts[bin], largest_count);
    const double bin_start = smallest + bin_width * static_cast<double>(bin);
    if (bin % 4 == 0)
      svg += svg_text(left, kFigureBottom + 16, "start", fmt::format("{:.3g}", bin_start));
  }
  std::string caption = base::counted(values.size(), "kernel") + " by " + title;
  if (!unit.empty())
    caption += ", " + unit;
  return svg + bin_axes(largest_count, caption) + "</svg>\n";
}

std::string histogram_figure(const std::string& title, std::span<const double> durations_ns) {
  constexpr double kBinsPerDecade = 5;
  std::map<int, std::size_t> bins;
  std::size_t calls = 0;
  for (const double duration_ns : durations_ns) {
    if (!(duration_ns > 0) || !std::isfinite(duration_ns))
      continue;
    ++bins[static_cast<int>(std::floor(kBinsPerDecade * std::log10(duration_ns)))];
    ++calls;
  }
  if (calls < 2)
    return {};
  const int first = bins.begin()->first, last = bins.rbegin()->first;
  std::size_t largest = 0;
  for (const auto& [bin, count] : bins)
    largest = std::max(largest, count);
  const double width = (kWidth - kFigureLeft - kRight) / (last - first + 1);
  const bool labels_all = last - first < 12;
  std::string svg = svg_start(title);
  for (const auto& [bin, count] : bins) {
    const double left = kFigureLeft + width * (bin - first);
    svg += bin_bar(left, std::max(1.0, width - 1), count, largest);
    const bool has_label = labels_all || (bin - first) % 5 == 0;
    const double bin_start_ns = std::pow(10, bin / kBinsPerDecade);
    if (has_label)
      svg += svg_text(left, kFigureBottom + 16, "start", base::format_ns(bin_start_ns));
  }
  const std::string caption = base::counted(calls, "call") + " by duration";
  return svg + bin_axes(largest, caption) + "</svg>\n";
}

std::string bars_figure(const std::string& title,
                        std::span<const std::pair<std::string, double>> ns) {
  constexpr double kRow = 28, kLeft = 220, kBar = 380;
  constexpr std::size_t kMaxName = 30;
  const double longest_ns = ns.empty() ? 1 : ns.front().second;
  std::string svg = svg_start(title);
  for (std::size_t i = 0; i < ns.size(); ++i) {
    const auto& [name, value] = ns[i];
    const double y = kTop + kRow * static_cast<double>(i);
    const double width = kBar * value / longest_ns;
    std::string label = name;
    if (name.size() > kMaxName)
      label = "..." + name.substr(name.size() - (kMaxName - 3));
    svg += svg_text(kLeft - 8, y + 14, "end", label);
    svg +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"18\" fill=\"#3b6ea5\"/>\n",
                    kLeft,
                    y,
                    width);
    svg += svg_text(kLeft + width + 6, y + 14, "start", base::format_ns(value));
  }
  return svg + "</svg>\n";
}

}  // namespace rangescope::report
