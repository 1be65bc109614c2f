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
namespace {

constexpr std::int64_t kTrust_ns =
    1'000'000'000;  // pages, code and names are looked at again after it
constexpr std::size_t kCodes = 1024, kFirstModules = 256, kMostModules = 1 << 15;
constexpr std::size_t kMostSearched = 4096, kDeepest = 12, kMostReads = 20'000;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xa0761d6478bd642full);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

struct Level {
  std::uint64_t
      self = 0,
      type = 0;  ///< of a function: its code, and its number; of compiled code: the instruction
  std::uint64_t arguments = 0;  ///< of a function: the argument that its calls are told apart by
  bool function = false;
  bool compiled = false;    ///< a function, of Inductor
  std::uint64_t place = 0;  ///< in its call, down to the next module's
};

// A module in a chain, by the chain around it and the object.
struct Known {
  std::uint64_t self = 0, type = 0;
  std::uint32_t around = 0, number = 0;  ///< number 0: free
  std::int64_t checked_ns = 0;
  std::uint64_t key = 0, place = 0;  ///< the name, and where it stands with the object; 0: unnamed
  std::uint64_t holder = 0;          ///< whose `_modules` that is
  std::uint64_t kind = 0;            ///< hash of the type's or function's name
};

struct Call {
  std::uint32_t number = 0;
  bool moved = false;  ///< it launched elsewhere than at `first` since
  std::uint64_t arguments = 0, first = 0;
};

// What an argument said, and the words that led there, each in memory that the ones before it keep.
// While they are the same, so is the answer. From CPython 3.13 on, a dictionary has no number that
// each change makes new: there the values of its first items are compared, since reading hundreds
// at each launch would slow the program.
struct Said {
  struct Link {
    std::uint64_t at = 0, word = 0;
  };
  static constexpr std::size_t kMost = 24;
  std::uint64_t object = 0, which = 0;
  std::size_t count = 0;
  Link links[kMost];
};

}  // namespace

struct Modules::Thread {
  explicit Thread(pid_t pid) : memory(pid) {}
  Thread& operator=(Thread&&) = delete;
  ~Thread() { std::free(known); }

  static constexpr std::uint64_t kOther = 0, kModule = 1, kCompiled = 2, kFirstFunction = 3;
  struct Code {
    std::uint64_t address = 0, kind = kOther;
  };

  bool frames(const Interpreter& python, const wire::Functions& functions, std::uint64_t state);
  std::uint64_t kind_of(const Interpreter& python, const wire::Functions& functions,
                        std::uint64_t code);
  bool name_of(const Interpreter& python, std::uint64_t code, char* function,
               std::size_t most) const;
  bool file_of(const Interpreter& python, std::uint64_t code, char* file, std::size_t most) const;
  std::uint32_t line_of(const Interpreter& python, std::uint64_t code,
                        std::uint64_t instruction) const;
  Known* slot_of(std::uint32_t around, std::uint64_t self, std::uint64_t type);
  bool grow();
  void forget_numbers() {
    if (known != nullptr) std::memset(static_cast<void*>(known), 0, room * sizeof(Known));
    used = open = 0;
  }
  bool children(const Interpreter& python, std::uint64_t object, Items& items, std::size_t& reads);
  bool still(const Interpreter& python, const Known& one, std::uint64_t around);
  std::uint64_t which_of(const Interpreter& python, std::uint64_t object, const char* name);
  std::uint64_t name_below(const Interpreter& python, std::uint64_t around, std::uint64_t self,
                           char* name, std::size_t most, Known& made);

  /// What Python keeps where, and what lies there, is looked at again: from `now_ns` on.
  void distrust(std::int64_t now_ns) {
    memory.forget();
    std::memset(static_cast<void*>(codes), 0, sizeof codes);
    trusted_until_ns = now_ns + kTrust_ns;
  }

