#include "sample/cpu/python.hpp"

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/process_tree.hpp"
#include "base/text.hpp"
#include "sample/blocks.hpp"

namespace rangescope::sample::cpu {
namespace {

constexpr int kMostWalks = 8;
constexpr std::size_t kMostFrames = 512, kMostThreads = 4096;
/// For one sample. 512 frames take some 1,000 reads; after a sample that came to a bound, none for
/// so many times as long as it took.
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
  const auto at = name.find("3.");
  return at == std::string_view::npos ? 0 : std::atoi(std::string(name.substr(at + 2, 2)).c_str());
}

}  // namespace

std::unique_ptr<Python> Python::find(const Space& space, std::uint32_t pid, Unread& unread) {
  const Module* module = nullptr;
  const auto unreadable = [&] {
    const bool has_ended = errno == ESRCH, is_not_mapped_yet = errno == EFAULT;
    if (has_ended || is_not_mapped_yet)
      return nullptr;
    unread = {"the memory of a Python cannot be read (process_vm_readv: " +
                  std::string(std::strerror(errno)) + ")",
              module};
    return nullptr;
  };
  for (const auto& [start, area] : space.areas()) {
    const std::string_view path = area.module->path;
    const std::string_view name = base::file_name(path);
    if (!name.starts_with("python") && !name.starts_with("libpython"))
      continue;
    if (area.module->tables() == nullptr)
      continue;
    Tables& tables = *area.module->tables();
    const Tables::Symbol runtime = tables.symbol("_PyRuntime"),
                         loop = tables.symbol("_PyEval_EvalFrameDefault");
    if (runtime.address == 0 || loop.address == 0)
      continue;  // the program of a Python whose code is in its library
    module = area.module;
    const std::uint64_t bias = start - tables.address_of(area.offset);
    std::unique_ptr<Python> python(new Python);
    python->pid_ = base::living_thread(pid);
    python->begin();
    python->module_ = area.module;
    python->runtime_ = bias + runtime.address;
    python->runtime_bytes_ = runtime.size;
    python->loop_ = bias + loop.address;
    python->loop_end_ = python->loop_ + std::max<std::uint64_t>(loop.size, 1);
    if (const auto cold = tables.symbol("_PyEval_EvalFrameDefault.cold"); cold.address != 0) {
      python->cold_ = bias + cold.address;
      python->cold_end_ = python->cold_ + std::max<std::uint64_t>(cold.size, 1);
    }
    if (const auto type = tables.symbol("PyCode_Type"); type.address != 0)
      python->code_type_ = bias + type.address;
    int minor = minor_of(path);
    if (const auto number = tables.symbol("Py_Version"); number.address != 0) {  // 0x030d00f0
      std::uint64_t value = 0;
      if (!python->read(bias + number.address, &value, sizeof value))
        return unreadable();
      minor = static_cast<int>(value >> 16 & 0xff);
    }
    python->minor_ = minor;
    python->version_ = "3." + std::to_string(minor);
    namespace known = wire::cpython;
    if (minor < known::kFirst || minor > known::kLast) {
      unread = {"Python " + (minor == 0 ? std::string("of an unknown version") : python->version_) +
                    " is not known",
                module};
      return nullptr;
    }
    if (minor >= known::kFirstThatPublishes) {
      char offsets[known::kDebugOffsets];
      if (!python->read(python->runtime_, offsets, sizeof offsets))
        return unreadable();
      if (std::memcmp(offsets, "xdebugpy", 8) != 0)
        return nullptr;  // it has not begun
      python->fields_ = known::published(offsets, minor);
    } else {
      python->fields_ = known::kFields[minor - known::kFirst];
    }
    std::uint64_t first = 0;
    if (!python->read(python->runtime_ + python->fields_.heads, &first, sizeof first))
      return unreadable();
    if (first == 0)
      return nullptr;
    if (python->cold_ == 0)
      python->find_cold(tables, bias);
    return python;
  }
  return nullptr;
}

