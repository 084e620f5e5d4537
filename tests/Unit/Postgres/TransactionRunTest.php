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
        $link = new ConnectionSession($session);
        $run = async(static fn(): mixed => self::thrown(
            CancelledException::class,
            static fn(): mixed => TransactionRun::outermost($link, $work, null, 0, new TimeoutCancellation(0.5)),
        ));
        delay(8);

        self::assertTrue($run->isComplete(), "after {$sql}");
        $run->await();
        self::assertFalse($session->isOpen());
    }
}
