// "RSDIGEST", version (u32), 0 (u32), bytes of the payload (u64), a zstd frame with a checksum; numbers little-endian.
//
// The payload is numbers of variable length (LEB128), signed ones with the sign in the lowest bit. What is usually
// equal to something before it is written as the difference, so that zstd finds zeros. One list of fields, visited by
// the writer and by the reader, is both: docs/formats/digest.md has it as a table.
#include "digest/file.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/fs.hpp"

namespace rangescope::digest {
namespace coding {  // named, since Reading::State holds a Reader

constexpr std::string_view kMagic = "RSDIGEST";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeader = 24;
constexpr std::string_view kUnfitting = "the digest is damaged: what it says does not fit together";
constexpr std::size_t kMostBins = 1 << 25;  // of all sketches of a file
constexpr std::uint32_t kDeepest = 1024;    // a recording's tree is never so deep
constexpr std::size_t kMostNames = 1 << 22;
constexpr std::size_t kMostList = 1 << 20;  // processes, devices, ranks of a region ...

class Writer {
 public:
  static constexpr bool kReads = false;
  std::string bytes;

  void number(std::uint64_t value) {
    for (; value > 127; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
    bytes.push_back(static_cast<char>(value));
  }
  template <class T>
  void field(const T& value) {
    number(static_cast<std::uint64_t>(value));
  }
  void flag(bool value) { number(value ? 1 : 0); }
  /// `value` as the difference to `base`.
  void near(std::int64_t value, std::int64_t base) {
    const auto off = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(base));
    number(static_cast<std::uint64_t>(off) << 1 ^ static_cast<std::uint64_t>(off >> 63));
  }
  /// The same of what may be unknown; never negative, but for `own` times.
  void sum(std::int64_t value, std::int64_t base, bool = false) {
    flag(value != kUnknown);
    if (value != kUnknown) near(value, base == kUnknown ? 0 : base);
  }
  void wide(UnsignedWide value) {
    number(static_cast<std::uint64_t>(value));
    number(static_cast<std::uint64_t>(value >> 64));
  }
  void text(const std::string& value) {
    number(value.size());
    bytes += value;
  }
  void real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 64; i += 8) bytes.push_back(static_cast<char>(bits >> i));
  }
  template <class T>
  void list(const std::vector<T>& items, std::size_t, std::size_t = 1) {
    number(items.size());
  }
  void index(std::uint32_t value, std::size_t) { number(value); }
  void index_or_none(std::uint32_t value, std::size_t) { number((value + std::uint64_t{1}) & 0xffffffffu); }
  void check(bool) {}
};

