// Trace tables of nsys stats, one row an event, put together into a timeline.
//
// Each table knows a part of the recording:
//
//   nvtx_pushpop_trace    every push/pop range: name, start, end, process, thread
//   nvtx_gpu_proj_trace   ranges of both kinds that caused GPU work, and no others
//   cuda_gpu_trace        kernels, copies and sets with device, context and stream, but not who
//   launched them cuda_kern_exec_trace  kernels with the call that launched them, process and
//   thread, but no stream cuda_api_trace        every call, with the correlation id that
//   cuda_gpu_trace has too
//
// They are joined as the recording has it: GPU work of cuda_gpu_trace gets its call from
// cuda_kern_exec_trace by start, end and name, else from cuda_api_trace by correlation id, which is
// unique only within a process: where several processes have a fitting call, none is taken. What no
// table says is absent, and a loss names the table that would say it. O(n log n).
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/session.hpp"
#include "read/index.hpp"
#include "read/nsys/csv/header.hpp"

namespace rangescope::read::nsys_csv {

class Traces {
 public:
  explicit Traces(model::Session& session) : s_(session) {}

  /// False when a cell that the table lives by is not what it should be. `range_in_name`: kernel
  /// names begin with "range/" (the argument nvtx-name of the report).
  bool add(Table table, const Row& row, bool range_in_name);
  /// A range's name as tables of sums write it, always with the domain in front.
  void add_full_name(std::string_view name) { full_names_.emplace(name); }
  /// What the last printed digit of the coarsest time column is worth; 1 is exact.
  [[nodiscard]] double resolution_ns() const;
  [[nodiscard]] bool empty() const {
    return ranges_.empty() && works_.empty() && executions_.empty() && calls_.empty();
  }
  /// Builds the timeline in the session. Call it once.
  void finish();

 private:
  struct RangeRow {
    std::int64_t start, end;
    model::StringId name;  ///< domain and name in one
    std::uint32_t pid, tid;
    std::uint32_t level;
    std::int64_t id;
    model::RangeKind kind;
    bool projected;     ///< of nvtx_gpu_proj_trace
    std::int64_t span;  ///< on the GPU, -1 where unknown
  };
  enum class What : std::uint8_t { kKernel, kCopy, kMemset };
  struct WorkRow {
    std::int64_t start, end;
    model::StringId name, device;
    std::uint32_t ordinal, context, stream, shape;
    std::int64_t correlation;
    std::uint64_t bytes;
    What what;
  };
  struct ExecutionRow {
    std::int64_t call_start, call_end, start, end;
    model::StringId name, function;
    std::uint32_t pid, tid, ordinal, shape;
    std::uint32_t matched;  ///< on the first of those that are alike: how many belong to work
  };
  struct CallRow {
    std::int64_t start, end;
    model::StringId name;
    std::uint32_t pid, tid;
    std::int64_t correlation;
    std::uint32_t launch;
  };
  /// The finest resolution seen in a column.
  struct Finest {
    double ns = std::numeric_limits<double>::infinity();
  };

  /// What tables of ranges share: time, name, process, thread, level and id.
  [[nodiscard]] bool read_range(const Row& row,
                                std::string_view start,
                                std::string_view duration,
                                RangeRow& out);
  bool add_range(const Row& row);
  bool add_projection(const Row& row);
  bool add_work(const Row& row, bool range_in_name);
  bool add_execution(const Row& row, bool range_in_name);
  bool add_call(const Row& row);
  bool span(const Row& row,
            std::string_view start,
            std::string_view duration,
            std::int64_t& start_ns,
            std::int64_t& end_ns);
  model::StringId kernel_name(std::string_view name, bool range_in_name);

  std::uint32_t process(std::uint32_t pid);
  std::uint32_t process_of_nobody();
  std::uint32_t thread(std::uint32_t pid, std::uint32_t tid);
  std::uint32_t stream(std::uint32_t process,
                       std::uint32_t ordinal,
                       model::StringId device,
                       std::uint32_t context,
                       std::uint32_t id);
  std::uint32_t launch(CallRow& call);
  std::uint32_t launch(const ExecutionRow& execution, std::int64_t correlation);
  [[nodiscard]] static std::string_view word_in_call(What what);
  CallRow* call_of(const WorkRow& work);
  ExecutionRow* execution_of(const WorkRow& work);
  void extend(std::uint32_t process, std::int64_t from, std::int64_t to);
  void drop_duplicate_ranges();
  void finish_ranges();
  void finish_works();
  model::LaunchKind add_to_session(const WorkRow& work, std::uint32_t launch, std::uint32_t stream);
  void finish_executions();
  void reopen_ranges();
  void finish_calls();
  void add_losses();
  void lose(model::LossKind kind, std::uint64_t count, std::string detail);

  model::Session& s_;
  Index index_{s_};
  std::size_t recorded_ = 0;  ///< processes that tables name
  std::vector<RangeRow> ranges_;
  std::vector<WorkRow> works_;
  std::vector<ExecutionRow> executions_;
  std::vector<CallRow> calls_;
  std::set<std::string, std::less<>> full_names_;
  std::map<std::uint64_t, model::StringId> thread_names_;
  std::map<std::tuple<std::uint64_t, std::int64_t, std::int64_t>, std::uint32_t>
      launch_of_;                                                ///< thread, start, end
  Table table_ = Table::kNone;                                   ///< of the row that is added
  std::map<std::pair<Table, std::string_view>, Finest> finest_;  ///< by its columns of times
  std::uint64_t unknown_work_ = 0, rounded_bytes_ = 0, ambiguous_ = 0, uncalled_ = 0,
                whole_graphs_ = 0;
  bool range_table_ = false, projection_table_ = false;
};

}  // namespace rangescope::read::nsys_csv
