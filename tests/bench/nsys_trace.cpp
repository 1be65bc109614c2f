// Writes an Nsight Systems SQLite export (schema 3.0.0) of any size, as an inference server would
// leave one.
//
//   nsys_trace OUT.sqlite KERNELS [SEED]
//
// Two processes, three threads: requests (start/end) hold prefill and decode, these hold 32 layers
// of 8 to 11 kernels; the second process uses registered strings in a domain, an outer range that
// never ends, and graph launches. Correlation ids start anew in each process and have gaps. One row
// in 10,000 stands in the wrong order, as in real exports.
#include <sqlite3.h>

#include <algorithm>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t limit) {  // splitmix64
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::uint32_t>(((z ^ (z >> 31)) >> 32) * limit >> 32);
  }

 private:
  std::uint64_t state_;
};

constexpr std::int64_t kHost = std::int64_t{1} << 48;
constexpr const char* kApis[] = {"cudaLaunchKernel_v7000",
                                 "cudaMemcpyAsync_v3020",
                                 "cudaStreamSynchronize_v3020",
                                 "cudaEventRecord_v3020",
                                 "cudaGraphLaunch_v10000"};
enum { kLaunch, kCopy, kSync, kEvent, kGraph };
constexpr int kKernelNames = 200;

struct Call {
  std::int64_t start, end;
  std::int64_t correlation;
  int thread, name;
};
struct Kernel {
  std::int64_t start, end;
  std::int64_t correlation;
  int thread, name;
  std::int64_t node;
};
struct Event {
  std::int64_t start, end;
  int type, thread, name;
};

/// One thread of the server, with a clock of its own.
class Thread {
 public:
  Thread(int index,
         std::int64_t& correlation,
         std::vector<Call>& calls,
         std::vector<Kernel>& kernels,
         std::vector<Event>& events,
         std::uint64_t seed)
      : index_(index),
        correlation_(correlation),
        calls_(calls),
        kernels_(kernels),
        events_(events),
        random_(seed),
        now_(100'000'000 + index * 7'000'000) {}

  void serve(std::size_t kernels) {
    const std::size_t until = kernels_.size() + kernels;
    if (index_ == 2)
      events_.push_back({now_, -1, 59, index_, 39});
    while (kernels_.size() < until) {
      const std::size_t request = open(60, 36);
      step(37, 1);
      for (std::uint32_t i = 32 + random_.below(128); i > 0 && kernels_.size() < until; --i)
        step(38, i);
      close(request);
    }
  }

 private:
  std::size_t open(int type, int name) {
    events_.push_back({now_, now_, type, index_, name});
    now_ += 200 + random_.below(600);
    return events_.size() - 1;
  }
  void close(std::size_t event) {
    events_[event].end = now_;
    now_ += 200 + random_.below(600);
  }
  std::int64_t call(int name, std::int64_t duration) {
    correlation_ += 1 + random_.below(9);
    calls_.push_back({now_, now_ + duration, correlation_, index_, name});
    now_ += duration + 300 + random_.below(2500);
    return correlation_;
  }
  void kernel(std::int64_t correlation, std::int64_t node) {
    gpu_ = (gpu_ > now_ ? gpu_ : now_) + 900;
    const std::int64_t duration = 1500 + 32 * random_.below(600);
    kernels_.push_back({gpu_,
                        gpu_ + duration,
                        correlation,
                        index_,
                        static_cast<int>(random_.below(kKernelNames)),
                        node});
    gpu_ += duration;
  }
  void step(int name, std::uint32_t turn) {
    const std::size_t range = open(59, name);
    if (index_ == 2 && turn % 16 == 15) {
      const std::int64_t graph = call(kGraph, 9000);
      for (int i = 0; i < 288; ++i)
        kernel(graph, (std::int64_t{7} << 32) + i);
    } else {
      for (int layer = 0; layer < 32; ++layer) {
        const std::size_t inner = open(59, layer);
        for (std::uint32_t i = 8 + random_.below(4); i > 0; --i)
          kernel(call(kLaunch, 2200 + random_.below(3500)), 0);
        if (random_.below(2) == 0)
          call(kEvent, 900);
        close(inner);
      }
    }
    call(kCopy, 3000);
    call(kSync, gpu_ > now_ ? gpu_ - now_ : 1500);
    close(range);
  }

