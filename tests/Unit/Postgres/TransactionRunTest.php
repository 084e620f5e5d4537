<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use Amp\CancelledException;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\ConnectionSession;
use Spindle\Postgres\Internal\TransactionRun;
use Spindle\Postgres\Transaction;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\VirtualTime;

use function Amp\async;
use function Amp\delay;

/** Tests the time limits of a transaction whose server answers late or never. */
final class TransactionRunTest extends TestCase
{
    use CatchesThrown;
    use VirtualTime;

    /** @var list<string> */
    private array $warnings = [];

    public function testAStreamThatIsLeftIsCommittedWhenItsFetchEndsWithinFiveSeconds(): void
    {
        $session = new ScriptedSession(fetchSeconds: 4.9);
        $link = $this->link($session);
        foreach (TransactionRun::stream($link, 'SELECT', [], null) as $_) {
            break;
        }
        $link->close(null);

        self::assertSame(['SELECT', 'COMMIT', 'close'], $session->calls);
        self::assertSame([], $this->warnings);
    }

    public function testAStreamThatIsLeftIsRolledBackAndReportedAfterFiveSeconds(): void
    {
        $session = new ScriptedSession(fetchSeconds: 1000);
        $link = $this->link($session);
        $start = $this->now();
        foreach (TransactionRun::stream($link, 'SELECT', [], null) as $_) {
            break;
        }
        $link->close(null);

        self::assertSame(['SELECT', 'stop', 'ROLLBACK', 'close'], $session->calls);
        self::assertEqualsWithDelta(5.1, $this->now() - $start, 0.1);
        self::assertCount(1, $this->warnings);
        self::assertStringContainsString('did not finish a fetch of rows within 5 s', $this->warnings[0]);
    }

    public function testAStreamThatIsLeftIsReportedWhenTheConnectionIsKilled(): void
    {
        $session = new ScriptedSession(fetchSeconds: 1000);
        $link = $this->link($session);
        foreach (TransactionRun::stream($link, 'SELECT', [], null) as $_) {
            break;
        }
        self::thrown(CancelledException::class, static fn() => $link->close(new TimeoutCancellation(1)));
        delay(1);

        self::assertCount(1, $this->warnings);
        self::assertStringContainsString('The connection to PostgreSQL is closed', $this->warnings[0]);
    }

    /** @return iterable<string, array{string, \Closure(Transaction): mixed}> last statement that the server answers */
    public static function unanswered(): iterable
    {
        $work = static fn(Transaction $transaction): mixed => $transaction->query('WORK');
        yield 'a statement of the function that is cancelled' => [
            'WORK',
            static fn(Transaction $transaction): mixed
                => $transaction->query('WORK', [], new TimeoutCancellation(0.5)),
        ];
        yield 'a statement of another fiber' => [
            'WORK',
            static function (Transaction $transaction) use ($work): never {
                async($work, $transaction)->ignore();
                delay(0.5);
                throw new CancelledException();
            },
        ];
        yield 'a statement of another fiber, while the function returns' => [
            'WORK',
            static function (Transaction $transaction) use ($work): void {
                async($work, $transaction)->ignore();
                delay(0.5);
            },
        ];
        yield 'ROLLBACK' => ['ROLLBACK', static function (Transaction $transaction) use ($work): never {
            $work($transaction);
            throw new CancelledException();
        }];
        foreach (['SAVEPOINT spindle_1', 'WORK', 'RELEASE SAVEPOINT spindle_1'] as $sql) {
            yield "{$sql} of a nested transaction" => [
                $sql,
                static fn(Transaction $transaction): mixed => $transaction->transaction(
                    static fn(Transaction $nested): mixed => $nested->query('WORK', [], new TimeoutCancellation(0.5)),
                    cancellation: new TimeoutCancellation(0.5),
                ),
            ];
        }
        foreach (['ROLLBACK TO SAVEPOINT spindle_1', 'RELEASE SAVEPOINT spindle_1'] as $sql) {
            yield "{$sql} of a nested transaction that fails" => [
                $sql,
                static fn(Transaction $transaction): mixed => $transaction->transaction(
                    static fn(Transaction $nested): never => throw new CancelledException(),
                ),
            ];
        }
    }

    /** @param \Closure(Transaction): mixed $work */
    #[DataProvider('unanswered')]
    public function testATransactionEndsFiveSecondsAfterACancellation(string $sql, \Closure $work): void
    {
        $session = new ScriptedSession(unanswered: $sql);
        $link = $this->link($session);
        $start = $this->now();
        $run = async(static fn(): mixed => self::thrown(
            CancelledException::class,
            static fn(): mixed => TransactionRun::run($link, $work, null, 0, new TimeoutCancellation(0.5)),
        ));
        delay(8);

        self::assertTrue($run->isComplete(), "after {$sql}");
        $run->await();
        self::assertFalse($session->isOpen());
    }

    private function link(ScriptedSession $session): ConnectionSession
    {
        return new ConnectionSession($session, warn: function (string $warning): void {
            $this->warnings[] = $warning;
        });
    }
}
