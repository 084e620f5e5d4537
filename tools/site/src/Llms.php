<?php

declare(strict_types=1);

namespace Spindle\Site;

use Spindle\Site\Reference\ClassNames;

/** The files for language models: a list of all pages with their first sentences, and all pages in one file. */
final class Llms
{
    /**
     * Returns llms.txt, in the form of https://llmstxt.org.
     *
     * @param list<Page> $pages
     */
    public static function list(array $pages): string
    {
        $readme = new Markdown(self::index($pages)->markdown);
        $text = "# {$readme->title()}\n\n> {$readme->introduction()}\n";
        $group = '';
        foreach (self::listed($pages) as $page) {
            if ($group !== Sidebar::title($page)) {
                $group = Sidebar::title($page);
                $text .= "\n## {$group}\n\n";
            }
            $text .= self::line($page) . "\n";
        }

        return $text . "\n## Optional\n\n- [All pages in one file](/llms-full.txt)\n";
    }

    /** @param list<Page> $pages */
    public static function full(array $pages): string
    {
        return implode("\n", array_map(
            static fn(Page $page): string => "<!-- /{$page->path} -->\n\n{$page->markdown}",
            $pages,
        ));
    }

    /**
     * @param list<Page> $pages
     * @return list<Page> without the pages about single classes, in the order of the navigation
     */
    private static function listed(array $pages): array
    {
        $overview = ClassNames::FOLDER . '/index.md';
        $listed = array_filter(
            $pages,
            static fn(Page $page): bool
                => $page->path === $overview || !str_starts_with($page->path, ClassNames::FOLDER . '/'),
        );
        usort(
            $listed,
            static fn(Page $one, Page $other): int
                => [Sidebar::position($one), $one->path] <=> [Sidebar::position($other), $other->path],
        );

        return $listed;
    }

    private static function line(Page $page): string
    {
        $introduction = (new Markdown($page->markdown))->introduction();
        preg_match('/^.+?[.:](?=\s|$)/s', $introduction, $match);

        return rtrim("- [{$page->title}](/{$page->path}): " . rtrim($match[0] ?? $introduction, ':'), ': ');
    }

    /** @param list<Page> $pages */
    private static function index(array $pages): Page
    {
        foreach ($pages as $page) {
            if ($page->path === 'index.md') {
                return $page;
            }
        }

        throw new \LogicException('The site has no index.md');
    }
}
