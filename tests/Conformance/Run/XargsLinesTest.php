<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** Options of xargs, compared with xargs of findutils 4.9. */
final class XargsLinesTest extends TestCase
{
    use ComparesTools;

    /** @return iterable<string, array{RecordedLine}> */
    public static function lines(): iterable
    {
        return RecordedLine::read(__DIR__ . '/xargs.txt');
    }

    #[DataProvider('lines')]
    public function testALineDoesWhatItDoesInXargsOrTheDifferenceIsKnown(RecordedLine $line): void
    {
        $this->compare($line, ['-k', '-j1'], ['xargs']);
    }
}
