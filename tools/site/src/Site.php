<?php

declare(strict_types=1);

namespace Spindle\Site;

use Spindle\Site\Reference\ApiReference;

/** All pages of the documentation site as Markdown for VitePress. */
final readonly class Site
{
    /** Folder whose files VitePress copies as they are. */
    private const PUBLIC = 'public';

    /**
     * @param list<Page>            $pages
     * @param array<string, string> $images files of the project by path in the site
     */
    private function __construct(private string $project, public array $pages, private array $images) {}

    /** @throws SiteException when a link of a page leads nowhere */
    public static function of(string $project): self
    {
        $reference = new ApiReference((string) file_get_contents("{$project}/public-api.txt"));
        $files = new ProjectPages($project, $reference->names->link(...));
        $pages = [...$files->all(), ...$reference->pages()];

        return new self($project, $pages, $files->images());
    }

    /** Makes a folder contain the pages, the navigation in navigation.json, and nothing else. */
    public function write(string $folder): void
    {
        $files = $this->files();
        foreach ($files as $path => $content) {
            is_dir(\dirname("{$folder}/{$path}")) || mkdir(\dirname("{$folder}/{$path}"), recursive: true);
            // An unchanged file keeps its time, so that a running server does not load it again.
            if (!is_file("{$folder}/{$path}") || file_get_contents("{$folder}/{$path}") !== $content) {
                file_put_contents("{$folder}/{$path}", $content);
            }
        }
        $tree = new \RecursiveDirectoryIterator($folder, \FilesystemIterator::SKIP_DOTS);
        foreach (new \RecursiveIteratorIterator($tree) as $file) {
            \assert($file instanceof \SplFileInfo);
            if (!isset($files[substr($file->getPathname(), \strlen($folder) + 1)])) {
                unlink($file->getPathname());
            }
        }
    }

    /** @return array<string, string> contents by path */
    private function files(): array
    {
        $files = [
            'navigation.json' => json_encode(
                Sidebar::of($this->pages),
                \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES,
            ),
            self::PUBLIC . '/llms.txt' => Llms::list($this->pages),
            self::PUBLIC . '/llms-full.txt' => Llms::full($this->pages),
        ];
        foreach ($this->pages as $page) {
            $files[$page->path] = $files[self::PUBLIC . "/{$page->path}"] = $page->markdown;
        }
        foreach ($this->images as $path => $file) {
            $files[self::PUBLIC . "/{$path}"] = (string) file_get_contents("{$this->project}/{$file}");
        }

        return $files;
    }
}
