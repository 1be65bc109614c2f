#include "inject/python/modules.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "inject/hash.hpp"
#include "inject/python/compiled.hpp"

namespace rangescope::inject::python {

/// A call of a module or of a chosen function that the thread is in.
struct Level {
  std::uint64_t self = 0;       ///< the module; of a function, its code
  std::uint64_t type = 0;       ///< of a function, its number; of compiled code, the instruction
  std::uint64_t arguments = 0;  ///< of a function, the argument that distinguishes its calls
  bool function = false;
  bool compiled = false;    ///< a function of Inductor's
  std::uint64_t place = 0;  ///< hash of the instructions in its call, down to the next level's
};

namespace {

constexpr std::int64_t kTrust_ns = 1'000'000'000;  // then pages, code and names are checked again
constexpr std::size_t kCodes = 1024;
constexpr std::size_t kFirstModules = 256;
constexpr std::size_t kMostModules = 1 << 15;
// Bounds of the search for a name.
constexpr std::size_t kMostSearched = 4096;
constexpr std::size_t kDeepest = 12;
constexpr std::size_t kMostReads = 20'000;
constexpr std::uint64_t kTags = 7;  // bits of a pointer that some releases use

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xa0761d6478bd642full);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// A module of a chain, identified by the chain around it and the object.
struct ChainEntry {
  std::uint64_t self = 0, type = 0;
  std::uint32_t around = 0;
  std::uint32_t number = 0;  ///< 0: the slot is free
  std::int64_t checked_ns = 0;
  std::uint64_t key = 0;     ///< its name, a text of Python; 0: unnamed
  std::uint64_t place = 0;   ///< address of name and object in a `_modules`
  std::uint64_t holder = 0;  ///< the module that has this `_modules`
  std::uint64_t kind = 0;    ///< hash of the type's or function's name
};

/// A level's call at the last launch.
struct Call {
  std::uint32_t number = 0;
  bool moved = false;  ///< it has launched at another place than `first`
  std::uint64_t arguments = 0;
  std::uint64_t first = 0;  ///< place of its first launch
};

/// The number read from an argument, and the words that were read for it. Each word is in memory
/// that the previous ones keep alive: as long as all are unchanged, the number is. From
/// CPython 3.13 on, a dictionary has no version number. Then the values of its first items are
/// compared: reading hundreds at each launch would slow the program.
struct ArgumentCache {
  struct Link {
    std::uint64_t address = 0;
    std::uint64_t word = 0;
  };
  static constexpr std::size_t kMost = 24;
  std::uint64_t object = 0;
  std::uint64_t number = 0;
  std::size_t count = 0;
  Link links[kMost];
};

bool ends_with(const char* text, const char* suffix) {
  const std::size_t text_bytes = std::strlen(text);
  const std::size_t suffix_bytes = std::strlen(suffix);
  return text_bytes >= suffix_bytes && std::strcmp(text + text_bytes - suffix_bytes, suffix) == 0;
}

bool is_module_call(const char* name) {
  const bool is_qualified = std::strncmp(name, "Module.", 7) == 0;  // since 3.11
  const char* function = name;
  if (is_qualified)
    function += 7;
  return std::strcmp(function, "_call_impl") == 0 ||
         std::strcmp(function, "_wrapped_call_impl") == 0;
}

}  // namespace

struct Modules::Thread {
  explicit Thread(pid_t pid) : memory(pid) {}
  Thread& operator=(Thread&&) = delete;
  ~Thread() { std::free(entries); }

  static constexpr std::uint64_t kOther = 0, kModule = 1, kCompiled = 2, kFirstFunction = 3;
  struct Code {
    std::uint64_t address = 0, kind = kOther;
  };

  /// The frame of a walk, and what was read of it.
  struct Frame {
    std::uint64_t address, code, instruction;
  };

