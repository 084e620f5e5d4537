<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Aircraft;

use Aircraft\InvalidImportException;
use Aircraft\Transfer;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\PostgresLink;
use Spindle\Tests\CatchesThrown;

final class TransferTest extends TestCase
{
    use CatchesThrown;

    private const HEAD = "number,title,serial_number,assembly_date\n";

    #[TestWith([self::HEAD . "A-1,\\.,1,\n\\.\nA-2,b,1,\n", 3])]
    #[TestWith([self::HEAD . "A-1,a,1,\r\n\\.\r\nA-2,b,1,\r\n", 3])]
    #[TestWith([self::HEAD . '\\.', 2])]
    #[TestWith(["\\.\n" . self::HEAD, 1])]
    #[TestWith(["\u{feff}\\.\n" . self::HEAD, 1])]
    public function testALineThatWouldEndTheCopyIsRefusedHoweverTheFileComes(string $csv, int $line): void
    {
        foreach ([
            ...array_map(
                static fn(int $at): array => [substr($csv, 0, $at), substr($csv, $at)],
                range(0, \strlen($csv)),
            ),
            str_split($csv),
        ] as $pieces) {
            $refusal = self::thrown(InvalidImportException::class, fn() => $this->sent($pieces));
            self::assertSame(
                [$line, "Line {$line}: a line must not be \\. alone, the end of a COPY; nothing was added"],
                [$refusal->lineOfFile, $refusal->getMessage()],
            );
        }
    }

    #[TestWith([''])]
    #[TestWith(['a'])]
    #[TestWith([self::HEAD . "A-1,\\.,\\.,\nA-2,a\\.\n.\\.,1,\n"])]
    #[TestWith(["\u{feff}" . self::HEAD])]
    #[TestWith([self::HEAD . "A-1,\u{feff},1,\n"])]
    public function testAllElseIsSentAsItIsWithoutAByteOrderMark(string $csv): void
    {
        $wanted = str_starts_with($csv, "\u{feff}") ? substr($csv, 3) : $csv;
        foreach ([
            ...array_map(
                static fn(int $at): array => [substr($csv, 0, $at), substr($csv, $at)],
                range(0, \strlen($csv)),
            ),
            str_split($csv),
        ] as $pieces) {
            self::assertSame($wanted, $this->sent($pieces));
        }
    }

    /** @param iterable<string> $pieces */
    private function sent(iterable $pieces): string
    {
        $sent = '';
        $database = self::createStub(PostgresLink::class);
        $database->method('copyFrom')->willReturnCallback(
            static function (string $sql, iterable $data) use (&$sent): int {
                foreach ($data as $piece) {
                    $sent .= \is_string($piece) ? $piece : '';
                }

                return 0;
            },
        );
        (new Transfer($database))->import($pieces);

        return $sent;
    }
}