class Reader {
 public:
  static constexpr bool kReads = true;
  // Five million regions of a hundred numbers: what reads one is inlined, but for the rare cases.
  explicit Reader(std::string_view bytes) : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}
  [[nodiscard]] bool bad() const { return bad_; }
  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }
  [[nodiscard]] bool at_end() const { return at_ == end_; }

  [[gnu::always_inline]] std::uint64_t number() {
    if (end_ - at_ < 2) return longer_number();
    const std::uint64_t one = byte(0), two = byte(1);
    if (one < 128) {
      ++at_;
      return one;
    }
    if (two >= 128) return longer_number();
    at_ += 2;
    return (one & 127) | two << 7;
  }
  [[gnu::noinline]] std::uint64_t longer_number() {
    if constexpr (std::endian::native == std::endian::little) {
      std::uint64_t word = 0;
      if (end_ - at_ >= 8) std::memcpy(&word, at_, 8);
      if (const std::uint64_t stops = ~word & 0x8080808080808080; end_ - at_ >= 8 && stops != 0) {
        at_ += (std::countr_zero(stops) >> 3) + 1;
        word &= stops ^ (stops - 1);  // its bytes, and of each the lower seven bits moved together
        word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
        word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
        return (word & 0x0fffffff) | (word & 0x0fffffff00000000) >> 4;
      }
    }
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    fail();
    return 0;
  }
  template <class T>
  [[gnu::always_inline]] void field(T& value) {
    const std::uint64_t read = number();
    value = static_cast<T>(read);
    if (static_cast<std::uint64_t>(value) != read) fail();
    if constexpr (std::is_signed_v<T>) check(value >= 0);
  }
  [[gnu::always_inline]] void flag(bool& value) {
    const std::uint64_t read = number();
    check(read < 2);
    value = read == 1;
  }
  [[gnu::always_inline]] void near(std::int64_t& value, std::int64_t base) {
    const std::uint64_t read = number();
    value = static_cast<std::int64_t>((read >> 1 ^ (~(read & 1) + 1)) + static_cast<std::uint64_t>(base));
  }
  [[gnu::always_inline]] void sum(std::int64_t& value, std::int64_t base, bool negative = false) {
    bool known = end_ - at_ >= 2 && byte(0) == 1;
    if (known)
      ++at_;
    else
      flag(known);
    value = kUnknown;
    if (!known) return;
    near(value, base == kUnknown ? 0 : base);
    check(value >= 0 || (negative && value != kUnknown));
  }
  void wide(UnsignedWide& value) {
    const std::uint64_t low = number();
    value = static_cast<UnsignedWide>(number()) << 64 | low;
  }
  void text(std::string& value) {
    const std::uint64_t size = number();
    if (size > static_cast<std::uint64_t>(end_ - at_)) return fail();
    value.assign(at_, size);
    at_ += size;
  }
  void real(double& value) {
    if (end_ - at_ < 8) return fail();
    std::uint64_t bits = 0;
    for (int i = 0; i < 64; i += 8) bits |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(*at_++)) << i;
    value = std::bit_cast<double>(bits);
    check(value >= 0 && value < 1e30);
  }
  /// How many items follow, each of at least `bytes`.
  [[gnu::always_inline]] std::size_t count(std::size_t most, std::size_t bytes) {
    const std::uint64_t count = number();
    check(count <= most && count <= static_cast<std::uint64_t>(end_ - at_) / bytes);
    return bad_ ? 0 : count;
  }
  template <class T>
  void list(std::vector<T>& items, std::size_t most, std::size_t bytes = 1) {
    items.resize(count(most, bytes));
  }
  void index(std::uint32_t& value, std::size_t below) {
    field(value);
    check(value < below);
  }
  void index_or_none(std::uint32_t& value, std::size_t below) {
    const std::uint64_t read = number();
    check(read <= below);
    value = read == 0 ? kNone : static_cast<std::uint32_t>(read - 1);
  }
  [[gnu::always_inline]] void check(bool holds) {
    if (!holds) fail();
  }
  void bins(std::size_t count) {
    bins_ += count;
    check(bins_ <= kMostBins);
  }

 private:
  [[gnu::noinline]] void fail() {
    bad_ = true;
    at_ = end_;  // every loop ends
  }
  [[nodiscard]] std::uint64_t byte(int ahead) const { return static_cast<std::uint8_t>(at_[ahead]); }

  const char *begin_, *at_, *end_;
  std::size_t bins_ = 0;
  bool bad_ = false;
};

/// What squares are at least, by Cauchy and Schwarz.
UnsignedWide least_squares(const Moments& m) {
  return static_cast<UnsignedWide>(m.sum) * static_cast<UnsignedWide>(m.sum) / m.n;
}

void visit(Writer& io, const Moments& m) {
  io.number(m.n);
  if (m.n == 0) return;
  io.near(m.min, 0);
  io.near(m.max, m.min);
  io.wide(static_cast<UnsignedWide>(m.sum - static_cast<Wide>(m.min) * m.n));
  io.wide(m.squares - least_squares(m));
}

void visit(Reader& io, Moments& m) {
  m = {};
  m.n = io.number();
  if (m.n == 0) return;
  io.near(m.min, 0);
  io.near(m.max, m.min);
  UnsignedWide sum = 0, squares = 0;
  io.wide(sum);
  io.wide(squares);
  constexpr std::int64_t kLongest = std::int64_t{1} << 56;  // two years in nanoseconds
  io.check(m.n < std::uint64_t{1} << 48 && -kLongest < m.min && m.min <= m.max && m.max < kLongest);
  if (io.bad()) return;
  io.check(sum <= static_cast<UnsignedWide>(m.max - m.min) * m.n);
  m.sum = static_cast<Wide>(sum) + static_cast<Wide>(m.min) * m.n;
  m.squares = squares + least_squares(m);
  if (io.bad()) m = {};
}

