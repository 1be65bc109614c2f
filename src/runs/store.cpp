#include "runs/store.hpp"

#include <array>

#include "base/hash.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "model/measure.hpp"
#include "runs/baselines.hpp"
#include "runs/json_text.hpp"

namespace rangescope::runs {
namespace {

using Json = nlohmann::json;
using Value = base::Postgres::Value;

// Each runs once, in this order, and none is ever changed: the version of a schema is how many have run.
constexpr std::array kMigrations = {
    R"(create table rangescope.pushes (
         id bigint generated always as identity primary key, key text not null unique, name text not null,
         machine text not null, host text, commit text, dirty boolean, began timestamptz not null,
         pushed timestamptz not null, tool text, command text, provenance jsonb not null))",
    R"(create table rangescope.runs (
         id bigint generated always as identity primary key,
         push bigint not null references rangescope.pushes on delete cascade, ordinal integer not null,
         run jsonb not null, devices jsonb not null, partial_gpu boolean not null, losses jsonb not null,
         unique (push, ordinal)))",
    R"(create table rangescope.regions (
         run bigint not null references rangescope.runs on delete cascade, ordinal integer not null,
         path text[] not null, domain text not null, kind text not null, occurrences bigint not null,
         "values" jsonb not null, rest jsonb not null, primary key (run, ordinal)))",
    R"(create table rangescope.kernels (
         run bigint not null references rangescope.runs on delete cascade, ordinal integer not null,
         name text not null, calls bigint not null, total_ns double precision, primary key (run, ordinal)))",
    R"(create table rangescope.verdicts (
         run bigint not null references rangescope.runs on delete cascade, ordinal integer not null,
         kind text not null, severity text not null, path text not null, text text not null,
         saves_ns double precision, saves_share double precision, next text, primary key (run, ordinal)))",
    R"(create index regions_by_name on rangescope.regions ((path[array_length(path, 1)])))",
    R"(create view rangescope.history as
         select p.name, p.machine, p.commit, p.dirty, p.began, r.ordinal as run, g.domain, g.path, g.occurrences,
                v.key as tag, (v.value #>> '{}')::double precision as value
         from rangescope.pushes p join rangescope.runs r on r.push = p.id join rangescope.regions g on g.run = r.id,
              jsonb_each(g."values") v)",
    R"(alter table rangescope.runs add column judged boolean not null default true)",
};
constexpr const char* kMigrationLock = "select pg_advisory_xact_lock(hashtextextended('rangescope.migrations', 0))";

/// jsonb holds no NUL, which a name of a foreign file may.
void without_nul(Json& json) {
  if (json.is_string()) {
    if (const auto& text = json.get_ref<const std::string&>(); text.find('\0') != std::string::npos)
      json = base::replace_all(text, std::string_view("\0", 1), "\\x00");
  } else if (json.is_structured()) {
    for (Json& each : json) without_nul(each);
  }
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Value or_null(const std::string& text) {
  return text.empty() ? Value() : Value(text);
}
Value fact(const model::RunInfo& run, const char* key) {
  const auto found = run.environment.find(key);
  return found == run.environment.end() ? Value() : or_null(found->second);
}
std::string or_empty(const Value& value) {
  return value.value_or(std::string());
}
std::int64_t whole(const Value& value) {
  return value ? base::to_int(*value).value_or(0) : 0;
}

/// Equal for the same run whenever and by whomever it is pushed.
std::string key_of(const std::vector<model::Digest>& runs) {
  const model::RunInfo& run = runs.front().run;
  return base::sha256(
      dumped(Json::array({run.id, run.host, run.start_unix_ns, run.cwd, run.command, run.duration_ns, runs.size()})));
}

/// One query, this text, gives the run as a baseline has it (runs/baselines.hpp).
constexpr const char* kLoadPush = R"(
select jsonb_build_object('run', r.run, 'devices', r.devices, 'partial_gpu', r.partial_gpu, 'losses', r.losses,
  'regions', coalesce((select jsonb_agg(g.rest || jsonb_build_object('path', to_jsonb(g.path), 'domain', g.domain,
    'kind', g.kind, 'occurrences', g.occurrences, 'values', g."values") order by g.ordinal)
    from rangescope.regions g where g.run = r.id), '[]'),
  'kernels', coalesce((select jsonb_agg(jsonb_build_array(k.name, k.calls, k.total_ns) order by k.ordinal)
    from rangescope.kernels k where k.run = r.id), '[]'))
  || case when r.judged then jsonb_build_object('verdict', coalesce((select jsonb_agg(jsonb_strip_nulls(
    jsonb_build_object('kind', v.kind, 'severity', v.severity, 'path', v.path, 'text', v.text, 'saves_ns', v.saves_ns,
      'saves_share', v.saves_share, 'next', v.next)) order by v.ordinal)
    from rangescope.verdicts v where v.run = r.id), '[]')) else '{}' end
from rangescope.runs r where r.push = $1 order by r.ordinal)";

}  // namespace

