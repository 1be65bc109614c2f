// What the threads of the selected region did on the CPU: the split of its wall time, and a flame graph of its samples.
import { CpuRegion, data, onSelect, pathText, Region, selected } from './data';
import { color, counted, dark, el, onTheme, percent, time } from './format';

const kRow = 20, kMostSlabs = 2500;
const kSorts = ['native', 'python', 'kernel', 'cut'];
const kParts: Record<string, string> = { python: 'Python', native: 'native code', cuda: 'CUDA calls', waiting: 'waiting' };

/** A function as it was called from the same callers; `own` samples ended in it. */
interface Node { name: number; own: number; total: number; kids: Map<number, Node> }
const leaf = (name: number): Node => ({ name, own: 0, total: 0, kids: new Map() });

const cpu = data.cpu;
const byId = new Map<number, CpuRegion>((cpu?.regions ?? []).map((r) => [r.id, r]));
const kids = new Map<number, number[]>();
for (const r of data.regions) if (r.parent !== null) kids.set(r.parent, [...(kids.get(r.parent) ?? []), r.id]);

/** The region over all processes and threads that holds the samples of this one. */
function whole(r: Region): Region {
  if (r.process === undefined) return r;
  const same = (o: Region): boolean => o.process === undefined && o.domain === r.domain && o.kind === r.kind && o.path.join('\0') === r.path.join('\0');
  return data.regions.find(same) ?? r;
}

/** Chains of the region and the ones inside it; of null those outside every range. */
function tree(region: Region | null): Node {
  const root = leaf(-1), { nodes } = cpu!;
  const made = new Map<number, Node>([[-1, root]]);
  const at = (n: number): Node => {
    const known = made.get(n);
    if (known) return known;
    const back = nodes[2 * n]!, parent = at(back === 0 ? -1 : n - back), name = nodes[2 * n + 1]!;
    const node = leaf(name);
    parent.kids.set(name, node);
    made.set(n, node);
    return node;
  };
  const add = (list: number[]): void => { for (let i = 0; i < list.length; i += 2) at(list[i]!).own += list[i + 1]!; };
  if (!region) add(cpu!.outside);
  const open = region ? [whole(region).id] : [];
  for (let id = open.pop(); id !== undefined; id = open.pop()) { add(byId.get(id)?.stacks ?? []); open.push(...(kids.get(id) ?? [])); }
  const sum = (node: Node): number => node.total = [...node.kids.values()].reduce((n, kid) => n + sum(kid), node.own);
  sum(root);
  return root;
}

