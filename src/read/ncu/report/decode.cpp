#include "read/ncu/report/decode.hpp"

#include <tuple>

#include "read/ncu/report/wire.hpp"

namespace rangescope::read::ncu_report {
namespace {

using namespace proto;

/// Reads the parts of one result. The four kinds hold the same parts under different field numbers.
class Decoder {
 public:
  Decoder(const File& file, std::uint64_t& unknown) : file_(file), unknown_(unknown) {}

  Result decode(const Entry& entry) {
    Result& out = result_;
    out.kind = entry.kind;
    out.process = entry.process;
    const std::string_view message = file_.bytes(entry);
    const auto metrics = [&](std::uint32_t field) {
      return each(field, [&](std::string_view m) { metric(m); });
    };
    const auto nvtx = [&](std::uint32_t field) {
      return each(field, [&](std::string_view m) { out.nvtx = decode_nvtx(m, unknown_); });
    };
    // Ranges, command lists and graphs; of no use are API call, creation time and sections.
    const auto common =
        [&,
         parts = std::tuple(number(1, out.thread), metrics(4), nvtx(10), number(11, out.context))](
            Field& at) {
          return std::apply([&](const auto&... part) { return (part(at) || ...); }, parts) ||
                 skip({varint(2),
                       bytes(3),
                       varint(5),
                       varint(6),
                       bytes(7),
                       bytes(8),
                       varint(9),
                       bytes(14)})(at);
        };
    switch (entry.kind) {
      case ResultKind::kKernel: kernel(message, metrics(13), nvtx(21)); break;
      case ResultKind::kRange:  // clocks, source; rules from 2025 on
        read(message,
             skip({bytes(12), bytes(13), varint(15), varint(16), bytes(20), fixed32(21)}),
             common);
        break;
      case ResultKind::kCommandList:  // source, rules
        read(message,
             number(12, out.stream),
             text(18, out.demangled),
             skip({bytes(13),
                   bytes(15),
                   bytes(16),
                   varint(16),
                   varint(17),
                   varint(19),
                   bytes(20),
                   bytes(21),
                   varint(22)}),
             common);
        break;
      case ResultKind::kGraph:
        read(message,
             number(12, out.stream),
             skip({bytes(13), bytes(15), bytes(16), varint(17), varint(18)}),
             common);
        break;
    }
    return std::move(result_);
  }

 private:
  template <class... Fields>
  void read(std::string_view message, const Fields&... fields) {
    proto::read(message, unknown_, fields...);
  }

  // API call, program handle, kernel id, dimensionality, offsets, creation time, source, api,
  // sections, series, rules, names of context and stream, clocks, CPU stack, collection scope,
  // green context are of no use; 35 (2025) holds the driver's version
  template <class Metrics, class Nvtx>
  void kernel(std::string_view message, const Metrics& metrics, const Nvtx& nvtx) {
    Result& out = result_;
    read(message,
         number(1, out.thread),
         text(5, out.mangled),
         text(6, out.function),
         text(7, out.demangled),
         each(10, [&](std::string_view m) { out.grid = dimensions(m); }),
         each(11, [&](std::string_view m) { out.block = dimensions(m); }),
         metrics,
         nvtx,
         number(22, out.context),
         number(23, out.stream),
         skip({varint(2),  varint(3),  varint(4),  varint(8),  bytes(9),  bytes(12),
               varint(14), bytes(15),  varint(16), bytes(17),  bytes(18), bytes(19),
               varint(20), bytes(24),  bytes(25),  bytes(26),  bytes(27), bytes(28),
               varint(29), varint(30), bytes(31),  fixed32(35)}));
  }

  std::array<std::uint32_t, 3> dimensions(std::string_view message) {
    std::array<std::uint32_t, 3> xyz{};
    read(message, number(1, xyz[0]), number(2, xyz[1]), number(3, xyz[2]));
    return xyz;
  }

  void metric(std::string_view message) {
    MetricEntry& metric = result_.metrics.emplace_back();
    read(message,
         number(1, metric.name),
         each(2, [&](std::string_view m) { metric.value = read_value(m, unknown_); }),
         skip({bytes(3), varint(4)}));  // 3: its instances
  }

  const File& file_;
  std::uint64_t& unknown_;
  Result result_;
};

}  // namespace

base::Result<Result> decode(const File& file, const Entry& entry, std::uint64_t& unknown) {
  Result result;
  file.passed(entry.offset);
  TRY(parse_message(file.path + ": offset " + std::to_string(entry.offset),
                    [&] { result = Decoder(file, unknown).decode(entry); }));
  return result;
}

}  // namespace rangescope::read::ncu_report
