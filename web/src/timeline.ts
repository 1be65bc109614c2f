// The timeline: a canvas that draws, of each lane, the coarsest level of detail that is finer than a pixel. Chunks are
// decoded when they first come into view.
import { Chunk, data, keep, keptValue, Lane, Level, onSelect, Region, select, selected, value } from './data';
import { color, count, counted, el, onTheme, show, time, token } from './format';

const kRow = 17, kGap = 10, kTitle = 16, kCounter = 34;
interface Items { start: Float64Array; end: Float64Array; row: Uint8Array; name: Uint32Array; a: Float64Array; b: Float64Array }
const cache = new WeakMap<Chunk, Items>();

/** A chunk's items; the layout of the bytes is in src/report/formats/html/data.hpp. */
function decode(chunk: Chunk, level: Level, lane: Lane): Items {
  const known = cache.get(chunk);
  if (known) return known;
  const bytes = atob(chunk.d), n = chunk.n;
  const out: Items = { start: new Float64Array(n), end: new Float64Array(n), row: new Uint8Array(n), name: new Uint32Array(n), a: new Float64Array(n), b: new Float64Array(n) };
  let at = 0;
  const next = (): number => {
    let x = 0, scale = 1;
    for (;;) {
      const byte = bytes.charCodeAt(at++);
      x += (byte & 127) * scale;
      if (byte < 128) return x;
      scale *= 128;
    }
  };
  const signed = (): number => { const x = next(); return x % 2 ? -(x + 1) / 2 : x / 2; };
  const merged = level.r > 0, stream = lane.kind === 'stream';
  let last = 0, low = Infinity;
  for (let i = 0; i < n; ++i) {
    last += signed();
    low = Math.min(low, last);
    out.start[i] = last;
    out.end[i] = last + next();
    out.row[i] = next();
    out.name[i] = next();
    out.a[i] = next();
    if (merged || (stream && out.a[i]! > 0)) out.b[i] = merged ? next() : signed();
  }
  const shift = chunk.s - low;
  if (n > 0 && shift) for (let i = 0; i < n; ++i) out.start[i]! += shift, out.end[i]! += shift;
  cache.set(chunk, out);
  return out;
}

interface Hit { lane: number; start: number; end: number; row: number; name: number; count: number; busy: number; from: number; call: number; flags: number }

/** A moment with as many digits as its neighbours need. */
function tick(at: number, step: number): string {
  if (at === 0) return '0';
  const [scale, unit] = ([[1e9, 's'], [1e6, 'ms'], [1e3, 'us']] as [number, string][]).find(([size]) => at >= size) ?? [1, 'ns'];
  return `${(at / scale).toFixed(Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9)))} ${unit}`;
}
const brief = (text: string): string => text.length > 140 ? `${text.slice(0, 139)}…` : text;