  bool read_frames(const Interpreter& python,
                   const wire::Functions& functions,
                   std::uint64_t state);
  bool add_function(const wire::Functions& functions,
                    const Interpreter& python,
                    const Frame& frame,
                    std::uint64_t kind);
  bool add_compiled(const Frame& frame);
  bool add_module(const Interpreter& python,
                  const Frame& frame,
                  std::uint64_t place,
                  bool& has_module);
  std::uint64_t kind_of(const Interpreter& python,
                        const wire::Functions& functions,
                        std::uint64_t code);
  std::uint64_t read_kind(const Interpreter& python,
                          const wire::Functions& functions,
                          std::uint64_t code) const;
  bool name_of(const Interpreter& python,
               std::uint64_t code,
               char* function,
               std::size_t most) const;
  bool file_of(const Interpreter& python, std::uint64_t code, char* file, std::size_t most) const;
  std::uint32_t line_of(const Interpreter& python,
                        std::uint64_t code,
                        std::uint64_t instruction) const;
  ChainEntry* slot_of(std::uint32_t around, std::uint64_t self, std::uint64_t type);
  bool grow();
  void forget_numbers() {
    if (entries != nullptr)
      std::memset(static_cast<void*>(entries), 0, room * sizeof(ChainEntry));
    used = open = 0;
  }
  bool children(const Interpreter& python, std::uint64_t object, Items& items, std::size_t& reads);
  bool is_still_held(const Interpreter& python, const ChainEntry& entry, std::uint64_t around);
  std::uint64_t argument_number(const Interpreter& python,
                                std::uint64_t object,
                                const char* attribute);
  std::uint64_t read_argument(const Interpreter& python,
                              std::uint64_t object,
                              const char* attribute);
  void remember_word(std::uint64_t address);
  std::uint64_t name_below(const Interpreter& python,
                           std::uint64_t around,
                           std::uint64_t self,
                           char* name,
                           std::size_t most,
                           ChainEntry& entry);

  /// Forgets which memory is readable and what code is; `now_ns` is the time of the next check.
  void distrust(std::int64_t now_ns) {
    memory.forget();
    std::memset(static_cast<void*>(codes), 0, sizeof codes);
    trusted_until_ns = now_ns + kTrust_ns;
  }

  OwnMemory memory;
  std::int64_t trusted_until_ns = 0;
  std::int64_t names_since_ns = 0;  ///< names that were checked earlier are checked again
  /// It launched without a thread state: Python may have ended, and started again.
  bool without_python = false;
  std::uint32_t starts = 0;  ///< Modules::starts_ when its numbers were defined
  Code codes[kCodes] = {};
  Level levels[kMostLevels];  ///< of the walk, the innermost first
  std::size_t depth = 0;
  Call calls[kMostLevels];  ///< of the last launch, the outermost first
  std::size_t open = 0;
  ArgumentCache argument_cache;
  std::uint64_t modules_key = 0;  ///< the text "_modules" that was found last
  ChainEntry* entries = nullptr;
  std::size_t room = 0, used = 0;
};

bool Modules::Thread::name_of(const Interpreter& python,
                              std::uint64_t code,
                              char* function,
                              std::size_t most) const {
  std::uint64_t type = 0;
  std::uint64_t text = 0;
  if (!memory.copy(code + python.fields.type, &type, sizeof type))
    return false;
  if (type != python.code_type)
    return false;
  if (!memory.copy(code + python.fields.name, &text, sizeof text))
    return false;
  return python.text(memory, text, function, most);
}

bool Modules::Thread::file_of(const Interpreter& python,
                              std::uint64_t code,
                              char* file,
                              std::size_t most) const {
  std::uint64_t text = 0;
  return memory.copy(code + python.fields.file, &text, sizeof text) &&
         python.text(memory, text, file, most);
}

/// 0: unknown.
std::uint32_t Modules::Thread::line_of(const Interpreter& python,
                                       std::uint64_t code,
                                       std::uint64_t instruction) const {
  constexpr std::uint64_t kMostBytes = 1 << 22;
  const wire::cpython::Fields& fields = python.fields;
  std::uint32_t first_line = 0;
  std::uint64_t table = 0;
  std::uint64_t size = 0;
  if (fields.lines == 0 || instruction <= code + fields.bytes)
    return 0;
  const bool has_table = memory.copy(code + fields.line, &first_line, sizeof first_line) &&
                         memory.copy(code + fields.lines, &table, sizeof table) &&
                         memory.copy(table + python.header(), &size, sizeof size);
  if (!has_table || size > kMostBytes)
    return 0;
  auto* bytes = static_cast<char*>(std::malloc(size));
  const bool is_read = bytes != nullptr && memory.copy(table + python.header() + 16, bytes, size);
  std::uint32_t line = 0;
  if (is_read)
    line = wire::cpython::line_at({bytes, size}, first_line, instruction - code - fields.bytes);
  std::free(bytes);
  return line;
}

