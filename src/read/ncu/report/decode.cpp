#include "read/ncu/report/decode.hpp"

#include <tuple>

#include "read/ncu/report/wire.hpp"

namespace rangescope::read::ncu_report {
namespace {

using namespace proto;

/// Reads the parts of one result. The four kinds hold the same parts under different field numbers.
class Decoder {
 public:
  Decoder(const File& file, std::uint64_t& unknown, Wanted wanted) : file_(file), unknown_(unknown), wanted_(wanted) {}

  Result decode(const Entry& entry) {
    Result& out = result_;
    out.kind = entry.kind;
    out.process = entry.process;
    out.offset = entry.offset;
    const std::string_view message = file_.bytes(entry);
    const auto metrics = [&](std::uint32_t field) { return each(field, [&](std::string_view m) { metric(m); }); };
    const auto sections = [&](std::uint32_t field) { return each(field, [&](std::string_view m) { section(m); }); };
    const auto rules = [&](std::uint32_t field) { return each(field, [&](std::string_view m) { rule(m); }); };
    const auto nvtx = [&](std::uint32_t field) {
      return each(field, [&](std::string_view m) { out.nvtx = decode_nvtx(m, unknown_); });
    };
    const auto clocks = [&](std::uint32_t field) {  // as they were requested, as they were
      return each(field, [&](std::string_view m) { read(m, skip({varint(1)}), number(2, out.clock_executed)); });
    };
    // Ranges, command lists and graphs; of no use are API call and creation time.
    const auto common = [&, parts = std::tuple(number(1, out.thread), metrics(4), sections(7), nvtx(10),
                                               number(11, out.context))](Field& at) {
      return std::apply([&](const auto&... part) { return (part(at) || ...); }, parts) ||
             skip({varint(2), bytes(3), varint(5), varint(6), bytes(8), varint(9), bytes(14)})(at);
    };
    switch (entry.kind) {
      case ResultKind::kKernel:
        // API call, program handle, kernel id, dimensionality, offsets, creation time, api, series, names of context
        // and stream, CPU stack, collection scope, green context are of no use; 35 (2025) holds the driver's version
        read(message, number(1, out.thread), text(5, out.mangled), text(6, out.function), text(7, out.demangled),
             each(10, [&](std::string_view m) { out.grid = dimensions(m); }),
             each(11, [&](std::string_view m) { out.block = dimensions(m); }), metrics(13),
             each(15, [&](std::string_view m) { read(m, number(1, out.source)); }), sections(17), rules(19), nvtx(21),
             number(22, out.context), number(23, out.stream), clocks(25),
             skip({varint(2), varint(3), varint(4), varint(8), bytes(9), bytes(12), varint(14), varint(16), bytes(18),
                   varint(20), bytes(24), bytes(26), bytes(27), bytes(28), varint(29), varint(30), bytes(31),
                   fixed32(35)}));
        break;
      case ResultKind::kRange:  // rules from 2025 on
        read(message, clocks(12), number(15, out.source), rules(20), skip({bytes(13), varint(16), fixed32(21)}),
             common);
        break;
      case ResultKind::kCommandList:
        read(message, number(12, out.stream), number(17, out.source), text(18, out.demangled), rules(21),
             skip({bytes(13), bytes(15), bytes(16), varint(16), varint(19), bytes(20), varint(22)}), common);
        break;
      case ResultKind::kGraph:
        read(message, number(12, out.stream), number(17, out.source),
             skip({bytes(13), bytes(15), bytes(16), varint(18)}), common);
        break;
    }
    return std::move(result_);
  }

 private:
  template <class... Fields>
  void read(std::string_view message, const Fields&... fields) {
    proto::read(message, unknown_, fields...);
  }

  std::array<std::uint32_t, 3> dimensions(std::string_view message) {
    std::array<std::uint32_t, 3> xyz{};
    read(message, number(1, xyz[0]), number(2, xyz[1]), number(3, xyz[2]));
    return xyz;
  }

  void metric(std::string_view message) {
    if (!wanted_.metrics) return;
    MetricEntry& metric = result_.metrics.emplace_back();
    metric.message = message;
    read(message, number(1, metric.name), each(2, [&](std::string_view m) { metric.value = read_value(m, unknown_); }),
         each(3, [&](std::string_view) { ++metric.instances; }), skip({varint(4)}));
  }

