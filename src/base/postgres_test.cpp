#include "base/postgres.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "base/temporary_folder.hpp"

namespace rangescope::base {
namespace postgres_test {

using namespace std::chrono_literals;

/// A message of PostgreSQL's protocol, version 3.
std::string message(char type, const std::string& body) {
  const auto size = static_cast<std::uint32_t>(body.size() + 4);
  std::string out(1, type);
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(size >> shift);
  return out + body;
}
std::string text(const char* body, std::size_t size) {
  return {body, size};
}
const std::string kWelcome = message('R', text("\0\0\0\0", 4)) + message('Z', "I");
const std::string kOneField =
    message('T', text("\0\1x\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0", 22));
const std::string kRow = message('D', text("\0\1\0\0\0\1t", 7));
const std::string kBegun = message('1', "") + message('2', "") + kOneField;
const std::string kEnd = message('C', text("SELECT 1\0", 9)) + message('Z', "I");

/// Takes one connection, and sends `welcome` when it begins and `answer` to whatever comes next;
/// each `more` follows until nobody takes it.
class Server {
 public:
  Server(std::string welcome, std::string answer, std::string more = {})
      : thread_([this,
                 welcome = std::move(welcome),
                 answer = std::move(answer),
                 more = std::move(more)] {
          const int connection = ::accept(listener_, nullptr, nullptr);
          char buffer[65536];
          if (::read(connection, buffer, sizeof buffer) > 0 && send(connection, welcome) &&
              !answer.empty() && ::read(connection, buffer, sizeof buffer) > 0)
            send(connection, answer);
          while (!more.empty() && send(connection, more)) {
          }
          while (::read(connection, buffer, sizeof buffer) > 0) {
          }
          ::close(connection);
        }) {}
  ~Server() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "postgresql:///x?host=" + folder_.path().string(); }

 private:
  static bool send(int connection, const std::string& bytes) {
    return ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  int listen() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_.path() / ".s.PGSQL.5432";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    return listener;
  }
  TemporaryFolder folder_{"rangescope-postgres"};
  int listener_ = listen();
  std::thread thread_;
};

class PostgresTest : public testing::Test {
  void SetUp() override {
    void* library = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      GTEST_SKIP() << "no libpq";
    ::dlclose(library);
  }
};

const Postgres::Limits kShort{.connect = 200ms, .silence = 200ms, .answer = 1s, .bytes = 1 << 20};
const Postgres::Limits kPatient{.bytes = 1 << 20};

std::string failure(const Server& server, const Postgres::Limits& limits) {
  const auto there = Postgres::connect(server.url(), limits);
  if (!there)
    return there.error().what;
  const auto row = there->row("select true", {}, 1);
  return row ? row->front().value_or("NULL") : row.error().what;
}

TEST_F(PostgresTest, ARowIsTaken) {
  EXPECT_EQ(failure({kWelcome, kBegun + kRow + kEnd}, kPatient), "t");
}

TEST_F(PostgresTest, AServerThatNeverAnswersIsLeft) {
  EXPECT_EQ(failure({"", ""}, kShort), "no connection: the server does not answer");
  EXPECT_EQ(failure({kWelcome, kBegun}, kShort), "the server does not answer");
}

TEST_F(PostgresTest, AServerThatFloodsIsLeft) {
  const std::string notice = message('N', text("SNOTICE\0C00000\0Mx\0\0", 19)),
                    many = "the server sends more than";
  const std::string setting = message('S', text("a\0b\0", 4));
  const std::string welcome = kWelcome.substr(0, 9);
  EXPECT_NE(failure({welcome, "", notice}, kPatient).find(many), std::string::npos);
  EXPECT_NE(failure({welcome, "", setting}, kPatient).find(many), std::string::npos);
  EXPECT_NE(failure({kWelcome, kBegun, notice}, kPatient).find(many), std::string::npos);
  EXPECT_NE(failure({kWelcome, kBegun, kRow}, kPatient).find(many), std::string::npos);
  // One row of a gigabyte, or so it says.
  EXPECT_NE(
      failure({kWelcome, kBegun + text("D\x3f\0\0\0\0\1\x3e\0\0\0", 11), std::string(4096, 'x')},
              kPatient)
          .find(many),
      std::string::npos);
}

TEST_F(PostgresTest, AnAnswerHasTheRowsAndFieldsThatWereAsked) {
  EXPECT_EQ(failure({kWelcome, kBegun + kEnd}, kPatient),
            "the server answers with 0 rows, not one");
  EXPECT_EQ(failure({kWelcome, kBegun + kRow + kRow + kEnd}, kPatient),
            "the server answers with 2 rows, not one");
  const std::string none = message('1', "") + message('2', "") + message('T', text("\0\0", 2));
  EXPECT_EQ(failure({kWelcome, none + message('D', text("\0\0", 2)) + kEnd}, kPatient),
            "the server answers with 0 fields, not 1");
  EXPECT_EQ(failure({kWelcome, message('H', text("\0\0\0", 3))}, kPatient),
            "the server gives no rows");
}

}  // namespace postgres_test
}  // namespace rangescope::base
