import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'

const pages = new URL('../pages/', import.meta.url).pathname
const project = process.env.SPINDLE_PROJECT

// Writes the pages anew when a file of the project changes while the site is served.
const rewrites = {
    name: 'spindle-pages',
    configureServer({ watcher }) {
        watcher.add(['docs', 'src', 'README.md', 'CHANGELOG.md'].map((name) => `${project}/${name}`))
        watcher.on('change', (file) => {
            if (/\.(md|php)$/.test(file) && !file.startsWith(pages)) {
                try {
                    execFileSync('php', [`${project}/tools/site/build.php`, pages.slice(0, -1)], { stdio: 'inherit' })
                } catch {
                    // build.php has printed the broken links.
                }
            }
        })
    },
}

// The anchors of GitHub, as in Markdown::slug(), so that a link works in a checkout and here.
const slugify = (text: string) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{Pc}\- ]/gu, '').replace(/ /g, '-')

export default defineConfig({
    title: 'Spindle',
    description: 'A concurrency toolkit for PHP',
    srcDir: pages,
    srcExclude: ['public/**'],
    base: process.env.SPINDLE_DOCS_BASE ?? '/',
    outDir: process.env.SPINDLE_DOCS_OUTPUT,
    // Also the languages of examples that Shiki does not know.
    markdown: { anchor: { slugify }, headers: { slugify }, languageAlias: { console: 'shellsession', '': 'txt' } },
    // Addresses of the examples, which nothing serves here.
    ignoreDeadLinks: 'localhostLinks',
    vite: { plugins: [rewrites] },
    themeConfig: {
        ...JSON.parse(readFileSync(`${pages}navigation.json`, 'utf8')),
        outline: [2, 3],
        search: { provider: 'local' },
    },
})
