// What the threads of the selected region did on the CPU: the split of its wall time, and a flame graph of its samples.
import { CpuRegion, data, onSelect, pathText, Region, selected } from './data';
import { FlameNode, flameGraph, shortenedNote } from './flame_graph';
import { color, counted, dark, el, percent, time } from './format';

const kSorts = ['native', 'python', 'kernel', 'cut'];
const kParts: Record<string, string> = { python: 'Python', native: 'native code', cuda: 'CUDA calls', waiting: 'waiting' };

/** A function as it was called from the same callers; `own` samples ended in it. */
interface Node extends FlameNode<Node> { own: number }
const leaf = (name: number): Node => ({ name, own: 0, total: 0, kids: new Map() });

const cpu = data.cpu;
const byId = new Map<number, CpuRegion>((cpu?.regions ?? []).map((r) => [r.id, r]));
const kids = new Map<number, number[]>();
for (const r of data.regions) if (r.parent !== null) kids.set(r.parent, [...(kids.get(r.parent) ?? []), r.id]);

/** The regions over all processes and threads that hold the samples of this one. */
function whole(r: Region): Region[] {
  if (r.members) return r.members;
  if (r.process === undefined) return [r];
  const same = (o: Region): boolean => o.process === undefined && o.domain === r.domain && o.kind === r.kind && o.path.join('\0') === r.path.join('\0');
  return [data.regions.find(same) ?? r];
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
  const open = region ? whole(region).map((r) => r.id) : [];
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
  return dark() ? `hsl(${tone} 48% ${28 + spread * 3}%)` : `hsl(${tone} ${sort === 1 ? 70 : 78}% ${70 + spread * 8}%)`;
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
  let root = tree(null);
  const title = el('h3', {});
  const split = el('div', { class: 'split', role: 'img' });
  const splitText = el('p', { class: 'dim', id: 'cpu-split' });
  const legend = el('span', { class: 'legend dim' }, ...kSorts.slice(0, 3).map((sort) => el('span', { class: `key ${sort}` }, sort === 'python' ? 'Python' : sort === 'native' ? 'native code' : 'the kernel')));
  const table = el('div', { class: 'scroll' });
  const text = (name: number): string => cpu.names[name]![0];
  const graph = flameGraph<Node>({
    text, file: (name) => cpu.names[name]![2], paint: (node) => node.name < 0 ? '' : paint(node.name), style: (node) => node.name < 0 ? 'other' : kSorts[cpu.names[node.name]![1]]!,
    tip: (node, all) => `${counted(node.total, 'sample')}, ${percent(node.total / all.total)} of the region's; itself ${percent(node.own / all.total)}`,
    amount: (total) => counted(total, 'sample'), make: leaf,
    add(into, from, caller) { into.total += from.total; if (!caller) into.own += from.own; },
  }, 'flame graph of the CPU samples; the table below holds its functions as text');
  const linked = (name: number): HTMLElement => {
    const b = el('button', { type: 'button', class: 'link long', title: `${text(name)}: its callers and callees` }, text(name));
    b.onclick = () => graph.focus(name);
    return b;
  };
  const follow = (): void => {
    const region = selected, of = region ? whole(region) : [];
    const own = new Map<string, CpuRegion['split'][number]>();
    for (const [kind, name, ns, idle] of of.flatMap((r) => byId.get(r.id)?.split ?? [])) {
      const [, , sum, idleSum] = own.get(kind + name) ?? [kind, name, 0, null];
      own.set(kind + name, [kind, name, sum + ns, idle === null ? idleSum : (idleSum ?? 0) + idle]);
    }
    const all = [...own.values()];
    root = tree(region);
    title.textContent = region ? pathText(region) + (region.process === undefined ? '' : ', over all processes') : 'outside every range';
    const wall = all.reduce((sum, part) => sum + part[2], 0);
    const share = ([kind, , ns, idle]: CpuRegion['split'][number]): string =>
      `${kParts[kind]} ${percent(ns / wall)}` + (idle === null ? '' : ` (${percent(idle / wall)} while the GPU was idle)`);
    const parts = wall > 0 ? all.filter((part) => part[2] > 0) : [];
    split.replaceChildren(...parts.map((part) => { const e = el('span', { class: part[0], title: share(part) }); e.style.width = `${part[2] / wall * 100}%`; return e; }));
    split.setAttribute('aria-label', splitText.textContent = parts.length ? `Of ${time(wall)}: ${parts.map(share).join(', ')}.` : region ? 'Nothing was sampled in this region.' : '');
    const total = root.total;
    table.replaceChildren(...(total > 0 ? [el('table', { class: 'plain', 'aria-label': 'functions' }, el('thead', {}, el('tr', {}, el('th', {}, 'function'), el('th', { class: 'n' }, 'self'), el('th', { class: 'n' }, 'total'), el('th', {}, 'file'))),
      el('tbody', {}, ...functions(root).slice(0, 50).map((f) => el('tr', {}, el('td', {}, linked(f.name)), el('td', { class: 'n' }, percent(f.own / total)),
        el('td', { class: 'n' }, percent(f.total / total)), el('td', { class: 'spare' }, cpu.names[f.name]![2])))))] : []));
    graph.show(root);
  };
  onSelect(follow);
  follow();
  return el('div', { id: 'cpu' }, title, split, splitText, el('div', { class: 'bar' }, ...graph.bar, legend), graph.box, shortenedNote(cpu.shortened), el('details', {}, el('summary', {}, 'Functions'), table));
}