std::uint64_t Modules::Thread::kind_of(const Interpreter& python,
                                       const wire::Functions& functions,
                                       std::uint64_t code) {
  // Sets of four entries, so that frames of one walk do not evict each other.
  Code* set = codes + (code * 0x9e3779b97f4a7c15ull >> 54 & (kCodes - 4));
  for (std::size_t i = 0; i < 4; ++i)
    if (set[i].address == code)
      return set[i].kind;
  const std::uint64_t kind = read_kind(python, functions, code);
  std::memmove(set + 1, set, 3 * sizeof *set);
  set[0] = {code, kind};
  return kind;
}

std::uint64_t Modules::Thread::read_kind(const Interpreter& python,
                                         const wire::Functions& functions,
                                         std::uint64_t code) const {
  char name[256], file[4096];
  if (!name_of(python, code, name, sizeof name))
    return kOther;
  const bool may_be_module = is_module_call(name);
  const bool may_be_compiled = may_be_compiled_code(name);
  if (!may_be_module && !may_be_compiled && !functions.any())
    return kOther;
  if (!file_of(python, code, file, sizeof file))
    return kOther;
  if (may_be_module && ends_with(file, "torch/nn/modules/module.py"))
    return kModule;
  if (may_be_compiled && is_compiled(file))
    return kCompiled;
  const std::size_t number = functions.find(file, name);
  if (number == 0)
    return kOther;
  return kFirstFunction + number;
}

/// Sets the levels from the frames of a thread state. False if the frames are inconsistent, or
/// exceed a bound.
bool Modules::Thread::read_frames(const Interpreter& python,
                                  const wire::Functions& functions,
                                  std::uint64_t state) {
  const wire::cpython::Fields& fields = python.fields;
  depth = 0;
  std::uint64_t address = 0;
  if (!memory.word(state + fields.frame, address))
    return false;
  const bool has_indirection = fields.through >= 0 && address != 0;
  if (has_indirection &&
      !memory.word(address + static_cast<std::uint64_t>(fields.through), address))
    return false;
  const std::uint32_t position = python.position();
  const std::uint32_t bytes = fields.locals + 16;
  std::uint64_t place = 0;
  for (std::size_t left = kMostFrames; address != 0; --left) {
    if (left == 0 || !memory.holds(address, bytes))
      return false;
    Frame frame{address, load(address + fields.code) & ~kTags, load(address + position)};
    if (fields.instruction == 0)
      frame.instruction = frame.code + (frame.instruction & 0xffffffffu);
    place = (place ^ frame.instruction) * 0x9e3779b97f4a7c15ull;
    place ^= place >> 29;
    const std::uint64_t kind = frame.code != 0 ? kind_of(python, functions, frame.code) : kOther;
    const std::size_t depth_before = depth;
    if (kind >= kFirstFunction) {
      if (!add_function(functions, python, frame, kind))
        return false;
      if (depth > depth_before)
        place = 0;
    } else if (kind == kCompiled) {
      if (!add_compiled(frame))
        return false;
      if (depth > depth_before)
        place = 0;
    } else if (kind == kModule) {
      bool has_module = false;
      if (!add_module(python, frame, place, has_module))
        return false;
      if (has_module)
        place = 0;
    }
    address = load(address + fields.previous);
  }
  return true;
}

/// Adds a level for a chosen function, with its own instruction as place, because it may call
/// others in a loop. One that calls itself, or another function of the same name, is one level.
/// False without room.
bool Modules::Thread::add_function(const wire::Functions& functions,
                                   const Interpreter& python,
                                   const Frame& frame,
                                   std::uint64_t kind) {
  const std::size_t function = kind - kFirstFunction;
  if (depth > 0 && levels[depth - 1].type == kind) {
    const bool is_recursive = levels[depth - 1].self == frame.code;
    if (is_recursive || functions.name_of(function, nullptr) != nullptr)
      return true;
  }
  if (depth == kMostLevels)
    return false;
  std::uint64_t object = 0;
  std::size_t argument = 0;
  const char* attribute = nullptr;
  if (functions.by_argument(function, argument, attribute) &&
      memory.word(frame.address + python.fields.locals + 8 * argument, object))
    object &= ~kTags;
  levels[depth++] = {frame.code, kind, object, true, false, frame.instruction};
  return true;
}

