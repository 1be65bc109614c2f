// Memory of each GPU over time, and what its peak consists of: one bar, as wide as the peak, a part for each use and
// owner. Hover names the owner; the table is its text.
import { data, DeviceMemory, MemoryPart } from './data';
import { bytes, color, count, counted, el, onTheme, percent, time, token } from './format';

const kHeight = 120, kMargin = 6;

/** What a part of the peak is called: its use, and whose it is. */
const partText = (part: MemoryPart): string => (part.owner ? `${part.use} of ${part.owner}` : part.use);

function peakBar(memory: DeviceMemory): HTMLElement {
  const bar = el('div', { class: 'icicle memory-bar', role: 'group', 'aria-label': 'what the peak consists of; the table holds the same as text' });
  const draw = (): void => {
    let left = 0;
    bar.replaceChildren(...memory.parts.filter((part) => part.bytes / memory.peak_bytes > 0.001).map((part) => {
      const share = part.bytes / memory.peak_bytes;
      const slab = el('div', { class: 'slab', title: `${partText(part)}\n${bytes(part.bytes)}, ${percent(share)} of the peak, ${counted(part.blocks, 'block')}` }, partText(part));
      slab.style.left = `${left * 100}%`, slab.style.width = `${share * 100}%`, slab.style.top = '0';
      slab.style.background = color(part.use);
      left += share;
      return slab;
    }));
  };
  onTheme(draw);
  draw();
  return bar;
}

/** Steps: what is in use stays so until the next event. */
function curve(memory: DeviceMemory): HTMLElement {
  const canvas = el('canvas', { class: 'memory-curve', role: 'img', 'aria-label': `memory in use over time, at most ${bytes(memory.peak_bytes)}` });
  const under = el('div', { class: 'dim', role: 'status' });
  const points = memory.points;
  const first = points[0]?.at_ns ?? 0, last = points[points.length - 1]?.at_ns ?? 1;
  const most = Math.max(memory.peak_reserved_bytes ?? 0, memory.peak_bytes, 1);
  const x = (at: number): number => ((at - first) / Math.max(last - first, 1)) * canvas.clientWidth;
  const y = (amount: number): number => kHeight - kMargin - (amount / most) * (kHeight - 2 * kMargin);
  const trace = (context: CanvasRenderingContext2D, of: (point: (typeof points)[0]) => number): void => {
    context.beginPath();
    points.forEach((point, i) => {
      if (i > 0) context.lineTo(x(point.at_ns), y(of(points[i - 1]!)));
      context.lineTo(x(point.at_ns), y(of(point)));
    });
  };
  function draw(): void {
    const width = canvas.clientWidth, scale = devicePixelRatio || 1, context = canvas.getContext('2d');
    if (!context || width === 0) return;
    canvas.width = Math.round(width * scale), canvas.height = Math.round(kHeight * scale);
    context.scale(scale, scale);
    context.lineWidth = 1.5;
    if (memory.peak_reserved_bytes !== null) {
      context.strokeStyle = token('--dim');
      trace(context, (point) => point.reserved_bytes ?? 0);
      context.stroke();
    }
    context.strokeStyle = token('--accent');
    trace(context, (point) => point.allocated_bytes);
    context.stroke();
    context.fillStyle = token('--warn');
    context.fillRect(x(memory.peak_at_ns) - 1, y(memory.peak_bytes), 2, kHeight);
  }
  const say = (at: number): void => {
    let point = points[0];
    for (const next of points) if (next.at_ns <= at) point = next;
    if (!point) return;
    const reserved = point.reserved_bytes === null ? '' : `, ${bytes(point.reserved_bytes)} reserved`;
    under.textContent = `at ${time(point.at_ns)}: ${bytes(point.allocated_bytes)} in use${reserved}`;
  };
  canvas.onmousemove = (event) => say(first + (event.offsetX / Math.max(canvas.clientWidth, 1)) * (last - first));
  new ResizeObserver(draw).observe(canvas);
  onTheme(draw);
  say(memory.peak_at_ns);
  return el('div', {}, canvas, under);
}

function table(memory: DeviceMemory): HTMLElement {
  const heads = ['at the peak', 'whose', 'bytes', 'share', 'blocks'];
  const row = (part: MemoryPart): HTMLElement => el('tr', {}, el('td', {}, part.use), el('td', {}, part.owner ?? '–'), el('td', { class: 'n' }, bytes(part.bytes)),
    el('td', { class: 'n' }, percent(part.bytes / memory.peak_bytes)), el('td', { class: 'n' }, count(part.blocks)));
  return el('div', { class: 'scroll' }, el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, ...heads.map((head) => el('th', {}, head)))),
    el('tbody', {}, ...memory.parts.slice(0, 200).map(row))));
}

/** Null where no allocator was recorded. */
export function memory(): HTMLElement | null {
  const devices = (data.memory ?? []).filter((one) => one.peak_bytes > 0);
  if (devices.length === 0) return null;
  return el('div', { id: 'memory' }, ...devices.map((one) => el('div', {},
    el('h3', {}, `GPU ${one.device}, ${one.allocator}${devices.length > 1 ? `, process ${one.pid ?? one.process}` : ''}: peak ${bytes(one.peak_bytes)} at ${time(one.peak_at_ns)}`),
    curve(one), peakBar(one), el('details', {}, el('summary', {}, 'as a table'), table(one)))));
}
