#include "read/native/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/find.hpp"
#include "base/progress.hpp"
#include "read/index.hpp"
#include "read/native/chunks.hpp"
#include "wire/native.hpp"

namespace rangescope::read::native {
namespace {

namespace record = wire::native;
using model::kNone;
using model::kOpen;
using model::Severity;

constexpr std::int64_t kSecond = 1'000'000'000;
// How far a time may be before or after its file was made.
constexpr std::int64_t kMostBefore = 60 * kSecond;
constexpr std::int64_t kMostAfter = 20 * 365 * 86400 * kSecond;
constexpr std::int64_t kNoTime = -1;
constexpr std::uint32_t kMaxNewString = 1 << 20;  // string ids are in order; a larger gap is damage

struct End {
  std::uint64_t id;
  std::int64_t at_ns;
  std::uint32_t thread;
};
/// A range on a thread's stack.
struct Open {
  std::uint32_t range;
  OpenCell cell;
};
struct Started {
  std::uint64_t id;
  std::uint32_t range;
};

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

class TraceReader {
 public:
  TraceReader(std::span<const std::byte> file,
              const Chunks& chunks,
              model::Session& session,
              Losses& losses)
      : file_(file), chunks_(chunks), session_(session), losses_(losses) {}

  /// Lists the ranges of a cell by what an earlier walk has counted; without one, it counts.
  void thin(const Thinning& how,
            const Moments& moments,
            const std::vector<Thinner::Counted>* plan,
            const Thinner::Pushes& runaways) {
    runaways_ = &runaways;
    listed_ = how.listed;
    release_ = how.release;
    moments_ = &moments;
    plan_ = plan;
  }
  [[nodiscard]] std::vector<Thinner::Counted> take_counted() { return thinner_->take_counted(); }
  [[nodiscard]] Thinner::Pushes runaways() const { return thinner_->runaways(); }

  void read() {
    const auto& header = chunks_.header;
    process_ = static_cast<std::uint32_t>(session_.processes.size());
    model::Process process;
    process.pid = header.pid;
    process.parent_pid = header.parent_pid;
    const std::size_t name = std::min<std::size_t>(header.exe_bytes, sizeof header.exe);
    process.name = session_.strings.intern({header.exe, name});
    process.start_ns = std::max<std::int64_t>(0, header.monotonic_ns);
    if (header.rank_plus_1 > 0 && header.rank_plus_1 < kNone)
      process.rank = static_cast<std::uint32_t>(header.rank_plus_1 - 1);
    if (header.local_rank_plus_1 > 0 && header.local_rank_plus_1 < kNone)
      process.local_rank = static_cast<std::uint32_t>(header.local_rank_plus_1 - 1);
    if (header.world_size < kNone)
      process.world = static_cast<std::uint32_t>(header.world_size);
    constexpr std::uint64_t kMostPs = 100'000'000;  // a pair never takes 100 us: a damaged header
    if (header.range_own_ps <= header.range_pair_ps && header.range_pair_ps <= kMostPs) {
      process.range_own_ns = static_cast<double>(header.range_own_ps) / 1000;
      process.range_pair_ns = static_cast<double>(header.range_pair_ps) / 1000;
    }
    session_.processes.push_back(process);
    if (moments_ != nullptr)
      thinner_.emplace(session_, process_, listed_, *moments_, plan_, *runaways_);
    last_ns_ = process.start_ns;
    std::optional<std::uint32_t> stream;
    for (const Chunk& chunk : chunks_.list) {
      if (stream != chunk.stream) {
        stream = chunk.stream;
        begin_stream(chunk.tid);
      }
      read_chunk(chunk);
      base::Work::done(chunk.end - chunk.begin);
      if (release_)
        release_(file_.subspan(chunk.begin, chunk.end - chunk.begin));
    }
    forget_open();
    if (thinner_)
      thinner_->finish();
    join_ends();
    if (plausible(header.end_ns))
      last_ns_ = std::max(last_ns_, header.end_ns);
    session_.processes[process_].end_ns = last_ns_;
    add_losses();
  }

