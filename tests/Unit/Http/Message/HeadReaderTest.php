<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\HeadReader;
use Spindle\Http\Internal\Message\MessageLimits;

final class HeadReaderTest extends TestCase
{
    public function testTheEmptyLineEndsTheHead(): void
    {
        $reader = new HeadReader(new MessageLimits());

        self::assertNull($reader->addLine("\r\n"), 'before the request');
        self::assertNull($reader->addLine("GET / HTTP/1.1\r\n"));
        self::assertNull($reader->addLine("Host: \t a \t\r\n"));
        $head = $reader->addLine("\r\n");
        self::assertSame(
            ['GET', '/', '1.1', "Host: \t a \t\r\n", 'a', 0],
            [$head?->method, $head?->target, $head?->version, $head?->fields, $head?->host, $head?->length],
        );
    }

    public function testALineIsRefusedWhenItIsComplete(): void
    {
        $reader = new HeadReader(new MessageLimits());
        $reader->addLine("GET / HTTP/1.1\r\n");

        $this->expectExceptionObject(BadMessageException::malformed('A header line is malformed'));
        $reader->addLine("X : y\r\n");
    }

    /** The result does not depend on how the line is split. */
    #[TestWith([0, 414])]
    #[TestWith([10, 414])]
    #[TestWith([15, 431])]
    public function testALineThatExceedsTwoLimitsIsRefusedForTheLowerOne(int $emptyLines, int $status): void
    {
        $statuses = [];
        foreach ([range(1, 200), [200]] as $steps) {
            $reader = new HeadReader(new MessageLimits(target: 10, head: 100, fields: 5));
            for ($i = 0; $i < $emptyLines; ++$i) {
                $reader->addLine("\r\n");
            }
            try {
                array_map($reader->checkSize(...), $steps);
            } catch (BadMessageException $refusal) {
                $statuses[] = $refusal->status;
            }
        }

        self::assertSame([$status, $status], $statuses);
    }
}
