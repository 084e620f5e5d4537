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
    /** Titles of folders, in their order. Other folders follow, with their name as the title. */
    private const TITLES = [
        'tutorials' => 'Tutorials',
        'how-to' => 'How-to',
        'understand' => 'Understand',
        'explanation' => 'Understand',
        'compare' => 'Compare and move',
        'reference' => 'Reference',
        'examples' => 'Examples',
        'architecture' => 'Architecture',
        'decisions' => 'Decisions',
        'contributing' => 'Contributing',
        'project' => 'Files of the project',
        '.' => 'Project',
    ];

    /** Folders whose group is closed until the reader opens it. */
    private const CLOSED = ['architecture', 'decisions', 'contributing', 'project'];

    private function __construct() {}

    /**
     * Returns the navigation in the form that VitePress reads.
     *
     * @param list<Page> $pages
     * @return array<string, list<Item|Group>> by the beginning of the paths beside which it is shown
     */
    public static function of(array $pages): array
    {
        $classes = array_filter(
            $pages,
            static fn(Page $page): bool => str_starts_with($page->path, ClassNames::FOLDER . '/'),
        );

        return [
            '/' . ClassNames::FOLDER . '/' => self::classes($classes),
            '/' => self::folders(array_diff_key($pages, $classes)),
        ];
    }

    /** @return int position of a page's group */
    public static function position(Page $page): int
    {
        $position = array_search($page->topFolder(), array_keys(self::TITLES), true);

        return $position === false ? \count(self::TITLES) : $position;
    }

    public static function title(Page $page): string
    {
        return self::TITLES[$page->topFolder()] ?? ucfirst($page->topFolder());
    }

    /**
     * @param array<Page> $pages
     * @return list<Group>
     */
    private static function folders(array $pages): array
    {
        usort($pages, static fn(Page $one, Page $other): int => self::position($one) <=> self::position($other));
        $groups = [];
        foreach ($pages as $page) {
            $groups[self::title($page)][] = $page;
        }
        $groups['Reference'][] = new Page(ClassNames::FOLDER . '/index.md', '', 'Classes', 'classes');

        return array_map(
            static fn(string $title): array => [
                'text' => $title,
                'collapsed' => \in_array($groups[$title][0]->topFolder(), self::CLOSED, true),
                'items' => self::items($groups[$title]),
            ],
            array_keys($groups),
        );
    }

    /**
     * @param array<Page> $pages
     * @return list<Group> a group for each namespace
     */
    private static function classes(array $pages): array
    {
        $groups = [];
        foreach ($pages as $page) {
            $groups[$page->folder()][] = $page;
        }
        ksort($groups);

        return array_map(
            static fn(string $folder): array => [
                'text' => 'Spindle' . strtr(substr($folder, \strlen(ClassNames::FOLDER)), '/', '\\'),
                'collapsed' => false,
                'items' => self::items($groups[$folder]),
            ],
            array_keys($groups),
        );
    }

    /**
     * @param array<Page> $pages
     * @return list<Item> the index first
     */
    private static function items(array $pages): array
    {
        usort(
            $pages,
            static fn(Page $one, Page $other): int
                => [!$one->isIndex(), $one->order] <=> [!$other->isIndex(), $other->order],
        );

        return array_map(static fn(Page $page): array => [
            'text' => $page->title,
            'link' => '/' . preg_replace(['/index\.md$/', '/\.md$/'], '', $page->path),
        ], $pages);
    }
}
