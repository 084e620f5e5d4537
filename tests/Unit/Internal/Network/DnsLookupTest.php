<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Network;

use Amp\CompositeException;
use Amp\Dns\DnsException;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\DnsLookup;
use Spindle\Internal\Network\NetworkException;
use Spindle\Tests\ScriptedNames;

use function Amp\Dns\createDefaultResolver;
use function Amp\Dns\dnsResolver;

final class DnsLookupTest extends TestCase
{
    protected function tearDown(): void
    {
        dnsResolver(createDefaultResolver());
    }

    public function testAReasonThatAllQueriesHaveIsNamedOnce(): void
    {
        self::assertSame('the look-up failed: no such name', self::failureOf('no such name', 'no such name'));
        self::assertSame('the look-up failed: refused, no answer', self::failureOf('refused', 'no answer'));
    }

    /** Returns the message of a look-up whose two queries fail, as amphp/dns reports that. */
    private static function failureOf(string $first, string $second): string
    {
        $failure = new DnsException(
            "All query attempts failed for a.test: {$first}, {$second}",
            0,
            new CompositeException([new DnsException($first), new DnsException($second)]),
        );
        dnsResolver(new ScriptedNames(static fn() => throw $failure));
        try {
            DnsLookup::addresses('a.test', Deadline::in(5.0, null));
            self::fail('The name was found');
        } catch (NetworkException $failed) {
            return $failed->getMessage();
        }
    }
}
