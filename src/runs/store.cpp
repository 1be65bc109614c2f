#include "runs/store.hpp"

#include "base/embedded.hpp"
#include "base/hash.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "model/measure.hpp"
#include "runs/baselines.hpp"
#include "runs/json_text.hpp"

RANGESCOPE_EMBED(store, RANGESCOPE_SQL);

namespace rangescope::runs {
namespace {

using Json = nlohmann::json;
using Value = base::Postgres::Value;

/// The statement of that name in store.sql; "" where there is none.
std::string sql(std::string_view wanted) {
  for (const auto& [name, text] : base::statements(rangescope_store))
    if (name == wanted)
      return std::string(text);
  return {};
}
std::string migration(int version) {
  return sql("migration " + std::to_string(version));
}
/// The version of the schema that this rangescope makes.
int newest() {
  int version = 0;
  while (!migration(version + 1).empty())
    ++version;
  return version;
}

/// jsonb holds no NUL, which a name of a foreign file may.
void without_nul(Json& json) {
  if (json.is_string()) {
    if (const auto& text = json.get_ref<const std::string&>(); text.find('\0') != std::string::npos)
      json = base::replace_all(text, std::string_view("\0", 1), "\\x00");
  } else if (json.is_structured()) {
    for (Json& item : json)
      without_nul(item);
  }
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Value or_null(const std::string& text) {
  if (text.empty())
    return {};
  return text;
}
Value fact(const model::RunInfo& run, const char* key) {
  const auto found = run.environment.find(key);
  if (found == run.environment.end())
    return {};
  return or_null(found->second);
}
/// As "to_timestamp" takes it; null where it is unknown.
Value seconds_of(std::int64_t unix_ns) {
  if (unix_ns <= 0)
    return {};
  return std::to_string(static_cast<double>(unix_ns) / 1e9);
}
std::string boolean(bool value) {
  return value ? "true" : "false";
}
std::string or_empty(const Value& value) {
  return value.value_or(std::string());
}
std::int64_t integer(const Value& value) {
  return base::to_int(or_empty(value)).value_or(0);
}

/// Names of a path in JSON; one that is no text is "".
std::vector<std::string> names_in(const std::string& path) {
  const Json json = Json::parse(path, nullptr, false);
  std::vector<std::string> names;
  if (json.is_array())
    for (const Json& name : json) {
      std::string& text = names.emplace_back();
      if (name.is_string())
        text = name.get<std::string>();
    }
  return names;
}

Stored push_of(const std::vector<Value>& row) {
  Stored push;
  push.name = or_empty(row[0]);
  push.machine = or_empty(row[1]);
  push.host = or_empty(row[2]);
  push.commit = or_empty(row[3]);
  push.command = or_empty(row[4]);
  if (row[5])
    push.dirty = *row[5] == "t";
  push.began_unix_ns = integer(row[6]);
  push.pushed_unix_ns = integer(row[7]);
  push.runs = integer(row[8]);
  push.regions = integer(row[9]);
  push.verdict = or_empty(row[10]);
  return push;
}

/// Without its values. Of the statement "history", whose first column is the push.
HistoryPoint point_of(const std::vector<Value>& row) {
  HistoryPoint point;
  point.name = or_empty(row[1]);
  point.machine = or_empty(row[2]);
  point.commit = or_empty(row[3]);
  point.dirty = row[4] == "t";
  point.began_unix_ns = integer(row[5]);
  return point;
}

/// As the tables keep it: with redacted arguments and a list of verdicts, without NUL.
Json stored_json(const model::Digest& run) {
  constexpr std::size_t kSamples = 64;
  Json json = Json::parse(digest_text(run, kSamples));
  const auto command = json["run"].value("command", std::vector<std::string>{});
  json["run"]["command"] = base::redact_arguments(command);
  if (!run.judged)
    json["verdict"] = Json::array();
  without_nul(json);
  return json;
}

/// Equal for the same run whenever and by whomever it is pushed.
std::string key_of(const std::vector<model::Digest>& runs) {
  const model::RunInfo& run = runs.front().run;
  const Json identity = Json::array(
      {run.id, run.host, run.start_unix_ns, run.cwd, run.command, run.duration_ns, runs.size()});
  return base::sha256(dumped(identity));
}

}  // namespace

StoreAddress split_address(const std::string& written) {
  // Behind an '@' that comes later the '#' is no separator but part of a name that has none: it is
  // refused whole.
  const auto hash = written.find('#');
  const bool is_part_of_name = written.find('@', hash) != std::string::npos;
  if (hash == std::string::npos || is_part_of_name)
    return {written, {}};
  return {written.substr(0, hash), written.substr(hash + 1)};
}

base::Result<Store> Store::open(const std::string& url) {
  auto database = TRY(base::Postgres::connect(url));
  return Store(std::move(database));
}

/// The owner of the schema, or of a table in it, can make its users run a trigger: that must be
/// this user, a role of its, the database's owner or a superuser. A superuser, who has every role,
/// takes those of itself and superusers only.
base::Result<int> Store::version() const {
  const auto has_table =
      TRY(database_.row("select to_regclass('rangescope.migrations') is not null", {}, 1));
  const auto strangers = TRY(database_.query(sql("strangers"), {}, 1));
  if (!strangers.empty())
    return base::fail(
        base::Code::kPermission,
        "its schema 'rangescope' belongs to the role " +
            base::printable(or_empty(strangers.front()[0])) +
            ", which could run code with your rights",
        name(),
        "Connect as that role, or give the schema and its tables to the database's owner");
  if (has_table.front() != "t")
    return 0;
  const auto row =
      TRY(database_.row("select coalesce(max(version), 0) from rangescope.migrations", {}, 1));
  const auto version = static_cast<int>(integer(row.front()));
  if (version > newest())
    return base::fail(base::Code::kBadData,
                      "its schema has version " + std::to_string(version) +
                          ", and this rangescope knows " + std::to_string(newest()),
                      name(),
                      "Use a newer rangescope");
  return version;
}

base::Result<void> Store::need_schema() const {
  const auto present = TRY(version());
  if (present == newest())
    return {};
  std::string problem = "its schema is of an older rangescope";
  if (present == 0)
    problem = "the database holds no runs";
  return base::fail(base::Code::kNoInput,
                    std::move(problem),
                    name(),
                    "Push a run: rangescope runs push " + base::shell_quote(name()) + " RUN");
}

base::Result<void> Store::migrate() const {
  const auto present = TRY(version());
  if (present == newest())
    return {};
  for (const char* step : {"lock", "schema", "table"})
    TRY(database_.query(sql(std::string("migrations: ") + step)));
  const auto locked = TRY(version());  // another process may have been first
  for (int next = locked + 1; next <= newest(); ++next) {
    TRY(database_.query(migration(next)));
    TRY(database_.query("insert into rangescope.migrations (version) values ($1)",
                        {std::to_string(next)}));
  }
  return {};
}

base::Result<void> Store::push(const std::string& name,
                               const std::vector<model::Digest>& runs) const {
  TRY(database_.transaction([&] { return migrate(); }));
  return database_.transaction([&] { return insert(name, runs); });
}

base::Result<void> Store::insert(const std::string& name,
                                 const std::vector<model::Digest>& runs) const {
  const model::RunInfo& first = runs.front().run;
  const std::string command = base::shell_quote(base::redact_arguments(first.command));
  // The row of a push that is there already is locked until the end: two pushes of one run come one
  // after the other.
  auto pushed = TRY(database_.row(sql("push"),
                                  {key_of(runs),
                                   base::printable(name),
                                   machine_kind(runs.front()),
                                   or_null(base::printable(first.host)),
                                   fact(first, "git.commit"),
                                   fact(first, "git.dirty"),
                                   seconds_of(first.start_unix_ns),
                                   or_null(first.tool),
                                   or_null(base::printable(command)),
                                   dumped(first.environment)},
                                  1));
  const std::string push = or_empty(pushed.front());
  TRY(database_.query("delete from rangescope.runs where push = $1", {push}));
  for (std::size_t i = 0; i < runs.size(); ++i)
    TRY(insert_run(push, i, runs[i]));
  return {};
}

base::Result<void> Store::insert_run(const std::string& push,
                                     std::size_t ordinal,
                                     const model::Digest& run) const {
  Json json = stored_json(run);
  const std::string facts = dumped({{"run", json["run"]},
                                    {"devices", json["devices"]},
                                    {"partial_gpu", json["partial_gpu"]},
                                    {"losses", json["losses"]}});
  auto inserted = TRY(database_.row(
      sql("insert run"), {push, std::to_string(ordinal), facts, boolean(run.judged)}, 1));
  const std::string id = or_empty(inserted.front());
  for (const std::string part : {"regions", "kernels", "verdict"})
    TRY(database_.query(sql("insert " + part), {id, dumped(json[part])}));
  return {};
}

template <class Answer>
base::Result<Answer> Store::read(const std::function<base::Result<Answer>()>& work) const {
  std::optional<Answer> answer;
  const auto need_and_work = [&]() -> base::Result<void> {
    TRY(need_schema());
    answer = TRY(work());
    return {};
  };
  TRY(database_.transaction(need_and_work));
  return std::move(*answer);
}

base::Result<std::vector<Stored>> Store::list(std::size_t limit) const {
  return read<std::vector<Stored>>([&]() -> base::Result<std::vector<Stored>> {
    const auto rows = TRY(database_.query(sql("list"), {std::to_string(limit)}, 11));
    std::vector<Stored> pushes;
    for (const auto& row : rows)
      pushes.push_back(push_of(row));
    return pushes;
  });
}

tl::unexpected<base::Error> Store::no_push(const std::string& push) const {
  std::string problem = "it holds no other run";
  if (!push.empty())
    problem = "it holds no run or commit '" + base::printable(push) + "'";
  return base::fail(base::Code::kNoInput,
                    std::move(problem),
                    name(),
                    "See what there is: rangescope runs list --from " + base::shell_quote(name()));
}

base::Result<model::Side> Store::load(const std::string& push,
                                      const std::vector<model::Digest>* like) const {
  return read<model::Side>([&]() -> base::Result<model::Side> {
    Value machine;
    Value key;
    if (like != nullptr) {
      machine = machine_kind(like->front());
      key = key_of(*like);
    }
    const auto find_on = [&](const Value& wanted_machine) {
      return database_.query(sql("find"), {push, wanted_machine, key}, 2);
    };
    const auto found = TRY(find_on(machine));
    if (found.empty() && machine) {
      const auto on_others = find_on(std::nullopt);
      const std::string push_one =
          "Push one that was made here: rangescope runs push " + base::shell_quote(name()) + " RUN";
      if (on_others && !on_others->empty())
        return base::fail(base::Code::kNotComparable,
                          "it holds no such run of a machine like this one (" + *machine + ")",
                          name(),
                          push_one);
    }
    if (found.empty())
      return no_push(push);
    model::Side side{name() + "#" + or_empty(found.front()[1]), {}};
    const auto rows = TRY(database_.query(sql("load"), {found.front()[0]}, 1));
    if (rows.empty())
      return base::fail(base::Code::kBadData, "the push holds no run", side.label, "Push it again");
    for (const auto& row : rows) {
      auto run = TRY(read_digest(or_empty(row[0]), side.label));
      side.runs.push_back(std::move(run));
    }
    return side;
  });
}

base::Result<Store::Place> Store::find_place(const std::string& region) const {
  const auto parts = base::split(region, '>');
  std::string last(base::trim(parts.back()));
  const auto end_of_domain = last.rfind('@');
  if (parts.size() == 1 && end_of_domain != std::string::npos)
    last.erase(0, end_of_domain + 1);
  std::vector<Place> exact;
  std::vector<Place> ending;
  const auto paths = TRY(database_.query(sql("paths"), {last}, 2));
  for (const auto& row : paths) {
    const std::string domain = or_empty(row[0]);
    const std::string path = or_empty(row[1]);
    Place place{model::path_text(domain, names_in(path)), domain, path};
    if (place.text == region)
      exact.push_back(std::move(place));
    else
      ending.push_back(std::move(place));
  }
  if (exact.empty() && parts.size() > 1)
    ending.clear();
  const std::vector<Place>& places = exact.empty() ? ending : exact;
  if (places.size() == 1)
    return places.front();
  if (places.empty())
    return base::fail(base::Code::kNoInput,
                      "no run has a region '" + base::printable(region) + "'",
                      name(),
                      hint_for_region(last));
  std::vector<std::string> texts;
  for (const Place& place : places)
    texts.push_back(base::shell_quote(place.text));
  return base::fail(base::Code::kUsage,
                    "several regions have this name: " + base::join(texts, ", "),
                    name(),
                    "Name one with its path");
}

std::string Store::hint_for_region(const std::string& last) const {
  std::vector<std::string> names;
  const auto rows = database_.query(
      "select distinct path[array_length(path, 1)] from "
      "rangescope.regions order by 1 limit 10000",
      {},
      1);
  if (rows)
    for (const auto& row : *rows)
      names.push_back(or_empty(row[0]));
  const std::string suggestion = base::did_you_mean(last, names);
  if (!suggestion.empty())
    return suggestion;
  return "See what there is: rangescope compare " + base::shell_quote(name()) + " RUN";
}

base::Result<History> Store::history(const std::string& region, const std::string& tag) const {
  return read<History>([&]() -> base::Result<History> {
    const Place place = TRY(find_place(region));
    const model::Measure* measure = model::find_measure(tag);
    const bool per_occurrence = measure != nullptr && model::adds_up(*measure);
    const auto rows = TRY(database_.query(
        sql("history"), {place.domain, place.path, tag, boolean(per_occurrence)}, 7));
    History out{place.text, {}};
    std::string push;
    for (const auto& row : rows) {
      const auto value = base::to_double(or_empty(row[6]));
      if (!value)
        continue;
      if (out.points.empty() || row[0] != push)
        out.points.push_back(point_of(row));
      push = or_empty(row[0]);
      out.points.back().values.push_back(*value);
    }
    if (out.points.empty())
      return base::fail(base::Code::kNothingCaptured,
                        "no run has a value " + base::printable(tag) + " of it",
                        out.region,
                        "Name another one with --metric");
    return out;
  });
}

}  // namespace rangescope::runs
