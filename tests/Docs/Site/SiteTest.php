<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Site;

use PHPUnit\Framework\TestCase;
use Spindle\Site\Site;
use Spindle\Site\SiteException;
use Spindle\Tests\Docs\Workplace;
use Spindle\Tests\OwnDirectory;

final class SiteTest extends TestCase
{
    use OwnDirectory;

    /** @var array<string, string> files of which every project has one */
    private const PROJECT = [
        'README.md' => "# Project\n\nIt works.\n",
        'ARCHITECTURE.md' => "# Architecture\n",
        'CHANGELOG.md' => "# Changelog\n",
        'CONTRIBUTING.md' => "# Contributing\n",
        'SECURITY.md' => "# Security\n",
        'examples/aircraft/README.md' => "# Aircraft\n",
        'public-api.txt' => "interface Spindle\\SpindleException extends Throwable\n",
    ];

    public function testEveryLinkOfTheProjectLeadsSomewhere(): void
    {
        $pages = array_column(Site::of(Workplace::project())->pages, 'title', 'path');

        self::assertArrayHasKey('how-to/run-commands.md', $pages);
        self::assertSame('Spindle', $pages['index.md']);
    }

    public function testEveryPictureOfTheProjectIsOneOfTheSite(): void
    {
        $shown = 0;
        foreach (Site::of(Workplace::project())->pages as $page) {
            preg_match_all('~<img [^>]*src="([^"]+)"~', $page->markdown, $pictures);
            self::assertSame([], preg_grep('~^/images/~', $pictures[1], \PREG_GREP_INVERT), $page->path);
            $shown += \count($pictures[1]);
        }

        self::assertGreaterThan(8, $shown);
    }

    public function testLinksBetweenFilesBecomeLinksBetweenPages(): void
    {
        $this->project([
            'docs/how-to/a.md' => "# A\n\n[b](../b/README.md#some-part), [r](../../README.md), "
                . '[c](../../examples/c.php), [w](https://example.com/x.md), [here](#a), '
                . "`SpindleException`, ![p](../p.svg)\n",
            'docs/b/README.md' => "# B\n\n## Some part\n",
            'docs/p.svg' => '<svg/>',
            'examples/c.php' => "<?php\n",
        ]);

        $pages = array_column(Site::of($this->path())->pages, 'markdown', 'path');

        self::assertSame(
            "# A\n\n[b](/b/index.md#some-part), [r](/index.md), [c](/project/examples/c-php.md),"
                . ' [w](https://example.com/x.md), [here](/how-to/a.md#a),'
                . " [`SpindleException`](/reference/api/SpindleException.md), ![p](/p.svg)\n",
            $pages['how-to/a.md'],
        );
        self::assertSame("# examples/c.php\n\n````php\n<?php\n````\n", $pages['project/examples/c-php.md']);
    }

    public function testEachLinkThatLeadsNowhereIsReported(): void
    {
        $this->project([
            'docs/a.md' => "# A\n\n[b](b.md), [c](../CHANGELOG.md#x), [out](../../x.md), [folder](../examples)\n",
        ]);

        $this->expectException(SiteException::class);
        $this->expectExceptionMessage(
            "These links lead nowhere:\n  docs/a.md: b.md\n  docs/a.md: ../CHANGELOG.md#x\n"
                . "  docs/a.md: ../../x.md\n  docs/a.md: ../examples",
        );

        Site::of($this->path());
    }

    public function testTheFolderContainsThePagesAndNothingElse(): void
    {
        $this->project([
            'docs/how-to/a.md' => "---\norder: 2\n---\n# A\n\nDoes this. And that.\n",
            'docs/how-to/z.md' => "---\ntitle: How to end\norder: 1\n---\n# Z\n",
        ]);
        $folder = $this->path('site');
        mkdir("{$folder}/old", recursive: true);
        touch("{$folder}/old/page.md");

        Site::of($this->path())->write($folder);

        self::assertFileDoesNotExist("{$folder}/old/page.md");
        self::assertStringEqualsFile("{$folder}/how-to/a.md", "# A\n\nDoes this. And that.\n");
        $navigation = (string) file_get_contents("{$folder}/navigation.json");
        self::assertStringStartsWith('{"nav":[{"text":"How-to","link":"/how-to/z"},', $navigation);
        self::assertStringContainsString(
            '"/":[{"text":"How-to","collapsed":false,"items":['
                . '{"text":"End","link":"/how-to/z"},{"text":"A","link":"/how-to/a"}]},',
            $navigation,
        );
        self::assertStringContainsString(
            "# Project\n\n> It works.\n\n## How-to\n\n- [A](/how-to/a.md): Does this.\n- [How to end](/how-to/z.md)\n",
            (string) file_get_contents("{$folder}/public/llms.txt"),
        );
    }

    /** @param array<string, string> $files contents by path */
    private function project(array $files): void
    {
        foreach ([...self::PROJECT, ...$files] as $path => $content) {
            $file = $this->path($path);
            is_dir(\dirname($file)) || mkdir(\dirname($file), recursive: true);
            file_put_contents($file, $content);
        }
    }
}
