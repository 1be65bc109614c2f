// pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), packed by gzip:
//
//   Profile    sample_type 1, sample 2, location 4, function 5, string_table 6 (the first is ""), time_nanos 9,
//              duration_nanos 10, comment 13, default_sample_type 14
//   ValueType  type 1, unit 2        Sample    location_id 1 (the innermost first), value 2 (one a sample type)
//   Location   id 1, line 4 (Line: function_id 1)     Function  id 1, name 2, system_name 3, filename 4
//
// Values of a sample are those of its innermost frame alone: self time of a range; below it functions by CPU samples,
// and kernels by GPU time. They add up to what the run took. Ranges of several domains, and start/end ranges, overlap:
// wall and GPU time are of the tree in which most time was spent; GPU work in others stands in "(other ranges)", and a
// comment names them. A kind of value of which nothing was recorded is left out. A range's kernels are told apart where
// the report lists all of them for it and the ranges inside; else they are one, "(kernels)". Locations have no address.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <protozero/pbf_writer.hpp>

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/flame.hpp"
#include "report/document/view.hpp"
#include "report/formats.hpp"
#include "report/formats/stacks/chains.hpp"

namespace rangescope::report {
namespace {

using model::GpuWork;
using model::Region;
using protozero::pbf_writer;

enum PprofKind : std::size_t { kWall, kCpu, kGpu, kCopied, kEnergy, kKinds };
constexpr std::array<std::pair<std::string_view, std::string_view>, kKinds> kPprofTypes = {{{"wall", "nanoseconds"},
                                                                                            {"cpu", "nanoseconds"},
                                                                                            {"gpu", "nanoseconds"},
                                                                                            {"copied", "bytes"},
                                                                                            {"energy", "millijoules"}}};
using PprofValues = std::array<double, kKinds>;
using PprofFrame = std::pair<std::string, std::string>;  ///< name and file
using PprofStack = std::vector<PprofFrame>;              ///< the outermost first

std::optional<double> energy_of(const Region& region) {
  const auto found = region.metrics.find("energy");
  if (found == region.metrics.end() || !found->second.absent.empty()) return {};
  return found->second.value * 1e3 * (found->second.of_all ? 1 : static_cast<double>(region.occurrences));
}

class PprofWriter {
 public:
  explicit PprofWriter(const model::Report& report) : report_(report) { text(""); }

  void write(const model::Session* session) {
    regions();
    outside();
    if (session != nullptr && session->cpu.interval_ns > 0) functions(*session);
    if (kinds_.empty()) return;
    for (const std::size_t kind : kinds_) {
      pbf_writer type(profile_, 1);
      type.add_int64(1, text(std::string(kPprofTypes.at(kind).first)));
      type.add_int64(2, text(std::string(kPprofTypes.at(kind).second)));
    }
    for (const auto& [stack, values] : samples_) {
      pbf_writer sample(profile_, 2);
      sample.add_packed_uint64(1, stack.rbegin(), stack.rend());
      std::vector<std::int64_t> numbers;
      for (const std::size_t kind : kinds_) numbers.push_back(std::llround(values.at(kind)));
      sample.add_packed_int64(2, numbers.begin(), numbers.end());
    }
    for (const auto& [frame, id] : frames_) {
      {
        pbf_writer location(profile_, 4);
        location.add_uint64(1, id);
        pbf_writer line(location, 4);
        line.add_uint64(1, id);
      }
      pbf_writer function(profile_, 5);
      function.add_uint64(1, id);
      const std::int64_t name = text(frame.first);
      function.add_int64(2, name);
      function.add_int64(3, name);
      function.add_int64(4, text(frame.second));
    }
    profile_.add_int64(9, report_.run.start_unix_ns);
    profile_.add_int64(10, static_cast<std::int64_t>(report_.run.duration_ns));
    for (const std::string& comment : comments_) profile_.add_int64(13, text(comment));
    profile_.add_int64(14, text(std::string(kPprofTypes.at(kinds_.front()).first)));
    for (const std::string& one : texts_) profile_.add_string(6, one);
  }
  [[nodiscard]] const std::string& data() const { return data_; }

 private:
  std::int64_t text(const std::string& one) {
    const auto [at, fresh] = text_ids_.try_emplace(one, static_cast<std::int64_t>(texts_.size()));
    if (fresh) texts_.push_back(one);
    return at->second;
  }

  void add(const PprofStack& stack, PprofKind kind, double value) {
    if (!(value >= 0.5)) return;
    if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) {
      kinds_.push_back(kind);
      std::sort(kinds_.begin(), kinds_.end());
    }
    std::vector<std::uint64_t> ids;
    for (const PprofFrame& frame : stack) ids.push_back(frames_.try_emplace(frame, frames_.size() + 1).first->second);
    samples_[std::move(ids)].at(kind) += value;
  }

  static PprofStack ranges(const std::vector<std::string>& path) {
    PprofStack stack;
    for (const std::string& name : path) stack.emplace_back(base::printable(name), "NVTX");
    return stack;
  }
  static PprofStack with(PprofStack stack, const std::string& name, const std::string& file) {
    stack.emplace_back(base::printable(name), base::printable(file));
    return stack;
  }

