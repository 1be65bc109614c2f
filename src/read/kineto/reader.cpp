#include "read/kineto/reader.hpp"

#include <zlib.h>

#include "base/text.hpp"
#include "read/kineto/build.hpp"

namespace rangescope::read::kineto {
namespace {

bool is_gzip(std::string_view head) {
  return head.starts_with("\x1f\x8b");
}

/// Of the root of a trace, or of its first events. Where people put members of their own before those, the file says.
bool is_trace(std::string_view head, const std::filesystem::path& path) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  head = base::trim(head);
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (head.starts_with('[')) return has("\"ph\"") && has("\"ts\"");
  if (!head.starts_with('{') || has("\"rangescope")) return false;
  if (has("\"traceEvents\"") || has("\"deviceProperties\"") || has("\"distributedInfo\"") || has("\"schemaVersion\""))
    return true;
  constexpr std::size_t kSearched = std::size_t{256} << 10;
  std::string more(kSearched, '\0');
  gzFile file = ::gzopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  const int got = ::gzread(file, more.data(), kSearched);
  ::gzclose(file);
  return got > 0 && std::string_view(more).substr(0, static_cast<std::size_t>(got)).find("\"traceEvents\"") !=
                        std::string_view::npos;
}

base::Result<model::Session> read_all_of(Splitter splitter, const std::string& name) {
  Builder builder;
  EventParser parser;
  Event event;
  Piece piece;
  while (splitter.next(piece)) {
    if (!piece.key.empty()) {
      builder.member(piece.key, piece.text);
    } else if (parser.parse(piece.text, event)) {
      builder.add(event);
    } else {
      builder.bad();
    }
  }
  const std::string where = name + ": byte " + std::to_string(splitter.offset());
  if (builder.known() == 0) {
    if (!splitter.broken().empty())
      return base::fail(base::Code::kBadData, "this JSON cannot be read: " + splitter.broken(), where,
                        "Check that the file was copied whole.");
    return base::fail(base::Code::kBadData,
                      builder.events() == 0 ? "a trace without events"
                                            : "a trace without operators, CUDA calls or kernels of PyTorch",
                      name, "Give what torch.profiler.profile(...).export_chrome_trace(FILE) wrote.");
  }
  model::Session session = builder.finish();
  if (!splitter.broken().empty())
    session.losses.push_back(
        {"torn_tail", 1,
         "the trace ends early, " + splitter.broken() + ": " + where + "; what it held after that is missing"});
  session.sources.push_back({name, "kineto", "PyTorch profiler" + builder.job(), {}});
  return session;
}

}  // namespace

std::string unpacked_head(std::string_view head) {
  std::string out(std::size_t{64} << 10, '\0');
  ::z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (::inflateInit2(&stream, kGzip) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(head.data()));
  stream.avail_in = static_cast<uInt>(head.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  (void)::inflate(&stream, Z_SYNC_FLUSH);
  out.resize(out.size() - stream.avail_out);
  ::inflateEnd(&stream);
  return out;
}

bool KinetoReader::sniff(std::span<const std::byte> head, const std::filesystem::path& path) const {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return is_trace(is_gzip(text) ? unpacked_head(text) : text, path);
}

base::Result<model::Session> KinetoReader::read(const std::filesystem::path& path, const Options&) const {
  auto splitter = Splitter::open(path);
  if (!splitter) return base::fail(std::move(splitter));
  return read_all_of(std::move(*splitter), path.string());
}

base::Result<model::Session> read_text(std::string_view text, const std::string& name) {
  return read_all_of(Splitter::of(text), name);
}

}  // namespace rangescope::read::kineto
