#include "read/ncu/report/decode.hpp"

#include "read/ncu/report/wire.hpp"

namespace rangescope::read::ncu_report {
namespace {

using proto::Field;
using proto::for_each_field;

/// Reads the parts of one result. The four kinds hold the same parts under different field numbers (decode_kernel and
/// so on); the parts themselves are the same.
class Decoder {
 public:
  Decoder(const File& file, std::uint64_t& unknown, Wanted wanted) : file_(file), unknown_(unknown), wanted_(wanted) {}

  Result decode(const Entry& entry) {
    result_.kind = entry.kind;
    result_.process = entry.process;
    result_.offset = entry.offset;
    for_each_field(file_.bytes(entry), unknown_, [&](Field& field) {
      switch (entry.kind) {
        case ResultKind::kKernel: return kernel(field);
        case ResultKind::kRange: return range(field);
        case ResultKind::kCommandList: return command_list(field);
        case ResultKind::kGraph: return graph(field);
      }
      return false;
    });
    return std::move(result_);
  }

 private:
  bool kernel(Field& field) {
    switch (field.key()) {
      case proto::varint(1): result_.thread = field.number(); return true;
      case proto::bytes(5): result_.mangled = field.text(); return true;
      case proto::bytes(6): result_.function = field.text(); return true;
      case proto::bytes(7): result_.demangled = field.text(); return true;
      case proto::bytes(10): result_.grid = dimensions(field.text()); return true;
      case proto::bytes(11): result_.block = dimensions(field.text()); return true;
      case proto::bytes(13): return metric(field.text());
      case proto::bytes(15): result_.source = reference(field.text()); return true;
      case proto::bytes(17): return section(field.text());
      case proto::bytes(19): return rule(field.text());
      case proto::bytes(21): return nvtx(field.text());
      case proto::varint(22): result_.context = field.number(); return true;
      case proto::varint(23): result_.stream = field.number(); return true;
      case proto::bytes(25): return clocks(field.text());
      // API call, program handle, kernel id, dimensionality, offsets, creation time, api, series, names of context and
      // stream, CPU stack, collection scope, green context: known, and of no use here
      case proto::varint(2):
      case proto::varint(3):
      case proto::varint(4):
      case proto::varint(8):
      case proto::bytes(9):
      case proto::bytes(12):
      case proto::varint(14):
      case proto::varint(16):
      case proto::bytes(18):
      case proto::varint(20):
      case proto::bytes(24):
      case proto::bytes(26):
      case proto::bytes(27):
      case proto::bytes(28):
      case proto::varint(29):
      case proto::varint(30):
      case proto::bytes(31):
      case proto::fixed32(35):  // 2025: empty wherever seen, and the driver's version
        field.reader.skip();
        return true;
      default: return false;
    }
  }

  /// Fields 1 to 6 of ranges, command lists and graphs.
  bool common(Field& field) {
    switch (field.key()) {
      case proto::varint(1): result_.thread = field.number(); return true;
      case proto::bytes(4): return metric(field.text());
      case proto::bytes(7): return section(field.text());
      case proto::bytes(10): return nvtx(field.text());
      case proto::varint(11): result_.context = field.number(); return true;
      case proto::varint(2):  // API call
      case proto::bytes(3):
      case proto::varint(5):  // creation time
      case proto::varint(6):
      case proto::bytes(8):
      case proto::varint(9):
      case proto::bytes(14): field.reader.skip(); return true;
      default: return false;
    }
  }

  bool range(Field& field) {
    switch (field.key()) {
      case proto::bytes(12): return clocks(field.text());
      case proto::varint(15): result_.source = field.number(); return true;
      case proto::bytes(20): return rule(field.text());  // from 2025; 2024.1 and before have no rules on ranges
      case proto::bytes(13):
      case proto::varint(16):
      case proto::fixed32(21): field.reader.skip(); return true;
      default: return common(field);
    }
  }