/// Adds a level for compiled code, unless the function it calls is already one: `call` has parts of
/// a graph in functions of their own, partition_0, which launch. False without room.
bool Modules::Thread::add_compiled(const Frame& frame) {
  if (depth > 0 && levels[depth - 1].compiled)
    return true;
  if (depth == kMostLevels)
    return false;
  levels[depth++] = {frame.code, frame.instruction, 0, true, true, frame.instruction};
  return true;
}

/// Adds a level for a call of a module. Before 3.11 the frame of _call_impl may not contain the
/// module, as a variable that an inner function uses is elsewhere; the one of _wrapped_call_impl
/// does. False without room, or if memory is inconsistent.
bool Modules::Thread::add_module(const Interpreter& python,
                                 const Frame& frame,
                                 std::uint64_t place,
                                 bool& has_module) {
  const wire::cpython::Fields& fields = python.fields;
  Level level;
  std::uint64_t self = load(frame.address + fields.locals) & ~kTags;
  level.arguments = load(frame.address + fields.locals + 8);
  const bool is_cell =
      self != 0 && memory.word(self + fields.type, level.type) && level.type == python.cell_type;
  if (is_cell) {
    if (!memory.word(self + python.header(), self))
      return false;
    self &= ~kTags;
  }
  has_module = self != 0;
  if (!has_module)
    return true;
  if (!memory.word(self + fields.type, level.type))
    return false;
  level.type &= ~kTags;
  level.self = self;
  level.place = place;
  if (depth > 0 && levels[depth - 1].self == self) {
    levels[depth - 1].arguments = level.arguments;  // _call_impl in _wrapped_call_impl
    return true;
  }
  if (depth == kMostLevels)
    return false;
  levels[depth++] = level;
  return true;
}

ChainEntry* Modules::Thread::slot_of(std::uint32_t around, std::uint64_t self, std::uint64_t type) {
  if ((used + 1) * 4 > room * 3 && !grow())
    return nullptr;
  for (std::size_t index = mix(self ^ around, type);; ++index) {
    ChainEntry& slot = entries[index & (room - 1)];
    if (slot.number == 0 || (slot.self == self && slot.around == around && slot.type == type))
      return &slot;
  }
}

bool Modules::Thread::grow() {
  const std::size_t size = room == 0 ? kFirstModules : room * 2;
  if (size > kMostModules) {  // names will be defined again
    forget_numbers();
    return true;
  }
  auto* larger = static_cast<ChainEntry*>(std::calloc(size, sizeof(ChainEntry)));
  if (larger == nullptr)
    return room > used + 1;
  ChainEntry* smaller = std::exchange(entries, larger);
  const std::size_t old_room = std::exchange(room, size);
  for (std::size_t i = 0; i < old_room; ++i)
    if (smaller[i].number != 0)
      *slot_of(smaller[i].around, smaller[i].self, smaller[i].type) = smaller[i];
  std::free(smaller);
  return true;
}

/// Reads the items of a module's `_modules`.
bool Modules::Thread::children(const Interpreter& python,
                               std::uint64_t object,
                               Items& items,
                               std::size_t& reads) {
  reads += 8;
  const std::uint64_t attributes = python.attributes(memory, object);
  if (attributes == 0 || !items.read(attributes))
    return false;
  char text[16];
  const auto is_modules = [&](std::uint64_t key) {
    reads += 2;
    return key != 0 && python.text(memory, key, text, sizeof text) &&
           std::strcmp(text, "_modules") == 0;
  };
  // Usually the key is the same text as last time. Each interpreter has its own, and after one has
  // ended, another text may have its address.
  Items::Item item;
  for (std::size_t i = 0; items.item(i, item); ++i)
    if (item.key != 0 && item.key == modules_key && is_modules(item.key))
      return items.read(item.value);
  for (std::size_t i = 0; items.item(i, item); ++i) {
    if (!is_modules(item.key))
      continue;
    modules_key = item.key;
    return items.read(item.value);
  }
  return false;
}

