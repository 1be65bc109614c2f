#include "inject/python/compiled.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "inject/text.hpp"

namespace rangescope::inject::python {
namespace {

constexpr std::size_t kHash = 51, kMostLine = 8192;
constexpr char kNodes[] = "Source Nodes: [";

bool is_base32(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '2' && letter <= '7');
}

}  // namespace

bool may_be_compiled_code(const char* function) {
  const char* name = after_last(function, '.');
  return std::strcmp(name, "call") == 0 || std::strncmp(name, "partition_", 10) == 0;
}

bool is_compiled(const char* file) {
  const char* name = std::strrchr(file, '/');
  if (name == nullptr || name - file < 3 || std::strlen(name) != 1 + 1 + kHash + 3)
    return false;
  if (name[1] != 'c' || std::strcmp(name + 2 + kHash, ".py") != 0)
    return false;
  for (std::size_t i = 2; i < 2 + kHash; ++i)
    if (!is_base32(name[i]))
      return false;
  return name[-3] == '/' && name[-2] == name[2] && name[-1] == name[3];
}

namespace {

/// Keeps the nodes that the last comment above a line names.
class NodesAbove {
 public:
  NodesAbove(char* out, std::size_t capacity) : out_(out), capacity_(capacity) {}

  void read_line(const char* line) {
    const char* text = line + std::strspn(line, " ");
    if (std::strncmp(text, "def ", 4) == 0)
      found_ = false;  // another function begins
    const char* nodes = *text == '#' ? std::strstr(text, kNodes) : nullptr;
    const char* last = nodes != nullptr ? std::strchr(nodes, ']') : nullptr;
    if (last == nullptr)
      return;
    const char* first = nodes + sizeof kNodes - 2;
    const auto bytes = static_cast<std::size_t>(last + 1 - first);
    found_ = bytes > 2;
    if (!found_)
      return;
    const std::size_t kept_bytes = bytes < capacity_ ? bytes : capacity_ - 1;
    std::memcpy(out_, first, kept_bytes);
    out_[kept_bytes] = '\0';
  }
  [[nodiscard]] bool found() const { return found_; }

 private:
  char* out_;
  std::size_t capacity_;
  bool found_ = false;
};

}  // namespace

bool source_nodes(const char* file, std::uint32_t line, char* into, std::size_t most) {
  const int saved_errno = errno;
  const int descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  char text[kMostLine + 1];
  std::size_t held = 0;
  NodesAbove nodes(into, most);
  for (std::uint32_t number = 1; descriptor >= 0 && number <= line;) {
    const ssize_t bytes_read = read(descriptor, text + held, kMostLine - held);
    if (bytes_read < 0 && errno == EINTR)
      continue;
    if (bytes_read > 0)
      held += static_cast<std::size_t>(bytes_read);
    text[held] = '\0';
    char* begin = text;
    for (char* end; number <= line && (end = std::strchr(begin, '\n')) != nullptr; ++number) {
      *end = '\0';
      nodes.read_line(begin);
      begin = end + 1;
    }
    held = static_cast<std::size_t>(text + held - begin);
    if (bytes_read <= 0)
      break;
    if (held == kMostLine)
      held = 0;  // part of a longer line: comments of nodes are shorter
    std::memmove(text, begin, held);
  }
  if (descriptor >= 0)
    ::close(descriptor);
  errno = saved_errno;
  return nodes.found();
}

}  // namespace rangescope::inject::python
