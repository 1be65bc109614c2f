// A team's memory: the digests, verdicts and provenance of runs in PostgreSQL, for compare, gate
// and history.
//
//   rangescope.migrations(version, applied)
//   rangescope.pushes(id, key, name, machine, host, commit, dirty, began, pushed, tool, command,
//                     provenance)
//                 what was pushed at once: a run, or the repetitions of one; pushed again, it is
//                 replaced
//   rangescope.runs(id, push, ordinal, run, devices, partial_gpu, losses, judged)
//   rangescope.regions(run, ordinal, path, domain, kind, occurrences, values, rest)
//                 values by measure tag
//   rangescope.kernels(run, ordinal, name, calls, total_ns)
//   rangescope.verdicts(run, ordinal, kind, severity, path, text, saves_ns, saves_share, next)
//   rangescope.history
//                 a view for dashboards: a row for each region, value and run
//
// The objects are in a schema of their own, of an owner whom the user trusts (its triggers run as
// the user). A push is one transaction; many at once wait for each other only where they push the
// same run. The first push to a database makes the schema, and a newer rangescope's brings it up to
// date.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/postgres.hpp"
#include "base/result.hpp"
#include "model/digest.hpp"

namespace rangescope::runs {

/// An address with the name of a push, or the beginning of its commit, behind '#'.
struct StoreAddress {
  std::string url, push;
};
[[nodiscard]] StoreAddress split_address(const std::string& written);

/// One push, as lists show it.
struct Stored {
  // Texts are "" where unknown.
  std::string name, machine, host, commit, command;
  std::string verdict;  ///< kind and path of the worst one
  std::optional<bool> dirty;
  std::int64_t began_unix_ns = 0, pushed_unix_ns = 0;
  std::int64_t runs = 0, regions = 0;
};

/// One push in the history of a region.
struct HistoryPoint {
  std::string name, machine, commit;
  bool dirty = false;
  std::int64_t began_unix_ns = 0;
  std::vector<double>
      values;  ///< of each of its runs that has one, ascending; sums are per occurrence
};
struct History {
  std::string region;  ///< model::path_text
  std::vector<HistoryPoint> points;
};

class Store {
 public:
  /// As base::Postgres::connect; kBadData for a schema that is newer.
  [[nodiscard]] static base::Result<Store> open(const std::string& url);
  /// `name`: what it is called from now on. kPermission, kBadData.
  [[nodiscard]] base::Result<void> push(const std::string& name,
                                        const std::vector<model::Digest>& runs) const;
  /// Oldest first, the newest `limit` of them.
  [[nodiscard]] base::Result<std::vector<Stored>> list(std::size_t limit) const;
  /// The newest push of that name or commit ("": of any) as a side; with `like`, of a machine like
  /// its, another push, and of a program that did not fail. kNoInput, kNotComparable.
  [[nodiscard]] base::Result<model::Side> load(const std::string& push,
                                               const std::vector<model::Digest>* like) const;
  /// `region`: a path as reports write it, or the name of a range with one path; `tag`: a measure,
  /// or metrics.<name>. kNoInput with near names, kUsage where several are called so.
  [[nodiscard]] base::Result<History> history(const std::string& region,
                                              const std::string& tag) const;
  [[nodiscard]] const std::string& name() const { return database_.name(); }

 private:
  /// A region of the store: as reports write it, and its domain and path as the tables keep them.
  struct Place {
    std::string text, domain, path;
  };
  explicit Store(base::Postgres database) : database_(std::move(database)) {}
  [[nodiscard]] base::Result<Place> find_place(const std::string& region) const;
  [[nodiscard]] std::string hint_for_region(const std::string& last) const;
  [[nodiscard]] base::Result<int> version() const;
  [[nodiscard]] base::Result<void> need_schema() const;
  [[nodiscard]] base::Result<void> migrate() const;
  /// What reads is one transaction too, and needs the schema.
  template <class Answer>
  [[nodiscard]] base::Result<Answer> read(const std::function<base::Result<Answer>()>& work) const;
  [[nodiscard]] base::Result<void> insert(const std::string& name,
                                          const std::vector<model::Digest>& runs) const;
  /// `ordinal`: which of the push's runs it is.
  [[nodiscard]] base::Result<void> insert_run(const std::string& push,
                                              std::size_t ordinal,
                                              const model::Digest& run) const;
  [[nodiscard]] tl::unexpected<base::Error> no_push(const std::string& push) const;
  base::Postgres database_;
};

}  // namespace rangescope::runs