  OwnMemory memory;
  std::int64_t trusted_until_ns = 0;
  std::int64_t names_since_ns = 0;  ///< names that were checked before it are checked again
  bool without_python =
      false;  ///< it had no thread state since: Python may have ended, and started again
  std::uint32_t starts = 0;  ///< of the modules whose numbers it knows
  Code codes[kCodes] = {};
  Level levels[kMostLevels];  ///< of the walk, the innermost first
  std::size_t depth = 0;
  Call calls[kMostLevels];  ///< of the last launch, the outermost first
  std::size_t open = 0;
  Said said;
  std::uint64_t modules_key = 0;  ///< the text "_modules", as it was found last
  Known* known = nullptr;
  std::size_t room = 0, used = 0;
};

bool Modules::Thread::name_of(const Interpreter& python, std::uint64_t code, char* function,
                              std::size_t most) const {
  std::uint64_t type = 0, text = 0;
  return memory.copy(code + python.fields.type, &type, sizeof type) && type == python.code_type &&
         memory.copy(code + python.fields.name, &text, sizeof text) &&
         python.text(memory, text, function, most);
}

bool Modules::Thread::file_of(const Interpreter& python, std::uint64_t code, char* file,
                              std::size_t most) const {
  std::uint64_t text = 0;
  return memory.copy(code + python.fields.file, &text, sizeof text) &&
         python.text(memory, text, file, most);
}

/// 0: unknown.
std::uint32_t Modules::Thread::line_of(const Interpreter& python, std::uint64_t code,
                                       std::uint64_t instruction) const {
  constexpr std::uint64_t kMostBytes = 1 << 22;
  const wire::cpython::Fields& fields = python.fields;
  std::uint32_t first = 0;
  std::uint64_t table = 0, size = 0;
  if (fields.lines == 0 || instruction <= code + fields.bytes) return 0;
  if (!memory.copy(code + fields.line, &first, sizeof first) ||
      !memory.copy(code + fields.lines, &table, sizeof table) ||
      !memory.copy(table + python.header(), &size, sizeof size) || size > kMostBytes)
    return 0;
  auto* bytes = static_cast<char*>(std::malloc(size));
  const bool read = bytes != nullptr && memory.copy(table + python.header() + 16, bytes, size);
  const std::uint32_t line =
      read ? wire::cpython::line_at({bytes, size}, first, instruction - code - fields.bytes) : 0;
  std::free(bytes);
  return line;
}

std::uint64_t Modules::Thread::kind_of(const Interpreter& python, const wire::Functions& functions,
                                       std::uint64_t code) {
  // Four places each: frames of one walk must not drive each other out.
  Code* set = codes + (code * 0x9e3779b97f4a7c15ull >> 54 & (kCodes - 4));
  for (std::size_t i = 0; i < 4; ++i)
    if (set[i].address == code) return set[i].kind;
  const auto look = [&]() -> std::uint64_t {
    char name[256], file[4096];
    if (!name_of(python, code, name, sizeof name)) return kOther;
    const char* function =
        std::strncmp(name, "Module.", 7) == 0 ? name + 7 : name;  // qualified since 3.11
    const bool call = std::strcmp(function, "_call_impl") == 0 ||
                      std::strcmp(function, "_wrapped_call_impl") == 0;
    const char* plain = std::strrchr(name, '.') != nullptr ? std::strrchr(name, '.') + 1 : name;
    const bool compiled =
        std::strcmp(plain, "call") == 0 || std::strncmp(plain, "partition_", 10) == 0;
    if (!call && !compiled && !functions.any()) return kOther;
    if (!file_of(python, code, file, sizeof file)) return kOther;
    constexpr char kFile[] = "torch/nn/modules/module.py";
    const std::size_t bytes = std::strlen(file);
    if (call && bytes >= sizeof kFile - 1 &&
        std::strcmp(file + bytes - (sizeof kFile - 1), kFile) == 0)
      return kModule;
    if (compiled && is_compiled(file)) return kCompiled;
    const std::size_t number = functions.find(file, name);
    return number != 0 ? kFirstFunction + number : kOther;
  };
  const std::uint64_t kind = look();
  std::memmove(set + 1, set, 3 * sizeof *set);
  set[0] = {code, kind};
  return kind;
}

