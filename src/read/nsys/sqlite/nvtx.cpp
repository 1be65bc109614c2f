// The table NVTX_EVENTS.
#include <algorithm>
#include <iterator>
#include <span>
#include <tuple>

#include "base/sort_nearly.hpp"
#include "read/nsys/sqlite/parts.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

/// ENUM_NSYS_EVENT_TYPE, the numbers that occur in NVTX_EVENTS.
enum EventType : std::int64_t {
  kCategory = 33,
  kMark = 34,
  kThreadName = 39,
  kPushPop = 59,
  kStartEnd = 60,
  kTextCategory = 64,
  kTextMark = 65,
  kTextPushPop = 70,
  kTextStartEnd = 71,
  kDomainCreate = 75,
  kDomainDestroy = 76,
  kNameDevice = 97,
  kNameContext = 98,
  kNameStream = 99,
};

enum {
  kNvtxStart,
  kNvtxEnd,
  kType,
  kRangeId,
  kCategoryId,
  kColor,
  kText,
  kThread,
  kEndThread,
  kTextNumber,
  kDomain,
  kPayload
};

/// Outer before inner.
bool before(const model::Range& a, const model::Range& b) {
  return std::tie(a.start_ns, b.end_ns) < std::tie(b.start_ns, a.end_ns);
}

std::uint32_t attributes_of(Nvtx& part, const Value* row) {
  AttributesKey key;
  key.category = small(row[kCategoryId]);
  if (row[kColor].integer()) {
    key.has_color = 1;
    key.color = static_cast<std::uint32_t>(row[kColor].bits);
  }
  constexpr model::PayloadType kTypes[] = {model::PayloadType::kUint64,
                                           model::PayloadType::kInt64,
                                           model::PayloadType::kDouble,
                                           model::PayloadType::kUint32,
                                           model::PayloadType::kInt32,
                                           model::PayloadType::kFloat};
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    const Value& value = row[kPayload + i];
    if (value.null())
      continue;
    const bool real =
        kTypes[i] == model::PayloadType::kDouble || kTypes[i] == model::PayloadType::kFloat;
    key.payload_type = static_cast<std::uint32_t>(kTypes[i]);
    key.payload = real ? std::bit_cast<std::uint64_t>(value.as_double())
                       : static_cast<std::uint64_t>(value.as_int());
    break;
  }
  if (key.category == 0 && key.has_color == 0 && key.payload_type == 0)
    return model::kNone;
  return part.attributes.number(key);
}

std::uint32_t domain_of(Nvtx& part, const Value* row) {
  const std::int64_t id = row[kDomain].as_int();
  // The default domain is the same in every process.
  return part.domains.number({id == 0 ? 0 : process_of(row[kThread].as_int()), id});
}

/// The identifier of a named CUDA object: whichever column this schema puts it into.
std::uint64_t identifier_of(const Value* row) {
  for (const int column :
       {kPayload + 0, kPayload + 3, kPayload + 1, kPayload + 4, static_cast<int>(kRangeId)}) {
    if (row[column].integer())
      return static_cast<std::uint64_t>(row[column].bits);
  }
  return 0;
}

void add_row(Nvtx& part, const Value* row) {
  if (!row[kType].integer())
    return bad_row(part.outcome, "eventType is not a number");
  if (!row[kNvtxStart].integer())
    return bad_row(part.outcome, "start is not a number");
  const std::int64_t type = row[kType].bits;
  if (type == kDomainDestroy)
    return;
  model::StringId name = 0;
  if (row[kText].type == Type::kText || row[kText].type == Type::kBlob)
    name = part.strings.intern(row[kText].text());
  else if (row[kTextNumber].integer())
    name = kTextId | part.text_ids.number(row[kTextNumber].bits);
  const auto thread = static_cast<std::uint64_t>(row[kThread].as_int());
  switch (type) {
    case kPushPop:
    case kStartEnd:
    case kTextPushPop:
    case kTextStartEnd: {
      model::Range range;
      range.start_ns = row[kNvtxStart].bits;
      if (row[kNvtxEnd].integer())
        range.end_ns = row[kNvtxEnd].bits;
      if (range.end_ns < range.start_ns)
        return bad_row(part.outcome, "end is before start");
      range.name = name;
      range.registered = (name & kTextId) != 0;
      range.kind = type == kPushPop || type == kTextPushPop ? model::RangeKind::kPushPop
                                                            : model::RangeKind::kStartEnd;
      range.thread = part.threads.number(thread);
      if (row[kEndThread].integer() && static_cast<std::uint64_t>(row[kEndThread].bits) != thread)
        range.end_thread = part.threads.number(static_cast<std::uint64_t>(row[kEndThread].bits));
      range.domain = domain_of(part, row);
      range.attributes = attributes_of(part, row);
      part.ranges.push_back(range);
      return;
    }
    case kMark:
    case kTextMark:
      part.marks.push_back({row[kNvtxStart].bits,
                            name,
                            part.threads.number(thread),
                            domain_of(part, row),
                            attributes_of(part, row)});
      return;
    case kCategory:
    case kTextCategory:
      part.namings.push_back(
          {domain_of(part, row), thread, small(row[kCategoryId]), kCategory, name});
      return;
    case kThreadName:
    case kDomainCreate:
      part.namings.push_back(
          {domain_of(part, row), thread, 0, static_cast<std::uint32_t>(type), name});
      return;
    case kNameDevice:
    case kNameContext:
    case kNameStream:
      part.namings.push_back({domain_of(part, row),
                              thread,
                              identifier_of(row),
                              static_cast<std::uint32_t>(type),
                              name});
      return;
    default: ++part.unknown_types;
  }
}

}  // namespace

void order_ranges(std::vector<model::Range>& ranges) {
  base::sort_nearly(std::span(ranges), before);
}

Nvtx read_nvtx(const Source& source) {
  Nvtx part;
  const Table* table = usable_table(source, "NVTX_EVENTS", {"start", "eventType"}, part.outcome);
  if (table == nullptr)
    return part;
  part.outcome.scanned = source.scan(
      *table,
      "start end eventType rangeId category color text globalTid endGlobalTid textId domainId "
      "uint64Value int64Value "
      "doubleValue uint32Value int32Value floatValue",
      [&](std::size_t rows) { begin(part, part.ranges, rows); },
      [&](const Value* row) { add_row(part, row); });
  order_ranges(part.ranges);
  return part;
}

}  // namespace rangescope::read::nsys_sqlite
