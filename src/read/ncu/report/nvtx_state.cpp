#include "read/ncu/report/nvtx_state.hpp"

#include <bit>

#include "read/ncu/report/wire.hpp"

namespace rangescope::read::ncu_report {
namespace {

using namespace proto;

constexpr std::uint32_t kRegistered = 3;  // type of a message

class NvtxDecoder {
 public:
  explicit NvtxDecoder(std::uint64_t& unknown) : unknown_(unknown) {}

  NvtxState state(std::string_view message) {
    NvtxState state;
    std::uint32_t scope = 0;
    read(message, each(1, [&](std::string_view m) { state.domains.push_back(domain(m)); }),
         each(2,
              [&](std::string_view m) {
                NvtxThread thread;
                std::vector<std::string_view> domains;
                read(m, number(1, thread.tid), each(2, [&](std::string_view one) { domains.push_back(one); }));
                for (const std::string_view one : domains)
                  per_domain(one, [&](std::string_view r, std::uint32_t id) { thread.stack.push_back(push(r, id)); });
                state.threads.push_back(std::move(thread));
              }),
         each(3,
              [&](std::string_view m) {
                per_domain(m, [&](std::string_view r, std::uint32_t id) { state.start_end.push_back(start(r, id)); });
              }),
         skip({varint(4)}), number(5, scope));
    state.process_scope = scope == 1;
    return state;
  }

 private:
  template <class... Fields>
  void read(std::string_view message, const Fields&... fields) {
    proto::read(message, unknown_, fields...);
  }

  NvtxDomain domain(std::string_view message) {
    NvtxDomain domain;
    const auto pair = [&](std::string_view entry) {
      std::pair<std::uint64_t, std::string_view> string;
      read(entry, number(1, string.first), text(2, string.second));
      return string;
    };
    read(message, number(1, domain.id), text(2, domain.name),
         each(3, [&](std::string_view m) { domain.strings.push_back(pair(m)); }),
         each(4, [&](std::string_view table) {  // of names: {1 type (1 categories), 2 entries}
           std::uint64_t type = 0;
           read(table, number(1, type), each(2, [&](std::string_view m) {
                  const auto [id, name] = pair(m);
                  if (type == 1) domain.categories.emplace_back(static_cast<std::uint32_t>(id), name);
                }));
         }));
    return domain;
  }

  NvtxAttributes attributes(std::string_view message) {
    NvtxAttributes out;
    const auto fixed_color = [&](Field& at) {
      if (at.key() != fixed32(2)) return false;
      out.color = at.reader.get_fixed32();
      return true;
    };
    read(message, skip({varint(1)}), number(2, out.category),
         each(3, [&](std::string_view m) { read(m, number(1, out.color_type), number(2, out.color), fixed_color); }),
         each(4, [&](std::string_view m) { payload(out, m); }), each(5, [&](std::string_view m) {
           read(m, number(1, out.message_type), text(2, out.message), number(3, out.message_handle));
         }));
    return out;
  }

  void payload(NvtxAttributes& attributes, std::string_view message) {
    read(message, number(1, attributes.payload_type), [&](Field& part) {
      if (part.reader.tag() < 2 || part.reader.tag() > 9) return false;
      switch (part.reader.wire_type()) {
        case Type::varint: attributes.payload_integer = part.number(); return true;
        case Type::fixed64:
          attributes.payload_integer = part.reader.get_fixed64();
          attributes.payload_number = std::bit_cast<double>(attributes.payload_integer);
          return true;
        case Type::fixed32:
          attributes.payload_integer = part.reader.get_fixed32();
          attributes.payload_number =
              static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(attributes.payload_integer)));
          return true;
        case Type::length_delimited: attributes.payload_text = part.text(); return true;
        default: return false;
      }
    });
  }

  NvtxRange push(std::string_view message, std::uint32_t domain) {
    NvtxRange range;
    range.domain = domain;
    read(message, text(1, range.name), each(2, [&](std::string_view m) { range.attributes = attributes(m); }),
         number(3, range.last_api_call), number(4, range.id));
    return range;
  }

  NvtxRange start(std::string_view message, std::uint32_t domain) {
    NvtxRange range;
    range.domain = domain;
    read(message, number(1, range.id), text(2, range.name),
         each(3, [&](std::string_view m) { range.attributes = attributes(m); }), number(4, range.last_api_call),
         skip({varint(5)}));  // thread
    return range;
  }

  /// The ranges of one domain: {1 domain id, 3 ranges}. The id may follow them.
  template <class Take>
  void per_domain(std::string_view message, Take&& take) {
    std::uint32_t domain = 0;
    std::vector<std::string_view> ranges;
    read(message, number(1, domain), each(3, [&](std::string_view m) { ranges.push_back(m); }));
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
  if (range.attributes->message_type != kRegistered) return range.attributes->message;
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
