// What is known of the selected region beyond the table; kernels; what the run was.
import { data, KernelRow, Metric, Metrics, onSelect, pathText, selected, TextTable, value } from './data';
import { shown } from './table';
import { bytes, count, counted, el, percent, show, si, time } from './format';

const cells = (tag: 'th' | 'td', list: (string | HTMLElement)[], from = 1): HTMLElement[] =>
  list.map((text, i) => el(tag, i >= from ? { class: 'n' } : {}, text));
function plain(label: string, head: string[], rows: (string | HTMLElement)[][], numericFrom = 1): HTMLElement {
  return el('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': `table of ${label}` }, el('table', { class: 'plain', 'aria-label': label }, el('thead', {}, el('tr', {}, ...cells('th', head, numericFrom))),
    el('tbody', {}, ...rows.map((row) => el('tr', {}, ...cells('td', row, numericFrom))))));
}

/** A table of the terminal's, below its title. */
/** `stacked`: on a narrow screen each row is a paragraph, so that no column is beyond the edge. */
export function textTable(t: TextTable, open: boolean, stacked = false): HTMLElement {
  const cell = (tag: 'th' | 'td', text: string, i: number): HTMLElement => el(tag, {
    ...(t.right[i] ? { class: 'n' } : {}),
    ...(tag === 'th' ? { scope: 'col', role: 'columnheader' } : { role: 'cell', 'data-head': t.heads[i]!, ...(text === '-' ? { 'data-none': '' } : {}) }),
  }, text);
  const row = (tag: 'th' | 'td', list: string[]): HTMLElement => el('tr', { role: 'row' }, ...list.map((text, i) => cell(tag, text, i)));
  return el('details', open ? { open: '' } : {}, el('summary', {}, t.title),
    el('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': `table of ${t.title}` },
      el('table', { class: stacked ? 'plain text stacked' : 'plain text', role: 'table' }, el('thead', {}, row('th', t.heads)), el('tbody', {}, ...t.rows.map((cells) => row('td', cells))))),
    t.more ? el('p', { class: 'dim' }, t.more) : null);
}

const kKernelHeads = ['kernel', 'calls', 'total', 'share', 'median', 'max', 'grid', 'block', 'registers', 'shared'];
function kernelTable(label: string, rows: KernelRow[]): HTMLElement {
  const heads = rows.some((k) => k.counters) ? data.counter_heads : [];
  const table = plain(label, [...kKernelHeads.slice(0, 6), ...heads, ...kKernelHeads.slice(6)], rows.map((k) => [
    el('span', { class: 'long', title: k.name }, k.short || k.name), k.calls < 0 ? '–' : count(k.calls), show(k.total_ns, 'ns'), show(k.share, 'ratio'), show(k.median_ns, 'ns'), show(k.max_ns, 'ns'),
    ...heads.map((_, i) => k.counters?.[i] ?? '–'),
    k.grid[0] ? k.grid.join('×') + (k.shapes > 1 ? ` +${k.shapes - 1}` : '') : '–', k.block[0] ? k.block.join('×') : '–', k.registers ? String(k.registers) : '–', k.shared ? bytes(k.shared) : '–']));
  // What gives way on a narrow screen: first the shape, then median and max.
  for (const row of table.querySelectorAll('tr')) for (const [i, cell] of [...row.children].entries())
    cell.classList.toggle(i >= 6 + heads.length || (heads.length > 0 && (i === 4 || i === 5)) ? 'spare' : i >= 4 ? 'medium' : 'always', true);
  return table;
}

// Of kernels whose program counters were sampled: what their warps wait for, and at which lines.
function waits(rows: KernelRow[]): HTMLElement[] {
  return rows.filter((k) => k.stalls).map((k) => {
    const of = k.stalls!, reasons = of.reasons.slice(0, 3).map((each) => `${percent(each.share)} ${each.reason}`).join(', ');
    return el('details', { class: 'waits', ...(rows.length === 1 ? { open: '' } : {}) }, el('summary', {}, `Why ${k.short || k.name} waits: ${reasons}` + (of.saves_ns === null ? '' : `; saves at most ${time(of.saves_ns)}`)),
      plain(`lines where ${k.short || k.name} waits`, ['at', 'samples', 'mostly'], of.lines.map((line) => [
        el('span', { class: 'long', title: line.text ?? line.at }, line.at, ...(line.text ? [' ', el('code', {}, line.text)] : [])), percent(line.share), `${line.reason} (${percent(line.reason_share)})`])));
  });
}

function metricTable(label: string, list: [string, Metric][]): HTMLElement {
  const table = plain(label, ['metric', 'value', 'spread over rounds', 'rounds', 'source'], list.map(([title, m]) => {
    const name = el('span', { class: 'long', title }, title);
    if (m.absent) return [name, '–', m.absent, '', m.source];
    const spread = m.rounds && m.rounds > 1 ? `${show(m.min, m.unit)} … ${show(m.max, m.unit)}` : '';
    return [name, show(m.value, m.unit), spread, m.rounds ? String(m.rounds) : '–', m.source];
  }));
  for (const row of table.querySelectorAll('tr')) for (const [i, cell] of [...row.children].entries())
    cell.classList.toggle(i === 4 ? 'source' : i >= 2 ? 'medium' : 'always', true);
  return table;
}

