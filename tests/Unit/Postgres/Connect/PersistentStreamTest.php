<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Connect\PersistentStream;
use Spindle\Postgres\PostgresOptions;

final class PersistentStreamTest extends TestCase
{
    /** Otherwise the statement that leaves a session would allow to guess the password, and servers log statements. */
    public function testTheSecretDoesNotDependOnThePassword(): void
    {
        $options = new PostgresOptions('127.0.0.1', 'me', 'one');

        self::assertSame(self::secret($options), self::secret($options->with(['password' => 'other'])));
        self::assertNotSame(self::secret($options), self::secret($options->with(['user' => 'you'])));
    }

    public function testStreamsThatAreReservedTogetherHaveDifferentSecrets(): void
    {
        $options = new PostgresOptions('127.0.0.1', 'me');
        $endpoint = new Endpoint($options->hosts[0], '127.0.0.1');
        [$one, $other] = [
            PersistentStream::reserve($options, $endpoint),
            PersistentStream::reserve($options, $endpoint),
        ];

        self::assertNotSame($one->secret(), $other->secret());
        $one->release();
        $other->release();
    }

    private static function secret(PostgresOptions $options): string
    {
        $stream = PersistentStream::reserve($options, new Endpoint($options->hosts[0], '127.0.0.1'));
        $stream->release();

        return $stream->secret();
    }
}
