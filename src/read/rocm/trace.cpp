// rocprof's results.json, for chrome://tracing. Lanes are processes of the trace, recognized
// by their names. Arrows lead from a call to the work that it caused: "s" lies inside the call, "t"
// is the start of the work.
//
//   { "traceEvents":[{}
//   ,{"args":{"name":"CPU HIP API"},"ph":"M","pid":2,"name":"process_name","sort_index":0}
//   ,{"ph":"X","name":"hipMemcpy","pid":"2","tid":"19147","ts":"62210881","dur":"338945",
//     "args":{"BeginNs":"622108814230486","EndNs":"622109153176175","pid":"19147","args":"(
//     sizeBytes(128))"}}
//   ,{"ph":"X","name":"CopyHostToDevice","pid":"1","tid":"0","ts":"62210904","dur":"92",
//     "args":{"BeginNs":"622109046136251","EndNs":"622109138348698","dev-id":"4","queue-id":"0",
//     "pid":"19147"}}
//   ,{"ts":62210898,"ph":"s","cat":"DataFlow","id":0,"pid":2,"tid":19147,"name":"dep"}
//   ,{"ts":62210904,"ph":"t","cat":"DataFlow","id":0,"pid":1,"tid":0,"name":"dep"}
//
// `ts` may count from another begin than BeginNs, which is exact; older versions have the real
// process in "proc-id", and none for calls and ranges.
#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "read/json.hpp"
#include "read/kineto/build.hpp"
#include "read/kineto/splitter.hpp"
#include "read/rocm/events.hpp"
#include "read/rocm/reader.hpp"

