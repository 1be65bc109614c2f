// Where time goes: the whole run, each region as wide as its share below it, children below their parent, and what lies
// outside every range. Click selects; the table is its text.
import { data, name, ofAll, onSelect, pathText, Region, scopeOf, select, selected, value } from './data';
import { color, el, onTheme, show } from './format';

const kModes: [string, string, string | null][] = [
  ['wall', 'wall_ns.inclusive', 'wall_ns.exclusive'], ['GPU busy', 'gpu.busy_ns', 'gpu.exclusive_busy_ns'],
  ['kernel time', 'gpu.kernel_ns', 'gpu.exclusive_kernel_ns'],
];
const kRow = 24, kOutside = 'outside ranges';
/** A number of the run or of what lies outside every range, by the tag of the measure that a region has it under. */
function ofRun(tag: string, outside: boolean): number {
  if (tag.startsWith('wall_ns.')) return Math.max(0, (outside ? data.outside_ns : data.run.duration_ns) ?? 0);
  return Math.max(0, (outside ? data.unattributed : data.total)?.[data.measures.findIndex((m) => m.tag === tag)] ?? 0);
}

export function icicle(): HTMLElement {
  const modes = kModes.filter(([, tag]) => data.regions.some((r) => (value(r, tag) ?? 0) > 0));
  let mode = modes[0] ?? kModes[0]!;
  let exclusive = false;
  let root: Region | null = null;
  const kinds = el('select', { 'aria-label': 'what the width shows', id: 'icicle-mode' }, ...modes.map(([title], i) => el('option', { value: String(i) }, title)));
  const own = el('select', { 'aria-label': 'inclusive or exclusive' }, el('option', { value: '' }, 'inclusive (tree)'), el('option', { value: 'x' }, 'exclusive (largest first)'));
  const up = el('button', { type: 'button', hidden: '' }, 'whole run');
  const box = el('div', { class: 'icicle', role: 'group', 'aria-label': 'icicle of regions; the table holds the same as text' });
  const rootBox = el('div', {}, el('div', { class: 'bar' }, kinds, own, up), box);

  const place = (b: HTMLElement, left: number, width: number, row: number): HTMLElement => {
    b.style.left = `${left * 100}%`, b.style.width = `${width * 100}%`, b.style.top = `${row * kRow}px`;
    return b;
  };
  const cell = (r: Region, left: number, width: number, row: number, text: string): HTMLElement => {
    const b = el('button', { type: 'button', class: 'slab', tabindex: '-1', 'data-id': String(r.id), title: `${pathText(r)}\n${text}` }, name(r));
    b.style.background = color(name(r));
    if (r === selected) b.classList.add('on');
    b.onclick = () => select(r);
    b.ondblclick = () => { root = r; draw(); };
    return place(b, left, width, row);
  };
  /** The run, and what lies outside every range: no regions. */
  const other = (title: string, amount: number, left: number, width: number, row: number): HTMLElement =>
    place(el('div', { class: 'slab other', title: `${title}\n${show(amount, 'ns')}` }, title), left, width, row);
  function draw(): void {
    const tag = mode[1], cells: HTMLElement[] = [];
    const scope = selected ? scopeOf(selected) : scopeOf(data.regions[0] ?? ({} as Region));
    const regions = data.regions.filter((r) => scopeOf(r) === scope);
    const kids = new Map<number | null, Region[]>();
    for (const r of regions) kids.set(r.parent, [...(kids.get(r.parent) ?? []), r]);
    // A range that never ended has no time of its own to be as wide as: it holds its children.
    const size = (r: Region): number => Math.max(0, value(r, tag) ?? (kids.get(r.id) ?? []).reduce((sum, k) => sum + size(k), 0));
    let deepest = 0;
    if (exclusive) {
      const own = (r: Region): number => Math.max(0, value(r, mode[2] ?? tag) ?? 0);
      const list: [Region | null, number][] = regions.map((r): [Region | null, number] => [r, own(r)]);
      if (ofAll(scope)) list.push([null, ofRun(tag, true)]);
      const shown = list.filter(([, ns]) => ns > 0).sort((a, b) => b[1] - a[1]).slice(0, 12);
      for (const [i, [r, ns]] of shown.entries()) {
        const width = Math.max(ns / shown[0]![1], 0.002);
        cells.push(r ? cell(r, 0, width, i, show(ns, 'ns')) : other(kOutside, ns, 0, width, i));
      }
      deepest = shown.length - 1;
    } else {
      const stack = (list: Region[], left: number, width: number, whole: number, row: number): number => {
        // Children of several threads can be longer together than their parent: they share its width then.
        const total = Math.max(whole, list.reduce((sum, r) => sum + size(r), 0));
        for (const r of [...list].sort((a, b) => size(b) - size(a))) {
          const w = total > 0 ? width * size(r) / total : 0;
          if (w < 0.0015 || cells.length > 1500) continue;
          deepest = Math.max(deepest, row);
          cells.push(cell(r, left, w, row, value(r, tag) === null ? 'never ended' : `${mode[0]} ${show(size(r), 'ns')}`));
          stack(kids.get(r.id) ?? [], left, w, size(r), row + 1);
          left += w;
        }
        return left;
      };
      if (root && scopeOf(root) !== scope) root = null;
      const top = root ? [root] : kids.get(null) ?? [];
      const stacked = top.filter((r) => r.kind !== 'start_end'), within = stacked.reduce((sum, r) => sum + size(r), 0);
      const run = ofRun(tag, false), outside = root || !ofAll(scope) ? 0 : ofRun(tag, true);
      if (!root && ofAll(scope) && run > 0 && outside > 0) {
        cells.push(other('whole run', run, 0, 1, 0));
        const whole = Math.max(run, within + outside), left = stack(stacked, 0, 1, Math.max(whole, within), 1);
        if (outside / whole >= 0.0015) cells.push(other(kOutside, outside, left, outside / whole, 1));
        deepest = Math.max(deepest, 1);
      } else {
        stack(stacked, 0, 1, 0, 0);
      }
      // Start/end ranges cross others and lie beside the stack, not in it: they have rows of their own.
      const spans = top.filter((r) => r.kind === 'start_end' && size(r) > 0);
      if (spans.length) {
        const at = cells.length ? deepest + 1 : 0, title = el('div', { class: 'apart dim' }, 'start/end ranges');
        title.style.top = `${at * kRow + 4}px`;
        const most = Math.max(...spans.map(size));
        [...spans].sort((a, b) => size(b) - size(a)).slice(0, 20).forEach((r, i) => { cells.push(cell(r, 0, size(r) / most, at + 1 + i, `${mode[0]} ${show(size(r), 'ns')}`)); deepest = at + 1 + i; });
        cells.push(title);
      }
    }
    up.hidden = !root;
    box.style.height = `${(deepest + 1) * kRow}px`;
    box.replaceChildren(...cells);
  }
  kinds.onchange = () => { mode = modes[Number(kinds.value)]!; draw(); };
  own.onchange = () => { exclusive = own.value === 'x'; draw(); };
  up.onclick = () => { root = null; draw(); };
  onSelect(draw);
  onTheme(draw);
  draw();
  return rootBox;
}