 private:
  /// A number in structured payloads of one layout.
  struct Number {
    model::StringId name;
    record::Number kind;
    std::uint8_t bytes;
    std::uint64_t offset;
  };

  [[nodiscard]] bool plausible(std::int64_t time_ns) const {
    // In this order nothing overflows, even with a damaged header.
    const std::int64_t start = chunks_.header.monotonic_ns;
    return time_ns >= 0 && time_ns - kMostAfter < start && time_ns > start - kMostBefore;
  }

  void begin_stream(std::uint32_t tid) {
    strings_.assign(1, 0);
    last_attributes_ = kNone;
    begin_thread(tid);
  }

  /// The stream's previous thread has ended; its open ranges stay open.
  void forget_open() {
    for (auto& stack : stacks_) {
      for (const Open& open : stack)
        if (thinner_)
          thinner_->stays_open(open.cell, open.range);
      stack.clear();
    }
  }

  void begin_thread(std::uint32_t tid) {
    forget_open();
    thread_ = index_.threads.of({process_, tid});
    if (thinner_)
      thinner_->begin_thread(thread_);
  }

  void read_chunk(const Chunk& chunk) {
    latest_ns_ = kNoTime;
    std::size_t offset = chunk.begin;
    while (offset + sizeof(record::RecordHeader) <= chunk.end) {
      const auto head = load<record::RecordHeader>(file_, offset);
      if (load<std::uint64_t>(file_, offset) == 0)
        return;
      const std::size_t bytes = std::size_t{head.words} * 8;
      if (bytes == 0 || offset + bytes > chunk.end) {
        ++damaged_;  // the next record cannot be found
        return;
      }
      if (!record(head, file_.subspan(offset, bytes)))
        ++damaged_;
      offset += bytes;
    }
  }

  // False if the record contradicts itself.
  bool record(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    switch (head.type) {
      case record::Type::kString: return string(head, bytes);
      case record::Type::kDomain: return domain(head, bytes);
      case record::Type::kThread: return begins(head, bytes);
      case record::Type::kPush:
      case record::Type::kMark: return event(head, bytes, 16);
      case record::Type::kStart: return event(head, bytes, 24);
      case record::Type::kShortPush: return short_push(head);
      case record::Type::kPop:
      case record::Type::kShortPop: return pop(head, bytes);
      case record::Type::kEnd: return end(bytes);
      case record::Type::kCategory:
      case record::Type::kThreadName: return named(head, bytes);
      case record::Type::kResource: return resource(head, bytes);
      case record::Type::kGap: return gap(head, bytes);
      case record::Type::kSchema: return schema(head, bytes);
      case record::Type::kPayload: return payload(head, bytes);
    }
    ++unknown_;
    return true;
  }

  bool time(std::span<const std::byte> bytes, std::int64_t& time_ns) {
    if (bytes.size() < 16)
      return false;
    time_ns = load<std::int64_t>(bytes, 8);
    if (!plausible(time_ns))
      return false;
    last_ns_ = std::max(last_ns_, time_ns);
    return true;
  }

  // The time of a push or pop. The times of short pushes and pops are relative to it.
  bool edge(std::span<const std::byte> bytes, std::int64_t& time_ns) {
    latest_ns_ = kNoTime;
    if (!time(bytes, time_ns))
      return false;
    latest_ns_ = time_ns;
    return true;
  }

  // The start of a range that was open when the file was made: it may be hours earlier.
  bool earlier_start(std::span<const std::byte> bytes, std::int64_t& time_ns) const {
    if (bytes.size() < 16)
      return false;
    time_ns = load<std::int64_t>(bytes, 8);
    return time_ns > 0 && time_ns <= chunks_.header.monotonic_ns;
  }

  bool short_edge(std::uint32_t since, std::int64_t& time_ns) {
    if (latest_ns_ == kNoTime)
      return false;
    latest_ns_ += since;
    time_ns = latest_ns_;
    if (!plausible(time_ns))
      return false;
    last_ns_ = std::max(last_ns_, time_ns);
    return true;
  }

