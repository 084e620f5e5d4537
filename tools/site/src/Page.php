<?php

declare(strict_types=1);

namespace Spindle\Site;

/** A page of the site. */
final readonly class Page
{
    /**
     * @param string $path     path in the site, such as "how-to/run-commands.md"
     * @param string $markdown text with links to paths of the site, which begin with a slash
     * @param string $title    name in the navigation
     * @param string $order    position among the pages of the folder
     */
    public function __construct(
        public string $path,
        public string $markdown,
        public string $title,
        public string $order = '',
    ) {}

    public function folder(): string
    {
        return \dirname($this->path);
    }

    /** Returns the first folder of the path, or "." for a page in none. */
    public function topFolder(): string
    {
        return explode('/', $this->folder())[0];
    }

    public function isIndex(): bool
    {
        return basename($this->path) === 'index.md';
    }
}
