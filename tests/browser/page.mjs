// Drives a Chromium over reports, as a reader would. Usage: node page.mjs PLAYWRIGHT CHROMIUM FOLDER [SHOTS]
//
// FOLDER holds pages made by browser.py: job.html, ranks.html, zoo.html, work.html, python.html, alone.html, modules.html, ncu.html, what_if.html, cures.html, hostile.html, roofline.html, memory.html, big.html, comparison.html, slower.html, flame.html. Prints a line
// `pass|fail <case> [why]` for each case. Any error of a page and any request to the network fails the case.
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [playwright, executablePath, folder, shots] = process.argv.slice(2);
const only = new RegExp(process.env.ONLY ?? '');  // cases, while one is written
const { chromium } = createRequire(import.meta.url)(playwright);
const axe = createRequire(import.meta.url).resolve(join(playwright, '../axe-core/axe.min.js'));
const profile = mkdtempSync(join(tmpdir(), 'rangescope-chromium-'));
const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, viewport: { width: 1280, height: 900 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
context.setDefaultTimeout(240_000);  // of what comes at once where the machine is idle
let failed = 0;

function expect(condition, what) { if (!condition) throw new Error(what); }
function equal(got, want, what) { expect(JSON.stringify(got) === JSON.stringify(want), `${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`); }

async function open(page, file, colorScheme) {
  await page.emulateMedia({ colorScheme });
  await page.goto(`file://${join(folder, file)}`);
  await page.waitForSelector('html[data-ready="1"]');
}

// Those of one file, size and scheme follow each other, and those that only read first: they share a page, which the first
// of the others takes over.
const checks = [];
function check(name, file, body, options = {}) {
  const { size = { width: 1280, height: 900 }, scheme = 'light', reads = false } = options;
  if (only.test(name)) checks.push({ name, file, body, size, scheme, reads, key: JSON.stringify([file, size, scheme]) });
}

async function opened({ file, size, scheme }) {
  const page = await context.newPage();
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(`error ${error.message}`));
  page.on('console', (message) => { if (message.type() === 'error') page.problems.push(`console ${message.text()}`); });
  page.on('request', (request) => { if (!/^(file|data|blob):/.test(request.url())) page.problems.push(`request ${request.url()}`); });
  page.on('dialog', (dialog) => { page.problems.push(`dialog ${dialog.message()}`); void dialog.dismiss(); });
  await page.setViewportSize(size);
  await open(page, file, scheme);
  return page;
}

async function runChecks() {
  const order = [...new Set(checks.map((check) => check.key))];
  checks.sort((a, b) => order.indexOf(a.key) - order.indexOf(b.key) || Number(b.reads) - Number(a.reads));
  let page, unchanged;  // and the key of what is open
  for (const check of checks) {
    try {
      if (unchanged !== check.key) {
        await page?.close();
        page = undefined;
        page = await opened(check);
      }
      unchanged = undefined;
      await check.body(page);
      expect(page.problems.length === 0, page.problems.join('; '));
      if (check.reads) unchanged = check.key;
      console.log(`pass ${check.name}`);
    } catch (error) {
      failed = 1;
      console.log(`fail ${check.name} ${String(error.message).split('\n')[0]}`);
    }
  }
}
const names = (page) => page.locator('#regions tbody th .text').allTextContents();
const selectedName = (page) => page.locator('#regions tbody tr[aria-selected="true"] th .text').allTextContents();
const span = (page) => page.locator('.lanes').evaluate((box) => Number(box.dataset.to) - Number(box.dataset.from));
const back = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
// What changes a chart queues its drawing for the next frame, and that may change others: three frames later all is drawn.
const settle = (page) => page.evaluate(async () => {
  for (let frame = 0; frame < 3; ++frame) await new Promise(requestAnimationFrame);
});

