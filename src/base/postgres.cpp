#include "base/postgres.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/redact.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

// libpq-fe.h, whose interface has not changed since 9.0: what of it is used.
struct ConnectOption {
  char *keyword, *envvar, *compiled, *val, *label, *dispchar;
  int dispsize;
};
constexpr std::string_view kInsufficientPrivilege = "42501";
constexpr int kConnectionOk = 0, kConnectionBad = 1, kSqlState = 'C', kPrimary = 'M';
constexpr int kPollFailed = 0, kPollReading = 1, kPollWriting = 2, kPollOk = 3;
constexpr int kCommandOk = 1, kTuplesOk = 2, kNonFatal = 6, kFatal = 7, kSingleTuple = 9;

// Result, name behind PQ, arguments.
#define RANGESCOPE_LIBPQ(FUNCTION)                                                 \
  FUNCTION(ConnectOption*, conninfoParse, const char*, char**)                     \
  FUNCTION(void, conninfoFree, ConnectOption*)                                     \
  FUNCTION(void*, connectStartParams, const char* const*, const char* const*, int) \
  FUNCTION(int, connectPoll, void*)                                                \
  FUNCTION(int, socket, const void*)                                               \
  FUNCTION(int, setnonblocking, void*, int)                                        \
  FUNCTION(int, status, const void*)                                               \
  FUNCTION(char*, errorMessage, const void*)                                       \
  FUNCTION(void, finish, void*)                                                    \
  FUNCTION(char*, host, const void*)                                               \
  FUNCTION(char*, port, const void*)                                               \
  FUNCTION(char*, db, const void*)                                                 \
  FUNCTION(void*, setNoticeProcessor, void*, void (*)(void*, const char*), void*)  \
  FUNCTION(int,                                                                    \
           sendQueryParams,                                                        \
           void*,                                                                  \
           const char*,                                                            \
           int,                                                                    \
           const unsigned*,                                                        \
           const char* const*,                                                     \
           const int*,                                                             \
           const int*,                                                             \
           int)                                                                    \
  FUNCTION(int, setSingleRowMode, void*)                                           \
  FUNCTION(int, consumeInput, void*)                                               \
  FUNCTION(int, flush, void*)                                                      \
  FUNCTION(int, isBusy, void*)                                                     \
  FUNCTION(void*, getResult, void*)                                                \
  FUNCTION(int, resultStatus, const void*)                                         \
  FUNCTION(char*, resultErrorField, const void*, int)                              \
  FUNCTION(int, ntuples, const void*)                                              \
  FUNCTION(int, nfields, const void*)                                              \
  FUNCTION(int, getisnull, const void*, int, int)                                  \
  FUNCTION(char*, getvalue, const void*, int, int)                                 \
  FUNCTION(int, getlength, const void*, int, int)                                  \
  FUNCTION(void, clear, void*)

struct Libpq {
  void* library = nullptr;
#define RANGESCOPE_DECLARE(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
  RANGESCOPE_LIBPQ(RANGESCOPE_DECLARE)
#undef RANGESCOPE_DECLARE
};

Result<Libpq> load_libpq() {
  Libpq pq;
  pq.library = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  bool is_complete = pq.library != nullptr;
  const auto bind = [&](auto& function, const char* name) {
    if (!is_complete)
      return;
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(pq.library, name));
    is_complete = function != nullptr;
  };
#define RANGESCOPE_BIND(result, name, ...) bind(pq.name, "PQ" #name);
  RANGESCOPE_LIBPQ(RANGESCOPE_BIND)
#undef RANGESCOPE_BIND
  if (is_complete)
    return pq;
  return fail(Code::kToolMissing,
              "there is no libpq here, which talks to PostgreSQL",
              "libpq.so.5",
              "Install it: apt-get install libpq5");
}

const Result<Libpq>& libpq() {
  static const Result<Libpq> kLibpq = load_libpq();
  return kLibpq;
}

/// libpq's message, on one line, without secrets.
std::string message_of(const char* text) {
  const std::string message(trim(text_or(text, "unknown failure")));
  return printable(redact_text(replace_all(message, "\n", " ")));
}

