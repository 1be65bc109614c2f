#include "runs/compress.hpp"

#include <zstd.h>

#include <optional>
#include <vector>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/held_folder.hpp"
#include "base/owned.hpp"
#include "base/text.hpp"
#include "runs/imports.hpp"
#include "runs/manifest.hpp"
#include "runs/retention.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

/// What the file becomes; "" for others.
std::string packed_name(const std::string& name) {
  for (const std::string_view raw : {".nsys-rep", ".qdrep", ".qdstrm"})
    if (name.ends_with(raw))
      return name + ".zst";
  if (name.ends_with(".ncu-rep"))
    return name + "z";
  return {};
}

/// Writes `bytes` as one zstd frame with a checksum.
base::Result<void> write_frame(std::string_view bytes, base::Replacement& file) {
  constexpr int kLevel = 6;
  const base::Owned<ZSTD_CCtx, &ZSTD_freeCCtx> context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<char> buffer(ZSTD_CStreamOutSize());
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (std::size_t left = 1; left != 0;) {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    left = ZSTD_compressStream2(context.get(), &out, &in, ZSTD_e_end);
    if (ZSTD_isError(left))
      return base::fail(base::Code::kInternal, ZSTD_getErrorName(left), file.temporary());
    TRY(file.write({buffer.data(), out.pos}));
  }
  return {};
}

/// The frame unpacks to exactly these bytes.
bool unpacks_to(std::string_view packed, std::string_view bytes) {
  const base::Owned<ZSTD_DCtx, &ZSTD_freeDCtx> context(ZSTD_createDCtx());
  std::vector<char> buffer(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::size_t unpacked = 0, left = 1;
  while (left != 0) {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    const std::size_t before = in.pos;
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left))
      return false;
    const std::string_view part(buffer.data(), out.pos);
    if (bytes.substr(std::min(unpacked, bytes.size()), part.size()) != part)
      return false;
    unpacked += part.size();
    const bool has_progress = !part.empty() || in.pos != before;
    const bool is_cut = left != 0 && !has_progress;
    if (is_cut)
      return false;
  }
  return unpacked == bytes.size() && in.pos == packed.size();
}

/// Packs `file` into `to`. Nothing if the file is not the one of the proof.
base::Result<std::optional<FileProof>> compress_file(const fs::path& file,
                                                     const fs::path& to,
                                                     const FileProof& proof) {
  const auto raw = TRY(base::Mapping::open(file));
  if (base::sha256(raw.text()) != proof.sha256)
    return std::nullopt;  // `runs verify` reports it
  auto out = TRY(base::Replacement::begin(to));
  TRY(write_frame(raw.text(), out));
  TRY(out.commit());
  std::error_code error;
  const auto packed = base::Mapping::open(to);
  if (!packed || !unpacks_to(packed->text(), raw.text())) {
    fs::remove(base::in_place(to), error);
    return base::fail(
        base::Code::kIo, "what was compressed does not unpack to what it was", to.string());
  }
  const fs::perms permissions = fs::status(file, error).permissions();
  fs::permissions(base::in_place(to), permissions, error);
  FileProof packed_proof;
  packed_proof.bytes = packed->text().size();
  packed_proof.sha256 = base::sha256(packed->text());
  return std::optional(std::move(packed_proof));
}

}  // namespace

base::Result<Compressed> compress_run(const fs::path& run) {
  Compressed done;
  TRY(base::HeldFolder::take(run));
  auto manifest = TRY(read_manifest(run));
  const auto proofs = manifest.files;
  if (const auto imports = read_imports(run); imports && !imports->empty())
    return done;  // they name their files
  for (const auto& [name, proof] : proofs) {
    const std::string packed_as = packed_name(name);
    const fs::path file = run / name;
    const fs::path to = run / packed_as;
    std::error_code error;
    const bool is_file = !fs::is_symlink(file, error) && fs::is_regular_file(file, error);
    if (packed_as.empty() || !is_file || fs::exists(to, error))
      continue;
    const auto packed = TRY(compress_file(file, to, proof));
    if (!packed)
      continue;
    manifest.files.erase(name);
    manifest.files[packed_as] = *packed;
    done.bytes += proof.bytes;
    done.packed_bytes += packed->bytes;
    ++done.files;
    TRY(write_manifest(run, manifest));
    fs::remove(base::in_place(file), error);
    if (error)
      return base::fail(base::Code::kIo, "cannot remove: " + error.message(), file.string());
  }
  return done;
}

base::Result<std::chrono::seconds> parse_compress(std::string_view text) {
  constexpr std::string_view kForm = "older-than ";
  if (text.starts_with(kForm))
    if (auto age = parse_age(text.substr(kForm.size())))
      return age;
  return base::fail(base::Code::kUsage,
                    "'" + base::printable(text) + "' does not select runs to compress",
                    "run.compress",
                    "Write 'older-than 7d', or 30s, 90m, 36h, 2w.");
}

}  // namespace rangescope::runs
