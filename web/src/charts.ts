// Roofline and distribution of occurrences, drawn by ECharts.
import { LineChart, ScatterChart } from 'echarts/charts';
import { AriaComponent, DataZoomComponent, GridComponent, LegendComponent, TooltipComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { data, onSelect, pathText, Point, Region, scopeOf, select, selected } from './data';
import { counted, el, onTheme, si, time, token } from './format';

echarts.use([LineChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent, LegendComponent, TooltipComponent, CanvasRenderer]);

function chart(id: string, label: string, option: () => echarts.EChartsCoreOption, click?: (data: unknown) => void): { box: HTMLElement; draw: () => void } {
  const box = el('div', { class: 'chart', id, role: 'img', 'aria-label': label });
  let drawn: ReturnType<typeof echarts.init> | null = null;
  const draw = (): void => {
    if (!box.clientWidth) return;
    if (!drawn) {
      drawn = echarts.init(box, null, { renderer: 'canvas' });
      if (click) drawn.on('click', (event: { data?: unknown }) => click(event.data));
    }
    drawn.resize();
    drawn.setOption(option(), true);
  };
  new ResizeObserver(draw).observe(box);
  onTheme(draw);
  return { box, draw };
}
const axis = (): object => ({
  nameTextStyle: { color: token('--dim') }, axisLabel: { color: token('--dim'), hideOverlap: true },
  axisLine: { lineStyle: { color: token('--line') } }, splitLine: { lineStyle: { color: token('--line') } },
});
const tooltip = (): object => ({ backgroundColor: token('--panel'), borderColor: token('--line'), textStyle: { color: token('--text'), fontSize: 12 }, renderMode: 'richText', confine: true });

/** A power of ten on an axis: 0.1, 100, 100 k. */
const power = (v: number): string => (v >= 1000 ? `${Number((v / 1000 ** Math.floor(Math.log10(v) / 3 + 1e-9)).toPrecision(3))} ${['', 'k', 'M', 'G', 'T', 'P'][Math.floor(Math.log10(v) / 3 + 1e-9)] ?? ''}` : String(Number(v.toPrecision(3))));

/** A region or a kernel under the roofs. */
interface Dot { region: Region | null; title: string; point: Point }

function roofDots(): Dot[] {
  const seen = (point: Point): boolean => point.intensity > 0 && point.flop_per_s > 0;
  const regions = data.regions.filter((region) => scopeOf(region) === 'all')
    .flatMap((region) => (region.roofline ?? []).filter(seen).map((point) => ({ region, title: pathText(region), point })));
  const kernels = (data.kernel_points ?? []).flatMap((kernel) => (kernel.roofline ?? []).filter(seen).map((point) => ({ region: null, title: kernel.name, point })));
  return [...regions, ...kernels];
}

export function roofline(): HTMLElement | null {
  const all = roofDots();
  if (all.length === 0) return null;
  const kindOf = ({ region, point }: Dot): string => `${region ? '' : 'kernels: '}${point.precision} / ${point.level}`;
  const kinds = [...new Set(all.map(kindOf))];
  let kind = kinds[0]!;
  const box = el('select', { 'aria-label': 'precision and memory level', id: 'roof-kind' }, ...kinds.map((k) => el('option', {}, k)));
  const c = chart('roofline', `roofline of ${counted(all.length, 'point')}`, () => {
    const list = all.filter((dot) => kindOf(dot) === kind);
    const { precision, level } = list[0]!.point;
    // The whole roof where both peaks are known: of every level at this precision and of every precision at this level.
    const roofs = [...new Map(all.filter(({ point: p }) => p.peak_flop_per_s > 0 && p.peak_bytes_per_s > 0 && (p.precision === precision || p.level === level))
      .map(({ point: p }) => [`${p.precision} / ${p.level}`, p])).values()].sort((a, b) => Number(a.level === level && a.precision === precision) - Number(b.level === level && b.precision === precision));
    const from = Math.min(...list.map(({ point }) => point.intensity), ...roofs.map((p) => p.peak_flop_per_s / p.peak_bytes_per_s)) / 4;
    const to = Math.max(...list.map(({ point }) => point.intensity), ...roofs.map((p) => p.peak_flop_per_s / p.peak_bytes_per_s)) * 4;
    // Elsewhere a dash above each point, not a line through them: between two points the roof may bend.
    const dashes = list.filter(({ point }) => point.roof_flop_per_s > 0 && !(point.peak_flop_per_s > 0 && point.peak_bytes_per_s > 0));
    return {
      aria: { enabled: true }, animation: false, tooltip: { ...tooltip(), trigger: 'item' }, legend: { top: 0, right: 0, type: 'scroll', left: 80, textStyle: { color: token('--text') } }, grid: { left: 72, right: 36, top: 44, bottom: 44 },
      xAxis: { type: 'log', name: 'FLOP / byte', nameLocation: 'middle', nameGap: 28, ...axis(), axisLabel: { color: token('--dim'), hideOverlap: true, formatter: power } },
      yAxis: { type: 'log', name: 'FLOP/s', ...axis(), axisLabel: { color: token('--dim'), formatter: (v: number) => si(v) } },
      series: [
        ...roofs.map((p) => {
          const own = p.level === level && p.precision === precision;
          return { type: 'line', name: `roof: ${p.precision} / ${p.level}`, showSymbol: false, silent: true, color: token(own ? '--warn' : '--dim'),
            data: [[from, from * p.peak_bytes_per_s], [p.peak_flop_per_s / p.peak_bytes_per_s, p.peak_flop_per_s], [to, p.peak_flop_per_s]], lineStyle: { width: own ? 2.5 : 1, type: own ? 'solid' : 'dashed' } };
        }),
        ...(dashes.length ? [{ type: 'scatter', name: 'attainable', data: dashes.map(({ point }) => [point.intensity, point.roof_flop_per_s]), symbol: 'rect', symbolSize: [28, 3],
          itemStyle: { color: token('--warn') }, silent: true }] : []),
        { type: 'scatter', name: 'achieved', itemStyle: { color: token('--mark') }, symbolSize: (_: unknown, p: { data: { id?: number } }) => p.data.id !== undefined && p.data.id === selected?.id ? 18 : 11,
          data: list.map(({ region, title, point }) => ({ value: [point.intensity, point.flop_per_s], id: region?.id, name: title,
            itemStyle: { color: region && region === selected ? token('--accent') : token('--mark'), borderColor: token('--text'), borderWidth: region && region === selected ? 2 : 0 } })),
          tooltip: { formatter: (p: { name: string; value: number[]; dataIndex: number }) => `${p.name}\n${si(p.value[1]!, 'FLOP/s')} at ${p.value[0]!.toPrecision(3)} FLOP/B` +
            (list[p.dataIndex]!.point.roof_flop_per_s > 0 ? `\nattainable ${si(list[p.dataIndex]!.point.roof_flop_per_s, 'FLOP/s')}` : '\nno roof known for this device') } },
      ],
    };
  }, (item) => { const id = (item as { id?: number } | undefined)?.id; if (id !== undefined) select(data.regions[id] ?? null); });
  box.onchange = () => { kind = box.value; c.draw(); };
  onSelect(c.draw);
  const table = el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, ...['region or kernel', 'precision', 'level', 'FLOP/byte', 'FLOP/s', 'attainable'].map((h) => el('th', {}, h)))),
    el('tbody', {}, ...all.map(({ title, point: p }) => el('tr', {}, el('td', {}, title), el('td', {}, p.precision), el('td', {}, p.level),
      el('td', { class: 'n' }, p.intensity.toPrecision(3)), el('td', { class: 'n' }, si(p.flop_per_s, 'FLOP/s')), el('td', { class: 'n' }, p.roof_flop_per_s > 0 ? si(p.roof_flop_per_s, 'FLOP/s') : '–')))));
  return el('div', {}, el('div', { class: 'bar' }, box), c.box, el('details', {}, el('summary', {}, 'as a table'), el('div', { class: 'scroll' }, table)));
}