// What a compiler takes for seldom (gcc 16: nearly all of the loop) lies apart. Debian's Pythons
// have no symbol for it: it is where the loop's jumps lead to, if not to the begin of a function.
void Python::find_cold(Tables& tables, std::uint64_t bias) {
#if defined(__x86_64__)
  std::string code(std::min<std::uint64_t>(loop_end_ - loop_, 1 << 20), '\0');
  if (!read(loop_, code.data(), code.size()))
    return;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> jumps;
  for (std::size_t i = 0; i + 6 <= code.size(); ++i) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(code[at]); };
    const bool always = byte(i) == 0xe9,
               sometimes = byte(i) == 0x0f && (byte(i + 1) & 0xf0) == 0x80;
    if (!always && !sometimes)
      continue;
    const std::size_t next = i + (always ? 5 : 6);
    std::int32_t distance = 0;
    std::memcpy(&distance, code.data() + next - sizeof distance, sizeof distance);
    const std::uint64_t to = loop_ + next + static_cast<std::uint64_t>(std::int64_t{distance});
    if (to >= loop_ && to < loop_end_)
      continue;
    const auto part = tables.part(to - bias);
    if (part.first != 0 && part.first != to - bias)
      ++jumps[part];
  }
  const auto most = std::ranges::max_element(
      jumps, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == jumps.end() || most->second < 4)
    return;
  cold_ = bias + most->first.first;
  cold_end_ = bias + most->first.second;
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

std::uint64_t Python::thread_state(std::uint32_t own_tid) {
  const auto is = [&](std::uint64_t state) {
    std::uint64_t number = 0;
    if (fields_.native_id != 0)
      return word(state + fields_.native_id, number) && number == own_tid;
    std::uint32_t tid = 0;
    return word(state + fields_.thread_id, number) && number != 0 &&
           read(number + kGlibcThreadNumber, &tid, sizeof tid) && tid == own_tid;
  };
  if (const auto known = threads_.find(own_tid); known != threads_.end()) {
    const Known& last = known->second;
    if (last.state == 0 ? began_ns_ < last.until_ns : is(last.state))
      return last.state;
    threads_.erase(known);
  }
  std::uint64_t interpreter = 0, found = 0;
  std::size_t left = kMostThreads;  // and interpreters
  for (bool more = word(runtime_ + fields_.heads, interpreter);
       more && interpreter != 0 && left-- > 0 && found == 0;
       more = word(interpreter + fields_.next_interpreter, interpreter)) {
    std::uint64_t state = 0, back = 0;
    for (bool any = word(interpreter + fields_.threads, state);
         any && state != 0 && left > 0 && --left > 0;
         any = word(state + fields_.next_thread, state)) {
      if (!word(state + fields_.interpreter, back) || back != interpreter)
        break;
      if (!is(state))
        continue;
      found = state;
      break;
    }
  }
  if (threads_.size() > kMostKnownThreads)
    threads_.clear();
  threads_[own_tid] = {found, began_ns_ + kLookAgain_ns};
  return found;
}

// The wait is for a condition behind the lock's interval (in microseconds), last holder, state and
// number of switches: where two words before it look like the first two, and the second is a
// thread's, that is the holder.
std::uint32_t Python::gil_holder(std::uint64_t futex) {
  page_ = 1;
  begin();
  for (std::uint64_t at = (futex & ~std::uint64_t{7}) - 64; at >= (futex & ~std::uint64_t{7}) - 96;
       at -= 8) {
    std::uint64_t interval = 0, holder = 0, interpreter = 0, back = 0, number = 0;
    if (!word(at, interval) || interval == 0 || interval > 100'000'000 || !word(at + 8, holder) ||
        holder == 0)
      continue;
    if (!word(holder + fields_.interpreter, interpreter) ||
        !word(interpreter + fields_.threads, back))
      continue;
    for (std::size_t left = kMostThreads; back != 0 && back != holder && left > 0; --left)
      if (!word(back + fields_.next_thread, back))
        back = 0;
    if (back != holder)
      continue;
    if (fields_.native_id != 0)
      return word(holder + fields_.native_id, number) ? static_cast<std::uint32_t>(number) : 0;
    std::uint32_t tid = 0;
    return word(holder + fields_.thread_id, number) &&
                   read(number + kGlibcThreadNumber, &tid, sizeof tid)
               ? tid
               : 0;
  }
  return 0;
}

