#include "base/postgres.hpp"

#include <dlfcn.h>

#include "base/redact.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

// libpq-fe.h, whose interface has not changed since 9.0: what of it is used.
struct ConnectOption {
  char *keyword, *envvar, *compiled, *val, *label, *dispchar;
  int dispsize;
};
constexpr int kConnectionOk = 0, kCommandOk = 1, kTuplesOk = 2, kSqlState = 'C', kPrimary = 'M';

// Result, name behind PQ, arguments.
#define RANGESCOPE_LIBPQ(FUNCTION)                                                                                  \
  FUNCTION(ConnectOption*, conninfoParse, const char*, char**)                                                      \
  FUNCTION(void, conninfoFree, ConnectOption*)                                                                      \
  FUNCTION(void*, connectdbParams, const char* const*, const char* const*, int)                                     \
  FUNCTION(int, status, const void*)                                                                                \
  FUNCTION(char*, errorMessage, const void*)                                                                        \
  FUNCTION(void, finish, void*)                                                                                     \
  FUNCTION(char*, host, const void*)                                                                                \
  FUNCTION(char*, port, const void*)                                                                                \
  FUNCTION(char*, db, const void*)                                                                                  \
  FUNCTION(void*, setNoticeProcessor, void*, void (*)(void*, const char*), void*)                                   \
  FUNCTION(void*, execParams, void*, const char*, int, const unsigned*, const char* const*, const int*, const int*, \
           int)                                                                                                     \
  FUNCTION(int, resultStatus, const void*)                                                                          \
  FUNCTION(char*, resultErrorField, const void*, int)                                                               \
  FUNCTION(int, ntuples, const void*)                                                                               \
  FUNCTION(int, nfields, const void*)                                                                               \
  FUNCTION(int, getisnull, const void*, int, int)                                                                   \
  FUNCTION(char*, getvalue, const void*, int, int)                                                                  \
  FUNCTION(int, getlength, const void*, int, int)                                                                   \
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
  bool all = pq.library != nullptr;
  const auto bind = [&](auto& function, const char* name) {
    function = all ? reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(pq.library, name)) : nullptr;
    all = all && function != nullptr;
  };
#define RANGESCOPE_BIND(result, name, ...) bind(pq.name, "PQ" #name);
  RANGESCOPE_LIBPQ(RANGESCOPE_BIND)
#undef RANGESCOPE_BIND
  if (all) return pq;
  return fail(Code::kToolMissing, "there is no libpq here, which talks to PostgreSQL", "libpq.so.5",
              "Install it: apt-get install libpq5");
}

const Result<Libpq>& libpq() {
  static const Result<Libpq> kLibpq = load_libpq();
  return kLibpq;
}

/// What libpq says, on one line, without secrets.
std::string message_of(const char* text) {
  std::string all(trim(text != nullptr ? text : "unknown failure"));
  return printable(redact_text(replace_all(all, "\n", " ")));
}

/// Refuses a URL that libpq does not take or that holds a password. Nothing of it is repeated: who can tell what
/// stands where in it? A password with '/' or '#' in it ends the host early: then an '@' follows, or a port is none.
Result<void> check_address(const std::string& url) {
  const std::string_view behind = std::string_view(url).substr(url.find("://") + 3);
  const auto end = behind.find_first_of("/#");
  const bool late = end != std::string_view::npos && behind.substr(0, behind.find('?')).find('@', end) < behind.size();
  ConnectOption* options = late ? nullptr : libpq()->conninfoParse(url.c_str(), nullptr);
  bool secret = false, sound = options != nullptr;
  for (const ConnectOption* option = options; sound && option->keyword != nullptr; ++option) {
    const std::string_view key = option->keyword, value = option->val != nullptr ? option->val : "";
    secret |= (key == "password" || key == "sslpassword") && !value.empty();
    sound = key != "port" || value.find_first_not_of("0123456789,") == std::string_view::npos;
  }
  libpq()->conninfoFree(options);
  if (secret)
    return fail(Code::kUsage, "a password does not belong on a command line", "postgresql://...",
                "Leave it out of the address, and put it into ~/.pgpass or PGPASSWORD");
  if (sound) return {};
  return fail(Code::kUsage, "this is no address of a database that libpq can read", "postgresql://...",
              "Write postgresql://user@host:5432/database");
}

}  // namespace

