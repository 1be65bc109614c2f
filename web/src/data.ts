// The data that the exporter put into the page; its layout is described in src/report/formats/html/data.hpp.
export interface Measure { tag: string; title: string; unit: string; source: string; formula: string; sum?: boolean }
export interface KernelRow {
  name: string; short: string; calls: number; total_ns: number; median_ns: number; max_ns: number;
  share: number; grid: number[]; block: number[]; registers: number; shared: number; shapes: number; counters?: string[]; stalls?: Stalls;
}
export interface Stalls {
  samples: number; saves_ns: number | null; reasons: { reason: string; share: number }[];
  lines: { at: string; share: number; reason: string; reason_share: number; text?: string }[];
}
export interface Metric { unit: string; source: string; value: number | null; min: number | null; max: number | null; rounds: number; absent?: string }
export type Metrics = Record<string, Metric>;
export interface Point {
  level: string; precision: string; flops: number; bytes: number; intensity: number; flop_per_s: number; roof_flop_per_s: number; peak_flop_per_s: number; peak_bytes_per_s: number;
}
/** A kernel with counters. */
export interface KernelPoint { name: string; share: number | null; roofline?: Point[]; metrics?: Metrics }
export interface Bound { kind: string; reason: string }
export interface Region {
  id: number; parent: number | null; depth: number; path: string[]; domain: string; kind: string;
  process?: number; pid?: number; thread?: number; v: (number | null)[];
  module?: boolean;  // its wall time is from launch to launch
  siblings?: number; members?: Region[];  // of a row that stands for regions whose names differ by a number
  label?: string;  // of a row that stands for a chain
  each?: boolean;  // GPU sums are those of one occurrence: the timeline was paused during others
  top?: KernelRow[]; copies?: { kind: string; calls: number; bytes: number; total_ns: number }[];
  metrics?: Metrics; counted?: { name: string; ordinal: number; metrics: Metrics; bound: Bound | null }[];
  roofline?: Point[]; bound?: Bound; utilization?: { executed: number | null; useful: number | null; formula: string };
  samples?: number[]; notes?: string[];
}
export interface Row { parent: number | null; depth: number; siblings: number; members: number[]; label?: string; joined?: number[]; region?: Region }
export interface Chunk { s: number; e: number; n: number; d: string }
export interface Level { r: number; chunks: Chunk[] }
export interface Lane {
  title: string; pid?: number; rank?: number; kind: 'thread' | 'stream'; rows: number; items: number; full: boolean; levels: Level[];
}
export interface Counter { title: string; unit: string; most: number; step: number; d: string }
export interface Timeline { duration: number; items: number; lanes: Lane[]; names: [string, number][]; counters?: Counter[] }
/** A part of wall time: kind, name, ns, and of them while the GPU was idle. */
export type CpuPart = [string, string, number, number | null];
export interface CpuRegion { id: number; samples: number; split: CpuPart[]; parts: CpuPart[]; stacks: number[] }
export interface Cpu { interval_ns: number; shortened: number; names: [string, number, string][]; nodes: number[]; regions: CpuRegion[]; outside: number[] }
/** A table of the terminal's; `right` says of each column whether it is of numbers. */
export interface TextTable { title: string; heads: string[]; right: boolean[]; rows: string[][]; more: string }
/** Microseconds of each rank; three bytes a stretch of the run: compute, transfer, wait. */
export interface Job {
  ranks: { rank: number; host: string; device: string }[]; heat: { region: number; own: (number | null)[]; all: (number | null)[] }[];
  activity: string[]; tables: TextTable[];
}
/** Nanoseconds before and after a change, and the interval of the latter. */
export interface Predicted { before: number; after: number; low: number; high: number; at_most: boolean }
export interface Verdict {
  kind: string; severity: string; path: string; region: number | null; text: string; try: string; saves: string; next: string;
  saves_share?: number;  // of the run, or of all kernels' time
  predicted?: Predicted;  // of a cure
}
export interface WhatIf { changes: { change: string; of: string }[]; run: Predicted; regions: (Predicted & { region: number })[] }
export interface MemoryPart { use: string; bytes: number; blocks: number; owner: string | null }
export interface DeviceMemory {
  process: number; pid: number | null; device: number; allocator: string; peak_bytes: number; peak_at_ns: number; peak_reserved_bytes: number | null;
  parts: MemoryPart[]; points: { at_ns: number; allocated_bytes: number; reserved_bytes: number | null }[];
}
export interface Data {
  verdict: Verdict[]; what_if?: WhatIf;
  run: {
    id: string; tool: string | null; cwd: string | null; start_unix_ns: number | null; duration_ns: number;
    exit_code: number | null; signal: number | null; host: string | null; sources: string[]; environment: Record<string, string>;
  };
  command: string;
  facts: string;  // the line below the command: wall, CPU, memory, GPU, machine
  measures: Measure[];
  processes: { pid: number; name: string; start_ns: number; end_ns: number; ranges: number; kernels: number; rank: number | null }[];
  gpus: string[];  // "2x NVIDIA H200"
  devices: { name: string; ordinal: number; sm_count: number; memory_bytes: number }[];
  regions: Region[]; rows?: Row[]; counter_heads: string[]; kernels: KernelRow[]; kernel_points?: KernelPoint[]; total: (number | null)[] | null; unattributed: (number | null)[] | null;
  outside_ns: number | null;
  losses: { kind: string; severity: string; count: number; detail: string }[];
  findings: { id: string; verdict: string; question: string; found: string; hint: string; commands: string[] }[];
  notes: string[]; timeline: Timeline | null; cpu: Cpu | null; job: Job | null;
  tables: TextTable[];  // of a program without ranges: its functions and waits
  memory?: DeviceMemory[];  // absent where no allocator was recorded
}

