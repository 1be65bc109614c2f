#include "profile/redact.hpp"

#include "base/sqlite.hpp"

namespace rangescope::profile {

base::Result<void> redact_nsys_export(const std::filesystem::path& sqlite) {
  auto database = TRY(base::Database::open_write(sqlite));
  TRY(database.execute("pragma secure_delete=on; pragma journal_mode=off"));
  // Environments are NAME=value texts with zero bytes between them (which SQLite's text functions stop at, hence
  // blobs); older exports have blanks: at least four assignments with a PATH among them are no range's name.
  const std::string blob = "cast(value as blob)";
  const std::string block = "(instr(" + blob + ", x'00')>0 and instr(" + blob + ", x'3D')>0) or (instr(" + blob +
                            ", cast('PATH=' as blob))>0 and length(hex(" + blob + "))-length(replace(hex(" + blob +
                            "),'3D',''))>=8)";
  if (database.has_table("StringIds"))
    TRY(database.execute("update StringIds set value='<redacted environment>' where " + block));
  if (database.has_table("TARGET_INFO_SYSTEM_ENV"))
    TRY(database.execute("update TARGET_INFO_SYSTEM_ENV set value='<redacted>' where name='DeviceEnvironment' or " +
                         block));
  // 2023.4.4 (schema 3.7) has every variable of the launched program as a row.
  if (database.has_table("META_DATA_CAPTURE"))
    TRY(database.execute("update META_DATA_CAPTURE set value='<redacted>' where instr(name, 'ENVIRONMENT')>0 or " +
                         block));
  // nsys leaves copies in pages that it freed while it wrote; only a rewrite loses those.
  return database.execute("vacuum");
}

}  // namespace rangescope::profile
