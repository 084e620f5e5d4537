<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http\Client;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Host;
use Spindle\Tests\TidyTestCase;

/** Bodies that are within their limit, but exceed the memory_limit together. */
final class ScarceMemoryTest extends TidyTestCase
{
    #[TestWith([false])]
    #[TestWith([true])]
    public function testBodiesThatExceedTheMemoryTogetherAreExceptions(bool $isCompressed): void
    {
        $outcomes = Host::call(
            MemoryPrograms::class . '::keepBodies',
            [20, $isCompressed],
            options: ['-d', 'memory_limit=64M'],
        );
        self::assertIsArray($outcomes);
        [$messages, $length] = $outcomes;
        self::assertIsArray($messages);

        self::assertContains('', $messages);
        self::assertNotSame(['', '', '', ''], $messages);
        foreach ($messages as $message) {
            self::assertIsString($message);
            if ($message === '') {
                continue;
            }
            self::assertMatchesRegularExpression(
                '~^GET http://\S+ failed: the process has too little memory left for the body, of which \d+ bytes have '
                    . 'arrived: \d+ of 67108864 bytes \(memory_limit\) are in use~',
                $message,
            );
        }
        self::assertSame(20 << 20, $length);
    }

    public function testAnEventThatExceedsTheMemoryIsAnException(): void
    {
        $outcomes = Host::call(
            MemoryPrograms::class . '::readEvents',
            [4, 15, 4],
            options: ['-d', 'memory_limit=48M'],
        );
        self::assertIsArray($outcomes);
        [$first, $long, $last] = $outcomes;

        self::assertSame([4 << 20, 4 << 20], [$first, $last]);
        self::assertIsString($long);
        self::assertMatchesRegularExpression(
            '~ failed: the process has too little memory left for an event, of which \d+ bytes have arrived: \d+ of '
                . '50331648 bytes \(memory_limit\) are in use~',
            $long,
        );
    }
}
