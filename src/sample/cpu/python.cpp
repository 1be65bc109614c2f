#include "sample/cpu/python.hpp"

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/process_tree.hpp"
#include "base/text.hpp"
#include "sample/blocks.hpp"

namespace rangescope::sample::cpu {
namespace {

constexpr int kMostWalks = 8;
constexpr std::size_t kMostFrames = 512, kMostThreads = 4096;
/// For one sample. 512 frames take some 1,000 reads. After a sample that reached a bound, none is
/// read for kRestTimes the time that it took.
constexpr std::size_t kMostReads = 16'384;
constexpr std::int64_t kRestTimes = 20;
/// A thread that is none of Python's now may be one later.
constexpr std::int64_t kLookAgain_ns = 50'000'000;
/// What is kept between samples: it is read again when it was forgotten.
constexpr std::size_t kMostObject =
    208;  // of a code object; who publishes other places is not believed
constexpr std::size_t kMostCodeBytes = 16 << 20, kMostKnownThreads = 64 << 10;
constexpr std::uint64_t kMostInstructions = 1 << 20;  // of a function
constexpr std::uint8_t kOwnedByGenerator = 1,
                       kOwnedByInterpreter = 3;  // or more: the loop's own frame, of no function
constexpr std::uint64_t kGlibcThreadNumber =
    0x2d0;  // struct pthread.tid, glibc 2.10 to 2.41 on x86-64

/// "python3.11", "libpython3.11.so.1.0": 11; 0 for others.
int minor_of(std::string_view path) {
  const std::string_view name = base::file_name(path);
  if (!name.starts_with("python") && !name.starts_with("libpython"))
    return 0;
  const auto major = name.find("3.");
  if (major == std::string_view::npos)
    return 0;
  return std::atoi(std::string(name.substr(major + 2, 2)).c_str());
}

int continuation_bytes(std::uint32_t point) {
  if (point < 0x80)
    return 0;
  if (point < 0x800)
    return 1;
  return point < 0x10000 ? 2 : 3;
}

void append_utf8(std::uint32_t point, std::string& out) {
  constexpr unsigned char kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  const int further = continuation_bytes(point);
  const std::uint32_t mask = further == 0 ? 0x7fu : 0x3fu >> further;
  out += static_cast<char>(kFirst[further] | (point >> 6 * further & mask));
  for (int left = further; left-- > 0;)
    out += static_cast<char>(0x80 | (point >> 6 * left & 0x3f));
}

}  // namespace

/// The file of a process that has the interpreter's loop.
struct Python::Interpreter {
  const Module* module = nullptr;
  Tables* tables = nullptr;
  std::uint64_t bias = 0;  ///< of the file's addresses in the process
  Tables::Symbol runtime, loop;
};

std::optional<Python::Interpreter> Python::interpreter_of(const Space& space) {
  for (const auto& [start, area] : space.areas()) {
    const std::string_view name = base::file_name(area.module->path);
    if (!name.starts_with("python") && !name.starts_with("libpython"))
      continue;
    Tables* tables = area.module->tables();
    if (tables == nullptr)
      continue;
    const Tables::Symbol runtime = tables->symbol("_PyRuntime"),
                         loop = tables->symbol("_PyEval_EvalFrameDefault");
    if (runtime.address == 0 || loop.address == 0)
      continue;  // the program of a Python whose code is in its library
    return Interpreter{area.module, tables, start - tables->address_of(area.offset), runtime, loop};
  }
  return std::nullopt;
}

void Python::set_places(const Interpreter& interpreter) {
  module_ = interpreter.module;
  const std::uint64_t bias = interpreter.bias;
  runtime_ = bias + interpreter.runtime.address;
  runtime_bytes_ = interpreter.runtime.size;
  loop_ = bias + interpreter.loop.address;
  loop_end_ = loop_ + std::max<std::uint64_t>(interpreter.loop.size, 1);
  Tables& tables = *interpreter.tables;
  if (const auto cold = tables.symbol("_PyEval_EvalFrameDefault.cold"); cold.address != 0) {
    cold_ = bias + cold.address;
    cold_end_ = cold_ + std::max<std::uint64_t>(cold.size, 1);
  }
  if (const auto type = tables.symbol("PyCode_Type"); type.address != 0)
    code_type_ = bias + type.address;
}

bool Python::read_version(const Interpreter& interpreter) {
  minor_ = minor_of(interpreter.module->path);
  const auto number = interpreter.tables->symbol("Py_Version");
  if (number.address != 0) {  // 0x030d00f0
    std::uint64_t value = 0;
    if (!read(interpreter.bias + number.address, &value, sizeof value))
      return false;
    minor_ = static_cast<int>(value >> 16 & 0xff);
  }
  version_ = "3." + std::to_string(minor_);
  return true;
}

std::unique_ptr<Python> Python::find(const Space& space, std::uint32_t pid, Unread& unread) {
  namespace cpython = wire::cpython;
  const std::optional<Interpreter> interpreter = interpreter_of(space);
  if (!interpreter)
    return nullptr;
  const auto unreadable = [&] {
    const bool has_ended = errno == ESRCH, is_not_mapped_yet = errno == EFAULT;
    if (!has_ended && !is_not_mapped_yet)
      unread = {"the memory of a Python cannot be read (process_vm_readv: " +
                    std::string(std::strerror(errno)) + ")",
                interpreter->module};
    return nullptr;
  };
  std::unique_ptr<Python> python(new Python);
  python->pid_ = base::living_thread(pid);
  python->begin();
  python->set_places(*interpreter);
  if (!python->read_version(*interpreter))
    return unreadable();
  const int minor = python->minor_;
  if (minor < cpython::kFirst || minor > cpython::kLast) {
    const std::string version = minor == 0 ? "of an unknown version" : python->version_;
    unread = {"Python " + version + " is not known", interpreter->module};
    return nullptr;
  }
  if (minor >= cpython::kFirstThatPublishes) {
    char offsets[cpython::kDebugOffsets];
    if (!python->read(python->runtime_, offsets, sizeof offsets))
      return unreadable();
    if (std::memcmp(offsets, "xdebugpy", 8) != 0)
      return nullptr;  // it has not begun
    python->fields_ = cpython::published(offsets, minor);
  } else {
    python->fields_ = cpython::kFields[minor - cpython::kFirst];
  }
  std::uint64_t first = 0;
  if (!python->read(python->runtime_ + python->fields_.heads, &first, sizeof first))
    return unreadable();
  if (first == 0)
    return nullptr;
  if (python->cold_ == 0)
    python->find_cold(*interpreter->tables, interpreter->bias);
  return python;
}

// Compilers place code that they expect to run rarely apart (gcc 16: nearly all of the loop).
// Debian's Pythons have no symbol for that part: it is where the loop's jumps lead to, if not to
// the begin of a function.
void Python::find_cold(Tables& tables, std::uint64_t bias) {
#if defined(__x86_64__)
  std::string code(std::min<std::uint64_t>(loop_end_ - loop_, 1 << 20), '\0');
  if (!read(loop_, code.data(), code.size()))
    return;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> jumps;
  for (std::size_t i = 0; i + 6 <= code.size(); ++i) {
    const auto byte = [&](std::size_t offset) { return static_cast<unsigned char>(code[offset]); };
    const bool is_jump = byte(i) == 0xe9;
    const bool is_conditional_jump = byte(i) == 0x0f && (byte(i + 1) & 0xf0) == 0x80;
    if (!is_jump && !is_conditional_jump)
      continue;
    const std::size_t next = i + (is_jump ? 5 : 6);
    std::int32_t distance = 0;
    std::memcpy(&distance, code.data() + next - sizeof distance, sizeof distance);
    const std::uint64_t target = loop_ + next + static_cast<std::uint64_t>(std::int64_t{distance});
    if (target >= loop_ && target < loop_end_)
      continue;
    const auto part = tables.part(target - bias);
    if (part.first != 0 && part.first != target - bias)
      ++jumps[part];
  }
  const auto most_jumps = std::ranges::max_element(
      jumps, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most_jumps == jumps.end() || most_jumps->second < 4)
    return;
  cold_ = bias + most_jumps->first.first;
  cold_end_ = bias + most_jumps->first.second;
#else
  static_cast<void>(tables), static_cast<void>(bias);
#endif
}

void Python::begin() {
  reads_left_ = kMostReads;
  began_ns_ = now_ns();
  gave_up_ = false;
}

bool Python::read(std::uint64_t address, void* into, std::size_t bytes) {
  const iovec remote{reinterpret_cast<void*>(address), bytes};
  return read({&remote, 1}, into, bytes) == bytes;
}

std::size_t Python::read(std::span<const iovec> remote, void* into, std::size_t bytes) {
  if (reads_left_ > 0 && --reads_left_ % 64 == 0 && now_ns() - began_ns_ > most_time_ns_)
    reads_left_ = 0;
  if (reads_left_ == 0) {
    gave_up_ = true;
    return 0;
  }
  const iovec local{into, bytes};
  const ssize_t got =
      ::process_vm_readv(static_cast<pid_t>(pid_), &local, 1, remote.data(), remote.size(), 0);
  return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
}

bool Python::word(std::uint64_t address, std::uint64_t& value) {
  if ((address & 7) != 0)
    return false;
  const std::uint64_t page = address & ~std::uint64_t{4095};
  if (page != page_) {
    page_ = 1;
    if (!read(page, page_bytes_, sizeof page_bytes_))
      return false;
    page_ = page;
  }
  std::memcpy(&value, page_bytes_ + (address - page), sizeof value);
  return true;
}

bool Python::is_state_of(std::uint64_t state, std::uint32_t own_tid) {
  std::uint64_t number = 0;
  if (fields_.native_id != 0)
    return word(state + fields_.native_id, number) && number == own_tid;
  std::uint32_t tid = 0;
  return word(state + fields_.thread_id, number) && number != 0 &&
         read(number + kGlibcThreadNumber, &tid, sizeof tid) && tid == own_tid;
}

std::uint64_t Python::state_in(std::uint64_t interpreter,
                               std::uint32_t own_tid,
                               std::size_t& left) {
  std::uint64_t state = 0, back = 0;
  for (bool is_read = word(interpreter + fields_.threads, state);
       is_read && state != 0 && left > 0 && --left > 0;
       is_read = word(state + fields_.next_thread, state)) {
    if (!word(state + fields_.interpreter, back) || back != interpreter)
      break;
    if (is_state_of(state, own_tid))
      return state;
  }
  return 0;
}

std::uint64_t Python::thread_state(std::uint32_t own_tid) {
  if (const auto entry = threads_.find(own_tid); entry != threads_.end()) {
    const Known& last = entry->second;
    const bool is_current =
        last.state == 0 ? began_ns_ < last.until_ns : is_state_of(last.state, own_tid);
    if (is_current)
      return last.state;
    threads_.erase(entry);
  }
  std::uint64_t interpreter = 0, found = 0;
  std::size_t left = kMostThreads;  // and interpreters
  for (bool is_read = word(runtime_ + fields_.heads, interpreter);
       is_read && interpreter != 0 && left-- > 0 && found == 0;
       is_read = word(interpreter + fields_.next_interpreter, interpreter))
    found = state_in(interpreter, own_tid, left);
  if (threads_.size() > kMostKnownThreads)
    threads_.clear();
  threads_[own_tid] = {found, began_ns_ + kLookAgain_ns};
  return found;
}

std::uint32_t Python::tid_of(std::uint64_t state) {
  std::uint64_t number = 0;
  if (fields_.native_id != 0) {
    if (!word(state + fields_.native_id, number))
      return 0;
    return static_cast<std::uint32_t>(number);
  }
  std::uint32_t tid = 0;
  const bool is_read = word(state + fields_.thread_id, number) &&
                       read(number + kGlibcThreadNumber, &tid, sizeof tid);
  return is_read ? tid : 0;
}

// The wait is for a condition behind the lock's interval (in microseconds), last holder, state and
// number of switches: where two words before it look like the first two, and the second is a
// thread's, that is the holder.
std::uint32_t Python::gil_holder(std::uint64_t futex) {
  page_ = 1;
  begin();
  const std::uint64_t aligned = futex & ~std::uint64_t{7};
  for (std::uint64_t address = aligned - 64; address >= aligned - 96; address -= 8) {
    std::uint64_t interval = 0, holder = 0, interpreter = 0, back = 0;
    if (!word(address, interval) || interval == 0 || interval > 100'000'000)
      continue;
    if (!word(address + 8, holder) || holder == 0)
      continue;
    if (!word(holder + fields_.interpreter, interpreter) ||
        !word(interpreter + fields_.threads, back))
      continue;
    for (std::size_t left = kMostThreads; back != 0 && back != holder && left > 0; --left)
      if (!word(back + fields_.next_thread, back))
        back = 0;
    if (back == holder)
      return tid_of(holder);
  }
  return 0;
}

bool Python::text(std::uint64_t address, std::size_t max_length, std::string& out) {
  char head[64];
  const std::size_t size = std::max(fields_.length, fields_.state) + 8;
  if (size > sizeof head || !read(address, head, size))
    return false;
  std::uint64_t length = 0;
  std::uint32_t state = 0;
  std::memcpy(&length, head + fields_.length, sizeof length);
  std::memcpy(&state, head + fields_.state, sizeof state);
  state >>= fields_.kind;
  const std::uint32_t kind = state & 7;
  const bool compact = (state >> 3 & 1) != 0, ascii = (state >> 4 & 1) != 0;
  const bool is_known_kind = kind == 1 || kind == 2 || kind == 4;
  if (length > max_length || !compact || !is_known_kind)
    return false;
  std::string bytes(length * kind, '\0');
  if (!bytes.empty() &&
      !read(address + (ascii ? fields_.ascii : fields_.compact), bytes.data(), bytes.size()))
    return false;
  out.clear();
  for (std::size_t i = 0; i < length; ++i) {
    std::uint32_t point = 0;
    std::memcpy(&point, bytes.data() + i * kind, kind);
    append_utf8(point, out);
  }
  return true;
}

// Of a walk: each once, however often it is called, and all in one call of the system.
void Python::read_codes() {
  object_bytes_ = std::max({fields_.type, fields_.file, fields_.name, fields_.line}) + 8;
  addresses_.clear();
  if (object_bytes_ > kMostObject)
    return;
  for (const Step& step : steps_)
    if (!step.shim && step.code != 0 && (step.code & 7) == 0)
      addresses_.push_back(step.code);
  std::ranges::sort(addresses_);
  addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());
  static_assert(kMostFrames <= IOV_MAX);
  remote_.clear();
  for (const std::uint64_t address : addresses_)
    remote_.push_back({reinterpret_cast<void*>(address), object_bytes_});
  objects_.resize(addresses_.size() * object_bytes_);
  for (std::size_t had = 0; had < addresses_.size();) {
    const std::span<const iovec> rest = std::span(remote_).subspan(had);
    had += read(rest, objects_.data() + had * object_bytes_, rest.size() * object_bytes_) /
           object_bytes_;
    if (had == addresses_.size())
      break;
    const auto unmapped = static_cast<std::ptrdiff_t>(had);
    remote_.erase(remote_.begin() + unmapped);
    addresses_.erase(addresses_.begin() + unmapped);
  }
}