/** Native code in warm colours by its file, Python in blue, the kernel in purple. */
function paint(name: number): string {
  const [text, sort, file] = cpu!.names[name]!;
  if (sort === 3) return dark() ? '#555b66' : '#c9ced6';
  const spread = Number(/hsl\((\d+)/.exec(color(sort === 0 ? file : text))![1]) / 360;
  const tone = [8 + spread * 44, 200 + spread * 24, 280, 0][sort]!;
  return dark() ? `hsl(${tone} 48% ${34 + spread * 8}%)` : `hsl(${tone} ${sort === 1 ? 70 : 78}% ${70 + spread * 8}%)`;
}

/** Functions of a tree; a recursive one counts once in what it calls. */
function functions(root: Node): { name: number; own: number; total: number }[] {
  const sums = new Map<number, { name: number; own: number; total: number }>();
  const walk = (node: Node, above: Set<number>): void => {
    const fresh = node.name >= 0 && !above.has(node.name);
    if (node.name >= 0) {
      const sum = sums.get(node.name) ?? { name: node.name, own: 0, total: 0 };
      sum.own += node.own;
      if (fresh) sum.total += node.total;
      sums.set(node.name, sum);
    }
    if (fresh) above.add(node.name);
    for (const kid of node.kids.values()) walk(kid, above);
    if (fresh) above.delete(node.name);
  };
  walk(root, new Set());
  return [...sums.values()].sort((a, b) => b.own - a.own || b.total - a.total);
}

export function flame(): HTMLElement | null {
  if (!cpu) return null;
  let root = tree(null), top: Node[] = [];
  const title = el('h3', {});
  const split = el('div', { class: 'split', role: 'img' });
  const splitText = el('p', { class: 'dim', id: 'cpu-split' });
  const input = el('input', { type: 'search', id: 'flame-search', placeholder: 'search functions', 'aria-label': 'search functions', autocomplete: 'off', spellcheck: 'false' });
  const status = el('span', { class: 'dim', role: 'status', id: 'flame-found' });
  const out = el('button', { type: 'button', id: 'flame-out', hidden: '' }, 'zoom out');
  const legend = el('span', { class: 'legend dim' }, ...kSorts.slice(0, 3).map((sort) => el('span', { class: `key ${sort}` }, sort === 'python' ? 'Python' : sort === 'native' ? 'native code' : 'the kernel')));
  const box = el('div', { class: 'icicle flame', role: 'group', 'aria-label': 'flame graph of the CPU samples; the table below holds its functions as text' });
  const table = el('div', { class: 'scroll' });
  const text = (name: number): string => cpu.names[name]![0];
  const hit = (name: number): boolean => input.value !== '' && (text(name) + '\n' + cpu.names[name]![2]).toLowerCase().includes(input.value.toLowerCase());

  const draw = (): void => {
    const slabs: HTMLElement[] = [];
    const all = root.total, view = top[top.length - 1] ?? root;
    let deepest = -1;
    const slab = (node: Node, left: number, width: number, row: number): void => {
      const [name, sort, file] = cpu.names[node.name]!;
      const b = el('button', { type: 'button', class: `slab ${kSorts[sort]}${hit(node.name) ? ' hit' : ''}`, tabindex: '-1',
        title: `${name}\n${file}\n${counted(node.total, 'sample')}, ${percent(node.total / all)} of the region's; itself ${percent(node.own / all)}` }, name);
      b.style.cssText = `left:${left * 100}%;width:${width * 100}%;top:${row * kRow}px;background:${paint(node.name)}`;
      b.onclick = () => { if (node !== view) top.push(node); draw(); };
      slabs.push(b);
      deepest = Math.max(deepest, row);
    };
    const place = (node: Node, left: number, width: number, row: number): void => {
      for (const kid of [...node.kids.values()].sort((a, b) => b.total - a.total)) {
        const w = width * kid.total / node.total;
        if (w < 0.0008 || slabs.length > kMostSlabs) continue;
        slab(kid, left, w, row);
        place(kid, left, w, row + 1);
        left += w;
      }
    };
    if (view !== root) slab(view, 0, 1, 0);
    if (all > 0) place(view, 0, 1, view === root ? 0 : 1);
    out.hidden = top.length === 0;
    box.style.height = `${(deepest + 1) * kRow}px`;
    box.replaceChildren(...slabs);
    if (input.value === '') { status.textContent = counted(all, 'sample'); return; }
    // Samples with a hit anywhere in their chain.
    const found = (node: Node): number => node.name >= 0 && hit(node.name) ? node.total : [...node.kids.values()].reduce((n, kid) => n + found(kid), 0);
    status.textContent = all > 0 ? `${percent(found(root) / all)} of ${counted(all, 'sample')}` : '';
  };
  const follow = (): void => {
    const region = selected, of = region ? whole(region) : null, own = of ? byId.get(of.id) : undefined;
    root = tree(region);
    top = [];
    title.textContent = region ? pathText(of!) + (of === region ? '' : ', over all processes') : 'outside every range';
    const wall = own?.split.reduce((sum, part) => sum + part[2], 0) ?? 0;
    const share = ([kind, , ns, idle]: CpuRegion['split'][number]): string =>
      `${kParts[kind]} ${percent(ns / wall)}` + (idle === null ? '' : ` (${percent(idle / wall)} while the GPU was idle)`);
    const parts = wall > 0 ? own!.split.filter((part) => part[2] > 0) : [];
    split.replaceChildren(...parts.map((part) => { const e = el('span', { class: part[0], title: share(part) }); e.style.width = `${part[2] / wall * 100}%`; return e; }));
    split.setAttribute('aria-label', splitText.textContent = parts.length ? `Of ${time(wall)}: ${parts.map(share).join(', ')}.` : region ? 'Nothing was sampled in this region.' : '');
    const total = root.total;
    table.replaceChildren(...(total > 0 ? [el('table', { class: 'plain', 'aria-label': 'functions' }, el('thead', {}, el('tr', {}, el('th', {}, 'function'), el('th', { class: 'n' }, 'self'), el('th', { class: 'n' }, 'total'), el('th', {}, 'file'))),
      el('tbody', {}, ...functions(root).slice(0, 50).map((f) => el('tr', {}, el('td', {}, el('span', { class: 'long', title: text(f.name) }, text(f.name))), el('td', { class: 'n' }, percent(f.own / total)),
        el('td', { class: 'n' }, percent(f.total / total)), el('td', { class: 'spare' }, cpu.names[f.name]![2])))))] : []));
    draw();
  };
  input.oninput = draw;
  out.onclick = () => { top.pop(); draw(); };
  onSelect(follow);
  onTheme(draw);
  follow();
  const note = cpu.shortened > 0 ? el('p', { class: 'dim' }, `Rare chains are shortened: ${counted(cpu.shortened, 'sample')} of the run stand at a caller.`) : null;
  return el('div', { id: 'cpu' }, title, split, splitText, el('div', { class: 'bar' }, input, status, out, legend), box, note, el('details', {}, el('summary', {}, 'Functions'), table));
}
