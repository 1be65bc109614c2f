// What the user of another process may do: asked before root lets that process write for it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace rangescope::profile {

/// access(2) of `path` by the user and groups of the process, in a child of ours that becomes them.
/// `how`: R_OK, W_OK, X_OK, or several. False where this user cannot become another one.
[[nodiscard]] bool its_user_can(std::uint32_t pid, const std::filesystem::path& path, int how);

}  // namespace rangescope::profile
