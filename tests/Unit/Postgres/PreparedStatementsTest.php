<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Protocol\PreparedStatement;
use Spindle\Postgres\Internal\Protocol\PreparedStatements;
use Spindle\Postgres\Internal\Types\Types;

final class PreparedStatementsTest extends TestCase
{
    public function testTheLeastRecentlyUsedStatementIsDropped(): void
    {
        $statements = new PreparedStatements(2);
        $names = [];
        foreach (['a', 'b'] as $sql) {
            self::assertNull($statements->find($sql));
            $names[$sql] = $statements->newName($sql);
            self::assertSame([], $statements->add($sql, self::prepared($names[$sql])));
        }
        self::assertSame($names['a'], $statements->find('a')?->name);
        $names['c'] = $statements->newName('c');

        self::assertSame([$names['b']], $statements->add('c', self::prepared($names['c'])));
        self::assertNull($statements->find('b'));
        self::assertSame([$names['a'], $names['c']], [$statements->find('a')?->name, $statements->find('c')?->name]);
    }

    public function testAStatementThatIsPreparedAgainReplacesTheFirst(): void
    {
        $statements = new PreparedStatements(2);
        $statements->add('a', self::prepared('first'));

        self::assertSame(['first'], $statements->add('a', self::prepared('second')));
        self::assertSame('second', $statements->find('a')?->name);
    }

    public function testNamesAreUsedOnce(): void
    {
        $statements = new PreparedStatements(2);
        $others = new PreparedStatements(2);
        $names = [$statements->newName('a'), $statements->newName('a'), $others->newName('a')];

        self::assertSame($names, array_unique($names));
        self::assertNotContains('', $names);
    }

    public function testALimitOfZeroCachesNothing(): void
    {
        $statements = new PreparedStatements(0);

        self::assertSame('', $statements->newName('a'));
        self::assertSame([], $statements->add('a', self::prepared('')));
        self::assertNull($statements->find('a'));
    }

    public function testStatementsAreForgotten(): void
    {
        $statements = new PreparedStatements(5);
        foreach (['a', 'b', 'c'] as $sql) {
            $statements->add($sql, self::prepared($sql));
        }
        $statements->forget('a');
        self::assertNull($statements->find('a'));
        self::assertNotNull($statements->find('b'));
        $statements->forgetAll();
        self::assertNull($statements->find('b'));
        self::assertNotSame('', $statements->newName('a'));
        $statements->disable();
        self::assertSame('', $statements->newName('a'));
    }

    public function testANewGenerationDropsAllStatements(): void
    {
        $statements = new PreparedStatements(5);
        $statements->add('a', self::prepared('1'));
        $statements->add('b', self::prepared('2'));
        $generation = $statements->generation;

        self::assertSame(['1', '2'], $statements->startGeneration());
        self::assertNull($statements->find('a'));
        self::assertNotSame($generation, $statements->generation);
        self::assertSame([], $statements->startGeneration());
    }

    public function testARollbackDropsTheStatementsOfItsTransaction(): void
    {
        $statements = new PreparedStatements(5);
        $statements->add('before', self::prepared('1'));
        $statements->add('in it', self::prepared('2'), tentative: true);
        self::assertTrue($statements->mayBecomeStale);
        self::assertSame(['2'], $statements->forgetTentative());
        self::assertNull($statements->find('in it'));
        self::assertNotNull($statements->find('before'));
        $statements->add('in another', self::prepared('3'), tentative: true);
        $statements->keepTentative();
        self::assertFalse($statements->mayBecomeStale);
        self::assertSame([], $statements->forgetTentative());
        self::assertNotNull($statements->find('in another'));
    }

    private static function prepared(string $name): PreparedStatement
    {
        return new PreparedStatement($name, [], null, new Types(), false, false);
    }
}
