#include "read/ncu/csv/reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/embedded.hpp"
#include "base/find.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/metric_unit.hpp"
#include "read/csv.hpp"
#include "read/index.hpp"
#include "read/ncu/csv/nvtx_cell.hpp"
#include "read/ncu/device.hpp"
#include "read/number.hpp"

RANGESCOPE_EMBED(ncu_labels, RANGESCOPE_TSV);

namespace rangescope::read::ncu_csv {
namespace {

using base::Code;
using base::fail;
using model::kNone;

constexpr std::size_t kSniffed = std::size_t{1} << 20;
constexpr std::uint32_t kAbsent = UINT32_MAX;

enum class Kind : std::uint8_t { kRaw, kDetails, kSummary };

/// Places of the columns that have a meaning; kAbsent where the version or page has none.
struct Columns {
  std::uint32_t id = kAbsent, pid = kAbsent, process = kAbsent, push_pop = kAbsent,
                start_end = kAbsent, kernel = kAbsent, context = kAbsent, stream = kAbsent,
                block = kAbsent, grid = kAbsent, device = kAbsent, capability = kAbsent,
                section = kAbsent, body = kAbsent, metric = kAbsent, unit = kAbsent,
                value = kAbsent, invocations = kAbsent, average = kAbsent, domain = kAbsent,
                summary_ranges = kAbsent;
  std::uint32_t first_metric = kAbsent;  // raw: columns from here on are metrics
};

/// True for the first cells of a header that ncu prints.
bool is_header(const Row& row) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(row.cells, name) != row.cells.end();
  };
  if (row.cells.size() < 5)
    return false;
  const std::string_view first = row.cells[0];
  if (first == "ID")
    return has("Process ID") && has("Kernel Name");
  if (first == "Process ID" || first == "Domain" || first == "Device")
    return has("Kernel Name") && has("Invocations");
  return false;
}

/// The metric of a label in a section ("GPU Speed Of Light Throughput", "Duration" ->
/// "gpu__time_duration.sum"); names and labels that are not known come back as they are, the latter
/// with their section: "Section/Label".
std::string metric_of_label(std::string_view section, std::string_view label) {
  if (label.find("__") != std::string_view::npos) {
    // "Duration (gpu__time_duration.sum)": --print-metric-name label-name, or a label that the tool
    // could not fill in
    const std::size_t open = label.rfind(" (");
    if (label.ends_with(')') && open != std::string_view::npos &&
        label.find("__", open) != std::string_view::npos)
      label = label.substr(open + 2, label.size() - open - 3);
    return std::string(label);
  }
  if (label == "Memory Throughput" && section == "GPU Speed Of Light Throughput")
    return "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
  if (label == "Memory Throughput" && section == "Memory Workload Analysis")
    return "dram__bytes.sum.per_second";
  static const auto labels = base::rows<2>(rangescope_ncu_labels);
  for (const auto& [known, metric] : labels)
    if (known == label)
      return std::string(metric);
  if (section.empty() || section == "Command line profiler metrics")
    return std::string(label);
  return std::string(section) + "/" + std::string(label);
}

class CsvSession {
 public:
  CsvSession(std::string_view text, std::string path, const Options& options)
      : text_(text), path_(std::move(path)), options_(options) {}

  [[nodiscard]] const char* page_name() const {
    if (kind_ == Kind::kRaw)
      return "raw";
    if (kind_ == Kind::kDetails)
      return "details";
    return "summary";
  }

