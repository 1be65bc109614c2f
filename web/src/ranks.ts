// Ranks of a parallel job: a heat map of regions and ranks, and what every rank did over one axis of time. Canvases that
// group neighbours where there are more ranks than pixels; the cell below the pointer or the keyboard is told as text.
import { data, Job, onSelect, pathText, select, selected } from './data';
import { textTable } from './details';
import { dark, el, onTheme, percent, time, token } from './format';

const kGutter = 64, kNarrow = 44, kLine = 18, kBins = 256, kMargin = 0.5;
const kKinds = ['compute', 'transfer', 'waiting'] as const;

const rankText = (job: Job, i: number): string => {
  const r = job.ranks[i]!, more = [r.host, r.device].filter(Boolean).join(', ');
  return `rank ${r.rank}${more ? ` (${more})` : ''}`;
};
const median = (list: number[]): number => {
  const sorted = [...list].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
};
/** Blue is less than usual, orange more; -1..1. */
const tint = (x: number): string => {
  const to = x < 0 ? 212 : 22, strength = Math.min(1, Math.abs(x));
  return dark() ? `hsl(${to} ${20 + 60 * strength}% ${20 + 34 * strength}%)` : `hsl(${to} ${20 + 65 * strength}% ${94 - 44 * strength}%)`;
};
const shade = (i: number): string => ['hsl(212 70% 58%)', 'hsl(165 55% 42%)', 'hsl(22 88% 55%)'][i]!;

interface Grid { box: HTMLElement; canvas: HTMLCanvasElement; width: () => number; gutter: () => number; redraw: (all?: boolean) => void }
interface Part { height: () => number; paint: (g: CanvasRenderingContext2D) => void; mark: (g: CanvasRenderingContext2D) => void }
/** A canvas with a line of text below it that tells the cell in focus. `move`: arrow keys; `at`: a point of the canvas. What is painted is kept: a move draws only the mark. */
function grid(id: string, label: string, part: Part, at: (x: number, y: number) => string, move: (dx: number, dy: number) => string, pick: (x: number, y: number) => void): Grid {
  const canvas = el('canvas', { id, tabindex: '0', role: 'img', 'aria-label': label }), kept = el('canvas');
  const said = el('p', { class: 'picked', id: `${id}-said`, 'aria-live': 'polite' });
  const box = el('div', { class: 'grid' }, el('div', { class: 'lanes' }, canvas), said);
  const width = (): number => Math.max(160, (canvas.parentElement?.clientWidth ?? 800));
  let queued = false, whole = true;
  const pen = (on: HTMLCanvasElement): CanvasRenderingContext2D => {
    const g = on.getContext('2d')!, ratio = devicePixelRatio || 1;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = '11px system-ui, sans-serif';
    g.textBaseline = 'middle';
    return g;
  };
  function draw(): void {
    queued = false;
    const ratio = devicePixelRatio || 1, w = width(), h = part.height();
    if (whole) {
      for (const one of [canvas, kept]) one.width = Math.round(w * ratio), one.height = Math.round(h * ratio);
      canvas.style.width = `${w}px`;
      canvas.style.height = `${h}px`;
      part.paint(pen(kept));
      whole = false;
    }
    const g = canvas.getContext('2d')!;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, canvas.width, canvas.height);
    g.drawImage(kept, 0, 0);
    if (document.activeElement === canvas) part.mark(pen(canvas));
  }
  const redraw = (all = true): void => {
    whole ||= all;
    if (queued) return;
    queued = true;
    requestAnimationFrame(draw);
  };
  const point = (event: MouseEvent): [number, number] => { const b = canvas.getBoundingClientRect(); return [event.clientX - b.left, event.clientY - b.top]; };
  canvas.addEventListener('pointermove', (event) => { said.textContent = at(...point(event)); });
  canvas.addEventListener('click', (event) => { pick(...point(event)); said.textContent = move(0, 0); redraw(false); });
  canvas.addEventListener('focus', () => { said.textContent = move(0, 0); redraw(false); });
  canvas.addEventListener('blur', () => redraw(false));
  canvas.addEventListener('keydown', (event) => {
    const by: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = by[event.key];
    if (!step) { if (event.key === 'Enter') pick(-1, -1); return; }
    said.textContent = move(...step);
    redraw(false);
    event.preventDefault();
  });
  onTheme(() => { whole = true; if (box.isConnected) draw(); });
  new ResizeObserver(() => redraw()).observe(box);
  return { box, canvas, width, gutter: () => width() < 500 ? kNarrow : kGutter, redraw };
}
const clamp = (x: number, most: number): number => Math.max(0, Math.min(most, x));