const PythonCode* Python::code_at(std::uint64_t address) {
  const auto position = std::lower_bound(addresses_.begin(), addresses_.end(), address);
  if (position == addresses_.end() || *position != address)
    return nullptr;
  const char* object =
      objects_.data() + static_cast<std::size_t>(position - addresses_.begin()) * object_bytes_;
  std::uint64_t type = 0, file = 0, name = 0;
  std::uint32_t line = 0;
  std::memcpy(&type, object + fields_.type, sizeof type);
  std::memcpy(&file, object + fields_.file, sizeof file);
  std::memcpy(&name, object + fields_.name, sizeof name);
  std::memcpy(&line, object + fields_.line, sizeof line);
  if (code_type_ != 0 && type != code_type_)
    return nullptr;
  // An address may be used again: by the texts it is known whether it is the same code.
  auto& texts = code_texts_[address];
  auto& cached = codes_[address];
  if (cached && texts == std::pair(file, name) && cached->line == line)
    return cached.get();
  code_bytes_ += sizeof(PythonCode) + sizeof texts;
  auto code = std::make_unique<PythonCode>();
  code->line = line;
  if (fields_.bytes != 0) {
    std::uint64_t instructions = 0;  // of two bytes
    std::memcpy(&instructions, object + fields_.type + 8, sizeof instructions);
    code->begin = address + fields_.bytes;
    code->end = code->begin + 2 * std::min<std::uint64_t>(instructions, kMostInstructions);
  }
  if (line > 10'000'000 || !text(name, 1024, code->name) || !text(file, 4096, code->file))
    return nullptr;
  if (fields_.lines != 0) {
    std::uint64_t table = 0, size = 0;
    constexpr std::uint64_t kMostLines = 64 << 10;
    if (read(address + fields_.lines, &table, sizeof table) &&
        read(table + fields_.type + 8, &size, sizeof size) && size <= kMostLines) {
      code->lines.resize(size);
      if (!read(table + fields_.type + 24, code->lines.data(), size))
        code->lines.clear();
    }
  }
  code_bytes_ += code->name.size() + code->file.size() + code->lines.size();
  if (cached) {  // its address holds another code now, and nothing of it is true any more
    noted_callers_.clear();
    by_instruction_.erase(cached->begin);
    old_codes_.push_back(std::move(cached));
  }
  texts = {file, name};
  cached = std::move(code);
  if (cached->end > cached->begin)
    by_instruction_[cached->begin] = cached.get();
  return cached.get();
}

