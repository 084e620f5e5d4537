<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Remote\Internal\Redis\Address;
use Spindle\Tests\TidyTestCase;

final class AddressTest extends TidyTestCase
{
    /** @param array{string, bool, ?string, ?string, int} $expected URI, TLS, user, password, database */
    #[DataProvider('addresses')]
    public function testAnAddressHasHostUserAndDatabase(string $text, array $expected): void
    {
        $address = Address::parse($text);

        self::assertSame(
            $expected,
            [$address->uri(), $address->tls, $address->user, $address->password?->getValue(), $address->database],
        );
    }

    /** @return iterable<array{string, array{string, bool, ?string, ?string, int}}> */
    public static function addresses(): iterable
    {
        yield ['redis://localhost', ['tcp://localhost:6379', false, null, null, 0]];
        yield ['redis://10.0.0.1:7000/', ['tcp://10.0.0.1:7000', false, null, null, 0]];
        yield ['redis://:secret@host:7000/3', ['tcp://host:7000', false, null, 'secret', 3]];
        yield ['rediss://jo:p%40ss%2F@host/15', ['tcp://host:6379', true, 'jo', 'p@ss/', 15]];
        yield ['REDIS://[::1]:7000', ['tcp://[::1]:7000', false, null, null, 0]];
        yield ['redis://[fe80::1%25eth0]:1/0', ['tcp://[fe80::1%25eth0]:1', false, null, null, 0]];
        yield ['redis://:a]b:c@[::1]', ['tcp://[::1]:6379', false, null, 'a]b:c', 0]];
        yield ['redis://host/2147483647', ['tcp://host:6379', false, null, null, 2_147_483_647]];
        yield ['unix:///run/redis.sock', ['unix:///run/redis.sock', false, null, null, 0]];
        yield ['unix://:secret@/run/redis.sock', ['unix:///run/redis.sock', false, null, 'secret', 0]];
        yield ['unix://jo:p%40ss%2F@/run/a@b:c d', ['unix:///run/a@b:c d', false, 'jo', 'p@ss/', 0]];
        yield ['unix://jo:p@ss@/run/redis.sock', ['unix:///run/redis.sock', false, 'jo', 'p@ss', 0]];
        yield ['unix:///run/:a@b/c', ['unix:///run/:a@b/c', false, null, null, 0]];
    }

    #[DataProvider('others')]
    public function testAMalformedAddressIsRefusedWithoutItsPassword(string $text): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessageMatches(
            '/^(The address of an engine must be|The path in the address of an engine must be) (?!.*s3cr3t)/',
        );
        Address::parse($text);
    }

    #[DataProvider('reasons')]
    public function testTheMistakeInAMalformedAddressIsNamed(string $text, string $reason): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessageMatches('~, but ' . preg_quote($reason, '~') . '$~D');
        Address::parse($text);
    }

    /** @return iterable<array{string, string}> */
    public static function reasons(): iterable
    {
        foreach ([' redis://host', 'redis://host ', "redis://host\n", "redis://:a\tb@host"] as $stray) {
            yield [$stray, 'it begins or ends with a space, or contains a line break or another control character'];
        }
        yield ['host:6379', 'it does not begin with redis://, rediss:// or unix://'];
        yield ['unix:/path', 'it does not begin with redis://, rediss:// or unix://'];
        yield ['redis://:a#b@host', 'it contains ? or #, which are %3F and %23 in a password'];
        yield ['redis://:a/b@host:6379', 'its password contains /, which must be %2F'];
        yield ['redis://:a/1@host', 'its password contains /, which must be %2F'];
        yield ['unix://jo:a/b@/run/redis.sock', 'its password contains /, which must be %2F'];
        yield ['UNIX://:a@b/c@/run/redis.sock', 'its password contains /, which must be %2F'];
        yield ['redis://host:70000', 'its port is not a number from 1 to 65535'];
        foreach (['redis://host:0', 'redis://:a@host:00/3', 'redis://host::1', 'redis://[:a@host:port'] as $wrong) {
            yield [$wrong, 'its port is not a number from 1 to 65535'];
        }
        $hosts = ['::1', '[::1', '[::1/3', '::1]', ':a@::1', 'fe80::1', ':a@FE80::1:6379/3', '[]', '[::1]b:6379'];
        foreach ($hosts as $host) {
            yield ["redis://{$host}", 'its IPv6 address is not in brackets, like [::1]'];
        }
        yield ['redis://:a@[::1]:port/3', 'its port is not a number from 1 to 65535'];
        yield ['redis:///3', 'it has no host'];
        yield ['redis://:a@', 'it has no host'];
        yield ['redis://:a@:6379', 'it has no host'];
        yield ['redis://:a@:6379/3', 'it has no host'];
        foreach (['unix://path', 'unix://run/a@b', 'unix://:a@run/redis.sock', 'unix://jo@run/a:b'] as $relative) {
            yield [$relative, 'it has no path of a socket, which must begin with / after unix:// or @'];
        }
    }

    public function testAnEmptyAddressIsReportedWithTheVariable(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The address of the engine is empty. Is the environment variable SPINDLE_BROKER');
        Address::parse('');
    }

    public function testAUserNeedsAPassword(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The address of an engine has a user without a password');
        Address::parse('redis://jo@host');
    }

    /** @return iterable<array{string}> */
    public static function others(): iterable
    {
        yield from [
            ['localhost:6379'],
            ['http://localhost'],
            ['redis://'],
            ['redis://:s3cr3t@'],
            ['redis://host:port'],
            ['redis://host/name'],
            ['redis://host/99999999999999999999'],
        ];
        yield from [['redis://host?timeout=1'], ['redis://:s3cr3t#@host']];
        yield from [
            ['unix://'],
            ['unix:///'],
            ['unix://relative/path'],
            ['unix://:s3cr3t@host/path'],
            ['unix://:s3cr3t@'],
            ['unix://:s3/cr3t@/path'],
            ['unix://:s3cr3t@:80/path'],
            ['unix:///path?database=1'],
        ];
    }

    public function testItsTextDoesNotContainThePassword(): void
    {
        foreach (['redis://:s3cr3t@host', 'unix://:s3cr3t@/path'] as $text) {
            $address = Address::parse($text);
            self::assertStringNotContainsString('s3cr3t', $address . print_r($address, true));
        }
        self::assertSame('host:6379', (string) Address::parse('redis://:s3cr3t@host'));
        self::assertSame('unix:///path', (string) Address::parse('unix://:s3cr3t@/path'));
    }
}