/// Whether the module around still has this module under its name, directly or in a container. If
/// not, another object may have the address of a dead one.
bool Modules::Thread::is_still_held(const Interpreter& python,
                                    const ChainEntry& entry,
                                    std::uint64_t around) {
  if (entry.key == 0)
    return true;
  Items items(python, memory);
  Items::Item item;
  std::size_t reads = 0;
  const auto holds = [&](std::uint64_t object, std::uint64_t child) {
    if (!children(python, object, items, reads))
      return false;
    for (std::size_t i = 0; items.item(i, item); ++i)
      if (item.value == child && item.key != 0)
        return true;
    return false;
  };
  const bool has_holder = entry.holder == around || holds(around, entry.holder);
  if (!has_holder || !holds(entry.holder, entry.self))
    return false;
  return item.key == entry.key && item.place == entry.place;
}

/// The number that the attribute of an argument gives the call (wire/functions.hpp); 0: unknown.
/// The frame keeps the object alive. For the last object only a few words are compared.
std::uint64_t Modules::Thread::argument_number(const Interpreter& python,
                                               std::uint64_t object,
                                               const char* attribute) {
  ArgumentCache& cache = argument_cache;
  std::uint64_t word = 0;
  bool is_unchanged = object == cache.object && cache.count > 0;
  for (std::size_t i = 0; is_unchanged && i < cache.count; ++i)
    is_unchanged = memory.word(cache.links[i].address, word) && word == cache.links[i].word;
  if (is_unchanged)
    return cache.number;
  cache = {object, 0, 0, {}};
  cache.number = read_argument(python, object, attribute);
  return cache.number;
}

void Modules::Thread::remember_word(std::uint64_t address) {
  ArgumentCache& cache = argument_cache;
  std::uint64_t word = 0;
  if (cache.count < ArgumentCache::kMost && memory.word(address, word))
    cache.links[cache.count++] = {address, word};
}

std::uint64_t Modules::Thread::read_argument(const Interpreter& python,
                                             std::uint64_t object,
                                             const char* attribute) {
  Items items(python, memory);
  Items::Item item;
  char text[64];
  std::uint64_t value = 0;
  std::uint32_t number = 0;
  if (object == 0 || !items.read_attributes(object))
    return 0;
  for (std::size_t i = 0; value == 0 && items.item(i, item); ++i)
    if (item.key != 0 && python.text(memory, item.key, text, sizeof text) &&
        std::strcmp(text, attribute) == 0)
      value = item.value;
  if (value == 0)
    return 0;
  remember_word(object + python.fields.type);
  if (const std::uint64_t place = python.dictionary_place(memory, object); place != 0)
    remember_word(place);
  if (const std::uint64_t dictionary = python.attributes(memory, object); dictionary != 0) {
    remember_word(dictionary + python.header() + 16);
    remember_word(dictionary + python.header() + 24);
  } else if (python.minor == 11) {
    remember_word(object - 32);
  }
  remember_word(item.value_at);
  if (python.number(memory, value, number))
    return number;
  if (!python.is_dictionary(memory, value) || !items.read(value))
    return 0;
  remember_word(value + python.header());  // number of items
  if (python.minor < 13)
    remember_word(value + python.header() + 8);  // version of the dictionary
  constexpr std::uint64_t kFillsRequests = 1;
  constexpr std::uint64_t kMakesTokens = 2;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; items.item(i, item); ++i) {
    if (item.value == 0 || !python.number(memory, item.value, number))
      continue;
    if (number > 1)
      bits |= kFillsRequests;
    if (number == 1)
      bits |= kMakesTokens;
    if (python.minor >= 13)
      remember_word(item.value_at);  // the object of 1 is never freed
  }
  return bits;
}

namespace {

/// A module that is searched, its key, and the module in which it was found.
struct Searched {
  std::uint64_t object, key;
  std::uint32_t parent, depth;
};

/// Writes a name with those of the modules around it, "layers.3.linear", from the end of a buffer.
class DottedName {
 public:
  DottedName(char* buffer, std::size_t size) : buffer_(buffer), size_(size), begin_(size - 1) {
    buffer[begin_] = '\0';
  }
  /// False without room.
  bool prepend(const char* text) {
    const std::size_t bytes = std::strlen(text);
    if (bytes + 1 >= begin_)
      return false;
    if (buffer_[begin_] != '\0')
      buffer_[--begin_] = '.';
    begin_ -= bytes;
    std::memcpy(buffer_ + begin_, text, bytes);
    return true;
  }
  void move_to_front() { std::memmove(buffer_, buffer_ + begin_, size_ - begin_); }

