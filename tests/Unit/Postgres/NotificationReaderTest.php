<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\NotificationReader;
use Spindle\Postgres\Notification;
use Spindle\Postgres\NotificationsDropped;
use Spindle\Postgres\Reconnected;

final class NotificationReaderTest extends TestCase
{
    public function testADroppedReconnectedBelongsToTheGap(): void
    {
        $reader = new NotificationReader(['a']);
        for ($i = 0; $i < 1_001; ++$i) {
            $reader->add(new Notification('a', (string) $i, 1), microtime(true));
        }
        $lost = new \DateTimeImmutable('-1 minute');
        $reader->add(new Reconnected($lost, new \RuntimeException()), microtime(true));
        $events = $reader->take(null);
        $gap = array_pop($events);

        self::assertCount(1_000, $events);
        self::assertContainsOnlyInstancesOf(Notification::class, $events);
        self::assertInstanceOf(NotificationsDropped::class, $gap);
        self::assertSame(1, $gap->count);
        self::assertEquals($lost, $gap->since);
        $reader->add($event = new Notification('a', 'after', 1), microtime(true));
        $reader->end(null);
        self::assertSame([[$event], []], [$reader->take(null), $reader->take(null)]);
    }
}