  static bool text_of(std::span<const std::byte> bytes, std::string_view& text) {
    if (bytes.size() < sizeof(record::Text))
      return false;
    const auto length = load<std::uint64_t>(bytes, 8);
    if (length > bytes.size() - sizeof(record::Text))
      return false;
    text = {reinterpret_cast<const char*>(bytes.data()) + sizeof(record::Text),
            static_cast<std::size_t>(length)};
    return true;
  }

  bool string(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    std::string_view text;
    if (!text_of(bytes, text) || head.value == 0 || head.value > strings_.size() + kMaxNewString)
      return false;
    if (head.value >= strings_.size())
      strings_.resize(head.value + 1, 0);
    strings_[head.value] = session_.strings.intern(text);
    return true;
  }

  [[nodiscard]] model::StringId name(std::uint32_t id) const {
    return base::element_or(strings_, id, 0);
  }

  bool domain(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    std::string_view text;
    if (!text_of(bytes, text) || head.value == 0)
      return false;
    domains_[head.value] = index_.domain(text);
    return true;
  }

  bool domain_of(std::uint32_t id, std::uint32_t& index) const {
    index = 0;
    if (id == 0)
      return true;
    const auto entry = domains_.find(id);
    if (entry == domains_.end())
      return false;
    index = entry->second;
    return true;
  }

  std::vector<Open>& stack_of(std::uint32_t index) {
    if (index >= stacks_.size())
      stacks_.resize(index + 1);
    return stacks_[index];
  }

  bool begins(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    std::int64_t time_ns = 0;
    if (!time(bytes, time_ns))
      return false;
    begin_thread(head.value);
    return true;
  }

  // The optional parts of an event, which follow its first `fixed` bytes.
  bool attributes_of(const record::RecordHeader& head,
                     std::span<const std::byte> bytes,
                     std::size_t fixed,
                     model::Attributes& attributes,
                     std::uint32_t& domain) const {
    std::size_t next = fixed;
    const auto find_part = [&](std::uint8_t flag, std::size_t size, std::size_t& offset) {
      if ((head.flags & flag) == 0)
        return true;
      offset = next;
      next += size;
      return next <= bytes.size();
    };
    std::size_t scope_at = 0;
    std::size_t color_at = 0;
    std::size_t payload_at = 0;
    const bool is_complete = find_part(record::kHasScope, 8, scope_at) &&
                             find_part(record::kHasColor, 8, color_at) &&
                             find_part(record::kHasPayload, 16, payload_at);
    if (!is_complete)
      return false;
    if (scope_at != 0) {
      const auto scope = load<record::Scope>(bytes, scope_at);
      if (!domain_of(scope.domain, domain))
        return false;
      attributes.category = scope.category;
    }
    if (color_at != 0) {
      attributes.has_color = true;
      attributes.color_argb = load<std::uint32_t>(bytes, color_at);
    }
    if (payload_at != 0) {
      const auto type = load<std::uint32_t>(bytes, payload_at);
      if (type > static_cast<std::uint32_t>(model::PayloadType::kFloat))
        return false;
      attributes.payload_type = static_cast<model::PayloadType>(type);
      attributes.payload_u64 = load<std::uint64_t>(bytes, payload_at + 8);
    }
    return true;
  }