void Postgres::Finish::operator()(void* connection) const {
  libpq()->finish(connection);
}

bool Postgres::is_address(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

Result<Postgres> Postgres::connect(const std::string& url) {
  if (!libpq()) return tl::make_unexpected(libpq().error());
  if (auto checked = check_address(url); !checked) return fail(std::move(checked));
  // What stands before the URL is overridden by it.
  const char* const keys[] = {"connect_timeout", "dbname", "client_encoding", "fallback_application_name", nullptr};
  const char* const values[] = {"10", url.c_str(), "UTF8", "rangescope", nullptr};
  Postgres made;
  made.handle_.reset(libpq()->connectdbParams(keys, values, 1));
  if (!made.handle_) return fail(Code::kInternal, "libpq makes no connection");
  const auto text = [](const char* part) { return std::string(part != nullptr ? part : ""); };
  const std::string port = text(libpq()->port(made.handle_.get()));
  const std::string host = text(libpq()->host(made.handle_.get())), database = text(libpq()->db(made.handle_.get()));
  made.name_ =
      printable(host.starts_with('/') ? "postgresql:///" + database + "?host=" + host
                                      : "postgresql://" + host + (port.empty() ? "" : ":" + port) + "/" + database);
  if (libpq()->status(made.handle_.get()) != kConnectionOk) {
    const std::string what = message_of(libpq()->errorMessage(made.handle_.get()));
    const bool refused = what.find("authentication failed") != std::string::npos ||
                         what.find("no password supplied") != std::string::npos ||
                         what.find("permission denied") != std::string::npos;
    const bool tls = what.find("SSL") != std::string::npos || what.find("certificate") != std::string::npos;
    return fail(refused ? Code::kPermission : Code::kNoInput, "no connection: " + what, made.name_,
                refused ? "Put the password into ~/.pgpass or PGPASSWORD"
                : tls ? "Check sslmode and sslrootcert of the address: the server's certificate must come from that CA"
                      : "Check that the server runs and is reached");
  }
  libpq()->setNoticeProcessor(
      made.handle_.get(), [](void*, const char*) {}, nullptr);
  return made;
}

Result<Postgres::Rows> Postgres::query(const std::string& sql, const std::vector<Value>& values) const {
  std::vector<const char*> texts;
  for (const Value& value : values) texts.push_back(value ? value->c_str() : nullptr);
  const Libpq& pq = *libpq();
  void* result = pq.execParams(handle_.get(), sql.c_str(), static_cast<int>(texts.size()), nullptr, texts.data(),
                               nullptr, nullptr, 0);
  const int status = pq.resultStatus(result);
  if (status != kCommandOk && status != kTuplesOk) {
    const char* state = pq.resultErrorField(result, kSqlState);
    const char* primary = pq.resultErrorField(result, kPrimary);
    const bool refused = state != nullptr && std::string_view(state) == "42501";
    auto failure = fail(refused ? Code::kPermission : Code::kBadData,
                        message_of(primary != nullptr ? primary : pq.errorMessage(handle_.get())), name_);
    pq.clear(result);
    return failure;
  }
  Rows rows(static_cast<std::size_t>(pq.ntuples(result)));
  const int fields = pq.nfields(result);
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    auto& row = rows[static_cast<std::size_t>(r)];
    for (int f = 0; f < fields; ++f)
      row.push_back(pq.getisnull(result, r, f) != 0 ? Value()
                                                    : Value(std::in_place, pq.getvalue(result, r, f),
                                                            static_cast<std::size_t>(pq.getlength(result, r, f))));
  }
  pq.clear(result);
  return rows;
}

}  // namespace rangescope::base
