<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Protocol\BackendMessages;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;
use Spindle\Tests\Postgres\Message;

final class BackendMessagesTest extends TestCase
{
    public function testFieldsOfAnErrorHaveTheirLetters(): void
    {
        $payload = self::payload(Message::errorResponse('22012', 'division by zero', ['D' => 'a detail', 'P' => '8']));

        $error = BackendMessages::error($payload);

        self::assertSame(
            ['ERROR', 'ERROR', '22012', 'division by zero', 'a detail', '8', null],
            array_map($error->field(...), ['S', 'V', 'C', 'M', 'D', 'P', 'H']),
        );
        self::assertNull(BackendMessages::error("\0")->field('M'));
        self::assertSame('', BackendMessages::error("M\0\0")->field('M'));
    }

    public function testColumnsHaveNamesAndTypes(): void
    {
        self::assertSame(
            [['a', '', 'ä b'], [23, 25, 4_294_967_295]],
            BackendMessages::columns(self::payload(Message::rowDescription(
                ['a' => 23, '' => 25, 'ä b' => 0xFFFF_FFFF],
            ))),
        );
        self::assertSame([[], []], BackendMessages::columns(self::payload(Message::rowDescription([]))));
    }

    public function testParametersHaveTypes(): void
    {
        self::assertSame(
            [23, 4_294_967_295],
            BackendMessages::parameters(self::payload(Message::parameterDescription(23, 0xFFFF_FFFF))),
        );
        self::assertSame([], BackendMessages::parameters("\0\0"));
        self::assertCount(0xFFFF, BackendMessages::parameters("\xFF\xFF" . str_repeat("\0\0\0\x17", 0xFFFF)));
    }

    public function testANotificationHasAChannelAndAPayload(): void
    {
        self::assertEquals(
            new Notification('news', 'ä', 4_294_967_295),
            BackendMessages::notification(self::payload(Message::notification(0xFFFF_FFFF, 'news', 'ä'))),
        );
        self::assertEquals(new Notification('', '', 0), BackendMessages::notification("\0\0\0\0\0\0"));
    }

    public function testAParameterStatusHasANameAndAValue(): void
    {
        self::assertSame(['TimeZone', 'UTC'], BackendMessages::parameterStatus("TimeZone\0UTC\0"));
    }

    public function testEachPayloadThatIsCutOffIsRefused(): void
    {
        foreach ([
            'columns' => Message::rowDescription(['a' => 23, 'bc' => 25]),
            'parameters' => Message::parameterDescription(23, 25),
            'notification' => Message::notification(1, 'a', 'b'),
            'parameterStatus' => Message::parameterStatus('a', 'b'),
        ] as $method => $message) {
            $payload = self::payload($message);
            for ($length = 0; $length < \strlen($payload); ++$length) {
                self::assertRefused($method, substr($payload, 0, $length));
            }
            self::assertRefused($method, "{$payload}\0");
            self::assertRefused($method, "{$payload}x");
        }
        self::assertRefused('columns', "\xFF\xFF" . str_repeat("a\0" . str_repeat("\0", 18), 0xFFFF));
    }

    private static function assertRefused(string $method, string $payload): void
    {
        try {
            match ($method) {
                'columns' => BackendMessages::columns($payload),
                'parameters' => BackendMessages::parameters($payload),
                'notification' => BackendMessages::notification($payload),
                default => BackendMessages::parameterStatus($payload),
            };
        } catch (ProtocolException $thrown) {
            self::assertStringContainsString("violated PostgreSQL's protocol", $thrown->getMessage());

            return;
        }
        self::fail("{$method}() takes " . bin2hex($payload));
    }

    private static function payload(string $message): string
    {
        return substr($message, 5);
    }
}
