#include "read/snapshot/reader.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fs.hpp"
#include "base/numbering.hpp"
#include "base/text.hpp"
#include "read/snapshot/blocks.hpp"
#include "read/snapshot/pickle.hpp"

namespace rangescope::read::snapshot {
namespace {

using model::kNone;

/// Keys and words of a snapshot, by their number in the machine: that of the first is 1.
enum Key : std::uint32_t {
  kEmpty,
  kAction,
  kAddr,
  kDeviceFree,
  kSize,
  kTimeUs,
  kFrames,
  kBlocks,
  kAddress,
  kTotalSize,
  kSegmentType,
  kSmall,
  kIsExpandable,
  kDevice,
  kState,
  kInactive,
  kStage,
  kStart,
  kName,
  kFilename,
  kLine,
  kSegments,
  kDeviceTraces,
  kSettings,
  kAnnotations,
  kMaxSplitSize,
  kRoundDivisions,
  kMostEvents,
  kPeaks,
  kModules,
  kModulesTimeUs,
  kFailures,
};
constexpr std::string_view kKeys[] = {"action",
                                      "addr",
                                      "device_free",
                                      "size",
                                      "time_us",
                                      "frames",
                                      "blocks",
                                      "address",
                                      "total_size",
                                      "segment_type",
                                      "small",
                                      "is_expandable",
                                      "device",
                                      "state",
                                      "inactive",
                                      "stage",
                                      "START",
                                      "name",
                                      "filename",
                                      "line",
                                      "segments",
                                      "device_traces",
                                      "allocator_settings",
                                      "external_annotations",
                                      "max_split_size",
                                      "roundup_power2_divisions",
                                      "most_events",
                                      "peaks",
                                      "modules",
                                      "modules_time_us",
                                      "failures"};
static_assert(std::size(kKeys) == kFailures);

constexpr std::uint32_t kMostDevices = 1024;
constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kLatest_us = std::int64_t{1} << 52;

constexpr std::pair<std::string_view, Action> kActions[] = {
    {"alloc", Action::kAlloc},
    {"free_requested", Action::kFreeRequested},
    {"free_completed", Action::kFreeCompleted},
    {"segment_alloc", Action::kSegmentAlloc},
    {"segment_map", Action::kSegmentAlloc},
    {"segment_free", Action::kSegmentFree},
    {"segment_unmap", Action::kSegmentFree},
    {"oom", Action::kOutOfMemory},
};

class SnapshotReader {
 public:
  explicit SnapshotReader(const std::string& name) : name_(name), machine_(kKeys) {}

  base::Result<model::Session> read(std::string_view bytes) {
    const PickleMachine::Taker taker = [this](PickleMachine&, PickleValue list, PickleValue dict) {
      return take(list, dict);
    };
    root_ = TRY(machine_.run(bytes, name_, taker));
    if (root_.kind != PickleKind::kDict || machine_.find(root_, kSegments) == nullptr)
      return base::fail(base::Code::kBadData,
                        "a pickle that is no snapshot of PyTorch's allocator",
                        name_,
                        "Give what torch.cuda.memory._dump_snapshot(FILE) wrote.");
    order_traces();
    name_owners();
    replay();
    if (session_.allocators.empty())
      return base::fail(base::Code::kBadData,
                        "a snapshot of a program that used no GPU memory",
                        name_,
                        "Take it in the process that uses the GPU, after its first allocation.");
    add_ranges();
    describe();
    return std::move(session_);
  }