  Filter filter(std::string_view message) {
    Filter filter;
    read(message, number(1, filter.least_capability), number(2, filter.most_capability),
         each(3,
              [&](std::string_view m) {
                auto& range = filter.capabilities.emplace_back();
                read(m, number(1, range.first), number(2, range.second));
              }),
         each(4, [&](std::string_view m) {
           read(m, [&](Field& part) {
             if (part.key() != varint(1)) return false;
             const std::uint64_t kind = part.number();
             if (kind < 32) filter.kinds |= 1u << kind;
             return true;
           });
         }));
    return filter;
  }

  SectionMetric section_metric(std::string_view message) {
    SectionMetric metric;
    read(message, text(1, metric.name), text(2, metric.label),
         each(6, [&](std::string_view m) { metric.filter = filter(m); }),
         each(7,
              [&](std::string_view m) {
                auto& option = metric.options.emplace_back();
                read(m, text(1, option.name), skip({bytes(2)}),
                     each(3, [&](std::string_view f) { option.filter = filter(f); }));
              }),
         skip({bytes(3), varint(3), varint(4), bytes(4), bytes(5)}));
    return metric;
  }

  std::vector<SectionMetric> section_metrics(std::string_view message, std::uint32_t number) {
    std::vector<SectionMetric> metrics;
    read(message, each(number, [&](std::string_view m) { metrics.push_back(section_metric(m)); }), [](Field& field) {
      if (field.reader.tag() > 2) return false;
      field.reader.skip();
      return true;
    });
    return metrics;
  }

  void section(std::string_view message) {
    if (!wanted_.sections) return;
    Section& section = result_.sections.emplace_back();
    read(message, text(1, section.identifier), text(2, section.display_name), number(3, section.order),
         each(4, [&](std::string_view m) { section.header = section_metrics(m, 2); }),
         each(6, [&](std::string_view m) { section.metrics = section_metrics(m, 1); }),
         each(11, [&](std::string_view m) { section.filter = filter(m); }),
         skip({bytes(5), bytes(7), bytes(8), bytes(9), bytes(10), bytes(12), bytes(13)}));
  }

  void rule_item(Rule& rule, std::string_view message) {
    bool is_message = false;
    RuleMessage said;
    const auto speedup = [&](Field& part) {
      if (part.key() != fixed64(2)) return false;
      said.speedup = part.reader.get_double();
      return true;
    };
    read(message,
         each(1,
              [&](std::string_view m) {
                is_message = true;
                read(m, text(1, said.text), number(2, said.type), skip({varint(3), bytes(4)}));
              }),
         each(10,
              [&](std::string_view m) {
                std::uint64_t scope = 0;
                read(m, number(1, scope), speedup);
                said.speedup_is_global = scope == 2;
              }),
         skip({bytes(2), bytes(3), bytes(4), bytes(5), bytes(6), bytes(7), bytes(8), bytes(9)}));
    if (is_message) rule.messages.push_back(said);
  }

  void rule(std::string_view message) {
    if (!wanted_.rules) return;
    Rule& rule = result_.rules.emplace_back();
    read(message, text(1, rule.identifier),
         each(3, [&](std::string_view body) { read(body, each(1, [&](std::string_view m) { rule_item(rule, m); })); }),
         text(4, rule.section), skip({bytes(2), bytes(5)}));
  }

  const File& file_;
  std::uint64_t& unknown_;
  Wanted wanted_;
  Result result_;
};

}  // namespace

base::Result<Result> decode(const File& file, const Entry& entry, std::uint64_t& unknown, Wanted wanted) {
  Result result;
  file.passed(entry.offset);
  TRY(parse_message(file.path + ": offset " + std::to_string(entry.offset),
                    [&] { result = Decoder(file, unknown, wanted).decode(entry); }));
  return result;
}

std::vector<Instance> instances(const MetricEntry& metric) {
  std::vector<Instance> all;
  std::uint64_t unknown = 0;
  (void)parse_message("", [&] {
    const auto into = [&](std::uint32_t field, Value& value) {
      return each(field, [&](std::string_view m) { value = read_value(m, unknown); });
    };
    read(metric.message, unknown, each(3, [&](std::string_view m) {
           Instance instance;
           read(m, unknown, into(1, instance.correlation), into(2, instance.value));
           all.push_back(instance);
         }));
  });
  return all;
}

}  // namespace rangescope::read::ncu_report
