#include "profile/other_user.hpp"

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::profile {
namespace {

struct User {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> further_groups;
};

std::optional<User> user_of(std::uint32_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  struct stat owner {};
  const auto status = base::read_file(folder + "/status");
  if (!status || ::stat(folder.c_str(), &owner) != 0)
    return std::nullopt;
  User user{.user = owner.st_uid, .group = owner.st_gid, .further_groups = {}};
  constexpr std::string_view kGroups = "Groups:\t";
  for (const std::string_view line : base::split(*status, '\n')) {
    if (!line.starts_with(kGroups))
      continue;
    for (const std::string_view word : base::split(line.substr(kGroups.size()), ' '))
      if (const auto group = base::to_uint(word))
        user.further_groups.push_back(static_cast<gid_t>(*group));
  }
  return user;
}

/// Only calls that a child of a program with several threads may make.
bool become(const User& user) {
  return ::setgroups(user.further_groups.size(), user.further_groups.data()) == 0 &&
         ::setresgid(user.group, user.group, user.group) == 0 &&
         ::setresuid(user.user, user.user, user.user) == 0;
}

}  // namespace

bool its_user_can(std::uint32_t pid, const std::filesystem::path& path, int how) {
  const std::optional<User> user = user_of(pid);
  if (!user)
    return false;
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(become(*user) && ::access(path.c_str(), how) == 0 ? 0 : 1);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return false;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace rangescope::profile
