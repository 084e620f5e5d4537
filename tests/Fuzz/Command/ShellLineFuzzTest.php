<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Spindle\Tests\ShellComparison;
use Spindle\Tests\TidyTestCase;

final class ShellLineFuzzTest extends TidyTestCase
{
    use OwnDirectory;

    private const FIRST = [
        '/bin/echo', 'echo', './arguments', 'arguments', "'./arguments'", '"./argu"ments', './no-such', 'nosuch',
        './data', 'folder', 'true', 'if', 'cd', 'exec', 'A=b', 'A=', '!', '{', '(', ':', 'test', 'command', '-', '1',
        '%', '',
    ];
    /** Pieces of lines. None makes commands run concurrently, because the order of messages would be random. */
    private const PIECES = [
        ' ', ' ', ' ', '  ', "\t", 'a', 'b', 'word', '-x', '1', '.', '/', '=', ',', ':', '@', '%', '+', '_', '-', '"',
        '"', "'", "'", '""', "''", '"a b"', "'a b'", '"$A"', "'\$A'",
        '$A', '${A}', '`', '\\', '\\\\', '~', '*', '?', '[', ']', '{', '}', '#', '!', '^', ';', '(', ')', '<', "\n",
        "\r", "\v", "\x01", "\x7F", "\xC3\xA9", "\xFF", ' && ', 'data', './data', 'folder/*', 'if', 'then', 'fi',
        'done',
    ];

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testALineOfAnyWordsHasTheShellsOutcome(StartMethod $start): void
    {
        mt_srand(Scale::seed());
        mkdir($this->path('folder'));
        $this->file('data', "data\n");
        $this->script('arguments', 'for a do printf "<%s>" "$a"; done; exit $#');
        $pool = new CommandPool(2, 0, new CommandPoolOptions(startMethod: $start));
        foreach (Scale::rounds(0.5) as $_) {
            $lines = [];
            for ($i = 0; $i < 50; ++$i) {
                $lines[] = self::line();
            }
            ShellComparison::assertSame($pool, $lines, $this->path(), ['A' => 'x y']);
        }
    }

    private static function line(): string
    {
        // Most random lines need a shell. Every other line is made of pieces that need none.
        $count = mt_rand(0, 1) === 0 ? 30 : \count(self::PIECES);
        $line = self::FIRST[mt_rand(0, \count(self::FIRST) - 1)];
        for ($i = mt_rand(0, 8); $i > 0; --$i) {
            $line .= self::PIECES[mt_rand(0, $count - 1)];
        }

        return $line;
    }
}