void visit(Writer& io, const Distribution& d) {
  visit(io, d.moments);
  if (d.moments.n == 0) return;
  const auto& counts = d.sketch.counts();
  std::size_t used = 0, last = 0;
  for (const std::uint64_t count : counts) used += count > 0 ? 1 : 0;
  io.number(used);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    io.number(d.sketch.first() + i - last);
    io.number(counts[i]);
    last = d.sketch.first() + i;
  }
}

void visit(Reader& io, Distribution& d) {
  d.clear();
  visit(io, d.moments);
  if (d.moments.n == 0) return;
  const std::uint64_t used = io.number();
  std::uint64_t bin = 0, total = 0, first = 0;
  std::array<std::uint64_t, Sketch::kBins> counts;  // set from `first` to `bin`
  for (std::uint64_t i = 0; i < used; ++i) {
    const std::uint64_t gap = io.number(), count = io.number();
    if ((gap == 0 && i > 0) || gap >= Sketch::kBins - bin || count - 1 >= d.moments.n - total) {  // 0 is none too
      io.check(false);
      break;
    }
    if (i == 0) first = gap;
    for (std::uint64_t empty = 1; empty < gap && i > 0; ++empty) counts[bin + empty] = 0;
    bin += gap;
    counts[bin] = count;
    total += count;
  }
  io.bins(bin - first + 1);
  if (used > 0 && !io.bad()) d.sketch.set(first, std::span(counts).subspan(first, bin - first + 1));
  io.check(total == d.moments.n && first < Sketch::kBins);
  if (io.bad()) d.clear();
}

template <class Io, class T>
void visit_parts(Io& io, T& parts, std::int64_t usual) {
  if constexpr (Io::kReads) parts = {};
  io.field(parts.count);
  if (parts.count == 0) return;
  io.near(parts.sum, usual);
  io.near(parts.min, parts.sum);
  io.near(parts.max, parts.min);
  io.field(parts.largest);
  io.check(parts.sum >= 0 && parts.min >= 0 && parts.min <= parts.max);
}

template <class Io, class T>
void visit_ordinals(Io& io, T& o, std::int64_t least) {
  io.field(o.compared);
  io.field(o.shift);
  io.check(o.shift < 32);
  if constexpr (Io::kReads) o.shift = std::min(o.shift, 31u);
  io.list(o.longest, kMostList);
  bool one_rank = true;
  if constexpr (!Io::kReads)
    for (const auto& each : o.longest) one_rank &= each.rank == o.longest.front().rank;
  io.flag(one_rank);
  for (std::size_t i = 0; i < o.longest.size(); ++i) {
    auto ns = static_cast<std::int64_t>(o.longest[i].ns);
    io.near(ns, least);
    io.check(ns >= 0);
    if constexpr (Io::kReads) o.longest[i].ns = static_cast<std::uint64_t>(ns);
    if (i == 0 || !one_rank)
      io.field(o.longest[i].rank);
    else if constexpr (Io::kReads)
      o.longest[i].rank = o.longest.front().rank;
  }
  io.list(o.ties, 1 << 24, 2);
  for (auto& [place, rank] : o.ties) {
    io.index(place, o.longest.size());
    io.field(rank);
  }
  if constexpr (Io::kReads) io.check(std::is_sorted(o.ties.begin(), o.ties.end()) && o.longest.size() <= o.kept());
}

template <class Io, class T>
void visit_gpu(Io& io, T& gpu, std::size_t kernels) {
  for (auto& count : gpu.counts) io.sum(count, 0);
  for (auto& ns : gpu.times) io.sum(ns, 0);
  io.flag(gpu.partial);
  io.list(gpu.copies, 16, 4);
  for (auto& copy : gpu.copies) {
    io.field(copy.kind);
    io.sum(copy.calls, 0);
    io.sum(copy.bytes, 0);
    io.sum(copy.ns, 0);
  }
  io.list(gpu.kernels, kernels, 2);
  for (auto& sum : gpu.kernels) {
    io.index(sum.name, kernels);
    visit(io, sum.duration);
  }
  visit(io, gpu.latency);
  visit(io, gpu.kernel_ns);
  visit(io, gpu.busy_ns);
}