  base::Result<model::Session> read() {
    TRY(find_header());
    TRY(choose_point());
    session_.sources.push_back(
        {path_, "ncu-csv", "Nsight Compute", page_name(), model::Maker::kNcu});
    session_.clock.kind = "none: ncu's CSV has no timeline";
    std::size_t offset = body_;
    std::uint64_t line = body_line_;
    Row row;
    bool units = kind_ == Kind::kRaw;
    while (next_row(text_, offset, line, row, Unquoted::kWhole)) {
      if (foreign(row))
        continue;
      if (row.torn) {
        session_.losses.push_back(
            {"torn_tail",
             1,
             "the file ends inside a row: " + path_ + ":" + std::to_string(row.line)});
        break;
      }
      if (is_header(row)) {  // logs that were appended to
        units = kind_ == Kind::kRaw;
        continue;
      }
      const bool at_end = offset >= text_.size() && text_.back() != '\n';
      if (at_end && (row.cells.size() < names_.size() || text_.back() == ','))
        torn_row_ = row.line;
      if (units) {
        units = false;
        const bool is_units = cell(row, columns_.id).empty() && cell(row, columns_.kernel).empty();
        if (is_units && row.cells.size() >= names_.size()) {
          unit_texts_.assign(row.cells.begin(), row.cells.end());
          continue;
        }
        // ncu scales column by column ("us", "Gbyte/s") unless --print-units base was given, which
        // nothing else tells.
        if (torn_row_ == 0)
          return fail(Code::kBadData,
                      is_units ? "the row of units is shorter than the header"
                               : "the row of units is missing",
                      path_ + ":" + std::to_string(row.line),
                      "Keep the row below the header, which has each column's unit, or give the "
                      "report (.ncu-rep).");
      }
      take(row);
    }
    finish();
    if (session_.measurements.empty()) {
      return fail(Code::kNothingCaptured,
                  "the CSV has a header, but no results",
                  path_ + ":" + std::to_string(header_line_),
                  "If it contains 'No kernels were profiled', ncu's filters matched nothing.");
    }
    return std::move(session_);
  }

 private:
  static std::string_view cell(const Row& row, std::uint32_t column) {
    return base::element_or(row.cells, column, {});
  }

  base::Result<void> find_header() {
    std::size_t offset = text_.starts_with("\xef\xbb\xbf") ? 3 : 0;
    std::uint64_t line = 1;
    Row row;
    while (offset < text_.size()) {
      // the preamble may hold quotes that never close: look line by line
      const std::size_t end = std::min(text_.find('\n', offset), text_.size());
      const std::string_view candidate = text_.substr(offset, end - offset);
      if (candidate.starts_with("\"ID\",") || candidate.starts_with("\"Process ID\",") ||
          candidate.starts_with("\"Domain\",") || candidate.starts_with("\"Device\",")) {
        std::size_t next = offset;
        std::uint64_t now = line;
        if (next_row(text_, next, now, row) && !row.torn && is_header(row)) {
          header_line_ = line;
          body_ = next;
          body_line_ = now;
          return columns(row);
        }
      }
      offset = std::min(end + 1, text_.size());
      ++line;
    }
    return fail(Code::kBadData,
                "no header of ncu's CSV was found",
                path_,
                "Print it with `ncu --csv`, or `ncu --import FILE --csv`.");
  }

  base::Result<void> columns(const Row& header) {
    Columns& c = columns_;
    const std::array<std::pair<std::string_view, std::uint32_t*>, 19> known{
        {{"ID", &c.id},
         {"Process ID", &c.pid},
         {"Process Name", &c.process},
         {"Kernel Name", &c.kernel},
         {"Context", &c.context},
         {"Stream", &c.stream},
         {"Block Size", &c.block},
         {"Grid Size", &c.grid},
         {"Device", &c.device},
         {"Device Id", &c.device},
         {"CC", &c.capability},
         {"Section Name", &c.section},
         {"Body Item Label", &c.body},
         {"Metric Name", &c.metric},
         {"Metric Unit", &c.unit},
         {"Metric Value", &c.value},
         {"Invocations", &c.invocations},
         {"Average", &c.average},
         {"Domain", &c.domain}}};
    std::uint32_t last_id = 0;
    for (std::uint32_t i = 0; i < header.cells.size(); ++i) {
      const std::string_view name = header.cells[i];
      names_.emplace_back(name);
      bool is_id = name == "Host Name" || name == "Kernel Time" || name == "Device Name";
      for (const auto& [text, place] : known) {
        if (name != text)
          continue;
        if (*place == kAbsent)
          *place = i;
        is_id = true;
      }
      if (name.starts_with("thread Domain:Push/Pop_Range"))
        c.push_pop = i, is_id = true;
      if (name.starts_with("Id:Domain:Start/Stop_Range"))
        c.start_end = i, is_id = true;
      if (name.starts_with("Range:PL_Type"))
        c.summary_ranges = i, is_id = true;
      if (is_id)
        last_id = i;
    }
    if (c.invocations != kAbsent) {
      kind_ = Kind::kSummary;
    } else if (c.metric != kAbsent) {
      kind_ = Kind::kDetails;
      if (c.value == kAbsent) {
        return fail(Code::kBadData,
                    "the header has a column 'Metric Name' but no 'Metric Value'",
                    path_ + ":" + std::to_string(header_line_));
      }
      if (c.unit == kAbsent) {
        return fail(
            Code::kBadData,
            "the header has a column 'Metric Name' but no 'Metric Unit'",
            path_ + ":" + std::to_string(header_line_),
            "Keep that column: ncu scales each value by itself. Or give the report (.ncu-rep).");
      }
    } else {
      kind_ = Kind::kRaw;
      c.first_metric = last_id + 1;
    }
    return {};
  }