/// False where they contradict themselves, or are more than the bounds.
bool Modules::Thread::frames(const Interpreter& python, const wire::Functions& functions,
                             std::uint64_t state) {
  const wire::cpython::Fields& fields = python.fields;
  depth = 0;
  std::uint64_t frame = 0, place = 0;
  if (!memory.word(state + fields.frame, frame)) return false;
  if (fields.through >= 0 && frame != 0 &&
      !memory.word(frame + static_cast<std::uint64_t>(fields.through), frame))
    return false;
  const std::uint32_t position = python.position(), bytes = fields.locals + 16;
  for (std::size_t left = kMostFrames; frame != 0; --left) {
    if (left == 0 || !memory.holds(frame, bytes)) return false;
    const auto word = [frame](std::uint32_t offset) { return load(frame + offset); };
    const std::uint64_t code =
        word(fields.code) & ~std::uint64_t{7};  // tagged since 3.14, as locals are
    const std::uint64_t at = word(position);
    const std::uint64_t here = fields.instruction != 0 ? at : code + (at & 0xffffffffu);
    place = (place ^ here) * 0x9e3779b97f4a7c15ull;
    place ^= place >> 29;
    const std::uint64_t kind = code != 0 ? kind_of(python, functions, code) : kOther;
    if (kind >= kFirstFunction) {
      // One that calls itself, or another of its name, is one call.
      const bool same = depth > 0 && levels[depth - 1].type == kind &&
                        (levels[depth - 1].self == code ||
                         functions.name_of(kind - kFirstFunction, nullptr) != nullptr);
      if (!same) {
        if (depth == kMostLevels) return false;
        std::uint64_t object = 0;
        std::size_t argument = 0;
        const char* attribute = nullptr;
        if (functions.by_argument(kind - kFirstFunction, argument, attribute) &&
            memory.word(frame + fields.locals + 8 * argument, object))
          object &= ~std::uint64_t{7};
        levels[depth++] = {code, kind,  object,
                           true, false, here};  // its own: what it calls may be a loop
        place = 0;
      }
    } else if (kind == kCompiled) {
      // `call` has parts of a graph that CUDA graphs keep in functions of their own, partition_0:
      // those launch.
      if (depth == 0 || !levels[depth - 1].compiled) {
        if (depth == kMostLevels) return false;
        levels[depth++] = {code, here, 0, true, true, here};
        place = 0;
      }
    } else if (kind == kModule) {
      Level level;
      std::uint64_t self = word(fields.locals) & ~std::uint64_t{7};
      level.arguments = word(fields.locals + 8);
      if (self != 0 && memory.word(self + fields.type, level.type) &&
          level.type == python.cell_type) {
        if (!memory.word(self + python.header(), self)) return false;
        self &= ~std::uint64_t{7};
      }
      // Before 3.11 a variable that an inner function uses stands elsewhere; then
      // _wrapped_call_impl has it.
      if (self != 0) {
        if (!memory.word(self + fields.type, level.type)) return false;
        level.type &= ~std::uint64_t{7};
        level.self = self;
        level.place = place;
        if (depth > 0 && levels[depth - 1].self == self) {
          levels[depth - 1].arguments = level.arguments;  // _call_impl in _wrapped_call_impl
        } else if (depth == kMostLevels) {
          return false;
        } else {
          levels[depth++] = level;
        }
        place = 0;
      }
    }
    frame = word(fields.previous);
  }
  return true;
}

Known* Modules::Thread::slot_of(std::uint32_t around, std::uint64_t self, std::uint64_t type) {
  if ((used + 1) * 4 > room * 3 && !grow()) return nullptr;
  for (std::size_t at = mix(self ^ around, type);; ++at) {
    Known& slot = known[at & (room - 1)];
    if (slot.number == 0 || (slot.self == self && slot.around == around && slot.type == type))
      return &slot;
  }
}

