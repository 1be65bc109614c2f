#include "read/snapshot/pickle.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "read/snapshot/opcodes.hpp"

namespace rangescope::read::snapshot {
namespace {

struct RefusedOpcode {
  unsigned char opcode;
  std::string_view name;
  bool runs_code;  ///< imports, calls, or asks the reader's program for an object
};

/// What pickletools knows in addition to the opcodes above.
constexpr RefusedOpcode kRefused[] = {
    {'c', "GLOBAL", true},        {'i', "INST", true},         {'o', "OBJ", true},
    {'R', "REDUCE", true},        {'b', "BUILD", true},        {'P', "PERSID", true},
    {'Q', "BINPERSID", true},     {0x81, "NEWOBJ", true},      {0x82, "EXT1", true},
    {0x83, "EXT2", true},         {0x84, "EXT4", true},        {0x92, "NEWOBJ_EX", true},
    {0x93, "STACK_GLOBAL", true}, {0x97, "NEXT_BUFFER", true}, {0x98, "READONLY_BUFFER", true},
    {'I', "INT", false},          {'L', "LONG", false},        {'F', "FLOAT", false},
    {'S', "STRING", false},       {'V', "UNICODE", false},     {'g', "GET", false},
    {'p', "PUT", false},
};

constexpr std::uint32_t kNumberBits = 29;
constexpr std::uint32_t kNumberMask = (std::uint32_t{1} << kNumberBits) - 1;
constexpr unsigned kNewestProtocol = 5;

/// Kinds that can be memoized; their places in this list are what the memo holds.
constexpr PickleKind kMemoized[] = {PickleKind::kText,
                                    PickleKind::kList,
                                    PickleKind::kDict,
                                    PickleKind::kTagged,
                                    PickleKind::kOther};

std::uint32_t packed(PickleKind kind, std::uint32_t number) {
  std::uint32_t place = 0;
  while (kMemoized[place] != kind)
    ++place;
  return place << kNumberBits | (number & kNumberMask);
}

PickleValue numbered(PickleKind kind, std::uint32_t number, std::uint32_t generation = 0) {
  PickleValue value;
  value.kind = kind;
  value.generation = generation;
  value.number = number;
  return value;
}

bool can_be_memoized(PickleKind kind) {
  for (const PickleKind memoized : kMemoized)
    if (memoized == kind)
      return true;
  return false;
}

}  // namespace

template <class Item>
std::uint32_t PickleMachine::Containers<Item>::make() {
  if (free.empty()) {
    all.emplace_back();
    return static_cast<std::uint32_t>(all.size() - 1);
  }
  const std::uint32_t number = free.back();
  free.pop_back();
  return number;
}

template <class Item>
void PickleMachine::Containers<Item>::release(std::uint32_t number) {
  Container<Item>& container = all[number];
  container.items.clear();
  ++container.generation;
  container.memoized = kNoNumber;
  container.tag = kNoNumber;
  free.push_back(number);
}

PickleMachine::PickleMachine(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys)
    (void)texts_.intern(key);
}

base::Result<PickleValue> PickleMachine::run(std::string_view bytes,
                                             const std::string& name,
                                             const Taker& taker) {
  bytes_ = bytes;
  name_ = name;
  taker_ = &taker;
  while (at_ < bytes_.size()) {
    opcode_at_ = at_;
    const auto opcode = static_cast<unsigned char>(bytes_[at_++]);
    const Step result = step(opcode);
    if (result == Step::kFailed)
      return tl::make_unexpected(error_);
    if (result == Step::kStop)
      return stack_.back();
  }
  opcode_at_ = at_;
  fail("this pickle ends before its STOP", "Check that the file was copied whole.");
  return tl::make_unexpected(error_);
}

PickleMachine::Step PickleMachine::fail(std::string what, std::string hint) {
  if (hint.empty())
    hint = "Write it again: pickle.dump(torch.cuda.memory._snapshot(), open(FILE, \"wb\"))";
  error_ = {base::Code::kBadData,
            std::move(what),
            fmt::format("{}: byte {}", name_, opcode_at_),
            std::move(hint)};
  return Step::kFailed;
}