/** The selected region, in words and tables. */
export function details(): HTMLElement {
  const box = el('div', { id: 'details', 'aria-live': 'polite' });
  const draw = (): void => {
    const r = selected;
    if (!r) { box.replaceChildren(el('p', { class: 'dim' }, 'Select a region in the table, the icicle, the timeline or the roofline.')); return; }
    const fact = (title: string, text: string, help = ''): HTMLElement => el('div', { class: 'fact', ...(help ? { title: help } : {}) }, el('b', {}, text), el('span', {}, title));
    const facts: HTMLElement[] = [];
    for (const m of data.measures) {
      const v = value(r, m.tag);
      if (['occurrences', 'wall_ns.inclusive', 'wall_ns.exclusive', 'wall_ns.median', 'wall_ns.p95', 'wall_ns.max', 'wall_ns.profiler', 'gpu.busy_share', 'gpu.kernels', 'gpu.kernel_ns', 'gpu.busy_ns', 'gpu.idle_ns', 'gpu.copy_bytes', 'gpu.sync_ns', 'unclosed'].includes(m.tag) && v !== null
          && (v > 0 || m.tag === 'occurrences')) facts.push(fact(m.title, shown(r, m.tag, m.unit), `${m.tag}: ${m.formula}`));
    }
    const parts: (HTMLElement | null)[] = [el('h3', {}, pathText(r)), el('div', { class: 'facts' }, ...facts)];
    if (r.bound) parts.push(el('p', {}, el('b', {}, `Bound: ${r.bound.kind}. `), r.bound.reason));
    if (r.utilization) parts.push(el('p', {}, el('b', {}, 'Utilization: '), [r.utilization.executed === null ? '' : `${percent(r.utilization.executed)} executed`,
      r.utilization.useful === null ? '' : `${percent(r.utilization.useful)} useful`].filter(Boolean).join(', '), ` (${r.utilization.formula})`));
    for (const note of r.notes ?? []) parts.push(el('p', { class: 'dim' }, note));
    if (r.top?.length) parts.push(el('h4', {}, 'Kernels of this region'), kernelTable('kernels of the region', r.top), ...waits(r.top));
    if (r.copies?.length) parts.push(el('h4', {}, 'Copies'), plain('copies', ['kind', 'calls', 'bytes', 'time', 'rate'], r.copies.map((c) => [c.kind.replace(/_/g, ' '), count(c.calls), bytes(c.bytes), time(c.total_ns),
      c.total_ns > 0 && c.bytes > 0 ? si(c.bytes / c.total_ns * 1e9, 'B/s') : '–'])));
    const entries = (of: Metrics | undefined): [string, Metric][] => Object.entries(of ?? {});
    const measured = entries(r.metrics).filter(([, m]) => !m.absent), absent = entries(r.metrics).filter(([, m]) => m.absent);
    if (measured.length) parts.push(el('h4', {}, 'Metrics'), metricTable('metrics of the region', measured));
    if (absent.length) parts.push(el('details', {}, el('summary', {}, counted(absent.length, 'metric') + ' without a value for the region as a whole'), metricTable('metrics without a value', absent)));
    if (r.counted?.length) parts.push(el('details', { id: 'counted' }, el('summary', {}, `Counters of ${counted(r.counted.length, 'measured kernel')}, one by one`),
      ...r.counted.slice(0, 50).map((k) => el('details', {}, el('summary', {}, `${k.ordinal}: ${k.name}` + (k.bound ? ` (${k.bound.kind})` : '')),
        ...(k.bound ? [el('p', {}, k.bound.reason)] : []), metricTable(`metrics of kernel ${k.ordinal}`, entries(k.metrics))))));
    box.replaceChildren(...parts.filter((p): p is HTMLElement => p !== null));
  };
  onSelect(draw);
  draw();
  return box;
}