  /// Lines between the rows that are not ncu's: counted, except its own progress lines.
  bool foreign(const Row& row) {
    if (!row.text.empty() && row.text.front() == '"')
      return false;
    if (row.text.empty() || row.text.starts_with("=="))
      return true;
    ++foreign_lines_;
    return true;
  }

  base::Result<void> choose_point() {
    const std::string& format = options_.number_format;
    if (format == "C" || format == "en")
      point_ = Point::kDot;
    else if (format == "de" || format == "fr")
      point_ = Point::kComma;
    else if (!format.empty()) {
      return fail(Code::kUsage,
                  "no number format is called '" + format + "'",
                  "--number-format",
                  "Use one of C, en, de, fr.");
    }
    if (point_ != Point::kUnknown)
      return {};
    PointGuess guess;
    std::size_t offset = body_;
    std::uint64_t line = body_line_;
    Row row;
    while (next_row(text_, offset, line, row, Unquoted::kWhole)) {
      if (row.torn || row.text.empty() || row.text.front() != '"' || is_header(row))
        continue;
      if (kind_ == Kind::kRaw) {
        for (std::size_t i = columns_.first_metric; i < row.cells.size(); ++i)
          guess.see(row.cells[i], row.line);
      } else {
        guess.see(cell(row, columns_.value), row.line);
        guess.see(cell(row, columns_.average), row.line);
      }
    }
    const auto line_text = [&](std::uint64_t number) {
      return path_ + ":" + std::to_string(number);
    };
    constexpr std::string_view kHint =
        "Name the number format: --number-format C (1,234.5) or de (1.234,5).";
    if (guess.contradicts()) {
      return fail(Code::kBadData,
                  "numbers have a decimal point in line " + std::to_string(guess.dot_line()) +
                      " and a decimal comma in line " + std::to_string(guess.comma_line()),
                  line_text(std::max(guess.dot_line(), guess.comma_line())),
                  std::string(kHint));
    }
    if (guess.ambiguous()) {
      return fail(Code::kBadData,
                  "'" + std::string(guess.open_cell()) +
                      "' is ambiguous, and no other number of the file decides it",
                  line_text(guess.open_line()),
                  std::string(kHint));
    }
    point_ = guess.point();
    return {};
  }

  std::uint32_t process(const Row& row) {
    const auto pid = static_cast<std::uint32_t>(base::to_uint(cell(row, columns_.pid)).value_or(0));
    return index_.processes.of({pid, 0, session_.strings.intern(cell(row, columns_.process))});
  }

  std::uint32_t device(const Row& row, std::uint32_t process) {
    const auto ordinal = base::to_uint(cell(row, columns_.device));
    const std::string_view capability = cell(row, columns_.capability);
    if (!ordinal)
      return kNone;
    model::Device device{process, static_cast<std::uint32_t>(*ordinal)};
    const std::size_t dot = std::min(capability.find_first_of(".,"), capability.size());
    device.compute_major =
        static_cast<std::uint32_t>(base::to_uint(capability.substr(0, dot)).value_or(0));
    if (dot < capability.size())
      device.compute_minor =
          static_cast<std::uint32_t>(base::to_uint(capability.substr(dot + 1)).value_or(0));
    return index_.devices.of(device);
  }