 private:
  [[nodiscard]] std::int64_t integer(PickleValue dict, Key key, std::int64_t otherwise = 0) const {
    const PickleValue* value = machine_.find(dict, key);
    if (value == nullptr || value->kind != PickleKind::kInt)
      return otherwise;
    return value->integer;
  }
  [[nodiscard]] std::uint64_t size(PickleValue dict, Key key) const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, integer(dict, key)));
  }
  [[nodiscard]] std::string_view text(PickleValue dict, Key key) const {
    const PickleValue* value = machine_.find(dict, key);
    if (value == nullptr)
      return {};
    return machine_.text(*value);
  }
  [[nodiscard]] bool is_word(PickleValue dict, Key key, Key word) const {
    const PickleValue* value = machine_.find(dict, key);
    return value != nullptr && value->kind == PickleKind::kText && value->number == word;
  }

  /// Events and segments are used up when they are put into their lists.
  bool take(PickleValue list, PickleValue dict) {
    if (const PickleValue* action = machine_.find(dict, kAction)) {
      add_event(list, dict, machine_.text(*action));
      return true;
    }
    if (machine_.find(dict, kTotalSize) == nullptr || machine_.find(dict, kBlocks) == nullptr)
      return false;
    add_segment(dict);
    return true;
  }

  void add_event(PickleValue list, PickleValue dict, std::string_view name) {
    const auto* row =
        std::ranges::find(kActions, name, &std::pair<std::string_view, Action>::first);
    if (row == std::end(kActions)) {
      if (name != "snapshot")
        ++unknown_events_;
      return;
    }
    const std::int64_t time_us = integer(dict, kTimeUs, -1);
    Event event;
    event.action = row->second;
    event.address = size(dict, machine_.find(dict, kAddr) != nullptr ? kAddr : kDeviceFree);
    event.bytes = size(dict, kSize);
    event.stack = stack_of(dict);
    if (time_us >= 0 && time_us < kLatest_us)
      event.time_ns = time_us * kMicrosecond;
    events_of_[list.number].push_back(event);
  }

  void add_segment(PickleValue dict) {
    DeviceTrace* trace = trace_of(integer(dict, kDevice));
    if (trace == nullptr)
      return;
    Segment segment;
    segment.bytes = size(dict, kTotalSize);
    segment.small = is_word(dict, kSegmentType, kSmall);
    const PickleValue* expandable = machine_.find(dict, kIsExpandable);
    segment.expandable =
        expandable != nullptr && expandable->kind == PickleKind::kBool && expandable->integer != 0;
    std::uint64_t address = size(dict, kAddress);
    trace->segments[address] = segment;
    // Before PyTorch 2.1 a block has no address: they follow one another.
    for (const PickleValue block : machine_.elements(*machine_.find(dict, kBlocks))) {
      if (machine_.find(block, kAddress) != nullptr)
        address = size(block, kAddress);
      const std::uint64_t bytes = size(block, kSize);
      if (!is_word(block, kState, kInactive))
        trace->blocks[address] = {bytes, stack_of(block)};
      address += bytes;
    }
  }

  [[nodiscard]] DeviceTrace* trace_of(std::int64_t device) {
    if (device < 0 || device >= kMostDevices)
      return nullptr;
    DeviceTrace& trace = traces_[static_cast<std::uint32_t>(device)];
    trace.device = static_cast<std::uint32_t>(device);
    return &trace;
  }

  /// Events with the same list of frames have one stack, also where the lists are two with equal
  /// frames.
  std::uint32_t stack_of(PickleValue dict) {
    const PickleValue* frames = machine_.find(dict, kFrames);
    if (frames == nullptr)
      return kNone;
    if (const auto tag = machine_.tag(*frames))
      return *tag == 0 ? kNone : *tag - 1;
    stack_.clear();
    for (const PickleValue frame : machine_.elements(*frames))
      stack_.push_back(frame_of(frame));
    if (stack_.empty()) {
      machine_.set_tag(*frames, 0);
      return kNone;
    }
    const std::string key(reinterpret_cast<const char*>(stack_.data()),
                          stack_.size() * sizeof(stack_.front()));
    const auto next = static_cast<std::uint32_t>(session_.allocators.stacks.size());
    const auto [found, is_new] = stacks_.try_emplace(key, next);
    if (is_new)
      session_.allocators.stacks.push_back(stack_);
    machine_.set_tag(*frames, found->second + 1);
    return found->second;
  }

  /// A frame is one dictionary, which many lists name.
  std::uint32_t frame_of(PickleValue dict) {
    if (dict.kind != PickleKind::kDict)
      return new_frame(dict);
    if (frame_of_dict_.size() <= dict.number)
      frame_of_dict_.resize(dict.number + 1, {0, kNone});
    auto& [generation, frame] = frame_of_dict_[dict.number];
    if (frame == kNone || generation != dict.generation) {
      generation = dict.generation;
      frame = new_frame(dict);
    }
    return frame;
  }

  std::uint32_t new_frame(PickleValue dict) {
    const std::uint32_t function = session_.strings.intern(text(dict, kName));
    const std::uint32_t file = session_.strings.intern(text(dict, kFilename));
    const auto line =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(integer(dict, kLine), 0, kNone));
    const std::uint32_t frame = frames_.number({function, file, line});
    if (frame == session_.allocators.frames.size())
      session_.allocators.frames.push_back({function, file, line});
    return frame;
  }

  /// The n-th list of "device_traces" is device n's.
  void order_traces() {
    const PickleValue* traces = machine_.find(root_, kDeviceTraces);
    if (traces == nullptr)
      return;
    std::int64_t device = 0;
    for (const PickleValue list : machine_.elements(*traces)) {
      const auto events = events_of_.find(list.number);
      if (list.kind == PickleKind::kList && events != events_of_.end())
        if (DeviceTrace* trace = trace_of(device))
          trace->events = std::move(events->second);
      ++device;
    }
    events_of_.clear();
  }

  [[nodiscard]] AllocatorSettings settings() const {
    AllocatorSettings out;
    const PickleValue* recorded = machine_.find(root_, kSettings);
    if (recorded == nullptr)
      return out;
    out.most_split_bytes = integer(*recorded, kMaxSplitSize, -1);
    const PickleValue* divisions = machine_.find(*recorded, kRoundDivisions);
    if (divisions == nullptr)
      return out;
    for (const PickleField& field : machine_.fields(*divisions)) {
      const auto mebibytes = base::to_uint(machine_.text(field.key));
      if (mebibytes && field.value.kind == PickleKind::kInt && field.value.integer >= 0)
        out.round_divisions[*mebibytes] = static_cast<std::uint64_t>(field.value.integer);
    }
    return out;
  }

  void replay() {
    const AllocatorSettings rules = settings();
    for (auto& [device, trace] : traces_) {
      if (trace.events.empty() && trace.segments.empty())
        continue;
      replay_blocks(trace, rules, session_.allocators);
      describe(trace, session_.allocators.allocators.back());
      if (trace.events.empty())
        continue;
      const std::int64_t begin_ns = trace.events.front().time_ns;
      session_.begin_ns = session_.begin_ns == 0 ? begin_ns : std::min(session_.begin_ns, begin_ns);
      session_.end_ns = std::max(session_.end_ns, trace.events.back().time_ns);
      trace.events = {};
    }
  }

  /// What rangescope's own snapshots add to PyTorch's: the modules whose tensors are where, and
  /// those in which memory ran out.
  void name_owners() {
    if (const PickleValue* modules = machine_.find(root_, kModules)) {
      for (const PickleValue module : machine_.elements(*modules))
        name_tensors(module);
    }
    const PickleValue* failures = machine_.find(root_, kFailures);
    if (failures == nullptr)
      return;
    for (const PickleValue failure : machine_.elements(*failures)) {
      const auto parts = machine_.elements(failure);
      if (parts.size() != 2 || parts[0].kind != PickleKind::kInt)
        continue;
      if (DeviceTrace* trace = trace_of(parts[0].integer))
        trace->failure_owners.push_back(session_.strings.intern(machine_.text(parts[1])));
    }
  }

  /// [path, [[device, address], ...]]
  void name_tensors(PickleValue module) {
    const auto parts = machine_.elements(module);
    if (parts.size() != 2)
      return;
    const model::StringId owner = session_.strings.intern(machine_.text(parts[0]));
    for (const PickleValue tensor : machine_.elements(parts[1])) {
      const auto place = machine_.elements(tensor);
      const bool is_place = place.size() == 2 && place[0].kind == PickleKind::kInt &&
                            place[1].kind == PickleKind::kInt;
      if (!is_place)
        continue;
      DeviceTrace* trace = trace_of(place[0].integer);
      if (trace == nullptr)
        continue;
      trace->owners[static_cast<std::uint64_t>(place[1].integer)] = owner;
      trace->owners_at_ns = integer(root_, kModulesTimeUs) * kMicrosecond;
    }
  }

  /// How many events are kept of a device, and the peaks of the program by device.
  void describe(const DeviceTrace& trace, model::Allocator& allocator) {
    allocator.name = session_.strings.intern("PyTorch");
    const std::uint64_t most_events = size(root_, kMostEvents);
    allocator.is_cut = most_events > 0 && trace.events.size() >= most_events;
    const PickleValue* peaks = machine_.find(root_, kPeaks);
    if (peaks == nullptr)
      return;
    for (const PickleField& field : machine_.fields(*peaks)) {
      const bool is_its = field.key.kind == PickleKind::kInt && field.key.integer == trace.device;
      if (is_its && field.value.kind == PickleKind::kInt && field.value.integer > 0)
        allocator.stated_peak_bytes = static_cast<std::uint64_t>(field.value.integer);
    }
  }

  /// Annotations nest: an END closes the innermost open one of its name.
  void add_ranges() {
    session_.processes.emplace_back();
    session_.threads.emplace_back();
    std::vector<std::uint32_t> open;
    const PickleValue* annotations = machine_.find(root_, kAnnotations);
    std::span<const PickleValue> elements;
    if (annotations != nullptr)
      elements = machine_.elements(*annotations);
    for (const PickleValue annotation : elements) {
      const std::int64_t time_us = integer(annotation, kTimeUs, -1);
      if (time_us < 0 || time_us >= kLatest_us)
        continue;
      const std::int64_t time_ns = time_us * kMicrosecond;
      const model::StringId name = session_.strings.intern(text(annotation, kName));
      if (is_word(annotation, kStage, kStart)) {
        open.push_back(static_cast<std::uint32_t>(session_.ranges.size()));
        model::Range& range = session_.ranges.emplace_back();
        range.start_ns = time_ns;
        range.name = name;
        continue;
      }
      const auto begun = std::ranges::find_if(open.rbegin(), open.rend(), [&](std::uint32_t range) {
        return session_.ranges[range].name == name;
      });
      if (begun == open.rend())
        continue;
      session_.ranges[*begun].end_ns = std::max(time_ns, session_.ranges[*begun].start_ns);
      open.erase(std::next(begun).base());
    }
    for (model::Allocation& allocation : session_.allocators.allocations)
      allocation.thread = 0;
    for (model::FailedAllocation& failure : session_.allocators.failures)
      failure.thread = 0;
  }

  void describe() {
    session_.clock.kind = "UTC";
    session_.clock.anchor_ns = session_.begin_ns;
    session_.clock.anchor_unix_ns = session_.begin_ns;
    for (const model::Range& range : session_.ranges) {
      session_.begin_ns = std::min(session_.begin_ns, range.start_ns);
      if (range.end_ns != model::kOpen)
        session_.end_ns = std::max(session_.end_ns, range.end_ns);
    }
    session_.processes.front().start_ns = session_.begin_ns;
    session_.processes.front().end_ns = session_.end_ns;
    if (unknown_events_ > 0)
      session_.losses.push_back(
          {"bad_rows", unknown_events_, "memory events of a kind that is not known were left out"});
    session_.sources.push_back({name_, "snapshot", "PyTorch memory snapshot", {}});
  }

  const std::string& name_;
  PickleMachine machine_;
  PickleValue root_;
  model::Session session_;
  std::map<std::uint32_t, std::vector<Event>> events_of_;  ///< by number of their list
  std::map<std::uint32_t, DeviceTrace> traces_;            ///< by device
  std::vector<std::uint32_t> stack_;
  std::unordered_map<std::string, std::uint32_t>
      stacks_;  ///< by the bytes of their frames' numbers
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      frame_of_dict_;  ///< generation and frame, by number
  base::Numbering<std::array<std::uint32_t, 3>> frames_;
  std::uint64_t unknown_events_ = 0;
};

}  // namespace

base::Result<model::Session> read_bytes(std::string_view bytes, const std::string& name) {
  return SnapshotReader(name).read(bytes);
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path&) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const bool is_pickle =
      text.size() > 2 && text[0] == '\x80' && static_cast<unsigned char>(text[1]) <= 5;
  return is_pickle && (text.find("segments") != std::string_view::npos ||
                       text.find("device_traces") != std::string_view::npos);
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  const auto file = TRY(base::Mapping::open(path));
  return read_bytes(file.text(), path.string());
}

const Reader kReader{"snapshot", sniff, read};

}  // namespace rangescope::read::snapshot
