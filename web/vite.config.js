import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One file, no requests: script and style are inlined.
export default defineConfig(({ mode }) => ({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: 'es2021', outDir: 'dist', chunkSizeWarningLimit: 2000, modulePreload: false, emptyOutDir: mode !== 'compare',
    rollupOptions: { input: mode === 'compare' ? 'compare.html' : 'index.html' } },
}));