  /// "(16, 16, 1)"; the totals of old summaries are one number and no shape.
  static bool dimensions(std::string_view text, std::array<std::uint32_t, 3>& xyz) {
    text = base::trim(text);
    if (!text.starts_with('(') || !text.ends_with(')'))
      return false;
    const auto parts = base::split(text.substr(1, text.size() - 2), ',');
    if (parts.size() != 3)
      return false;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto number = base::to_uint(base::trim(parts[i]));
      if (!number || *number > UINT32_MAX)
        return false;
      xyz[i] = static_cast<std::uint32_t>(*number);
    }
    return true;
  }

  std::uint32_t metric(const std::string& name) {
    const auto [at, added] =
        metrics_.try_emplace(name, static_cast<std::uint32_t>(session_.metrics.size()));
    if (added)
      session_.metrics.push_back({name, {}, "ncu"});
    return at->second;
  }

  /// What a printed value is to be multiplied with. The printed unit gives the scale; the name,
  /// where it is one, the unit itself (2025 prints none for rates). Nothing where the two cannot be
  /// of one metric.
  std::optional<double> factor_of(model::MetricDef& def, std::string_view unit) {
    const auto scaled = model::parse_ncu_unit(unit);
    if (def.unit.empty() && def.name.find("__") != std::string::npos)
      def.unit = model::metric_unit(def.name);
    if (def.unit.empty())
      def.unit = scaled.unit;
    const UnitKind kind = kind_of(def.unit);
    // Many have none (rates of 2025, ratios, launch__stack_size); times and percentages always do.
    const bool may_lack = kind != UnitKind::kTime &&
                          (kind != UnitKind::kShare || def.name.find(".pct") == std::string::npos);
    if (kind == kind_of(scaled.unit) || (scaled.unit.empty() && may_lack))
      return scaled.factor;
    if (def.unit == scaled.unit + "/s")
      return scaled.factor;  // rates of the LRC as 2024.1 prints them
    if (mismatched_++ > 0)
      return std::nullopt;
    mismatch_ = def.name;
    if (unit.empty())
      mismatch_ += " without a unit";
    else
      mismatch_.append(" in ").append(unit);
    return std::nullopt;
  }

  enum class UnitKind : std::uint8_t { kTime, kShare, kBytes, kRate, kCount };
  static UnitKind kind_of(std::string_view unit) {
    if (unit == "ns")
      return UnitKind::kTime;
    if (unit.starts_with("ratio"))
      return UnitKind::kShare;
    if (unit == "Hz" || unit.ends_with("/s"))
      return UnitKind::kRate;
    if (unit.starts_with("byte") || unit == "bit")
      return UnitKind::kBytes;
    return UnitKind::kCount;
  }

  /// Counts a value that should be a number: enumerators and names of devices are none, and are no
  /// loss.
  void note_bad(std::string_view metric, std::string_view text, std::string_view unit) {
    const bool time =
        kind_of(model::parse_ncu_unit(unit).unit) == UnitKind::kTime;  // others divide by 0: "nan"
    if (text.empty() || text == "n/a" || text == "(!) n/a" || text == "no data" ||
        (!time && (base::lower(text) == "nan" || base::lower(text) == "inf")))
      return;
    const bool measured = !unit.empty() || metric.ends_with(".sum") || metric.ends_with(".avg") ||
                          metric.ends_with(".max") || metric.ends_with(".min") ||
                          metric.ends_with(".pct");
    if (measured || (text.front() >= '0' && text.front() <= '9'))
      ++bad_numbers_;
  }

  /// Counts a value that nothing can have: a duration below 0.
  bool impossible(const model::MetricDef& def, double value) {
    const bool is_negative_time = value < 0 && kind_of(def.unit) == UnitKind::kTime;
    if (is_negative_time)
      ++bad_numbers_;
    return is_negative_time;
  }

  void add_value(model::Measurement& measurement,
                 std::uint32_t index,
                 std::string_view text,
                 std::string_view unit) {
    text = base::trim(
        text.substr(0, std::min(text.find('('), text.size())));  // instances follow in brackets
    const auto number = parse_number(text, point_);
    if (!number || !std::isfinite(*number)) {
      note_bad(session_.metrics[index].name, text, unit);
      return;
    }
    const auto factor = factor_of(session_.metrics[index], unit);
    if (!factor || impossible(session_.metrics[index], *number))
      return;
    if (stamps_.size() <= index)
      stamps_.resize(index + 1);
    const double value = *number * *factor;
    if (stamps_[index] ==
        session_.measurements.size()) {  // a metric of several sections, or two with one label
      for (const model::MetricValue& earlier : measurement.values)
        if (earlier.metric == index && earlier.value != value)
          ambiguous_.insert(index);
      return;
    }
    stamps_[index] = session_.measurements.size();
    measurement.values.push_back({index, value});
  }

  model::Measurement& begin(const Row& row) {
    model::Measurement& measurement = session_.measurements.emplace_back();
    measurement.process = process(row);
    measurement.device = device(row, measurement.process);
    const std::string_view kernel = cell(row, columns_.kernel);
    model::KernelShape shape;
    const bool has_grid = dimensions(cell(row, columns_.grid), shape.grid),
               has_block = dimensions(cell(row, columns_.block), shape.block);
    if (!has_grid && !has_block && kind_ != Kind::kSummary) {
      if (kernel == "range")
        measurement.scope = model::MeasuredScope::kRange;
      if (kernel == "graph")
        measurement.scope = model::MeasuredScope::kGraph;
      if (kernel == "cmdlist")
        measurement.scope = model::MeasuredScope::kCommandList;
    }
    if (measurement.scope == model::MeasuredScope::kKernel) {
      measurement.kernel_name = index_.kernel_name(kernel);
      if (has_grid || has_block)
        measurement.shape = index_.shapes.of(shape);
    }
    if (const auto stream = base::to_uint(cell(row, columns_.stream))) {
      const auto context =
          static_cast<std::uint32_t>(base::to_uint(cell(row, columns_.context)).value_or(0));
      measurement.stream = index_.streams.of(
          {measurement.process, measurement.device, context, static_cast<std::uint32_t>(*stream)});
    }
    ranges(row, measurement);
    count(measurement);
    return measurement;
  }

  void ranges(const Row& row, model::Measurement& measurement) {
    const auto add = [&](const CellRange& range, model::RangeKind kind) {
      measurement.ranges.push_back({index_.domain(range.domain),
                                    session_.strings.intern(range.name),
                                    kind,
                                    kind == model::RangeKind::kStartEnd ? range.id + 1 : 0});
    };
    if (columns_.summary_ranges != kAbsent) {
      for (const CellRange& range : parse_cell(cell(row, columns_.summary_ranges),
                                               Cell::kSummary,
                                               cell(row, columns_.domain),
                                               bad_ranges_))
        add(range, model::RangeKind::kPushPop);
      return;
    }
    const std::vector<CellRange> stack =
        parse_cell(cell(row, columns_.push_pop), Cell::kPushPop, {}, bad_ranges_);
    const std::vector<CellRange> open =
        parse_cell(cell(row, columns_.start_end), Cell::kStartEnd, {}, bad_ranges_);
    for (const CellRange& range : open)
      add(range, model::RangeKind::kStartEnd);
    const bool one_thread = std::ranges::all_of(
        stack, [&](const CellRange& range) { return range.thread == stack.front().thread; });
    if (!one_thread) {
      ++several_threads_;  // process scope: the cell does not tell which of them launched
    } else if (!stack.empty()) {
      measurement.thread = index_.threads.of(
          {measurement.process, static_cast<std::uint32_t>(stack.front().thread)});
      // the innermost of the default domain last: it is what a range result is taken for
      for (const bool of_default_domain : {false, true}) {
        for (const CellRange& range : stack) {
          if (range.domain.empty() == of_default_domain)
            add(range, model::RangeKind::kPushPop);
        }
      }
    }
    if (measurement.scope == model::MeasuredScope::kRange)
      measurement.note =
          "ncu's CSV does not name the measured range: the innermost open one is taken";
  }

  void count(model::Measurement& measurement) {
    std::string path =
        std::to_string(measurement.process) + "/" + std::to_string(measurement.thread);
    for (const model::OpenRange& range : measurement.ranges) {
      path += "\n" + std::to_string(range.domain) + "/" + std::to_string(range.name) + "#" +
              std::to_string(range.instance);
    }
    measurement.ordinal = members_[std::move(path)]++;
  }

  void take(const Row& row) {
    if (kind_ == Kind::kSummary)
      return summary(row);
    const std::string_view id = cell(row, columns_.id);
    if (!base::to_uint(id) || cell(row, columns_.kernel).empty()) {
      if (torn_row_ == 0)
        ++bad_rows_;
      return;
    }
    if (kind_ == Kind::kRaw) {
      if (row.cells.size() < names_.size() && torn_row_ == 0)
        ++short_rows_;
      model::Measurement& measurement = begin(row);
      const std::size_t end = std::min(row.cells.size(), names_.size());
      if (raw_metrics_.empty())
        raw_metrics_.assign(names_.size(), kNone);
      for (std::size_t i = columns_.first_metric; i < end; ++i)
        raw_value(measurement, i, row.cells[i]);
      return;
    }
    const std::string key = std::string(id) + '\n' + std::string(cell(row, columns_.pid));
    if (key != last_key_) {
      last_key_ = key;
      begin(row);
    }
    const std::string_view label = cell(row, columns_.metric);
    if (label.empty())
      return;  // a rule
    // Tables and charts of a section (--print-details body) use one label for many metrics; the
    // item tells them apart.
    const std::string_view section = cell(row, columns_.section), body = cell(row, columns_.body);
    const std::string name =
        body.empty() || label.find("__") != std::string_view::npos
            ? metric_of_label(section, label)
            : std::string(section).append("/").append(body).append("/").append(label);
    add_value(session_.measurements.back(),
              metric(name),
              cell(row, columns_.value),
              cell(row, columns_.unit));
  }

  void raw_value(model::Measurement& measurement, std::size_t column, std::string_view text) {
    const std::string& name = names_[column];
    if (name.starts_with(attributes_.kPrefix))
      return device_attribute(
          measurement, std::string_view(name).substr(attributes_.kPrefix.size()), text);
    if (raw_metrics_[column] == kNone)
      raw_metrics_[column] = metric(name);
    const std::string_view unit =
        column < unit_texts_.size() ? std::string_view(unit_texts_[column]) : std::string_view{};
    const auto number =
        parse_number(base::trim(text.substr(0, std::min(text.find('('), text.size()))), point_);
    if (!number)
      return note_bad(name, base::trim(text), unit);
    if (name == "profiler__replayer_passes" || name == "profiler__replayer_passes.sum")
      measurement.passes = std::max(1u, static_cast<std::uint32_t>(*number));
    if (!std::isfinite(*number))
      return;
    model::MetricDef& def = session_.metrics[raw_metrics_[column]];
    if (const auto factor = factor_of(def, unit); factor && !impossible(def, *number))
      measurement.values.push_back({raw_metrics_[column], *number * *factor});
  }

  void device_attribute(const model::Measurement& measurement,
                        std::string_view name,
                        std::string_view text) {
    if (measurement.device == kNone)
      return;
    model::Device& device = session_.devices[measurement.device];
    if (name == "display_name")
      device.name = session_.strings.intern(text);
    if (const auto number = parse_number(text, point_))
      attributes_.set(name, *number, device);
  }

  void summary(const Row& row) {
    const auto invocations = base::to_uint(cell(row, columns_.invocations));
    if (!invocations) {
      ++bad_rows_;
      return;
    }
    std::string key;
    for (std::uint32_t i = 0; i <= columns_.invocations && i < row.cells.size(); ++i)
      key += std::string(row.cells[i]) + '\n';
    if (key != last_key_) {
      last_key_ = key;
      model::Measurement& measurement = begin(row);
      measurement.launches =
          static_cast<std::uint32_t>(std::clamp<std::uint64_t>(*invocations, 1, kNone - 1));
      measurement.note = "mean over " + base::counted(*invocations, "launch") + " (ncu summary)";
    }
    add_value(session_.measurements.back(),
              metric(metric_of_label(cell(row, columns_.section), cell(row, columns_.metric))),
              cell(row, columns_.average),
              cell(row, columns_.unit));
  }

  void finish() {
    const auto lose = [&](model::LossKind kind, std::uint64_t count, const std::string& detail) {
      if (count > 0)
        session_.losses.push_back({kind, count, detail + ": " + path_});
    };
    lose("foreign_lines", foreign_lines_, "lines after the header are not ncu's and were skipped");
    lose("torn_tail",
         torn_row_ == 0 ? 0 : 1,
         "the file ends inside the row of line " + std::to_string(torn_row_));
    lose("bad_rows", bad_rows_, "rows have no id or no kernel and were left out");
    lose("short_rows",
         short_rows_,
         "rows are shorter than the header: the last columns are missing");
    lose("bad_numbers",
         bad_numbers_,
         "values should be numbers but do not parse in this number format, or are negative "
         "durations");
    lose("unit_mismatch",
         mismatched_,
         "values are in a unit that their metric cannot have, as tools print for GPUs newer than "
         "themselves (first: " +
             mismatch_ + "); they are left out");
    lose("bad_ranges", bad_ranges_, "NVTX entries could not be parsed");
    if (!ambiguous_.empty()) {
      for (model::Measurement& measurement : session_.measurements)
        std::erase_if(measurement.values, [&](const model::MetricValue& value) {
          return ambiguous_.contains(value.metric);
        });
      lose("ambiguous_labels",
           ambiguous_.size(),
           "labels are shared by several metrics, so their values are left out (first: " +
               session_.metrics[*ambiguous_.begin()].name +
               "); print the names with --print-metric-name name");
    }
    lose("several_threads",
         several_threads_,
         "results were launched while several threads had push/pop ranges open, and the CSV does "
         "not name the "
         "launching thread; they count outside every push/pop range");
  }

  std::string_view text_;
  std::string path_;
  const Options& options_;
  model::Session session_;
  Index index_{session_};
  Kind kind_ = Kind::kRaw;
  Columns columns_;
  Point point_ = Point::kUnknown;
  std::vector<std::string> names_, unit_texts_;
  std::vector<std::uint32_t> raw_metrics_;
  std::vector<std::size_t> stamps_;  // by metric: the number of measurements when it was last given
  std::set<std::uint32_t> ambiguous_;  // metrics that one result has with different values
  std::size_t body_ = 0;
  std::uint64_t body_line_ = 1, header_line_ = 1;
  std::string last_key_;
  ncu::DeviceAttributes attributes_;
  std::uint64_t torn_row_ = 0;  // line of the last row where the file ends inside it
  std::uint64_t foreign_lines_ = 0, bad_rows_ = 0, short_rows_ = 0, bad_numbers_ = 0,
                bad_ranges_ = 0, several_threads_ = 0, mismatched_ = 0;
  std::string mismatch_;
  std::unordered_map<std::string, std::uint32_t> metrics_, members_;
};