Python::Reading Python::frames(std::uint32_t own_tid, std::vector<PythonFrame>& out) {
  out.clear();
  old_codes_.clear();
  if (code_bytes_ > kMostCodeBytes) {
    codes_.clear();
    by_instruction_.clear();
    noted_callers_.clear();
    code_texts_.clear();
    code_bytes_ = 0;
  }
  if (now_ns() < rests_until_ns_)
    return Reading::kTorn;
  begin();
  const Reading reading = read_whole(own_tid, out);
  if (!gave_up_)
    return reading;
  const std::int64_t now = now_ns();
  rests_until_ns_ = now + kRestTimes * (now - began_ns_);
  out.clear();
  return Reading::kTorn;
}

Python::Reading Python::read_whole(std::uint32_t own_tid, std::vector<PythonFrame>& out) {
  std::uint64_t previous_outermost = 0;
  yielded_.clear();
  for (int left = kMostWalks; left > 0 && !gave_up_; --left) {
    out.clear();
    page_ = 1;
    const std::uint64_t state = thread_state(own_tid);
    if (state == 0)
      return Reading::kNone;
    std::uint64_t outermost = 0;
    const Reading reading = walk(state, out, outermost);
    if (reading == Reading::kNone)
      return reading;
    if (reading == Reading::kTorn)
      continue;
    if (outermost_.size() > kMostKnownThreads)
      outermost_.clear();
    std::uint64_t& last_outermost = outermost_[own_tid];
    if (outermost == last_outermost || outermost == previous_outermost) {
      last_outermost = outermost;
      join_generator(out);
      return reading;
    }
    previous_outermost = outermost;
  }
  out.clear();
  return Reading::kTorn;
}

