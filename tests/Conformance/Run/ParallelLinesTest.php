<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** Inputs, replacement strings and packing, compared with GNU parallel 20221122. */
final class ParallelLinesTest extends TestCase
{
    use ComparesTools;

    /** @return iterable<string, array{RecordedLine}> */
    public static function lines(): iterable
    {
        return RecordedLine::read(__DIR__ . '/parallel-input.txt');
    }

    #[DataProvider('lines')]
    public function testALineDoesWhatItDoesInGnuParallelOrTheDifferenceIsKnown(RecordedLine $line): void
    {
        $this->compare($line, ['-k'], ['parallel', '--will-cite', '-k']);
    }
}