StoreAddress split_address(const std::string& written) {
  // Behind an '@' that comes later the '#' is no separator but part of a name that has none: it is refused
  // whole.
  const auto hash = written.find('@', written.find('#')) == std::string::npos ? written.find('#') : std::string::npos;
  return {written.substr(0, hash), hash == std::string::npos ? std::string() : written.substr(hash + 1)};
}

base::Result<Store> Store::open(const std::string& url) {
  auto database = TRY(base::Postgres::connect(url));
  return Store(std::move(database));
}

/// Who owns the schema or a table in it can make whoever uses it run a trigger: that must be this user, a role of its,
/// the database's owner or a superuser. A superuser, who has every role, takes those of itself and superusers only.
constexpr const char* kStranger = R"(
select pg_catalog.quote_ident(o.rolname) from pg_catalog.pg_roles o, pg_catalog.pg_roles me
where me.rolname = current_user and o.oid <> me.oid and not o.rolsuper
  and (me.rolsuper or not pg_catalog.pg_has_role(o.oid, 'USAGE')
       and o.oid <> (select d.datdba from pg_catalog.pg_database d where d.datname = current_database()))
  and o.oid in (select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'rangescope' union
                select c.relowner from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = 'rangescope')
limit 1)";

base::Result<int> Store::version() const {
  const auto there = TRY(database_.row("select to_regclass('rangescope.migrations') is not null", {}, 1));
  const auto strangers = TRY(database_.query(kStranger, {}, 1));
  if (!strangers.empty())
    return base::fail(base::Code::kPermission,
                      "its schema 'rangescope' belongs to the role " + base::printable(or_empty(strangers.front()[0])) +
                          ", which could run code with your rights",
                      name(), "Connect as that role, or give the schema and its tables to the database's owner");
  if (there.front() != "t") return 0;
  const auto version = TRY(database_.row("select coalesce(max(version), 0) from rangescope.migrations", {}, 1));
  const auto at = static_cast<int>(whole(version.front()));
  if (at > static_cast<int>(kMigrations.size()))
    return base::fail(base::Code::kBadData,
                      "its schema has version " + std::to_string(at) + ", and this rangescope knows " +
                          std::to_string(kMigrations.size()),
                      name(), "Use a newer rangescope");
  return at;
}

base::Result<void> Store::need_schema() const {
  const auto at = TRY(version());
  if (at == static_cast<int>(kMigrations.size())) return {};
  return base::fail(base::Code::kNoInput,
                    at == 0 ? "the database holds no runs" : "its schema is of an older rangescope", name(),
                    "Push a run: rangescope runs push " + base::shell_quote(name()) + " RUN");
}