std::optional<Python::Step> Python::read_step(std::uint64_t frame, bool with_instruction) {
  std::uint64_t code = 0, caller = 0, flags = 0;
  if (!word(frame + fields_.code, code) || !word(frame + fields_.previous, caller))
    return std::nullopt;
  Step step;
  step.frame = frame;
  step.caller = caller;
  step.code = code & ~std::uint64_t{3};  // tagged since 3.14
  step.entry = fields_.owner == 0;       // before 3.11 each frame is a call of the loop
  if (fields_.owner != 0) {
    const std::uint64_t owner = frame + fields_.owner;
    if (!word(owner & ~std::uint64_t{7}, flags))
      return std::nullopt;
    const auto byte = [&](std::uint64_t address) {
      return static_cast<std::uint8_t>(flags >> 8 * (address & 7));
    };
    if (fields_.entry != 0)
      step.entry = byte(frame + fields_.entry) != 0;
    step.generator = byte(owner) == kOwnedByGenerator;
    step.shim = fields_.entry == 0 && byte(owner) >= kOwnedByInterpreter;
  } else if (word(frame + fields_.generator, flags)) {
    step.generator = flags != 0;
  }
  if (with_instruction && !step.shim)
    word(frame + fields_.instruction, step.instruction);
  if (caller == frame)
    return std::nullopt;
  return step;
}

