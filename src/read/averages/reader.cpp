#include "read/averages/reader.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::averages {
namespace {

enum class Field { kOther, kName, kCalls, kShapes, kCpu, kSelfCpu, kGpu, kSelfGpu };

/// Headers of PyTorch 1.0 to 2.9. What is neither CPU nor a percentage nor memory is the GPU: CUDA, HIP, XPU, NPU.
Field field_of(std::string_view header) {
  constexpr std::pair<std::string_view, Field> kHeaders[] = {
      {"Name", Field::kName},           {"# of Calls", Field::kCalls},      {"Number of Calls", Field::kCalls},
      {"Input Shapes", Field::kShapes}, {"Input Shape", Field::kShapes},    {"Self CPU", Field::kSelfCpu},
      {"CPU total", Field::kCpu},       {"Self CPU total", Field::kSelfCpu}};
  for (const auto& [known, field] : kHeaders)
    if (known == header) return field;
  if (header.ends_with('%') || header.find("Mem") != std::string_view::npos) return Field::kOther;
  if (header.starts_with("Self ")) return Field::kSelfGpu;
  return header.ends_with(" total") ? Field::kGpu : Field::kOther;
}

/// Two blanks or more separate cells; a table of Markdown has bars.
std::vector<std::string> cells_of(std::string_view line) {
  const std::string plain = base::trim(line).starts_with('|') ? base::replace_all(line, "|", "  ") : std::string(line);
  std::vector<std::string> cells;
  for (std::string_view rest = base::trim(plain); !rest.empty();) {
    const std::size_t end = std::min(rest.find("  "), rest.size());
    cells.emplace_back(base::trim(rest.substr(0, end)));
    rest = base::trim(rest.substr(end));
  }
  return cells;
}

/// The columns, where the line is a header with names, calls and a time.
std::vector<Field> columns_of(std::string_view line) {
  std::vector<Field> fields;
  if (line.find("CPU") == std::string_view::npos) return fields;
  for (const std::string& cell : cells_of(line)) fields.push_back(field_of(cell));
  const auto has = [&](Field field) { return std::ranges::find(fields, field) != fields.end(); };
  if (fields.empty() || fields.front() != Field::kName || !has(Field::kCalls) ||
      !(has(Field::kCpu) || has(Field::kGpu)))
    fields.clear();
  return fields;
}

/// "35.925us" in nanoseconds; nothing for "--" and "NaN".
std::optional<double> time_of(std::string_view cell) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [unit, scale] : kUnits) {
    if (!cell.ends_with(unit)) continue;
    const auto value = base::to_double(base::trim(cell.substr(0, cell.size() - unit.size())));
    if (!value || !(*value >= 0) || *value > 1e15) return std::nullopt;
    return *value * scale;
  }
  return std::nullopt;
}

struct Line {
  std::string name, shapes;
  std::int64_t calls = 0;
  std::optional<double> cpu, self_cpu, gpu, self_gpu;
};

std::optional<Line> parse(const std::vector<std::string>& cells, const std::vector<Field>& fields) {
  if (cells.size() != fields.size()) return std::nullopt;
  Line line;
  bool counted = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& cell = cells[i];
    switch (fields[i]) {
      case Field::kName: line.name = cell; break;
      case Field::kShapes: line.shapes = cell; break;
      case Field::kCalls:
        line.calls = base::to_int(cell).value_or(0);
        counted = line.calls > 0 && line.calls < (std::int64_t{1} << 53);
        break;
      case Field::kCpu: line.cpu = time_of(cell); break;
      case Field::kSelfCpu: line.self_cpu = time_of(cell); break;
      case Field::kGpu: line.gpu = time_of(cell); break;
      case Field::kSelfGpu: line.self_gpu = time_of(cell); break;
      case Field::kOther: break;
    }
  }
  return counted && (line.cpu || line.gpu) ? std::optional(line) : std::nullopt;
}

/// On the GPU alone, and no annotation, whose time on the GPU is that of the kernels inside.
bool is_gpu_work(const Line& line, const std::set<std::string>& on_cpu) {
  if (line.cpu.value_or(0) > 0 || !(line.self_gpu.value_or(0) > 0) || on_cpu.contains(line.name)) return false;
  constexpr std::string_view kAnnotations[] = {"aten::", "nccl:", "ProfilerStep", "Optimizer.", "## "};
  return std::none_of(std::begin(kAnnotations), std::end(kAnnotations),
                      [&](std::string_view begin) { return line.name.starts_with(begin); });
}