  int index_;
  std::int64_t& correlation_;
  std::vector<Call>& calls_;
  std::vector<Kernel>& kernels_;
  std::vector<Event>& events_;
  Random random_;
  std::int64_t now_, gpu_ = 0;
};

class Database {
 public:
  explicit Database(const char* path) {
    std::remove(path);
    if (sqlite3_open(path, &db_) != SQLITE_OK)
      die();
    run("pragma journal_mode=off; pragma synchronous=off; begin");
  }
  ~Database() {
    run("commit");
    sqlite3_close(db_);
  }
  void run(const std::string& sql) {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      die();
  }
  /// Runs `insert` for each element; `bind` gives the values, a negative one at a position in
  /// `nulls` is NULL.
  template <class T, class Bind>
  void rows(const std::string& insert, const std::vector<T>& from, Bind&& bind) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, insert.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      die();
    Random random(5);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool swap = i + 1 < from.size() && random.below(10'000) == 0;
      for (const std::size_t at : {swap ? i + 1 : i, i}) {
        int column = 0;
        bind(from[at], [&](std::int64_t value, bool null = false) {
          null ? sqlite3_bind_null(statement, ++column)
               : sqlite3_bind_int64(statement, ++column, value);
        });
        if (sqlite3_step(statement) != SQLITE_DONE)
          die();
        sqlite3_reset(statement);
        if (!swap)
          break;
      }
      if (swap)
        ++i;
    }
    sqlite3_finalize(statement);
  }

 private:
  void die() {
    std::fprintf(stderr, "nsys_trace: %s\n", sqlite3_errmsg(db_));
    std::exit(1);
  }
  sqlite3* db_ = nullptr;
};

std::int64_t global_tid(int thread) {
  const std::int64_t pid = thread == 2 ? 4243 : 4242;
  return kHost | pid << 24 | (thread == 1 ? 4310 : pid);
}

