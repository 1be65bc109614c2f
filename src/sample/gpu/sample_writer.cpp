#include "sample/gpu/sample_writer.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

namespace rangescope::sample {
namespace {

namespace format = wire::samples;

constexpr std::size_t kMostItems = 4096;  // a block; also flushed once a second

/// Values byte by byte: the lowest byte of all, then the next.
template <class T>
void append_transposed(const std::vector<T>& values, std::string& out) {
  const std::size_t begin = out.size(), count = values.size();
  out.resize(begin + count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &values[i], sizeof(T));
    for (std::size_t b = 0; b < sizeof(T); ++b)
      out[begin + b * count + i] = bytes[b];
  }
}

std::vector<std::int64_t> differences(const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> out(values.size());
  std::int64_t before = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    out[i] = values[i] - std::exchange(before, values[i]);
  return out;
}

std::string text_of(const Description& description) {
  std::string text = "source " + description.source + "\nclock " + description.clock + "\ndevice " +
                     std::to_string(description.device) + "\nuuid " + description.uuid + "\nname " +
                     description.name + "\nchip " + description.chip + "\ninterval_ns " +
                     std::to_string(description.interval_ns) + "\n";
  for (const std::string& metric : description.metrics)
    text += "metric " + metric + "\n";
  return text;
}

}  // namespace

base::Result<SampleWriter> SampleWriter::create(const std::filesystem::path& file,
                                                Description description,
                                                std::uint64_t most_bytes) {
  auto blocks = TRY(BlockFile::create(file, format::kMagic, format::kVersion));
  SampleWriter stream(std::move(blocks), std::move(description), most_bytes);
  stream.file_.put(format::Type::kDescription, text_of(stream.description_), 0);
  return stream;
}

SampleWriter::SampleWriter(BlockFile file, Description description, std::uint64_t most_bytes)
    : file_(std::move(file)),
      description_(std::move(description)),
      most_bytes_(most_bytes),
      sums_(description_.metrics.size()),
      columns_(description_.metrics.size()) {}

void SampleWriter::add(std::int64_t start_ns, std::int64_t end_ns, const double* values) {
  // What lies before a gap is no part of the sample behind it.
  if (merged_ > 0 && start_ns - merged_end_ns_ > 1000)
    take(merged_start_ns_, merged_end_ns_);
  const auto length = static_cast<double>(std::max<std::int64_t>(end_ns - start_ns, 1));
  if (merged_ == 0) {
    merged_start_ns_ = start_ns;
    covered_ns_ = 0;
    std::ranges::fill(sums_, 0);
  }
  for (std::size_t m = 0; m < sums_.size(); ++m)
    sums_[m] += values[m] * (description_.adds_up[m] ? 1 : length);
  covered_ns_ += static_cast<std::int64_t>(length);
  merged_end_ns_ = end_ns;
  least_lead_ns_ = std::min(least_lead_ns_, now_ns() - end_ns);
  if (++merged_ >= merge_)
    take(merged_start_ns_, merged_end_ns_);
}

void SampleWriter::take(std::int64_t start_ns, std::int64_t end_ns) {
  merged_ = 0;
  ++samples_;
  starts_.push_back(start_ns);
  ends_.push_back(end_ns);
  for (std::size_t m = 0; m < sums_.size(); ++m) {
    const double divisor = description_.adds_up[m] ? 1 : static_cast<double>(covered_ns_);
    columns_[m].push_back(static_cast<float>(sums_[m] / divisor));
  }
  if (starts_.size() >= kMostItems)
    flush(false);
}

void SampleWriter::flush(bool last) {
  if (last && merged_ > 0)
    take(merged_start_ns_, merged_end_ns_);
  if (!starts_.empty()) {
    std::string raw;
    raw.reserve(format::raw_bytes(starts_.size(), columns_.size()));
    append_transposed(differences(starts_), raw);
    append_transposed(differences(ends_), raw);
    for (const auto& column : columns_)
      append_transposed(column, raw);
    file_.put(format::Type::kSamples, raw, static_cast<std::uint32_t>(starts_.size()));
    starts_.clear();
    ends_.clear();
    for (auto& column : columns_)
      column.clear();
    // Merging doubles each time that half of what was left is gone: what follows fits, however long
    // it takes.
    if (file_.bytes() > most_bytes_ - most_bytes_ / (2ull * merge_) && merge_ < (1u << 20)) {
      merge_ *= 2;
      file_.event(
          format::EventKind::kCoarser, "the file of samples came near its size limit", merge_);
    }
  }
  if (!last)
    return;
  std::string text =
      "cpu_ns " + std::to_string(std::int64_t{std::clock()} * (1'000'000'000 / CLOCKS_PER_SEC));
  if (samples_ > 0)
    text += "\nlead_ns " + std::to_string(least_lead_ns_);
  file_.put(format::Type::kEnd, text, 0);
}

}  // namespace rangescope::sample
