// Fuzz target of the native capture reader: any bytes give a session or an error, links stay within
// their tables.
#include <cstdint>
#include <cstdlib>

#include "read/native/trace.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  model::Session session;
  read::native::Losses losses;
  if (!read::native::read_trace(std::as_bytes(std::span(data, size)), "fuzz", session, losses))
    return ::fuzz::count(false);
  read::native::order_ranges(session);
  for (const model::Range& range : session.ranges) {
    if (range.thread >= session.threads.size() || range.domain >= session.domains.size())
      std::abort();
    if (range.attributes != model::kNone && range.attributes >= session.attributes.size())
      std::abort();
    if (range.end_thread != model::kNone && range.end_thread >= session.threads.size())
      std::abort();
    if (range.end_ns < range.start_ns)
      std::abort();
  }
  for (const model::PayloadField& field : session.payload_fields)
    if (field.range >= session.ranges.size())
      std::abort();
  for (const model::Mark& mark : session.marks) {
    if (mark.thread >= session.threads.size() || mark.domain >= session.domains.size())
      std::abort();
  }
  return ::fuzz::count(true);
}
