// The page from top to bottom.
import './style.css';
import { data, measure, pathText, Region, scopeOf, select, value } from './data';
import { distribution, roofline } from './charts';
import { details, kernels, measureList, processes, provenance, troubles } from './details';
import { counted, dark, el, show, themeChanged, time } from './format';
import { icicle } from './icicle';
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

/** The largest region at the top, by the best measure that the input has. */
function slowestRegion(): [Region | null, string] {
  const top = data.regions.filter((r) => scopeOf(r) === 'all' && r.parent === null);
  for (const tag of ['wall_ns.inclusive', 'gpu.busy_ns', 'gpu.kernel_ns']) {
    const sized = top.filter((r) => (value(r, tag) ?? 0) > 0);
    if (sized.length) return [sized.reduce((best, r) => value(r, tag)! > value(best, tag)! ? r : best), tag];
  }
  return [null, ''];
}

/** The answer in a line: the slowest region, what bounds it, its top kernel. */
function headline(slowest: Region | null, tag: string): HTMLElement {
  const line = el('p', { class: 'headline' });
  if (!slowest) { line.append('No region took measurable time.'); return line; }
  const link = el('button', { type: 'button', class: 'link' }, pathText(slowest));
  link.onclick = () => select(slowest);
  line.append('Slowest region: ', link, `, ${measure(tag)?.title ?? ''} ${show(value(slowest, tag), 'ns')}`);
  if (slowest.bound && slowest.bound.kind !== 'unknown') line.append('; bound: ', el('b', { title: slowest.bound.reason }, slowest.bound.kind));
  const kernel = slowest.top?.[0];
  if (kernel) line.append('; top kernel: ', el('b', { title: kernel.name }, kernel.short || kernel.name), ` (${show(kernel.share, 'ratio')} of its kernel time)`);
  line.append('.');
  return line;
}

const section = (title: string, id: string, ...children: (HTMLElement | null)[]): HTMLElement =>
  el('section', { 'aria-labelledby': `h-${id}` }, el('h2', { id: `h-${id}` }, title), ...children);

function page(): void {
  document.title = `${data.run.id} – rangescope`;
  const [slowest, tag] = slowestRegion();
  select(slowest);
  const roof = roofline();
  const facts = [data.run.host, data.gpus.join(', '), data.run.duration_ns > 0 ? time(data.run.duration_ns) : '',
    counted(data.processes.length, 'process', 'processes')].filter(Boolean).join(' · ');
  document.getElementById('app')!.append(
    el('header', {}, el('div', {}, el('h1', {}, data.run.id), el('p', { class: 'dim' }, facts), data.run.command ? el('code', { class: 'block' }, data.run.command) : null, headline(slowest, tag)), themeButton()),
    el('main', {}, ...[troubles(),
      el('div', { class: 'two' }, section('Regions', 'regions', regionTable()), section('Where time goes', 'icicle', icicle())),
      section('Selected region', 'selected', details(), distribution()),
      section('Timeline', 'timeline', timeline()),
      roof ? section('Roofline', 'roofline', roof) : null,
      section('Kernels', 'kernels', kernels()),
      data.processes.length ? section('Processes', 'processes', processes()) : null,
      section('Provenance', 'provenance', provenance()),
      section('What the columns are', 'measures', el('details', {}, el('summary', {}, counted(data.measures.length, 'measure')), measureList()))].filter((e): e is HTMLElement => e !== null)));
  document.documentElement.dataset.ready = '1';
}
page();
