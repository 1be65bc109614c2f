#include "read/nsys/sqlite/btree.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <random>

#include "base/fs.hpp"
#include "base/sqlite.hpp"
#include "read/nsys/sqlite/source.hpp"

namespace rangescope::read::nsys_sqlite {
namespace btree_test {

/// A database file that goes away with the test.
class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("btree_" + std::to_string(::getpid()) + ".sqlite")) {}
  ~Scratch() {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"})
      std::filesystem::remove(path_.string() + suffix);
  }
  base::Database create(const std::string& pragmas = {}) {
    auto database = base::Database::create(path_);
    EXPECT_TRUE(database);
    EXPECT_TRUE(database->execute(pragmas));
    return std::move(*database);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string show(const Value* values, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const Value& v = values[i];
    switch (v.type) {
      case Type::kNull: out += "null"; break;
      case Type::kInteger: out += "i" + std::to_string(v.bits); break;
      case Type::kReal: out += "r" + std::to_string(v.bits); break;
      case Type::kText: out += "t" + std::string(v.text()); break;
      case Type::kBlob: out += "b" + std::string(v.text()); break;
    }
    out += '|';
  }
  return out;
}

struct Read {
  std::vector<std::string> rows;
  std::string through;
};

/// Columns a, b, c, d and one that no table has.
Read read(const std::filesystem::path& path, bool pages) {
  auto source = Source::open(path);
  EXPECT_TRUE(source);
  if (!pages)
    source->forget_pages();
  const Table* table = source->find("t");
  EXPECT_NE(table, nullptr);
  Read out;
  const Scanned scanned = source->scan(
      *table,
      "c a nowhere b d",
      [&](std::size_t) { out.rows.clear(); },
      [&](const Value* row) { out.rows.push_back(show(row, 5)); });
  EXPECT_FALSE(scanned.damage);
  out.through = scanned.through;
  return out;
}

void fill(base::Database& database, std::uint32_t seed, int rows, std::size_t longest) {
  std::mt19937 random(seed);
  ASSERT_TRUE(database.execute("begin"));
  auto insert = database.prepare("insert into t(a, b, c, d) values(?, ?, ?, ?)");
  ASSERT_TRUE(insert);
  const auto some = [&](int index) {
    switch (random() % 8) {
      case 0: return insert->bind_null(index);
      case 1: return insert->bind(index, static_cast<std::int64_t>(random() % 3));
      case 2:
        return insert->bind(index,
                            static_cast<std::int64_t>(random()) - std::int64_t{1} - 0x7fffffff);
      case 3:
        return insert->bind(
            index,
            static_cast<std::int64_t>((std::uint64_t{random()} << 32 | random()) >> random() % 64));
      case 4: return insert->bind(index, -static_cast<std::int64_t>(random() % 70000));
      case 5: return insert->bind(index, static_cast<double>(random()) / 7);
      default: {
        std::string text(random() % 10 == 0 ? random() % longest : random() % 20, ' ');
        for (char& c : text)
          c = static_cast<char>(random());
        insert->bind(index, std::string_view(text));
      }
    }
  };
  for (int i = 0; i < rows; ++i) {
    for (int column = 1; column <= 4; ++column)
      some(column);
    (void)
        insert->step();  // a key may collide: then the row is not there, for either way of reading
    insert->reset();
  }
  ASSERT_TRUE(database.execute("commit"));
}

void expect_equal(const std::filesystem::path& path, const std::string& through) {
  const Read pages = read(path, true), library = read(path, false);
  EXPECT_EQ(pages.rows, library.rows);
  EXPECT_EQ(pages.through, through);
  EXPECT_FALSE(library.rows.empty());
}

TEST(Btree, RandomTablesEqualTheLibrary) {
  std::uint32_t seed = 1;
  for (const char* page_size : {"512", "1024", "4096", "65536"}) {
    for (const char* columns : {"a, b, c, d",
                                "a integer primary key, b text, c real, d blob",
                                "a int, b, c double, d integer not null",
                                "d real, c integer primary key, b, a numeric"}) {
      Scratch scratch;
      {
        base::Database database = scratch.create(std::string("pragma page_size=") + page_size);
        ASSERT_TRUE(database.execute(std::string("create table t(") + columns + ")"));
        fill(database, seed++, 3000, 9000);
        ASSERT_TRUE(database.execute("delete from t where rowid % 7 = 3"));
      }
      expect_equal(scratch.path(), "pages");
    }
  }
}

TEST(Btree, NegativeAndHugeRowids) {
  Scratch scratch;
  {
    base::Database database = scratch.create();
    ASSERT_TRUE(database.execute(
        "create table t(a integer primary key, b, c, d);"
        "insert into t values(-9223372036854775808, 1, 2, 3), (-1, 0, 1, 1), (0, null, 1, 0),"
        "(9223372036854775807, 'x', x'00ff', 1e300)"));
  }
  expect_equal(scratch.path(), "pages");
}

TEST(Btree, AutoVacuumAndReservedBytesArePlain) {
  Scratch scratch;
  {
    base::Database database = scratch.create("pragma auto_vacuum=full");
    ASSERT_TRUE(database.execute("create table t(a, b, c, d)"));
    fill(database, 77, 2000, 5000);
  }
  expect_equal(scratch.path(), "pages");
}

TEST(Btree, ColumnsAddedLaterAreNull) {
  Scratch scratch;
  {
    base::Database database = scratch.create();
    ASSERT_TRUE(database.execute(
        "create table t(a, b); insert into t values(1, 2); alter table t add column c;"
        "alter table t add column d; insert into t values(1, 2, 3, 4)"));
  }
  expect_equal(scratch.path(), "pages");
}

struct Case {
  const char* what;
  const char* pragmas;
  const char* sql;
};

TEST(Btree, WhatIsNotPlainGoesThroughTheLibrary) {
  for (const Case& c :
       {Case{"default value",
             "",
             "create table t(a, b); insert into t values(1, 2); alter table t add column c default "
             "7;"
             "alter table t add column d; insert into t values(1, 2, 3, 4)"},
        Case{"without rowid",
             "",
             "create table t(a primary key, b, c, d) without rowid; insert into t values(1, 2, 3, "
             "4)"},
        Case{"utf-16",
             "pragma encoding='UTF-16le'",
             "create table t(a, b, c, d); insert into t values('x', 'y', 1, 2)"},
        Case{"generated",
             "",
             "create table t(a, b, c as (a + 1), d); insert into t(a, b, d) values(1, 2, 3)"},
        Case{"descending key",
             "",
             "create table t(a integer primary key desc, b, c, d); insert into t values(5, 2, 3, "
             "4)"}}) {
    Scratch scratch;
    {
      base::Database database = scratch.create(c.pragmas);
      ASSERT_TRUE(database.execute(c.sql)) << c.what;
    }
    const Read pages = read(scratch.path(), true), library = read(scratch.path(), false);
    EXPECT_EQ(pages.rows, library.rows) << c.what;
    EXPECT_NE(pages.through, "pages") << c.what;
    EXPECT_FALSE(pages.rows.empty()) << c.what;
  }
}

TEST(Btree, RowsInAWriteAheadLogAreRead) {
  Scratch scratch;
  base::Database database = scratch.create("pragma journal_mode=wal; pragma wal_autocheckpoint=0");
  ASSERT_TRUE(database.execute("create table t(a, b, c, d); insert into t values(1, 2, 3, 4)"));
  const Read pages = read(scratch.path(), true);
  EXPECT_EQ(pages.rows, std::vector<std::string>{"i3|i1|null|i2|i4|"});
}

/// Every page reference, cell pointer and length that a flipped byte can make: no crash, and never
/// more rows than bytes.
TEST(Btree, FlippedBytesAndCuts) {
  Scratch scratch;
  {
    base::Database database = scratch.create("pragma page_size=512");
    ASSERT_TRUE(database.execute("create table t(a, b, c, d)"));
    fill(database, 5, 300, 3000);
  }
  const std::string good = *base::read_file(scratch.path());
  const std::vector<Wanted> wanted{{0}, {1}, {2}, {3}};
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    if (round % 3 == 0) {
      bad.resize(random() % bad.size());
    } else {
      for (int i = 0; i <= round % 4; ++i)
        bad[random() % bad.size()] = static_cast<char>(random());
    }
    Btree tree(std::as_bytes(std::span(bad)));
    std::vector<std::uint32_t> leaves;
    std::size_t rows = 0, bytes = 0;
    if (!tree.unusual().empty() || !tree.leaves(2, leaves))
      continue;
    const bool whole = tree.scan(leaves, wanted, [&](const Value* values) {
      ++rows;
      for (std::size_t i = 0; i < 4; ++i) {
        for (const char byte : values[i].text())
          bytes += static_cast<unsigned char>(byte);
      }
    });
    EXPECT_LE(rows, bad.size());
    EXPECT_EQ(whole, tree.unusual().empty());
  }
}

TEST(Btree, RefusesWithAReason) {
  EXPECT_EQ(Btree(std::as_bytes(std::span(std::string_view("no database")))).unusual(),
            "no SQLite header");
  std::string file(4096, '\0');
  file.replace(0, 16, std::string("SQLite format 3\0", 16));
  file[16] = 3;
  EXPECT_EQ(Btree(std::as_bytes(std::span(file))).unusual(), "page size 768");
}

}  // namespace btree_test
}  // namespace rangescope::read::nsys_sqlite
