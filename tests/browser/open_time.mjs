// How long a report takes to open: from navigation until every part is drawn, best of five. Prints one line of JSON.
// Usage: node open_time.mjs PLAYWRIGHT CHROMIUM FILE
import { createRequire } from 'node:module';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [playwright, executablePath, file] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(playwright);
const profile = mkdtempSync(join(tmpdir(), 'rangescope-chromium-'));
const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, viewport: { width: 1280, height: 900 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const times = [], zooms = [];
let heap = 0;
for (let i = 0; i < 5; ++i) {
  const page = await context.newPage();
  const begin = performance.now();
  await page.goto(`file://${resolve(file)}`);
  await page.waitForSelector('html[data-ready="1"]');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  times.push(performance.now() - begin);
  zooms.push(await page.evaluate(async () => {
    let worst = 0;
    for (let k = 0; k < 16; ++k) {
      document.querySelector('button[aria-label="zoom in"]').click();
      const from = performance.now();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      worst = Math.max(worst, performance.now() - from);
    }
    return worst;
  }));
  heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  await page.close();
}
await context.close();
rmSync(profile, { recursive: true, force: true });
console.log(JSON.stringify({ file_bytes: statSync(file).size, open_ms: Math.round(Math.min(...times)), slowest_zoom_step_ms: Math.round(Math.min(...zooms)), heap_bytes: heap }));
