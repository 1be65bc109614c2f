// A flame graph. Left heavy: all at the top, functions as wide as their part, what they call below them, the widest first;
// a click zooms. Sandwich: one function in the middle, its callers above it, what it calls below. Search marks and counts.
import { counted, el, onTheme, percent } from './format';

const kRow = 20, kMostSlabs = 2500;

/** A function as it was called from the same callers. */
export interface FlameNode<N> { name: number; total: number; kids: Map<number, N> }
export interface Look<N> {
  text(name: number): string;
  file(name: number): string;
  paint(node: N): string;
  style(node: N): string;              // class of its slab
  tip(node: N, root: N): string;       // behind name and file
  amount(total: number): string;       // "1,234 samples"
  make(name: number): N;               // an empty one
  add(into: N, from: N, caller: boolean): void;  // what it took, without its kids; to a caller it is none of its own
}
export interface FlameGraph<N> { bar: HTMLElement[]; box: HTMLElement; show(root: N): void; focus(name: number): void }

export function flameGraph<N extends FlameNode<N>>(look: Look<N>, label: string): FlameGraph<N> {
  let root: N | null = null, top: N[] = [], chosen = -1;
  const input = el('input', { type: 'search', id: 'flame-search', placeholder: 'search functions', 'aria-label': 'search functions', autocomplete: 'off', spellcheck: 'false' });
  const status = el('span', { class: 'dim', role: 'status', id: 'flame-found' });
  const out = el('button', { type: 'button', id: 'flame-out', hidden: '' }, 'zoom out');
  const view = el('select', { id: 'flame-view', 'aria-label': 'view' }, el('option', { value: '' }, 'left heavy'), el('option', { value: 'sandwich' }, 'sandwich'));
  const box = el('div', { class: 'icicle flame', role: 'group', tabindex: '0', 'aria-label': label });
  const text = (name: number): string => name < 0 ? 'all' : look.text(name), file = (name: number): string => name < 0 ? '' : look.file(name);
  const hit = (name: number): boolean => input.value !== '' && name >= 0 && (text(name) + '\n' + file(name)).toLowerCase().includes(input.value.toLowerCase());
  const kid = (of: N, name: number): N => {
    const known = of.kids.get(name) ?? look.make(name);
    of.kids.set(name, known);
    return known;
  };
  const each = (node: N, above: N[], visit: (node: N, above: N[]) => void): void => {
    visit(node, above);
    for (const one of node.kids.values()) each(one, [...above, node], visit);
  };
  /** The function that most of the time was spent in itself. */
  function heaviest(): number {
    const own = new Map<number, number>();
    each(root!, [], (node) => own.set(node.name, (own.get(node.name) ?? 0) + node.total - [...node.kids.values()].reduce((sum, one) => sum + one.total, 0)));
    own.delete(-1);
    return [...own].reduce((best, one) => one[1] > best[1] ? one : best, [-1, 0])[0];
  }
  /** One function wherever it was called: what it called, and the chains of its callers, innermost first. */
  function sandwich(name: number): { callees: N; callers: N } {
    const callees = look.make(name), callers = look.make(name);
    const merge = (into: N, from: N): void => {
      look.add(into, from, false);
      for (const one of from.kids.values()) merge(kid(into, one.name), one);
    };
    each(root!, [], (node, above) => {
      if (node.name !== name || above.some((one) => one.name === name)) return;
      merge(callees, node);
      let into = callers;
      for (let i = above.length - 1; i > 0; --i) look.add(into = kid(into, above[i]!.name), node, true);
    });
    return { callees, callers };
  }
  const depth = (node: N): number => [...node.kids.values()].reduce((most, one) => Math.max(most, 1 + depth(one)), 0);
  const draw = (): void => {
    if (!root) return;
    const slabs: HTMLElement[] = [], all = root.total;
    let deepest = -1;
    const slab = (node: N, left: number, width: number, row: number): void => {
      const b = el('button', { type: 'button', class: `slab ${look.style(node)}${hit(node.name) ? ' hit' : ''}`, tabindex: '-1',
        title: [text(node.name), file(node.name), look.tip(node, root!)].filter(Boolean).join('\n') }, text(node.name));
      b.style.cssText = `left:${left * 100}%;width:${width * 100}%;top:${row * kRow}px;background:${look.paint(node)}`;
      b.onclick = () => { if (view.value) { if (node.name >= 0) chosen = node.name; } else if (node === root) top = []; else if (node !== top[top.length - 1]) top.push(node); draw(); };
      slabs.push(b);
      deepest = Math.max(deepest, row);
    };
    const place = (node: N, left: number, width: number, row: number, step: number): void => {
      for (const one of [...node.kids.values()].sort((a, b) => b.total - a.total)) {
        const w = width * one.total / node.total;
        if (!(w >= 0.0008) || slabs.length > kMostSlabs) continue;
        slab(one, left, w, row);
        place(one, left, w, row + step, step);
        left += w;
      }
    };
    if (view.value && all > 0) {
      if (chosen < 0) chosen = heaviest();
      const { callees, callers } = sandwich(chosen), above = depth(callers);
      callers.total = callees.total;
      if (callees.total > 0) {
        place(callers, 0, 1, above - 1, -1);
        slab(callees, 0, 1, above);
        place(callees, 0, 1, above + 1, 1);
      }
    } else if (all > 0) {
      const shown = top[top.length - 1] ?? root;
      slab(shown, 0, 1, 0);
      place(shown, 0, 1, 1, 1);
    }
    out.hidden = top.length === 0 || view.value !== '';
    box.style.height = `${(deepest + 1) * kRow}px`;
    box.replaceChildren(...slabs);
    if (input.value === '') { status.textContent = look.amount(all); return; }
    // Samples with a hit anywhere in their chain.
    const found = (node: N): number => hit(node.name) ? node.total : [...node.kids.values()].reduce((n, one) => n + found(one), 0);
    status.textContent = all > 0 ? `${percent(found(root) / all)} of ${look.amount(all)}` : '';
  };
  input.oninput = draw;
  view.onchange = () => { chosen = top[top.length - 1]?.name ?? -1; draw(); };
  out.onclick = () => { top.pop(); draw(); };
  onTheme(draw);
  return { bar: [input, view, status, out], box, show(next) { root = next; top = []; chosen = -1; draw(); },
    focus(name) { view.value = 'sandwich'; chosen = name; draw(); box.scrollIntoView({ block: 'nearest' }); } };
}

export const shortenedNote = (samples: number): HTMLElement | null =>
  samples > 0 ? el('p', { class: 'dim' }, `Rare chains are shortened: ${counted(samples, 'sample')} count at a caller.`) : null;
