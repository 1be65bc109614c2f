#include "config/trust.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "config/schema.hpp"

namespace rangescope::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

fs::path list_of_trusted() {
  const fs::path folder = base::state_folder();
  if (folder.empty())
    return {};
  return folder / "trusted";
}

std::string line_of(const fs::path& file, std::string_view bytes) {
  std::error_code ignored;
  return base::sha256(bytes) + "  " + base::printable(fs::weakly_canonical(file, ignored).string());
}

bool ours(uid_t owner) {
  if (owner == 0 || owner == ::geteuid())
    return true;
  const char* caller = std::getenv("SUDO_UID");
  if (caller == nullptr || ::geteuid() != 0)
    return false;
  const auto caller_id = base::to_uint(caller);
  return caller_id && *caller_id == owner;
}

std::string how_to_trust(const fs::path& file) {
  return "Read it; then trust it with `rangescope config trust " +
         base::shell_quote(file.string()) + "`, or leave it out with --no-project.";
}

// What a file of a stranger may say (`free` in keys.tsv): what is measured, and how it is shown.
// Every other key is asked about: what is run, how often, where, for how long and when it ends,
// what is written where and for whom to read, what is deleted. Of report.*, that is what is more
// than its looks: a file, a guard against spreadsheets, load.
bool needs_trust(std::string_view path) {
  if (const Key* key = find_key(path))
    return !key->free;
  return is_section(path);  // what is neither, the schema refuses, with the nearest name
}

base::Result<void> walk(const Value& value, const std::string& path, const fs::path& file) {
  std::string prefix;
  if (!path.empty())
    prefix = path + ".";
  for (const Entry& entry : value.entries)
    TRY(walk(entry.value, prefix + entry.key, file));
  // An interpolation may take the place of a map.
  const bool nothing = value.is_null() || (!value.is_scalar() && value.items.empty());
  if (nothing || !needs_trust(path))
    return {};
  return base::fail(base::Code::kPermission,
                    "sets " + base::printable(path) + ", and you did not trust this file",
                    to_string(value.origin),
                    how_to_trust(file));
}

}  // namespace

bool is_trusted(const fs::path& file) {
  const fs::path list = list_of_trusted();
  if (list.empty())
    return false;
  const auto bytes = base::read_regular(file, kMostBytes);
  const auto trusted = base::read_regular(list, kMostBytes);
  if (!bytes || !trusted)
    return false;
  const auto lines = base::split(*trusted, '\n');
  return std::ranges::find(lines, line_of(file, *bytes)) != lines.end();
}

base::Result<void> trust(const fs::path& file) {
  const auto bytes = base::read_regular(file, kMostBytes);
  if (!bytes)
    return base::fail(base::Result<std::string>(bytes));
  const fs::path list = list_of_trusted();
  if (list.empty())
    return base::fail(
        base::Code::kIo, "there is no place to remember it", {}, "Set HOME or XDG_STATE_HOME.");
  std::error_code error;
  fs::create_directories(list.parent_path(), error);
  std::string text;
  if (auto before = base::read_regular(list, kMostBytes))
    text = std::move(*before);
  return base::write_file(list, text + line_of(file, *bytes) + "\n");
}

base::Result<void> check_owner(const fs::path& file) {
  struct stat it {
  }, folder{};
  std::error_code ignored;
  if (::stat(file.c_str(), &it) != 0 || ::stat(file.parent_path().c_str(), &folder) != 0)
    return {};  // reading reports it
  if (!S_ISREG(it.st_mode) || static_cast<std::size_t>(it.st_size) > kMostBytes)
    return base::fail(base::Code::kNoInput,
                      "is not a regular file of at most 16 MiB",
                      file.string(),
                      "Remove it, or leave it out with --no-project.");
  // In a folder like /tmp (sticky) a user cannot replace another user's file.
  const bool open_folder = (folder.st_mode & S_IWOTH) != 0 && (folder.st_mode & S_ISVTX) == 0;
  const bool foreign = !ours(it.st_uid) || !ours(folder.st_uid);
  if (!foreign && !open_folder && (it.st_mode & S_IWOTH) == 0)
    return {};
  std::string problem = "everybody can write this configuration, so it is not read";
  if (foreign)
    problem = "this configuration, or its folder, belongs to another user and is not read";
  return base::fail(base::Code::kPermission, std::move(problem), file.string(), how_to_trust(file));
}

base::Result<void> check_untrusted(const Value& root, const fs::path& file) {
  return walk(root, "", file);
}

}  // namespace rangescope::config