bool Modules::Thread::grow() {
  const std::size_t size = room == 0 ? kFirstModules : room * 2;
  if (size > kMostModules) {  // forgotten, and named anew
    forget_numbers();
    return true;
  }
  auto* larger = static_cast<Known*>(std::calloc(size, sizeof(Known)));
  if (larger == nullptr) return room > used + 1;
  Known* smaller = std::exchange(known, larger);
  const std::size_t before = std::exchange(room, size);
  for (std::size_t i = 0; i < before; ++i)
    if (smaller[i].number != 0)
      *slot_of(smaller[i].around, smaller[i].self, smaller[i].type) = smaller[i];
  std::free(smaller);
  return true;
}

/// What the `_modules` of a module holds.
bool Modules::Thread::children(const Interpreter& python, std::uint64_t object, Items& items,
                               std::size_t& reads) {
  reads += 8;
  const std::uint64_t attributes = python.attributes(memory, object);
  if (attributes == 0 || !items.read(attributes)) return false;
  char text[16];
  const auto is_modules = [&](std::uint64_t key) {
    reads += 2;
    return key != 0 && python.text(memory, key, text, sizeof text) &&
           std::strcmp(text, "_modules") == 0;
  };
  // Most often it is the text of last time, at its place of last time. Each interpreter has its
  // own, and where one has ended, another text may lie there.
  Items::Item item;
  for (std::size_t i = 0; items.item(i, item); ++i)
    if (item.key != 0 && item.key == modules_key && is_modules(item.key))
      return items.read(item.value);
  for (std::size_t i = 0; items.item(i, item); ++i) {
    if (!is_modules(item.key)) continue;
    modules_key = item.key;
    return items.read(item.value);
  }
  return false;
}

/// Whether the module around still holds it there, itself or in a container of its own. What is
/// there when they are dead may look like it.
bool Modules::Thread::still(const Interpreter& python, const Known& one, std::uint64_t around) {
  if (one.key == 0) return true;
  Items items(python, memory);
  Items::Item item;
  std::size_t reads = 0;
  const auto holds = [&](std::uint64_t object, std::uint64_t child) {
    if (!children(python, object, items, reads)) return false;
    for (std::size_t i = 0; items.item(i, item); ++i)
      if (item.value == child && item.key != 0) return true;
    return false;
  };
  return (one.holder == around || holds(around, one.holder)) && holds(one.holder, one.self) &&
         item.key == one.key && item.place == one.place;
}

/// What the attribute of an argument says of the call (wire/functions.hpp); 0: nothing that is
/// known. The frame holds the object. For the one that was asked last a few words are compared.
std::uint64_t Modules::Thread::which_of(const Interpreter& python, std::uint64_t object,
                                        const char* name) {
  std::uint64_t word = 0;
  bool same = object == said.object && said.count > 0;
  for (std::size_t i = 0; same && i < said.count; ++i)
    same = memory.word(said.links[i].at, word) && word == said.links[i].word;
  if (same) return said.which;
  said = {object, 0, 0, {}};
  const auto led_by = [&](std::uint64_t at) {
    if (said.count < Said::kMost && memory.word(at, word)) said.links[said.count++] = {at, word};
  };
  Items items(python, memory);
  Items::Item item;
  char text[64];
  std::uint64_t value = 0;
  std::uint32_t number = 0;
  if (object == 0 || !items.read_attributes(object)) return 0;
  for (std::size_t i = 0; value == 0 && items.item(i, item); ++i)
    if (item.key != 0 && python.text(memory, item.key, text, sizeof text) &&
        std::strcmp(text, name) == 0)
      value = item.value;
  if (value == 0) return 0;
  led_by(object + python.fields.type);
  if (const std::uint64_t place = python.dictionary_place(memory, object); place != 0)
    led_by(place);
  if (const std::uint64_t dictionary = python.attributes(memory, object); dictionary != 0) {
    led_by(dictionary + python.header() + 16);
    led_by(dictionary + python.header() + 24);
  } else if (python.minor == 11) {
    led_by(object - 32);
  }
  led_by(item.value_at);
  std::uint64_t which = 0;
  if (python.number(memory, value, number)) {
    which = number;
  } else if (python.is_dictionary(memory, value) && items.read(value)) {
    led_by(value + python.header());  // how many
    if (python.minor < 13)
      led_by(value + python.header() + 8);  // a number of its own for each change
    for (std::size_t i = 0; items.item(i, item);
         ++i) {  // bits: requests that are filled, that make a token
      if (item.value == 0 || !python.number(memory, item.value, number)) continue;
      which |= number > 1 ? 1 : number == 1 ? 2 : 0;
      if (python.minor >= 13)
        led_by(item.value_at);  // 1 is one object as long as the interpreter runs
    }
  }
  return said.which = which;
}

