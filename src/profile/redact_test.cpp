#include "profile/redact.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/sqlite.hpp"
#include "base/temporary_folder.hpp"

namespace rangescope::profile {
namespace redact_test {

namespace fs = std::filesystem;

/// An export of nsys with the tables that a test makes.
class Export : public testing::Test {
 protected:
  void execute(const std::string& sql) {
    if (!fs::exists(file())) {
      const auto created = base::Database::create(file());
      ASSERT_TRUE(created && created->execute("create table ANALYSIS_DETAILS (id)"));
    }
    const auto database = base::Database::open_write(file());
    ASSERT_TRUE(database);
    const auto done = database->execute(sql);
    ASSERT_TRUE(done) << base::to_string(done.error());
  }
  std::vector<std::string> values(const std::string& sql) {
    std::vector<std::string> texts;
    const auto database = base::Database::open_readonly(file());
    auto rows = database->prepare(sql);
    EXPECT_TRUE(rows);
    while (rows && rows->step().value_or(false))
      texts.emplace_back(rows->text(0));
    return texts;
  }
  [[nodiscard]] fs::path file() const { return folder_.path() / "a.sqlite"; }
  [[nodiscard]] bool holds(std::string_view secret) const {
    return base::read_file(file()).value_or("").find(secret) != std::string::npos;
  }

  base::TemporaryFolder folder_{"rangescope-redact"};
};

TEST_F(Export, AnEnvironmentAmongTheStringsIsOverwritten) {
  execute("create table StringIds (id, value)");
  execute("insert into StringIds values (1, 'step'), (2, cast(x'413D7365637265740042' as text))");
  execute("insert into StringIds values (3, 'PATH=/bin A=b C=d TOKEN=secret2')");
  execute("insert into StringIds values (4, 'loss=0.5, lr=0.1')");
  ASSERT_TRUE(redact_nsys_export(file()));
  EXPECT_EQ(values("select value from StringIds order by id"),
            (std::vector<std::string>{
                "step", "<redacted environment>", "<redacted environment>", "loss=0.5, lr=0.1"}));
  EXPECT_FALSE(holds("secret"));
}

// One range may well be called so.
TEST_F(Export, AFewAssignmentsAreNoEnvironment) {
  execute("create table StringIds (id, value)");
  execute("insert into StringIds values (1, 'PATH=/bin A=b C=d')");
  ASSERT_TRUE(redact_nsys_export(file()));
  EXPECT_EQ(values("select value from StringIds"), std::vector<std::string>{"PATH=/bin A=b C=d"});
}

TEST_F(Export, TheDevicesEnvironmentIsOverwrittenAndItsNameIsNot) {
  execute("create table TARGET_INFO_SYSTEM_ENV (name, value)");
  execute("insert into TARGET_INFO_SYSTEM_ENV values ('DeviceEnvironment', 'A=secret')");
  execute("insert into TARGET_INFO_SYSTEM_ENV values ('CpuCores', '8')");
  ASSERT_TRUE(redact_nsys_export(file()));
  EXPECT_EQ(values("select value from TARGET_INFO_SYSTEM_ENV order by name"),
            (std::vector<std::string>{"8", "<redacted>"}));
  EXPECT_FALSE(holds("secret"));
}

// 2023.4.4 has a row for each variable of the launched program.
TEST_F(Export, VariablesOfTheLaunchedProgramAreOverwritten) {
  execute("create table META_DATA_CAPTURE (name, value)");
  execute("insert into META_DATA_CAPTURE values ('LAUNCH:ENVIRONMENT:KEY', 'secret')");
  execute("insert into META_DATA_CAPTURE values ('LAUNCH:COMMAND', 'app')");
  ASSERT_TRUE(redact_nsys_export(file()));
  EXPECT_EQ(values("select value from META_DATA_CAPTURE order by name"),
            (std::vector<std::string>{"app", "<redacted>"}));
}

TEST_F(Export, PagesThatWereFreedHoldNothingOfIt) {
  execute("create table StringIds (id, value)");
  execute("create table Dropped (value)");
  execute("insert into Dropped values ('PATH=/bin;TOKEN=secret')");
  execute("drop table Dropped");
  ASSERT_TRUE(redact_nsys_export(file()));
  EXPECT_FALSE(holds("secret"));
}

TEST_F(Export, AFileThatIsNoneIsAnError) {
  EXPECT_TRUE(base::write_file(file(), "no database at all, but long enough to be read as one"));
  EXPECT_FALSE(redact_nsys_export(file()));
  EXPECT_FALSE(redact_nsys_export(folder_.path() / "not-there.sqlite"));
}

TEST(Snapshots, OneThatCannotBeReadIsRemovedWithAWarning) {
  const base::TemporaryFolder folder("rangescope-snapshots");
  const fs::path below = folder.path() / "window-1";
  fs::create_directory(below);
  EXPECT_TRUE(base::write_file(below / "7.memory", "no pickle"));
  EXPECT_TRUE(base::write_file(below / "7.rstrace", "kept"));
  testing::internal::CaptureStderr();
  redact_snapshots(folder.path(), base::Redactor());
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(fs::exists(below / "7.memory"));
  EXPECT_TRUE(fs::exists(below / "7.rstrace"));
  EXPECT_NE(warning.find("a memory snapshot was removed"), std::string::npos) << warning;
}

}  // namespace redact_test
}  // namespace rangescope::profile