 private:
  char* buffer_;
  std::size_t size_;
  std::size_t begin_;
};

}  // namespace

/// Searches `self` below `around`, breadth first. Sets its name, and its place and holder in the
/// entry; returns its key in the `_modules` that has it, or 0.
std::uint64_t Modules::Thread::name_below(const Interpreter& python,
                                          std::uint64_t around,
                                          std::uint64_t self,
                                          char* name,
                                          std::size_t most,
                                          ChainEntry& entry) {
  auto* list = static_cast<Searched*>(std::malloc(kMostSearched * sizeof(Searched)));
  if (list == nullptr)
    return 0;
  list[0] = {around, 0, 0, 0};
  const auto write_name = [&](std::uint64_t key, std::size_t parent) {
    char text[256];
    DottedName dotted(name, most);
    for (;; parent = list[parent].parent) {
      if (!python.text(memory, key, text, sizeof text) || !dotted.prepend(text))
        return false;
      if (parent == 0)
        break;
      key = list[parent].key;
    }
    dotted.move_to_front();
    return true;
  };
  std::size_t count = 1;
  std::size_t reads = 0;
  std::uint64_t found = 0;
  Items items(python, memory);
  Items::Item item;
  for (std::size_t next = 0; next < count && found == 0 && reads < kMostReads; ++next) {
    if (!children(python, list[next].object, items, reads))
      continue;
    for (std::size_t i = 0; items.item(i, item); ++i) {
      if (item.key == 0 || item.value == 0)
        continue;
      if (item.value == self) {
        if (!write_name(item.key, next))
          break;
        found = item.key;
        entry.place = item.place;
        entry.holder = list[next].object;
        break;
      }
      if (count < kMostSearched && list[next].depth < kDeepest)
        list[count++] = {
            item.value, item.key, static_cast<std::uint32_t>(next), list[next].depth + 1};
    }
  }
  std::free(list);
  return found;
}

Modules::Thread* Modules::new_thread() {
  void* memory = std::malloc(sizeof(Thread));
  if (memory == nullptr)
    return nullptr;
  return new (memory) Thread(getpid());
}

void Modules::end_thread(Thread* thread) {
  thread->~Thread();
  std::free(thread);
}

bool Modules::start(std::size_t levels, const char*& why) {
  levels_ = levels != 0 ? std::min(levels, kMostLevels) : kMostLevels;
  functions_ = {};
  untold_.store(0, std::memory_order_relaxed);
  starts_.fetch_add(1, std::memory_order_relaxed);
  return python_.find(OwnMemory(getpid()), why);
}