/** How a metric is spread over the kernels: a dot for each, as high as its share of the GPU's time. */
export function kernelMetrics(): HTMLElement | null {
  const points = data.kernel_points ?? [];
  const known = (metric: string): number => points.filter((kernel) => typeof kernel.metrics?.[metric]?.value === 'number').length;
  const metrics = [...new Set(points.flatMap((kernel) => Object.keys(kernel.metrics ?? {})))].filter((metric) => known(metric) > 1).sort();
  if (metrics.length === 0) return null;
  let metric = metrics[0]!;
  const box = el('select', { 'aria-label': 'metric', id: 'kernel-metric' }, ...metrics.map((m) => el('option', {}, m)));
  const c = chart('kernel-metrics', `${counted(points.length, 'kernel')} by a metric`, () => {
    const list = points.filter((kernel) => typeof kernel.metrics?.[metric]?.value === 'number');
    const unit = list[0]?.metrics?.[metric]?.unit ?? '';
    return {
      aria: { enabled: true }, animation: false, grid: { left: 72, right: 36, top: 24, bottom: 44 },
      tooltip: { ...tooltip(), trigger: 'item', formatter: (p: { name: string; value: number[] }) => `${p.name}\n${metric} ${si(p.value[0]!, unit)}\n${(100 * p.value[1]!).toPrecision(3)} % of the kernels' time` },
      xAxis: { type: 'value', scale: true, name: unit ? `${metric}, ${unit}` : metric, nameLocation: 'middle', nameGap: 28, ...axis(), axisLabel: { color: token('--dim'), hideOverlap: true, formatter: (v: number) => si(v) } },
      yAxis: { type: 'value', name: 'share of time', ...axis(), axisLabel: { color: token('--dim'), formatter: (v: number) => `${Number((100 * v).toPrecision(3))} %` } },
      series: [{ type: 'scatter', symbolSize: 10, itemStyle: { color: token('--mark') }, data: list.map((kernel) => ({ name: kernel.name, value: [kernel.metrics![metric]!.value!, kernel.share ?? 0] })) }],
    };
  });
  box.onchange = () => { metric = box.value; c.draw(); };
  return el('div', {}, el('div', { class: 'bar' }, box), c.box);
}

