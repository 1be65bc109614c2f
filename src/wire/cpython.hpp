// Offsets of the fields of CPython 3.9 to 3.15 that a walk over frames reads. Shared by the
// sampler, which reads another process, and by the injected library, which reads its own threads.
//
// 3.13 and later publish the offsets (_Py_DebugOffsets, at the start of _PyRuntime). For older ones
// there is a table by minor version; they do not change within one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

namespace rangescope::wire::cpython {

struct Fields {
  std::uint32_t heads, next_interpreter, threads, next_thread, interpreter, thread_id, native_id;
  std::uint32_t frame;   ///< of the thread: pointer to the frame, or to a struct with that pointer
  std::int32_t through;  ///< 3.11, 3.12: offset of the frame's pointer in that struct; -1: directly
  std::uint32_t previous, code, owner, entry;  ///< of the frame; 0: there is none
  std::uint32_t file, name, line;              ///< of code
  std::uint32_t type;  ///< of any object; its own fields begin 8 bytes after it
  /// Of a text; `ascii`: its characters, if all are ASCII.
  std::uint32_t length, state, ascii;
  /// `instruction`: of the frame. `lines`, `bytes`: of code, the table of lines and the
  /// instructions.
  std::uint32_t instruction, lines, bytes;
  std::uint32_t kind;       ///< the first bit in `state` of width, compact and ascii
  std::uint32_t compact;    ///< of a text: its characters, if not all are ASCII
  std::uint32_t generator;  ///< of the frame: its owner, before 3.11; 0: see `owner`
  std::uint32_t locals;     ///< of the frame: the first local variable
};

constexpr int kFirst = 9, kFirstThatPublishes = 13;

// For 3.9.18, 3.10.13, 3.11.7 and 3.12.1, by offsetof() with their headers.
constexpr Fields kFields[] = {
    {32,  0,  8, 8,  16, 176, 0, 24, -1, 24, 32, 0,  0,  104,
     112, 40, 8, 16, 32, 48,  0, 0,  0,  2,  72, 96, 360},
    {32,  0,  8, 8,  16, 176, 0, 24, -1, 24, 32, 0,  0,  104,
     112, 40, 8, 16, 32, 48,  0, 0,  0,  2,  72, 88, 352},
    {40,  0,  16, 8,  16, 152, 160, 56,  8,   48, 32, 69, 68, 112,
     128, 72, 8,  16, 32, 48,  56,  136, 184, 2,  72, 0,  72},
    {40,  0,  72, 8,  16, 136, 144, 56,  0,   8, 0,  70, 0, 112,
     128, 68, 8,  16, 32, 40,  56,  136, 192, 2, 56, 0,  72},
};
// Offsets of the same numbers, from heads to bytes, in _Py_DebugOffsets of 3.13, 3.14 and 3.15, by
// offsetof() with their headers; 0: missing. The number of the first local follows that of the
// instruction.
constexpr std::size_t kNumbers = 23;
constexpr std::uint16_t kPublished[][kNumbers] = {
    {40, 64,  72,  168, 176, 192, 200, 184, 0,   232, 240, 264,
     0,  280, 296, 312, 360, 552, 544, 560, 248, 304, 344},
    {40, 64,  72,  192, 200, 216, 224, 208, 0,   256, 264, 288,
     0,  320, 336, 352, 408, 632, 624, 640, 272, 344, 384},
    {40, 64,  72,  192, 200, 240, 248, 208, 0,   320, 328, 352,
     0,  384, 400, 416, 472, 728, 720, 736, 336, 408, 448},
};
constexpr int kLast = kFirstThatPublishes + static_cast<int>(std::size(kPublished)) - 1;
constexpr std::size_t kDebugOffsets = 760, kFreeThreaded = 16;

/// `bytes`: the first kDebugOffsets bytes of _PyRuntime.
inline Fields published(const char* bytes, int minor) {
  const auto& places = kPublished[minor - kFirstThatPublishes];
  const auto number = [&](std::size_t offset) {
    std::uint64_t value = 0;
    if (offset != 0)
      std::memcpy(&value, bytes + offset, sizeof value);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 1u << 20));
  };
  std::uint32_t numbers[kNumbers];
  std::transform(std::begin(places), std::end(places), numbers, number);
  Fields fields;
  static_assert(offsetof(Fields, kind) == sizeof numbers);
  std::memcpy(&fields, numbers, sizeof numbers);
  fields.through = -1;
  fields.generator = 0;
  // In free-threaded builds `interned` is a separate byte since 3.14.
  fields.kind = minor >= 14 && number(kFreeThreaded) != 0 ? 8 : 2;
  fields.compact = fields.ascii + 16;
  fields.locals = number(places[20] + 8u);
  return fields;
}

/// The line of the instruction `offset` bytes after the first; 0: unknown. Each entry of the table
/// (3.11 and later; PEP 626, Objects/locations.md) has a number of instructions, and the difference
/// of their line to that of the previous entry, at first to `first`.
inline std::uint32_t line_at(std::string_view table, std::uint32_t first, std::uint64_t offset) {
  std::int64_t line = first;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < table.size();) {
    const auto next = [&] {
      return i < table.size() ? static_cast<std::uint8_t>(table[i++]) : std::uint8_t{0};
    };
    const std::uint8_t head = next();
    const unsigned form = head >> 3 & 15;
    if (form == 13 || form == 14) {
      std::uint64_t value = 0;
      for (unsigned shift = 0; shift < 60; shift += 6) {
        const std::uint8_t part = next();
        value |= std::uint64_t{part & 63u} << shift;
        if ((part & 64) == 0)
          break;
      }
      const auto difference = static_cast<std::int64_t>(value >> 1);
      line += (value & 1) != 0 ? -difference : difference;
    } else if (form >= 10 && form <= 12) {
      line += form - 10;
    }
    end += 2 * ((head & 7u) + 1);
    if (offset < end)
      return form == 15 || line <= 0 ? 0 : static_cast<std::uint32_t>(line);
    const auto is_column = [&] { return (static_cast<std::uint8_t>(table[i]) & 0x80) == 0; };
    while (i < table.size() && is_column())
      ++i;
  }
  return 0;
}

}  // namespace rangescope::wire::cpython