  bool event(const record::RecordHeader& head,
             std::span<const std::byte> bytes,
             std::size_t fixed) {
    const bool is_push = head.type == record::Type::kPush;
    const bool began_earlier = is_push && (head.flags & record::kBefore) != 0;
    std::int64_t time_ns = 0;
    bool has_time = false;
    if (began_earlier)
      has_time = earlier_start(bytes, time_ns);
    else
      has_time = is_push ? edge(bytes, time_ns) : time(bytes, time_ns);
    if (bytes.size() < fixed || !has_time)
      return false;
    model::Attributes attributes;
    std::uint32_t domain = 0;
    if (!attributes_of(head, bytes, fixed, attributes, domain))
      return false;
    if (head.type == record::Type::kMark) {
      session_.marks.push_back(
          {time_ns, name(head.value), thread_, domain, attributes_id(attributes)});
      return true;
    }
    const std::uint32_t index = begin(time_ns, head.value, head.flags, domain);
    session_.ranges[index].attributes = attributes_id(attributes);
    if (began_earlier)
      ++before_;
    if (head.type == record::Type::kStart) {
      session_.ranges[index].kind = model::RangeKind::kStartEnd;
      started_.push_back({load<std::uint64_t>(bytes, 16), index});
    } else {
      push(index, domain);
    }
    return true;
  }

  static OpenCell* innermost_cell(std::vector<Open>& stack) {
    if (stack.empty())
      return nullptr;
    return &stack.back().cell;
  }

  void push(std::uint32_t index, std::uint32_t domain) {
    auto& stack = stack_of(domain);
    const model::Range& range = session_.ranges[index];
    OpenCell cell;
    if (thinner_)
      cell = thinner_->enter(innermost_cell(stack), domain, range.name, range.start_ns);
    stack.push_back({index, cell});
  }

  /// Ends the innermost range of a stack. `knows_end`: the time of its end is known.
  void leave(std::vector<Open>& stack, bool knows_end) {
    const Open open = stack.back();
    stack.pop_back();
    if (!thinner_)
      return;
    OpenCell* const parent = innermost_cell(stack);
    const bool is_removed = thinner_->leave(open.cell, open.range, parent, knows_end);
    const bool are_attributes_removed =
        last_attributes_ != kNone && last_attributes_ >= session_.attributes.size();
    if (is_removed && are_attributes_removed)
      last_attributes_ = kNone;
  }

  bool short_push(const record::RecordHeader& head) {
    const auto contents = record::ShortPush::of(head.value);
    std::int64_t time_ns = 0;
    if (!short_edge(contents.since_ns, time_ns))
      return false;
    push(begin(time_ns, contents.name, head.flags, 0), 0);
    return true;
  }

  // Adds a range; returns its index.
  std::uint32_t begin(std::int64_t start_ns,
                      std::uint32_t string,
                      std::uint8_t flags,
                      std::uint32_t domain) {
    model::Range range;
    range.start_ns = start_ns;
    range.name = name(string);
    range.thread = thread_;
    range.domain = domain;
    range.registered = (flags & record::kRegistered) != 0;
    session_.ranges.push_back(range);
    ++begun_;
    return static_cast<std::uint32_t>(session_.ranges.size() - 1);
  }

  std::uint32_t attributes_id(const model::Attributes& a) {
    if (a.category == 0 && !a.has_color && a.payload_type == model::PayloadType::kAbsent)
      return kNone;
    if (last_attributes_ != kNone) {
      const model::Attributes& b = session_.attributes[last_attributes_];
      if (a.category == b.category && a.color_argb == b.color_argb && a.has_color == b.has_color &&
          a.payload_type == b.payload_type && a.payload_u64 == b.payload_u64) {
        return last_attributes_;
      }
    }
    last_attributes_ = static_cast<std::uint32_t>(session_.attributes.size());
    session_.attributes.push_back(a);
    return last_attributes_;
  }

  bool pop(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    std::int64_t time_ns = 0;
    std::uint32_t index = 0;
    const bool is_short = head.type == record::Type::kShortPop;
    const bool has_time = is_short ? short_edge(head.value, time_ns) : edge(bytes, time_ns);
    if (!has_time)
      return false;
    if (!domain_of(is_short ? head.flags : head.value, index))
      return false;
    auto& stack = stack_of(index);
    if (stack.empty())
      return false;  // its push was damaged: pops without push are never written
    model::Range& range = session_.ranges[stack.back().range];
    const bool is_after_start = time_ns >= range.start_ns;
    range.end_ns = is_after_start ? time_ns : range.start_ns;
    leave(stack, is_after_start);
    return is_after_start;
  }