bool Python::text(std::uint64_t address, std::size_t most, std::string& out) {
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
  if (length > most || !compact || (kind != 1 && kind != 2 && kind != 4))
    return false;
  std::string bytes(length * kind, '\0');
  if (!bytes.empty() &&
      !read(address + (ascii ? fields_.ascii : fields_.compact), bytes.data(), bytes.size()))
    return false;
  out.clear();
  for (std::size_t i = 0; i < length; ++i) {
    std::uint32_t point = 0;
    std::memcpy(&point, bytes.data() + i * kind, kind);
    const int more = point < 0x80      ? 0
                     : point < 0x800   ? 1
                     : point < 0x10000 ? 2
                                       : 3;  // bytes behind the first
    constexpr unsigned char kFirst[] = {0, 0xc0, 0xe0, 0xf0};
    out +=
        static_cast<char>(kFirst[more] | (point >> 6 * more & (more == 0 ? 0x7fu : 0x3fu >> more)));
    for (int left = more; left-- > 0;)
      out += static_cast<char>(0x80 | (point >> 6 * left & 0x3f));
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
  const auto at = std::lower_bound(addresses_.begin(), addresses_.end(), address);
  if (at == addresses_.end() || *at != address)
    return nullptr;
  const char* object =
      objects_.data() + static_cast<std::size_t>(at - addresses_.begin()) * object_bytes_;
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
  auto& known = codes_[address];
  if (known && texts == std::pair(file, name) && known->line == line)
    return known.get();
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
  if (known) {  // its address holds another code now, and nothing of it is true any more
    noted_callers_.clear();
    by_instruction_.erase(known->begin);
    old_codes_.push_back(std::move(known));
  }
  texts = {file, name};
  known = std::move(code);
  if (known->end > known->begin)
    by_instruction_[known->begin] = known.get();
  return known.get();
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
  std::uint64_t before = 0;
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
    std::uint64_t& known = outermost_[own_tid];
    if (outermost == known || outermost == before) {
      known = outermost;
      join_generator(out);
      return reading;
    }
    before = outermost;
  }
  out.clear();
  return Reading::kTorn;
}

// Frames first, as fast as they can be read: the program runs on meanwhile. Then what they are of.
Python::Reading Python::walk(std::uint64_t state,
                             std::vector<PythonFrame>& out,
                             std::uint64_t& outermost) {
  std::uint64_t frame = 0;
  bool has_instruction = false;
  if (!word(state + fields_.frame, frame))
    return Reading::kTorn;
  if (fields_.through >= 0 && frame != 0 &&
      !word(frame + static_cast<std::uint64_t>(fields_.through), frame))
    return Reading::kTorn;
  steps_.clear();
  while (frame != 0 && steps_.size() < kMostFrames) {
    std::uint64_t code = 0, previous = 0, flags = 0;
    if (!word(frame + fields_.code, code) || !word(frame + fields_.previous, previous))
      return Reading::kTorn;
    Step step{frame, code & ~std::uint64_t{3}, fields_.owner == 0};  // code is tagged since 3.14
    if (fields_.owner != 0) {  // before 3.11 each frame is a call of the loop
      const std::uint64_t at = frame + fields_.owner;
      if (!word(at & ~std::uint64_t{7}, flags))
        return Reading::kTorn;
      const auto byte = [&](std::uint64_t address) {
        return static_cast<std::uint8_t>(flags >> 8 * (address & 7));
      };
      if (fields_.entry != 0)
        step.entry = byte(frame + fields_.entry) != 0;
      step.generator = byte(at) == kOwnedByGenerator;
      step.shim = fields_.entry == 0 && byte(at) >= kOwnedByInterpreter;
    } else if (word(frame + fields_.generator, flags)) {
      step.generator = flags != 0;
    }
    if (fields_.instruction != 0 && !step.shim && (all_lines_ || !has_instruction)) {
      word(frame + fields_.instruction, step.instruction);
      has_instruction |= step.instruction != 0;
    }
    if (previous == frame)
      return Reading::kTorn;
    steps_.push_back(step);
    frame = previous;
  }
  const bool deep = frame != 0;  // deeper than that is not asked for
  outermost = deep || steps_.empty() ? 0 : steps_.back().frame;
  read_codes();
  std::size_t kept = 0;
  bool unknown = false;
  for (const Step& step : steps_) {
    if (step.shim) {
      if (!out.empty())
        out.back().entry = true;
      continue;
    }
    const PythonCode* known = code_at(step.code);
    if (known == nullptr && fields_.entry == 0 && fields_.owner != 0 &&
        out.empty()) {  // it is being made
      unknown = true;
      continue;
    }
    if (known == nullptr)
      return Reading::kTorn;
    out.push_back({known, step.entry});
    steps_[kept++] = step;
  }
  steps_.resize(kept);
  // From 3.14 on the frame of a generator that has ended has no code, and no caller.
  if (out.empty())
    return unknown ? Reading::kTorn : Reading::kNone;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t code_begin = steps_[i].code + fields_.bytes;
    if (steps_[i].instruction <= code_begin)
      continue;
    out[i].line = wire::cpython::line_at(
        out[i].code->lines, out[i].code->line, steps_[i].instruction - code_begin);
  }
  if (!deep && outermost == steps_.back().frame && steps_.back().generator) {
    if (yielded_.empty())
      yielded_ = out, yielder_ = steps_.back();
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
  const auto callers = yielded_.empty() ? callers_.end() : callers_.find(yielder_.code);
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