template <class Io, class T>
void visit_optional(Io& io, T& gpu, std::size_t kernels) {
  bool there = gpu.has_value();
  io.flag(there);
  if constexpr (Io::kReads) {
    if (!there) gpu.reset();
    if (there && !gpu) gpu.emplace();  // else every field of it is read anew
  }
  if (there) visit_gpu(io, *gpu, kernels);
}

template <class Io, class T, class D>
void visit_region(Io& io, T& r, const D& digest, std::uint32_t number) {
  std::uint32_t up = r.parent == kNone ? 0 : number - r.parent;
  io.field(up);
  io.check(up <= number);
  if constexpr (Io::kReads) r.parent = up == 0 || up > number ? kNone : number - up;
  io.index(r.domain, digest.names.size());
  io.index(r.name, digest.names.size());
  io.field(r.kind);
  io.check(r.kind <= model::RangeKind::kStartEnd);
  io.near(r.first_start_ns, digest.begin_ns);
  visit(io, r.wall);
  visit(io, r.unsettled);
  const Moments& wall = r.wall.moments;
  io.check(r.unsettled.moments.n <= wall.n);
  io.near(r.settled_min, wall.min);
  io.near(r.settled_max, wall.max);
  io.sum(r.occurrences, static_cast<std::int64_t>(wall.n));
  for (const auto field : {&Region::unclosed, &Region::threads, &Region::processes, &Region::replayed})
    io.sum(r.*field, 0);
  io.sum(r.inclusive_ns, static_cast<std::int64_t>(wall.sum));
  io.sum(r.exclusive_ns, r.inclusive_ns);
  io.sum(r.profiler_ns, 0);
  io.sum(r.recording_ns, r.profiler_ns);
  io.sum(r.warm_ups, static_cast<std::int64_t>(r.unsettled.moments.n));
  io.sum(r.warm_up_ns, static_cast<std::int64_t>(r.unsettled.moments.sum));
  io.sum(r.longest_ns, r.unsettled.moments.max);
  io.sum(r.settled_busy_ns, 0);
  visit_parts(io, r.of_processes, r.inclusive_ns);
  visit_parts(io, r.of_threads, r.inclusive_ns);
  io.list(r.ranks, kMostList, 3);
  for (auto& one : r.ranks) {
    io.field(one.rank);
    io.sum(one.sum_ns, r.inclusive_ns);
    io.sum(one.own_ns, r.exclusive_ns, true);
  }
  visit_ordinals(io, r.ordinals, wall.min);
  visit_optional(io, r.gpu, digest.kernels.size());
}

template <class Io, class T>
void visit_kernel(Io& io, T& k, std::size_t names) {
  io.index(k.name, names);
  io.index(k.short_name, names);
  io.flag(k.nccl);
  visit(io, k.duration);
  io.list(k.shapes, kMostList, 13);
  for (auto& one : k.shapes) {
    auto& shape = one.shape;
    for (auto* three : {&shape.grid, &shape.block, &shape.cluster})
      for (auto& size : *three) io.field(size);
    io.field(shape.registers_per_thread);
    io.field(shape.static_shared_bytes);
    io.field(shape.dynamic_shared_bytes);
    io.field(one.calls);
  }
}

template <class Io, class T, class D>
void visit_calls(Io& io, T& c, const D& digest, std::size_t regions) {
  io.index(c.process, digest.processes.size());
  io.flag(c.nccl);
  io.field(c.communicator);
  io.field(c.ranks);
  io.field(c.made);
  io.field(c.shift);
  io.check(c.shift < 32);
  io.list(c.calls, kMostList, 5);
  std::int64_t at = digest.begin_ns, bytes = 0;
  for (auto& call : c.calls) {
    io.index(call.name, digest.names.size());
    io.index_or_none(call.region, regions);
    io.near(call.start_ns, at);
    io.near(call.end_ns, call.start_ns);
    at = call.end_ns;
    io.sum(call.bytes, bytes);
    if (call.bytes != kUnknown) bytes = call.bytes;
  }
}

