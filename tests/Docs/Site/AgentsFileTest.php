<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Site;

use PHPUnit\Framework\TestCase;
use Spindle\Site\Markdown;
use Spindle\Tests\Docs\Workplace;

/** AGENTS.md, which tells programs that write code how to use and how to change Spindle. */
final class AgentsFileTest extends TestCase
{
    private string $text;

    protected function setUp(): void
    {
        $this->text = (string) file_get_contents(Workplace::project() . '/AGENTS.md');
    }

    public function testEveryPathAndLinkLeadsToAFile(): void
    {
        preg_match_all('~`(?:\S+ )?((?:docs|tools|tests)/[\w./-]+|[\w-]+\.(?:md|txt))(?: \w+)?`~', $this->text, $paths);
        (new Markdown($this->text))->withLinks(static function (string $link) use (&$paths): string {
            $paths[1][] = explode('#', $link)[0];

            return $link;
        });

        $built = ['llms.txt', 'llms-full.txt'];
        self::assertGreaterThan(10, \count($paths[1]));
        foreach (array_diff($paths[1], $built) as $path) {
            self::assertFileExists(Workplace::project() . "/{$path}");
        }
    }

    public function testEveryComposerScriptExists(): void
    {
        $composer = json_decode(
            (string) file_get_contents(Workplace::project() . '/composer.json'),
            true,
            flags: \JSON_THROW_ON_ERROR,
        );
        self::assertIsArray($composer);
        self::assertIsArray($composer['scripts']);
        preg_match_all('/`composer (\w+)`/', $this->text, $scripts);

        self::assertContains('check', $scripts[1]);
        self::assertSame([], array_diff($scripts[1], [...array_keys($composer['scripts']), 'require']));
    }
}
