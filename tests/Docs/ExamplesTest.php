<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class ExamplesTest extends TestCase
{
    private const EXAMPLES = __DIR__ . '/../../examples';

    private Workplace $workplace;

    protected function setUp(): void
    {
        $this->workplace = new Workplace();
    }

    protected function tearDown(): void
    {
        $this->workplace->remove();
    }

    /** @return iterable<string, array{string}> */
    public static function examples(): iterable
    {
        foreach (array_diff((array) glob(self::EXAMPLES . '/*.php'), [self::EXAMPLES . '/autoload.php']) as $file) {
            yield basename((string) $file) => [(string) $file];
        }
    }

    public function testNoExampleUsesAClassThatMayChangeAtAnyTime(): void
    {
        $using = [];
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::EXAMPLES));
        /** @var \SplFileInfo $file */
        foreach ($files as $file) {
            $code = $file->getExtension() === 'php' ? (string) file_get_contents($file->getPathname()) : '';
            if (preg_match('/Spindle\\\\(\w+\\\\)*Internal\b/', $code) === 1) {
                $using[] = $file->getPathname();
            }
        }

        self::assertSame([], $using);
    }

    /** Compares the output of NAME.php with NAME.out, if that exists; {@see ExpectedOutput} describes its wildcards. */
    #[DataProvider('examples')]
    public function testAnExampleRuns(string $file): void
    {
        $process = $this->workplace->script($file);

        self::assertSame(0, $process->getExitCode(), $process->getOutput() . $process->getErrorOutput());
        self::assertDoesNotMatchRegularExpression(
            '/^(PHP )?(Warning|Notice|Deprecated): /m',
            $process->getErrorOutput(),
        );
        $expected = (string) preg_replace('/\.php$/', '.out', $file);
        if (is_file($expected)) {
            ExpectedOutput::assertMatches(
                (string) file_get_contents($expected),
                $process->getOutput(),
                'Standard output',
            );
        }
    }
}
