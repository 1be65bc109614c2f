// The page from top to bottom.
import './flame.css';
import './style.css';
import { data, keep, keptValue, ofRun, onSelect, Region, rowOf, select, value, Verdict } from './data';
import { distribution, kernelMetrics, roofline } from './charts';
import { details, kernels, measureList, processes, provenance, textTable, troubles } from './details';
import { flame } from './flame';
import { counted, dark, el, lightOnPaper, percent, themeChanged } from './format';
import { icicle } from './icicle';
import { memory } from './memory';
import { bar, whatIf } from './predictions';
import { ranks } from './ranks';
import { regionTable } from './table';
import { timeline } from './timeline';

function themeButton(): HTMLElement {
  const button = el('button', { type: 'button', id: 'theme' });
  const say = (): void => {
    button.textContent = dark() ? '☀' : '☾';
    button.setAttribute('aria-label', dark() ? 'light colours' : 'dark colours');
  };
  button.onclick = () => { document.documentElement.dataset.theme = dark() ? 'light' : 'dark'; say(); themeChanged(); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { say(); themeChanged(); });
  say();
  return button;
}

/** The region that a reader sees first: the verdict's, else the largest at the top. */
function firstRegion(): Region | null {
  const asked = data.regions[Number(keptValue('region') ?? -1)];
  if (asked) return asked;
  for (const v of data.verdict) if (v.region !== null && rowOf(v.region)) return rowOf(v.region)!;
  const top = ofRun().filter((r) => r.parent === null);
  for (const tag of ['wall_ns.inclusive', 'gpu.busy_ns', 'gpu.kernel_ns']) {
    const sized = top.filter((r) => (value(r, tag) ?? 0) > 0);
    if (sized.length) return sized.reduce((best, r) => value(r, tag)! > value(best, tag)! ? r : best);
  }
  return null;
}

/** What a line saves, as text over a bar of that share; the bar of a cure has its interval too. */
function saving(v: Verdict, longest: number): HTMLElement | null {
  if (v.predicted) return el('div', { class: 'saving' }, bar(v.predicted, longest));
  if (!v.saves) return null;
  const box = el('div', { class: 'saving' }, el('span', { class: 'saves' }, v.saves));
  if (v.saves_share !== undefined) {
    const part = el('span', {});
    part.style.width = `${Math.min(100, v.saves_share * 100)}%`;
    box.prepend(el('div', { class: 'saving-track', 'aria-hidden': 'true', title: percent(v.saves_share) }, part));
  }
  return box;
}

/** The answer: at most five cards, worst first: the claim with a link to its region, what to try, the command that looks further, and what it saves at the right. */
function verdict(): HTMLElement {
  if (data.verdict.length === 0) return el('p', { class: 'dim' }, 'No region took measurable time.');
  const longest = Math.max(...data.verdict.map((v) => v.predicted?.before ?? 0));
  return el('ol', { class: 'verdict', 'aria-label': 'verdict, worst first' }, ...data.verdict.map((v) => {
    const region = v.region === null ? undefined : rowOf(v.region);
    const name = v.path.length > 120 ? `${v.path.slice(0, 59)} … ${v.path.slice(-58)}` : v.path;  // stacks of Python
    const link = region ? el('button', { type: 'button', class: 'link', title: v.path }, name) : el('b', { title: v.path }, name);
    if (region) link.onclick = () => { select(region); document.getElementById('h-selected')?.scrollIntoView({ block: 'center' }); };
    const words = el('div', { class: 'words' }, el('p', { class: 'claim' }, v.path ? link : null, v.path ? ': ' : '', v.text),
      v.try ? el('p', { class: 'try' }, v.try) : null, v.next ? el('code', { class: 'next' }, v.next) : null);
    return el('li', { class: v.severity, 'data-kind': v.kind }, words, saving(v, longest));
  }));
}

const kKeys: [string, string][] = [['↑ ↓ Home End', 'move in the table of regions'], ['← →', 'fold and unfold a region'], ['Enter', 'select the region'],
  ['+ −', 'zoom the timeline (when it has the focus)'], ['← → in the timeline', 'move'], ['0', 'the whole timeline'],
  ['m', 'one end of the ruler, then the other (in the timeline)'], ['Esc', 'no ruler'], ['s', 'search the timeline'], ['/', 'search regions'], ['k', 'search kernels'], ['f', 'search functions of the CPU'], ['t', 'to the timeline'], ['?', 'this list']];