/// What stands before the regions.
template <class Io, class D>
void visit_head(Io& io, D& d) {
  io.list(d.names, kMostNames);
  for (auto& name : d.names) io.text(name);
  io.check(!d.names.empty() && d.names.front().empty());
  io.text(d.tool);
  io.list(d.sources, kMostList);
  for (auto& source : d.sources) io.text(source);
  io.near(d.begin_ns, 0);
  io.near(d.end_ns, d.begin_ns);
  io.flag(d.utc);
  io.flag(d.sampled);
  io.flag(d.counted);
  io.list(d.processes, kMostList, 14);
  for (auto& p : d.processes) {
    for (auto* number : {&p.pid, &p.parent_pid, &p.rank, &p.local_rank, &p.world}) io.field(*number);
    for (auto* name : {&p.name, &p.host, &p.run}) io.index(*name, d.names.size());
    io.near(p.start_ns, d.begin_ns);
    io.near(p.end_ns, p.start_ns);
    for (auto* number : {&p.ranges, &p.kernels, &p.range_own_ns, &p.range_pair_ns}) io.field(*number);
  }
  io.list(d.devices, kMostList, 26);
  for (auto& device : d.devices) {
    auto& facts = device.facts;
    io.index_or_none(device.process, d.processes.size());
    io.index(device.name, d.names.size());
    io.index(device.uuid, d.names.size());
    for (auto* number : {&facts.ordinal, &facts.compute_major, &facts.compute_minor, &facts.sm_count})
      io.field(*number);
    io.field(facts.memory_bytes);
    io.field(facts.l2_bytes);
    io.real(facts.sm_clock_hz);
    io.real(facts.memory_bytes_per_s);
    io.flag(facts.mig);
  }
  io.list(d.kernels, kMostKernels * 4, 4);
  for (auto& kernel : d.kernels) visit_kernel(io, kernel, d.names.size());
}

/// What stands behind them.
template <class Io, class D>
void visit_tail(Io& io, D& d, std::size_t regions) {
  visit_optional(io, d.total, d.kernels.size());
  visit_optional(io, d.unattributed, d.kernels.size());
  io.list(d.collectives, kMostList, 7);
  for (auto& calls : d.collectives) visit_calls(io, calls, d, regions);
  io.list(d.open, kMostList, 4);
  for (auto& one : d.open) {
    io.index(one.host, d.names.size());
    io.sum(one.closed_ns, 0);
    io.sum(one.waits_ns, 0);
    io.list(one.spans, kMostNames, 2);
    std::int64_t at = d.begin_ns;
    bool ascending = true;
    for (auto& [start, end] : one.spans) {
      io.near(start, at);
      io.near(end, start);
      ascending &= start <= end && (&start == &one.spans.front().first || start > at);
      at = end;
    }
    io.check(ascending);
  }
  io.list(d.losses, kMostList, 4);
  for (auto& loss : d.losses) {
    io.field(loss.rank);
    io.text(loss.kind);
    io.text(loss.detail);
    io.field(loss.count);
  }
}

