#include "report/formats/tables/tables.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace rangescope::report::tables {
namespace tables_test {

/// Keeps every table as text: values of a row joined by commas, rows by newlines.
class TextStore : public Store {
 public:
  using Columns = std::vector<TableColumn>;
  base::Result<std::unique_ptr<Rows>> begin(std::string_view table,
                                            const Columns& columns) override {
    columns_[std::string(table)] = columns.size();
    return std::make_unique<TextRows>(text_[std::string(table)]);
  }
  [[nodiscard]] const std::string& operator[](const char* table) { return text_[table]; }
  [[nodiscard]] std::size_t columns(const char* table) { return columns_[table]; }

 private:
  class TextRows : public Rows {
   public:
    explicit TextRows(std::string& out) : out_(out) {}
    void integer(std::int64_t value) override { text(std::to_string(value)); }
    void real(double value) override { text(std::to_string(value)); }
    void text(std::string_view value) override { out_.append(value).append(","); }
    void null() override { text("NULL"); }
    base::Result<void> end() override {
      out_ += '\n';
      return {};
    }
    base::Result<void> finish() override { return {}; }

   private:
    std::string& out_;
  };

  std::map<std::string, std::string> text_;
  std::map<std::string, std::size_t> columns_;
};

model::Session session() {
  model::Session s;
  s.processes.push_back({.pid = 7});
  s.threads.push_back({.process = 0, .tid = 8});
  s.devices.push_back({.process = 0, .ordinal = 2});
  s.streams.push_back({.process = 0, .device = 0, .context = 1, .id = 13});
  s.launches.push_back({.start_ns = 10, .end_ns = 20});
  model::MemoryEvent allocation;
  allocation.at_ns = 20;
  allocation.address = 4096;
  allocation.bytes = 64;
  allocation.process = allocation.thread = allocation.device = allocation.launch = 0;
  allocation.kind = model::MemoryKind::kDevice;
  model::MemoryEvent free;
  free.at_ns = 30;
  free.process = 0;
  free.pool = 5;
  free.operation = model::MemoryOperation::kFree;
  s.memory_events = {allocation, free};
  s.event_calls.push_back({.event = 9, .launch = 0, .stream = 0});
  const auto synchronize = model::EventOperation::kSynchronize;
  s.event_calls.push_back({.event = 9, .launch = 0, .operation = synchronize});
  model::Copy copy;
  copy.kind = model::CopyKind::kHostToDevice;
  copy.source = model::MemoryKind::kPageable;
  s.copies.push_back(copy);
  return s;
}

TEST(Tables, MemoryEventsAndEventCallsAreRows) {
  const model::Session s = session();
  const model::Report report;
  const model::Places places;
  TextStore store;
  ASSERT_TRUE(write_tables({report, s, places}, store, [](std::string_view) { return true; }));
  EXPECT_EQ(store.columns("memory_events"), 12u);
  EXPECT_EQ(store["memory_events"],
            "0,allocate,device,64,20,7,8,2,NULL,0,4096,NULL,\n"
            "1,free,NULL,0,30,7,NULL,NULL,NULL,NULL,0,5,\n");
  EXPECT_EQ(store.columns("event_calls"), 5u);
  EXPECT_EQ(store["event_calls"], "0,record,9,7,13,\n0,synchronize,9,7,NULL,\n");
  EXPECT_EQ(store["copies"], "0,1,0,0,0,7,2,13,NULL,pageable,NULL,\n");
}

}  // namespace tables_test
}  // namespace rangescope::report::tables
