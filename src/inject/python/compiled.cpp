#include "inject/python/compiled.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rangescope::inject::python {
namespace {

constexpr std::size_t kHash = 51, kMostLine = 8192;
constexpr char kNodes[] = "Source Nodes: [";

bool is_base32(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '2' && letter <= '7');
}

}  // namespace

bool is_compiled(const char* file) {
  const char* name = std::strrchr(file, '/');
  if (name == nullptr || name - file < 3 || std::strlen(name) != 1 + 1 + kHash + 3) return false;
  if (name[1] != 'c' || std::strcmp(name + 2 + kHash, ".py") != 0) return false;
  for (std::size_t i = 2; i < 2 + kHash; ++i)
    if (!is_base32(name[i])) return false;
  return name[-3] == '/' && name[-2] == name[2] && name[-1] == name[3];
}

bool source_nodes(const char* file, std::uint32_t line, char* into, std::size_t most) {
  const int saved = errno;
  const int descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  char text[kMostLine + 1];
  std::size_t held = 0;
  bool found = false;
  for (std::uint32_t at = 1; descriptor >= 0 && at <= line;) {
    const ssize_t got = read(descriptor, text + held, kMostLine - held);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) held += static_cast<std::size_t>(got);
    text[held] = '\0';
    char* begin = text;
    for (char* end; at <= line && (end = std::strchr(begin, '\n')) != nullptr;
         begin = end + 1, ++at) {
      *end = '\0';
      const char* first = begin + std::strspn(begin, " ");
      if (std::strncmp(first, "def ", 4) == 0)
        found = false;  // what is above belongs to another function
      const char* nodes = *first == '#' ? std::strstr(first, kNodes) : nullptr;
      const char* last = nodes != nullptr ? std::strchr(nodes, ']') : nullptr;
      if (last == nullptr) continue;
      const char* begins = nodes + sizeof kNodes - 2;
      const auto bytes = static_cast<std::size_t>(last + 1 - begins);
      found = bytes > 2;
      if (!found) continue;
      std::memcpy(into, begins, bytes < most ? bytes : most - 1);
      into[bytes < most ? bytes : most - 1] = '\0';
    }
    held = static_cast<std::size_t>(text + held - begin);
    if (got <= 0) break;
    if (held == kMostLine) held = 0;  // of a longer line: those of nodes are shorter
    std::memmove(text, begin, held);
  }
  if (descriptor >= 0) ::close(descriptor);
  errno = saved;
  return found;
}

}  // namespace rangescope::inject::python