/// Refuses a URL that libpq does not take or that holds a password. No part of it is repeated: any
/// part may be the password. A password with '/' or '#' in it ends the host early: then an '@'
/// follows, or a port is none. The seconds that its connect_timeout gives, 0 for none.
Result<int> check_address(const std::string& url) {
  const std::string_view behind = std::string_view(url).substr(url.find("://") + 3);
  const auto end = behind.find_first_of("/#");
  const bool late = end != std::string_view::npos &&
                    behind.substr(0, behind.find('?')).find('@', end) < behind.size();
  ConnectOption* options = nullptr;
  if (!late)
    options = libpq()->conninfoParse(url.c_str(), nullptr);
  bool secret = false, sound = options != nullptr;
  std::int64_t seconds = 0;
  for (const ConnectOption* option = options; sound && option->keyword != nullptr; ++option) {
    const std::string_view key = option->keyword, value = text_or(option->val, "");
    secret |= (key == "password" || key == "sslpassword") && !value.empty();
    sound = key != "port" || value.find_first_not_of("0123456789,") == std::string_view::npos;
    if (key == "connect_timeout")
      seconds = std::clamp<std::int64_t>(to_int(value).value_or(0), 0, 3600);
  }
  libpq()->conninfoFree(options);
  if (secret)
    return fail(Code::kUsage,
                "a password does not belong on a command line",
                "postgresql://...",
                "Leave it out of the address, and put it into ~/.pgpass or PGPASSWORD");
  if (sound)
    return static_cast<int>(seconds);
  return fail(Code::kUsage,
              "libpq cannot read this database address",
              "postgresql://...",
              "Write postgresql://user@host:5432/database");
}

/// What a server may still do: it runs out of time, or of bytes.
class Allowance {
 public:
  Allowance(std::chrono::milliseconds whole, std::chrono::milliseconds silence, std::size_t bytes)
      : end_(Clock::now() + whole), silence_(silence), left_(bytes) {}

  /// Waits for the socket. Says why that ended, "" where it is ready.
  std::string wait(int socket, short events) {
    pollfd wanted{socket, events, 0};
    const auto until = std::min(end_, Clock::now() + silence_);
    for (;;) {
      const auto now = Clock::now();
      if (now >= until)
        return "the server does not answer";
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
      const int ready = ::poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
      if (ready < 0 && errno != EINTR)
        return std::string("no answer: ") + std::strerror(errno);
      if (ready > 0)
        break;
    }
    int arrived = 0;
    if (::ioctl(socket, FIONREAD, &arrived) != 0 || arrived < 0)
      arrived = 0;
    if (take(static_cast<std::size_t>(arrived)))
      return "";
    return "the server sends more than an answer can be";
  }
  bool take(std::size_t bytes) {
    const bool enough = bytes <= left_;
    left_ -= std::min(bytes, left_);
    return enough;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
  std::chrono::milliseconds silence_;
  std::size_t left_;
};

/// As PQconnectdb, whose connect_timeout a server that never stops sending outlasts.
std::string finish_connecting(void* connection,
                              const Postgres::Limits& limits,
                              std::chrono::milliseconds patience) {
  Allowance allowance(patience, patience, limits.bytes);
  for (int state = kPollWriting; state != kPollOk;) {
    const auto why =
        allowance.wait(libpq()->socket(connection), state == kPollReading ? POLLIN : POLLOUT);
    if (!why.empty())
      return why;
    state = libpq()->connectPoll(connection);
    if (state == kPollFailed)
      return message_of(libpq()->errorMessage(connection));
  }
  return {};
}

/// Without what may be secret: a socket's folder, or host and port, and the database.
std::string address_text(const std::string& host,
                         const std::string& port,
                         const std::string& database) {
  if (host.starts_with('/'))
    return "postgresql:///" + database + "?host=" + host;
  const std::string with_port = port.empty() ? host : host + ":" + port;
  return "postgresql://" + with_port + "/" + database;
}

Error connection_error(const std::string& message, const std::string& address) {
  const auto says = [&](std::string_view words) {
    return message.find(words) != std::string::npos;
  };
  const bool is_refused =
      says("authentication failed") || says("no password supplied") || says("permission denied");
  std::string hint = "Check that the server runs and is reached";
  if (says("SSL") || says("certificate"))
    hint =
        "Check sslmode and sslrootcert of the address: the server's certificate must come from "
        "that CA";
  Code code = Code::kNoInput;
  if (is_refused) {
    code = Code::kPermission;
    hint = "Put the password into ~/.pgpass or PGPASSWORD";
  }
  return {code, "no connection: " + message, address, std::move(hint)};
}

/// The answer to a query that was sent.
class Answer {
 public:
  /// `fields` as of Postgres::query().
  Answer(void* handle, std::string name, const Postgres::Limits& limits, std::size_t fields)
      : handle_(handle),
        name_(std::move(name)),
        fields_(fields),
        allowed_(limits.answer, limits.silence, limits.bytes),
        rows_allowed_(allowed_) {}