bool Python::read_steps(std::uint64_t state) {
  std::uint64_t frame = 0;
  if (!word(state + fields_.frame, frame))
    return false;
  if (fields_.through >= 0 && frame != 0 &&
      !word(frame + static_cast<std::uint64_t>(fields_.through), frame))
    return false;
  steps_.clear();
  bool has_instruction = false;
  while (frame != 0 && steps_.size() < kMostFrames) {
    const bool with_instruction = fields_.instruction != 0 && (all_lines_ || !has_instruction);
    const std::optional<Step> step = read_step(frame, with_instruction);
    if (!step)
      return false;
    has_instruction |= step->instruction != 0;
    steps_.push_back(*step);
    frame = step->caller;
  }
  return true;
}

Python::Reading Python::name_steps(std::vector<PythonFrame>& out) {
  read_codes();
  std::size_t kept = 0;
  bool is_being_made = false;
  for (const Step& step : steps_) {
    if (step.shim) {
      if (!out.empty())
        out.back().entry = true;
      continue;
    }
    const PythonCode* code = code_at(step.code);
    const bool may_be_being_made = fields_.entry == 0 && fields_.owner != 0 && out.empty();
    if (code == nullptr && may_be_being_made) {
      is_being_made = true;
      continue;
    }
    if (code == nullptr)
      return Reading::kTorn;
    out.push_back({code, step.entry});
    steps_[kept++] = step;
  }
  steps_.resize(kept);
  if (!out.empty())
    return Reading::kRead;
  // From 3.14 on the frame of a generator that has ended has no code, and no caller.
  return is_being_made ? Reading::kTorn : Reading::kNone;
}

