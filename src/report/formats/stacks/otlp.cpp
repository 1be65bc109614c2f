// OpenTelemetry, by https://github.com/open-telemetry/opentelemetry-proto (profiles v1development). Each file is
// the body of a request as OTLP's HTTP takes it (Content-Type: application/x-protobuf):
//
//   otlp         ProfilesData  resource_profiles 1, dictionary 2            POST /v1development/profiles
//   otlp-spans   TracesData    resource_spans 1, in parts                   POST /v1/traces
//
//   ResourceProfiles   resource 1, scope_profiles 2       ScopeProfiles  scope 1, profiles 2
//   Profile            sample_type 1, samples 2, time_unix_nano 3 (fixed64), duration_nano 4, profile_id 7
//   Sample             stack_index 1, values 4            ValueType      type_strindex 1, unit_strindex 2
//   ProfilesDictionary mapping 1, location 2, function 3, link 4, string 5, attribute 6, stack 7; of each the first
//                      is empty
//   Stack              location_indices 1 (the innermost first)
//   Location           lines 3 (Line: function_index 1)   Function       name_strindex 1, filename_strindex 3
//   ResourceSpans      resource 1, scope_spans 2          ScopeSpans     scope 1, spans 2
//   Span               trace_id 1, span_id 2, parent_span_id 4, name 5, kind 6, start_time_unix_nano 7 and
//                      end_time_unix_nano 8 (fixed64), attributes 9, links 13 (Link: trace_id 1, span_id 2),
//                      dropped_links_count 14
//   KeyValue           key 1, value 2 (AnyValue: string 1, bool 2, int 3)
//
// A profile has one kind of value (wall, CPU, GPU ...); profile.hpp explains the values. Every range is a span, and
// every kernel, copy and set one below the range that launched it, to which it links: it runs later, and may end after
// it. A span links to at most 128, OpenTelemetry's own limit. Ids follow from what the run is: the same in both files
// and each time they are written.
#include <algorithm>
#include <cmath>
#include <protozero/pbf_writer.hpp>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "report/formats.hpp"
#include "report/formats/stacks/profile.hpp"
#include "report/timeline/timeline.hpp"

