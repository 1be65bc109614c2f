// What a change would save: bars of the time with it, the interval of that, and what is left out; of the cures in the verdict
// and of `report --what-if`.
import { data, pathText, Predicted, rowOf, select } from './data';
import { counted, el, percent, time } from './format';

const share = (x: number, of: number): string => `${Math.min(100, Math.max(0, (100 * x) / of)).toFixed(2)}%`;

/** "1.300 s → 209.6 ms, saves 83.9 % (198.3 ms to 226.8 ms)" */
function words(p: Predicted): string {
  const saves = p.before - p.after;
  const change = p.before > 0 ? percent(Math.abs(saves) / p.before) : time(Math.abs(saves));
  return `${time(p.before)} → ${time(p.after)}, ${saves < 0 ? 'costs' : 'saves'} ${p.at_most ? 'at most ' : ''}${change} (${time(p.low)} to ${time(p.high)})`;
}

/** A bar as long as `longest` allows: full what remains, pale what goes, and a whisker over the interval. */
export function bar(p: Predicted, longest: number): HTMLElement {
  const track = el('div', { class: 'predicted-track', 'aria-hidden': 'true' });
  const part = (name: string, from: number, to: number): void => {
    const piece = el('span', { class: name });
    piece.style.left = share(from, longest);
    piece.style.width = share(to - from, longest);
    track.append(piece);
  };
  part('before', 0, p.before);
  part('after', 0, p.after);
  part('interval', p.low, p.high);
  return el('div', { class: 'predicted', 'data-at-most': String(p.at_most) }, track, el('span', { class: 'predicted-words' }, words(p)));
}

const kRows = 12;
/** The run and the largest regions with what --what-if supposed. */
export function whatIf(): HTMLElement | null {
  const asked = data.what_if;
  if (!asked) return null;
  const rows = asked.regions.map(({ region, ...p }) => ({ region: data.regions[region]!, p })).filter((row) => row.region.process === undefined)
    .sort((a, b) => Math.abs(b.p.before - b.p.after) - Math.abs(a.p.before - a.p.after));
  const longest = Math.max(asked.run.before, ...rows.map((row) => row.p.before));
  const list = el('dl', { class: 'predictions' }, el('dt', {}, 'whole run'), el('dd', {}, bar(asked.run, longest)));
  for (const { region, p } of rows.slice(0, kRows)) {
    const link = el('button', { type: 'button', class: 'link' }, pathText(region));
    link.onclick = () => { select(rowOf(region.id) ?? region); document.getElementById('h-selected')?.scrollIntoView({ block: 'center' }); };
    list.append(el('dt', {}, link), el('dd', {}, bar(p, longest)));
  }
  const more = rows.length - kRows;
  return el('div', { id: 'what-if' }, el('ul', {}, ...asked.changes.map((c) => el('li', {}, el('code', {}, c.change), ` ${c.of}`))), list,
    more > 0 ? el('p', { class: 'dim' }, `${counted(more, 'more region')}, in the columns predicted and saves of the other formats`) : null);
}
