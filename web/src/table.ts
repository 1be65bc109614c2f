// The region tree as a table: sortable, searchable, with the keyboard (up, down, left, right, Home, End, Enter).
import { data, measure, name, ofAll, onSelect, pathText, processText, Region, scopeOf, select, selected, value } from './data';
import { counted, el, multiple, percent, show } from './format';

const kRows = 400;
interface Column { id: string; title: string; help: string; get(r: Region): number | string | null; text(r: Region): string; hint?(r: Region): string; numeric: boolean }

/** GPU sums of part of the occurrences are those of one. */
export const shown = (r: Region, tag: string, unit: string): string => {
  const x = value(r, tag);
  if (tag === 'gpu.busy_share' && x !== null) return multiple(x);
  const about = r.module && tag.startsWith('wall_ns.') && x ? '~' : '';
  return about + show(x, unit) + (r.each && measure(tag)?.sum && x !== null ? ' each' : '');
};
const fromMeasure = (tag: string): Column | null => {
  const m = measure(tag);
  if (!m) return null;
  return { id: tag, title: m.title, help: `${m.tag}: ${m.formula} (${m.unit}; ${m.source})`, numeric: true,
    get: (r) => value(r, tag), text: (r) => shown(r, tag, m.unit) };
};
// As in the terminal; those at the end of kNarrow give way on a narrow screen.
const kShown = ['wall_ns.share', 'occurrences', 'wall_ns.inclusive', 'wall_ns.median', 'wall_ns.max', 'gpu.busy_share', 'gpu.kernels', 'gpu.share', 'gpu.copy_bytes',
  'across.imbalance', 'wall_ns.profiler'];
const kNarrow = new Set(['wall_ns.share', 'wall_ns.inclusive', 'gpu.busy_share']);
const kMedium = new Set([...kNarrow, 'occurrences', 'wall_ns.median', 'gpu.kernels', 'bound']);
const narrow = (id: string): string => (id === 'name' || kNarrow.has(id) ? '' : kMedium.has(id) ? ' medium' : ' broad');

function columns(all: boolean): Column[] {
  const has = (c: Column): boolean => data.regions.some((r) => { const v = c.get(r); return v !== null && v !== '' && !(typeof v === 'number' && v < 0); });
  const says = (c: Column): boolean => !['gpu.copy_bytes', 'wall_ns.profiler'].includes(c.id) || data.regions.some((r) => Number(c.get(r) ?? 0) > 0);
  const list = (all ? data.measures.map((m) => m.tag) : kShown).map(fromMeasure).filter((c): c is Column => c !== null && has(c) && (all || says(c)));
  const bound: Column = { id: 'bound', title: 'bound', help: 'what bounds the region; the reason is in each cell', numeric: false,
    get: (r) => (r.bound && r.bound.kind !== 'unknown' ? r.bound.kind : null), text: (r) => (r.bound && r.bound.kind !== 'unknown' ? r.bound.kind : '–'), hint: (r) => r.bound?.reason ?? '' };
  const utilization: Column = { id: 'utilization', title: 'utilization', help: 'executed FLOPs over what the GPU can do', numeric: true,
    get: (r) => r.utilization?.executed ?? null, text: (r) => r.utilization?.executed == null ? '–' : percent(r.utilization.executed),
    hint: (r) => r.utilization?.formula ?? '' };
  const useful: Column = { id: 'useful', title: 'MFU', help: 'useful FLOPs over peak', numeric: true,
    get: (r) => r.utilization?.useful ?? null, text: (r) => r.utilization?.useful == null ? '–' : percent(r.utilization.useful),
    hint: (r) => r.utilization?.formula ?? '' };
  return [...list, ...[bound, utilization, useful].filter(has)];
}

/** The share has a bar, as in the terminal. */
function barred(box: HTMLElement, c: Column, share: number | null): HTMLElement {
  if (c.id !== 'wall_ns.share' || share === null || !Number.isFinite(share)) return box;
  box.classList.add('share');
  box.style.setProperty('--share', String(Math.min(1, Math.max(0, share))));
  return box;
}