  [[nodiscard]] Result<Postgres::Rows> read() {
    for (;;) {
      TRY(wait());
      const std::unique_ptr<void, void (*)(void*)> result(pq_.getResult(handle_), pq_.clear);
      if (!result)
        break;
      TRY(check_status(result.get()));
      TRY(append_rows(result.get()));
    }
    if (failure_)
      return tl::make_unexpected(std::move(*failure_));
    return std::move(rows_);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> broken(std::string why, Code code = Code::kIo) const {
    return fail(code, std::move(why), name_);
  }

  /// Until the next result is there.
  [[nodiscard]] Result<void> wait() {
    for (int unsent = pq_.flush(handle_); unsent > 0 || pq_.isBusy(handle_) != 0;
         unsent = pq_.flush(handle_)) {
      const int events = unsent > 0 ? POLLIN | POLLOUT : POLLIN;
      const auto why = allowed_.wait(pq_.socket(handle_), static_cast<short>(events));
      if (!why.empty())
        return broken(why);
      if (unsent < 0 || pq_.consumeInput(handle_) == 0)
        return broken(message_of(pq_.errorMessage(handle_)));
    }
    return {};
  }

  [[nodiscard]] Result<void> check_status(void* result) {
    const int status = pq_.resultStatus(result);
    if (status == kNonFatal || status == kFatal)
      failure_ = error_of(result);
    else if (status != kCommandOk && status != kTuplesOk && status != kSingleTuple)
      return broken("the server gives no rows",
                    Code::kBadData);  // it begins to copy, for example, which never ends
    if (status != kSingleTuple && ++ends_ > 1)
      return broken("the server answers twice", Code::kBadData);
    return {};
  }

  [[nodiscard]] Error error_of(void* result) const {
    const char* state = pq_.resultErrorField(result, kSqlState);
    const char* primary = pq_.resultErrorField(result, kPrimary);
    Code code = Code::kBadData;
    if (text_or(state, "") == kInsufficientPrivilege)
      code = Code::kPermission;
    const char* message = text_or(primary, pq_.errorMessage(handle_));
    return {code, message_of(message), name_, {}};
  }

  [[nodiscard]] Result<void> append_rows(void* result) {
    const auto width = static_cast<std::size_t>(std::max(pq_.nfields(result), 0));
    for (int r = 0; r < pq_.ntuples(result); ++r) {
      if (fields_ != 0 && width != fields_)
        return broken("the server answers with " + std::to_string(width) + " fields, not " +
                          std::to_string(fields_),
                      Code::kBadData);
      std::vector<Postgres::Value> row(width);
      std::size_t bytes = sizeof(std::vector<Postgres::Value>);
      for (std::size_t f = 0; f < width; ++f) {
        row[f] = cell(result, r, static_cast<int>(f));
        bytes += sizeof(Postgres::Value) + row[f].value_or("").size();
      }
      if (!rows_allowed_.take(bytes))
        return broken("the server sends more than an answer can be");
      rows_.push_back(std::move(row));
    }
    return {};
  }

  [[nodiscard]] Postgres::Value cell(void* result, int row, int field) const {
    if (pq_.getisnull(result, row, field) != 0)
      return std::nullopt;
    const auto length = static_cast<std::size_t>(pq_.getlength(result, row, field));
    return std::string(pq_.getvalue(result, row, field), length);
  }

  const Libpq& pq_ = *libpq();
  void* handle_;
  std::string name_;
  std::size_t fields_;
  Allowance allowed_, rows_allowed_;
  Postgres::Rows rows_;
  std::optional<Error> failure_;
  int ends_ = 0;  ///< results that are no single rows
};

}  // namespace

void Postgres::Finish::operator()(void* connection) const {
  libpq()->finish(connection);
}

bool Postgres::is_address(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

Result<Postgres> Postgres::connect(const std::string& url, const Limits& limits) {
  if (!libpq())
    return tl::make_unexpected(libpq().error());
  const int seconds = TRY(check_address(url));
  const auto patience = seconds > 0 ? std::chrono::seconds(seconds) : limits.connect;
  // The URL overrides what precedes it. A host that is silent makes room for the next one of the
  // address.
  const std::string silent = std::to_string(patience.count() / 2);
  const char* const keys[] = {
      "tcp_user_timeout", "dbname", "client_encoding", "fallback_application_name", nullptr};
  const char* const values[] = {silent.c_str(), url.c_str(), "UTF8", "rangescope", nullptr};
  Postgres postgres;
  postgres.limits_ = limits;
  postgres.handle_.reset(libpq()->connectStartParams(keys, values, 1));
  void* const handle = postgres.handle_.get();
  if (handle == nullptr)
    return fail(Code::kInternal, "libpq makes no connection");
  libpq()->setNoticeProcessor(
      handle, [](void*, const char*) {}, nullptr);
  const bool begun = libpq()->status(handle) != kConnectionBad;
  std::string failure;
  if (begun)
    failure = finish_connecting(handle, limits, patience);
  else
    failure = message_of(libpq()->errorMessage(handle));
  const std::string host = text_or(libpq()->host(handle), "");
  const std::string port = text_or(libpq()->port(handle), "");
  const std::string database = text_or(libpq()->db(handle), "");
  postgres.name_ = printable(address_text(host, port, database));
  if (!failure.empty() || libpq()->status(handle) != kConnectionOk)
    return tl::make_unexpected(connection_error(failure, postgres.name_));
  libpq()->setnonblocking(handle, 1);
  return postgres;
}

Result<void> Postgres::transaction(const std::function<Result<void>()>& work) const {
  // For the transaction: a pool of connections may give the next one to another server process.
  auto done = query("begin").and_then([&](const Rows&) {
    return query(
        "select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), "
        "pg_catalog.set_config('lock_timeout', '60s', true)");
  });
  const auto worked = done ? work() : Result<void>(fail(std::move(done)));
  auto ended = query(worked ? "commit" : "rollback");
  if (!worked)
    return worked;
  if (!ended)
    return fail(std::move(ended));
  return {};
}

Result<Postgres::Rows> Postgres::query(const std::string& sql,
                                       const std::vector<Value>& values,
                                       std::size_t fields) const {
  const Libpq& pq = *libpq();
  void* const handle = handle_.get();
  std::vector<const char*> texts;
  for (const Value& value : values)
    texts.push_back(value ? value->c_str() : nullptr);
  if (pq.sendQueryParams(handle,
                         sql.c_str(),
                         static_cast<int>(texts.size()),
                         nullptr,
                         texts.data(),
                         nullptr,
                         nullptr,
                         0) == 0)
    return fail(Code::kIo, message_of(pq.errorMessage(handle)), name_);
  pq.setSingleRowMode(handle);
  return Answer(handle, name_, limits_, fields).read();
}

Result<std::vector<Postgres::Value>> Postgres::row(const std::string& sql,
                                                   const std::vector<Value>& values,
                                                   std::size_t fields) const {
  auto rows = TRY(query(sql, values, fields));
  if (rows.size() == 1)
    return std::move(rows.front());
  return fail(Code::kBadData,
              "the server answers with " + std::to_string(rows.size()) + " rows, not one",
              name_,
              "Look for triggers and rules of the schema rangescope");
}

}  // namespace rangescope::base
