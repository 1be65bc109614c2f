#include "ncu_pages/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "read/ncu/report/decode.hpp"

namespace rangescope::ncu_pages {
namespace {

constexpr std::array<std::string_view, 8> kPayloads{"none",   "Uint64", "Int64", "Double",
                                                    "Uint32", "Int32",  "Float", "Json"};

bool not_finite(std::string& out, double value) {
  if (std::isfinite(value)) return false;
  out += std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  return true;
}

}  // namespace

Scale auto_scale(std::string_view unit, double largest, model::UnitSpelling spelling) {
  Scale scale{std::string(unit), 1};
  const bool old = spelling == model::UnitSpelling::kNcu2024;
  const auto climb = [&](std::initializer_list<std::string_view> units) {
    for (const std::string_view next : units) {
      if (!(largest / scale.factor >= 1000)) break;
      scale.factor *= 1000;
      scale.unit = next;
    }
  };
  if (unit.empty() || unit == "%") return scale;
  if (unit == "nsecond")
    climb({"usecond", "msecond", "second"});
  else if (unit == "ns")
    climb({"us", "ms", "s"});
  else if (unit == "hz")
    climb({"Khz", "Mhz", "Ghz"});
  else if (unit.starts_with("byte") || unit == "%/byte") {
    const std::size_t at = unit.find("byte");
    for (const char prefix : {'K', 'M', 'G', 'T'}) {
      if (!(largest / scale.factor >= 1000)) break;
      scale.factor *= 1000;
      scale.unit = std::string(unit.substr(0, at)) + prefix + std::string(unit.substr(at));
    }
  } else if (const std::string_view second = old ? "/second" : "/s"; unit.ends_with(second)) {
    const std::string of(unit.substr(0, unit.size() - second.size() + 1));
    for (const std::string_view next : {"m", "u", "n"}) {
      if (!(largest / scale.factor >= 1000)) break;
      scale.factor *= 1000;
      scale.unit = of + std::string(next) + std::string(second.substr(1));
    }
  }
  return scale;
}

Formatter::Formatter(const PageOptions& options)
    : decimals_(options.fp), scale_(!options.base_units), spelling_(options.spelling) {
  point_ = ".";
  if (options.number_format == "en") thousands_ = ",";
  if (options.number_format == "de") thousands_ = ".", point_ = ",";
  if (options.number_format == "fr") thousands_ = "\xe2\x80\xaf", point_ = ",";  // narrow no-break space
}

void Formatter::group(std::string& out, std::string_view digits) const {
  if (!digits.empty() && digits.front() == '-') {
    out += '-';
    digits.remove_prefix(1);
  }
  const std::size_t dot = std::min(digits.find('.'), digits.size());
  if (thousands_.empty()) {
    out += digits.substr(0, dot);
  } else {
    for (std::size_t i = 0; i < dot; ++i) {
      if (i > 0 && (dot - i) % 3 == 0) out += thousands_;
      out += digits[i];
    }
  }
  if (dot < digits.size()) {
    out += point_;
    out += digits.substr(dot + 1);
  }
}

void Formatter::plain(std::string& out, double value, bool decimals) const {
  if (not_finite(out, value)) return;
  group(out, fmt::format("{:.{}f}", value, decimals || decimals_ || value != std::trunc(value) ? 2 : 0));
}

void Formatter::plain(std::string& out, const Value& value) const {
  if (value.type == ValueType::kNone) {
    out += "no data";
  } else if (value.type == ValueType::kString) {
    out += value.text;
  } else if (value.is_integer() && !decimals_) {
    group(out, std::to_string(value.integer));
  } else {
    plain(out, value.as_double(), false);
  }
}

void Formatter::six(std::string& out, double value) {
  if (!not_finite(out, value)) fmt::format_to(std::back_inserter(out), "{:.6f}", value);
}

Formatter::Shown Formatter::details(const Value& value, std::string_view unit) const {
  Shown shown{{}, std::string(unit)};
  if (value.is_number() && scale_) {
    Scale scale = auto_scale(unit, std::abs(value.as_double()), spelling_);
    if (scale.factor != 1) {
      shown.unit = std::move(scale.unit);
      plain(shown.value, value.as_double() * (1 / scale.factor), false);
      return shown;
    }
  }
  plain(shown.value, value);
  return shown;
}

bool by_address(const std::vector<Instance>& all) {
  return !all.empty() && std::ranges::all_of(all, [](const Instance& instance) {
    return instance.correlation.is_integer() && instance.correlation.integer % 16 == 0 &&
           instance.correlation.integer >= 4096 && instance.correlation.integer < std::uint64_t{1} << 57;
  });
}

void append_instances(std::string& out, const MetricEntry& metric, const Formatter& format, Instances mode) {
  if (mode == Instances::kNone || metric.instances == 0) return;
  const std::vector<Instance> all = instances(metric);
  const bool addresses = mode == Instances::kDetails && by_address(all);
  out += out.empty() ? "(" : " (";
  bool first = true;
  for (const Instance& instance : all) {
    if (!first) out += "; ";
    first = false;
    if (addresses) {
      out += hex_text(instance.correlation.integer);
    } else if (mode == Instances::kDetails) {
      format.plain(out, instance.correlation);
    }
    if (mode == Instances::kDetails) out += ": ";
    format.plain(out, instance.value);
  }
  out += ')';
}

std::string_view payload_kind(std::uint32_t type) {
  return type < kPayloads.size() ? kPayloads[type] : "JsonRegistered";
}

std::string_view text_kind(const NvtxAttributes& attributes) {
  constexpr std::string_view kKinds[] = {"", "ASCII", "UNICODE", "REGISTERED"};
  return attributes.message_type < std::size(kKinds) ? kKinds[attributes.message_type] : "";
}

std::string payload_text(const NvtxAttributes& attributes) {
  switch (attributes.payload_type) {
    case 1:
    case 4: return std::to_string(attributes.payload_integer);
    case 2: return std::to_string(static_cast<std::int64_t>(attributes.payload_integer));
    case 5: return std::to_string(static_cast<std::int32_t>(attributes.payload_integer));
    case 3:
    case 6: return fmt::format("{:.6f}", attributes.payload_number);
    case 7:
    case 8: return std::string(attributes.payload_text);
    default: return "none";
  }
}

std::string range_cell(const NvtxState& state, const NvtxRange& range) {
  std::string cell(state.effective_name(range));
  if (!range.attributes) return cell + ":none:none:none:none:none:none";
  const NvtxAttributes& attributes = *range.attributes;
  cell += ':';
  cell += payload_kind(attributes.payload_type);
  cell += ':';
  cell += payload_text(attributes);
  if (attributes.color_type == 0) {
    cell += ":none:none";
  } else {
    cell += ":RGB:" + hex_text(attributes.color);
  }
  const std::string_view kind = text_kind(attributes);
  if (kind.empty()) return cell + ":none:none";
  return cell.append(":").append(kind).append(":").append(state.message_text(range));
}

namespace {

std::string_view domain_of(const NvtxState& state, const NvtxRange& range) {
  const NvtxDomain* domain = state.domain(range.domain);
  return domain == nullptr ? std::string_view{} : domain->name;
}

}  // namespace

std::string push_pop_cell(const NvtxState& state) {
  std::string cell;
  for (const NvtxThread& thread : state.threads) {
    if (thread.stack.empty()) continue;
    cell += std::to_string(thread.tid) + ' ';
    for (const NvtxRange& range : thread.stack) {
      cell.append(" \"").append(domain_of(state, range)).append(":").append(range_cell(state, range)).append("\" ");
    }
  }
  return cell;
}

std::string start_end_cell(const NvtxState& state) {
  std::string cell;
  for (const NvtxRange& range : state.start_end) {
    cell.append(" \"").append(std::to_string(range.id)).append(":").append(domain_of(state, range)).append(":");
    cell.append(range_cell(state, range)).append("\" ");
  }
  return cell;
}

std::string hex_text(std::uint64_t number) {
  return fmt::format("0x{:x}", number);
}

bool is_container(std::string_view name) {
  return name.starts_with("group:") || name.starts_with("breakdown:") || name.starts_with("regex:");
}

std::string dimensions_text(const std::optional<std::array<std::uint32_t, 3>>& xyz) {
  return xyz ? fmt::format("({}, {}, {})", (*xyz)[0], (*xyz)[1], (*xyz)[2]) : "n/a";
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace rangescope::ncu_pages
