#include "read/kineto/reader.hpp"

#include <zlib.h>

#include "base/text.hpp"
#include "read/kineto/build.hpp"

namespace rangescope::read::kineto {
namespace {

bool is_gzip(std::string_view head) {
  return head.starts_with("\x1f\x8b");
}

/// Of the root of a trace, or of its first events. Where members of other people precede those, the
/// file is searched.
bool is_trace(std::string_view head, const std::filesystem::path& path) {
  if (head.starts_with("\xef\xbb\xbf"))
    head.remove_prefix(3);
  head = base::trim(head);
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (head.starts_with('['))
    return has("\"ph\"") && has("\"ts\"");
  if (!head.starts_with('{') || has("\"rangescope"))
    return false;
  if (has("\"traceEvents\"") || has("\"deviceProperties\"") || has("\"distributedInfo\"") ||
      has("\"schemaVersion\""))
    return true;
  constexpr std::size_t kSearched = std::size_t{256} << 10;
  std::string more(kSearched, '\0');
  gzFile file = ::gzopen(path.c_str(), "rb");
  if (file == nullptr)
    return false;
  const int got = ::gzread(file, more.data(), kSearched);
  ::gzclose(file);
  return got > 0 &&
         std::string_view(more).substr(0, static_cast<std::size_t>(got)).find("\"traceEvents\"") !=
             std::string_view::npos;
}

}  // namespace

std::string unpacked_head(std::string_view head) {
  std::string out(std::size_t{64} << 10, '\0');
  ::z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (::inflateInit2(&stream, kGzip) != Z_OK)
    return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(head.data()));
  stream.avail_in = static_cast<uInt>(head.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  (void)::inflate(&stream, Z_SYNC_FLUSH);
  out.resize(out.size() - stream.avail_out);
  ::inflateEnd(&stream);
  return out;
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return is_trace(is_gzip(text) ? unpacked_head(text) : text, path);
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  auto splitter = TRY(Splitter::open(path));
  return build(std::move(splitter), path.string());
}

base::Result<model::Session> read_text(std::string_view text, const std::string& name) {
  return build(Splitter::of(text), name);
}

const Reader kReader{"kineto", sniff, read};

}  // namespace rangescope::read::kineto