template <class T>
void by_start(std::vector<T>& rows) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < rows.size(); ++i)
    order.emplace_back(rows[i].start, i);
  std::sort(order.begin(), order.end());
  std::vector<T> sorted;
  sorted.reserve(rows.size());
  for (const auto& [start, i] : order)
    sorted.push_back(rows[i]);
  rows.swap(sorted);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "nsys_trace OUT.sqlite KERNELS [SEED]\n");
    return 64;
  }
  const auto total = static_cast<std::size_t>(std::atoll(argv[2]));
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::vector<Call> calls;
  std::vector<Kernel> kernels;
  std::vector<Event> events;
  std::int64_t correlations[2] = {100, 100};
  for (int thread = 0; thread < 3; ++thread) {
    const std::size_t share = thread == 0   ? total * 6 / 10
                              : thread == 1 ? total / 10
                                            : total - total * 6 / 10 - total / 10;
    Thread(thread,
           correlations[thread / 2],
           calls,
           kernels,
           events,
           seed * 1000 + static_cast<std::uint64_t>(thread))
        .serve(share);
  }
  by_start(calls);
  by_start(kernels);
  by_start(events);

  Database out(argv[1]);
  out.run("create table StringIds(id integer not null primary key, value text not null)");
  const auto string = [&](int id, const std::string& text) {
    out.run("insert into StringIds values(" + std::to_string(id) + ", '" + text + "')");
  };
  for (int i = 0; i < 5; ++i)
    string(i + 1, kApis[i]);
  for (int i = 0; i < kKernelNames; ++i) {
    const std::string n = std::to_string(i);
    string(100 + i,
           "void ns::kernel_" + n + "<__nv_bfloat16, (int)" + n +
               ", (bool)1>(T1 const *, T1 *, int, int)");
    string(400 + i, "kernel_" + n);
  }
  const auto name_of = [](int name) -> std::string {
    return name < 32    ? "layer_" + std::to_string(name)
           : name == 36 ? "request"
           : name == 37 ? "prefill"
           : name == 38 ? "decode"
                        : "serve";
  };
  for (int name = 0; name < 40; ++name)
    string(700 + name, name_of(name));
  out.run(
      "create table NVTX_EVENTS(start integer not null, end integer, eventType integer not null, "
      "rangeId integer, "
      "category integer, color integer,"
      "text text, globalTid integer, endGlobalTid integer, textId integer, domainId integer, "
      "uint64Value integer, "
      "int64Value integer, doubleValue real,"
      "uint32Value integer, int32Value integer, floatValue real, jsonTextId integer, jsonText "
      "text)");
  out.run(
      "insert into NVTX_EVENTS(start, eventType, text, globalTid, domainId) values(1, 75, 'LLM', " +
      std::to_string(global_tid(2)) + ", 1)");
  for (const bool registered : {false, true}) {
    std::vector<Event> part;
    for (const Event& event : events) {
      if ((event.thread == 2) == registered)
        part.push_back(event);
    }
    const std::string text =
        registered ? "null, ?4" : "(select value from StringIds where id = ?4), null";
    out.rows(
        "insert into NVTX_EVENTS(start, end, eventType, text, textId, globalTid, domainId) "
        "values(?1, ?2, ?3, " +
            text + ", ?5, ?6)",
        part,
        [](const Event& e, auto put) {
          put(e.start);
          put(e.end, e.end < 0);
          put(e.type);
          put(700 + e.name);
          put(global_tid(e.thread));
          put(e.thread == 2 ? 1 : 0);
        });
  }
  out.run(
      "create table CUPTI_ACTIVITY_KIND_RUNTIME(start integer not null, end integer not null, "
      "eventClass integer not "
      "null, globalTid integer,"
      "correlationId integer, nameId integer not null, returnValue integer not null, callchainId "
      "integer)");
  out.rows("insert into CUPTI_ACTIVITY_KIND_RUNTIME values(?, ?, 0, ?, ?, ?, 0, null)",
           calls,
           [](const Call& c, auto put) {
             put(c.start);
             put(c.end);
             put(global_tid(c.thread));
             put(c.correlation);
             put(c.name + 1);
           });
  out.run(
      "create table CUPTI_ACTIVITY_KIND_KERNEL(start integer not null, end integer not null, "
      "deviceId integer not "
      "null, contextId integer not null,"
      "streamId integer not null, correlationId integer, globalPid integer, demangledName integer "
      "not null, shortName "
      "integer not null, mangledName integer,"
      "launchType integer, cacheConfig integer, registersPerThread integer not null, gridX integer "
      "not null, gridY "
      "integer not null, gridZ integer not null,"
      "blockX integer not null, blockY integer not null, blockZ integer not null, "
      "staticSharedMemory integer not null, "
      "dynamicSharedMemory integer not null,"
      "localMemoryPerThread integer not null, localMemoryTotal integer not null, gridId integer "
      "not null, "
      "sharedMemoryExecuted integer, graphNodeId integer,"
      "sharedMemoryLimitConfig integer)");
  std::int64_t grid = 0;
  out.rows(
      "insert into CUPTI_ACTIVITY_KIND_KERNEL values(?, ?, ?, 1, ?, ?, ?, ?, ?, null, 1, 1, ?, ?, "
      "1, 1, 128, 1, 1, "
      "16896, 0, 0, 104857600, ?, 32768, ?, 0)",
      kernels,
      [&](const Kernel& k, auto put) {
        put(k.start);
        put(k.end);
        put(k.thread / 2);
        put(k.thread == 1 ? 13 : 7);
        put(k.correlation);
        put(global_tid(k.thread) & ~std::int64_t{0xffffff});
        put(100 + k.name);
        put(400 + k.name);
        put(32 + k.name % 96);
        put(1 + k.name % 16);
        put(++grid);
        put(k.node, k.node == 0);
      });
  std::printf(
      "%zu kernels, %zu calls, %zu NVTX events\n", kernels.size(), calls.size(), events.size());
  return 0;
}
