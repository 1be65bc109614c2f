// A flame graph: functions as wide as their part, what they call below them. Click zooms; search marks and counts.
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
  amount(total: number): string;       // "1 234 samples"
}
export interface FlameGraph<N> { bar: HTMLElement[]; box: HTMLElement; show(root: N): void; draw(): void }

export function flameGraph<N extends FlameNode<N>>(look: Look<N>, label: string): FlameGraph<N> {
  let root: N | null = null, top: N[] = [];
  const input = el('input', { type: 'search', id: 'flame-search', placeholder: 'search functions', 'aria-label': 'search functions', autocomplete: 'off', spellcheck: 'false' });
  const status = el('span', { class: 'dim', role: 'status', id: 'flame-found' });
  const out = el('button', { type: 'button', id: 'flame-out', hidden: '' }, 'zoom out');
  const box = el('div', { class: 'icicle flame', role: 'group', 'aria-label': label });
  const hit = (name: number): boolean => input.value !== '' && (look.text(name) + '\n' + look.file(name)).toLowerCase().includes(input.value.toLowerCase());
  const draw = (): void => {
    if (!root) return;
    const slabs: HTMLElement[] = [], all = root.total, view = top[top.length - 1] ?? root;
    let deepest = -1;
    const slab = (node: N, left: number, width: number, row: number): void => {
      const b = el('button', { type: 'button', class: `slab ${look.style(node)}${hit(node.name) ? ' hit' : ''}`, tabindex: '-1',
        title: `${look.text(node.name)}\n${look.file(node.name)}\n${look.tip(node, root!)}` }, look.text(node.name));
      b.style.cssText = `left:${left * 100}%;width:${width * 100}%;top:${row * kRow}px;background:${look.paint(node)}`;
      b.onclick = () => { if (node !== view) top.push(node); draw(); };
      slabs.push(b);
      deepest = Math.max(deepest, row);
    };
    const place = (node: N, left: number, width: number, row: number): void => {
      for (const kid of [...node.kids.values()].sort((a, b) => b.total - a.total)) {
        const w = width * kid.total / node.total;
        if (!(w >= 0.0008) || slabs.length > kMostSlabs) continue;
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
    if (input.value === '') { status.textContent = look.amount(all); return; }
    // Samples with a hit anywhere in their chain.
    const found = (node: N): number => node.name >= 0 && hit(node.name) ? node.total : [...node.kids.values()].reduce((n, kid) => n + found(kid), 0);
    status.textContent = all > 0 ? `${percent(found(root) / all)} of ${look.amount(all)}` : '';
  };
  input.oninput = draw;
  out.onclick = () => { top.pop(); draw(); };
  onTheme(draw);
  return { bar: [input, status, out], box, show(next) { root = next; top = []; draw(); }, draw };
}

export const shortenedNote = (samples: number): HTMLElement | null =>
  samples > 0 ? el('p', { class: 'dim' }, `Rare chains are shortened: ${counted(samples, 'sample')} stand at a caller.`) : null;
