#include "read/ncu/report/nvtx_state.hpp"

#include <bit>

#include "read/ncu/report/wire.hpp"

namespace rangescope::read::ncu_report {
namespace {

using proto::Field;
using proto::for_each_field;

class NvtxDecoder {
 public:
  explicit NvtxDecoder(std::uint64_t& unknown) : unknown_(unknown) {}

  NvtxState state(std::string_view message) {
    NvtxState state;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::bytes(1): state.domains.push_back(domain(field.text())); return true;
        case proto::bytes(2): {
          NvtxThread thread;
          std::vector<std::string_view> domains;
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::varint(1): thread.tid = part.number(); return true;
              case proto::bytes(2): domains.push_back(part.text()); return true;
              default: return false;
            }
          });
          for (const std::string_view domain : domains) {
            per_domain(domain,
                       [&](std::string_view range, std::uint32_t id) { thread.stack.push_back(push(range, id)); });
          }
          state.threads.push_back(std::move(thread));
          return true;
        }
        case proto::bytes(3):
          per_domain(field.text(),
                     [&](std::string_view range, std::uint32_t id) { state.start_end.push_back(start(range, id)); });
          return true;
        case proto::varint(4): field.reader.skip(); return true;
        case proto::varint(5): state.process_scope = field.number() == 1; return true;
        default: return false;
      }
    });
    return state;
  }

 private:
  NvtxDomain domain(std::string_view message) {
    NvtxDomain domain;
    const auto pair = [&](std::string_view entry) {
      std::pair<std::uint64_t, std::string_view> string;
      for_each_field(entry, unknown_, [&](Field& part) {
        switch (part.key()) {
          case proto::varint(1): string.first = part.number(); return true;
          case proto::bytes(2): string.second = part.text(); return true;
          default: return false;
        }
      });
      return string;
    };
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): domain.id = field.number32(); return true;
        case proto::bytes(2): domain.name = field.text(); return true;
        case proto::bytes(3): domain.strings.push_back(pair(field.text())); return true;
        case proto::bytes(4): {  // a table of names: {1 type (1 categories), 2 entries}
          std::uint64_t type = 0;
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::varint(1): type = part.number(); return true;
              case proto::bytes(2): {
                const auto [id, name] = pair(part.text());
                if (type == 1) domain.categories.emplace_back(static_cast<std::uint32_t>(id), name);
                return true;
              }
              default: return false;
            }
          });
          return true;
        }
        default: return false;
      }
    });
    return domain;
  }

  NvtxAttributes attributes(std::string_view message) {
    NvtxAttributes attributes;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): field.reader.skip(); return true;  // version
        case proto::varint(2): attributes.category = field.number32(); return true;
        case proto::bytes(3):
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::varint(1): attributes.color_type = part.number32(); return true;
              case proto::varint(2): attributes.color = part.number32(); return true;
              case proto::fixed32(2): attributes.color = part.reader.get_fixed32(); return true;
              default: return false;
            }
          });
          return true;
        case proto::bytes(4): payload(attributes, field.text()); return true;
        case proto::bytes(5):
          for_each_field(field.text(), unknown_, [&](Field& part) {
            switch (part.key()) {
              case proto::varint(1): attributes.message_type = part.number32(); return true;
              case proto::bytes(2): attributes.message = part.text(); return true;
              case proto::varint(3): attributes.message_handle = part.number(); return true;
              default: return false;
            }
          });
          return true;
        default: return false;
      }
    });
    return attributes;
  }

  void payload(NvtxAttributes& attributes, std::string_view message) {
    for_each_field(message, unknown_, [&](Field& part) {
      if (part.key() == proto::varint(1)) {
        attributes.payload_type = part.number32();
        return true;
      }
      if (part.reader.tag() < 2 || part.reader.tag() > 9) return false;
      switch (part.reader.wire_type()) {
        case proto::Type::varint: attributes.payload_integer = part.number(); return true;
        case proto::Type::fixed64:
          attributes.payload_integer = part.reader.get_fixed64();
          attributes.payload_number = std::bit_cast<double>(attributes.payload_integer);
          return true;
        case proto::Type::fixed32:
          attributes.payload_integer = part.reader.get_fixed32();
          attributes.payload_number =
              static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(attributes.payload_integer)));
          return true;
        case proto::Type::length_delimited: attributes.payload_text = part.text(); return true;
        default: return false;
      }
    });
  }

  NvtxRange push(std::string_view message, std::uint32_t domain) {
    NvtxRange range;
    range.domain = domain;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::bytes(1): range.name = field.text(); return true;
        case proto::bytes(2): range.attributes = attributes(field.text()); return true;
        case proto::varint(3): range.last_api_call = field.number(); return true;
        case proto::varint(4): range.id = field.number(); return true;
        default: return false;
      }
    });
    return range;
  }

  NvtxRange start(std::string_view message, std::uint32_t domain) {
    NvtxRange range;
    range.domain = domain;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): range.id = field.number(); return true;
        case proto::bytes(2): range.name = field.text(); return true;
        case proto::bytes(3): range.attributes = attributes(field.text()); return true;
        case proto::varint(4): range.last_api_call = field.number(); return true;
        case proto::varint(5): field.reader.skip(); return true;  // thread
        default: return false;
      }
    });
    return range;
  }

  /// The ranges of one domain: {1 domain id, 3 ranges}. The id may stand behind them.
  template <class Take>
  void per_domain(std::string_view message, Take&& take) {
    std::uint32_t domain = 0;
    std::vector<std::string_view> ranges;
    for_each_field(message, unknown_, [&](Field& field) {
      switch (field.key()) {
        case proto::varint(1): domain = field.number32(); return true;
        case proto::bytes(3): ranges.push_back(field.text()); return true;
        default: return false;
      }
    });
    for (const std::string_view range : ranges) take(range, domain);
  }

  std::uint64_t& unknown_;
};

}  // namespace

const NvtxDomain* NvtxState::domain(std::uint32_t id) const {
  for (const NvtxDomain& domain : domains) {
    if (domain.id == id) return &domain;
  }
  return nullptr;
}

std::string_view NvtxState::message_text(const NvtxRange& range) const {
  if (!range.attributes) return {};
  if (range.attributes->message_type != static_cast<std::uint32_t>(Message::kRegistered))
    return range.attributes->message;
  if (const NvtxDomain* in = domain(range.domain)) {
    for (const auto& [handle, text] : in->strings) {
      if (handle == range.attributes->message_handle) return text;
    }
  }
  return range.attributes->message;
}

std::string_view NvtxState::effective_name(const NvtxRange& range) const {
  return range.name.empty() ? message_text(range) : range.name;
}

NvtxState decode_nvtx(std::string_view message, std::uint64_t& unknown) {
  return NvtxDecoder(unknown).state(message);
}

}  // namespace rangescope::read::ncu_report