/** Kernels of the run: sorted by a click on a head, found by a part of their name. */
export function kernels(): HTMLElement | null {
  if (data.kernels.length === 0) return null;
  const kMost = 200;
  const heads: [string, ((k: KernelRow) => number | string) | null][] = [['kernel', (k) => (k.short || k.name).toLowerCase()], ['calls', (k) => k.calls], ['total', (k) => k.total_ns],
    ['share', (k) => k.share], ['median', (k) => k.median_ns], ['max', (k) => k.max_ns],
    ...data.counter_heads.map((title, i): [string, ((k: KernelRow) => number | string) | null] => [title, (k) => k.counters?.[i] ?? '']), ['grid', null], ['block', null], ['registers', (k) => k.registers], ['shared', (k) => k.shared]];
  let sort = 2, down = true;
  const input = el('input', { type: 'search', id: 'kernel-search', placeholder: 'search kernels', 'aria-label': 'search kernels', autocomplete: 'off', spellcheck: 'false' });
  const status = el('span', { class: 'dim', role: 'status', id: 'kernel-rows' });
  const box = el('div', { id: 'kernels' });
  const draw = (): void => {
    const want = input.value.toLowerCase(), key = heads[sort]![1]!;
    const list = data.kernels.filter((k) => k.name.toLowerCase().includes(want) || k.short.toLowerCase().includes(want)).sort((a, b) => {
      const x = key(a), y = key(b), less = typeof x === 'string' ? x.localeCompare(String(y), 'en', { numeric: true }) : (x ?? -1) - ((y as number) ?? -1);
      return down ? -less : less;
    });
    status.textContent = counted(list.length, 'kernel') + (list.length > kMost ? `, the first ${kMost} shown` : '');
    const table = kernelTable('kernels of the whole run', list.slice(0, kMost));
    table.querySelectorAll('thead th').forEach((th, i) => {
      if (!heads[i]![1]) return;
      const button = el('button', { type: 'button' }, heads[i]![0] + (i === sort ? (down ? ' ▾' : ' ▴') : ''));
      button.onclick = () => { down = i === sort ? !down : i > 0; sort = i; draw(); (box.querySelectorAll('thead th')[i]!.firstChild as HTMLElement).focus(); };
      th.setAttribute('aria-sort', i === sort ? (down ? 'descending' : 'ascending') : 'none');
      th.replaceChildren(button);
    });
    box.replaceChildren(table, ...waits(list.slice(0, kMost)));
  };
  input.oninput = draw;
  draw();
  return el('div', {}, el('div', { class: 'bar' }, input, status), box);
}

/** Losses and findings, worst first; null when all is well. Notes alone can wait: they are at the end of the page. */
export function troubles(): { box: HTMLElement; waits: boolean } | null {
  const rank = (s: string): number => ({ error: 0, fail: 0, warning: 1, warn: 1 })[s] ?? 2;
  const items: [number, HTMLElement][] = [];
  for (const f of data.findings) if (f.verdict !== 'ok' && f.verdict !== 'skip') items.push([rank(f.verdict), el('li', { class: rank(f.verdict) ? 'warn' : 'bad' }, el('b', {}, f.found), f.hint ? ` ${f.hint}.` : '',
    ...f.commands.map((c) => el('code', { class: 'block' }, c)), el('span', { class: 'tag' }, f.id))]);
  for (const l of data.losses) items.push([rank(l.severity), el('li', { class: ['bad', 'warn', ''][rank(l.severity)]! }, l.detail, el('span', { class: 'tag' }, l.count > 1 ? `${l.kind} ${count(l.count)}` : l.kind))]);
  if (items.length === 0) return null;
  const worst = Math.min(...items.map(([r]) => r));
  const box = el('section', { class: `troubles ${['bad', 'warn', ''][worst]}`, 'aria-label': 'data losses and findings', id: 'losses' },
    el('h2', {}, worst === 2 ? 'Notes on the capture' : 'What is missing or wrong'), el('ul', {}, ...items.sort((a, b) => a[0] - b[0]).map(([, e]) => e)));
  return { box, waits: worst === 2 };
}

/** Provenance, command, environment. */
export function provenance(): HTMLElement {
  const r = data.run, rows: [string, string][] = [['run', r.id], ['command', data.command], ['in', r.cwd ?? ''], ['host', r.host ?? ''],
    ['started', r.start_unix_ns === null ? '' : new Date(r.start_unix_ns / 1e6).toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC')], ['lasted', r.duration_ns > 0 ? time(r.duration_ns) : ''],
    ['ended', r.signal !== null ? `by signal ${r.signal}` : r.exit_code !== null ? `with exit code ${r.exit_code}` : ''], ['reported by', r.tool ?? ''], ...r.sources.map((s): [string, string] => ['read from', s]),
    ...data.devices.map((d): [string, string] => [`GPU ${d.ordinal}`, [d.name, d.sm_count ? `${d.sm_count} SMs` : '', d.memory_bytes ? bytes(d.memory_bytes) : ''].filter(Boolean).join(', ')]),
    ...Object.entries(r.environment), ...data.notes.map((n): [string, string] => ['note', n])];
  const seen = new Set<string>();
  const list = rows.filter(([k, v]) => v && !seen.has(k + v) && seen.add(k + v));
  return el('dl', { class: 'provenance' }, ...list.flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]));
}

export const processes = (): HTMLElement => plain('processes', ['process', 'name', 'started', 'ended', 'ranges', 'kernels'], data.processes.map((p) =>
  [String(p.pid), el('span', { class: 'long', title: p.name }, p.name), p.end_ns > 0 ? time(p.start_ns) : '–', p.end_ns > 0 ? time(p.end_ns) : '–', show(p.ranges, 'count'), show(p.kernels, 'count')]), 2);

export const measureList = (): HTMLElement => plain('measures', ['column', 'name in other formats', 'unit', 'what it is', 'source'], data.measures.map((m) => [m.title, m.tag, m.unit, m.formula, m.source]), 9);