PickleMachine::Step PickleMachine::refuse(unsigned char opcode) {
  for (const RefusedOpcode& refused : kRefused) {
    if (refused.opcode != opcode)
      continue;
    if (!refused.runs_code)
      return fail(fmt::format("this pickle has the opcode {} of protocol 0, which is not read",
                              refused.name),
                  "Write it with Python's default protocol: pickle.dump(snapshot, file)");
    return fail(
        fmt::format("this pickle has the opcode {}, which runs code: refused", refused.name),
        "A snapshot of torch.cuda.memory._snapshot() holds data only. Do not load this file with "
        "pickle "
        "either, unless you trust who made it.");
  }
  return fail(fmt::format("0x{:02x} is no opcode of a pickle", opcode),
              "Check that the file was copied whole.");
}

PickleMachine::Step PickleMachine::step(unsigned char opcode) {
  switch (opcode) {
    case kBinInt:
    case kBinInt1:
    case kBinInt2:
    case kLong1:
    case kLong4:
    case kBinFloat:
    case kNoneOpcode:
    case kNewTrue:
    case kNewFalse: return number_opcode(opcode);
    case kShortBinUnicode:
    case kBinUnicode:
    case kBinUnicode8:
    case kShortBinString:
    case kBinString:
    case kShortBinBytes:
    case kBinBytes:
    case kBinBytes8:
    case kByteArray8: return text_opcode(opcode);
    case kBinGet:
    case kLongBinGet:
    case kBinPut:
    case kLongBinPut:
    case kMemoize: return memo_opcode(opcode);
    case kEmptyList:
    case kEmptySet:
    case kEmptyTuple:
    case kEmptyDict:
    case kListOpcode:
    case kTupleOpcode:
    case kFrozenSet:
    case kDictOpcode:
    case kTuple1:
    case kTuple2:
    case kTuple3:
    case kAppend:
    case kAppends:
    case kAddItems:
    case kSetItem:
    case kSetItems: return container_opcode(opcode);
    case kMarkOpcode:
    case kStopOpcode:
    case kPop:
    case kPopMark:
    case kDup:
    case kProto:
    case kFrame: return stack_opcode(opcode);
    default: return refuse(opcode);
  }
}

bool PickleMachine::take(std::uint64_t size, std::string_view& out) {
  if (size > bytes_.size() - at_) {
    fail("this pickle breaks off", "Check that the file was copied whole.");
    return false;
  }
  out = bytes_.substr(at_, size);
  at_ += size;
  return true;
}

bool PickleMachine::take_unsigned(std::size_t size, std::uint64_t& out) {
  std::string_view raw;
  if (!take(size, raw))
    return false;
  out = 0;
  for (std::size_t i = size; i-- > 0;)
    out = out << 8 | static_cast<unsigned char>(raw[i]);
  return true;
}

PickleMachine::Step PickleMachine::push(PickleValue value) {
  if (stack_.size() >= kMostStacked)
    return fail("this pickle piles up too many values");
  stack_.push_back(value);
  return Step::kGoOn;
}

PickleMachine::Step PickleMachine::push_int(std::int64_t integer) {
  PickleValue value;
  value.kind = PickleKind::kInt;
  value.integer = integer;
  return push(value);
}

PickleMachine::Step PickleMachine::push_little_endian(std::size_t size) {
  std::uint64_t bits = 0;
  if (!take_unsigned(size, bits))
    return Step::kFailed;
  if (size == 4)
    return push_int(static_cast<std::int32_t>(bits));  // BININT alone is signed
  return push_int(static_cast<std::int64_t>(bits));
}

PickleMachine::Step PickleMachine::push_long(std::size_t size_bytes) {
  std::uint64_t size = 0;
  std::string_view raw;
  if (!take_unsigned(size_bytes, size) || !take(size, raw))
    return Step::kFailed;
  constexpr std::size_t kWord = 8;
  // An unsigned number of 64 bits takes nine bytes, of which the last is 0.
  const bool has_sign_byte = raw.size() == kWord + 1 && raw.back() == '\0';
  if (raw.size() > kWord && !has_sign_byte)
    return push(numbered(PickleKind::kOther, 0));
  std::uint64_t bits = 0;
  for (std::size_t i = std::min(raw.size(), kWord); i-- > 0;)
    bits = bits << 8 | static_cast<unsigned char>(raw[i]);
  const bool negative = !raw.empty() && (static_cast<unsigned char>(raw.back()) & 0x80) != 0;
  if (negative && raw.size() < kWord)
    bits |= ~std::uint64_t{0} << (8 * raw.size());
  return push_int(static_cast<std::int64_t>(bits));
}