namespace rangescope::report {
namespace {

using model::kNone;
using protozero::pbf_writer;

constexpr std::size_t kMostLinks = 128, kMostSpans = 1000;
constexpr std::int32_t kInternal = 1;  ///< SPAN_KIND_INTERNAL

std::string big_endian(std::uint64_t number) {
  std::string out(8, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(number >> (56 - 8 * i));
  return out;
}

/// Of the run: its sources, its begin and its command.
std::string trace_id(const model::Report& report) {
  std::uint64_t hash = base::fnv1a(std::to_string(report.run.start_unix_ns));
  for (const std::string& source : report.run.sources) hash = base::fnv1a(source, hash);
  for (const std::string& word : report.run.command) hash = base::fnv1a(word, hash);
  return big_endian(hash) + big_endian(base::fnv1a("trace", hash) | 1);
}

void attribute(pbf_writer& to, std::uint32_t field, std::string_view key, std::string_view value) {
  pbf_writer pair(to, field);
  pair.add_string(1, key.data(), key.size());
  pbf_writer any(pair, 2);
  any.add_string(1, value.data(), value.size());
}
void attribute(pbf_writer& to, std::uint32_t field, std::string_view key, std::uint64_t value) {
  pbf_writer pair(to, field);
  pair.add_string(1, key.data(), key.size());
  pbf_writer any(pair, 2);
  any.add_int64(3, static_cast<std::int64_t>(value));
}

std::string service_of(const model::Report& report) {
  return report.run.command.empty() ? "unknown_service" : base::printable(base::file_name(report.run.command.front()));
}

void scope(pbf_writer& to) {
  const std::string tool = base::tool_version();
  const std::size_t blank = tool.find(' ');
  pbf_writer out(to, 1);
  out.add_string(1, tool.substr(0, blank));
  if (blank != std::string::npos) out.add_string(2, tool.substr(blank + 1));
}

std::string dictionary(const Profile& profile, ProfileTexts& texts, std::string_view stacks) {
  std::string data;
  pbf_writer out(data);
  const std::string empty;
  for (const std::uint32_t table : {1, 2, 3, 4, 6, 7}) out.add_message(table, empty);
  for (std::uint64_t id = 1; id <= profile.frames.size(); ++id) {
    pbf_writer location(out, 2);
    pbf_writer line(location, 3);
    line.add_int32(1, static_cast<std::int32_t>(id));
  }
  std::vector<const ProfileFrame*> frames(profile.frames.size());
  for (const auto& [frame, id] : profile.frames) frames[id - 1] = &frame;
  for (const ProfileFrame* frame : frames) {
    pbf_writer function(out, 3);
    function.add_int32(1, static_cast<std::int32_t>(texts.id(frame->first)));
    function.add_int32(3, static_cast<std::int32_t>(texts.id(frame->second)));
  }
  for (const std::string& text : texts.all()) out.add_string(5, text);
  return data.append(stacks);
}

class SpanWriter {
 public:
  SpanWriter(const model::Report& report, const model::Session& session, Sink& sink)
      : report_(report),
        session_(session),
        sink_(sink),
        timeline_(session),
        trace_(trace_id(report)),
        seed_(base::fnv1a(trace_)),
        shift_ns_(session.clock.anchor_unix_ns - session.clock.anchor_ns),
        owner_(session.launches.size(), kNone),
        first_work_(session.launches.size(), kNone) {}

  void write() {
    const auto note = [&](const auto& all, ItemKind kind) {
      for (std::uint32_t i = 0; i < all.size(); ++i)
        if (all[i].launch < first_work_.size()) {
          next_work_.push_back({kind, i, first_work_[all[i].launch]});
          first_work_[all[i].launch] = static_cast<std::uint32_t>(next_work_.size() - 1);
        }
    };
    note(session_.memsets, ItemKind::kMemset);
    note(session_.copies, ItemKind::kCopy);
    note(session_.kernels, ItemKind::kKernel);
    for (const bool streams : {false, true})  // what threads launched is known first
      for (const TimelineLane& lane : timeline_.lanes())
        if (lane.is_stream() == streams) this->lane(lane);
    flush();
  }

 private:
  struct Work {
    ItemKind kind;
    std::uint32_t index, next;  ///< `next` of the same call, in next_work_
  };
  struct Open {
    TimelineItem item;
    std::vector<std::string> links;
    std::uint32_t dropped = 0;
  };

  [[nodiscard]] std::string id(ItemKind kind, std::uint32_t index) const {
    std::uint64_t mixed =
        seed_ + (std::uint64_t{static_cast<std::uint8_t>(kind)} << 32 | index) * 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;  // splitmix64, which maps no two numbers to one
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    mixed ^= mixed >> 31;
    return big_endian(mixed == 0 ? 1 : mixed);
  }

  void lane(const TimelineLane& lane) {
    if (lane.process != process_) flush();
    process_ = lane.process;
    std::vector<std::vector<Open>> open(lane.depths.size());
    const auto close = [&](std::vector<Open>& track, std::int64_t until, std::uint32_t depth) {
      while (!track.empty() && (track.back().item.end_ns <= until || track.back().item.depth >= depth)) {
        const Open ended = std::move(track.back());
        track.pop_back();
        span(ended, track.empty() ? std::string() : id(ItemKind::kRange, track.back().item.index));
      }
    };
    timeline_.each(lane, [&](const TimelineItem& item) {
      if (item.kind == ItemKind::kCall) return called(item, open);
      if (lane.is_stream()) {
        const std::uint32_t owner = item.launch < owner_.size() ? owner_[item.launch] : kNone;
        Open work{item, {}, 0};
        if (owner != kNone) work.links.push_back(id(ItemKind::kRange, owner));
        return span(work, owner == kNone ? std::string() : id(ItemKind::kRange, owner));
      }
      close(open[item.track], item.start_ns, item.depth);
      open[item.track].push_back({item, {}, 0});
    });
    for (std::vector<Open>& track : open) close(track, model::kOpen, 0);
  }

  /// A call belongs to the innermost range that holds its begin; what it caused links to that range.
  void called(const TimelineItem& item, std::vector<std::vector<Open>>& open) {
    if (item.launch >= first_work_.size() || first_work_[item.launch] == kNone) return;
    Open* inner = nullptr;
    for (std::vector<Open>& track : open)
      for (Open& range : track)
        if (range.item.end_ns >= item.start_ns && (inner == nullptr || range.item.start_ns >= inner->item.start_ns))
          inner = &range;
    if (inner == nullptr) return;
    owner_[item.launch] = inner->item.index;
    for (std::uint32_t at = first_work_[item.launch]; at != kNone; at = next_work_[at].next) {
      if (inner->links.size() < kMostLinks)
        inner->links.push_back(id(next_work_[at].kind, next_work_[at].index));
      else
        ++inner->dropped;
    }
  }

  void span(const Open& open, const std::string& parent) {
    const TimelineItem& item = open.item;
    pbf_writer all(spans_);
    pbf_writer span(all, 2);
    span.add_bytes(1, trace_);
    span.add_bytes(2, id(item.kind, item.index));
    if (!parent.empty()) span.add_bytes(4, parent);
    span.add_string(5, base::printable(timeline_.name(item)));
    span.add_int32(6, kInternal);
    const auto moment = [&](std::int64_t ns) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns + shift_ns_));
    };
    span.add_fixed64(7, moment(item.start_ns));
    span.add_fixed64(8, moment(item.end_ns));
    attributes(span, item);
    for (const std::string& link : open.links) {
      pbf_writer out(span, 13);
      out.add_bytes(1, trace_);
      out.add_bytes(2, link);
    }
    if (open.dropped > 0) span.add_uint32(14, open.dropped);
    span.commit();
    if (++count_ >= kMostSpans) flush();
  }