/// A table of ncu begins somewhere in the text.
bool has_header(std::string_view text) {
  for (const std::string_view begin : {"\"ID\",\"Process ID\",",
                                       "\"Process ID\",\"Process Name\",\"Host Name\",",
                                       "\"Domain\",\"Range:PL_Type"}) {
    for (std::size_t place = text.find(begin); place != std::string_view::npos;
         place = text.find(begin, place + 1)) {
      if (place == 0 || text[place - 1] == '\n' || text.substr(0, place) == "\xef\xbb\xbf")
        return true;
    }
  }
  return false;
}

}  // namespace

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (has_header(text))
    return true;
  // a program's output may precede it; a file with NUL bytes is no text
  if (text.find('\0') != std::string_view::npos || text.size() < 4096)
    return false;
  const auto log = base::read_head(path, kSniffed);
  return log && has_header(*log);
}

base::Result<model::Session> read_text(std::string_view text,
                                       const std::string& path,
                                       const Options& options) {
  return CsvSession(text, path, options).read();
}

static base::Result<model::Session> read(const std::filesystem::path& path,
                                         const Options& options) {
  auto mapping = TRY(base::Mapping::open(path));
  return read_text(mapping.text(), path.string(), options);
}

const Reader kReader{"ncu-csv", sniff, read};

}  // namespace rangescope::read::ncu_csv
