// Where time goes: each region as wide as its share, children below their parent. Click selects; the table is its text.
import { data, name, onSelect, pathText, Region, scopeOf, select, selected, value } from './data';
import { color, el, onTheme, show } from './format';

const kModes: [string, string, string | null][] = [
  ['wall', 'wall_ns.inclusive', 'wall_ns.exclusive'], ['GPU busy', 'gpu.busy_ns', 'gpu.exclusive_busy_ns'],
  ['kernel time', 'gpu.kernel_ns', 'gpu.exclusive_kernel_ns'],
];
const kRow = 24;

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

  const cell = (r: Region, left: number, width: number, row: number, text: string): HTMLElement => {
    const b = el('button', { type: 'button', class: 'slab', tabindex: '-1', 'data-id': String(r.id), title: `${pathText(r)}\n${text}` }, name(r));
    b.style.cssText = `left:${left * 100}%;width:${width * 100}%;top:${row * kRow}px`;
    b.style.background = color(name(r));
    if (r === selected) b.classList.add('on');
    b.onclick = () => select(r);
    b.ondblclick = () => { root = r; draw(); };
    return b;
  };
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
      const list = [...regions].filter((r) => own(r) > 0).sort((a, b) => own(b) - own(a)).slice(0, 12);
      const most = list.length ? own(list[0]!) : 1;
      list.forEach((r, i) => cells.push(cell(r, 0, Math.max(own(r) / most, 0.002), i, show(own(r), 'ns'))));
      deepest = list.length - 1;
    } else {
      const place = (list: Region[], left: number, width: number, whole: number, row: number): void => {
        // Children of several threads can be longer together than their parent: they share its width then.
        const total = Math.max(whole, list.reduce((sum, r) => sum + size(r), 0));
        for (const r of [...list].sort((a, b) => size(b) - size(a))) {
          const w = total > 0 ? width * size(r) / total : 0;
          if (w < 0.0015 || cells.length > 1500) continue;
          deepest = Math.max(deepest, row);
          cells.push(cell(r, left, w, row, value(r, tag) === null ? 'never ended' : `${mode[0]} ${show(size(r), 'ns')}`));
          place(kids.get(r.id) ?? [], left, w, size(r), row + 1);
          left += w;
        }
      };
      if (root && scopeOf(root) !== scope) root = null;
      const top = root ? [root] : kids.get(null) ?? [];
      place(top.filter((r) => r.kind !== 'start_end'), 0, 1, 0, 0);
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
