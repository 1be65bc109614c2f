// Numbers for people, as src/base/units.cpp writes them, and small things of the DOM. Text goes in as text, never as markup.
/** Four significant digits. */
function digits(x: number): string {
  const size = Math.abs(x);
  return x.toFixed(size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3);
}

export function time(ns: number): string {
  for (const [scale, unit] of [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']] as [number, string][])
    if (Math.abs(ns) >= scale) return `${digits(ns / scale)} ${unit}`;
  return `${Number.isInteger(ns) ? ns : digits(ns)} ns`;
}
export function si(x: number, unit = ''): string {
  let prefix = 0;
  for (; Math.abs(x) >= 1000 && prefix < 6; ++prefix) x /= 1000;
  return `${prefix === 0 && Number.isInteger(x) ? x : digits(x)}${unit && ' '}${['', 'K', 'M', 'G', 'T', 'P', 'E'][prefix]}${unit}`;
}
export function bytes(x: number): string {
  let unit = 0;
  for (; Math.abs(x) >= 1024 && unit < 5; ++unit) x /= 1024;
  return unit === 0 ? `${x.toFixed(0)} B` : `${digits(x)} ${['KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit - 1]}`;
}
export const count = (x: number): string => Math.round(x).toLocaleString('en-US');
/** `1 lane`, `2 lanes`: a count with its noun. */
export const counted = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
export function percent(x: number): string {
  const size = Math.abs(x) * 100;
  if (size >= 0.05 || size === 0) return `${(x * 100).toFixed(1)} %`;
  return size >= 0.001 ? `${Number((x * 100).toPrecision(1))} %` : x < 0 ? '>-0.001 %' : '<0.001 %';
}
/** What may outlast what it is held against: above 1 it is not a share. */
export const multiple = (x: number): string => x < 1.0005 ? percent(x) : `${x < 99.95 ? x.toFixed(x < 9.995 ? 2 : 1) : count(x)}x`;

/** A value of a base unit. Absent is a dash, never a number. */
export function show(x: number | null | undefined, unit: string): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return '–';
  switch (unit) {
    case 'ns': return time(x);
    case 'count': return x < 0 ? '–' : count(x);
    case 'ratio': return percent(x);
    case 'byte': return bytes(x);
    default: return si(x, unit.replace(/^byte\//, 'B/'));
  }
}

type Child = Node | string | null | undefined | false;
/** An element with attributes and children; strings become text nodes. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, text] of Object.entries(attributes)) element.setAttribute(key, text);
  for (const child of children) if (child) element.append(child);
  return element;
}

/** A hue for a name: the same name has the same colour everywhere. FNV-1a. */
export function hue(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0) % 360;
}
export const dark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
};
export const color = (text: string): string => dark() ? `hsl(${hue(text)} 42% 27%)` : `hsl(${hue(text)} 58% 74%)`;
export const token = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const themed: (() => void)[] = [];
/** Called whenever colours change. */
export const onTheme = (draw: () => void): void => void themed.push(draw);
export const themeChanged = (): void => themed.forEach((draw) => draw());
/** Paper is white: charts are drawn anew in light colours while the page is printed. */
export function lightOnPaper(): void {
  const root = document.documentElement.dataset;
  let chosen: string | undefined;
  addEventListener('beforeprint', () => { chosen = root.theme; root.theme = 'light'; themeChanged(); });
  addEventListener('afterprint', () => { chosen === undefined ? delete root.theme : root.theme = chosen; themeChanged(); });
}
