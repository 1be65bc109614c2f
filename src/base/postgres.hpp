// PostgreSQL through libpq, from a libpq.so.5 that is loaded when it is needed: nothing is linked.
//
// The server and what others keep in the database are not trusted: names in SQL mean PostgreSQL's
// own functions, operators and types, never those of a schema that others can write to, and an
// answer ends, in time and size.
//
// Values travel as parameters, never in SQL. An address is one of libpq's URLs: what it does not
// say comes from the environment (PGHOST, PGPASSWORD, PGSSLMODE ...), ~/.pgpass and service files,
// by libpq; so do TLS settings. A password in a URL is refused, because a command line is public.
// Nothing of an address but host, port and database is ever written.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::base {

class Postgres {
 public:
  using Value = std::optional<std::string>;  ///< as text; nothing is NULL
  using Rows = std::vector<std::vector<Value>>;

  /// postgresql://... or postgres://...
  [[nodiscard]] static bool is_address(std::string_view text);
  /// What a server may take: to connect, between two pieces of an answer, for a whole one (a push
  /// waits up to a minute for another one); and how much it may send.
  struct Limits {
    std::chrono::milliseconds connect{10'000}, silence{120'000}, answer{600'000};
    std::size_t bytes = std::size_t{1} << 30;
  };
  /// kUsage for what is no such URL or holds a password, kToolMissing without libpq, kNoInput where
  /// no server answers, kPermission where access is refused.
  [[nodiscard]] static Result<Postgres> connect(const std::string& url, const Limits& limits);
  [[nodiscard]] static Result<Postgres> connect(const std::string& url) {
    return connect(url, Limits());
  }
  /// All of the work or nothing, with names of PostgreSQL's own catalogue only; no lock is waited
  /// for longer than a minute. What is not qualified and asked outside of it may mean a stranger's
  /// function.
  [[nodiscard]] Result<void> transaction(const std::function<Result<void>()>& work) const;
  /// One statement, whose rows have `fields` fields (0: any). kBadData with PostgreSQL's message;
  /// kPermission; kIo for a server that does not answer or never ends.
  [[nodiscard]] Result<Rows> query(const std::string& sql,
                                   const std::vector<Value>& values = {},
                                   std::size_t fields = 0) const;
  /// The same, of exactly one row.
  [[nodiscard]] Result<std::vector<Value>> row(const std::string& sql,
                                               const std::vector<Value>& values,
                                               std::size_t fields) const;
  /// "postgresql://host:5432/database", of a socket "postgresql:///database?host=/run/postgresql"
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Finish {
    void operator()(void* connection) const;
  };
  std::unique_ptr<void, Finish> handle_;
  std::string name_;
  Limits limits_;
};

}  // namespace rangescope::base
