// The floor of every reader that goes through the SQLite library: steps over the columns that
// attribution needs, in one thread, and does nothing with them. Prints seconds. Usage: sqlite_scan
// FILE
#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2)
    return 64;
  const auto begin = std::chrono::steady_clock::now();
  sqlite3* database = nullptr;
  if (sqlite3_open_v2(argv[1], &database, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
    return 66;
  const char* const kQueries[] = {
      "select start, end, deviceId, streamId, correlationId, globalPid, demangledName, shortName, "
      "graphNodeId from "
      "CUPTI_ACTIVITY_KIND_KERNEL",
      "select start, end, globalTid, correlationId, nameId from CUPTI_ACTIVITY_KIND_RUNTIME",
      "select start, end, eventType, rangeId, text, globalTid, endGlobalTid, textId, domainId from "
      "NVTX_EVENTS"};
  std::uint64_t sum = 0;
  for (const char* const query : kQueries) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, query, -1, &statement, nullptr) != SQLITE_OK)
      return 65;
    const int columns = sqlite3_column_count(statement);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      for (int i = 0; i < columns; ++i) {
        if (sqlite3_column_type(statement, i) == SQLITE_TEXT)
          sum += *sqlite3_column_text(statement, i);
        else
          sum += static_cast<std::uint64_t>(sqlite3_column_int64(statement, i));
      }
    }
    sqlite3_finalize(statement);
  }
  std::printf("%.3f\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  std::fprintf(stderr, "sum %llu\n", static_cast<unsigned long long>(sum));
  return sqlite3_close(database);
}
