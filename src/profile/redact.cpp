#include "profile/redact.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/sqlite.hpp"
#include "read/snapshot/rewrite.hpp"
#include "wire/gpu.hpp"

namespace rangescope::profile {

namespace fs = std::filesystem;

base::Result<void> redact_nsys_export(const std::filesystem::path& sqlite) {
  auto database = TRY(base::Database::open_write(sqlite));
  TRY(database.execute("pragma secure_delete=on; pragma journal_mode=off"));
  // Environments are NAME=value texts with zero bytes between them (which SQLite's text functions
  // stop at, hence blobs); older exports have blanks: at least four assignments with a PATH among
  // them are no range's name.
  const std::string blob = "cast(value as blob)";
  const std::string block = "(instr(" + blob + ", x'00')>0 and instr(" + blob +
                            ", x'3D')>0) or (instr(" + blob +
                            ", cast('PATH=' as blob))>0 and length(hex(" + blob +
                            "))-length(replace(hex(" + blob + "),'3D',''))>=8)";
  if (database.has_table("StringIds"))
    TRY(database.execute("update StringIds set value='<redacted environment>' where " + block));
  if (database.has_table("TARGET_INFO_SYSTEM_ENV"))
    TRY(database.execute(
        "update TARGET_INFO_SYSTEM_ENV set value='<redacted>' where name='DeviceEnvironment' or " +
        block));
  // 2023.4.4 (schema 3.7) has every variable of the launched program as a row.
  if (database.has_table("META_DATA_CAPTURE"))
    TRY(database.execute(
        "update META_DATA_CAPTURE set value='<redacted>' where instr(name, 'ENVIRONMENT')>0 or " +
        block));
  // nsys leaves copies in pages that it freed while it wrote; only a rewrite loses those.
  return database.execute("vacuum");
}

base::Result<bool> redact_snapshot(const fs::path& file, const base::Redactor& redactor) {
  const base::Mapping snapshot = TRY(base::Mapping::open(base::in_place(file)));
  const auto redacted = [&](std::string_view text) -> std::optional<std::string> {
    std::string kept = redactor.text(text);
    if (kept == text)
      return std::nullopt;
    return kept;
  };
  const std::string name = file.filename().string();
  const auto changed = TRY(read::snapshot::with_texts(snapshot.text(), name, redacted));
  if (changed)
    TRY(base::write_file(base::in_place(file), *changed));
  return changed.has_value();
}

void redact_snapshots(const fs::path& captures, const base::Redactor& redactor) {
  std::error_code error;
  fs::recursive_directory_iterator entry(captures, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    const fs::path& file = entry->path();
    if (file.extension() != wire::gpu::kMemorySuffix)
      continue;
    const auto done = redact_snapshot(file, redactor);
    if (done)
      continue;
    std::error_code ignored;
    fs::remove(base::in_place(file), ignored);
    base::warn("a memory snapshot was removed, since its texts could not be redacted: " +
               base::to_string(done.error()));
  }
}

}  // namespace rangescope::profile
