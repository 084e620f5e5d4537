<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Warnings;

final class WarningsTest extends TestCase
{
    /** @return iterable<string, array{string, string}> */
    public static function warnings(): iterable
    {
        yield 'a socket' => [
            'stream_socket_client(): Unable to connect to unix:///tmp/x (No such file or directory)',
            'no such file or directory',
        ];
        yield 'TLS' => [
            "fread(): SSL operation failed with code 1. OpenSSL Error messages:\nerror:0A000418:SSL routines::tlsv1"
            . ' alert unknown ca',
            'tlsv1 alert unknown ca',
        ];
        yield 'an abbreviation' => ['fread(): SSL: Connection reset by peer', 'SSL: Connection reset by peer'];
        yield 'another' => [
            "stream_socket_enable_crypto(): Unable to set private key file `/tmp/x'",
            "unable to set private key file `/tmp/x'",
        ];
        yield 'none' => ['', ''];
    }

    #[DataProvider('warnings')]
    public function testAWarningIsMadeAClause(string $warning, string $clause): void
    {
        self::assertSame($clause, Warnings::socketReason($warning));
    }

    /** @return iterable<string, array{string, string}> */
    public static function reasons(): iterable
    {
        yield 'a file' => [
            'fopen(/not/there): Failed to open stream: No such file or directory',
            'No such file or directory',
        ];
        yield 'a write' => [
            'fwrite(): Write of 3 bytes failed with errno=28 No space left on device',
            'No space left on device',
        ];
        yield 'a read' => ['fread(): Read of 8192 bytes failed with errno=21 Is a directory', 'Is a directory'];
        yield 'another function' => ['rename(a,b): Permission denied', 'Permission denied'];
        yield 'no function' => ['unknown error', 'unknown error'];
    }

    #[DataProvider('reasons')]
    public function testTheReasonIsWhatFollowsTheFunction(string $warning, string $reason): void
    {
        self::assertSame($reason, Warnings::reason($warning));
    }

    public function testTheLastReasonIsThatOfTheLastWarning(): void
    {
        error_clear_last();
        self::assertSame('unknown error', Warnings::lastReason('unknown error'));
        Warnings::suppressed(static fn() => @fopen('/not/there', 'r'));

        self::assertSame('No such file or directory', Warnings::lastReason('unknown error'));
    }

    public function testTheLastAndTheFirstWarningAreKeptAndNothingIsPrinted(): void
    {
        $of86 = 'fopen(): Failed to open stream: No such file or directory'; // PHP 8.6 leaves out the path
        $warning = str_replace('()', '(/not/there)', $of86);
        self::assertContains(
            Warnings::of(static fn() => fopen('/not/there', 'r')),
            [[false, $warning, $warning], [false, $of86, $of86]],
        );
        self::assertSame([true, 'last', 'first'], Warnings::of(static function (): bool {
            trigger_error('first', \E_USER_WARNING);
            trigger_error('second', \E_USER_WARNING);

            return trigger_error('last', \E_USER_WARNING);
        }));
        self::assertSame([1, '', ''], Warnings::of(static fn() => 1));
    }
}