base::Result<void> Store::migrate() const {
  const auto at = TRY(version());
  if (at == static_cast<int>(kMigrations.size())) return {};
  for (const char* sql : {kMigrationLock, "create schema if not exists rangescope",
                          "create table if not exists rangescope.migrations (version integer primary key, "
                          "applied timestamptz not null default now())"})
    TRY(database_.query(sql));
  const auto now = TRY(version());  // somebody else may have been first
  for (auto next = static_cast<std::size_t>(now); next < kMigrations.size(); ++next) {
    TRY(database_.query(kMigrations[next]));
    TRY(database_.query("insert into rangescope.migrations (version) values ($1)", {std::to_string(next + 1)}));
  }
  return {};
}

base::Result<void> Store::push(const std::string& name, const std::vector<model::Digest>& runs) const {
  TRY(database_.transaction([&] { return migrate(); }));
  return database_.transaction([&] { return insert(name, runs); });
}

base::Result<void> Store::insert(const std::string& name, const std::vector<model::Digest>& runs) const {
  const model::RunInfo& first = runs.front().run;
  const std::string command = base::shell_quote(base::redact_arguments(first.command));
  // The row of a push that is there already is locked until the end: two pushes of one run come one after the other.
  auto pushed = TRY(database_.row(
      R"(insert into rangescope.pushes
           (key, name, machine, host, commit, dirty, began, pushed, tool, command, provenance)
         values ($1, $2, $3, $4, $5, $6::boolean, coalesce(to_timestamp($7::double precision), now()), now(), $8, $9,
                 $10::jsonb)
         on conflict (key) do update set name = excluded.name, machine = excluded.machine, host = excluded.host,
           commit = excluded.commit, dirty = excluded.dirty, pushed = excluded.pushed, tool = excluded.tool,
           command = excluded.command, provenance = excluded.provenance
         returning id)",
      {key_of(runs), base::printable(name), machine_kind(runs.front()), or_null(base::printable(first.host)),
       fact(first, "git.commit"), fact(first, "git.dirty"),
       first.start_unix_ns > 0 ? Value(std::to_string(static_cast<double>(first.start_unix_ns) / 1e9)) : Value(),
       or_null(first.tool), or_null(base::printable(command)), dumped(first.environment)},
      1));
  const std::string push = or_empty(pushed.front());
  TRY(database_.query("delete from rangescope.runs where push = $1", {push}));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json json = Json::parse(digest_text(runs[i], 64));
    json["run"]["command"] = base::redact_arguments(json["run"].value("command", std::vector<std::string>{}));
    if (!runs[i].judged) json["verdict"] = Json::array();
    without_nul(json);
    auto run = TRY(database_.row(
        R"(insert into rangescope.runs (push, ordinal, run, devices, partial_gpu, losses, judged)
           select $1, $2, d->'run', d->'devices', (d->>'partial_gpu')::boolean, d->'losses', $4::boolean
           from (select $3::jsonb d) t returning id)",
        {push, std::to_string(i),
         dumped({{"run", json["run"]},
                 {"devices", json["devices"]},
                 {"partial_gpu", json["partial_gpu"]},
                 {"losses", json["losses"]}}),
         runs[i].judged ? "true" : "false"},
        1));
    const std::string id = or_empty(run.front());
    const std::pair<const char*, const char*> parts[] = {{"regions", R"(insert into rangescope.regions
           select $1, n, array(select jsonb_array_elements_text(r->'path')), r->>'domain', r->>'kind',
                  (r->>'occurrences')::bigint, r->'values', r - '{path,domain,kind,occurrences,values}'::text[]
           from jsonb_array_elements($2::jsonb) with ordinality t(r, n))"},
                                                         {"kernels", R"(insert into rangescope.kernels
           select $1, n, k->>0, (k->>1)::bigint, (k->>2)::double precision
           from jsonb_array_elements($2::jsonb) with ordinality t(k, n))"},
                                                         {"verdict", R"(insert into rangescope.verdicts
           select $1, n, v->>'kind', v->>'severity', v->>'path', v->>'text', (v->>'saves_ns')::double precision,
                  (v->>'saves_share')::double precision, v->>'next'
           from jsonb_array_elements($2::jsonb) with ordinality t(v, n))"}};
    for (const auto& [part, sql] : parts) TRY(database_.query(sql, {id, dumped(json[part])}));
  }
  return {};
}

