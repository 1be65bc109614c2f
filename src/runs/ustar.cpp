#include "runs/ustar.hpp"

#include <algorithm>
#include <cstring>

namespace rangescope::runs::ustar {
namespace {

void octal(char* field, std::size_t size, std::uint64_t value) {
  for (std::size_t i = size - 1; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

std::uint64_t checksum(const Header& header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return sum;
}

std::string field(const Header& header, std::size_t at, std::size_t size) {
  const char* begin = &header[at];
  return {begin, static_cast<std::size_t>(std::find(begin, begin + size, '\0') - begin)};
}

std::optional<std::uint64_t> number(const Header& header, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  bool any = false;
  for (std::size_t i = at; i < at + size; ++i) {
    const char c = header[i];
    if (c >= '0' && c <= '7')
      value = value * 8 + static_cast<std::uint64_t>(c - '0'), any = true;
    else if (c == ' ' || c == '\0') {
      if (any) break;
    } else
      return std::nullopt;
  }
  return value;
}

}  // namespace

base::Result<Header> write(const Member& member) {
  Header header{};
  std::string prefix, name = member.name;
  if (name.size() > 100) {  // the prefix takes whole folders
    const auto slash = name.rfind('/', 155);
    if (slash == std::string::npos || name.size() - slash - 1 > 100)
      return base::fail(base::Code::kIo, "the path is too long for a tar file", name,
                        "Pack a run whose paths have at most 255 bytes.");
    prefix = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  std::memcpy(header.data(), name.data(), name.size());
  octal(&header[100], 8, member.type == '5' ? 0700 : 0600);
  octal(&header[108], 8, 0);
  octal(&header[116], 8, 0);
  octal(&header[124], 12, member.size);
  octal(&header[136], 12, 0);
  header[156] = member.type;
  std::memcpy(&header[257], "ustar\00000", 8);
  std::memcpy(&header[345], prefix.data(), prefix.size());
  octal(&header[148], 7, checksum(header));
  header[155] = ' ';
  return header;
}

std::optional<Member> read(const Header& header) {
  const auto sum = number(header, 148, 8), size = number(header, 124, 12);
  if (field(header, 257, 5) != "ustar" || !sum || *sum != checksum(header) || !size) return std::nullopt;
  const std::string prefix = field(header, 345, 155), name = field(header, 0, 100);
  return Member{prefix.empty() ? name : prefix + "/" + name, *size, header[156]};
}

}  // namespace rangescope::runs::ustar