  using Tree = std::pair<std::string, model::RangeKind>;
  /// That in which most time was spent; comments name the others.
  [[nodiscard]] std::optional<Tree> largest() {
    std::map<Tree, double> trees;
    for (const Region& region : report_.regions)
      if (!region.process && !region.thread) trees[{region.domain, region.kind}] += region.wall.exclusive_ns;
    const auto most =
        std::max_element(trees.begin(), trees.end(), [](auto& a, auto& b) { return a.second < b.second; });
    if (most == trees.end()) return {};
    for (auto at = trees.begin(); at != trees.end(); ++at)
      if (at != most)
        comments_.push_back(
            "left out, since they overlap: " + std::string(kind_name(at->first.second)) + " ranges of " +
            (at->first.first.empty() ? "the default domain" : "domain " + base::printable(at->first.first)));
    return most->first;
  }

  void regions() {
    const auto tree = largest();
    std::vector<const Region*> chosen;
    std::map<std::uint32_t, std::vector<const Region*>> inside;
    for (const Region& region : report_.regions) {
      if (region.process || region.thread || Tree{region.domain, region.kind} != tree) continue;
      chosen.push_back(&region);
      inside[region.parent].push_back(&region);
    }
    for (const Region* region : chosen) {
      const PprofStack stack = ranges(region->path);
      const auto& children = inside[region->id];
      add(stack, kWall, region->wall.exclusive_ns);
      if (const auto energy = energy_of(*region)) {
        double rest = *energy;
        for (const Region* child : children) rest -= energy_of(*child).value_or(0);
        add(stack, kEnergy, rest);
      }
      if (!region->gpu) continue;
      double bytes = region->gpu->copy_bytes;
      for (const Region* child : children) bytes -= child->gpu ? child->gpu->copy_bytes : 0;
      add(stack, kCopied, bytes);
      kernels(*region, children, stack);
    }
    rest(inside[model::kNone]);
  }

  void kernels(const Region& region, const std::vector<const Region*>& children, const PprofStack& stack) {
    std::map<std::string, double> own;
    const auto listed = [&](const GpuWork& work, double sign) {
      for (const model::KernelRow& row : work.top_kernels) own[row.name] += sign * row.total_ns;
      return static_cast<std::int64_t>(work.top_kernels.size()) == work.distinct_kernels;
    };
    bool all = listed(*region.gpu, 1);
    for (const Region* child : children) all = (!child->gpu || listed(*child->gpu, -1)) && all;
    double sum = 0;
    for (const auto& [name, ns] : own) sum += ns > 0 ? ns : 0;
    if (!all || std::abs(sum - region.gpu->exclusive_kernel_ns) > 1)
      own = {{"(kernels)", region.gpu->exclusive_kernel_ns}};
    for (const auto& [name, ns] : own) add(with(stack, name, "GPU"), kGpu, ns);
  }

  /// GPU work of the run that no range of the tree has.
  void rest(const std::vector<const Region*>& tops) {
    if (!report_.total) return;
    const PprofStack none = with({}, "(outside ranges)", "");
    const PprofStack others = with({}, "(other ranges)", "");
    double ns = report_.total->kernel_ns, bytes = report_.total->copy_bytes;
    for (const Region* top : tops) {
      ns -= top->gpu ? top->gpu->kernel_ns : 0;
      bytes -= top->gpu ? top->gpu->copy_bytes : 0;
    }
    if (report_.unattributed) {
      double listed = 0;
      for (const model::KernelRow& row : report_.unattributed->top_kernels) {
        add(with(none, row.name, "GPU"), kGpu, row.total_ns);
        listed += row.total_ns;
      }
      add(with(none, "(kernels)", "GPU"), kGpu, report_.unattributed->kernel_ns - listed);
      add(none, kCopied, report_.unattributed->copy_bytes);
      ns -= report_.unattributed->kernel_ns;
      bytes -= report_.unattributed->copy_bytes;
    }
    add(with(others, "(kernels)", "GPU"), kGpu, ns);
    add(others, kCopied, bytes);
  }

  void outside() {
    if (report_.outside) add(with({}, "(outside ranges)", ""), kWall, report_.outside->wall_ns);
  }

  void functions(const model::Session& session) {
    for (const Chain& chain : chains(report_)) {
      PprofStack stack = chain.ranges.empty() ? with({}, "(outside ranges)", "") : ranges(chain.ranges);
      for (const std::uint32_t at : frames_of(session.cpu, chain.stack)) {
        const model::CpuFrame& frame = session.cpu.frames[at];
        const auto file = session.strings.view(frame.file != 0 ? frame.file : frame.module);
        stack = with(std::move(stack), frame_text(session, frame), std::string(file));
      }
      add(stack, kCpu, static_cast<double>(chain.samples * session.cpu.interval_ns));
    }
  }

  const model::Report& report_;
  std::string data_;
  pbf_writer profile_{data_};
  std::vector<std::string> texts_, comments_;
  std::map<std::string, std::int64_t> text_ids_;
  std::map<PprofFrame, std::uint64_t> frames_;
  std::vector<std::size_t> kinds_;  ///< of which something was recorded
  std::map<std::vector<std::uint64_t>, PprofValues> samples_;
};

}  // namespace

base::Result<void> export_pprof(const model::Report& report, const model::Session* session, const Style&, Sink& sink) {
  PprofWriter writer(report);
  writer.write(session);
  const std::string& data = writer.data();
  if (data.empty()) return base::fail(base::Code::kNothingCaptured, "the input holds no times", {});
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return base::fail(base::Code::kInternal, "zlib does not start", {});
  std::string packed(::deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int end = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (end != Z_STREAM_END) return base::fail(base::Code::kInternal, "zlib does not end", {});
  sink.write(packed);
  return {};
}

}  // namespace rangescope::report