PickleMachine::Step PickleMachine::push_float() {
  std::string_view raw;
  if (!take(8, raw))
    return Step::kFailed;
  std::uint64_t bits = 0;
  for (const char byte : raw)
    bits = bits << 8 | static_cast<unsigned char>(byte);
  PickleValue value;
  value.kind = PickleKind::kFloat;
  value.real = std::bit_cast<double>(bits);
  return push(value);
}

PickleMachine::Step PickleMachine::push_text(std::size_t size_bytes) {
  std::uint64_t size = 0;
  std::string_view raw;
  if (!take_unsigned(size_bytes, size) || !take(size, raw))
    return Step::kFailed;
  if (texts_.size() >= kMostTexts)
    return fail("this pickle has too many different texts");
  return push(numbered(PickleKind::kText, texts_.intern(raw)));
}

PickleMachine::Step PickleMachine::push_bytes(std::size_t size_bytes) {
  std::uint64_t size = 0;
  std::string_view raw;
  if (!take_unsigned(size_bytes, size) || !take(size, raw))
    return Step::kFailed;
  return push(numbered(PickleKind::kOther, 0));
}

PickleMachine::Step PickleMachine::number_opcode(unsigned char opcode) {
  PickleValue value;
  switch (opcode) {
    case kBinInt1: return push_little_endian(1);
    case kBinInt2: return push_little_endian(2);
    case kBinInt: return push_little_endian(4);
    case kLong1: return push_long(1);
    case kLong4: return push_long(4);
    case kBinFloat: return push_float();
    case kNoneOpcode: return push(value);
    default:
      value.kind = PickleKind::kBool;
      value.integer = opcode == kNewTrue ? 1 : 0;
      return push(value);
  }
}

PickleMachine::Step PickleMachine::text_opcode(unsigned char opcode) {
  switch (opcode) {
    case kShortBinUnicode:
    case kShortBinString: return push_text(1);
    case kBinUnicode:
    case kBinString: return push_text(4);
    case kBinUnicode8: return push_text(8);
    case kShortBinBytes: return push_bytes(1);
    case kBinBytes: return push_bytes(4);
    default: return push_bytes(8);
  }
}

bool PickleMachine::pop_mark(std::size_t& place) {
  if (marks_.empty()) {
    fail("this pickle closes what it never opened");
    return false;
  }
  place = marks_.back();
  marks_.pop_back();
  return true;
}

