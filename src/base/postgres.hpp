// PostgreSQL through libpq, from a libpq.so.5 that is loaded when it is needed: nothing is linked.
//
// Values travel as parameters, never in SQL. An address is one of libpq's URLs: what it does not say comes from the
// environment (PGHOST, PGPASSWORD, PGSSLMODE ...), ~/.pgpass and service files, by libpq; so do TLS settings. A
// password in a URL is refused, because a command line is public. Nothing of an address but host, port and database is
// ever written.
#pragma once

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
  /// kUsage for what is no such URL or holds a password, kToolMissing without libpq, kNoInput where nobody answers,
  /// kPermission where access is refused.
  [[nodiscard]] static Result<Postgres> connect(const std::string& url);
  /// One statement. kBadData with PostgreSQL's message; kPermission.
  [[nodiscard]] Result<Rows> query(const std::string& sql, const std::vector<Value>& values = {}) const;
  /// "postgresql://host:5432/database", of a socket "postgresql:///database?host=/run/postgresql"
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Finish {
    void operator()(void* connection) const;
  };
  std::unique_ptr<void, Finish> handle_;
  std::string name_;
};

}  // namespace rangescope::base