template <class Answer>
base::Result<Answer> Store::read(const std::function<base::Result<Answer>()>& work) const {
  std::optional<Answer> answer;
  TRY(database_.transaction([&]() -> base::Result<void> {
    TRY(need_schema());
    answer = TRY(work());
    return {};
  }));
  return std::move(*answer);
}

base::Result<std::vector<Stored>> Store::list(std::size_t most) const {
  return read<std::vector<Stored>>([&]() -> base::Result<std::vector<Stored>> {
    const auto rows = TRY(database_.query(
        R"(select p.name, p.machine, p.host, p.commit, p.command, p.dirty, (extract(epoch from p.began) * 1e9)::bigint,
                  (extract(epoch from p.pushed) * 1e9)::bigint,
                  (select count(*) from rangescope.runs r where r.push = p.id),
                  (select count(*) from rangescope.regions g join rangescope.runs r on r.id = g.run
                   where r.push = p.id and r.ordinal = 0),
                  (select v.kind || case when v.path = '' then '' else ' ' || v.path end from rangescope.verdicts v
                   join rangescope.runs r on r.id = v.run where r.push = p.id order by r.ordinal, v.ordinal limit 1)
           from (select * from rangescope.pushes order by began desc, id desc limit $1) p order by p.began, p.id)",
        {std::to_string(most)}, 11));
    std::vector<Stored> out;
    for (const auto& row : rows)
      out.push_back({or_empty(row[0]), or_empty(row[1]), or_empty(row[2]), or_empty(row[3]), or_empty(row[4]),
                     or_empty(row[10]), row[5] ? std::optional(*row[5] == "t") : std::nullopt, whole(row[6]),
                     whole(row[7]), whole(row[8]), whole(row[9])});
    return out;
  });
}

base::Result<model::Side> Store::load(const std::string& push, const std::vector<model::Digest>* like) const {
  return read<model::Side>([&]() -> base::Result<model::Side> {
    const Value machine = like != nullptr ? Value(machine_kind(like->front())) : Value();
    const auto find = [&](const Value& on) {
      return database_.query(
          R"(select id, name from rangescope.pushes
             where ($1 = '' or name = $1 or (length($1) >= 4 and starts_with(commit, $1)))
               and ($2::text is null or machine = $2)
               and ($3::text is null or key <> $3 and not exists (
                 select from rangescope.runs r where r.push = pushes.id
                   and (r.run->'exit_code' not in ('null', '0') or r.run->'signal' <> 'null')))
             order by began desc, id desc limit 1)",
          {push, on, like != nullptr ? Value(key_of(*like)) : Value()}, 2);
    };
    const auto found = TRY(find(machine));
    if (found.empty()) {
      const auto elsewhere = machine ? find(std::nullopt) : found;
      if (elsewhere && !elsewhere->empty())
        return base::fail(base::Code::kNotComparable,
                          "it holds no such run of a machine like this one (" + *machine + ")", name(),
                          "Push one that was made here: rangescope runs push " + base::shell_quote(name()) + " RUN");
      return base::fail(
          base::Code::kNoInput,
          push.empty() ? "it holds no other run" : "it holds no run or commit '" + base::printable(push) + "'", name(),
          "See what there is: rangescope runs list --from " + base::shell_quote(name()));
    }
    model::Side side{name() + "#" + or_empty(found.front()[1]), {}};
    const auto rows = TRY(database_.query(kLoadPush, {found.front()[0]}, 1));
    if (rows.empty()) return base::fail(base::Code::kBadData, "the push holds no run", side.label, "Push it again");
    for (const auto& row : rows) {
      auto run = TRY(read_digest(or_empty(row[0]), side.label));
      side.runs.push_back(std::move(run));
    }
    return side;
  });
}