/// The key of `self` in the `_modules` that holds it, with the names from `around` on; 0 where it
/// is not below it.
std::uint64_t Modules::Thread::name_below(const Interpreter& python, std::uint64_t around,
                                          std::uint64_t self, char* name, std::size_t most,
                                          Known& made) {
  struct Searched {
    std::uint64_t object, key;
    std::uint32_t from, depth;
  };
  auto* list = static_cast<Searched*>(std::malloc(kMostSearched * sizeof(Searched)));
  if (list == nullptr) return 0;
  list[0] = {around, 0, 0, 0};
  std::size_t count = 1, reads = 0;
  std::uint64_t found = 0;
  char text[256];
  Items items(python, memory);
  Items::Item item;
  for (std::size_t next = 0; next < count && found == 0 && reads < kMostReads; ++next) {
    if (!children(python, list[next].object, items, reads)) continue;
    for (std::size_t i = 0; items.item(i, item); ++i) {
      if (item.key == 0 || item.value == 0) continue;
      if (item.value == self) {
        // From the end: the name here, then those of the modules between.
        std::size_t at = most - 1;
        name[at] = '\0';
        std::uint64_t key = item.key;
        bool whole = true;
        for (std::size_t of = next;; of = list[of].from) {
          whole =
              whole && python.text(memory, key, text, sizeof text) && std::strlen(text) + 1 < at;
          if (!whole) break;
          if (name[at] != '\0') name[--at] = '.';
          at -= std::strlen(text);
          std::memcpy(name + at, text, std::strlen(text));
          if (of == 0) break;
          key = list[of].key;
        }
        if (!whole) break;
        std::memmove(name, name + at, most - at);
        found = item.key;
        made.place = item.place;
        made.holder = list[next].object;
        break;
      }
      if (count < kMostSearched && list[next].depth < kDeepest)
        list[count++] = {item.value, item.key, static_cast<std::uint32_t>(next),
                         list[next].depth + 1};
    }
  }
  std::free(list);
  return found;
}

