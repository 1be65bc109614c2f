-- The statements of the store (store.cpp), each below its name. Migrations run once, in their order, and none is ever
-- changed: the version of a schema is how many have run.

-- migration 1
create table rangescope.pushes (
  id bigint generated always as identity primary key, key text not null unique, name text not null,
  machine text not null, host text, commit text, dirty boolean, began timestamptz not null,
  pushed timestamptz not null, tool text, command text, provenance jsonb not null)

-- migration 2
create table rangescope.runs (
  id bigint generated always as identity primary key,
  push bigint not null references rangescope.pushes on delete cascade, ordinal integer not null,
  run jsonb not null, devices jsonb not null, partial_gpu boolean not null, losses jsonb not null,
  unique (push, ordinal))

-- migration 3
create table rangescope.regions (
  run bigint not null references rangescope.runs on delete cascade, ordinal integer not null,
  path text[] not null, domain text not null, kind text not null, occurrences bigint not null,
  "values" jsonb not null, rest jsonb not null, primary key (run, ordinal))

-- migration 4
create table rangescope.kernels (
  run bigint not null references rangescope.runs on delete cascade, ordinal integer not null,
  name text not null, calls bigint not null, total_ns double precision, primary key (run, ordinal))

-- migration 5
create table rangescope.verdicts (
  run bigint not null references rangescope.runs on delete cascade, ordinal integer not null,
  kind text not null, severity text not null, path text not null, text text not null,
  saves_ns double precision, saves_share double precision, next text, primary key (run, ordinal))

-- migration 6
create index regions_by_name on rangescope.regions ((path[array_length(path, 1)]))

-- migration 7
create view rangescope.history as
  select p.name, p.machine, p.commit, p.dirty, p.began, r.ordinal as run, g.domain, g.path, g.occurrences,
         v.key as tag, (v.value #>> '{}')::double precision as value
  from rangescope.pushes p join rangescope.runs r on r.push = p.id join rangescope.regions g on g.run = r.id,
       jsonb_each(g."values") v

-- migration 8
alter table rangescope.runs add column judged boolean not null default true

-- migrations: lock
select pg_advisory_xact_lock(hashtextextended('rangescope.migrations', 0))

-- migrations: schema
create schema if not exists rangescope

-- migrations: table
create table if not exists rangescope.migrations (
  version integer primary key, applied timestamptz not null default now())

-- load
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
  from rangescope.runs r where r.push = $1 order by r.ordinal

-- strangers
select pg_catalog.quote_ident(o.rolname) from pg_catalog.pg_roles o, pg_catalog.pg_roles me
  where me.rolname = current_user and o.oid <> me.oid and not o.rolsuper
    and (me.rolsuper or not pg_catalog.pg_has_role(o.oid, 'USAGE')
         and o.oid <> (select d.datdba from pg_catalog.pg_database d where d.datname = current_database()))
    and o.oid in (select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'rangescope' union
                  select c.relowner from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                  where n.nspname = 'rangescope')
  limit 1

-- push
insert into rangescope.pushes
    (key, name, machine, host, commit, dirty, began, pushed, tool, command, provenance)
  values ($1, $2, $3, $4, $5, $6::boolean, coalesce(to_timestamp($7::double precision), now()), now(), $8, $9,
          $10::jsonb)
  on conflict (key) do update set name = excluded.name, machine = excluded.machine, host = excluded.host,
    commit = excluded.commit, dirty = excluded.dirty, pushed = excluded.pushed, tool = excluded.tool,
    command = excluded.command, provenance = excluded.provenance
  returning id

-- insert run
insert into rangescope.runs (push, ordinal, run, devices, partial_gpu, losses, judged)
  select $1, $2, d->'run', d->'devices', (d->>'partial_gpu')::boolean, d->'losses', $4::boolean
  from (select $3::jsonb d) t returning id

-- insert regions
insert into rangescope.regions
  select $1, n, array(select jsonb_array_elements_text(r->'path')), r->>'domain', r->>'kind',
         (r->>'occurrences')::bigint, r->'values', r - '{path,domain,kind,occurrences,values}'::text[]
  from jsonb_array_elements($2::jsonb) with ordinality t(r, n)

-- insert kernels
insert into rangescope.kernels
  select $1, n, k->>0, (k->>1)::bigint, (k->>2)::double precision
  from jsonb_array_elements($2::jsonb) with ordinality t(k, n)

-- insert verdict
insert into rangescope.verdicts
  select $1, n, v->>'kind', v->>'severity', v->>'path', v->>'text', (v->>'saves_ns')::double precision,
         (v->>'saves_share')::double precision, v->>'next'
  from jsonb_array_elements($2::jsonb) with ordinality t(v, n)

-- list
select p.name, p.machine, p.host, p.commit, p.command, p.dirty, (extract(epoch from p.began) * 1e9)::bigint,
         (extract(epoch from p.pushed) * 1e9)::bigint,
         (select count(*) from rangescope.runs r where r.push = p.id),
         (select count(*) from rangescope.regions g join rangescope.runs r on r.id = g.run
          where r.push = p.id and r.ordinal = 0),
         (select v.kind || case when v.path = '' then '' else ' ' || v.path end from rangescope.verdicts v
          join rangescope.runs r on r.id = v.run where r.push = p.id order by r.ordinal, v.ordinal limit 1)
  from (select * from rangescope.pushes order by began desc, id desc limit $1) p order by p.began, p.id

-- find
select id, name from rangescope.pushes
  where ($1 = '' or name = $1 or (length($1) >= 4 and starts_with(commit, $1)))
    and ($2::text is null or machine = $2)
    and ($3::text is null or key <> $3 and not exists (
      select from rangescope.runs r where r.push = pushes.id
        and (r.run->'exit_code' not in ('null', '0') or r.run->'signal' <> 'null')))
  order by began desc, id desc limit 1

-- paths
select distinct domain, to_jsonb(path)::text from rangescope.regions
  where path[array_length(path, 1)] = $1 order by 1, 2 limit 1000

-- history
select p.id, p.name, p.machine, p.commit, p.dirty, (extract(epoch from p.began) * 1e9)::bigint,
         (g."values"->>$3)::double precision / case when $4::boolean then nullif(g.occurrences, 0) else 1 end
  from rangescope.pushes p join rangescope.runs r on r.push = p.id join rangescope.regions g on g.run = r.id
  where g.domain = $1 and g.path = array(select jsonb_array_elements_text($2::jsonb)) and g."values" ? $3
  order by p.began, p.id, 7
