<?php

declare(strict_types=1);

namespace Spindle\Site;

/**
 * The pages that are files of the project: README.md, docs/, and every other file to which one of these links.
 *
 * A link between files becomes one between pages of the site. So the same Markdown works in a checkout and on the site.
 */
final class ProjectPages
{
    /** Paths in the site of files outside of docs/. */
    private const PATHS = [
        'README.md' => 'index.md',
        'ARCHITECTURE.md' => 'architecture/index.md',
        'CHANGELOG.md' => 'changelog.md',
        'CONTRIBUTING.md' => 'contributing/index.md',
        'SECURITY.md' => 'security.md',
        'examples/aircraft/README.md' => 'examples/aircraft.md',
    ];

    private const IMAGES = ['svg', 'png', 'jpg', 'webp', 'gif'];

    /** @var list<string> files that are not read yet */
    private array $waiting;

    /** @var array<string, string> paths in the site by file of the project */
    private array $paths = [];

    /** @var array<string, list<string>> anchors of a file */
    private array $anchors = [];

    /** @var array<string, string> files of the project by path in the site */
    private array $images = [];

    /** @var list<string> */
    private array $broken = [];

    /** @param \Closure(string): ?string $linkOfCode returns the target for inline code, such as `CommandPool` */
    public function __construct(private readonly string $project, private readonly \Closure $linkOfCode)
    {
        $this->waiting = [...array_keys(self::PATHS), ...self::pagesIn($project, 'docs')];
    }

    /**
     * @return list<Page>
     *
     * @throws SiteException when a link leads nowhere
     */
    public function all(): array
    {
        $pages = [];
        foreach ($this->waiting as $file) {
            $this->paths[$file] = self::pathOf($file);
        }
        while (($file = array_shift($this->waiting)) !== null) {
            $pages[] = str_ends_with($file, '.md') ? $this->page($file) : $this->source($file);
        }
        if ($this->broken !== []) {
            throw SiteException::brokenLinks($this->broken);
        }

        return $pages;
    }

    /** @return array<string, string> files of the project by path in the site, after a call of {@see all()} */
    public function images(): array
    {
        return $this->images;
    }

    private function page(string $file): Page
    {
        $markdown = new Markdown((string) file_get_contents("{$this->project}/{$file}"));
        $linked = $markdown->withLinks(fn(string $link): string => $this->target($file, $link));

        return new Page(
            $this->paths[$file],
            (new Markdown(ThemedPictures::in($linked)))->withLinkedCode($this->linkOfCode),
            $markdown->fields['title'] ?? $markdown->title(),
            ($markdown->fields['order'] ?? '') . basename($file),
        );
    }

    /** Returns a page with the text of a file that is not Markdown. */
    private function source(string $file): Page
    {
        $text = rtrim((string) file_get_contents("{$this->project}/{$file}"));
        $language = pathinfo($file, PATHINFO_EXTENSION);

        return new Page($this->paths[$file], "# {$file}\n\n````{$language}\n{$text}\n````\n", $file);
    }

    private function target(string $file, string $link): string
    {
        if (preg_match('~^[a-z]+:~', $link) === 1) {
            return $link;
        }
        [$path, $anchor] = explode('#', $link, 2) + [1 => ''];
        $found = $path === '' ? $file : $this->found($file, $path);
        if ($found === null || ($anchor !== '' && !\in_array($anchor, $this->anchorsOf($found), true))) {
            $this->broken[] = "{$file}: {$link}";

            return $link;
        }
        if (\in_array(pathinfo($found, PATHINFO_EXTENSION), self::IMAGES, true)) {
            $this->images[self::pathOf($found)] = $found;

            return '/' . self::pathOf($found);
        }
        if (!isset($this->paths[$found])) {
            $this->paths[$found] = self::pathOf($found);
            $this->waiting[] = $found;
        }

        return "/{$this->paths[$found]}" . ($anchor === '' ? '' : "#{$anchor}");
    }

    /** Returns the file of the project that a relative path names, or the first page of the folder that it names. */
    private function found(string $file, string $path): ?string
    {
        $resolved = realpath("{$this->project}/" . \dirname($file) . "/{$path}");
        if ($resolved !== false && is_dir($resolved)) {
            $resolved = realpath(is_file("{$resolved}/index.md") ? "{$resolved}/index.md" : "{$resolved}/README.md");
        }

        return $resolved !== false && str_starts_with($resolved, "{$this->project}/")
            ? substr($resolved, \strlen($this->project) + 1)
            : null;
    }

    /** @return list<string> */
    private function anchorsOf(string $file): array
    {
        return $this->anchors[$file] ??= array_column(
            (new Markdown((string) file_get_contents("{$this->project}/{$file}")))->headings(),
            'slug',
        );
    }

    private static function pathOf(string $file): string
    {
        $isImage = \in_array(pathinfo($file, PATHINFO_EXTENSION), self::IMAGES, true);

        return match (true) {
            isset(self::PATHS[$file]) => self::PATHS[$file],
            $file === 'docs/README.md' => 'contents.md',
            str_starts_with($file, 'docs/') => (string) preg_replace(
                ['~^docs/~', '~(^|/)README\.md$~'],
                ['', '$1index.md'],
                $file,
            ),
            $isImage => $file,
            str_ends_with($file, '.md') => "project/{$file}",
            default => 'project/' . strtr($file, '.', '-') . '.md',
        };
    }

    /** @return list<string> sorted paths relative to the project */
    private static function pagesIn(string $project, string $folder): array
    {
        $tree = new \RecursiveDirectoryIterator("{$project}/{$folder}", \FilesystemIterator::SKIP_DOTS);
        $pages = [];
        foreach (new \RecursiveIteratorIterator($tree) as $file) {
            \assert($file instanceof \SplFileInfo);
            if ($file->getExtension() === 'md') {
                $pages[] = substr($file->getPathname(), \strlen($project) + 1);
            }
        }
        sort($pages);

        return $pages;
    }
}