  void attributes(pbf_writer& span, const TimelineItem& item) {
    constexpr std::uint32_t kField = 9;
    if (item.open) attribute(span, kField, "rangescope.unclosed", "true");
    if (item.kind == ItemKind::kRange) {
      const model::Range& range = session_.ranges[item.index];
      attribute(span, kField, "thread.id", std::uint64_t{session_.threads[range.thread].tid});
      const std::string_view domain = session_.strings.view(session_.domains[range.domain].name);
      if (!domain.empty()) attribute(span, kField, "nvtx.domain", base::printable(domain));
      return;
    }
    const auto stream_of = [&](const auto& all) { return all[item.index].stream; };
    const std::uint32_t at = item.kind == ItemKind::kKernel   ? stream_of(session_.kernels)
                             : item.kind == ItemKind::kCopy   ? stream_of(session_.copies)
                             : item.kind == ItemKind::kMemset ? stream_of(session_.memsets)
                                                              : stream_of(session_.graph_launches);
    const model::Stream& stream = session_.streams[at];
    if (stream.device != kNone)
      attribute(span, kField, "gpu.device", std::uint64_t{session_.devices[stream.device].ordinal});
    attribute(span, kField, "gpu.stream", std::uint64_t{stream.id});
    if (item.kind == ItemKind::kCopy) attribute(span, kField, "gpu.copied_bytes", session_.copies[item.index].bytes);
  }