namespace rangescope::read::rocm {
namespace {

using Json = nlohmann::json;

struct Lane {
  std::string_view name, category;
};
constexpr Lane kLanes[] = {{"Markers and Ranges", "user_annotation"},
                           {"CPU HIP API", "hip_runtime"},
                           {"COPY", "gpu_memcpy"},
                           {"GPU", "kernel"}};

std::string text(const Json& of, const char* key) {
  const Json* value = json_member(of, key);
  if (value == nullptr)
    return {};
  if (value->is_string())
    return value->get<std::string>();
  if (value->is_number())
    return value->dump();
  return {};
}

/// Numbers are strings, except in arrows.
std::optional<std::int64_t> number(const Json& of, const char* key) {
  const auto value = base::to_int(text(of, key));
  if (!value || *value < 0 || *value >= (std::int64_t{1} << 62))
    return std::nullopt;
  return value;
}

std::optional<std::uint32_t> small(const Json& of, const char* key) {
  const auto value = number(of, key);
  if (!value)
    return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

/// An event of the trace, and the texts that it points to.
struct Held {
  std::string name, arguments, category;
  std::int64_t lane = 0, thread = 0, ts = 0, ts_end = 0;
  kineto::Event event;
};

class TraceReader {
 public:
  void take(std::string_view json) {
    const Json event = Json::parse(json, nullptr, false);
    if (!event.is_object())
      return builder_.bad();
    const std::string phase = text(event, "ph");
    const Json* arguments = json_member(event, "args");
    static const Json kNothing = Json::object();
    const Json& args = arguments != nullptr && arguments->is_object() ? *arguments : kNothing;
    if (phase == "M") {
      if (text(event, "name") == "process_name")
        lanes_[number(event, "pid").value_or(-1)] = text(args, "name");
    } else if (phase == "X") {
      complete(event, args);
    } else if (phase == "s" || phase == "t") {
      const auto id = number(event, "id"), thread = number(event, "tid"), ts = number(event, "ts");
      const auto lane = number(event, "pid");
      if (id && thread && ts && lane)
        arrows_.push_back({*id, *lane, *thread, *ts, phase == "s"});
    }
  }

  model::Session finish() {
    link();
    std::optional<std::uint32_t> only;
    for (const Held& held : held_)
      if (!only)
        only = held.event.pid;
    for (Held& held : held_) {
      kineto::Event& event = held.event;
      event.category = held.category;
      event.name = held.category == "kernel" ? kernel_name(held.name) : held.name;
      if (!event.pid)
        event.pid = only.value_or(0);
      if (held.category == "gpu_memcpy") {
        if (is_fill(held.name))
          event.category = "gpu_memset";
        if (const auto bytes = copied_bytes(held.arguments); bytes > 0)
          event.bytes = bytes;
      }
      builder_.add(event);
    }
    return builder_.finish();
  }

  [[nodiscard]] bool empty() const { return held_.empty(); }

 private:
  struct Arrow {
    std::int64_t id, lane, thread, ts;
    bool from_call;
  };

  void complete(const Json& event, const Json& args) {
    Held held;
    const auto lane = number(event, "pid"), thread = number(event, "tid");
    const auto start = number(args, "BeginNs"), end = number(args, "EndNs");
    if (!lane || !thread || !start || !end)
      return builder_.bad();
    if (*end < *start)
      return builder_.bad_length();
    const std::string& lane_name = lanes_[*lane];
    const auto lane_row = std::find_if(std::begin(kLanes), std::end(kLanes), [&](const Lane& row) {
      return lane_name.starts_with(row.name);
    });
    held.category = lane_row == std::end(kLanes) ? lane_name : std::string(lane_row->category);
    held.name = text(event, "name");
    held.arguments = text(args, "args");
    held.lane = *lane;
    held.thread = *thread;
    held.ts = number(event, "ts").value_or(0);
    held.ts_end = held.ts + number(event, "dur").value_or(0);
    kineto::Event& out = held.event;
    out.phase = 'X';
    out.start_ns = start;
    out.length_ns = *end - *start;
    out.fraction = true;
    out.tid = static_cast<std::uint32_t>(*thread);
    out.device = small(args, "dev-id");
    out.stream = small(args, args.contains("queue-id") ? "queue-id" : "stream-id");
    out.pid = small(args, "proc-id");
    if (!out.pid && number(args, "pid") != lane)
      out.pid = small(args, "pid");
    held_.push_back(std::move(held));
  }

  /// Numbers calls and the work that their arrows lead to alike.
  void link() {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Held*>
        begins;  // lane, thread, ts
    for (Held& held : held_)
      begins.emplace(std::tuple(held.lane, held.thread, held.ts), &held);
    std::map<std::int64_t, Held*> calls;
    std::uint32_t next = 0;
    for (const Arrow& arrow : arrows_) {
      if (!arrow.from_call)
        continue;
      const auto after = begins.upper_bound({arrow.lane, arrow.thread, arrow.ts});
      if (after == begins.begin())
        continue;
      Held& call = *std::prev(after)->second;
      if (call.lane != arrow.lane || call.thread != arrow.thread || call.ts_end < arrow.ts)
        continue;
      if (!call.event.correlation)
        call.event.correlation = ++next;
      calls[arrow.id] = &call;
    }
    for (const Arrow& arrow : arrows_) {
      const auto call = calls.find(arrow.id);
      const auto work = begins.find({arrow.lane, arrow.thread, arrow.ts});
      if (arrow.from_call || call == calls.end() || work == begins.end())
        continue;
      work->second->event.correlation = call->second->event.correlation;
      work->second->arguments = call->second->arguments;
    }
  }

  kineto::Events builder_;
  std::map<std::int64_t, std::string> lanes_;
  std::deque<Held> held_;
  std::vector<Arrow> arrows_;
};

}  // namespace

bool is_trace(std::string_view head) {
  return base::trim(head).starts_with('{') &&
         head.find("\"traceEvents\"") != std::string_view::npos &&
         head.find("\"name\":\"process_name\",\"sort_index\":") != std::string_view::npos;
}

base::Result<model::Session> read_trace(std::string_view json, const std::string& name) {
  TraceReader reader;
  kineto::Splitter splitter = kineto::Splitter::of(json);
  for (kineto::Piece piece; splitter.next(piece);)
    if (piece.key.empty() && piece.text != "{}")
      reader.take(piece.text);
  const std::string place = name + ": byte " + std::to_string(splitter.offset());
  if (reader.empty())
    return base::fail(base::Code::kBadData,
                      splitter.broken().empty() ? "a trace of rocprof without events"
                                                : "this JSON cannot be read: " + splitter.broken(),
                      place,
                      "Record with rocprof --hip-trace --roctx-trace, or with rocprofv3.");
  model::Session session = reader.finish();
  if (!splitter.broken().empty())
    session.losses.push_back({"torn_tail", 1, splitter.early_end() + ": " + place});
  session.sources.push_back({name, "rocm", "rocprof", {}});
  return session;
}

}  // namespace rangescope::read::rocm
