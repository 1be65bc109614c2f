#include "ncu_pages/head.hpp"

#include <algorithm>

#include "ncu_pages/format.hpp"

namespace rangescope::ncu_pages {
namespace {

constexpr std::string_view kPushPop = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg";
constexpr std::string_view kStartEnd = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg";

/// Category, colour, payload and message of a range, a line each.
void attribute_lines(std::string& out, const NvtxState& state, const NvtxRange& range, const std::string& indent) {
  if (!range.attributes) return;
  const NvtxAttributes& attributes = *range.attributes;
  if (attributes.category != 0) {
    std::string name = std::to_string(attributes.category);
    if (const NvtxDomain* domain = state.domain(range.domain)) {
      for (const auto& [id, text] : domain->categories) {
        if (id == attributes.category) name = text;
      }
    }
    out.append(indent).append("Category: ").append(name).append("\n");
  }
  if (attributes.color_type != 0) {
    out.append(indent).append("RGB: ").append(hex_text(attributes.color)).append("\n");
  }
  if (attributes.payload_type != 0) {
    out.append(indent).append(attributes.payload_type < 8 ? payload_kind(attributes.payload_type) : "Payload");
    out.append(": ").append(payload_text(attributes)).append("\n");
  }
  if (const std::string_view kind = text_kind(attributes); !kind.empty())
    out.append(indent).append(kind).append(": ").append(state.message_text(range)).append("\n");
}

/// Ranges by domain in the order of the domains' first range.
template <class Each>
void by_domain(std::string& out, const NvtxState& state, const std::vector<const NvtxRange*>& ranges, Each&& number) {
  std::vector<std::uint32_t> domains;
  for (const NvtxRange* range : ranges) {
    if (std::ranges::find(domains, range->domain) == domains.end()) domains.push_back(range->domain);
  }
  for (const std::uint32_t id : domains) {
    const NvtxDomain* domain = state.domain(id);
    out.append("      ").append(domain == nullptr ? std::string_view{} : domain->name).append("\n");
    std::uint64_t level = 0;
    for (const NvtxRange* range : ranges) {
      if (range->domain != id) continue;
      out.append("        <").append(std::to_string(number(*range, level++))).append(",");
      out.append(state.effective_name(*range)).append(">\n");
      attribute_lines(out, state, *range, "          ");
    }
  }
}

void nvtx_text(std::string& out, const NvtxState& state) {
  const auto pointers = [](const std::vector<NvtxRange>& ranges) {
    std::vector<const NvtxRange*> all;
    for (const NvtxRange& range : ranges) all.push_back(&range);
    return all;
  };
  if (!state.start_end.empty()) {
    out += "\n    NVTX Start/End Ranges:\n";
    by_domain(out, state, pointers(state.start_end), [](const NvtxRange& range, std::uint64_t) { return range.id; });
  }
  if (state.process_scope) {
    std::vector<const NvtxRange*> all;
    for (const NvtxThread& thread : state.threads) {
      for (const NvtxRange& range : thread.stack) all.push_back(&range);
    }
    if (all.empty()) return;
    std::ranges::stable_sort(all, {}, [](const NvtxRange* range) { return range->id; });
    out += "\n    NVTX Push/Pop Ranges:\n";
    by_domain(out, state, all, [](const NvtxRange& range, std::uint64_t) { return range.id; });
    return;
  }
  for (const NvtxThread& thread : state.threads) {
    if (thread.stack.empty()) continue;
    out += "\n    NVTX Push/Pop Stack for Thread " + std::to_string(thread.tid) + ":\n";
    by_domain(out, state, pointers(thread.stack), [](const NvtxRange&, std::uint64_t level) { return level; });
  }
}

}  // namespace

void CsvHead::see(const Result& result) {
  nvtx_ |= result.nvtx.has_value();
  kernels_ |= result.kind == ResultKind::kKernel;
}

void CsvHead::names(std::string& out) const {
  csv_cells(out, {"ID", "Process ID", "Process Name", "Host Name"});
  if (nvtx_) csv_cells(out, {kPushPop, kStartEnd});
  csv_cells(out, {"Kernel Name", "Context", "Stream"});
  if (kernels_) csv_cells(out, {"Block Size", "Grid Size"});
  csv_cells(out, {"Device", "CC"});
}

void CsvHead::blanks(std::string& out) const {
  const int columns = 9 + (nvtx_ ? 2 : 0) + (kernels_ ? 2 : 0);
  for (int i = 0; i < columns; ++i) csv_cell(out, {});
}

void CsvHead::values(std::string& out, std::uint32_t id, const Result& result) const {
  const ProcessInfo& process = file_.processes[result.process];
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : "n/a"; };
  static const NvtxState kNothing;
  const NvtxState& state = result.nvtx ? *result.nvtx : kNothing;
  csv_cells(out, {std::to_string(id), std::to_string(process.pid), base_name(process.name), process.host});
  if (nvtx_) csv_cells(out, {push_pop_cell(state), start_end_cell(state)});
  csv_cells(out, {result_name(result, options_.print_kernel_base), number(result.context), number(result.stream)});
  if (kernels_) csv_cells(out, {dimensions_text(result.block), dimensions_text(result.grid)});
  const DeviceLabel device = labels_.of(result);
  csv_cells(out, {device.ordinal, device.capability});
}