  /// What was gathered of one process, as a part of its own.
  void flush() {
    if (count_ == 0) return;
    std::string data;
    {
      pbf_writer traces(data);
      pbf_writer part(traces, 1);
      {
        pbf_writer resource(part, 1);
        attribute(resource, 1, "service.name", service_of(report_));
        if (process_ < session_.processes.size())
          attribute(resource, 1, "process.pid", std::uint64_t{session_.processes[process_].pid});
        if (!report_.run.host.empty()) attribute(resource, 1, "host.name", report_.run.host);
      }
      std::string of_scope;
      pbf_writer head(of_scope);
      scope(head);
      part.add_message(2, of_scope + spans_);
    }
    sink_.write(data);
    spans_.clear();
    count_ = 0;
  }

  const model::Report& report_;
  const model::Session& session_;
  Sink& sink_;
  Timeline timeline_;
  std::string trace_;
  std::uint64_t seed_;
  std::int64_t shift_ns_;
  std::vector<std::uint32_t> owner_;       ///< of each call: the range that it was in
  std::vector<std::uint32_t> first_work_;  ///< of each call: in next_work_
  std::vector<Work> next_work_;
  std::string spans_;
  std::size_t count_ = 0;
  std::uint32_t process_ = kNone;
};

}  // namespace

base::Result<void> export_otlp(const model::Report& report, const model::Session* session, const Style&, Sink& sink) {
  const Profile profile = make_profile(report, session);
  if (profile.kinds.empty()) return base::fail(base::Code::kNothingCaptured, "the input holds no times", {});
  ProfileTexts texts;
  std::string stacks, data;
  pbf_writer dictionary_stacks(stacks), out(data);
  {
    pbf_writer resource_profiles(out, 1);
    {
      pbf_writer resource(resource_profiles, 1);
      attribute(resource, 1, "service.name", service_of(report));
      if (!report.run.host.empty()) attribute(resource, 1, "host.name", report.run.host);
    }
    pbf_writer scope_profiles(resource_profiles, 2);
    scope(scope_profiles);
    for (const ProfileKind kind : profile.kinds) {
      pbf_writer one(scope_profiles, 2);
      {
        pbf_writer type(one, 1);
        type.add_int32(1, static_cast<std::int32_t>(texts.id(kProfileTypes.at(kind).first)));
        type.add_int32(2, static_cast<std::int32_t>(texts.id(kProfileTypes.at(kind).second)));
      }
      std::int32_t stack = 0;  // numbered from 1, in the order of the samples
      for (const auto& [frames, values] : profile.samples) {
        ++stack;
        if (!(values.at(kind) >= 0.5)) continue;
        pbf_writer sample(one, 2);
        sample.add_int32(1, stack);
        const std::int64_t value = std::llround(values.at(kind));
        sample.add_packed_int64(4, &value, &value + 1);
      }
      one.add_fixed64(3, static_cast<std::uint64_t>(std::max<std::int64_t>(report.run.start_unix_ns, 0)));
      one.add_uint64(4, static_cast<std::uint64_t>(std::max(report.run.duration_ns, 0.0)));
      const std::string run = trace_id(report);
      one.add_bytes(7, run.substr(0, 8) + big_endian(base::fnv1a(kProfileTypes.at(kind).first, base::fnv1a(run))));
    }
  }
  for (const auto& [frames, values] : profile.samples) {
    pbf_writer stack(dictionary_stacks, 7);
    stack.add_packed_int32(1, frames.rbegin(), frames.rend());
  }
  out.add_message(2, dictionary(profile, texts, stacks));
  sink.write(data);
  return {};
}

base::Result<void> export_otlp_spans(const model::Report& report, const model::Session* session, const Style&,
                                     Sink& sink) {
  if (session == nullptr || Timeline(*session).lanes().empty()) return no_timeline("otlp-spans");
  if (session->clock.anchor_unix_ns == 0)
    return base::fail(base::Code::kBadData, "the input has no UTC start time", "--format otlp-spans",
                      "Spans need one; -f perfetto does not");
  SpanWriter(report, *session, sink).write();
  return {};
}

}  // namespace rangescope::report