check('table: sorting by a column', 'zoo.html', async (page) => {
  const head = page.locator('#regions th[data-id="wall_ns.inclusive"]');
  await head.locator('button').click();
  equal(await head.getAttribute('aria-sort'), 'descending', 'aria-sort');
  const top = await page.locator('#regions tbody tr[aria-level="1"] th .text').allTextContents();
  await head.locator('button').click();
  equal(await head.getAttribute('aria-sort'), 'ascending', 'aria-sort');
  equal(await page.locator('#regions tbody tr[aria-level="1"] th .text').allTextContents(), [...top].reverse(), 'order');
});
check('table: GPU work beyond its range is a multiple', 'zoo.html', async (page) => {
  const texts = (await page.locator('#regions tbody td').allTextContents()).filter((text) => /x$/.test(text));
  expect(texts.includes('2.50x') && texts.includes('1.42x'), `multiples: ${texts}`);
  expect(!(await page.locator('#regions').textContent()).includes('250 %'), 'no share above the whole');
}, { reads: true });
check('table: search keeps what is above a hit', 'zoo.html', async (page) => {
  const before = (await names(page)).length;
  await page.fill('#search', 'layer0');
  const found = await names(page);
  expect(found.length > 0 && found.length < before, `${found.length} of ${before}`);
  expect(found.includes('layer0') && found.includes('decode'), found.join());
  await page.fill('#search', 'no such thing');
  equal(await names(page), [], 'nothing');
  equal(await page.textContent('#rows'), '0 regions', 'count');
});
check('table: a model is a tree of its modules, numbered siblings together', 'modules.html', async (page) => {
  equal(await names(page), ['Model', 'model (Decoder)', 'embed (Embedding)', 'layers.# (Layer) x12', 'norm# (LayerNorm) x24', 'attention (Attention) x12', 'qkv (Linear) x12',
    'out (Linear) x12', 'mlp (Mlp) x12', 'up (Linear) x12', 'down (Linear) x12', 'head (Linear)'], 'rows');
  const cells = await page.locator('#regions tbody tr').nth(3).locator('td').allTextContents();
  expect(cells.includes('84') && cells.includes('720') && cells.includes('~1.092 s'), `calls, kernels and time from launch to launch: ${cells}`);
  await page.locator('.verdict button').first().click();
  equal(await selectedName(page), ['layers.# (Layer) x12'], 'the verdict leads to the row');
  expect((await page.textContent('#details h3')).endsWith('layers.# (Layer) x12'), 'its details');
  await page.selectOption('#scope', 'all');
  expect((await names(page)).includes('layers.11 (Layer)'), 'apart');
});
check('table: keyboard', 'zoo.html', async (page) => {
  await page.focus('#search');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  equal(await selectedName(page), [(await names(page))[1]], 'selected');
  await page.keyboard.press('Home');
  const before = (await names(page)).length;
  await page.locator('#regions tbody tr[aria-expanded="true"]').first().focus();
  await page.locator('#regions tbody tr[aria-expanded="true"]').first().click();
  await page.locator('#regions tbody tr[aria-selected="true"]').focus();
  await page.keyboard.press('ArrowLeft');
  expect((await names(page)).length < before, 'left folds');
  await page.keyboard.press('ArrowRight');
  equal((await names(page)).length, before, 'right unfolds');
});
check('icicle: a click and everything follows', 'zoo.html', async (page) => {
  const id = await page.locator('.slab').evaluateAll((all) => all.filter((s) => s.offsetWidth > 20).pop().dataset.id);
  const name = await page.locator(`.slab[data-id="${id}"]`).textContent();
  await page.locator(`.slab[data-id="${id}"]`).click();
  equal(await page.locator('#regions tbody tr[aria-selected="true"]').getAttribute('data-id'), id, 'row');
  expect((await page.textContent('#details h3')).includes(name), 'details');
  expect(await page.locator('.slab.on').count() === 1, 'marked');
});
check('icicle: a range that never ended holds its children', 'hostile.html', async (page) => {
  const titles = await page.locator('.slab').evaluateAll((all) => all.map((s) => s.title));
  expect(titles.length >= 2 && titles.some((title) => title.endsWith('never ended')), titles.join(' | '));
}, { reads: true });
for (const file of ['zoo.html', 'job.html']) {
  check(`icicle: all rows are seen without scrolling (${file})`, file, async (page) => {
    const scroll = await page.locator('.icicle:not(.flame)').evaluateAll((all) => all.map((box) =>
      /auto|scroll/.test(getComputedStyle(box).overflow) && (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight)));
    equal(scroll, [false], 'scroll bars');
  }, { reads: true });
}
check('the verdict comes first and links to its region', 'work.html', async (page) => {
  const text = await page.textContent('.verdict li');
  expect(/^prefill|^decode/.test(text) && /saves up to .* of the run/.test(text), text);
  await page.click('.verdict li button');
  equal(await selectedName(page), [text.split(':')[0]], 'selected');
  expect(await page.locator('#details table').first().locator('tbody tr').count() > 0, 'kernels of the region');
  expect(await page.locator('#distribution canvas').count() === 1, 'distribution');
});
const width = (element) => element.evaluate((piece) => piece.getBoundingClientRect().width);
check('the heading is the command, and the line below it has time, CPU, memory and machine', 'alone.html', async (page) => {
  equal(await page.textContent('h1'), '/usr/bin/python3 report.py', 'heading');
  const facts = await page.textContent('#facts');
  for (const fact of ['1.653 s', 'CPU 667.3 ms', '0.40 CPUs used', 'peak memory 17.11 MiB']) expect(facts.includes(fact), `${fact}: ${facts}`);
  expect((await page.title()).startsWith('/usr/bin/python3 report.py'), await page.title());
}, { reads: true });
check('one region: the flame graph follows the verdict, and nothing is empty', 'alone.html', async (page) => {
  equal((await page.locator('h2').allTextContents()).slice(0, 3), ['Verdict', 'On the CPU', 'Regions'], 'parts');
  const box = await page.locator('.flame').boundingBox();
  expect(box.y < 900, `the flame graph begins at ${box.y}`);
  equal(await page.locator('#h-icicle, #h-kernels, #h-timeline, #search, #outside').count(), 0, 'empty parts');
  equal(await page.locator('#on-cpu summary, #cpu ~ details > summary').allTextContents(), ['Functions of the program', 'Waits'], 'tables');
  expect((await page.textContent('#cpu ~ details')).includes('parse (report.py:2)'), 'its functions');
}, { size: { width: 1400, height: 900 }, reads: true });
check('a program that waits: its waits come before the flame graph', 'waits.html', async (page) => {
  equal((await page.locator('h2').allTextContents()).slice(0, 3), ['Verdict', 'Waits and CPU', 'Regions'], 'parts');
  equal(await page.locator('section:has(.flame) > details > summary').allTextContents(), ['Waits', 'Functions of the program'], 'tables');
  const top = async (selector) => (await page.locator(selector).first().boundingBox()).y;
  expect(await top('table.stacked') < await top('.flame'), 'the table of waits stands above');
}, { size: { width: 1400, height: 900 }, reads: true });
check('a program that waits: on 390 px each row is a paragraph, and axe finds nothing', 'waits.html', async (page) => {
  const cut = await page.locator('table.stacked td').evaluateAll((cells) => cells
    .filter((cell) => getComputedStyle(cell).display !== 'none' && cell.getBoundingClientRect().right > 390).map((cell) => cell.textContent));
  equal(cut, [], 'beyond the edge');
  const row = page.locator('table.stacked tbody tr').first();
  expect((await row.locator('td').allTextContents()).length === 6, 'every column is there');
  const time = row.locator('td').nth(2);
  equal(await time.getAttribute('data-head'), 'time', 'its name');
  expect(await time.evaluate((cell) => getComputedStyle(cell, '::before').content) !== 'none', 'the name is shown');
  await findsNothing(page, 'light');
  if (shots) await page.screenshot({ path: join(shots, 'waits-390.png') });
}, { size: { width: 390, height: 844 } });
check('what a line saves is a bar at its right', 'work.html', async (page) => {
  const claim = await page.locator('.verdict li .words').first().boundingBox(), saves = await page.locator('.verdict li .saving').first().boundingBox();
  expect(saves.x > claim.x + claim.width - 1, `${claim.x} + ${claim.width}, ${saves.x}`);
  const part = await page.locator('.saving-track span').first().evaluate((span) => parseFloat(span.style.width));
  expect(part > 11 && part < 11.5, `${part} % of the run`);
  equal(await page.locator('.verdict li').last().locator('.saving').count(), 0, 'a line that saves nothing has none');
}, { size: { width: 1400, height: 900 }, reads: true });
check('shares have bars', 'work.html', async (page) => {
  const bars = await page.locator('td.share').evaluateAll((all) => Object.fromEntries(all.map((cell) => [cell.textContent, parseFloat(getComputedStyle(cell, '::after').width)])));
  expect(Math.abs(bars['84.4 %'] / bars['12.7 %'] - 84.4 / 12.7) < 0.2, JSON.stringify(bars));
}, { size: { width: 1400, height: 900 }, reads: true });
check('what if: bars of the run and of regions, and a click leads to the region', 'what_if.html', async (page) => {
  equal(await page.locator('#what-if li code').allTextContents(), ['copies=overlapped', 'region:loop=0.9'], 'as it was asked');
  const said = await page.locator('#what-if .predicted-words').allTextContents();
  expect(said.length >= 3, `${said.length} bars`);
  for (const text of said) expect(/^[\d.]+ m?s → [\d.]+ [mu]?s, saves [\d.]+ % \([\d.]+ [mu]?s to [\d.]+ [mu]?s\)$/.test(text), text);
  const run = page.locator('#what-if .predicted').first();
  const [track, before, after, interval] = await Promise.all(['.predicted-track', '.before', '.after', '.interval'].map((part) => width(run.locator(part))));
  expect(Math.abs(before - track) < 1 && after < 0.95 * before && after > 0 && interval >= 2, `${track} ${before} ${after} ${interval}`);
  const loop = page.locator('#what-if dt button', { hasText: /^loop$/ });
  await loop.click();
  equal(await selectedName(page), ['loop'], 'selected');
});
check('cures: a claim, its bar with an interval, what to try, and a click leads to the region', 'cures.html', async (page) => {
  const lines = page.locator('.verdict li');
  equal(await lines.locator('.try').allTextContents(), ['torch.compile(step)', 'pin_memory=True, non_blocking=True'], 'to try');
  const said = await lines.locator('.predicted-words').allTextContents();
  equal(said[0], '414.0 ms → 45.00 ms, saves 89.1 % (26.55 ms to 81.90 ms)', 'in words');
  expect(said[1].includes('saves at most 11.1 %'), said[1]);
  equal(await lines.nth(2).locator('.predicted').count(), 0, 'a line without a cure has no bar');
  const [first, second] = [lines.nth(0), lines.nth(1)];
  const [before, after, interval, next] = await Promise.all([width(first.locator('.before')), width(first.locator('.after')),
    width(first.locator('.interval')), width(second.locator('.before'))]);
  expect(Math.abs(after / before - 45 / 414) < 0.01 && Math.abs(interval / before - 55.35 / 414) < 0.01, `${before} ${after} ${interval}`);
  expect(Math.abs(next / before - 45 / 414) < 0.01, 'bars have one scale');
  await first.locator('button').click();
  equal((await selectedName(page)).length, 1, 'selected');
});
for (const size of [{ width: 390, height: 844 }, { width: 800, height: 900 }, { width: 1400, height: 900 }]) {
  check(`what if: fits ${size.width} px, and axe finds nothing`, 'what_if.html', async (page) => {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide <= size.width, `${wide} px`);
    await findsNothing(page, 'light');
    if (shots) await page.screenshot({ path: join(shots, `what-if-${size.width}.png`), clip: { x: 0, y: 0, ...size } });
    await page.click('#theme');
    await findsNothing(page, 'dark');
  }, { size });
  check(`cures: fit ${size.width} px, and axe finds nothing`, 'cures.html', async (page) => {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide <= size.width, `${wide} px`);
    await findsNothing(page, 'light');
    if (shots) await page.screenshot({ path: join(shots, `cures-${size.width}.png`), clip: { x: 0, y: 0, ...size } });
  }, { size });
}
check('the address keeps region and zoom', 'work.html', async (page) => {
  await page.locator('#regions tbody tr').last().click();
  await page.locator('#timeline').scrollIntoViewIfNeeded();
  await page.click('button[aria-label="zoom in"]');
  await settle(page);
  const [chosen, wide, address] = [await selectedName(page), await span(page), page.url()];
  expect(/#.*region=\d+/.test(address) && /time=\d+-\d+/.test(address), address);
  await page.reload();
  await page.waitForSelector('html[data-ready="1"]');
  equal(await selectedName(page), chosen, 'region');
  expect(Math.abs(await span(page) - wide) <= 2, 'zoom');
});
check('what lies outside ranges has a row', 'work.html', async (page) => {
  expect(/outside ranges.*%/s.test(await page.textContent('#outside')), await page.textContent('#outside'));
}, { reads: true });
check('kernels are sorted and searched', 'work.html', async (page) => {
  const first = () => page.locator('#kernels tbody tr td').first().textContent();
  const all = await page.locator('#kernels tbody tr').count(), largest = await first();
  await page.locator('#kernels thead button').first().click();
  expect(await first() !== largest, 'sorted by name');
  await page.fill('#kernel-search', 'nvjet');
  const found = await page.locator('#kernels tbody tr').count();
  expect(found > 0 && found < all, `${found} of ${all}`);
});
check('keys are listed and work', 'work.html', async (page) => {
  await page.keyboard.press('/');
  equal(await page.evaluate(() => document.activeElement.id), 'search', 'search');
  await page.locator('h1').click();
  await page.keyboard.press('?');
  expect(await page.locator('#keys').getAttribute('open') !== null, 'listed');
});
for (const width of [1024, 1400]) {
  check(`the table fits ${width} px`, 'work.html', async (page) => {
    const clipped = await page.locator('.regions .scroll').evaluate((box) => box.scrollWidth - box.clientWidth);
    expect(clipped <= 0, `${clipped} px too wide`);
  }, { size: { width, height: 900 } });
}
check('start/end ranges lie apart in the icicle', 'zoo.html', async (page) => {
  expect(await page.locator('.icicle .apart').count() === 1, 'title');
}, { reads: true });
check('timeline: zoom, move, all', 'work.html', async (page) => {
  await page.locator('#timeline').scrollIntoViewIfNeeded();
  await page.click('button[aria-label="show all"]');
  await settle(page);
  const whole = await span(page);
  await page.click('button[aria-label="zoom in"]');
  await settle(page);
  expect(Math.abs(await span(page) - whole / 2) < whole * 0.01, 'half');
  await page.locator('#timeline').hover();
  await page.mouse.wheel(0, -300);
  await settle(page);
  expect(await span(page) < whole / 2, 'wheel');
  await page.focus('#timeline');
  await page.keyboard.press('0');
  await settle(page);
  equal(await span(page), whole, 'all');
});
check('timeline: a kernel shows its launch', 'zoo.html', async (page) => {
  const canvas = page.locator('#timeline');
  await canvas.scrollIntoViewIfNeeded();
  let said = '';
  const box = await canvas.boundingBox();
  for (let y = box.height - 6; y > 20 && !said.includes('launched'); y -= 8) {
    for (let x = 20; x < box.width && !said.includes('launched'); x += 40) {
      await page.mouse.click(box.x + x, box.y + y);
      said = await page.textContent('#picked');
    }
  }
  expect(/launched .* earlier by thread/.test(said), `said: ${said}`);
});
check('timeline: search goes from hit to hit', 'work.html', async (page) => {
  await page.fill('#timeline-search', 'splitK');
  await page.press('#timeline-search', 'Enter');
  const found = () => page.textContent('#timeline-found');
  expect(/^1 of \d+ hits$/.test(await found()), await found());
  expect((await page.textContent('#picked')).includes('splitK'), await page.textContent('#picked'));
  await page.press('#timeline-search', 'Enter');
  expect(/^2 of/.test(await found()), await found());
  await page.press('#timeline-search', 'Shift+Enter');
  expect(/^1 of/.test(await found()), await found());
  await page.fill('#timeline-search', 'no such thing');
  await page.waitForFunction(() => document.getElementById('timeline-found').textContent === '0 hits');
});
check('timeline: the ruler measures between two points', 'work.html', async (page) => {
  const canvas = page.locator('#timeline');
  await canvas.scrollIntoViewIfNeeded();
  const ruler = () => page.locator('.lanes.tall').evaluate((box) => Number(box.dataset.ruler));
  const box = await canvas.boundingBox(), whole = await span(page);
  const drag = async (keys) => {
    await page.mouse.move(box.x + box.width * 0.25, box.y + 12);
    if (keys) await page.keyboard.down('Shift');
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 12, { steps: 4 });
    await page.mouse.up();
    if (keys) await page.keyboard.up('Shift');
  };
  await drag(true);
  expect(Math.abs(await ruler() - whole / 4) < whole / 50, `${await ruler()} of ${whole}`);
  equal(await span(page), whole, 'nothing moved');
  expect(/ from .* to /.test(await page.textContent('#picked')), await page.textContent('#picked'));
  await page.focus('#timeline');
  await page.keyboard.press('Escape');
  expect(Number.isNaN(await ruler()), 'dropped');
  await page.keyboard.press('m');
  await page.click('button[aria-label="later"]');
  await page.focus('#timeline');
  await page.keyboard.press('m');
  expect(await ruler() >= 0, 'by keyboard');
  await page.click('#ruler');
  await drag(false);
  expect(Math.abs(await ruler() - whole / 4) < whole / 50, 'by the button');
});
check('timeline: its height can be dragged', 'big.html', async (page) => {
  const lanes = page.locator('.lanes.tall');
  await lanes.scrollIntoViewIfNeeded();
  const before = await lanes.boundingBox();
  await page.mouse.move(before.x + before.width - 4, before.y + before.height - 4);
  await page.mouse.down();
  await page.mouse.move(before.x + before.width - 4, before.y + before.height - 60, { steps: 4 });
  await page.mouse.up();
  const after = await lanes.boundingBox();
  expect(Math.abs(before.height - after.height - 56) < 8, `${before.height} ${after.height}`);
});
check('icicle: the whole run, and what lies outside ranges', 'work.html', async (page) => {
  const slabs = await page.locator('.icicle:not(.flame) .slab').evaluateAll((all) => Object.fromEntries(all.map((s) => [s.textContent, parseFloat(s.style.width)])));
  equal(slabs['whole run'], 100, 'root');
  expect(slabs['outside ranges'] > 84 && slabs['outside ranges'] < 85, JSON.stringify(slabs));
}, { reads: true });
check('a file of ncu: no empty timeline, and each kernel once', 'ncu.html', async (page) => {
  equal(await page.locator('#h-timeline').count(), 0, 'timeline');
  const rows = await page.locator('#kernels tbody tr td:first-child').allTextContents();
  expect(rows.length > 0 && new Set(rows).size === rows.length, rows.join());
  await page.locator('#regions tbody tr', { has: page.locator('th .text:text-is("layer0")') }).first().click();
  const named = await page.locator('#details').evaluate((box) => [...box.querySelectorAll('td:first-child, summary')].filter((e) => e.textContent.includes('gemm_like') && e.checkVisibility()).length);
  equal(named, 1, 'the region names each kernel once');
  await page.locator('#counted > summary').click();
  expect(await page.locator('#counted > details').count() > 1, 'each result is at hand');
});
for (const file of ['work.html', 'python.html', 'job.html']) {
  check(`print: regions, heads, links and charts stay (${file})`, file, async (page) => {
    if (file === 'python.html') await page.locator('#regions tbody tr').first().click();
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light', 'paper is white');
    for (const what of ['.verdict li', '#regions thead button', '#regions tbody tr', '.icicle .slab', ...(file === 'work.html' ? ['#kernels thead button', '#timeline', '#distribution canvas'] : []), ...(file === 'python.html' ? ['.flame .slab'] : [])])
      expect(await page.locator(what).first().isVisible(), `${what} is printed`);
    if (file === 'work.html') expect(await page.locator('.verdict li button').first().isVisible(), 'names of the verdict are printed');
    expect(!(await page.locator('#theme').isVisible()) && !(await page.locator('#search').isVisible()), 'controls are not');
    const wide = await page.locator('canvas').evaluateAll((all) => all.filter((c) => c.clientWidth > document.documentElement.clientWidth).map((c) => c.id));
    equal(wide, [], 'charts fit the paper');
    if (shots) await page.pdf({ path: join(shots, file.replace('html', 'pdf')), format: 'A4', printBackground: true });
    if (shots) await page.screenshot({ path: join(shots, `print-${file.replace('html', 'png')}`), fullPage: true });
  }, { scheme: 'dark', size: { width: 720, height: 1000 } });
}
check('numbers are those of the terminal', 'work.html', async (page) => {
  const terminal = readFileSync(join(folder, 'work.txt'), 'utf8').split('\n').find((line) => line.startsWith('decode ')).split(/ {2,}/).slice(1).map((text) => text.replace(/^[^\d]*/, ''));
  const row = (await page.locator('#regions tbody tr', { has: page.locator('th .text:text-is("decode")') }).first().locator('td').allTextContents());
  for (const text of ['12.7 %', '844.5 ms', '27.35 ms', '85.07 ms', '3,696']) expect(terminal.includes(text) && row.includes(text), `${text}: ${terminal} | ${row}`);
}, { reads: true });
const axeSource = readFileSync(axe, 'utf8');
async function findsNothing(page, scheme) {
  await settle(page);
  const cdp = await context.newCDPSession(page);  // evaluated from outside: the page allows no script but its own
  await cdp.send('Runtime.evaluate', { expression: axeSource });
  const { result } = await cdp.send('Runtime.evaluate', { expression: `axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations
    .map((v) => v.id + ' ' + v.nodes.length + ' ' + v.nodes[0].target + ' ' + (v.nodes[0].any[0]?.message ?? ''))))`, awaitPromise: true, returnByValue: true });
  equal(JSON.parse(result.value), [], `findings, ${scheme}`);
}
for (const file of ['work.html', 'python.html', 'alone.html', 'job.html', 'roofline.html', 'ncu.html', 'memory.html', 'comparison.html', 'flame.html']) {
  check(`axe finds nothing: ${file}, light and dark`, file, async (page) => {
    await findsNothing(page, 'light');
    const light = await back(page);
    if (await page.locator('#theme').count() > 0) await page.click('#theme');  // dark, without a second load
    else await open(page, file, 'dark');
    expect(await back(page) !== light, 'dark');
    await findsNothing(page, 'dark');
  });
}
check('memory: use over time, and whose the peak is', 'memory.html', async (page) => {
  const section = page.locator('#memory');
  await section.scrollIntoViewIfNeeded();
  expect((await section.locator('h3').textContent()).includes('peak 336.1 MiB'), 'the peak as a title');
  const slabs = section.locator('.memory-bar .slab');
  const widths = await slabs.evaluateAll((all) => all.reduce((sum, one) => sum + parseFloat(one.style.width), 0));
  expect(widths > 95 && widths < 100.01, `the parts fill the peak: ${widths} %`);
  const titles = await slabs.evaluateAll((all) => all.map((one) => one.title));
  expect(titles.some((title) => title.startsWith('optimizer state of Optimizer.step#AdamW.step')), 'hover names the owner');
  expect(titles.some((title) => title.startsWith('activations of aten::')), 'and operators');
  const drawn = await section.locator('canvas').evaluate((canvas) => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.some((value) => value !== 0);
  });
  expect(drawn, 'the curve is drawn');
  const before = await section.locator('[role=status]').textContent();
  await section.locator('canvas').hover({ position: { x: 5, y: 20 } });
  expect(await section.locator('[role=status]').textContent() !== before, 'hover says how much was in use');
  await section.locator('summary').click();
  expect(await section.locator('tbody tr').count() > 5, 'table');
  if (shots) await section.screenshot({ path: join(shots, 'memory.png') });
});
check('roofline: points select', 'roofline.html', async (page) => {
  const chart = page.locator('#roofline');
  await chart.scrollIntoViewIfNeeded();
  expect(await chart.locator('canvas').count() === 1, 'drawn');
  const described = await chart.getAttribute('aria-label');
  expect(described.includes('roof: tensor bf16 / dram'), `the roof is drawn: ${described}`);
  if (shots) await chart.screenshot({ path: join(shots, 'roofline.png') });
  expect((await page.locator('details', { has: page.locator('table', { hasText: 'attainable' }) }).locator('tbody tr').count()) > 0, 'table');
  expect((await page.textContent('#regions')).includes('memory'), 'bound column');
  expect(await page.locator('#regions td[title*="of its peak"]').count() > 0, 'reason on hover');
  await page.locator('#regions tbody tr').nth(1).click();
  expect((await page.textContent('#details')).includes('no complete round'), 'absent metric says why');
  expect(await page.locator('#losses').count() === 1, 'losses on top');
});
check('flame graph: functions of the selected region, Python and native apart', 'python.html', async (page) => {
  const row = (name) => page.locator('#regions tbody tr', { has: page.locator(`th .text:text-is("${name}")`) }).first();
  const counted = async () => Number(/[\d,]+/.exec(await page.textContent('#flame-found'))[0].replace(',', ''));
  const colours = (kind) => page.locator(`.flame .slab.${kind}`).evaluateAll((all) => [...new Set(all.map((s) => Number(/\((\d+), (\d+), (\d+)/.exec(getComputedStyle(s).backgroundColor).slice(1).reduce((warm, c, i) => warm + [1, 0, -1][i] * c, 0))))]);
  await row('work').click();
  const whole = await counted();
  expect((await page.textContent('#cpu h3')) === 'work' && /Python \d+.*waiting/.test(await page.textContent('#cpu-split')), 'split');
  const texts = await page.locator('.flame .slab').allTextContents();
  for (const name of ['red (app.py:15)', 'green (app.py:22)', 'Deep.blue (app.py:27)']) expect(texts.includes(name), name);
  expect((await colours('python')).every((warm) => warm < 0) && (await colours('native')).every((warm) => warm > 0), 'Python is blue, native code is not');
  await page.fill('#flame-search', 'deep.blue');
  const share = parseFloat(await page.textContent('#flame-found'));
  expect(share > 10 && share < 30, `blue has a fifth: ${share}`);
  expect(await page.locator('.flame .hit').count() >= 8, 'hits are marked');
  await page.fill('#flame-search', '');
  await page.locator('.flame .slab', { hasText: 'red (app.py:15)' }).first().click();
  expect(!(await page.locator('.flame .slab').allTextContents()).includes('green (app.py:22)'), 'zoomed in');
  await page.click('#flame-out');
  expect((await page.locator('.flame .slab').allTextContents()).includes('green (app.py:22)'), 'zoomed out');
  const slabs = () => page.locator('.flame .slab').evaluateAll((all) => all.map((s) => [s.textContent, parseFloat(s.style.width), parseFloat(s.style.top)]));
  const roots = (await slabs()).filter(([, , top]) => top === 0);
  equal(roots.map(([text, wide]) => [text, wide]), [['all', 100]], 'one root');
  await page.selectOption('#flame-view', 'sandwich');
  await page.locator('#cpu summary').click();
  await page.locator('#cpu tbody button', { hasText: /^Deep\.blue \(app\.py:27\)$/ }).click();
  const sandwich = await slabs(), middle = sandwich.find(([text, wide]) => text === 'Deep.blue (app.py:27)' && wide === 100);
  expect(middle && sandwich.some(([, , top]) => top < middle[2]) && sandwich.some(([, , top]) => top > middle[2]), 'callers above, callees below');
  expect(sandwich.some(([text, , top]) => text.startsWith('<module>') && top < middle[2]), 'its callers');
  await page.locator('#cpu summary').click();
  await page.selectOption('#flame-view', '');
  await row('a').click();
  const part = await counted();
  expect(part > 0 && part < whole, `${part} of ${whole}`);
  expect(!(await page.locator('.flame .slab').allTextContents()).includes('green (app.py:22)'), 'only what ran in it');
  await page.locator('#cpu summary').click();
  expect(await page.locator('#cpu tbody tr').count() > 3, 'the same as text');
  if (shots) { await row('work').click(); await page.locator('section:has(#cpu)').screenshot({ path: join(shots, 'flame.png') }); }
});
const drawnColours = (page, id) => page.locator(id).evaluate((c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size);
check('ranks: the heat map tells its cells by keyboard and pointer', 'job.html', async (page) => {
  await page.focus('#heat');
  const said = () => page.textContent('#heat-said');
  expect(/^step, rank 0 \(node0, H200\): .* of the median$/.test(await said()), await said());
  for (let i = 0; i < 12 && !(await said()).includes('straggle'); ++i) await page.keyboard.press('ArrowDown');
  const texts = [];
  for (let i = 0; i < 8; ++i) { texts.push(await said()); await page.keyboard.press('ArrowRight'); }
  equal(texts.filter((t) => t.includes('not opened')).length, 7, 'one rank has it');
  await page.keyboard.press('Enter');
  equal(await selectedName(page), ['straggle'], 'selected');
  const box = await page.locator('#heat').boundingBox();
  await page.locator('#heat').hover({ position: { x: box.width - 4, y: 27 } });
  expect(/rank 7/.test(await said()), await said());
  await page.selectOption('#heat-time', 'all');
  expect((await settle(page), await drawnColours(page, '#heat')) > 6, 'drawn');
  await page.focus('#activity');
  for (let i = 0; i < 9; ++i) await page.keyboard.press('ArrowRight');
  expect(/^rank 0 .*: .* % compute, .* transfer, .* waiting$/.test(await page.textContent('#activity-said')), await page.textContent('#activity-said'));
  expect((await page.textContent('#ranks')).includes('AllReduce'), 'collectives');
  expect((await page.textContent('#ranks')).includes('rank 0 to 1'), 'messages');
});
for (const width of [1400, 1024, 390]) {
  check(`ranks: nothing wider than ${width} px`, 'job.html', async (page) => {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide <= width, `${wide} px`);
    if (shots) await page.locator('section:has(#ranks)').screenshot({ path: join(shots, `ranks-${width}.png`) });
  }, { size: { width, height: 900 } });
}
check('ranks: a thousand with fifty regions', 'ranks.html', async (page) => {
  await settle(page);
  const box = await page.locator('#heat').boundingBox(), names = Math.min(220, Math.round(box.width * 0.34));
  await page.locator('#heat').click({ position: { x: names + 137.5 / 1000 * (box.width - names), y: 21.5 * 18 } });
  expect(/^layer 20, rank 137 \(node17, NVIDIA H200\): 800\.0 ms, \+58\.\d % of the median$/.test(await page.textContent('#heat-said')), await page.textContent('#heat-said'));
  await settle(page);
  // The one slow cell is to be seen among the others: orange, and nothing else is.
  const orange = await page.locator('#heat').evaluate((c) => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] > 200 && d[i + 1] < 170 && d[i + 2] < 130) ++n; return n; });
  expect(orange > 0 && orange < 400, `${orange} orange pixels`);
  expect(await drawnColours(page, '#activity') > 6, 'drawn');
  if (shots) await page.locator('section:has(#ranks)').screenshot({ path: join(shots, 'ranks-1000.png') });
});
check('dark: by preference and by the button', 'zoo.html', async (page) => {
  const dark = await back(page);
  await page.click('#theme');
  const light = await back(page);
  expect(dark !== light && dark === 'rgb(18, 21, 27)', `${dark} ${light}`);
}, { scheme: 'dark' });
check('narrow: nothing wider than 360 px', 'work.html', async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide <= 360, `${wide} px`);
  const clipped = await page.locator('.regions .scroll').evaluate((box) => box.scrollWidth - box.clientWidth);
  expect(clipped <= 0, `the table is ${clipped} px too wide`);
  if (shots) await page.screenshot({ path: join(shots, 'narrow.png') });
}, { size: { width: 360, height: 740 } });
check('hostile names are text', 'hostile.html', async (page) => {
  expect((await page.textContent('#regions')).includes('<script>'), 'shown as it is');
  await page.locator('#regions tbody tr').first().click();
  await settle(page);
  expect((await page.locator('.flame .slab').nth(1).textContent()).includes('<script>'), 'a function shown as it is');
  expect(await page.evaluate(() => window.hacked) === undefined, 'ran');
  equal(await page.evaluate(() => document.querySelectorAll('#app script, #app img').length), 0, 'elements of a name');
});
check('big: a hundred thousand events open and zoom', 'big.html', async (page) => {
  await page.locator('#timeline').scrollIntoViewIfNeeded();
  for (let i = 0; i < 12; ++i) await page.click('button[aria-label="zoom in"]');
  await settle(page);
  const drawn = await page.locator('#timeline').evaluate((c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size);
  expect(drawn > 10, `${drawn} colours`);
});
check('comparison: what changed comes first, and is found', 'comparison.html', async (page) => {
  const rows = page.locator('table').first().locator('tbody tr');
  const labels = await rows.locator('td:first-child').allTextContents();
  expect(/layer\d$/.test(labels[0]), labels[0]);
  expect((await rows.first().textContent()).includes('+50.0 %'), await rows.first().textContent());
  await page.fill('#find', 'PREFILL');
  const visible = await rows.evaluateAll((list) => list.filter((row) => !row.hidden).map((row) => row.cells[0].textContent));
  expect(visible.length > 0 && visible.length < labels.length && visible.every((text) => text.includes('prefill')), visible.join());
  expect(labels.some((text) => text.includes('</script><img')), 'a hostile name is text');
  expect(await page.evaluate(() => window.hacked) === undefined, 'ran');
  expect(await page.evaluate(() => document.images.length) === 0, 'elements of a name');
});
check('comparison: a flame graph coloured by growth', 'flame.html', async (page) => {
  const slabs = () => page.locator('.flame .slab').evaluateAll((all) => Object.fromEntries(all.map((s) => [s.textContent, {
    kind: s.classList[1], width: Math.round(parseFloat(s.style.width) * 10) / 10, rgb: /(\d+), (\d+), (\d+)/.exec(getComputedStyle(s).backgroundColor).slice(1).map(Number), title: s.title }])));
  let all = await slabs();
  // B's samples stand for half of A's: 440 of 0.5 ms are twice 110 of 1 ms.
  equal(['main', 'grown', 'shrunk', 'steady', 'fresh'].map((name) => all[name].kind), ['shrank', 'grew', 'shrank', 'same', 'grew'], 'growth');
  equal(['grown', 'shrunk', 'steady', 'fresh'].map((name) => all[name].width), [35.2, 16, 40.8, 8], 'widths');
  expect(all.gone === undefined, 'what is gone has no width');
  expect(all.grown.rgb[0] > all.grown.rgb[2] + 40 && all.shrunk.rgb[2] > all.shrunk.rgb[0] + 40, JSON.stringify(all));
  expect(all.grown.title.includes('A 110.0 ms, B 220.0 ms per instance: +100.0 %'), all.grown.title);
  expect(all.steady.title.includes('may be chance') && all.fresh.title.includes('new'), 'chance, new');
  expect(Object.keys(all).some((name) => name.includes('</script><script>')), 'a hostile name is text');
  expect(await page.evaluate(() => window.hacked) === undefined, 'ran');
  await page.fill('#flame-search', 'grown');
  equal(await page.locator('.flame .hit').count(), 1, 'hits');
  expect((await page.textContent('#flame-found')).startsWith('35.2 %'), await page.textContent('#flame-found'));
  await page.fill('#flame-search', '');
  await page.locator('.flame .slab', { hasText: 'steady' }).first().click();
  expect((await slabs()).grown === undefined && (await slabs()).steady.width === 100, 'zoomed in');
  await page.click('#flame-out');
  await page.selectOption('#flame-width', '0');
  all = await slabs();
  expect(all.gone.kind === 'shrank' && all.gone.title.includes('gone') && all.fresh === undefined, 'as wide as A');
  if (shots) await page.screenshot({ path: join(shots, 'flame-1400.png') });
}, { size: { width: 1400, height: 900 } });
check('comparison: the flame graph fits a narrow screen', 'flame.html', async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide <= 390, `${wide} px`);
  if (shots) await page.screenshot({ path: join(shots, 'flame-390.png'), fullPage: true });
}, { size: { width: 390, height: 844 } });
check('comparison: the answer is large and has the colour of its changes', 'slower.html', async (page) => {
  const style = (place) => page.locator(place).first().evaluate((e) => [getComputedStyle(e).color, parseFloat(getComputedStyle(e).fontSize)]);
  const [color, size] = await style('.answer.more');
  equal(color, (await style('td.more'))[0], 'as its changes in the tables');
  expect(size > 1.3 * (await style('body'))[1], `${size} px`);
}, { reads: true });
check('comparison: dark, and nothing wider than 360 px', 'comparison.html', async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide <= 360, `${wide} px`);
  expect(await back(page) === 'rgb(20, 24, 31)', await back(page));
}, { scheme: 'dark', size: { width: 360, height: 740 } });
if (shots) {
  check('shots', 'work.html', async (page) => {
    await page.screenshot({ path: join(shots, 'light.png'), fullPage: true });
    await page.click('#theme');
    await settle(page);
    await page.screenshot({ path: join(shots, 'dark.png'), fullPage: true });
  });
  check('images of the manual', 'work.html', async (page) => {
    const clip = await page.locator('.icicle').evaluate((box) => box.closest('section').getBoundingClientRect().bottom + scrollY);
    await page.screenshot({ path: join(shots, 'html-report.png'), fullPage: true, clip: { x: 0, y: 0, width: 1200, height: clip + 10 } });
    await page.locator('section:has(#timeline)').screenshot({ path: join(shots, 'html-timeline.png') });
  }, { size: { width: 1200, height: 900 } });
}
await runChecks();
await context.close();
rmSync(profile, { recursive: true, force: true });
process.exit(failed);