/** Null where nothing says when something ran, as in files of ncu. */
export function timeline(): HTMLElement | null {
  const t = data.timeline;
  if (!t || !t.lanes.some((lane) => lane.items > 0)) return null;
  const names = t.names;
  // It starts where something happens.
  const chunks = t.lanes.flatMap((l) => l.levels[0]?.chunks ?? []);
  const first = Math.min(...chunks.map((c) => c.s)), last = Math.max(...chunks.map((c) => c.e)), margin = (last - first) * 0.02;
  let from = Math.max(0, first - margin), to = Math.max(from + 1, Math.min(t.duration, last + margin)), width = 800, hit: Hit | null = null;
  const sent = (keptValue('time') ?? '').split('-').map(Number);
  if (sent.length === 2 && sent[1]! > sent[0]! && sent[0]! >= 0) [from, to] = [sent[0]!, Math.min(sent[1]!, t.duration)];
  const canvas = el('canvas', { id: 'timeline', tabindex: '0', role: 'img', 'aria-label': `timeline of ${counted(t.items, 'event')} on ${counted(t.lanes.length, 'lane')}. Keys: + and - zoom, arrows move, 0 shows all, m sets the ends of the ruler` });
  const view = el('div', { class: 'lanes tall', role: 'region', tabindex: '0', 'aria-label': 'lanes of the timeline' }, canvas);
  const tip = el('div', { class: 'tip', hidden: '' });
  const info = el('div', { class: 'dim picked', role: 'status', id: 'picked' }, 'Wheel or + and − zoom, drag or arrow keys move, a click selects, shift and drag measures.');
  const button = (text: string, label: string, run: () => void): HTMLElement => {
    const b = el('button', { type: 'button', 'aria-label': label, title: label }, text);
    b.onclick = run;
    return b;
  };
  const zoomed = el('span', { class: 'dim', id: 'span' });
  const input = el('input', { type: 'search', id: 'timeline-search', placeholder: 'search the timeline', 'aria-label': 'search the timeline; Enter goes to the next hit', autocomplete: 'off', spellcheck: 'false' });
  const found = el('span', { class: 'dim', role: 'status', id: 'timeline-found' });
  const measuring = el('button', { type: 'button', id: 'ruler', 'aria-pressed': 'false', title: 'drag measures (as with shift)' }, 'ruler');
  measuring.onclick = () => measuring.setAttribute('aria-pressed', String(measuring.getAttribute('aria-pressed') !== 'true'));
  const root = el('div', { class: 'timeline' }, el('div', { class: 'bar' }, button('+', 'zoom in', () => zoom(0.5)), button('−', 'zoom out', () => zoom(2)),
    button('◂', 'earlier', () => move(-0.3)), button('▸', 'later', () => move(0.3)), button('all', 'show all', () => set(0, t.duration)), measuring, input, found, zoomed), view, tip, info);
  const partial = t.lanes.filter((l) => !l.full).length;
  if (partial) root.append(el('p', { class: 'dim' }, `${partial} of ${counted(t.lanes.length, 'lane')} with more events than the file can carry: the shortest neighbours there are drawn merged.`));

  const tops: number[] = [];
  let height = 22;
  t.lanes.forEach((lane) => { tops.push(height); height += kTitle + lane.rows * kRow + kGap; });
  // Sampled counters, a byte a step: 0 is unknown.
  const counters = (t.counters ?? []).map((c) => ({ ...c, values: Uint8Array.from(atob(c.d), (byte) => byte.charCodeAt(0)), top: (height += kCounter + 4) - kCounter - 4 }));
  view.style.height = `${Math.min(height, 520)}px`;  // until it is dragged
  const levelFor = (lane: Lane): Level | undefined => {
    const pixel = (to - from) / width;
    return lane.levels.find((l) => l.r <= pixel) ?? lane.levels[lane.levels.length - 1];
  };
  function each(lane: Lane, level: Level, a: number, b: number, visit: (items: Items, i: number) => void): void {
    for (const chunk of level.chunks) {
      if (chunk.e < a || chunk.s > b) continue;
      const items = decode(chunk, level, lane);
      for (let i = 0; i < chunk.n; ++i) if (items.end[i]! >= a && items.start[i]! <= b) visit(items, i);
    }
  }

  // What is searched: names that match, and every item that has one of them, from the finest level of each lane.
  let wanted: Set<number> | null = null, hits: Hit[] = [], at = -1;
  const kMostHits = 200000;
  function search(): void {
    const want = input.value.toLowerCase();
    wanted = want ? new Set(names.flatMap(([text], id) => text.toLowerCase().includes(want) ? [id] : [])) : null;
    hits = [], at = -1;
    t!.lanes.forEach((lane, k) => {
      const level = lane.levels[lane.levels.length - 1];
      if (wanted?.size && level) each(lane, level, -Infinity, Infinity, (items, i) => {
        if (wanted!.has(items.name[i]!) && hits.length < kMostHits) hits.push(made(k, lane, level, items, i));
      });
    });
    hits.sort((a, b) => a.start - b.start || a.lane - b.lane);
    found.textContent = want ? counted(hits.length, 'hit') + (hits.length === kMostHits ? ' or more' : '') : '';
    redraw();
  }
  function next(step: number): void {
    if (hits.length === 0) return;
    const later = hits.findIndex((one) => one.start >= from);
    at = at < 0 ? (later < 0 ? 0 : later) : (at + step + hits.length) % hits.length;
    const one = hits[at]!, span = Math.max(to - from, (one.end - one.start) * 1.2);
    if (one.start < from || one.end > to) set(one.start - span * 0.2, one.start + span * 0.8);
    view.scrollTop = Math.max(0, tops[one.lane]! + one.row * kRow - view.clientHeight / 2);
    pick(one);
    found.textContent = `${count(at + 1)} of ${counted(hits.length, 'hit')}`;
  }
  /** Two points in time; the second is null while it is looked for. */
  let ruler: [number, number | null] | null = null;
  function measure(a: number, b: number | null): void {
    ruler = [a, b];
    view.dataset.ruler = b === null ? '' : String(Math.abs(b - a));
    info.textContent = b === null ? `From ${time(a)}: m sets the other end.` : `${time(Math.abs(b - a))} from ${time(Math.min(a, b))} to ${time(Math.max(a, b))}`;
    redraw();
  }
  function drop(): void {
    ruler = null;
    delete view.dataset.ruler;
    redraw();
  }

  let queued = false;
  const redraw = (): void => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; draw(); });
  };
  const x = (at: number): number => (at - from) / (to - from) * width;
  function draw(): void {
    width = Math.max(200, view.clientWidth);
    const ratio = devicePixelRatio || 1;
    const tall = Math.min(height, 8000);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(tall * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${tall}px`;
    }
    const g = canvas.getContext('2d')!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, tall);
    const text = token('--text'), dim = token('--dim'), line = token('--line'), accent = token('--accent');
    g.font = '11px system-ui, sans-serif';
    g.textBaseline = 'middle';
    // The clock: steps of 1, 2 or 5.
    const rough = (to - from) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough)!;
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      g.fillStyle = line;
      g.fillRect(Math.round(x(at)), 0, 1, tall);
      g.fillStyle = dim;
      g.fillText(tick(at, step), Math.round(x(at)) + 3, 9);
    }
    const colors = new Map<number, string>();
    const paint = (id: number): string => {
      let c = colors.get(id);
      if (!c) colors.set(id, c = color(names[id]?.[0] ?? ''));
      return c;
    };
    const visibleTop = view.scrollTop - 100, visibleEnd = view.scrollTop + view.clientHeight + 100;
    t!.lanes.forEach((lane, k) => {
      const top = tops[k]!;
      if (top + kTitle + lane.rows * kRow < visibleTop || top > visibleEnd) return;
      const level = levelFor(lane);
      if (!level) return;
      each(lane, level, from, to, (items, i) => {
        const left = Math.max(0, x(items.start[i]!)), right = Math.min(width, x(items.end[i]!));
        const w = Math.max(right - left, 1), y = top + kTitle + items.row[i]! * kRow, id = items.name[i]!;
        const merged = level.r > 0 && items.a[i]! > 1, call = level.r === 0 && lane.kind === 'thread' && (items.a[i]! & 1) === 1;
        const beside = wanted !== null && !wanted.has(id);
        g.globalAlpha = (merged ? 0.25 + 0.75 * Math.min(1, items.b[i]! / 100) : 1) * (beside ? 0.25 : 1);
        g.fillStyle = call ? dim : paint(id);
        if (call) g.fillRect(left, y + 5, w, kRow - 9); else g.fillRect(left, y, w, kRow - 2);
        g.globalAlpha = 1;
        const region = names[id]?.[1] ?? -1;
        if (selected && region === selected.id) {
          g.strokeStyle = accent;
          g.lineWidth = 2;
          g.strokeRect(left + 0.5, y + 0.5, Math.max(w - 1, 1), kRow - 3);
        }
        if (w > 34 && !call) {
          g.fillStyle = text;
          const label = merged ? `${count(items.a[i]!)} × ${names[id]![0]}` : names[id]![0];
          const room = Math.floor((w - 6) / 5.6);
          g.fillText(label.length > room ? label.slice(0, Math.max(1, room - 1)) + '…' : label, left + 3, y + 8);
        }
      });
    });
    for (const c of counters) {
      if (c.top + kCounter < visibleTop || c.top > visibleEnd) continue;
      g.fillStyle = color(c.title.replace(/^GPU \d+ /, ''));
      for (let px = 0; px < width; ++px) {
        const begin = Math.floor((from + px / width * (to - from)) / c.step), end = Math.max(begin + 1, Math.floor((from + (px + 1) / width * (to - from)) / c.step));
        let most = 0;
        for (let i = begin; i < end && i < c.values.length; ++i) most = Math.max(most, c.values[i]!);
        const tall = (most - 1) / 254 * kCounter;
        if (tall > 0) g.fillRect(px, c.top + kCounter - tall, 1, tall);
      }
      g.fillStyle = line;
      g.fillRect(0, c.top + kCounter, width, 1);
      g.fillStyle = text;
      g.fillText(`${c.title}, up to ${show(c.most, c.unit)}`, 4, c.top + 7);
    }
    // Titles stay while their lane is in view, above what lies there.
    t!.lanes.forEach((lane, k) => {
      const top = tops[k]!, end = top + kTitle + lane.rows * kRow;
      if (end < view.scrollTop || top > visibleEnd) return;
      const y = Math.min(Math.max(top, view.scrollTop), Math.max(top, end - kTitle));
      const label = (lane.rank !== undefined ? `rank ${lane.rank} ` : lane.pid === undefined ? '' : `process ${lane.pid} `) + lane.title;
      g.globalAlpha = 0.85;
      g.fillStyle = token('--panel');
      g.fillRect(0, y, g.measureText(label).width + 8, kTitle - 2);
      g.globalAlpha = 1;
      g.fillStyle = dim;
      g.fillText(label, 4, y + 7);
    });
    if (hit) {
      const y = tops[hit.lane]! + kTitle + hit.row * kRow;
      g.strokeStyle = text;
      g.lineWidth = 1.5;
      g.strokeRect(x(hit.start), y, Math.max(2, x(hit.end) - x(hit.start)), kRow - 2);
      if (hit.from >= 0) {
        // The launch: from the call on its thread to the work on its stream.
        const y0 = tops[hit.from]! + kTitle + callRow(hit) * kRow + 8;
        g.strokeStyle = accent;
        g.beginPath();
        g.moveTo(x(hit.call), y0);
        g.bezierCurveTo(x(hit.call) + 20, (y0 + y) / 2, x(hit.start) - 20, (y0 + y) / 2, x(hit.start), y + 7);
        g.stroke();
        g.fillStyle = accent;
        g.beginPath();
        g.arc(x(hit.call), y0, 3.5, 0, 7);
        g.fill();
      }
    }
    if (ruler) {
      const left = x(ruler[0]), right = x(ruler[1] ?? ruler[0]);
      g.globalAlpha = 0.15;
      g.fillStyle = accent;
      g.fillRect(Math.min(left, right), 0, Math.abs(right - left), tall);
      g.globalAlpha = 1;
      for (const one of [left, right]) g.fillRect(Math.round(one), 0, 1.5, tall);
      if (ruler[1] !== null) {
        const label = time(Math.abs(ruler[1] - ruler[0])), w = g.measureText(label).width + 8, y = view.scrollTop + 22;
        const middle = Math.max(0, Math.min(width - w, (left + right - w) / 2));
        g.fillStyle = token('--panel');
        g.fillRect(middle, y, w, 16);
        g.fillStyle = text;
        g.fillText(label, middle + 4, y + 8);
      }
    }
    zoomed.textContent = `${time(to - from)} from ${time(from)}`;
    view.dataset.from = String(from);
    view.dataset.to = String(to);
  }
  /** The row of the call in its thread, where that lane is there in full. */
  function callRow(h: Hit): number {
    let row = 0;
    const lane = t!.lanes[h.from]!, level = lane.levels[lane.levels.length - 1];
    if (level && level.r === 0) each(lane, level, h.call, h.call, (items, i) => { if (items.start[i] === h.call && (items.a[i]! & 1)) row = items.row[i]!; });
    return row;
  }
  function set(a: number, b: number): void {
    const least = 50, whole = Math.max(1, t!.duration);
    const span = Math.min(Math.max(b - a, least), whole);
    a = Math.min(Math.max(0, a), whole - span);
    from = a;
    to = a + span;
    keep('time', `${Math.round(from)}-${Math.round(to)}`);
    redraw();
  }
  const zoom = (factor: number, at = (from + to) / 2): void => set(at - (at - from) * factor, at + (to - at) * factor);
  const move = (part: number): void => set(from + (to - from) * part, to + (to - from) * part);

  function find(px: number, py: number): Hit | null {
    const k = tops.findIndex((top, i) => py >= top + kTitle && py < top + kTitle + t!.lanes[i]!.rows * kRow);
    if (k < 0) return null;
    const lane = t!.lanes[k]!, level = levelFor(lane), row = Math.floor((py - tops[k]! - kTitle) / kRow);
    if (!level) return null;
    const pixel = (to - from) / width, at = from + px * pixel;
    let best: Hit | null = null, far = Infinity;
    each(lane, level, at - 3 * pixel, at + 3 * pixel, (items, i) => {
      if (items.row[i] !== row) return;
      const away = Math.max(items.start[i]! - at, at - items.end[i]!, 0);
      if (away > far) return;
      far = away;
      best = made(k, lane, level, items, i);
    });
    return best;
  }
  function made(k: number, lane: Lane, level: Level, items: Items, i: number): Hit {
    const linked = level.r === 0 && lane.kind === 'stream' && items.a[i]! > 0;
    return { lane: k, start: items.start[i]!, end: items.end[i]!, row: items.row[i]!, name: items.name[i]!, count: level.r > 0 ? items.a[i]! : 1,
      busy: level.r > 0 ? items.b[i]! : 100, from: linked ? items.a[i]! - 1 : -1, call: linked ? items.start[i]! - items.b[i]! : 0, flags: level.r === 0 ? items.a[i]! : 0 };
  }
  /** The moment below a point; an end of an item that is near attracts it. */
  function moment(px: number, py: number): number {
    const pixel = (to - from) / width, at = from + px * pixel, near = find(px, py);
    const ends = near ? [near.start, near.end].filter((one) => Math.abs(one - at) < 6 * pixel) : [];
    return ends.sort((a, b) => Math.abs(a - at) - Math.abs(b - at))[0] ?? Math.min(Math.max(0, at), t!.duration);
  }
  const describe = (h: Hit): string => {
    const what = h.count > 1 ? `${count(h.count)} items within ${time(h.end - h.start)}, ${Math.round(h.busy)} % busy, the longest: ${brief(names[h.name]![0])}`
        : `${brief(names[h.name]![0])}: ${time(h.end - h.start)} at ${time(h.start)}`;
    const open = t!.lanes[h.lane]!.kind === 'thread' && h.count === 1 && (h.flags & 2) ? ', never closed' : '';
    return what + open + (h.from >= 0 ? `, launched ${time(h.start - h.call)} earlier by ${t!.lanes[h.from]!.title}` : '');
  };
  /** The innermost region that was open on a thread at a moment. */
  function regionAt(laneIndex: number, at: number): Region | null {
    const lane = t!.lanes[laneIndex]!, level = lane.levels[lane.levels.length - 1];
    let region = -1, row = -1;
    if (level && level.r === 0) each(lane, level, at, at, (items, i) => {
      const id = names[items.name[i]!]![1];
      if (id >= 0 && items.row[i]! > row) row = items.row[i]!, region = id;
    });
    return data.regions[region] ?? null;
  }
  function pick(h: Hit | null): void {
    hit = h;
    if (h) {
      info.textContent = describe(h);
      const region = data.regions[names[h.name]![1]] ?? (h.from >= 0 ? regionAt(h.from, h.call) : null);
      if (region && region !== selected) own = true, select(region);
    }
    redraw();
  }

  let drag: { x: number; y: number; from: number; to: number; moved: boolean; ruler: boolean } | null = null, own = false;
  canvas.addEventListener('wheel', (event) => {
    if (event.shiftKey) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX / width);
    else zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 100) / 250), from + (event.clientX - box.left) / width * (to - from));
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => {
    const box = canvas.getBoundingClientRect(), rules = event.shiftKey || measuring.getAttribute('aria-pressed') === 'true';
    drag = { x: event.clientX, y: event.clientY, from, to, moved: false, ruler: rules };
    canvas.setPointerCapture(event.pointerId);
    if (rules) measure(moment(event.clientX - box.left, event.clientY - box.top), null);
  });
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    if (drag?.ruler) { drag.moved = true; measure(ruler![0], moment(event.clientX - box.left, event.clientY - box.top)); return; }
    if (drag) {
      const by = (drag.x - event.clientX) / width * (drag.to - drag.from);
      if (Math.abs(drag.x - event.clientX) > 3) drag.moved = true;
      if (drag.moved) set(drag.from + by, drag.to + by);
      return;
    }
    const px = event.clientX - box.left, py = event.clientY - box.top, h = find(px, py);
    const c = counters.find((one) => py >= one.top && py < one.top + kCounter);
    tip.hidden = !h && !c;
    if (tip.hidden) return;
    const at = from + px / width * (to - from), byte = c?.values[Math.floor(at / c.step)] ?? 0;
    tip.textContent = h ? describe(h) : `${c!.title} at ${time(at)}: ${byte ? show((byte - 1) / 254 * c!.most, c!.unit) : 'not sampled'}`;
    const frame = root.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(event.clientX - frame.left + 12, frame.width - 260))}px`;
    tip.style.top = `${event.clientY - frame.top + 16}px`;
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('pointerup', (event) => {
    const box = canvas.getBoundingClientRect();
    if (drag && !drag.moved) pick(find(event.clientX - box.left, event.clientY - box.top));
    drag = null;
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('keydown', (event) => {
    switch (event.key) {
      case '+': case '=': zoom(0.5); break;
      case '-': zoom(2); break;
      case 'ArrowLeft': move(-0.2); break;
      case 'ArrowRight': move(0.2); break;
      case '0': set(0, t.duration); break;
      case 'm': ruler && ruler[1] === null ? measure(ruler[0], (from + to) / 2) : measure((from + to) / 2, null); break;
      case 'Escape': drop(); break;
      default: return;
    }
    event.preventDefault();
  });
  let typed = 0;
  input.oninput = () => { clearTimeout(typed); typed = window.setTimeout(search, 150); };
  input.onkeydown = (event) => {
    if (event.key !== 'Enter') return;
    if (at < 0) clearTimeout(typed), search();
    next(event.shiftKey ? -1 : 1);
  };
  view.addEventListener('scroll', redraw);
  onSelect((region) => {
    if (own) { own = false; redraw(); return; }
    hit = null;
    info.textContent = '';
    // Show the first occurrence, where the samples tell when that was and it would not be seen.
    const first = region?.samples?.[0];
    const long = region?.samples?.[1] ?? (region ? value(region, 'wall_ns.max') : null);
    if (region && first !== undefined && long && (first > to || first + long < from || long < (to - from) / 50)) set(first - long * 2, first + long * 4);
    redraw();
  });
  onTheme(() => { if (view.isConnected) draw(); });  // before the page is printed
  new ResizeObserver(redraw).observe(view);
  return root;
}
