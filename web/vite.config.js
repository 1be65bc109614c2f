import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One file, no requests: script and style are inlined.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: 'es2021', outDir: 'dist', chunkSizeWarningLimit: 2000, modulePreload: false },
});