/** Occurrences of the selected region over time: warm-up, drift and outliers. */
export function distribution(): HTMLElement {
  const c = chart('distribution', 'occurrences of the selected region over time', () => {
    const list = selected?.samples ?? [];
    const wall: number[][] = [], busy: number[][] = [];
    const first = list.length > 3 ? [[list[0]!, list[1]!]] : [];  // often a warm-up: apart, so that the rest is seen
    for (let i = 0; i + 2 < list.length; i += 3) {
      if (i > 0 && list[i + 1]! > 0) wall.push([list[i]!, list[i + 1]!]);
      if (list[i + 2]! > 0) busy.push([list[i]!, list[i + 2]!]);
    }
    const dots = (title: string, points: number[][], paint: string): object => ({ type: 'scatter', name: title, data: points, symbolSize: 5, itemStyle: { color: paint } });
    return {
      aria: { enabled: true }, animation: false, grid: { left: 64, right: 24, top: 34, bottom: 40 },
      legend: { top: 0, textStyle: { color: token('--text') } },
      tooltip: { ...tooltip(), trigger: 'item', formatter: (p: { seriesName: string; value: number[] }) => `${p.seriesName} ${time(p.value[1]!)}\nat ${time(p.value[0]!)}` },
      dataZoom: [{ type: 'inside', zoomOnMouseWheel: 'ctrl' }],
      xAxis: { type: 'value', ...axis(), scale: true, splitNumber: c.box.clientWidth < 600 ? 3 : 6, axisLabel: { color: token('--dim'), hideOverlap: true, margin: 14, formatter: time } },
      yAxis: { type: 'log', ...axis(), axisLabel: { color: token('--dim'), formatter: time } },
      series: [dots('wall', wall, token('--mark')), { ...dots('first', first, token('--warn')), symbol: 'diamond', symbolSize: 11 }, ...(busy.length ? [dots('GPU busy', busy, token('--accent'))] : [])],
    };
  });
  const none = el('p', { class: 'dim' }, 'Select a region to see its occurrences over time.');
  const root = el('div', {}, none, c.box);
  const update = (): void => {
    const some = (selected?.samples?.length ?? 0) > 3;
    c.box.hidden = !some;
    none.hidden = some || selected !== null;
    if (some) c.draw();
  };
  onSelect(update);
  update();
  return root;
}