Here Modules::here(std::int64_t now_ns) {
  const auto state = reinterpret_cast<std::uint64_t>(python_.this_thread());
  Mine* slot = threads_.mine();
  if (state == 0)
    return slot != nullptr && slot->thread != nullptr ? here(*slot->thread, 0, now_ns) : Here{};
  // The end of Python frees the states of daemon threads that run C code, without notice.
  if (python_.finalizing() != 0) [[unlikely]] {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return slot != nullptr && slot->thread != nullptr ? here(*slot->thread, 0, now_ns) : Here{};
  }
  if (slot != nullptr && slot->thread == nullptr)
    slot->thread = new_thread();
  if (slot == nullptr || slot->thread == nullptr)
    return {};
  Thread& thread = *slot->thread;
  std::uint64_t owner = 0;
  if (!thread.memory.word(state + python_.fields.thread_id, owner) || owner != pthread_self()) {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  return here(thread, state, now_ns);
}

Here Modules::here(Thread& thread, std::uint64_t state, std::int64_t now_ns) {
  if (state == 0) {
    thread.without_python = true;
    return {};
  }
  const std::uint32_t starts = starts_.load(std::memory_order_relaxed);
  if (const bool stale = std::exchange(thread.starts, starts) != starts;
      stale || now_ns > thread.trusted_until_ns) {
    if (stale)
      thread.forget_numbers();
    thread.distrust(now_ns);
  }
  if (std::exchange(thread.without_python, false)) [[unlikely]] {
    thread.distrust(now_ns);
    thread.names_since_ns = now_ns;
    thread.argument_cache = {};
  }
  const std::size_t open_before = std::exchange(thread.open, 0);
  if (!thread.read_frames(python_, functions_, state)) {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  Here out;
  for (std::size_t i = 0; i < thread.depth; ++i)
    out.called = out.called || !thread.levels[i].function;
  bool is_same_call = true;
  const std::size_t depth = std::min(thread.depth, levels_);
  for (std::size_t i = 0; i < depth; ++i) {
    const std::size_t index = thread.depth - 1 - i;
    const Level& level = thread.levels[index];
    const std::uint32_t number = number_of(thread, index, out.module, now_ns);
    if (number == 0)
      break;
    out.module = number;
    Call& call = thread.calls[i];
    const std::uint64_t inner = index > 0 ? thread.levels[index - 1].self : 0;
    const std::uint64_t place = mix(level.place, inner);
    const bool begins_again = call.moved && place == call.first;
    is_same_call = is_same_call && i < open_before && call.number == number &&
                   call.arguments == level.arguments && !begins_again;
    if (is_same_call) {
      call.moved = call.moved || place != call.first;
      ++out.same;
    } else {
      call = {number, false, level.arguments, place};
    }
    thread.open = i + 1;
  }
  return out;
}

std::uint32_t Modules::number_of(Thread& thread,
                                 std::size_t index,
                                 std::uint32_t around,
                                 std::int64_t now_ns) {
  const Level& level = thread.levels[index];
  const bool is_chosen_function = level.function && !level.compiled;
  const std::size_t function = is_chosen_function ? level.type - Thread::kFirstFunction : 0;
  std::size_t argument = 0;
  const char* attribute = nullptr;
  const bool by_argument =
      is_chosen_function && functions_.by_argument(function, argument, attribute);
  const std::uint64_t argument_number =
      by_argument ? thread.argument_number(python_, level.arguments, attribute) : 0;
  const std::uint64_t type = level.type | argument_number << 32;
  ChainEntry* entry = thread.slot_of(around, level.self, type);
  if (entry == nullptr)
    return 0;
  const bool is_checked =
      entry->checked_ns >= thread.names_since_ns && now_ns - entry->checked_ns <= kTrust_ns;
  if (entry->number != 0 && is_checked)
    return entry->number;
  char name[1024] = {}, text[256];
  if (!read_name(thread, level, name, sizeof name, text, sizeof text))
    return 0;
  const char* hashed = level.compiled ? name : text;
  const std::uint64_t kind = fnv1a(hashed, std::strlen(hashed));
  const std::uint64_t module_around = level.function ? 0 : module_above(thread, index);
  const bool is_valid = entry->number != 0 && entry->kind == kind &&
                        thread.is_still_held(python_, *entry, module_around);
  if (!is_valid) {
    ChainEntry added{level.self, type, around, 0, 0, 0, 0, 0, kind};
    if (module_around != 0)
      added.key = thread.name_below(python_, module_around, level.self, name, sizeof name, added);
    const char* shown = text;
    if (by_argument)
      functions_.name_of(function, argument_number, text, sizeof text);
    else if (is_chosen_function)
      shown = functions_.name_of(function, text);
    else if (level.compiled)
      name_compiled(thread, level, name, text, sizeof text);
    added.number = define_(user_, around, added.key != 0 ? name : "", shown, level.function);
    if (added.number == 0)
      return 0;
    if (entry->number == 0)
      ++thread.used;
    *entry = added;
  }
  entry->checked_ns = now_ns;
  return entry->number;
}

bool Modules::read_name(Thread& thread,
                        const Level& level,
                        char* file,
                        std::size_t file_size,
                        char* name,
                        std::size_t name_size) const {
  if (level.compiled)
    return thread.file_of(python_, level.self, file, file_size);
  if (level.function)
    return thread.name_of(python_, level.self, name, name_size);
  return python_.type_name(thread.memory, level.type, name, name_size);
}

void Modules::name_compiled(
    Thread& thread, const Level& level, const char* file, char* name, std::size_t name_size) const {
  const std::uint32_t line = thread.line_of(python_, level.self, level.type);
  if (!source_nodes(file, line, name, name_size))
    std::strcpy(name, "compiled code");
}

std::uint64_t Modules::module_above(const Thread& thread, std::size_t index) {
  for (std::size_t outer = index + 1; outer < thread.depth; ++outer)
    if (!thread.levels[outer].function)
      return thread.levels[outer].self;
  return 0;
}

}  // namespace rangescope::inject::python