function keys(): HTMLElement {
  const list = el('details', { id: 'keys' }, el('summary', {}, 'Keyboard'), el('dl', { class: 'provenance' }, ...kKeys.flatMap(([key, what]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, what)])));
  document.addEventListener('keydown', (event) => {
    const typing = (event.target as HTMLElement).matches('input, select, textarea');
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const to: Record<string, string> = { '/': 'search', k: 'kernel-search', f: 'flame-search', s: 'timeline-search', t: 'timeline' };
    if (event.key === '?') list.open = true, list.scrollIntoView();
    else if (to[event.key]) document.getElementById(to[event.key]!)?.focus();
    else return;
    event.preventDefault();
  });
  return list;
}

const section = (title: string, id: string, ...children: (HTMLElement | null)[]): HTMLElement =>
  el('section', { 'aria-labelledby': `h-${id}` }, el('h2', { id: `h-${id}` }, title), ...children);

/** Kinds of the first line whose answer is in a part of the page: that part comes second. */
const kMemory = new Set(['out_of_memory', 'memory_grows', 'fragmentation', 'peak_memory']);
const kWaits = new Set(['own_wait', 'deadlock']);
const kRanks = new Set(['straggler', 'uneven_work', 'slow_gpu', 'slow_host', 'slow_link']);

function parts(): (HTMLElement | null)[] {
  const part = (title: string, id: string, ...children: (HTMLElement | null)[]): HTMLElement | null =>
    children.some((child) => child !== null) ? section(title, id, ...children) : null;
  const alone = ofRun().length <= 1;  // a program without ranges: where its functions are is all there is to see
  const wrong = troubles(), tables = data.tables.map((t) => textTable(t, true, true));
  const kind = data.verdict[0]?.kind ?? '';
  const waits = alone && kWaits.has(kind);  // then the table of waits is the answer, and the last one
  const cpu = part(waits ? 'Waits and CPU' : 'On the CPU', 'on-cpu', ...(waits ? [...tables].reverse() : []), flame(), ...(alone && !waits ? tables : []));
  const ofMemory = part('Memory', 'of-memory', memory()), ofRanks = part('Ranks', 'of-ranks', ranks());
  const answer = kMemory.has(kind) ? ofMemory : kRanks.has(kind) ? ofRanks : alone ? cpu : null;
  const later = (one: HTMLElement | null): HTMLElement | null => (one === answer ? null : one);
  return [section('Verdict', 'verdict', verdict()), part('What if', 'supposed', whatIf()), answer, wrong && !wrong.waits ? wrong.box : null,
    section('Regions', 'regions', regionTable()), alone ? null : section('Where time goes', 'icicle', icicle()),
    section('Selected region', 'selected', details(), distribution()), later(cpu), later(ofRanks), later(ofMemory),
    part('Timeline', 'timeline', timeline()), part('Roofline', 'roofline', roofline()), part('Kernels', 'kernels', kernels()),
    part('Kernels by metric', 'by-metric', kernelMetrics()),
    data.processes.length ? section('Processes', 'processes', processes()) : null, wrong?.waits ? wrong.box : null,
    section('Provenance', 'provenance', provenance()),
    section('What the columns are', 'measures', el('details', {}, el('summary', {}, counted(data.measures.length, 'measure')), measureList()), keys())];
}

function page(): void {
  const title = data.command || data.run.id;
  document.title = `${title} – rangescope`;
  select(firstRegion());
  lightOnPaper();
  onSelect((r) => keep('region', r ? String(r.id) : null));
  document.getElementById('app')!.append(
    el('header', {}, el('div', {}, el('h1', {}, title), el('p', { class: 'dim', id: 'facts' }, data.facts)), themeButton()),
    el('main', {}, ...parts().filter((e): e is HTMLElement => e !== null)));
  document.documentElement.dataset.ready = '1';
}
page();