export const data = JSON.parse(document.getElementById('data')!.textContent!) as Data;
// The rows of the terminal's table stand behind the regions, as regions of a scope of their own.
const firstRow = data.regions.length;
for (const { parent, depth, siblings, members, label, region } of data.rows ?? [])
  data.regions.push({ ...(region ?? data.regions[members[0]!]!), id: data.regions.length, parent: parent === null ? null : firstRow + parent, depth, siblings,
    members: members.map((id) => data.regions[id]!), label });
/** What stands for a region in the table that is seen first. */
export function rowOf(id: number): Region | undefined {
  const row = data.rows?.findIndex((one) => one.members.includes(id) || one.joined?.includes(id)) ?? -1;
  return data.regions[row < 0 ? id : firstRow + row];
}
const index = new Map(data.measures.map((m, i) => [m.tag, i]));

/** A measure of a region, null where the region does not have it. */
export function value(region: Region, tag: string): number | null {
  const at = index.get(tag);
  return at === undefined ? null : region.v[at] ?? null;
}
export const measure = (tag: string): Measure | undefined => data.measures[index.get(tag) ?? -1];
const last = (region: Region): string => region.path[region.path.length - 1] ?? '';
/** Below "model.layers.3 (Layer)" a module is "mlp (Mlp)". */
export function name(region: Region): string {
  if (region.label) return region.label;
  const above = region.module && region.parent !== null ? data.regions[region.parent]! : null;
  const prefix = above?.module ? last(above).replace(/ \(.*$/, '') + '.' : '';
  const text = last(region).startsWith(prefix) ? last(region).slice(prefix.length) : last(region);
  return text + ((region.siblings ?? 1) > 1 ? ` x${region.siblings}` : '');
}
export const pathText = (region: Region): string =>
  (region.domain ? region.domain + '@' : '') + region.path.join(' > ') + (region.kind === 'start_end' ? ' (start/end)' : '') +
  ((region.siblings ?? 1) > 1 ? ` x${region.siblings}` : '');
/** Which table a region stands in. */
export const scopeOf = (region: Region): string =>
  region.members ? 'rows' : region.process === undefined ? 'all' : region.thread === undefined ? `p${region.process}` : `p${region.process}t${region.thread}`;
/** Regions of the whole run, without those of single processes and threads. */
export const ofRun = (): Region[] => data.regions.filter((r) => scopeOf(r) === (data.rows ? 'rows' : 'all'));
/** Whether a table holds all of the run, with what lies outside its regions. */
export const ofAll = (scope: string): boolean => scope === 'all' || scope === 'rows';

/** A process as people name it: its rank where its environment said one. */
export function processText(index: number): string {
  const p = data.processes[index];
  if (!p) return `process ${index}`;
  return p.rank === null ? `process ${p.pid}` : `rank ${p.rank} (process ${p.pid})`;
}

/** What the page keeps in its address, so that a link shows what its sender saw: `#region=3&time=1200-5400`. */
const kept = new URLSearchParams(location.hash.slice(1));
export const keptValue = (key: string): string | null => kept.get(key);
export function keep(key: string, text: string | null): void {
  text === null ? kept.delete(key) : kept.set(key, text);
  const hash = kept.toString();
  history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
}

/** What the rest of the page follows. */
type Listener = (region: Region | null) => void;
const listeners: Listener[] = [];
export let selected: Region | null = null;
export const onSelect = (listener: Listener): void => void listeners.push(listener);
export function select(region: Region | null): void {
  selected = region;
  for (const listener of listeners) listener(region);
}