PickleMachine::Step PickleMachine::push_list(std::size_t first, std::size_t dropped_from) {
  const std::uint32_t number = lists_.make();
  if (number >= kMostContainers)
    return fail("this pickle holds too many lists");
  const PickleValue list = numbered(PickleKind::kList, number, lists_.all[number].generation);
  std::vector<PickleValue>& items = lists_.all[number].items;
  held_ += stack_.size() - first;
  if (held_ > kMostValues)
    return fail("this pickle holds too many values");
  items.assign(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
  stack_.resize(dropped_from);
  return push(list);
}

PickleMachine::Step PickleMachine::push_tuple(std::size_t size) {
  if (stack_.size() < floor() + size)
    return fail("this pickle uses up its stack");
  const std::size_t first = stack_.size() - size;
  return push_list(first, first);
}

PickleMachine::Step PickleMachine::push_dict() {
  const std::uint32_t number = dicts_.make();
  if (number >= kMostContainers)
    return fail("this pickle holds too many dictionaries");
  return push(numbered(PickleKind::kDict, number, dicts_.all[number].generation));
}

PickleMachine::Step PickleMachine::append_from(std::size_t first, std::size_t dropped_from) {
  if (dropped_from == 0 || dropped_from - 1 < floor() ||
      stack_[dropped_from - 1].kind != PickleKind::kList)
    return fail("this pickle appends to what is no list");
  const PickleValue list = stack_[dropped_from - 1];
  if (!is_current(list))
    return fail("this pickle appends to what is no list");
  for (std::size_t i = first; i < stack_.size(); ++i) {
    const PickleValue element = stack_[i];
    if (element.kind == PickleKind::kDict && is_current(element) &&
        (*taker_)(*this, list, element)) {
      forget_dict(element);
      continue;
    }
    if (++held_ > kMostValues)
      return fail("this pickle holds too many values");
    lists_.all[list.number].items.push_back(element);
  }
  stack_.resize(dropped_from);
  release_tagged();
  return Step::kGoOn;
}

PickleMachine::Step PickleMachine::set_from(std::size_t first, std::size_t dropped_from) {
  if (dropped_from == 0 || dropped_from - 1 < floor() ||
      stack_[dropped_from - 1].kind != PickleKind::kDict)
    return fail("this pickle sets an item of what is no dictionary");
  if ((stack_.size() - first) % 2 != 0)
    return fail("this pickle sets a key without a value");
  const PickleValue dict = stack_[dropped_from - 1];
  if (!is_current(dict))
    return fail("this pickle sets an item of what is no dictionary");
  std::vector<PickleField>& fields = dicts_.all[dict.number].items;
  held_ += stack_.size() - first;
  if (held_ > kMostValues)
    return fail("this pickle holds too many values");
  for (std::size_t i = first; i < stack_.size(); i += 2)
    fields.push_back({stack_[i], stack_[i + 1]});
  stack_.resize(dropped_from);
  return Step::kGoOn;
}

PickleMachine::Step PickleMachine::container_opcode(unsigned char opcode) {
  std::size_t mark = 0;
  switch (opcode) {
    case kEmptyList:
    case kEmptySet:
    case kEmptyTuple: return push_list(stack_.size(), stack_.size());
    case kEmptyDict: return push_dict();
    case kTuple1: return push_tuple(1);
    case kTuple2: return push_tuple(2);
    case kTuple3: return push_tuple(3);
    case kAppend:
      if (stack_.size() < floor() + 2)
        return fail("this pickle uses up its stack");
      return append_from(stack_.size() - 1, stack_.size() - 1);
    case kSetItem:
      if (stack_.size() < floor() + 3)
        return fail("this pickle uses up its stack");
      return set_from(stack_.size() - 2, stack_.size() - 2);
    default: break;
  }
  if (!pop_mark(mark))
    return Step::kFailed;
  switch (opcode) {
    case kAppends:
    case kAddItems: return append_from(mark + 1, mark);
    case kSetItems: return set_from(mark + 1, mark);
    case kDictOpcode: {
      // The mark's place is where the dictionary goes.
      const std::uint32_t number = dicts_.make();
      if (number >= kMostContainers)
        return fail("this pickle holds too many dictionaries");
      stack_[mark] = numbered(PickleKind::kDict, number, dicts_.all[number].generation);
      return set_from(mark + 1, mark + 1);
    }
    default: return push_list(mark + 1, mark);
  }
}

PickleMachine::Step PickleMachine::stack_opcode(unsigned char opcode) {
  std::uint64_t ignored = 0;
  std::size_t mark = 0;
  switch (opcode) {
    case kProto:
      if (!take_unsigned(1, ignored))
        return Step::kFailed;
      if (ignored > kNewestProtocol)
        return fail(fmt::format("a pickle of protocol {}, which is newer than 5", ignored));
      return Step::kGoOn;
    case kFrame:
      if (!take_unsigned(8, ignored))
        return Step::kFailed;
      return Step::kGoOn;
    case kMarkOpcode: marks_.push_back(stack_.size()); return push(numbered(PickleKind::kMark, 0));
    case kPopMark:
      if (!pop_mark(mark))
        return Step::kFailed;
      stack_.resize(mark);
      return Step::kGoOn;
    default: break;
  }
  if (stack_.size() <= floor())
    return fail("this pickle uses up its stack");
  if (opcode == kStopOpcode && !marks_.empty())
    return fail("this pickle stops within a list");
  if (opcode == kStopOpcode)
    return Step::kStop;
  if (opcode == kDup)
    return push(stack_.back());
  stack_.pop_back();
  return Step::kGoOn;
}

PickleMachine::Step PickleMachine::memo_opcode(unsigned char opcode) {
  const bool is_get = opcode == kBinGet || opcode == kLongBinGet;
  const bool is_put = opcode == kBinPut || opcode == kLongBinPut;
  if (!is_get && !is_put)
    return memoize(memo_.size());
  const bool is_long = opcode == kLongBinGet || opcode == kLongBinPut;
  std::uint64_t place = 0;
  if (!take_unsigned(is_long ? 4 : 1, place))
    return Step::kFailed;
  if (is_get)
    return recall(place);
  return memoize(place);
}

PickleMachine::Step PickleMachine::memoize(std::uint64_t place) {
  if (stack_.size() <= floor())
    return fail("this pickle uses up its stack");
  const PickleValue value = stack_.back();
  if (!can_be_memoized(value.kind))
    return fail("this pickle memoizes a number");
  // Python memoizes in order; a place far beyond would only take memory.
  constexpr std::uint64_t kGap = 1 << 16;
  if (place > memo_.size() + kGap || place >= kMostMemoized)
    return fail("this pickle memoizes too much");
  if (place >= memo_.size())
    memo_.resize(place + 1, kNoNumber);
  memo_[place] = packed(value.kind, value.number);
  const auto index = static_cast<std::uint32_t>(place);
  if (value.kind == PickleKind::kList)
    lists_.all[value.number].memoized = index;
  if (value.kind == PickleKind::kDict)
    dicts_.all[value.number].memoized = index;
  return Step::kGoOn;
}

PickleMachine::Step PickleMachine::recall(std::uint64_t place) {
  if (place >= memo_.size() || memo_[place] == kNoNumber)
    return fail("this pickle recalls what it never memoized");
  const PickleKind kind = kMemoized[memo_[place] >> kNumberBits];
  const std::uint32_t number = memo_[place] & kNumberMask;
  if (kind == PickleKind::kList)
    return push(numbered(kind, number, lists_.all[number].generation));
  if (kind == PickleKind::kDict)
    return push(numbered(kind, number, dicts_.all[number].generation));
  return push(numbered(kind, number));
}

bool PickleMachine::is_current(PickleValue value) const {
  if (value.kind == PickleKind::kList)
    return lists_.all[value.number].generation == value.generation;
  if (value.kind == PickleKind::kDict)
    return dicts_.all[value.number].generation == value.generation;
  return false;
}

void PickleMachine::forget_dict(PickleValue dict) {
  const auto& container = dicts_.all[dict.number];
  held_ -= 2 * container.items.size();
  if (container.memoized != kNoNumber)
    memo_[container.memoized] = packed(PickleKind::kOther, 0);
  dicts_.release(dict.number);
}

void PickleMachine::release_tagged() {
  for (const std::uint32_t number : tagged_)
    lists_.release(number);
  tagged_.clear();
}

std::string_view PickleMachine::text(PickleValue value) const {
  if (value.kind != PickleKind::kText)
    return {};
  return texts_.view(value.number);
}

std::span<const PickleValue> PickleMachine::elements(PickleValue value) const {
  if (value.kind != PickleKind::kList || !is_current(value))
    return {};
  return lists_.all[value.number].items;
}

std::span<const PickleField> PickleMachine::fields(PickleValue value) const {
  if (value.kind != PickleKind::kDict || !is_current(value))
    return {};
  return dicts_.all[value.number].items;
}

const PickleValue* PickleMachine::find(PickleValue dict, std::uint32_t key) const {
  for (const PickleField& field : fields(dict))
    if (field.key.kind == PickleKind::kText && field.key.number == key)
      return &field.value;
  return nullptr;
}

std::optional<std::uint32_t> PickleMachine::tag(PickleValue list) const {
  if (list.kind == PickleKind::kTagged)
    return list.number;
  if (list.kind != PickleKind::kList || !is_current(list))
    return std::nullopt;
  const std::uint32_t tag = lists_.all[list.number].tag;
  if (tag == kNoNumber)
    return std::nullopt;
  return tag;
}

void PickleMachine::set_tag(PickleValue list, std::uint32_t tag) {
  if (list.kind != PickleKind::kList || !is_current(list))
    return;
  auto& container = lists_.all[list.number];
  if (container.tag != kNoNumber || tag > kNumberMask)
    return;
  held_ -= container.items.size();
  container.items.clear();
  container.tag = tag;
  if (container.memoized != kNoNumber)
    memo_[container.memoized] = packed(PickleKind::kTagged, tag);
  tagged_.push_back(list.number);
}

}  // namespace rangescope::read::snapshot
