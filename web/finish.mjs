// After vite: stamps the page with the hash of its sources and puts it where the program embeds it.
// The check (tests/browser/sources.py) computes the same hash: sha256 over "path\0content\0" of every source, sorted.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

const sources = ['compare.html', 'finish.mjs', 'index.html', 'package-lock.json', 'package.json', 'tsconfig.json', 'vite.config.js',
  ...readdirSync('src').map((name) => `src/${name}`)].sort();
const hash = createHash('sha256');
for (const path of sources) hash.update(path).update('\0').update(readFileSync(path)).update('\0');
const page = readFileSync('dist/index.html', 'utf8');
for (const place of ['__RANGESCOPE_SOURCES__', '__RANGESCOPE_DATA__']) {
  if (page.split(place).length !== 2) throw new Error(`${place} must stand once in the page`);
}
if (/(?:src|href)="(?!data:)/.test(page.replace(/<script type="module"[^]*?<\/script>/, ''))) throw new Error('the page refers to other files');
writeFileSync('../src/report/formats/html/template.html', page.replace('__RANGESCOPE_SOURCES__', () => hash.digest('hex')));

// Of the comparison's page only style and script: src/report/compare/html.cpp writes the rest.
const compare = readFileSync('dist/compare.html', 'utf8');
const [style, script] = [/<style[^>]*>([^]*?)<\/style>/, /<script type="module"[^>]*>([^]*?)<\/script>/].map((part) => part.exec(compare)?.[1]);
if (!style || !script) throw new Error('dist/compare.html lacks its style or script');
writeFileSync('../src/report/compare/flame.html', `<style>${style.trim()}</style>\n<script type="module">${script.trim()}</script>\n`);