  bool end(std::span<const std::byte> bytes) {
    std::int64_t time_ns = 0;
    if (bytes.size() < 24 || !time(bytes, time_ns))
      return false;
    ends_.push_back({load<std::uint64_t>(bytes, 16), time_ns, thread_});
    return true;
  }

  bool named(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(record::Named))
      return false;
    const auto record = load<record::Named>(bytes, 0);
    if (head.type == record::Type::kThreadName) {
      session_.threads[index_.threads.of({process_, head.value})].name = name(record.string);
      return true;
    }
    std::uint32_t index = 0;
    if (!domain_of(record.domain, index))
      return false;
    session_.categories.push_back({index, process_, head.value, name(record.string)});
    return true;
  }

  bool resource(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(record::Resource))
      return false;
    const auto record = load<record::Resource>(bytes, 0);
    std::uint32_t index = 0;
    if (!domain_of(record.domain, index))
      return false;
    session_.resources.push_back(
        {process_, index, head.value, record.identifier, name(record.string)});
    return true;
  }

  bool schema(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(record::Schema))
      return false;
    const auto entries = load<record::Schema>(bytes, 0).entries;
    if (entries > (bytes.size() - sizeof(record::Schema)) / sizeof(record::SchemaEntry))
      return false;
    auto& layout = layouts_[head.value];
    layout.clear();
    for (std::size_t i = 0; i < entries; ++i) {
      const auto entry = load<record::SchemaEntry>(
          bytes, sizeof(record::Schema) + i * sizeof(record::SchemaEntry));
      if (!is_valid(entry))
        return false;
      layout.push_back({name(entry.string),
                        static_cast<record::Number>(entry.number),
                        entry.bytes,
                        entry.offset});
    }
    return true;
  }

  static bool is_valid(const record::SchemaEntry& entry) {
    const auto number = static_cast<record::Number>(entry.number);
    if (number < record::Number::kUnsigned || number > record::Number::kFloat)
      return false;
    if (entry.bytes == 4 || entry.bytes == 8)
      return true;
    return (entry.bytes == 1 || entry.bytes == 2) && number != record::Number::kFloat;
  }

  static model::PayloadField field_of(std::uint32_t range,
                                      const Number& number,
                                      const std::byte* bytes) {
    model::PayloadField field{range, number.name};
    std::memcpy(&field.bits, bytes, number.bytes);
    if (number.kind == record::Number::kSigned) {
      const int unused = 64 - 8 * number.bytes;
      const auto shifted = static_cast<std::int64_t>(field.bits << unused);
      field.bits = static_cast<std::uint64_t>(shifted >> unused);  // extends the sign
      field.type = model::PayloadType::kInt64;
    } else if (number.kind == record::Number::kFloat) {
      field.type = model::PayloadType::kDouble;
      if (number.bytes == 4) {
        float narrow = 0;
        std::memcpy(&narrow, &field.bits, sizeof narrow);
        const double wide = narrow;
        std::memcpy(&field.bits, &wide, sizeof wide);
      }
    }
    return field;
  }

  // Adds each number of a structured payload. False if one is not within it.
  bool payload(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(record::StructuredPayload))
      return false;
    const auto record = load<record::StructuredPayload>(bytes, 0);
    std::uint32_t index = 0;
    const auto layout = layouts_.find(head.value);
    if (record.bytes > bytes.size() - sizeof record || layout == layouts_.end())
      return false;
    if (!domain_of(record.domain, index))
      return false;
    const auto& stack = stack_of(index);
    if (stack.empty())
      return false;
    const std::byte* contents = bytes.data() + sizeof record;
    for (const Number& number : layout->second) {
      if (number.offset > record.bytes || number.bytes > record.bytes - number.offset)
        return false;
      session_.payload_fields.push_back(
          field_of(stack.back().range, number, contents + number.offset));
    }
    return true;
  }

  // Events were dropped before this record, pops among them. Their ranges cannot stay open, because
  // all later ranges would seem to be inside them. They end at the time when recording resumed, and
  // are counted.
  bool gap(const record::RecordHeader& head, std::span<const std::byte> bytes) {
    std::int64_t time_ns = 0;
    std::uint32_t index = 0;
    if (bytes.size() < sizeof(record::Gap) || !time(bytes, time_ns))
      return false;
    if (!domain_of(head.value, index))
      return false;
    const auto open = load<record::Gap>(bytes, 0).open;
    auto& stack = stack_of(index);
    while (stack.size() > open) {
      model::Range& range = session_.ranges[stack.back().range];
      range.end_ns = std::max(range.start_ns, time_ns);
      leave(stack, false);
      ++guessed_ends_;
    }
    return true;
  }

  // Start/end ranges may end on another thread, so in another stream: sorts starts and ends by id,
  // and joins them in one pass. O(n log n).
  void join_ends() {
    const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
    if (!std::ranges::is_sorted(started_, by_id))
      std::ranges::stable_sort(started_, by_id);
    if (!std::ranges::is_sorted(ends_, by_id))
      std::ranges::stable_sort(ends_, by_id);
    auto start = started_.begin();
    for (const End& end : ends_) {
      while (start != started_.end() && start->id < end.id)
        ++start;
      if (start == started_.end() || start->id != end.id) {
        const bool is_inherited = end.id != 0 && end.id < chunks_.header.first_range_id;
        ++(is_inherited ? inherited_ends_ : unknown_ends_);
        continue;
      }
      model::Range& range = session_.ranges[start->range];
      ++start;
      range.end_ns = std::max(range.start_ns, end.at_ns);
      if (end.thread != range.thread)
        range.end_thread = end.thread;
    }
  }

  void add_losses() {
    losses_.add(
        "truncated_header", chunks_.header_whole ? 0 : 1, "captures that end within their header");
    losses_.add("torn_tail", chunks_.truncated_bytes, "bytes missing at the end of captures");
    losses_.add("damaged_pages", chunks_.damaged_pages, "damaged 4 KiB pages of captures; skipped");
    losses_.add("missing_chunks",
                chunks_.missing,
                "places where a stretch of a thread's events is missing");
    losses_.add("damaged_records", damaged_, "records that contradict themselves; skipped");
    losses_.add(
        "unknown_records", unknown_, "records of kinds that this version does not know; skipped");
    losses_.add(
        "guessed_end",
        guessed_ends_,
        "ranges that ended while events were dropped; they appear to end when recording resumed");
    if (chunks_.header.window != 0) {
      losses_.add("open_before", unknown_ends_ + inherited_ends_, kOpenBefore);
      unknown_ends_ = inherited_ends_ = 0;
    }
    losses_.add("window_edge", before_, kWindowEdge);
    losses_.add("unknown_end", unknown_ends_, "ends of start/end ranges that never started");
    losses_.add("inherited_end",
                inherited_ends_,
                "ends, in a forked child, of ranges that its parent had started");
    add_drops(chunks_.header.dropped, begun_, losses_);
  }

  std::span<const std::byte> file_;
  const Chunks& chunks_;
  model::Session& session_;
  Index index_{session_};
  Losses& losses_;
  std::uint32_t process_ = 0;
  std::uint64_t begun_ = 0;           // ranges
  std::int64_t last_ns_ = 0;          // the latest time in the file
  std::int64_t latest_ns_ = kNoTime;  // of the latest push or pop in the chunk
  std::unordered_map<std::uint32_t, std::uint32_t> domains_;        // the file's id -> index
  std::unordered_map<std::uint32_t, std::vector<Number>> layouts_;  // of structured payloads, by id
  std::vector<Started> started_;
  std::vector<End> ends_;
  // of the stream that is being read
  std::uint32_t thread_ = 0;
  std::vector<model::StringId> strings_;
  std::vector<std::vector<Open>> stacks_;  // by domain index: open ranges
  std::uint32_t last_attributes_ = kNone;
  // of a large capture
  std::size_t listed_ = 0;
  const Moments* moments_ = nullptr;
  const std::vector<Thinner::Counted>* plan_ = nullptr;
  const Thinner::Pushes* runaways_ = nullptr;
  Release release_;
  std::optional<Thinner> thinner_;
  // damage
  std::uint64_t damaged_ = 0;
  std::uint64_t unknown_ = 0;
  std::uint64_t guessed_ends_ = 0;
  std::uint64_t unknown_ends_ = 0;
  std::uint64_t inherited_ends_ = 0;
  std::uint64_t before_ = 0;  // ranges that were open when the window began
};

}  // namespace

