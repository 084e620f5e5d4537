<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\UnsupportedException;
use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests COPY … TO STDOUT with a driver that does not support it.
 *
 * @phpstan-require-extends LinkContract
 */
trait RefusesToCopyOut
{
    public function testUnsupportedFeaturesAreReportedWithADriverThatHasThem(): void
    {
        $link = $this->link();
        $thrown = self::refused(
            UnsupportedException::class,
            $link,
            static fn(PostgresLink $link): array => iterator_to_array($link->copyTo('COPY (SELECT 1) TO STDOUT')),
        );

        self::assertStringContainsString('Use the native driver', $thrown->getMessage());
    }

    public function testAScriptOrAQueryThatCopiesOutDoesNotHang(): void
    {
        $link = $this->link();
        self::refused(
            \LogicException::class,
            $link,
            static fn(PostgresLink $link) => $link->query('COPY (SELECT 1) TO STDOUT'),
        );
        $link->executeScript('COPY (SELECT 1) TO STDOUT; SELECT 1');
        self::assertUsable($link);
    }
}