void add(const Line& line, bool gpu_work, model::Session& s) {
  const model::StringId name = s.strings.intern(line.name);
  if (!gpu_work) {
    s.summary.operators.push_back({name, line.shapes.empty() ? 0 : s.strings.intern(line.shapes), line.calls, line.cpu,
                                   line.self_cpu, line.gpu, line.self_gpu});
  } else if (line.name.starts_with("Memcpy ") || line.name.starts_with("Memset ")) {
    s.summary.copies.push_back({copy_kind(line.name), line.name.starts_with("Memset"), line.calls, *line.self_gpu,
                                std::numeric_limits<double>::quiet_NaN()});
  } else {
    model::KernelSummary& kernel = s.summary.kernels.emplace_back();
    kernel.name = name;
    kernel.calls = line.calls;
    kernel.total_ns = *line.self_gpu;
  }
}

}  // namespace

base::Result<model::Session> read_text(std::string_view text, const std::string& name) {
  model::Session session;
  std::vector<Field> fields;
  std::vector<Line> lines;
  std::uint64_t bad = 0, tables = 0;
  double cpu_total = 0, gpu_total = 0;  // as printed below the table
  for (const std::string_view each : base::split(text, '\n')) {
    const std::string_view line = base::trim(each);
    if (line.empty() || line.find_first_not_of("-| =:") == std::string_view::npos) continue;
    if (auto next = columns_of(line); !next.empty()) {
      if (++tables == 1) fields = std::move(next);
    } else if (line.starts_with("Self ") && line.find(" time total: ") != std::string_view::npos) {
      const double total = time_of(line.substr(line.rfind(": ") + 2)).value_or(0);
      if (tables == 1) (line.starts_with("Self CPU") ? cpu_total : gpu_total) = total;
    } else if (tables == 1 && cpu_total == 0 && gpu_total == 0) {
      std::vector<std::string> cells = cells_of(line);
      if (cells.size() + 1 == fields.size() && fields.back() == Field::kOther) cells.emplace_back();  // no stack
      if (auto row = parse(cells, fields))
        lines.push_back(std::move(*row));
      else if (cells.size() > 2)
        ++bad;
    }
  }
  if (lines.empty())
    return base::fail(base::Code::kBadData, "no table of key_averages() with rows in it", name,
                      "Give the output of print(prof.key_averages().table()), or the trace of export_chrome_trace().");
  std::set<std::string> on_cpu;
  for (const Line& line : lines)
    if (line.cpu.value_or(0) > 0) on_cpu.insert(line.name);
  double cpu = 0, gpu = 0;
  bool any = false;
  for (const Line& line : lines) {
    const bool gpu_work = is_gpu_work(line, on_cpu);
    if (!gpu_work && line.cpu.value_or(0) == 0 && line.self_gpu.value_or(0) > 0) continue;  // an annotation
    add(line, gpu_work, session);
    any |= gpu_work;
    cpu += line.self_cpu.value_or(0);
    if (gpu_work) gpu += *line.self_gpu;
  }
  constexpr double kRounding = 0.995;
  session.summary.cut = any && gpu < kRounding * gpu_total;
  const auto lose = [&](model::LossKind kind, std::uint64_t count, std::string detail) {
    session.losses.push_back({kind, count, std::move(detail)});
  };
  if (session.summary.cut || cpu < kRounding * cpu_total)
    lose("rows_missing", 0,
         "the rows do not add up to the table's total: it was printed with row_limit. Shares are unknown");
  if (bad > 0) lose("bad_rows", bad, "rows that do not fit their header were left out");
  if (tables > 1) lose("ignored_table", tables - 1, "tables after the first one were left out");
  lose("totals_only", 0, "tables of totals by name: nesting and overlap are unknown");
  session.sources.push_back({name, "key-averages", "PyTorch profiler", {}});
  return session;
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  const auto has_table = [](std::string_view text) {
    const auto lines = base::split(text, '\n');
    return std::ranges::any_of(lines, [](std::string_view line) { return !columns_of(line).empty(); });
  };
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  constexpr std::size_t kShort = 4096, kSniffed = std::size_t{1} << 20;
  if (text.find('\0') != std::string_view::npos || text.starts_with('{')) return false;
  if (has_table(text)) return true;
  if (text.size() < kShort) return false;  // a program's output may precede it
  const auto more = base::read_head(path, kSniffed);
  return more && has_table(*more);
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  auto text = TRY(base::read_file(path));
  return read_text(text, path.string());
}

const Reader kReader{"key-averages", sniff, read};

}  // namespace rangescope::read::averages
