#include "sample/cpu/unwind.hpp"

#include <cstring>

#include "sample/cpu/space.hpp"
#include "wire/cpu.hpp"

namespace rangescope::sample::cpu {
namespace {

class Walk {
 public:
  Walk(const Space& space, const Sample& sample) : space_(space), stack_(sample.stack), low_(sample.values[kRsp]) {
    std::memcpy(values_, sample.values, sizeof values_);
  }

  void run(Unwound& out) {
    bool call = false;  // the address is a return address
    for (std::uint32_t depth = 0; depth < wire::cpu::kMostDepth; ++depth) {
      const std::uint64_t address = values_[kRip] - (call ? 1 : 0);
      if (values_[kRip] == 0) return;
      const Place place = place_of(space_, address);
      if (place.module == nullptr) {
        // A thread's begin may return to nowhere; the first frame may be a jump through a wild pointer.
        out.cut = true;
        return;
      }
      out.addresses.push_back(address);
      const Row none;
      Tables* tables = place.module->tables();
      const Row& row = tables != nullptr ? tables->row(place.address) : none;
      if (row.kind == Row::Kind::kOutermost) return;
      const std::uint64_t before = values_[kRsp];
      const bool went = row.kind == Row::Kind::kNone ? by_frame_pointer() : by_row(row);
      // The stack of a caller lies above, that of who was interrupted may be another one.
      if (!went || (values_[kRsp] <= before && !row.signal)) {
        out.cut = true;
        return;
      }
      call = !row.signal;
    }
    out.cut = true;
  }

 private:
  bool load(std::uint64_t address, std::uint64_t& value) const {
    if (address < low_ || address - low_ > stack_.size() || stack_.size() - (address - low_) < sizeof value)
      return false;
    std::memcpy(&value, stack_.data() + (address - low_), sizeof value);
    return true;
  }

  bool by_frame_pointer() {
    const std::uint64_t frame = values_[kRbp];
    std::uint64_t caller = 0, back = 0;
    if (!load(frame, caller) || !load(frame + 8, back) || space_.find(back - 1) == nullptr) return false;
    values_[kRbp] = caller;
    values_[kRip] = back;
    values_[kRsp] = frame + 16;
    return true;
  }

  bool by_row(const Row& row) {
    std::uint64_t frame = 0;
    if (row.kind == Row::Kind::kPlt) {
      frame = values_[kRsp] + 8 + ((values_[kRip] & 15) >= 11 ? 8u : 0u);
    } else {
      frame = values_[row.base] + static_cast<std::uint64_t>(std::int64_t{row.offset});
      if (row.deref && !load(frame, frame)) return false;
    }
    std::uint64_t next[kRegisters];
    std::memcpy(next, values_, sizeof next);
    for (std::size_t r = 0; r < kRegisters; ++r) {
      const Row::Saved& saved = row.saved[r];
      const auto offset = static_cast<std::uint64_t>(std::int64_t{saved.offset});
      if (saved.at == Row::Saved::At::kSame) continue;
      const bool read = (saved.at == Row::Saved::At::kFrame && load(frame + offset, next[r])) ||
                        (saved.at == Row::Saved::At::kRegister && load(values_[saved.base] + offset, next[r]));
      if (read) continue;
      if (r == kRip) return false;
      next[r] = 0;  // no frame is found by what is unknown
    }
    if (row.saved[kRsp].at == Row::Saved::At::kSame) next[kRsp] = frame;
    std::memcpy(values_, next, sizeof next);
    return true;
  }

  const Space& space_;
  std::span<const std::byte> stack_;
  std::uint64_t low_;
  std::uint64_t values_[kRegisters];
};

}  // namespace

void unwind(const Space& space, const Sample& sample, Unwound& out) {
  out.addresses.clear();
  out.cut = false;
  if (sample.registers) {
    Walk(space, sample).run(out);
    if (!out.cut || out.addresses.size() >= sample.chain.size()) return;
    out.addresses.clear();  // frame pointers lead further
  }
  out.cut = true;
  for (std::size_t i = 0; i < sample.chain.size() && i < wire::cpu::kMostDepth; ++i) {
    const std::uint64_t address = sample.chain[i] - (i > 0 ? 1 : 0);
    const Place place = place_of(space, address);
    if (place.module == nullptr) return;
    out.addresses.push_back(address);
    Tables* tables = place.module->tables();
    if (tables != nullptr && tables->row(place.address).kind == Row::Kind::kOutermost) out.cut = false;
  }
}

}  // namespace rangescope::sample::cpu