std::uint64_t little(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

struct FreeD {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
struct FreeC {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace coding

using namespace coding;

base::Result<std::string> encode(Digest digest, int level) {
  const Digest ordered = in_order(std::move(digest));
  Writer writer;
  visit_head(writer, ordered);
  writer.number(ordered.regions.size());
  for (std::uint32_t r = 0; r < ordered.regions.size(); ++r) visit_region(writer, ordered.regions[r], ordered, r);
  visit_tail(writer, ordered, ordered.regions.size());
  const std::unique_ptr<ZSTD_CCtx, FreeC> context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(kMagic);
  const auto put = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  };
  put(kVersion, 4);
  put(0, 4);
  put(writer.bytes.size(), 8);
  out.resize(kHeader + ZSTD_compressBound(writer.bytes.size()));
  const std::size_t size = ZSTD_compress2(context.get(), out.data() + kHeader, out.size() - kHeader,
                                          writer.bytes.data(), writer.bytes.size());
  if (ZSTD_isError(size) != 0) return base::fail(base::Code::kInternal, ZSTD_getErrorName(size), "digest");
  out.resize(kHeader + size);
  return out;
}

struct Reading::State {
  std::unique_ptr<ZSTD_DCtx, FreeD> context{ZSTD_createDCtx()};
  std::string payload;  // a thousand of a megabyte, one after the other
  std::size_t size = 0;
  Reader reader{std::string_view()};
  std::vector<std::uint32_t> depth;  // of the regions that were read
};

Reading::Reading() : state_(std::make_unique<State>()) {}
Reading::Reading(Reading&&) noexcept = default;
Reading& Reading::operator=(Reading&&) noexcept = default;
Reading::~Reading() = default;

std::size_t Reading::bytes() const {
  return state_->size;
}

base::Result<void> Reading::open(std::string_view bytes, const std::string& where) {
  State& state = *state_;
  const auto bad = [&](const std::string& what, const std::string& hint = "Report on the run itself") {
    return base::fail(base::Code::kBadData, what, where, hint);
  };
  if (bytes.size() < kHeader || !bytes.starts_with(kMagic)) return bad("this is no digest");
  if (const auto version = little(bytes.substr(8, 4)); version != kVersion)
    return bad("a digest of version " + std::to_string(version) + ", and this rangescope reads version 1",
               "Use the rangescope that recorded the job");
  const std::uint64_t size = little(bytes.substr(16, 8));
  if (size > 4 * kMostFile || size > (bytes.size() - kHeader + 1) * 2048)  // more than zstd can have made of it
    return bad("the digest says that it holds " + std::to_string(size) + " bytes");
  if (state.payload.size() < size) state.payload.resize(size);
  state.size = size;
  const std::size_t done = ZSTD_decompressDCtx(state.context.get(), state.payload.data(), size, bytes.data() + kHeader,
                                               bytes.size() - kHeader);
  if (ZSTD_isError(done) != 0 || done != size)
    return bad("the digest is damaged: " +
               std::string(ZSTD_isError(done) != 0 ? ZSTD_getErrorName(done) : "it is shorter than it says"));
  state.reader = Reader(std::string_view(state.payload).substr(0, size));
  visit_head(state.reader, head);
  regions_ = state.reader.count(kMostRegions * 4, 24);
  state.depth.clear();
  if (state.reader.bad()) return bad(std::string(kUnfitting));
  return {};
}

bool Reading::next(Region& into) {
  State& state = *state_;
  visit_region(state.reader, into, head, static_cast<std::uint32_t>(state.depth.size()));
  if (state.reader.bad()) return false;
  state.depth.push_back(into.parent == kNone ? 0 : state.depth[into.parent] + 1);
  return state.depth.back() <= kDeepest;
}

bool Reading::finish() {
  visit_tail(state_->reader, head, regions_);
  return !state_->reader.bad() && state_->reader.at_end();
}

base::Result<void> decode(std::string_view bytes, const std::string& where, Digest& out) {
  static thread_local Reading reading;
  std::vector<Region> regions = std::move(out.regions);
  reading.head = std::move(out);
  auto read = reading.open(bytes, where);
  if (read) {
    regions.resize(reading.regions());
    const bool whole = std::all_of(regions.begin(), regions.end(), [](Region& one) { return reading.next(one); });
    if (!whole || !reading.finish())
      read = base::fail(base::Code::kBadData, std::string(kUnfitting), where, "Report on the run itself");
  }
  out = std::move(reading.head);
  out.regions = std::move(regions);
  if (!read) out = {};
  return read;
}

base::Result<void> write(const std::filesystem::path& file, Digest digest) {
  auto bytes = encode(std::move(digest));
  if (!bytes) return base::fail(std::move(bytes));
  return base::write_file(file, *bytes);
}

base::Result<void> read(const std::filesystem::path& file, Digest& out) {
  const auto bytes = base::read_regular(file, kMostFile);
  if (!bytes) return tl::make_unexpected(bytes.error());
  return decode(*bytes, file.string(), out);
}

}  // namespace rangescope::digest