Modules::Thread* Modules::new_thread() {
  void* memory = std::malloc(sizeof(Thread));
  return memory != nullptr ? new (memory) Thread(getpid()) : nullptr;
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
  // The end of Python frees the states of daemon threads that are in C, and does not tell them.
  if (python_.finalizing() != 0) [[unlikely]] {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return slot != nullptr && slot->thread != nullptr ? here(*slot->thread, 0, now_ns) : Here{};
  }
  if (slot != nullptr && slot->thread == nullptr) slot->thread = new_thread();
  if (slot == nullptr || slot->thread == nullptr) return {};
  Thread* mine = slot->thread;
  std::uint64_t owner = 0;
  if (!mine->memory.word(state + python_.fields.thread_id, owner) || owner != pthread_self()) {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  return here(*mine, state, now_ns);
}

Here Modules::here(Thread& thread, std::uint64_t state, std::int64_t now_ns) {
  if (state == 0) {
    thread.without_python = true;
    return {};
  }
  const std::uint32_t starts = starts_.load(std::memory_order_relaxed);
  if (const bool stale = std::exchange(thread.starts, starts) != starts;
      stale || now_ns > thread.trusted_until_ns) {
    if (stale) thread.forget_numbers();
    thread.distrust(now_ns);
  }
  if (std::exchange(thread.without_python, false)) [[unlikely]] {
    thread.distrust(now_ns);
    thread.names_since_ns = now_ns;
    thread.said = {};
  }
  const std::size_t before = std::exchange(thread.open, 0);
  if (!thread.frames(python_, functions_, state)) {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  Here out;
  for (std::size_t i = 0; i < thread.depth; ++i)
    out.called = out.called || !thread.levels[i].function;
  bool same = true;
  const std::size_t depth = std::min(thread.depth, levels_);
  for (std::size_t i = 0; i < depth; ++i) {
    const Level& level = thread.levels[thread.depth - 1 - i];
    const bool chosen = level.function && !level.compiled;
    const std::size_t function = chosen ? level.type - Thread::kFirstFunction : 0;
    std::size_t argument = 0;
    const char* attribute = nullptr;
    const bool by_argument = chosen && functions_.by_argument(function, argument, attribute);
    const std::uint64_t which =
        by_argument ? thread.which_of(python_, level.arguments, attribute) : 0;
    const std::uint64_t type = level.type | which << 32;
    Known* known = thread.slot_of(out.module, level.self, type);
    if (known == nullptr) break;
    const bool checked =
        known->checked_ns >= thread.names_since_ns && now_ns - known->checked_ns <= kTrust_ns;
    if (known->number == 0 || !checked) {
      char name[1024] = {}, text[256];
      const bool named = level.compiled ? thread.file_of(python_, level.self, name, sizeof name)
                         : level.function
                             ? thread.name_of(python_, level.self, text, sizeof text)
                             : python_.type_name(thread.memory, level.type, text, sizeof text);
      if (!named) break;
      const char* kept = level.compiled ? name : text;
      const std::uint64_t kind = fnv1a(kept, std::strlen(kept));
      std::size_t outer = thread.depth - i;  // the module around it
      while (outer < thread.depth && thread.levels[outer].function) ++outer;
      const std::uint64_t around =
          !level.function && outer < thread.depth ? thread.levels[outer].self : 0;
      if (known->number == 0 || known->kind != kind || !thread.still(python_, *known, around)) {
        Known made{level.self, type, out.module, 0, 0, 0, 0, 0, kind};
        if (around != 0)
          made.key = thread.name_below(python_, around, level.self, name, sizeof name, made);
        const char* shown = chosen && !by_argument ? functions_.name_of(function, text) : text;
        if (by_argument) functions_.name_of(function, which, text, sizeof text);
        if (level.compiled &&
            !source_nodes(name, thread.line_of(python_, level.self, level.type), text, sizeof text))
          std::strcpy(text, "compiled code");
        made.number = define_(user_, out.module, made.key != 0 ? name : "", shown, level.function);
        if (made.number == 0) break;
        thread.used += known->number == 0 ? 1 : 0;
        *known = made;
      }
      known->checked_ns = now_ns;
    }
    out.module = known->number;
    Call& call = thread.calls[i];
    const bool inner = thread.depth - 1 - i > 0;
    const std::uint64_t place =
        mix(level.place, inner ? thread.levels[thread.depth - 2 - i].self : 0);
    same = same && i < before && call.number == known->number &&
           call.arguments == level.arguments && !(call.moved && place == call.first);
    if (same) {
      call.moved = call.moved || place != call.first;
      ++out.same;
    } else {
      call = {known->number, false, level.arguments, place};
    }
    thread.open = i + 1;
  }
  return out;
}

}  // namespace rangescope::inject::python
