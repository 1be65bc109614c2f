// Programs whose surroundings turn against the recording: `cornered SCENARIO [WORD [COUNT]]`. None
// prints anything that depends on whether a tool is there.
#include <dirent.h>
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string word;
int spaces = 8;

void pairs(int count, const char* name = "pair") {
  for (int i = 0; i < count; ++i) {
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

// ---- the capture is truncated while it is written
// ------------------------------------------------------------------
void truncate_captures(off_t size) {
  const char* folder = getenv("RANGESCOPE_DIR");
  DIR* all = folder == nullptr ? nullptr : opendir(folder);
  if (all == nullptr)
    return;
  while (const dirent* entry = readdir(all)) {
    const std::string path = std::string(folder) + "/" + entry->d_name;
    if (path.ends_with(".rstrace") && truncate(path.c_str(), size) != 0)
      std::puts("cannot truncate");
  }
  closedir(all);
}

int truncated() {
  pairs(1000, "before");
  std::thread other([] {
    pairs(10);
    truncate_captures(std::atoi(word.c_str()));
    pairs(100000);
  });
  other.join();
  pairs(100000);
  return 7;
}

// ---- SIGBUS of the program's own
// -----------------------------------------------------------------------------------
int own_bus_error() {
  pairs(1);
  char name[] = "/tmp/cornered-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  volatile char* at =
      static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  if (word == "handled") {
    struct sigaction action = {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      _exit(info->si_code == BUS_ADRERR ? 21 : 22);
    };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
  }
  if (word == "sent")
    kill(getpid(), SIGBUS);
  if (word == "ignored") {
    signal(SIGBUS, SIG_IGN);
    kill(getpid(), SIGBUS);
    return 23;
  }
  at[0] = 1;
  return 0;
}

// A handler that was there before the recording.
int earlier_handler() {
  signal(SIGBUS, [](int) { _exit(24); });
  return own_bus_error();
}

// ---- seccomp filters
// ------------------------------------------------------------------------------------------------
bool forbid(std::initializer_list<int> calls, unsigned answer) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Kills for what a program that only computes and prints does without.
bool forbid_files() {
  return forbid({SYS_openat,
                 SYS_fallocate,
                 SYS_ftruncate,
                 SYS_fstatfs,
                 SYS_unlinkat,
                 SYS_symlinkat,
#ifdef __x86_64__
                 SYS_open,
                 SYS_creat,
                 SYS_unlink,
                 SYS_symlink,
                 SYS_mkdir,
                 SYS_access,
#endif
                 SYS_mkdirat,
                 SYS_faccessat,
                 SYS_readlinkat,
                 SYS_pwrite64},
                SECCOMP_RET_KILL_PROCESS);
}

// What qemu-user answers to a second map of what is mapped.
int no_second_map() {
  if (!forbid({SYS_mremap}, SECCOMP_RET_ERRNO | ENOMEM))
    return 77;
  nvtxInitialize(nullptr);  // by two threads at once, NVTX's own begin is a race
  std::thread other([] { pairs(100000); });
  pairs(100000);
  other.join();
  return 9;
}

int filtered() {
  nvtxInitialize(nullptr);
  if (!forbid_files())
    return 77;
  std::thread other([] { pairs(100000); });
  pairs(100000);
  other.join();
  nvtxDomainHandle_t domain = nvtxDomainCreateA("late");
  nvtxDomainRegisterStringA(domain, "string");
  return 9;
}

int filtered_fork() {
  pairs(1);
  if (!forbid_files())
    return 77;
  const pid_t child = fork();
  if (child == 0) {
    pairs(5, "child");
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  pairs(1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

// ---- children that may no longer write where the captures are
// ----------------------------------------------------------- After another root (word "root") or
// another user: three children, one after the other.
int away() {
  pairs(1);
  const bool gone = word == "root" ? chroot("/proc/self") == 0 && chdir("/") == 0
                                   : setgid(65534) == 0 && setuid(65534) == 0;
  if (!gone)
    return 77;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      pairs(100, "child");
      _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
      return 100;
  }
  pairs(1);
  return 9;
}

// ---- namespaces of the linker
// --------------------------------------------------------------------------------------
int namespaces() {
  for (int i = 0; i < spaces; ++i) {
    void* client = dlmopen(LM_ID_NEWLM, word.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (client == nullptr)
      return 1;
    reinterpret_cast<void (*)(const char*)>(dlsym(client, "client_push"))("inside");
    reinterpret_cast<void (*)()>(dlsym(client, "client_pop"))();
  }
  return 0;
}

int leaf() {
  pairs(1);
  return 5;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return 64;
  if (argc > 2)
    word = argv[2];
  if (argc > 3)
    spaces = std::atoi(argv[3]);
  const std::map<std::string, int (*)()> scenarios = {{"truncated", truncated},
                                                      {"own_bus_error", own_bus_error},
                                                      {"earlier_handler", earlier_handler},
                                                      {"no_second_map", no_second_map},
                                                      {"filtered", filtered},
                                                      {"filtered_fork", filtered_fork},
                                                      {"away", away},
                                                      {"namespaces", namespaces},
                                                      {"leaf", leaf}};
  const auto scenario = scenarios.find(argv[1]);
  return scenario == scenarios.end() ? 64 : scenario->second();
}
