// pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), packed by
// gzip:
//
//   Profile    sample_type 1, sample 2, location 4, function 5, string_table 6 (the first is ""),
//              time_nanos 9, duration_nanos 10, comment 13, default_sample_type 14
//   ValueType  type 1, unit 2
//   Sample     location_id 1 (innermost first), value 2 (one for each sample type)
//   Location   id 1, line 4 (Line: function_id 1)
//   Function   id 1, name 2, system_name 3, filename 4
//
// profile.hpp explains the values. Locations have no address.
#include <zlib.h>

#include <cmath>
#include <protozero/pbf_writer.hpp>

#include "report/formats.hpp"
#include "report/formats/stacks/profile.hpp"

namespace rangescope::report {
namespace {

using protozero::pbf_writer;

/// The string table: texts by number; 0 is "".
class ProfileTexts {
 public:
  [[nodiscard]] std::int64_t id(std::string_view text) {
    const auto [entry, is_new] =
        ids_.try_emplace(std::string(text), static_cast<std::int64_t>(all_.size()));
    if (is_new)
      all_.push_back(entry->first);
    return entry->second;
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_{""};
  std::map<std::string, std::int64_t> ids_{{"", 0}};
};

std::string pprof_bytes(const model::Report& report, const Profile& profile) {
  std::string data;
  if (profile.kinds.empty())
    return data;
  pbf_writer out(data);
  ProfileTexts texts;
  const auto text = [&](std::string_view string) { return texts.id(string); };
  for (const ProfileKind kind : profile.kinds) {
    pbf_writer type(out, 1);
    type.add_int64(1, text(kProfileTypes.at(kind).first));
    type.add_int64(2, text(kProfileTypes.at(kind).second));
  }
  for (const auto& [stack, values] : profile.samples) {
    pbf_writer sample(out, 2);
    sample.add_packed_uint64(1, stack.rbegin(), stack.rend());
    std::vector<std::int64_t> numbers;
    for (const ProfileKind kind : profile.kinds)
      numbers.push_back(std::llround(values.at(kind)));
    sample.add_packed_int64(2, numbers.begin(), numbers.end());
  }
  for (const auto& [frame, id] : profile.frames) {
    {
      pbf_writer location(out, 4);
      location.add_uint64(1, id);
      pbf_writer line(location, 4);
      line.add_uint64(1, id);
    }
    pbf_writer function(out, 5);
    function.add_uint64(1, id);
    const std::int64_t name = text(frame.first);
    function.add_int64(2, name);
    function.add_int64(3, name);
    function.add_int64(4, text(frame.second));
  }
  out.add_int64(9, report.run.start_unix_ns);
  out.add_int64(10, static_cast<std::int64_t>(report.run.duration_ns));
  for (const std::string& comment : profile.comments)
    out.add_int64(13, text(comment));
  out.add_int64(14, text(kProfileTypes.at(profile.kinds.front()).first));
  for (const std::string& string : texts.all())
    out.add_string(6, string);
  return data;
}

}  // namespace

base::Result<void> export_pprof(const model::Report& report,
                                const model::Session* session,
                                const Style&,
                                Sink& sink) {
  const std::string data = pprof_bytes(report, make_profile(report, session));
  if (data.empty())
    return base::fail(base::Code::kNothingCaptured, "the input holds no times", {});
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
  if (::deflateInit2(
          &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return base::fail(base::Code::kInternal, "zlib does not start", {});
  std::string packed(::deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (status != Z_STREAM_END)
    return base::fail(base::Code::kInternal, "zlib does not end", {});
  sink.write(packed);
  return {};
}

}  // namespace rangescope::report