function heat(job: Job): HTMLElement {
  const regions = job.heat.map((h) => ({ ...h, text: pathText(data.regions[h.region]!), name: data.regions[h.region]!.path.join(' > ') }));
  const ranks = job.ranks.length;
  let own = true, row = 0, rank = 0;
  const usual = new Map<string, number>();
  const list = (i: number): (number | null)[] => own ? regions[i]!.own : regions[i]!.all;
  const middle = (i: number): number => {
    const key = `${own}${i}`;
    if (!usual.has(key)) usual.set(key, median(list(i).map((v) => v ?? 0)));
    return usual.get(key)!;
  };
  const level = (i: number, k: number): number | null => {
    const v = list(i)[k], m = middle(i);
    return v === null || v === undefined ? null : m > 0 ? (v / m - 1) / kMargin : v > 0 ? 1 : 0;
  };
  const tell = (i: number, k: number): string => {
    const v = list(i)[k], m = middle(i);
    return `${regions[i]!.text}, ${rankText(job, k)}: ${v === null || v === undefined ? 'not opened' : `${time(v * 1000)}${m > 0 ? `, ${v >= m ? '+' : '−'}${percent(Math.abs(v / m - 1))} of the median` : ', the median is 0'}`}`;
  };
  const left = (): number => Math.min(220, Math.round(view.width() * 0.34));
  const cell = (x: number, y: number): [number, number] => [clamp(Math.floor((y - kLine) / kLine), regions.length - 1), clamp(Math.floor((x - left()) / (view.width() - left()) * ranks), ranks - 1)];
  const view = grid('heat', `heat map of ${regions.length} regions and ${ranks} ranks: time against the median of the ranks. Arrow keys move, Enter selects the region`,
    { height: () => (regions.length + 1) * kLine, paint, mark },
    (x, y) => y < kLine ? '' : tell(...cell(x, y)),
    (dx, dy) => { row = clamp(row + dy, regions.length - 1); rank = clamp(rank + dx, ranks - 1); return tell(row, rank); },
    (x, y) => { if (x >= 0) [row, rank] = cell(x, y); select(data.regions[regions[row]!.region]!); });
  function paint(g: CanvasRenderingContext2D): void {
    const l = left(), w = view.width() - l, text = token('--text'), dim = token('--dim'), line = token('--line');
    const columns = Math.min(ranks, Math.max(1, Math.floor(w))), wide = w / columns;
    const every = Math.ceil(ranks / Math.max(1, w / 46));
    g.fillStyle = dim;
    for (let k = 0; k < ranks; k += every) g.fillText(String(job.ranks[k]!.rank), l + k / ranks * w + 2, kLine / 2);
    g.fillText('rank', 4, kLine / 2);
    regions.forEach((r, i) => {
      const y = (i + 1) * kLine;
      for (let c = 0; c < columns; ++c) {  // of ranks that share a column the one that differs most
        let most: number | null = null;
        for (let k = Math.floor(c * ranks / columns); k < Math.max(Math.floor(c * ranks / columns) + 1, Math.floor((c + 1) * ranks / columns)); ++k) {
          const v = level(i, k);
          if (v !== null && (most === null || Math.abs(v) > Math.abs(most))) most = v;
        }
        if (most === null) { g.fillStyle = line; g.fillRect(l + c * wide, y + kLine / 2, Math.ceil(wide), 1); continue; }
        g.fillStyle = tint(most);
        g.fillRect(l + c * wide, y, wide > 3 ? wide - 1 : Math.ceil(wide), kLine - 1);
      }
      g.fillStyle = selected && data.regions[r.region] === selected ? token('--accent') : text;
      let name = r.name;
      while (name.length > 3 && g.measureText(name).width > l - 10) name = `…${name.slice(2)}`;
      g.fillText(name, 4, y + kLine / 2);
    });
  }
  function mark(g: CanvasRenderingContext2D): void {
    const l = left(), w = view.width() - l;
    g.strokeStyle = token('--mark');
    g.lineWidth = 2;
    g.strokeRect(l + rank / ranks * w, (row + 1) * kLine, Math.max(3, w / ranks - 1), kLine - 1);
  }
  const what = el('select', { 'aria-label': 'which time', id: 'heat-time' }, el('option', { value: 'own' }, 'own time, without child regions and communication'), el('option', { value: 'all' }, 'all time'));
  what.onchange = () => { own = what.value === 'own'; view.redraw(); };
  const scale = el('span', { class: 'ramp', role: 'img', 'aria-label': 'colours: blue is half the median or less, orange one and a half times or more' });
  const paintScale = (): void => { scale.style.background = `linear-gradient(to right, ${tint(-1)}, ${tint(0)}, ${tint(1)})`; };
  const legend = el('span', { class: 'legend dim' }, '−50 %', scale, '+50 % of the median; a line: not opened');
  onSelect(() => view.redraw());
  onTheme(paintScale);
  paintScale();
  return el('div', {}, el('h3', {}, 'Regions by rank'), el('div', { class: 'bar' }, what, legend), view.box);
}