base::Result<History> Store::history(const std::string& region, const std::string& tag) const {
  return read<History>([&]() -> base::Result<History> {
    const auto parts = base::split(region, '>');
    std::string last(base::trim(parts.back()));
    if (const auto at = last.rfind('@'); parts.size() == 1 && at != std::string::npos) last.erase(0, at + 1);
    const auto paths = TRY(database_.query(
        R"(select distinct domain, to_jsonb(path)::text from rangescope.regions
           where path[array_length(path, 1)] = $1 order by 1, 2 limit 1000)",
        {last}, 2));
    struct Place {
      std::string text, domain, path;
    };
    std::vector<Place> exact, ending;
    for (const auto& row : paths) {
      const Json json = Json::parse(or_empty(row[1]), nullptr, false);
      std::vector<std::string> path;
      if (json.is_array())
        for (const Json& part : json) path.push_back(part.is_string() ? part.get<std::string>() : std::string());
      Place place{model::path_text(or_empty(row[0]), path), or_empty(row[0]), or_empty(row[1])};
      (place.text == region ? exact : ending).push_back(std::move(place));
    }
    if (exact.empty() && parts.size() > 1) ending.clear();
    const auto& places = exact.empty() ? ending : exact;
    if (places.empty()) {
      std::vector<std::string> names;
      if (const auto all = database_.query(
              "select distinct path[array_length(path, 1)] from rangescope.regions order by 1 limit 10000", {}, 1))
        for (const auto& row : *all) names.push_back(or_empty(row[0]));
      std::string hint = base::did_you_mean(last, names);
      if (hint.empty()) hint = "See what there is: rangescope compare " + base::shell_quote(name()) + " RUN";
      return base::fail(base::Code::kNoInput, "no run has a region '" + base::printable(region) + "'", name(),
                        std::move(hint));
    }
    if (places.size() > 1) {
      std::vector<std::string> texts;
      for (const Place& place : places) texts.push_back(base::shell_quote(place.text));
      return base::fail(base::Code::kUsage, "several regions have this name: " + base::join(texts, ", "), name(),
                        "Name one with its path");
    }
    const model::Measure* measure = model::find_measure(tag);
    const bool per_occurrence = measure != nullptr && model::adds_up(*measure);
    const auto rows = TRY(database_.query(
        R"(select p.id, p.name, p.machine, p.commit, p.dirty, (extract(epoch from p.began) * 1e9)::bigint,
                  (g."values"->>$3)::double precision / case when $4::boolean then nullif(g.occurrences, 0) else 1 end
           from rangescope.pushes p join rangescope.runs r on r.push = p.id join rangescope.regions g on g.run = r.id
           where g.domain = $1 and g.path = array(select jsonb_array_elements_text($2::jsonb)) and g."values" ? $3
           order by p.began, p.id, 7)",
        {places.front().domain, places.front().path, tag, per_occurrence ? "true" : "false"}, 7));
    History out{places.front().text, {}};
    std::string before;
    for (const auto& row : rows) {
      const auto value = row[6] ? base::to_double(*row[6]) : std::nullopt;
      if (!value) continue;
      if (out.points.empty() || row[0] != before)
        out.points.push_back({or_empty(row[1]), or_empty(row[2]), or_empty(row[3]), row[4] == "t", whole(row[5]), {}});
      before = or_empty(row[0]);
      out.points.back().values.push_back(*value);
    }
    if (out.points.empty())
      return base::fail(base::Code::kNothingCaptured, "no run has a value " + base::printable(tag) + " of it",
                        out.region, "Name another one with --metric");
    return out;
  });
}

}  // namespace rangescope::runs