void TextHead::process(std::string& out, std::uint32_t process) {
  if (process == process_) return;
  process_ = process;
  const ProcessInfo& info = file_.processes[process];
  out += '[' + std::to_string(info.pid) + "] ";
  out.append(base_name(info.name)).append("@").append(info.host).append("\n");
}

void TextHead::print(std::string& out, const Result& result, const DeviceLabel& device) {
  process(out, result.process);
  out.append("  ").append(result_name(result, options_.print_kernel_base));
  if (result.grid && result.block) out += " " + dimensions_text(result.grid) + "x" + dimensions_text(result.block);
  if (result.context) out += ", Context " + std::to_string(*result.context);
  if (result.stream) out += ", Stream " + std::to_string(*result.stream);
  out += ", Device " + device.ordinal + ", CC " + device.capability + "\n";
  if (result.nvtx) nvtx_text(out, *result.nvtx);
}

TextTable::TextTable(std::vector<std::string> heads, std::size_t indent, std::size_t left_columns)
    : heads_(std::move(heads)), indent_(indent), left_columns_(left_columns) {
  for (const std::string& head : heads_) widths_.push_back(head.size());
}

void TextTable::add(std::vector<std::string> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], cells[i].size());
  rows_.push_back(std::move(cells));
}

void TextTable::widen(const std::vector<std::size_t>& least) {
  for (std::size_t i = 0; i < least.size(); ++i) widths_[i] = std::max(widths_[i], least[i]);
}

void TextTable::rule(std::string& out) const {
  out.append(indent_, ' ');
  for (std::size_t i = 0; i < widths_.size(); ++i) out.append(i > 0 ? 1 : 0, ' ').append(widths_[i], '-');
  out += '\n';
}

void TextTable::row(std::string& out, const std::vector<std::string>& cells) const {
  out.append(indent_, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string blanks(widths_[i] - cells[i].size(), ' ');
    out.append(i > 0 ? " " : "").append(i < left_columns_ ? cells[i] + blanks : blanks + cells[i]);
  }
  out += '\n';
}

void TextTable::print(std::string& out, Rules rules) const {
  if (rules != Rules::kBelowHeads) rule(out);
  row(out, heads_);
  rule(out);
  for (const auto& cells : rows_) row(out, cells);
  if (rules == Rules::kAll) rule(out);
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  bool goes_on = false;
  while (!text.empty()) {
    const std::size_t most = goes_on ? width - 1 : width;
    const std::size_t newline = std::min(text.find('\n'), text.size());
    std::size_t end = std::min(newline, most), next = end;
    if (newline <= most) {
      next = std::min(newline + 1, text.size());
      goes_on = false;
    } else {
      goes_on = true;
      const std::size_t blank = text.rfind(' ', most);
      if (blank != std::string_view::npos && blank > 0) {
        end = blank;
        next = blank + 1;
      }
    }
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(next);
  }
  return lines;
}

}  // namespace rangescope::ncu_pages
