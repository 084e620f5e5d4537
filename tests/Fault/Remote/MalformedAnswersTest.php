<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\DeferredFuture;
use Amp\Socket\Socket;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\RedisBroker;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Http\ScriptedServer;

/** An engine whose answers and messages have another format, for example because of a proxy in front of it. */
final class MalformedAnswersTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;

    private const INFO = "redis_version:7.2.0\r\nloading:0\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n";

    private ?ScriptedServer $engine = null;

    protected function tearDown(): void
    {
        $this->engine?->close();
    }

    /** @param \Closure(RedisBroker): mixed $use */
    #[DataProvider('uses')]
    public function testAMalformedAnswerIsAFailureOfTheEngine(string $script, \Closure $use): void
    {
        foreach (["+x\r\n", "$8\r\n\xff\xff\xff\xff\xff\xff\xff\xff\r\n"] as $answer) {
            $broker = $this->broker($answer);
            $failure = self::thrown(BrokerUnavailableException::class, static fn(): mixed => $use($broker));

            self::assertStringEndsWith("it answered {$script} with a malformed value", $failure->getMessage());
        }
    }

    /** @return iterable<string, array{string, \Closure(RedisBroker): mixed}> */
    public static function uses(): iterable
    {
        $uses = [
            'submit' => static fn(RedisBroker $broker): mixed => $broker->submit('q', [new Job('a', '')], 9, '', false),
            'attach' => static fn(RedisBroker $broker): mixed => $broker->attach('q', ['a'], 'm'),
            'cancel' => static fn(RedisBroker $broker): mixed => $broker->cancel('q', ['a']),
            'cancel-and-record' => static fn(RedisBroker $broker): mixed => $broker->cancelAndRecord('q', ['a']),
            'renew' => static fn(RedisBroker $broker): mixed => $broker->renewLease('q', 'o', 9.0, true, ''),
            'settle' => static fn(RedisBroker $broker): mixed => $broker->settleAndClaim('q', 'o', [], 1, 9.0),
            'claimed-jobs' => static fn(RedisBroker $broker): mixed => $broker->claimedJobs('q', 'o', []),
            'put-items' => static fn(RedisBroker $broker): mixed => $broker->putItems('q', 'o', 'a', 1, 0, ['f']),
            'take-items' => static fn(RedisBroker $broker): mixed => $broker->takeItems('q', 'a', 0, 1),
            'statistics' => static fn(RedisBroker $broker): mixed => $broker->statistics('q'),
            'list' => static fn(RedisBroker $broker): mixed => $broker->listJobs('q', JobStatus::Waiting, 1),
            'retry-dead-letters' => static fn(RedisBroker $broker): mixed => $broker->retryDeadLetters('q', ['a']),
            'delete' => static fn(RedisBroker $broker): mixed => $broker->deleteDeadLetters('q', ['a']),
            'repair' => static fn(RedisBroker $broker): mixed => $broker->repair('q'),
        ];
        foreach ($uses as $script => $use) {
            yield $script => [$script, $use];
        }
    }

    #[TestWith(['MOVED 11958 127.0.0.1:7000'])]
    #[TestWith(['ASK 11958 127.0.0.1:7000'])]
    public function testAnotherNodeOfAClusterIsNamed(string $error): void
    {
        $broker = $this->broker("-{$error}\r\n");
        $failure = self::thrown(BrokerUnavailableException::class, static fn(): array => $broker->statistics('q'));

        self::assertStringEndsWith(
            'another node of its cluster stores this queue; give the address of that node, because redirections are'
                . " not followed ({$error})",
            $failure->getMessage(),
        );
    }

    public function testAnAnswerWithoutARequestIsNotTheAnswerToTheNextRequest(): void
    {
        $broker = $this->broker("+3\r\n+4\r\n"); // two answers to one request

        self::assertSame([3, 3], [$broker->deleteDeadLetters('q', ['a']), $broker->deleteDeadLetters('q', ['b'])]);
    }

    public function testAMalformedMessageIsSkipped(): void
    {
        $broker = $this->broker("+x\r\n");
        $received = new DeferredFuture();
        $close = $broker->openMailbox('m', $received->complete(...), static fn(): mixed => null);

        self::assertEquals(
            new MailboxMessage(jobsAvailable: true),
            $received->getFuture()->await(new TimeoutCancellation(5)),
        );
        $close();
    }

    /** @param string $answer answer to each script, in the protocol of Redis */
    private function broker(string $answer): RedisBroker
    {
        $this->engine?->close();
        $this->engine = new ScriptedServer(static function (Socket $socket) use ($answer): void {
            while (($command = $socket->read()) !== null) {
                $socket->write(match (true) {
                    str_contains($command, 'EVALSHA') => $answer,
                    str_contains($command, 'INFO') => '$' . \strlen(self::INFO) . "\r\n" . self::INFO . "\r\n",
                    str_contains($command, 'SUBSCRIBE') => "*3\r\n$9\r\nsubscribe\r\n$1\r\nm\r\n:1\r\n"
                        . "*3\r\n$7\r\nmessage\r\n$1\r\nm\r\n$2\r\nc\xff\r\n"
                        . "*3\r\n$7\r\nmessage\r\n$1\r\nm\r\n$1\r\nw\r\n",
                    default => "-ERR unknown command\r\n",
                });
            }
        });

        return new RedisBroker("redis://{$this->engine->address()}");
    }
}