  bool command_list(Field& field) {
    switch (field.key()) {
      case proto::varint(12): result_.stream = field.number(); return true;
      case proto::varint(17): result_.source = field.number(); return true;
      case proto::bytes(18): result_.demangled = field.text(); return true;
      case proto::bytes(21): return rule(field.text());
      case proto::bytes(13):
      case proto::bytes(15):
      case proto::bytes(16):
      case proto::varint(16):
      case proto::varint(19):
      case proto::bytes(20):
      case proto::varint(22): field.reader.skip(); return true;
      default: return common(field);
    }
  }

  bool graph(Field& field) {
    switch (field.key()) {
      case proto::varint(12): result_.stream = field.number(); return true;
      case proto::varint(17): result_.source = field.number(); return true;
      case proto::bytes(13):
      case proto::bytes(15):
      case proto::bytes(16):
      case proto::varint(18): field.reader.skip(); return true;
      default: return common(field);
    }
  }

  std::array<std::uint32_t, 3> dimensions(std::string_view message) {
    std::array<std::uint32_t, 3> xyz{};
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): xyz[0] = field.number32(); return true;
        case proto::varint(2): xyz[1] = field.number32(); return true;
        case proto::varint(3): xyz[2] = field.number32(); return true;
        default: return false;
      }
    });
    return xyz;
  }

  std::optional<std::uint64_t> reference(std::string_view message) {
    std::optional<std::uint64_t> key;
    for_each_field(message, unknown_, [&](Field& field) {
      if (field.key() == proto::varint(1)) {
        key = field.number();
        return true;
      }
      return false;
    });
    return key;
  }

  bool clocks(std::string_view message) {
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): field.reader.skip(); return true;  // as it was requested
        case proto::varint(2): result_.clock_executed = field.number32(); return true;
        default: return false;
      }
    });
    return true;
  }

  bool metric(std::string_view message) {
    if (!wanted_.metrics) return true;
    MetricEntry& metric = result_.metrics.emplace_back();
    metric.message = message;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): metric.name = field.number32(); return true;
        case proto::bytes(2): metric.value = proto::read_value(field.text(), unknown_); return true;
        case proto::bytes(3):
          ++metric.instances;
          field.reader.skip();
          return true;
        case proto::varint(4): field.reader.skip(); return true;
        default: return false;
      }
    });
    return true;
  }

  Filter filter(std::string_view message) {
    Filter filter;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): filter.least_capability = field.number(); return true;
        case proto::varint(2): filter.most_capability = field.number(); return true;
        case proto::bytes(3): {
          std::pair<std::uint64_t, std::uint64_t> range;
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::varint(1): range.first = part.number(); return true;
              case proto::varint(2): range.second = part.number(); return true;
              default: return false;
            }
          });
          filter.capabilities.push_back(range);
          return true;
        }
        case proto::bytes(4):
          for_each_field(field.text(), unknown_, [&](Field& part) {
            if (part.key() != proto::varint(1)) return false;
            const std::uint64_t kind = part.number();
            if (kind < 32) filter.kinds |= 1u << kind;
            return true;
          });
          return true;
        default: return false;
      }
    });
    return filter;
  }

  SectionMetric section_metric(std::string_view message) {
    SectionMetric metric;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::bytes(1): metric.name = field.text(); return true;
        case proto::bytes(2): metric.label = field.text(); return true;
        case proto::bytes(6): metric.filter = filter(field.text()); return true;
        case proto::bytes(7): {
          SectionMetric::Option& option = metric.options.emplace_back();
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::bytes(1): option.name = part.text(); return true;
              case proto::bytes(2): part.reader.skip(); return true;
              case proto::bytes(3): option.filter = filter(part.text()); return true;
              default: return false;
            }
          });
          return true;
        }
        case proto::bytes(3):
        case proto::varint(3):
        case proto::varint(4):
        case proto::bytes(4):
        case proto::bytes(5): field.reader.skip(); return true;
        default: return false;
      }
    });
    return metric;
  }

  std::vector<SectionMetric> section_metrics(std::string_view message, std::uint32_t number) {
    std::vector<SectionMetric> metrics;
    for_each_field(message, unknown_, [&](Field& field) {
      if (field.key() == proto::bytes(number)) {
        metrics.push_back(section_metric(field.text()));
        return true;
      }
      if (field.reader.tag() > 2) return false;
      field.reader.skip();
      return true;
    });
    return metrics;
  }

  bool section(std::string_view message) {
    if (!wanted_.sections) return true;
    Section& section = result_.sections.emplace_back();
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::bytes(1): section.identifier = field.text(); return true;
        case proto::bytes(2): section.display_name = field.text(); return true;
        case proto::varint(3): section.order = static_cast<std::int64_t>(field.number()); return true;
        case proto::bytes(4): section.header = section_metrics(field.text(), 2); return true;
        case proto::bytes(5): section.body.push_back(field.text()); return true;
        case proto::bytes(6): section.metrics = section_metrics(field.text(), 1); return true;
        case proto::bytes(11): section.filter = filter(field.text()); return true;
        case proto::bytes(7):
        case proto::bytes(8):
        case proto::bytes(9):
        case proto::bytes(10):
        case proto::bytes(12):
        case proto::bytes(13): field.reader.skip(); return true;
        default: return false;
      }
    });
    return true;
  }

  void rule_item(Rule& rule, std::string_view message) {
    bool is_message = false;
    RuleMessage said;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::bytes(1):
          is_message = true;
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::bytes(1): said.text = part.text(); return true;
              case proto::varint(2): said.type = part.number32(); return true;
              case proto::varint(3): part.reader.skip(); return true;
              case proto::bytes(4): said.title = part.text(); return true;
              default: return false;
            }
          });
          return true;
        case proto::bytes(10):
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::varint(1): said.speedup_is_global = part.number() == 2; return true;
              case proto::fixed64(2): said.speedup = part.reader.get_double(); return true;
              default: return false;
            }
          });
          return true;
        case proto::bytes(2):
        case proto::bytes(3):
        case proto::bytes(4):
        case proto::bytes(5):
        case proto::bytes(6):
        case proto::bytes(7):
        case proto::bytes(8):
        case proto::bytes(9): field.reader.skip(); return true;
        default: return false;
      }
    });
    if (is_message) rule.messages.push_back(said);
  }

  bool rule(std::string_view message) {
    if (!wanted_.rules) return true;
    Rule& rule = result_.rules.emplace_back();
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::bytes(1): rule.identifier = field.text(); return true;
        case proto::bytes(2): rule.display_name = field.text(); return true;
        case proto::bytes(3):
          for_each_field(field.text(), unknown_, [&](Field& body) {
            if (body.key() != proto::bytes(1)) return false;
            rule_item(rule, body.text());
            return true;
          });
          return true;
        case proto::bytes(4): rule.section = field.text(); return true;
        case proto::bytes(5): field.reader.skip(); return true;
        default: return false;
      }
    });
    return true;
  }

  bool nvtx(std::string_view message) {
    result_.nvtx = decode_nvtx(message, unknown_);
    return true;
  }

  const File& file_;
  std::uint64_t& unknown_;
  Wanted wanted_;
  Result result_;
};

}  // namespace

base::Result<Result> decode(const File& file, const Entry& entry, std::uint64_t& unknown, Wanted wanted) {
  Result result;
  const auto parsed = proto::parse_message(file.path + ": offset " + std::to_string(entry.offset),
                                           [&] { result = Decoder(file, unknown, wanted).decode(entry); });
  if (!parsed) return base::fail(base::Result<void>(parsed));
  return result;
}

std::vector<Instance> instances(const MetricEntry& metric) {
  std::vector<Instance> all;
  std::uint64_t unknown = 0;
  (void)proto::parse_message("", [&] {
    for_each_field(metric.message, unknown, [&](Field& field) {
      if (field.key() != proto::bytes(3)) return false;
      Instance instance;
      for_each_field(field.text(), unknown, [&](Field& part) {
        switch (part.key()) {
          case proto::bytes(1): instance.correlation = proto::read_value(part.text(), unknown); return true;
          case proto::bytes(2): instance.value = proto::read_value(part.text(), unknown); return true;
          default: return false;
        }
      });
      all.push_back(instance);
      return true;
    });
  });
  return all;
}

}  // namespace rangescope::read::ncu_report