// Frames first, as fast as they can be read: the program runs on meanwhile. Then what they are of.
Python::Reading Python::walk(std::uint64_t state,
                             std::vector<PythonFrame>& out,
                             std::uint64_t& outermost) {
  if (!read_steps(state))
    return Reading::kTorn;
  const bool is_deep = !steps_.empty() && steps_.back().caller != 0;  // more is not asked for
  outermost = is_deep || steps_.empty() ? 0 : steps_.back().frame;
  const Reading named = name_steps(out);
  if (named != Reading::kRead)
    return named;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t code_begin = steps_[i].code + fields_.bytes;
    if (steps_[i].instruction <= code_begin)
      continue;
    out[i].line = wire::cpython::line_at(
        out[i].code->lines, out[i].code->line, steps_[i].instruction - code_begin);
  }
  const Step& last = steps_.back();
  if (!is_deep && outermost == last.frame && last.generator) {
    if (yielded_.empty())
      yielded_ = out, yielder_ = last;
    return Reading::kTorn;
  }
  out.back().entry = true;
  return Reading::kRead;
}

void Python::join_generator(std::vector<PythonFrame>& out) {
  constexpr std::size_t kMostGenerators = 4096, kMostCallers = 16;
  const auto is_caller = [](const std::vector<std::uint64_t>& callers, std::uint64_t code) {
    return std::ranges::find(callers, code) != callers.end();
  };
  if (callers_.size() > kMostGenerators)
    callers_.clear();
  for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
    if (!steps_[i].generator)
      continue;
    auto& callers = callers_[steps_[i].code];
    if (callers.size() < kMostCallers && !is_caller(callers, steps_[i + 1].code))
      callers.push_back(steps_[i + 1].code);
  }
  if (yielded_.empty())
    return;
  const auto callers = callers_.find(yielder_.code);
  if (callers == callers_.end())
    return;
  std::size_t caller = steps_.size();
  for (std::size_t i = steps_.size(); i-- > 0;) {
    if (steps_[i].frame == yielder_.frame)
      return;  // it runs again
    if (is_caller(callers->second, steps_[i].code))
      caller = i;
  }
  if (caller == steps_.size())
    return;
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(caller));
  out.front().line = 0;
  out.insert(out.begin(), yielded_.begin(), yielded_.end());
}

}  // namespace rangescope::sample::cpu
