#include "inject/python/interpreter.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>

namespace rangescope::inject::python {
namespace {

// Offsets in a type, after its header. They are the same in 3.9 to 3.15.
constexpr std::uint32_t kTypeName = 8;
constexpr std::uint32_t kTypeSize = 16;
constexpr std::uint32_t kTypeFlags = 152;
constexpr std::uint32_t kTypeDictionary = 272;
// Flags of a type.
constexpr std::uint64_t kInlineValues = 1 << 2;
constexpr std::uint64_t kManagedDictionary = 1 << 4;
constexpr std::uint64_t kNumber = 1 << 24;
constexpr std::uint64_t kIsDictionary = 1 << 29;
// Offset of a type's cached keys in 3.11 to 3.15.
constexpr std::uint32_t kCachedKeys[] = {872 - 16, 880 - 16, 880 - 16, 880 - 16, 888 - 16};

}  // namespace

void* library_of_python() {
  if (dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState") != nullptr)
    return RTLD_DEFAULT;
  static char path[4096];
  const auto set_path = [](dl_phdr_info* info, std::size_t, void*) {
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "/libpython3") == nullptr)
      return 0;
    std::strncpy(path, info->dlpi_name, sizeof path - 1);
    return 1;
  };
  if (dl_iterate_phdr(set_path, nullptr) == 0)
    return nullptr;
  return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

bool Interpreter::find(const OwnMemory& memory, const char*& why) {
  namespace known = wire::cpython;
  void* library = library_of_python();
  const auto address = [&](const char* name) {
    return reinterpret_cast<std::uint64_t>(dlsym(library, name));
  };
  const auto version = reinterpret_cast<const char* (*)()>(address("Py_GetVersion"));
  const std::uint64_t runtime = address("_PyRuntime");
  this_thread = reinterpret_cast<void* (*)()>(address("PyGILState_GetThisThreadState"));
  finalizing = reinterpret_cast<int (*)()>(address("Py_IsFinalizing"));  // since 3.13
  if (finalizing == nullptr)
    finalizing = reinterpret_cast<int (*)()>(address("_Py_IsFinalizing"));
  code_type = address("PyCode_Type");
  cell_type = address("PyCell_Type");
  text_type = address("PyUnicode_Type");
  why = "there is no Python";
  const bool has_functions = version != nullptr && this_thread != nullptr && finalizing != nullptr;
  const bool has_objects = runtime != 0 && code_type != 0 && cell_type != 0;
  if (!has_functions || !has_objects)
    return false;
  const char* text = version();
  why = "this Python is not known";
  if (std::strncmp(text, "3.", 2) != 0)
    return false;
  minor = std::atoi(text + 2);
  if (minor < known::kFirst || minor > known::kLast)
    return false;
  why = "memory cannot be read (process_vm_readv)";
  char offsets[known::kDebugOffsets];
  if (!memory.copy(runtime, offsets, sizeof offsets))
    return false;
  if (minor < known::kFirstThatPublishes) {
    fields = known::kFields[minor - known::kFirst];
    return true;
  }
  why = "this Python does not publish its structures";
  if (std::memcmp(offsets, "xdebugpy", 8) != 0)
    return false;
  fields = known::published(offsets, minor);
  return true;
}

bool Interpreter::text(const OwnMemory& memory,
                       std::uint64_t object,
                       char* into,
                       std::size_t most) const {
  char head[64];
  const std::size_t bytes = fields.ascii;
  if (bytes > sizeof head || bytes < fields.state + 4 || !memory.copy(object, head, bytes))
    return false;
  std::uint64_t length = 0, type = 0;
  std::uint32_t state = 0;
  std::memcpy(&type, head + fields.type, sizeof type);
  std::memcpy(&length, head + fields.length, sizeof length);
  std::memcpy(&state, head + fields.state, sizeof state);
  constexpr std::uint32_t kCompactAscii = 1 | 1 << 3 | 1 << 4;  // a byte for each character
  const bool is_ascii = (state >> fields.kind & 0x1f) == kCompactAscii;
  if (type != text_type || !is_ascii || length >= most)
    return false;
  into[length] = '\0';
  return length == 0 || memory.copy(object + fields.ascii, into, length);
}

bool Interpreter::type_name(const OwnMemory& memory,
                            std::uint64_t type,
                            char* into,
                            std::size_t most) const {
  std::uint64_t name = 0;
  if (!memory.copy(type + header() + kTypeName, &name, sizeof name) ||
      !memory.text(name, into, most))
    return false;
  if (const char* dot = std::strrchr(into, '.'); dot != nullptr)
    std::memmove(into, dot + 1, std::strlen(dot));
  return into[0] != '\0';
}

bool Interpreter::flags_of(const OwnMemory& memory,
                           std::uint64_t object,
                           std::uint64_t& type,
                           std::uint64_t& flags) const {
  return memory.copy(object + fields.type, &type, sizeof type) &&
         memory.copy(type + header() + kTypeFlags, &flags, sizeof flags);
}

std::uint64_t Interpreter::dictionary_place(const OwnMemory& memory, std::uint64_t object) const {
  std::uint64_t type = 0, flags = 0;
  if (!flags_of(memory, object, type, flags))
    return 0;
  if (minor >= 11 && (flags & kManagedDictionary) != 0) {
    const bool is_free_threaded = header() > 16;
    return object - (is_free_threaded ? 8 : 24);
  }
  std::int64_t offset = 0;
  if (!memory.copy(type + header() + kTypeDictionary, &offset, sizeof offset) || offset <= 0)
    return 0;
  return object + static_cast<std::uint64_t>(offset);
}

std::uint64_t Interpreter::attributes(const OwnMemory& memory, std::uint64_t object) const {
  std::uint64_t dictionary = 0;
  const std::uint64_t place = dictionary_place(memory, object);
  if (place == 0 || !memory.copy(place, &dictionary, sizeof dictionary))
    return 0;
  const bool is_tagged = (dictionary & 7) != 0;  // 3.12, if there is no dictionary yet
  if (is_tagged)
    return 0;
  return dictionary;
}

bool Interpreter::inline_attributes(const OwnMemory& memory,
                                    std::uint64_t object,
                                    std::uint64_t& keys,
                                    std::uint64_t& values) const {
  std::uint64_t type = 0, flags = 0, size = 0;
  if (minor < 11 || !flags_of(memory, object, type, flags) || (flags & kManagedDictionary) == 0)
    return false;
  if (!memory.copy(type + header() + kCachedKeys[minor - 11], &keys, sizeof keys) || keys == 0)
    return false;
  if (minor >= 13) {  // the values are after the instance
    std::uint8_t valid = 0;
    if ((flags & kInlineValues) == 0)
      return false;
    if (!memory.copy(type + header() + kTypeSize, &size, sizeof size))
      return false;
    values = object + (size & 0xffffffff);
    return memory.copy(values + 3, &valid, sizeof valid) && valid == 1;
  }
  const std::uint64_t pointer = object - (minor == 11 ? 32 : 24);
  if (!memory.copy(pointer, &values, sizeof values) || values == 0)
    return false;
  values += values & 1;  // 3.12 tags the pointer
  return true;
}

bool Interpreter::number(const OwnMemory& memory,
                         std::uint64_t object,
                         std::uint32_t& value) const {
  std::uint64_t type = 0, flags = 0, size = 0;
  if (!flags_of(memory, object, type, flags) || (flags & kNumber) == 0)
    return false;
  if (!memory.copy(object + header(), &size, sizeof size))
    return false;
  std::uint64_t digits = size;
  std::uint64_t sign = 0;
  if (minor >= 12) {
    digits = size >> 3;
    sign = size & 3;
  }
  value = 0;
  if (digits == 0)
    return true;
  if (digits != 1 || sign != 0)
    return false;
  return memory.copy(object + header() + 8, &value, sizeof value);
}

bool Interpreter::is_dictionary(const OwnMemory& memory, std::uint64_t object) const {
  std::uint64_t type = 0, flags = 0;
  return flags_of(memory, object, type, flags) && (flags & kIsDictionary) != 0;
}

Items::~Items() {
  std::free(words_);
}

bool Items::read(std::uint64_t dictionary) {
  count_ = 0;
  struct {
    std::uint64_t keys;
    std::uint64_t values;
  } tables;
  if (!memory_.copy(dictionary + python_.header() + 16, &tables, sizeof tables))
    return false;
  return read(tables.keys, tables.values);
}

bool Items::read_attributes(std::uint64_t object) {
  count_ = 0;
  std::uint64_t keys = 0, values = 0;
  if (const std::uint64_t dictionary = python_.attributes(memory_, object); dictionary != 0)
    return read(dictionary);
  return python_.inline_attributes(memory_, object, keys, values) && read(keys, values);
}

namespace {

/// Bytes of an index into that many slots, before 3.11.
std::uint64_t index_bytes(std::uint64_t slots) {
  if (slots <= 0xff)
    return 1;
  if (slots <= 0xffff)
    return 2;
  return 4;
}

}  // namespace

bool Items::read(std::uint64_t keys, std::uint64_t values) {
  struct {
    std::uint64_t references, sizes, lookup_or_usable, count_or_usable, count;
  } head;
  if (!memory_.copy(keys, &head, sizeof head))
    return false;
  std::uint64_t indices = 0, begin = 0;
  if (python_.minor >= 11) {
    const auto log2_bytes = static_cast<unsigned>(head.sizes >> 8 & 0xff);
    if (log2_bytes > 24)
      return false;
    indices = std::uint64_t{1} << log2_bytes;
    count_ = head.count_or_usable;
    stride_ = (head.sizes >> 16 & 0xff) == 0 ? 3 : 2;
    begin = keys + 32;
  } else {
    if (head.sizes > 1 << 20)
      return false;
    indices = head.sizes * index_bytes(head.sizes);
    count_ = head.count;
    stride_ = 3;
    begin = keys + 40;
  }
  const std::size_t count = count_;
  count_ = 0;
  if (count > kMost)
    return false;
  split_ = values != 0;
  entries_ = begin + indices;
  if (!reserve(count * (stride_ + 1)))
    return false;
  if (count == 0)
    return true;
  values_ = words_ + count * stride_;
  if (!memory_.copy(entries_, words_, count * stride_ * sizeof(std::uint64_t)))
    return false;
  values_at_ = values + (python_.minor >= 13 ? 8 : 0);
  if (split_ && !memory_.copy(values_at_, values_, count * sizeof(std::uint64_t)))
    return false;
  count_ = count;
  return true;
}

bool Items::reserve(std::size_t words) {
  if (words <= room_)
    return true;
  std::free(words_);
  words_ = static_cast<std::uint64_t*>(std::malloc(words * sizeof(std::uint64_t)));
  room_ = words_ != nullptr ? words : 0;
  return words_ != nullptr;
}

bool Items::item(std::size_t number, Item& into) const {
  if (number >= count_)
    return false;
  const std::size_t key_index = number * stride_ + (stride_ - 2);
  const std::uint64_t* entry = words_ + key_index;
  const std::uint64_t place = entries_ + key_index * sizeof(std::uint64_t);
  if (split_)
    into = {entry[0], values_[number], 0, values_at_ + number * sizeof(std::uint64_t)};
  else
    into = {entry[0], entry[1], place, place + 8};
  return true;
}

}  // namespace rangescope::inject::python
