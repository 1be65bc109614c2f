#include "read/ncu/report/nvtx_state.hpp"

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
    read(message,
         each(1, [&](std::string_view m) { state.domains.push_back(domain(m)); }),
         each(2,
              [&](std::string_view m) {
                NvtxThread thread;
                std::vector<std::string_view> domains;
                read(m, number(1, thread.tid), each(2, [&](std::string_view one) {
                       domains.push_back(one);
                     }));
                for (const std::string_view domain : domains)
                  per_domain(domain, [&](std::string_view r, std::uint32_t id) {
                    thread.stack.push_back(push(r, id));
                  });
                state.threads.push_back(std::move(thread));
              }),
         each(3,
              [&](std::string_view m) {
                per_domain(m, [&](std::string_view r, std::uint32_t id) {
                  state.start_end.push_back(start(r, id));
                });
              }),
         skip({varint(4)}),
         number(5, scope));
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
    read(message,
         number(1, domain.id),
         text(2, domain.name),
         each(3, [&](std::string_view m) { domain.strings.push_back(pair(m)); }),
         skip({bytes(4)}));  // names of categories
    return domain;
  }

  /// The message among a range's attributes; of no use are version, category, color and payload.
  NvtxMessage message_of(std::string_view attributes) {
    NvtxMessage out;
    std::uint32_t type = 0;
    read(attributes,
         skip({varint(1), varint(2), bytes(3), bytes(4)}),
         each(5, [&](std::string_view m) {
           read(m, number(1, type), text(2, out.text), number(3, out.handle));
         }));
    out.registered = type == kRegistered;
    return out;
  }

  NvtxRange push(std::string_view message, std::uint32_t domain) {
    NvtxRange range;
    range.domain = domain;
    read(message,
         text(1, range.name),
         each(2, [&](std::string_view m) { range.message = message_of(m); }),
         number(3, range.last_api_call),
         number(4, range.id));
    return range;
  }

  NvtxRange start(std::string_view message, std::uint32_t domain) {
    NvtxRange range;
    range.domain = domain;
    read(message,
         number(1, range.id),
         text(2, range.name),
         each(3, [&](std::string_view m) { range.message = message_of(m); }),
         number(4, range.last_api_call),
         skip({varint(5)}));  // thread
    return range;
  }

  /// The ranges of one domain: {1 domain id, 3 ranges}. The id may follow them.
  template <class Take>
  void per_domain(std::string_view message, Take&& take) {
    std::uint32_t domain = 0;
    std::vector<std::string_view> ranges;
    read(message, number(1, domain), each(3, [&](std::string_view m) { ranges.push_back(m); }));
    for (const std::string_view range : ranges)
      take(range, domain);
  }

  std::uint64_t& unknown_;
};

}  // namespace

const NvtxDomain* NvtxState::domain(std::uint32_t id) const {
  for (const NvtxDomain& domain : domains) {
    if (domain.id == id)
      return &domain;
  }
  return nullptr;
}

std::string_view NvtxState::effective_name(const NvtxRange& range) const {
  if (!range.name.empty())
    return range.name;
  if (!range.message.registered)
    return range.message.text;
  if (const NvtxDomain* in = domain(range.domain)) {
    for (const auto& [handle, text] : in->strings)
      if (handle == range.message.handle)
        return text;
  }
  return range.message.text;
}

NvtxState decode_nvtx(std::string_view message, std::uint64_t& unknown) {
  return NvtxDecoder(unknown).state(message);
}

}  // namespace rangescope::read::ncu_report
