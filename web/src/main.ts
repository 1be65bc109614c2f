// The page from top to bottom.
import './flame.css';
import './style.css';
import { data, keep, keptValue, onSelect, Region, rowOf, scopeOf, select, value } from './data';
import { distribution, roofline } from './charts';
import { details, kernels, measureList, processes, provenance, troubles } from './details';
import { flame } from './flame';
import { counted, dark, el, lightOnPaper, themeChanged, time } from './format';
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
  const top = data.regions.filter((r) => scopeOf(r) === (data.rows ? 'rows' : 'all') && r.parent === null);
  for (const tag of ['wall_ns.inclusive', 'gpu.busy_ns', 'gpu.kernel_ns']) {
    const sized = top.filter((r) => (value(r, tag) ?? 0) > 0);
    if (sized.length) return sized.reduce((best, r) => value(r, tag)! > value(best, tag)! ? r : best);
  }
  return null;
}

/** The answer: at most five lines, worst first, each with a link to its region, what to try, what that saves, and the command that looks further. */
function verdict(): HTMLElement {
  if (data.verdict.length === 0) return el('p', { class: 'dim' }, 'No region took measurable time.');
  const longest = Math.max(...data.verdict.map((v) => v.predicted?.before ?? 0));
  return el('ol', { class: 'verdict', 'aria-label': 'verdict, worst first' }, ...data.verdict.map((v) => {
    const region = v.region === null ? undefined : rowOf(v.region);
    const name = v.path.length > 120 ? `${v.path.slice(0, 59)} … ${v.path.slice(-58)}` : v.path;  // stacks of Python
    const link = region ? el('button', { type: 'button', class: 'link', title: v.path }, name) : el('b', { title: v.path }, name);
    if (region) link.onclick = () => { select(region); document.getElementById('h-selected')?.scrollIntoView({ block: 'center' }); };
    return el('li', { class: v.severity, 'data-kind': v.kind }, v.path ? link : null, v.path ? ': ' : '', v.text,
      v.saves ? el('span', { class: 'saves' }, v.saves) : null, v.predicted ? bar(v.predicted, longest) : null,
      v.try ? el('p', { class: 'try' }, v.try) : null, v.next ? el('code', { class: 'next' }, v.next) : null);
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

function page(): void {
  document.title = `${data.run.id} – rangescope`;
  select(firstRegion());
  lightOnPaper();
  onSelect((r) => keep('region', r ? String(r.id) : null));
  const roof = roofline(), cpu = flame(), ofRanks = ranks(), lanes = timeline(), supposed = whatIf(), ofMemory = memory();
  const facts = [data.run.host, data.gpus.join(', '), data.run.duration_ns > 0 ? time(data.run.duration_ns) : '',
    counted(data.processes.length, 'process', 'processes')].filter(Boolean).join(' · ');
  document.getElementById('app')!.append(
    el('header', {}, el('div', {}, el('h1', {}, data.run.id), el('p', { class: 'dim' }, facts), data.command ? el('code', { class: 'block' }, data.command) : null), themeButton()),
    el('main', {}, ...[section('Verdict', 'verdict', verdict()), supposed ? section('What if', 'supposed', supposed) : null, troubles(),
      section('Regions', 'regions', regionTable()), section('Where time goes', 'icicle', icicle()),
      section('Selected region', 'selected', details(), distribution()),
      cpu ? section('On the CPU', 'on-cpu', cpu) : null,
      ofRanks ? section('Ranks', 'of-ranks', ofRanks) : null,
      ofMemory ? section('Memory', 'of-memory', ofMemory) : null,
      lanes ? section('Timeline', 'timeline', lanes) : null,
      roof ? section('Roofline', 'roofline', roof) : null,
      section('Kernels', 'kernels', kernels()),
      data.processes.length ? section('Processes', 'processes', processes()) : null,
      section('Provenance', 'provenance', provenance()),
      section('What the columns are', 'measures', el('details', {}, el('summary', {}, counted(data.measures.length, 'measure')), measureList()), keys())].filter((e): e is HTMLElement => e !== null)));
  document.documentElement.dataset.ready = '1';
}
page();
