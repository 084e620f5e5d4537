<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\PendingCommit;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Result;
use Spindle\Tests\VirtualTime;

use function Amp\async;
use function Amp\delay;

/** Tests the wait for the answer to a COMMIT. The session answers when a test says so, and fails when it is closed. */
final class PendingCommitTest extends TestCase
{
    use VirtualTime;

    /** @var DeferredFuture<Result> */
    private DeferredFuture $answer;

    private Session $session;

    private bool $isOpen = true;

    private string $warnings = '';

    protected function setUp(): void
    {
        $this->answer = new DeferredFuture();
        $session = self::createStub(Session::class);
        $session->method('isOpen')->willReturnCallback(fn(): bool => $this->isOpen);
        $session->method('backendPid')->willReturn(4711);
        $session->method('query')->willReturnCallback(fn(): Result => $this->answer->getFuture()->await());
        $session->method('close')->willReturnCallback(function (): void {
            $this->isOpen = false;
            if (!$this->answer->isComplete()) {
                $this->answer->error(ConnectionClosedException::connection());
            }
        });
        $this->session = $session;
    }

    public function testALongCommitIsReportedOnceAndContinues(): void
    {
        $commit = async(fn() => PendingCommit::await($this->session, $this->warn(...), null));
        delay(59);
        self::assertSame('', $this->warnings);
        delay(86_400);
        self::assertSame(
            1,
            substr_count(
                $this->warnings,
                'A COMMIT has waited for 60 s for the answer of the server process 4711.',
            ),
        );
        self::assertFalse($commit->isComplete());

        $this->answer();
        $commit->await();
        self::assertTrue($this->isOpen);
    }

    public function testTheTimeOfACommitBeginsWithThatCommit(): void
    {
        $first = async(fn() => PendingCommit::await($this->session, $this->warn(...), null));
        delay(30);
        $this->answer();
        $first->await();
        delay(20);
        $this->answer = new DeferredFuture();
        $second = async(fn() => PendingCommit::await($this->session, $this->warn(...), null));
        delay(59);
        self::assertSame('', $this->warnings);
        delay(2);
        self::assertStringContainsString('A COMMIT has waited for 60 s', $this->warnings);

        $this->answer();
        $second->await();
    }

    public function testACancellationLimitsTheWait(): void
    {
        $cancellation = new DeferredCancellation();
        $commit = async(fn() => PendingCommit::await(
            $this->session,
            $this->warn(...),
            $cancellation->getCancellation(),
        ));
        delay(30);
        $cancellation->cancel();
        delay(4);
        self::assertFalse($commit->isComplete());
        delay(2);
        self::assertTrue($commit->isComplete());

        $this->expectException(ConnectionLostException::class);
        $this->expectExceptionMessage('the server did not answer its COMMIT within 5 s');
        $commit->await();
    }

    public function testAnAnswerAfterACancellationIsASuccess(): void
    {
        $cancellation = new DeferredCancellation();
        $commit = async(fn() => PendingCommit::await(
            $this->session,
            $this->warn(...),
            $cancellation->getCancellation(),
        ));
        delay(1);
        $cancellation->cancel();
        delay(4);
        $this->answer();
        $commit->await();
        delay(100);

        self::assertTrue($this->isOpen);
        self::assertSame('', $this->warnings);
    }

    public function testACancellationAtTheTimeOfTheAnswerClosesNothing(): void
    {
        $cancellation = new DeferredCancellation();
        $commit = async(fn() => PendingCommit::await(
            $this->session,
            $this->warn(...),
            $cancellation->getCancellation(),
        ));
        delay(1);
        $this->answer();
        $cancellation->cancel();
        $commit->await();
        delay(100);

        self::assertTrue($this->isOpen);
    }

    public function testASessionThatAnotherCallerClosesEndsTheWait(): void
    {
        $commit = async(fn() => PendingCommit::await($this->session, $this->warn(...), null));
        delay(1);
        $this->session->close();

        $this->expectException(ConnectionClosedException::class);
        $commit->await();
    }

    private function answer(): void
    {
        $this->answer->complete(new Result(null, null, 0));
    }

    private function warn(string $warning): void
    {
        $this->warnings .= $warning;
    }
}
