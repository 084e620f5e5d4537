<?php

declare(strict_types=1);

namespace Spindle\Site;

use Spindle\Site\Reference\ClassNames;

/**
 * The navigation of the site: a group for each folder, and another navigation beside the pages about classes.
 *
 * @phpstan-type Item array{text: string, link: string}
 * @phpstan-type Group array{text: string, collapsed: bool, items: list<Item>}
 */
final class Sidebar
{
    private const BENCHMARKS = 'Benchmarks';
    private const REFERENCE = 'Reference';

    /** Titles of groups in their order, by folder. Other folders follow, with their name as the title. */
    private const TITLES = [
        'tutorials' => 'Tutorials',
        'how-to' => 'How-to',
        'understand' => 'Understand',
        'explanation' => 'Understand',
        'compare' => 'Compare and move',
        'reference' => self::REFERENCE,
        'benchmarks' => self::BENCHMARKS,
        'examples' => 'Examples',
        'architecture' => 'Architecture',
        'decisions' => 'Decisions',
        'contributing' => 'Contributing',
        'project' => 'Files of the project',
        '.' => 'Project',
    ];

    /** Titles of the groups of pages that are not in the group of their folder. */
    private const ELSEWHERE = [
        'explanation/benchmarks.md' => self::BENCHMARKS,
        'explanation/measuring.md' => self::BENCHMARKS,
        'explanation/tests.md' => 'Contributing',
        'examples/aircraft.md' => 'Understand',
    ];

    /** Pages that are the first of their group. */
    private const FIRST = ['tutorials/convert-files.md', 'how-to/install.md', 'explanation/fibers.md'];

    /** Groups that are closed until the reader opens them. */
    private const CLOSED = ['Architecture', 'Decisions', 'Contributing', 'Files of the project'];

    /** Groups whose first page is linked at the top of the site. */
    private const TOP = ['Tutorials', 'How-to', 'Understand', 'Compare and move', self::REFERENCE, self::BENCHMARKS];

    /**
     * Returns the navigation in the form that VitePress reads.
     *
     * @param list<Page> $pages
     * @return array{nav: list<Item>, sidebar: array<string, list<Group>>} the sidebar by the beginning of the paths
     *     beside which it is shown
     */
    public static function of(array $pages): array
    {
        $classes = array_filter(
            $pages,
            static fn(Page $page): bool => str_starts_with($page->path, ClassNames::FOLDER . '/'),
        );
        $groups = self::groups(array_diff_key($pages, $classes));
        $top = array_filter($groups, static fn(array $group): bool => \in_array($group['text'], self::TOP, true));

        return [
            'nav' => array_map(
                static fn(array $group): array => ['text' => $group['text'], 'link' => $group['items'][0]['link']],
                array_values($top),
            ),
            'sidebar' => ['/' . ClassNames::FOLDER . '/' => self::namespaces($classes), '/' => $groups],
        ];
    }

    /** Returns the title of a page's group. */
    public static function title(Page $page): string
    {
        return self::ELSEWHERE[$page->path] ?? self::TITLES[$page->topFolder()] ?? ucfirst($page->topFolder());
    }

    /** Returns the position of a page's group. */
    public static function position(Page $page): int
    {
        $position = array_search(self::title($page), array_values(self::TITLES), true);

        return $position === false ? \count(self::TITLES) : $position;
    }

    /**
     * @param array<Page> $pages
     * @return list<Group>
     */
    private static function groups(array $pages): array
    {
        $pages[] = new Page(ClassNames::FOLDER . '/index.md', '', 'Classes', 'classes');
        usort($pages, static fn(Page $one, Page $other): int => self::position($one) <=> self::position($other));
        $groups = [];
        foreach ($pages as $page) {
            $groups[self::title($page)][] = $page;
        }

        return self::listed($groups);
    }

    /**
     * @param array<Page> $pages
     * @return list<Group> a group for each namespace
     */
    private static function namespaces(array $pages): array
    {
        $groups = [];
        foreach ($pages as $page) {
            $groups[ClassNames::namespaceOf($page->folder())][] = $page;
        }
        ksort($groups);

        return self::listed($groups);
    }

    /**
     * @param array<string, non-empty-list<Page>> $groups by title
     * @return list<Group>
     */
    private static function listed(array $groups): array
    {
        return array_map(
            static fn(string $title, array $pages): array => [
                'text' => $title,
                'collapsed' => \in_array($title, self::CLOSED, true),
                'items' => self::items($pages),
            ],
            array_keys($groups),
            $groups,
        );
    }

    /**
     * @param list<Page> $pages
     * @return list<Item> in the order of the field `order` and the names of files
     */
    private static function items(array $pages): array
    {
        $position = static fn(Page $page): array => [
            !$page->isIndex(),
            !\in_array($page->path, self::FIRST, true),
            $page->order,
        ];
        usort($pages, static fn(Page $one, Page $other): int => $position($one) <=> $position($other));

        return array_map(static fn(Page $page): array => [
            // The title of the group begins with the same words.
            'text' => ucfirst((string) preg_replace('/^How to /', '', $page->title)),
            'link' => '/' . preg_replace(['/index\.md$/', '/\.md$/'], '', $page->path),
        ], $pages);
    }
}
