// The flame graph of a comparison: as wide as one side, coloured by how much more or less of the CPU a function takes,
// with what it calls. What sampling alone may have changed stays grey.
import './flame.css';
import { FlameNode, flameGraph, shortenedNote } from './flame_graph';
import { dark, el, percent, themeChanged, time } from './format';

interface Data { region: string; sides: [string, string]; sample_ns: [number, number]; shortened: number; names: [string, string][]; nodes: number[] }
/** `samples` of both sides, with what it calls. */
interface Node extends FlameNode<Node> { samples: [number, number] }
const kSigmas = 2;

const data = JSON.parse(document.getElementById('flame-data')!.textContent!) as Data;
const leaf = (name: number, samples: [number, number] = [0, 0]): Node => ({ name, total: 0, kids: new Map(), samples });
const root = leaf(-1), made: Node[] = [];
for (let i = 0; i < data.nodes.length; i += 4) {
  const back = data.nodes[i]!, parent = back === 0 ? root : made[made.length - back]!;
  const node = leaf(data.nodes[i + 1]!, [data.nodes[i + 2]!, data.nodes[i + 3]!]);
  parent.kids.set(node.name, node);
  made.push(node);
}
const sum = (node: Node): void => { for (const kid of node.kids.values()) { sum(kid); node.samples[0] += kid.samples[0]; node.samples[1] += kid.samples[1]; } };
sum(root);

const ns = (node: Node, side: 0 | 1): number => node.samples[side] * data.sample_ns[side];
/** Growth as a share of the larger side, -1 ... 1; 0 where it may be chance. */
function growth(node: Node): number {
  const [before, after] = [ns(node, 0), ns(node, 1)];
  const error = Math.hypot(...([0, 1] as const).map((side) => Math.sqrt(Math.max(node.samples[side], 1)) * data.sample_ns[side]));
  return Math.abs(after - before) > kSigmas * error ? (after - before) / Math.max(after, before) : 0;
}
function paint(node: Node): string {
  const change = growth(node), strength = Math.min(1, 1.5 * Math.abs(change));
  if (change === 0) return dark() ? '#474d58' : '#dde1e7';
  const tone = change > 0 ? 8 : 212;
  return dark() ? `hsl(${tone} ${35 + 35 * strength}% ${32 + 10 * strength}%)` : `hsl(${tone} ${60 + 20 * strength}% ${88 - 24 * strength}%)`;
}
function change(node: Node): string {
  const [before, after] = [ns(node, 0), ns(node, 1)];
  const ratio = before > 0 ? after / before - 1 : Infinity;
  const text = before === 0 ? 'new' : after === 0 ? 'gone' : `${ratio >= 0 ? '+' : '-'}${percent(Math.abs(ratio))}`;
  return `${data.sides[0]} ${time(before)}, ${data.sides[1]} ${time(after)} per instance: ${text}${growth(node) === 0 ? ' (may be chance)' : ''}`;
}

const graph = flameGraph<Node>({
  text: (name) => data.names[name]![0],
  file: (name) => data.names[name]![1],
  paint, tip: change, amount: (total) => `${time(total)} per instance`,
  make: leaf,
  add(into, from) { into.total += from.total; into.samples[0] += from.samples[0]; into.samples[1] += from.samples[1]; },
  style: (node) => { const c = growth(node); return c > 0 ? 'grew' : c < 0 ? 'shrank' : 'same'; },
}, 'differential flame graph of the CPU samples; the table of functions says the same as text');
const width = el('select', { id: 'flame-width', 'aria-label': 'side that the widths show' }, ...([1, 0] as const).map((side) => el('option', { value: String(side) }, `as wide as ${data.sides[side]}`)));
const show = (): void => {
  const side = Number(width.value) as 0 | 1;
  root.total = ns(root, side);
  for (const node of made) node.total = ns(node, side);
  graph.show(root);
};
width.onchange = show;
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themeChanged);
const legend = el('span', { class: 'legend dim' }, ...[['grew', 'more'], ['shrank', 'less'], ['same', 'no more than chance']].map(([kind, text]) => el('span', { class: `key ${kind}` }, text!)));
const note = shortenedNote(data.shortened);
document.getElementById('flame')!.append(el('p', { class: 'dim', id: 'flame-change' }, change(root)), el('div', { class: 'bar' }, ...graph.bar, width, legend), graph.box, ...(note ? [note] : []));
show();
