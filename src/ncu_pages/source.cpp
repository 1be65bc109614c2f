// --page source: PTX and source files as the report holds them, and for machine code the metrics by address.
//
// The report holds cubins, not disassembly: the text of SASS instructions needs nvdisasm, which this reader does
// without. What it has is every metric that was measured per instruction: address by address, a column a metric.
#include <map>
#include <set>

#include "base/text.hpp"
#include "ncu_pages/format.hpp"
#include "ncu_pages/head.hpp"
#include "ncu_pages/pages.hpp"
#include "read/ncu/report/wire.hpp"

namespace rangescope::ncu_pages {
namespace {

struct SourceText {
  std::optional<std::uint64_t> key;
  std::string_view ptx;
  std::vector<std::pair<std::string_view, std::string_view>> files;
};

base::Result<SourceText> decode_source(const File& file, const SourceEntry& entry) {
  SourceText source;
  std::uint64_t unknown = 0;
  TRY(proto::parse_message(file.path + ": offset " + std::to_string(entry.offset), [&] {
    const auto named = [&](std::string_view m) {
      auto& one = source.files.emplace_back();
      proto::read(m, unknown, proto::text(1, one.first), proto::text(2, one.second));
    };
    proto::read(file.bytes(entry), unknown, proto::number(1, source.key), proto::text(2, source.ptx),
                proto::each(8, [&](std::string_view m) { proto::read(m, unknown, proto::each(1, named)); }));
  }));
  return source;
}

void begin(std::string& text, const PageOptions& options, const Result& result) {
  const std::string_view name = result_name(result, options.print_kernel_base);
  if (options.csv) {
    text += R"("Kernel Name",)";
    quote(text, name);
    text += '\n';
  } else {
    text.append("Kernel Name: ").append(name).append("\n");
  }
}

void lines(std::string& text, const PageOptions& options, std::string_view title, std::string_view source) {
  if (options.csv)
    text += R"("#","Source")"
            "\n";
  else
    text.append(title).append("\n");
  std::uint64_t number = 0;
  for (const std::string_view line : base::split(source, '\n')) {
    ++number;
    if (options.csv) {
      text += '"' + std::to_string(number) + "\",";
      quote(text, line);
    } else {
      const std::string digits = std::to_string(number);
      text.append(digits.size() < 6 ? 6 - digits.size() : 0, ' ').append(digits).append(" ").append(line);
    }
    text += '\n';
  }
  text += '\n';
}

void addresses(std::string& text, const PageOptions& options, const File& file, const Result& result,
               const NameFilter& filter) {
  std::map<std::uint64_t, std::map<std::string_view, Value>> rows;
  std::set<std::string_view> names;
  for (const MetricEntry& metric : result.metrics) {
    const std::string_view name = file.string(metric.name);
    if (metric.instances == 0 || !filter.matches(name)) continue;
    const std::vector<Instance> all = instances(metric);
    // Masks of links (H100, ncu 2025.1) have PCI addresses as ids: 0xdd00 is bus dd.
    if (!by_address(all) || name.starts_with("nvlink__") || name.starts_with("c2clink__")) continue;
    names.insert(name);
    for (const Instance& instance : all) rows[instance.correlation.integer][name] = instance.value;
  }
  const Formatter format(options);
  std::vector<std::string> heads{"Address"};
  heads.insert(heads.end(), names.begin(), names.end());
  TextTable table(heads, 0);
  if (options.csv) csv_line(text, heads);
  for (const auto& [address, values] : rows) {
    std::vector<std::string> cells{hex_text(address)};
    for (const std::string_view name : names) {
      cells.emplace_back();
      const auto found = values.find(name);
      if (found != values.end()) format.plain(cells.back(), found->second);
    }
    if (!options.csv) {
      table.add(std::move(cells));
      continue;
    }
    csv_line(text, cells);
  }
  if (!options.csv) table.print(text);
  text += '\n';
}

}  // namespace

base::Result<void> print_source(const Selection& selection, const PageOptions& options, const Out& out) {
  auto filter = TRY(NameFilter::make(options.metrics, "--metrics"));
  const File& file = selection.file();
  std::map<std::uint64_t, std::size_t> by_key;
  if (options.source != Source::kSass) {
    for (std::size_t i = 0; i < file.sources.size(); ++i) {
      const auto source = decode_source(file, file.sources[i]);
      if (source && source->key) by_key.emplace(*source->key, i);
    }
  }
  bool any = false;
  selection.for_each({.sections = false, .rules = false}, [&](std::uint32_t, const Result& result) {
    std::string text;
    if (options.source == Source::kSass) {
      begin(text, options, result);
      addresses(text, options, file, result, filter);
      any = true;
    } else if (const auto found = result.source ? by_key.find(*result.source) : by_key.end(); found != by_key.end()) {
      const auto source = decode_source(file, file.sources[found->second]);
      if (!source) return;
      if (options.source == Source::kPtx && !source->ptx.empty()) {
        begin(text, options, result);
        lines(text, options, "PTX", source->ptx);
        any = true;
      }
      if (options.source == Source::kCuda) {
        for (const auto& [name, content] : source->files) {
          begin(text, options, result);
          lines(text, options, name, content);
          any = true;
        }
      }
    }
    out(text);
  });
  if (!any) {
    return base::fail(base::Code::kNothingCaptured,
                      options.source == Source::kPtx ? "the report holds no PTX of these kernels"
                                                     : "the report holds no source files of these kernels",
                      file.path,
                      "Collect with --import-source yes, or use --print-source sass for metrics by address.");
  }
  return {};
}

}  // namespace rangescope::ncu_pages