export function regionTable(): HTMLElement {
  let scope = 'all', sort = '', down = true, search = '', limit = kRows, every = false;
  const closed = new Set<number>();
  const children = new Map<number | null, Region[]>();
  for (const r of data.regions) children.set(r.parent, [...(children.get(r.parent) ?? []), r]);
  // A long tree begins folded below its third level.
  if (data.regions.length > 150) for (const r of data.regions) if (r.depth >= 2 && children.has(r.id)) closed.add(r.id);

  const scopes = [...new Set(data.regions.map(scopeOf))];
  if (scopes.includes('rows')) scope = 'rows';
  else if (!scopes.includes('all') && scopes[0]) scope = scopes[0];
  const scopeName = (key: string): string => {
    const r = data.regions.find((x) => scopeOf(x) === key)!;
    if (key === 'rows') return 'all processes';
    if (key === 'all') return 'all processes' + (data.rows ? ', numbered siblings apart' : '');
    return processText(r.process!) + (r.thread === undefined ? '' : `, thread ${r.thread}`);
  };
  const input = el('input', { type: 'search', id: 'search', placeholder: 'search regions', 'aria-label': 'search regions', autocomplete: 'off', spellcheck: 'false' });
  const scopeBox = el('select', { 'aria-label': 'scope', id: 'scope' }, ...scopes.map((s) => el('option', { value: s }, scopeName(s))));
  scopeBox.value = scope;
  const allBox = el('input', { type: 'checkbox', id: 'every' });
  const status = el('span', { class: 'dim', role: 'status', id: 'rows' });
  const head = el('tr');
  const body = el('tbody'), foot = el('tfoot');
  /** What lies outside every range, in the same columns. */
  const outsideRow = (list: Column[]): HTMLElement | null => {
    const wall = data.outside_ns;
    if ((wall ?? 0) <= 0 && !(data.unattributed ?? []).some((x) => (x ?? 0) > 0)) return null;
    const text = (id: string): string => {
      if (id === 'wall_ns.inclusive') return show(wall, 'ns');
      if (id === 'wall_ns.share') return wall !== null && data.run.duration_ns > 0 ? percent(wall / data.run.duration_ns) : '–';
      const at = data.measures.findIndex((m) => m.tag === id), busy = data.measures.findIndex((m) => m.tag === 'gpu.busy_ns');
      if (id === 'gpu.busy_share') { const x = data.unattributed?.[busy]; return wall && x != null ? percent(x / wall) : '–'; }
      return id.startsWith('gpu.') && at >= 0 ? show(data.unattributed?.[at], data.measures[at]!.unit) : '–';
    };
    return el('tr', { id: 'outside' }, el('th', { scope: 'row', title: 'time and GPU work outside every range' }, 'outside ranges'),
      ...list.map((c) => barred(el('td', { class: (c.numeric ? 'n' : '') + (every ? '' : narrow(c.id)) }, text(c.id)), c, wall === null ? null : wall / data.run.duration_ns)));
  };
  const table = el('table', { role: 'treegrid', 'aria-label': 'regions', id: 'regions' }, el('thead', {}, head), body, foot);
  const more = el('button', { type: 'button', hidden: '' }, 'show more');
  const several = data.regions.length > 1;  // what has one region needs no search
  const root = el('div', { class: 'regions' },
    el('div', { class: 'bar' }, several && input, scopes.length > 1 && scopeBox, el('label', {}, allBox, ' every column'), status),
    el('div', { class: 'scroll' }, table), more);

  const key = (r: Region): number | string | null => sort === 'name' ? name(r) : cols.find((c) => c.id === sort)?.get(r) ?? null;
  let cols = columns(false);
  const order = (list: Region[]): Region[] => !sort ? list : [...list].sort((a, b) => {
    const x = key(a), y = key(b);
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    const less = typeof x === 'string' ? x.localeCompare(String(y)) : x - (y as number);
    return down ? -less : less;
  });
  const rows = (): Region[] => {
    const out: Region[] = [];
    const want = search.toLowerCase();
    const hit = new Set<number>(), above = new Set<number>();
    if (want) for (const r of data.regions) if (scopeOf(r) === scope && pathText(r).toLowerCase().includes(want)) {
      hit.add(r.id);
      for (let p = r.parent; p !== null; p = data.regions[p]!.parent) above.add(p);
    }
    const walk = (parent: number | null): void => {
      for (const r of order((children.get(parent) ?? []).filter((x) => scopeOf(x) === scope))) {
        if (want && !hit.has(r.id) && !above.has(r.id)) continue;
        out.push(r);
        if (want || !closed.has(r.id)) walk(r.id);
      }
    };
    walk(null);
    return out;
  };
  const peak = (): number => Math.max(1, ...data.regions.map((r) => value(r, 'wall_ns.inclusive') ?? 0));

  let shown: Region[] = [];
  let active = -1;
  const headers = (): void => {
    const one = (id: string, title: string, help: string, numeric: boolean): HTMLElement => {
      const button = el('button', { type: 'button', title: help }, title + (sort === id ? (down ? ' ▾' : ' ▴') : ''));
      button.onclick = () => {
        if (sort === id && down !== numeric) sort = '', down = true;
        else if (sort === id) down = !down;
        else sort = id, down = numeric;
        headers(), draw();
        (head.querySelector(`[data-id="${CSS.escape(id)}"] button`) as HTMLElement | null)?.focus();
      };
      return el('th', { scope: 'col', 'data-id': id, class: (numeric ? 'n' : '') + (every ? '' : narrow(id)), 'aria-sort': sort === id ? (down ? 'descending' : 'ascending') : 'none' }, button);
    };
    head.replaceChildren(one('name', 'region', 'the range path; indented by nesting', false), ...cols.map((c) => one(c.id, c.title, c.help, c.numeric)));
  };
  const focusRow = (i: number): void => {
    if (i < 0 || i >= body.rows.length) return;
    if (body.rows[active]) body.rows[active]!.tabIndex = -1;
    active = i;
    body.rows[i]!.tabIndex = 0;
    body.rows[i]!.focus();
  };
  const fold = (r: Region, close: boolean): void => {
    close ? closed.add(r.id) : closed.delete(r.id);
    draw();
    focusRow(shown.indexOf(r));
  };
  const cell = (c: Column, r: Region): HTMLElement => {
    const box = el('td', { class: (c.numeric ? 'n' : '') + (every ? '' : narrow(c.id)), ...(c.hint?.(r) ? { title: c.hint(r) } : {}) }, c.text(r));
    return barred(box, c, value(r, c.id));
  };
  const draw = (): void => {
    const all = rows(), top = peak();
    shown = all.slice(0, limit);
    body.replaceChildren(...shown.map((r, i) => {
      const kids = children.has(r.id);
      const toggle = el('span', { class: 'toggle', 'aria-hidden': 'true' }, kids ? (closed.has(r.id) && !search ? '▸' : '▾') : '');
      const share = (value(r, 'wall_ns.inclusive') ?? 0) / top;
      const first = el('th', { scope: 'row', title: pathText(r) }, el('span', { class: 'cell' }, toggle,
        el('span', { class: 'text' }, name(r) || '(no name)'),
        r.domain && r.depth === 0 && !r.label && el('span', { class: 'tag' }, r.domain), r.kind === 'start_end' && el('span', { class: 'tag' }, 'start/end')));
      first.style.setProperty('--depth', String(search ? Math.min(r.depth, 6) : r.depth));
      first.style.setProperty('--share', String(share));
      const row = el('tr', { role: 'row', 'aria-level': String(r.depth + 1), 'data-id': String(r.id), tabindex: (selected ? r === selected : i === 0) ? '0' : '-1',
        'aria-selected': String(r === selected), ...(kids ? { 'aria-expanded': String(!closed.has(r.id)) } : {}) },
        first, ...cols.map((c) => cell(c, r)));
      row.onclick = () => (active = i, select(r));
      toggle.onclick = (event) => { if (kids) event.stopPropagation(), fold(r, !closed.has(r.id)); };
      return row;
    }));
    const outside = ofAll(scope) && !search ? outsideRow(cols) : null;
    foot.replaceChildren(...(outside ? [outside] : []));
    active = Math.max(0, selected ? shown.indexOf(selected) : 0);
    more.hidden = all.length <= limit;
    more.textContent = `show ${Math.min(2000, all.length - limit)} more of ${all.length}`;
    status.textContent = counted(all.length, 'region');
  };
  body.addEventListener('keydown', (event) => {
    const r = shown[active];
    if (!r) return;
    const kids = children.has(r.id);
    switch (event.key) {
      case 'ArrowDown': focusRow(Math.min(active + 1, shown.length - 1)); break;
      case 'ArrowUp': focusRow(Math.max(active - 1, 0)); break;
      case 'Home': focusRow(0); break;
      case 'End': focusRow(shown.length - 1); break;
      case 'ArrowRight': if (kids && closed.has(r.id)) fold(r, false); else if (kids) focusRow(active + 1); break;
      case 'ArrowLeft': if (kids && !closed.has(r.id)) fold(r, true); else focusRow(shown.findIndex((x) => x.id === r.parent)); break;
      case 'Enter': case ' ': select(r); break;
      default: return;
    }
    event.preventDefault();
  });
  more.onclick = () => { limit += 2000; draw(); };
  input.oninput = () => { search = input.value; draw(); };
  input.onkeydown = (event) => { if (event.key === 'ArrowDown') event.preventDefault(), focusRow(0); };
  scopeBox.onchange = () => { scope = scopeBox.value; draw(); };
  allBox.onchange = () => { every = allBox.checked; cols = columns(every); headers(); draw(); };
  onSelect((r) => {
    if (r && scopeOf(r) !== scope) scope = scopeBox.value = scopeOf(r), draw();
    if (r && !shown.includes(r)) {
      for (let p = r.parent; p !== null; p = data.regions[p]!.parent) closed.delete(p);
      if (search && !rows().includes(r)) search = input.value = '';
      draw();
    }
    for (const row of Array.from(body.rows)) {
      const mine = r !== null && row.dataset.id === String(r.id);
      row.setAttribute('aria-selected', String(mine));
      if (mine) {
        active = row.sectionRowIndex;
        const box = row.parentElement!.parentElement!.parentElement!;
        const y = row.offsetTop;
        if (y < box.scrollTop + 40 || y > box.scrollTop + box.clientHeight - 40) box.scrollTop = y - box.clientHeight / 2;
      }
      row.tabIndex = mine ? 0 : -1;
    }
  });
  headers();
  draw();
  return root;
}