function activity(job: Job): HTMLElement {
  const rows = job.activity.map((d) => Uint8Array.from(atob(d), (c) => c.charCodeAt(0))), ranks = rows.length;
  const tall = Math.max(2, Math.min(18, Math.floor(640 / ranks)));
  const gap = tall > 5 ? 1 : 0;
  let rank = 0, bin = 0;
  const share = (k: number, b: number, kind: number): number => rows[k]![b * 3 + kind]! / 255;
  const span = data.run.duration_ns;
  const tell = (k: number, b: number): string => `${rankText(job, k)} at ${time(b / kBins * span)}: ${kKinds.map((kind, i) => `${percent(share(k, b, i))} ${kind}`).join(', ')}`;
  const cell = (x: number, y: number): [number, number] => [clamp(Math.floor((y - kLine) / tall), ranks - 1), clamp(Math.floor((x - view.gutter()) / (view.width() - view.gutter()) * kBins), kBins - 1)];
  const view = grid('activity', `what ${ranks} ranks did over time: compute, transfer, waiting. Arrow keys move`, { height: () => kLine + ranks * tall + 4, paint, mark }, (x, y) => y < kLine ? '' : tell(...cell(x, y)),
    (dx, dy) => { rank = clamp(rank + dy, ranks - 1); bin = clamp(bin + dx, kBins - 1); return tell(rank, bin); },
    (x, y) => { if (x >= 0) [rank, bin] = cell(x, y); });
  function paint(g: CanvasRenderingContext2D): void {
    const l = view.gutter(), w = view.width() - l, dim = token('--dim');
    g.fillStyle = dim;
    const ticks = Math.max(2, Math.floor(w / 110));
    for (let i = 0; i < ticks; ++i) g.fillText(time(span * i / ticks), l + w * i / ticks + 2, kLine / 2);
    const every = Math.ceil(14 / tall);
    for (let k = 0; k < ranks; ++k) {
      const y = kLine + k * tall;
      if (k % every === 0) { g.fillStyle = dim; g.fillText(l < kGutter ? String(job.ranks[k]!.rank) : `rank ${job.ranks[k]!.rank}`, 4, y + Math.min(tall, 14) / 2); }
      for (let b = 0; b < kBins; ++b) {
        const x = l + b / kBins * w;
        let from = y + tall - gap;
        for (let i = 0; i < 3; ++i) {
          const h = share(k, b, i) * (tall - gap);
          if (h < 0.05) continue;
          g.fillStyle = shade(i);
          g.fillRect(x, from - h, w / kBins + 0.5, h);
          from -= h;
        }
      }
    }
  }
  function mark(g: CanvasRenderingContext2D): void {
    const l = view.gutter(), w = view.width() - l;
    g.strokeStyle = token('--text');
    g.strokeRect(l + bin / kBins * w, kLine + rank * tall, Math.max(3, w / kBins), Math.max(3, tall - gap));
  }
  const legend = el('span', { class: 'legend dim' }, ...kKinds.flatMap((kind, i) => {
    const key = el('span', { class: 'swatch' });
    key.style.background = shade(i);
    return [key, kind];
  }));
  return el('div', {}, el('h3', {}, 'Ranks over time'), el('div', { class: 'bar' }, legend), view.box);
}

export function ranks(): HTMLElement | null {
  const job = data.job;
  if (!job) return null;
  const tables = job.tables.map((t) => textTable(t, t.rows.length <= 12));
  return el('div', { id: 'ranks' }, job.heat.length ? heat(job) : null, job.activity.length ? activity(job) : null, ...tables);
}