base::Result<void> read_trace(std::span<const std::byte> file,
                              const std::string& where,
                              model::Session& session,
                              Losses& losses,
                              const Thinning* thinning) {
  if (!is_trace(file)) {
    return base::fail(base::Code::kBadData,
                      "this is not a native capture",
                      where,
                      "Give a file written by rangescope's injected library.");
  }
  record::FileHeader header{};
  std::memcpy(&header, file.data(), std::min(file.size(), sizeof header));
  if (header.major > record::kMajor || (header.major == 0 && file.size() >= sizeof header)) {
    return base::fail(
        base::Code::kBadData,
        fmt::format("native-trace {}.{} is not readable here: this rangescope knows {}",
                    header.major,
                    header.minor,
                    record::kMajor),
        where + ": offset 8",
        "Use the rangescope that recorded it, or a newer one.");
  }
  const Chunks chunks = find_chunks(file, thinning == nullptr ? Release() : thinning->release);
  if (thinning == nullptr) {
    TraceReader(file, chunks, session, losses).read();
    return {};
  }
  static const Moments kNoMoments;
  const Moments* moments = base::find_value(thinning->moments, header.pid);
  if (moments == nullptr)
    moments = &kNoMoments;
  // The first walk counts, and finds runaways. If there are any, a second one counts without them.
  std::vector<Thinner::Counted> counted;
  Thinner::Pushes runaways;
  for (int walk = 0; walk < 2; ++walk) {
    model::Session counted_session;
    Losses counted_losses;
    TraceReader counting(file, chunks, counted_session, counted_losses);
    counting.thin(*thinning, *moments, nullptr, runaways);
    counting.read();
    counted = counting.take_counted();
    if (walk == 0)
      runaways = counting.runaways();
    if (runaways.empty())
      break;
  }
  TraceReader reader(file, chunks, session, losses);
  reader.thin(*thinning, *moments, &counted, runaways);
  reader.read();
  return {};
}

