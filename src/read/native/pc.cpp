#include "read/native/pc.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/units.hpp"

namespace rangescope::read::native {
namespace recorded = wire::pc;

bool PcReader::take(const GpuRecord& record) {
  switch (static_cast<recorded::Type>(record.head().type)) {
    case recorded::Type::kReason: {
      const auto name = record.as<wire::gpu::Name>();
      reasons_[name.head.id] = record.text(sizeof name, name.bytes);
      return true;
    }
    case recorded::Type::kPlace:
      places_[record.head().id] = record.as<recorded::Place>();
      return true;
    case recorded::Type::kSamples: {
      const auto head = record.as<recorded::Samples>();
      const std::string_view pairs = record.text(sizeof head, std::size_t{head.count} * 8);
      if (pairs.size() != std::size_t{head.count} * 8)
        ++damaged_;
      for (std::size_t i = 0; i + 8 <= pairs.size(); i += 8) {
        Sample sample{head.head.id, head.place, 0, 0};
        std::memcpy(&sample.reason, pairs.data() + i, 4);
        std::memcpy(&sample.samples, pairs.data() + i + 4, 4);
        samples_.push_back(sample);
      }
      return true;
    }
    case recorded::Type::kWindow: {
      const auto window = record.as<recorded::Window>();
      ++windows_;
      all_ += window.samples;
      dropped_ += window.dropped;
      if (window.head.small == 1)
        ++full_;
      return true;
    }
  }
  return false;
}

namespace {

/// Adds the losses of one stream, and leaves out those with a count of 0.
class StreamLosses {
 public:
  StreamLosses(const std::string& where, model::Session& session)
      : where_(where), session_(session) {}
  void add(model::LossKind kind, std::uint64_t count, std::string detail) {
    if (count > 0)
      session_.losses.push_back({kind, count, where_ + ": " + std::move(detail)});
  }

 private:
  const std::string& where_;
  model::Session& session_;
};

}  // namespace

void PcReader::add_lost_samples(const std::string& where, model::Session& session) const {
  StreamLosses losses(where, session);
  const std::string all_samples = base::format_count(static_cast<std::int64_t>(all_));
  losses.add(
      "pc_samples_dropped",
      dropped_,
      fmt::format(
          "of {} program-counter samples were dropped by the hardware: shares are of the rest",
          all_samples));
  std::uint64_t accounted = dropped_;
  for (const Sample& sample : samples_)
    accounted += sample.samples;
  const std::uint64_t unknown = all_ > accounted ? all_ - accounted : 0;
  constexpr std::uint64_t kReportedPerMost = 100;  // up to 1 % are of CUPTI's own kernels
  if (unknown * kReportedPerMost > all_)
    losses.add("pc_samples_unknown",
               unknown,
               fmt::format("of {} program-counter samples have no instruction: of CUPTI's own "
                           "kernels, or dropped by its buffers",
                           all_samples));
  losses.add("pc_buffer_full",
             full_,
             "windows without program-counter samples: the hardware's buffer was full");
}

void PcReader::finish(const std::string& where,
                      std::size_t from,
                      const std::unordered_map<std::uint32_t, std::uint32_t>& names,
                      model::Session& session) const {
  add_lost_samples(where, session);
  std::unordered_map<std::uint32_t, std::uint32_t> launches;  // by correlation
  if (!samples_.empty()) {
    for (std::size_t i = from; i < session.launches.size(); ++i)
      launches[session.launches[i].correlation] = static_cast<std::uint32_t>(i);
  }
  std::unordered_map<std::uint32_t, std::uint32_t> place_indexes;  // by the stream's number
  std::uint64_t damaged = damaged_;
  std::uint64_t without_launch = 0;
  for (const Sample& sample : samples_) {
    const auto place = places_.find(sample.place);
    const auto reason = reasons_.find(sample.reason);
    const auto function = place == places_.end() ? names.end() : names.find(place->second.function);
    if (function == names.end() || reason == reasons_.end()) {
      ++damaged;
      continue;
    }
    const auto launch = launches.find(sample.correlation);
    if (launch == launches.end()) {
      without_launch += sample.samples;
      continue;
    }
    const auto next_index = static_cast<std::uint32_t>(session.pc.places.size());
    const auto [index, is_new] = place_indexes.try_emplace(sample.place, next_index);
    if (is_new) {
      model::StringId file_name = 0;
      if (const auto file = names.find(place->second.file); file != names.end())
        file_name = session.kernel_names[file->second].mangled;
      session.pc.places.push_back(
          {function->second, place->second.offset, file_name, place->second.line});
    }
    session.pc.samples.push_back(
        {launch->second, index->second, session.strings.intern(reason->second), sample.samples});
  }
  StreamLosses losses(where, session);
  if (session.windows.empty())
    losses.add(
        "pc_samples_without_call",
        without_launch,
        "program-counter samples of kernels whose launch was not recorded: they are in no region");
  losses.add("bad_gpu_records", damaged, "program-counter samples that are truncated or undefined");
}

}  // namespace rangescope::read::native
