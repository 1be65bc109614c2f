// Numbers for people, and small things of the DOM. Text goes in as text, never as markup.
const kTime: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']];
const digits = (x: number): string => {
  const a = Math.abs(x);
  return a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2);
};

export function time(ns: number): string {
  if (ns === 0) return '0';
  for (const [scale, unit] of kTime) if (Math.abs(ns) >= scale * 0.9995) return `${digits(ns / scale)} ${unit}`;
  return `${digits(ns)} ns`;
}
export function si(x: number, unit = ''): string {
  if (x === 0) return unit ? `0 ${unit}` : '0';
  const a = Math.abs(x);
  for (const [scale, prefix] of [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as [number, string][])
    if (a >= scale) return `${digits(x / scale)} ${prefix}${unit}`;
  if (a < 0.01) return `${x.toExponential(1)}${unit ? ' ' + unit : ''}`;
  return `${Number.isInteger(x) ? String(x) : digits(x)}${unit ? ' ' + unit : ''}`;
}
/** Bytes in binary multiples, as the terminal writes them. */
export function bytes(x: number): string {
  let unit = 0;
  for (; Math.abs(x) >= 1024 && unit < 5; ++unit) x /= 1024;
  return unit === 0 ? `${Number.isInteger(x) ? x : digits(x)} B` : `${digits(x)} ${['KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit - 1]}`;
}
export const count = (x: number): string => Math.round(x).toLocaleString('en-US').replace(/,/g, '\u202f');
/** `1 lane`, `2 lanes`: a count with its noun. */
export const counted = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (x: number): string => `${digits(x * 100)} %`;
/** What may outlast what it is held against: above 1 it is no share. */
export const multiple = (x: number): string => x < 1.0005 ? percent(x) : `${x < 100 ? digits(x) : count(x)}x`;

/** A value of a base unit. Absent is a dash, never a number. */
export function show(x: number | null | undefined, unit: string): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return '–';
  switch (unit) {
    case 'ns': return time(x);
    case 'count': return x < 0 ? '–' : Number.isInteger(x) || x >= 1000 ? count(x) : digits(x);
    case 'ratio': return percent(x);
    case 'byte': return bytes(x);
    case 'byte/s': return si(x, 'B/s');
    case '': return si(x);
    default: return si(x, unit);
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
export const color = (text: string): string => dark() ? `hsl(${hue(text)} 42% 42%)` : `hsl(${hue(text)} 58% 74%)`;
export const token = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const themed: (() => void)[] = [];
/** Called whenever colours change. */
export const onTheme = (draw: () => void): void => void themed.push(draw);
export const themeChanged = (): void => themed.forEach((draw) => draw());
