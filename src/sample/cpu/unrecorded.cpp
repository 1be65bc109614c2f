#include "sample/cpu/unrecorded.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/elf_file.hpp"
#include "base/fs.hpp"
#include "base/process_memory.hpp"
#include "base/process_tree.hpp"
#include "base/text.hpp"
#include "sample/cpu/target.hpp"
#include "wire/names.hpp"

namespace rangescope::sample::cpu {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstLook_ns = 2'000'000, kLongestInterval_ns = 1'000'000'000;
/// A build starts thousands of programs: those after the first ones are not looked at.
constexpr std::size_t kMostPrograms = 4096, kMostExecutables = 64, kMostNamed = 64;
constexpr std::size_t kMostSearched = 256u << 20;
/// NVTX 3 is a header: every file that uses it holds the name of this variable.
constexpr std::string_view kMarker = wire::kNvtxInjection;

std::string proc(std::uint32_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

std::uint32_t effective_user(std::uint32_t pid) {
  struct stat status {};
  if (::stat(proc(pid, "").c_str(), &status) != 0)
    return ::geteuid();
  return status.st_uid;
}

/// Reads it piece by piece: somebody may truncate the file meanwhile.
bool contains_marker(int file) {
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  constexpr std::size_t kPiece = 1u << 20;
  const std::size_t overlap = kMarker.size() - 1;
  std::string piece(kPiece, '\0');
  for (std::size_t offset = 0; offset < kMostSearched; offset += kPiece - overlap) {
    const ssize_t bytes = ::pread(file, piece.data(), piece.size(), static_cast<off_t>(offset));
    if (bytes <= 0)
      return false;
    const std::string_view read(piece.data(), static_cast<std::size_t>(bytes));
    if (read.find(kMarker) != std::string_view::npos)
      return true;
    if (read.size() <= overlap)
      return false;
  }
  return false;
}

/// The bytes of a string, up to its end or that of its page.
std::string string_at(std::uint32_t pid, std::uint64_t address) {
  char text[4096];
  const std::size_t to_page_end = 4096 - address % 4096;
  if (!base::read_memory(pid, address, text, to_page_end))
    return {};
  return {text, ::strnlen(text, to_page_end)};
}

bool has_complete_program(std::uint32_t pid) {
  const auto process = static_cast<pid_t>(pid);
  const auto thread = base::thread_at(process, base::living_thread(process));
  return thread && thread->has_program;
}

std::string called(const std::string& name, std::uint32_t pid) {
  return name + " (process " + std::to_string(pid) + ") ";
}

}  // namespace

struct Unrecorded::SearchedFile {
  int file = -1;
  dev_t device = 0;
  ino_t inode = 0;
  bool is_static = false, is_rangescope = false;
  std::optional<bool> uses_nvtx;

