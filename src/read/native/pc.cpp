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
      damaged_ += pairs.size() == std::size_t{head.count} * 8 ? 0 : 1;
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
      full_ += window.head.small == 1 ? 1 : 0;
      return true;
    }
  }
  return false;
}

void PcReader::finish(const std::string& where, std::size_t from,
                      const std::unordered_map<std::uint32_t, std::uint32_t>& names,
                      model::Session& session) const {
  const auto lose = [&](model::LossKind kind, std::uint64_t count, std::string detail) {
    if (count > 0) session.losses.push_back({kind, count, where + ": " + std::move(detail)});
  };
  lose("pc_samples_dropped", dropped_,
       fmt::format(
           "of {} program-counter samples were dropped by the hardware: shares are of the rest",
           base::format_count(static_cast<std::int64_t>(all_))));
  std::uint64_t told = dropped_;
  for (const Sample& sample : samples_) told += sample.samples;
  constexpr std::uint64_t kFew = 100;  // CUPTI's own kernels have some
  if (all_ > told && (all_ - told) * kFew > all_)
    lose("pc_samples_unknown", all_ - told,
         fmt::format("of {} program-counter samples have no instruction: of CUPTI's own kernels, "
                     "or dropped by its buffers",
                     base::format_count(static_cast<std::int64_t>(all_))));
  lose("pc_buffer_full", full_,
       "windows without program-counter samples: the hardware's buffer was full");
  std::unordered_map<std::uint32_t, std::uint32_t> launches;
  for (std::size_t i = samples_.empty() ? session.launches.size() : from;
       i < session.launches.size(); ++i)
    launches[session.launches[i].correlation] = static_cast<std::uint32_t>(i);
  std::unordered_map<std::uint32_t, std::uint32_t> known;  // the stream's places
  std::uint64_t damaged = damaged_, homeless = 0;
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
      homeless += sample.samples;
      continue;
    }
    const auto [at, fresh] =
        known.try_emplace(sample.place, static_cast<std::uint32_t>(session.pc.places.size()));
    if (fresh) {
      const auto file = names.find(place->second.file);
      session.pc.places.push_back(
          {function->second, place->second.offset,
           file == names.end() ? 0 : session.kernel_names[file->second].mangled,
           place->second.line});
    }
    session.pc.samples.push_back(
        {launch->second, at->second, session.strings.intern(reason->second), sample.samples});
  }
  if (session.windows.empty())
    lose("pc_samples_without_call", homeless,
         "program-counter samples of kernels whose launch was not recorded: they are in no region");
  lose("bad_gpu_records", damaged, "program-counter samples that are truncated or undefined");
}

}  // namespace rangescope::read::native