void order_ranges(model::Session& session) {
  std::vector<std::int64_t> last(session.threads.size(), 0);
  bool ordered = true;
  for (const model::Range& range : session.ranges) {
    ordered = ordered && range.start_ns >= last[range.thread];
    last[range.thread] = range.start_ns;
  }
  const auto earlier = [](const model::Range& a, const model::Range& b) {
    return a.start_ns < b.start_ns;
  };
  const bool has_references = !session.payload_fields.empty() || !session.unlisted.empty();
  if (!ordered && !has_references) {
    std::ranges::stable_sort(session.ranges, earlier);
  } else if (!ordered) {
    std::vector<std::uint32_t> order(session.ranges.size());
    std::vector<std::uint32_t> place(session.ranges.size());
    for (std::uint32_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      return earlier(session.ranges[a], session.ranges[b]);
    });
    std::vector<model::Range> ranges;
    ranges.reserve(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      ranges.push_back(session.ranges[order[i]]);
    }
    session.ranges = std::move(ranges);
    for (model::PayloadField& field : session.payload_fields)
      field.range = place[field.range];
    for (model::Unlisted& unlisted : session.unlisted)
      unlisted.range = place[unlisted.range];
    for (model::UnlistedInside& inside : session.unlisted_inside)
      inside.range = place[inside.range];
  }
  std::ranges::stable_sort(session.payload_fields,
                           [](const auto& a, const auto& b) { return a.range < b.range; });
}

}  // namespace rangescope::read::native