  SearchedFile() = default;
  SearchedFile(const SearchedFile&) = delete;
  SearchedFile& operator=(const SearchedFile&) = delete;
  ~SearchedFile() {
    if (file >= 0)
      ::close(file);
  }
};

struct Unrecorded::Program {
  std::uint32_t pid = 0;
  std::string name = "a program";
  std::int64_t next_look_ns = 0, interval_ns = kFirstLook_ns;
  bool has_library = false, has_nvtx_2 = false, has_cuda = false, is_hidden = false;
  bool knows_environment = false;
  std::optional<std::string> injection;  ///< what it is to load, by its environment
  std::uint32_t user = 0;
  SearchedFile* executable = nullptr;
  std::set<std::string> libraries;
};

Unrecorded::Unrecorded(fs::path library, fs::path captures)
    : library_(std::move(library)),
      captures_(std::move(captures)),
      search_interval_ns_(kFirstLook_ns) {}
Unrecorded::Unrecorded(Unrecorded&&) noexcept = default;
Unrecorded::~Unrecorded() = default;

void Unrecorded::executed(std::uint32_t pid, std::int64_t now_ns) {
  if (programs_.size() >= kMostPrograms)
    return;
  auto& program = *programs_.emplace_back(std::make_unique<Program>());
  program.pid = pid;
  running_[pid] = &program;
  read_environment(program);
  open_executable(program);
  read_name(program);
  look_at(program, now_ns);
}

void Unrecorded::look(std::int64_t now_ns) {
  if (now_ns >= next_search_ns_) {
    for (const Member& member : members_of(static_cast<std::uint32_t>(::getpid()), true))
      if (member.pid != static_cast<std::uint32_t>(::getpid()) && !running_.contains(member.pid))
        executed(member.pid, now_ns);
    search_interval_ns_ = std::min(2 * search_interval_ns_, kLongestInterval_ns);
    next_search_ns_ = now_ns + search_interval_ns_;
  }
  for (auto entry = running_.begin(); entry != running_.end();) {
    Program& program = *entry->second;
    const bool is_due = now_ns >= program.next_look_ns;
    const bool has_ended = is_due && ::access(proc(program.pid, "").c_str(), F_OK) != 0;
    if (is_due && !has_ended)
      look_at(program, now_ns);
    entry = has_ended ? running_.erase(entry) : std::next(entry);
  }
}

void Unrecorded::look_at(Program& program, std::int64_t now_ns) {
  if (executes_another(program))
    return executed(program.pid, now_ns);
  if (!program.knows_environment) {
    read_environment(program);
    read_name(program);
  }
  program.interval_ns = std::min(2 * program.interval_ns, kLongestInterval_ns);
  program.next_look_ns = now_ns + program.interval_ns;
  program.user = effective_user(program.pid);
  program.is_hidden = program.is_hidden || is_hidden_from(program.pid);
  if (program.has_library)
    return;
  std::vector<MappedFile> files;
  maps_of(program.pid, [&](const Mapped& mapped) {
    if (mapped.path.starts_with('/'))
      files.push_back({std::string(mapped.path), mapped.start, mapped.offset});
  });
  const bool has_ended = files.empty();
  if (has_ended || executes_another(program))
    return;
  program.libraries.clear();
  for (const MappedFile& mapped : files) {
    const std::string_view file = base::file_name(mapped.path);
    program.has_library = program.has_library || file == library_.filename().string();
    program.has_nvtx_2 = program.has_nvtx_2 || file.starts_with("libnvToolsExt.so");
    program.has_cuda = program.has_cuda || file.starts_with("libcuda.so");
    program.libraries.insert(mapped.path);
  }
  // A program may set the variable itself before its first range.
  if (const auto injection = current_injection(program, files))
    program.injection = injection;
}

/// Behind its environment and executable: execve() replaces these first.
void Unrecorded::read_name(Program& program) {
  if (const auto name = base::read_file(proc(program.pid, "comm")))
    program.name = base::printable(base::trim(*name));
}

void Unrecorded::read_environment(Program& program) {
  auto environment = base::read_file(proc(program.pid, "environ"));
  // In execve() a process has no environment yet, as one that is started with none. Where its
  // program is complete by now, reading again shows which of the two it was.
  if (environment && environment->empty()) {
    if (!has_complete_program(program.pid))
      return;
    environment = base::read_file(proc(program.pid, "environ"));
  }
  if (!environment)
    return;
  program.knows_environment = true;
  program.injection.reset();
  for (const std::string_view entry : base::split(*environment, '\0')) {
    const auto value = base::value_of(entry, kMarker);
    if (!value)
      continue;
    program.injection = *value;
    break;  // as getenv() does
  }
}

/// Its executable is not the one that it had, although no record says that it executed another.
bool Unrecorded::executes_another(const Program& program) {
  struct stat status {};
  return program.executable != nullptr && ::stat(proc(program.pid, "exe").c_str(), &status) == 0 &&
         (status.st_dev != program.executable->device ||
          status.st_ino != program.executable->inode);
}

/// Where libc keeps the list of the program's variables; 0 where that is unknown.
std::uint64_t Unrecorded::address_of_environment(std::uint32_t pid,
                                                 const std::vector<MappedFile>& files) {
  std::error_code error;
  const std::string executable = fs::read_symlink(proc(pid, "exe"), error).string();
  std::uint64_t in_libc = 0;
  for (const MappedFile& mapped : files) {
    const bool is_executable = mapped.path == executable;
    const bool is_libc = base::file_name(mapped.path).starts_with("libc.so.6");
    Tables* const tables = is_executable || is_libc ? tables_of(mapped.path, pid) : nullptr;
    if (tables == nullptr)
      continue;
    for (const char* name : {"environ", "__environ"}) {
      const std::uint64_t symbol = tables->symbol(name).address;
      if (symbol == 0)
        continue;
      const std::uint64_t address = mapped.start - tables->address_of(mapped.offset) + symbol;
      // An executable that uses the variable has a copy of it, which replaces libc's.
      if (is_executable)
        return address;
      in_libc = address;
    }
  }
  return in_libc;
}

/// The variable as the program has it now; nothing where that cannot be read.
std::optional<std::string> Unrecorded::current_injection(const Program& program,
                                                         const std::vector<MappedFile>& files) {
  const std::uint64_t variables = address_of_environment(program.pid, files);
  std::uint64_t list = 0;
  if (variables == 0 || !base::read_memory(program.pid, variables, &list, sizeof list) || list == 0)
    return std::nullopt;
  constexpr std::size_t kMostVariables = 4096;
  for (std::size_t i = 0; i < kMostVariables; ++i) {
    std::uint64_t address = 0;
    const std::uint64_t entry_at = list + i * sizeof address;
    if (!base::read_memory(program.pid, entry_at, &address, sizeof address))
      return std::nullopt;
    if (address == 0)
      break;
    const std::string entry = string_at(program.pid, address);
    if (const auto value = base::value_of(entry, kMarker))
      return std::string(*value);
  }
  return std::nullopt;
}

/// The folder for captures, or the library, is not what we see there.
bool Unrecorded::is_hidden_from(std::uint32_t pid) const {
  for (const fs::path& path : {captures_, library_}) {
    struct stat ours {
    }, theirs{};
    if (::stat(path.c_str(), &ours) != 0)
      continue;
    if (::stat((proc(pid, "root") + path.string()).c_str(), &theirs) != 0) {
      if (errno == ENOENT && ::access(proc(pid, "root").c_str(), X_OK) == 0)
        return true;
      continue;
    }
    if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
      return true;
  }
  return false;
}

void Unrecorded::open_executable(Program& program) {
  const int file = ::open(proc(program.pid, "exe").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return;
  struct stat status {};
  const bool is_known = ::fstat(file, &status) == 0;
  for (const auto& executable : executables_)
    if (is_known && executable->device == status.st_dev && executable->inode == status.st_ino)
      program.executable = executable.get();
  if (program.executable != nullptr || executables_.size() >= kMostExecutables) {
    ::close(file);
    return;
  }
  auto& executable = *executables_.emplace_back(std::make_unique<SearchedFile>());
  executable.file = file;
  executable.device = status.st_dev;
  executable.inode = status.st_ino;
  executable.is_static = base::ElfFile(::dup(file)).is_static();
  struct stat own {};
  const bool is_rangescope = ::stat("/proc/self/exe", &own) == 0 && own.st_dev == status.st_dev &&
                             own.st_ino == status.st_ino;
  executable.is_rangescope = is_rangescope;
  program.executable = &executable;
}

bool Unrecorded::uses_nvtx(const Program& program) {
  if (program.executable != nullptr) {
    auto& in_executable = program.executable->uses_nvtx;
    if (!in_executable)
      in_executable = contains_marker(program.executable->file);
    if (*in_executable)
      return true;
  }
  return std::ranges::any_of(program.libraries, [&](const std::string& library) {
    const auto [entry, is_new] = searched_libraries_.try_emplace(library, false);
    bool& has_marker = entry->second;
    const bool is_ours = base::file_name(library).starts_with("librangescope");
    if (!is_new || is_ours)
      return has_marker;
    const int file = ::open(library.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    has_marker = contains_marker(file);
    if (file >= 0)
      ::close(file);
    return has_marker;
  });
}

std::optional<UnrecordedProgram> Unrecorded::reason_of(const Program& program) {
  const bool is_other_user = program.user != ::geteuid() && program.user != 0;
  const bool is_static = program.executable != nullptr && program.executable->is_static;
  const bool is_named =
      program.injection && base::file_name(*program.injection) == library_.filename().string();
  const bool has_wrong_environment = program.knows_environment && !is_named;
  const auto because = [&](const char* kind, const std::string& what) {
    return UnrecordedProgram{kind, program.pid, called(program.name, program.pid) + what};
  };
  const auto by_place = [&]() -> std::optional<UnrecordedProgram> {
    if (program.is_hidden)
      return because("hidden_run_folder",
                     "does not see " + captures_.string() + ": it has a file system of its own");
    if (is_other_user)
      return because("other_user",
                     "ran as user " + std::to_string(program.user) +
                         ", who may not write into the run folder");
    return std::nullopt;
  };
  if (program.executable != nullptr && program.executable->is_rangescope)
    return std::nullopt;
  if (program.has_library)
    return by_place();
  const bool is_suspicious = has_wrong_environment || is_other_user || program.is_hidden ||
                             is_static || program.has_nvtx_2;
  if (!is_suspicious)
    return std::nullopt;
  const bool has_nvtx_3 = uses_nvtx(program);
  if (!has_nvtx_3 && !program.has_nvtx_2 && !program.has_cuda)
    return std::nullopt;
  if (has_wrong_environment && !program.injection)
    return because(
        "cleared_environment",
        "started without " + std::string(kMarker) + ": its environment was cleared or replaced");
  if (has_wrong_environment)
    return because("replaced_injection",
                   "had " + std::string(kMarker) + "=" + base::printable(*program.injection) +
                       " in place of rangescope's library");
  if (auto reason = by_place())
    return reason;
  if (program.has_nvtx_2 && !has_nvtx_3)
    return because("nvtx_2_program",
                   "calls NVTX 2 (libnvToolsExt.so), which loads no library of NVTX 3");
  if (is_static && has_nvtx_3)
    return because("static_program", "is linked statically and loaded no library");
  return std::nullopt;
}

std::vector<UnrecordedProgram> Unrecorded::reasons() {
  std::vector<UnrecordedProgram> found;
  for (const auto& program : programs_) {
    if (found.size() >= kMostNamed)
      break;
    auto reason = reason_of(*program);
    if (!reason)
      continue;
    // A search may see a program before the record of its execve() comes.
    const auto is_same = [&](const UnrecordedProgram& other) {
      return other.kind == reason->kind && other.sentence == reason->sentence;
    };
    if (std::ranges::none_of(found, is_same))
      found.push_back(std::move(*reason));
  }
  return found;
}

Tables* Unrecorded::tables_of(const std::string& path, std::uint32_t pid) {
  constexpr std::size_t kMostTables = 64;
  const auto entry = tables_.find(path);
  if (entry != tables_.end())
    return entry->second.get();
  if (tables_.size() >= kMostTables)
    return nullptr;
  return tables_.emplace(path, Tables::open(path, pid)).first->second.get();
}

}  // namespace rangescope::sample::cpu
