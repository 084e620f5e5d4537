<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;

/** A worker ends the pauses of Amp\delay() that a task leaves. Objects that live longer than a task use Condition. */
final class PausesTest extends TestCase
{
    public function testSpindleDoesNotCallDelayOfAmp(): void
    {
        $folder = \dirname(__DIR__, 2) . '/src';
        $found = array_filter(
            PhpFiles::in($folder),
            static fn(string $path): bool => preg_match(
                '/^use function Amp\\\\delay\b|\\\\Amp\\\\delay\(/m',
                (string) file_get_contents("{$folder}/{$path}"),
            ) === 1,
        );

        self::assertSame([], $found, 'call Condition::waitFor() instead');
    }
}
