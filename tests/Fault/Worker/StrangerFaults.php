<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\WorkerPool;

/** Tests other processes that have found the socket to which a pool's workers connect. */
trait StrangerFaults
{
    public function testAStrangerIsDisconnectedWithoutEffectOnThePool(): void
    {
        $gate = new Gate($this->path('gate'));
        $pool = $this->pool(2);
        $running = $pool->submit(static fn(): string => $gate->pass('running'));
        $gate->awaitTasks(1);
        $descriptors = self::openDescriptors();
        foreach (self::strangers() as $name => $words) {
            $stranger = self::connectTo($pool);
            @fwrite($stranger, $words);
            Eventually::holds(static function () use ($stranger): bool {
                fread($stranger, 1000);

                return feof($stranger);
            }, "the stranger that {$name} is sent away");
            fclose($stranger);

            self::assertFalse($running->isComplete());
            self::assertUsable($pool);
            // The worker that was started since needs two.
            Eventually::holds(
                static fn(): bool => self::openDescriptors() <= $descriptors + 2,
                "its descriptor is closed, that {$name}",
            );
        }
        $gate->open();

        self::assertSame('running', self::outcome($running));
    }

    public function testSilentAndRepeatedStrangersDoNotAffectThePool(): void
    {
        $pool = $this->pool(2, maxTasks: 1);
        self::assertUsable($pool, 1);
        $strangers = [];
        for ($i = 0; $i < 100; ++$i) {
            $stranger = self::connectTo($pool);
            if ($i % 2 === 0) {
                $strangers[] = $stranger;
            } else {
                @fwrite($stranger, substr(WorkerProtocol::frame(WorkerProtocol::HELLO, 1, random_bytes(20)), 0, $i));
                fclose($stranger);
            }
        }
        $numbers = range(1, Scale::isFull() ? 20 : 6);
        $futures = array_map(static fn(int $number): Future => $pool->submit(new Call('square', $number)), $numbers);

        self::assertSame(
            array_map(TaskFunctions::square(...), $numbers),
            self::outcomes($futures),
            'by workers that come in between',
        );
        $pool->close();
        foreach ($strangers as $stranger) {
            stream_set_blocking($stranger, true);
            self::assertSame('', fread($stranger, 1), 'it is told nothing');
            self::assertTrue(feof($stranger));
            fclose($stranger);
        }
    }

    /** Shows a timeout of ten seconds in real time. ReceptionTest shows it in virtual time. */
    #[Group('full')]
    public function testASilentStrangerIsDisconnectedInTime(): void
    {
        $pool = $this->pool(1);
        self::assertUsable($pool);
        $stranger = self::connectTo($pool);
        Eventually::holds(static function () use ($stranger): bool {
            fread($stranger, 1);

            return feof($stranger);
        }, 'it is sent away', 12.0);
        fclose($stranger);
        self::assertUsable($pool);
    }

    /** Limits the strangers: each would hold a descriptor of this process for ten seconds. */
    public function testSilentStrangersAreLimitedInNumberAndDoNotKeepWorkersOut(): void
    {
        $pool = $this->pool(2, maxTasks: 1);
        self::assertUsable($pool, 1);
        $address = Strangers::addresses()[0] ?? self::markTestSkipped('The name of the socket can not be found here');
        $strangers = [];
        for ($i = 0; $i < 400; ++$i) {
            $strangers[] = stream_socket_client($address, timeout: 5.0);
        }
        $descriptors = self::openDescriptors();
        for ($number = 0; $number < Scale::of(50); ++$number) {
            self::assertSame(
                $number ** 2,
                self::outcome($pool->submit(new Call('square', $number))),
                'by a worker that comes after them',
            );
            self::assertLessThan($descriptors + 150, self::openDescriptors());
        }
        array_map(fclose(...), array_filter($strangers, \is_resource(...)));
        Eventually::holds(static fn(): bool => self::openDescriptors() <= $descriptors - 390, 'all are sent away');
    }

    public function testStrangersThatComeAgainAndAgainDoNotKeepWorkersOut(): void
    {
        $pool = $this->pool(2, maxTasks: 1);
        self::assertUsable($pool, 1);
        [$siege, $end] = Strangers::besiege(
            Strangers::addresses()[0] ?? self::markTestSkipped('The name of the socket can not be found here'),
            300,
        );
        $descriptors = self::openDescriptors();
        for ($round = 0; $round < Scale::of(20); ++$round) {
            self::assertUsable($pool, 5);
            self::assertLessThan($descriptors + 150, self::openDescriptors());
        }
        fclose($end);
        proc_close($siege);
    }

    public function testStrangersWithTheLastDescriptorsAreDisconnected(): void
    {
        $outcomes = Host::call(
            HostPrograms::class . '::resistStrangers',
            [$this->context()->name],
            ['sh', '-c', 'ulimit -n 80 && exec "$@"', 'sh'],
        );

        self::assertSame(array_fill(0, 6, 'done'), $outcomes);
    }

    /** @return iterable<string, string> bytes that a stranger sends, by their description */
    private static function strangers(): iterable
    {
        $words = "\0";
        $greeting = static fn(string $proof): string
            => WorkerProtocol::frame(WorkerProtocol::HELLO, 1, $proof . $words);
        $nonce = random_bytes(WorkerProtocol::NONCE_BYTES);

        yield 'talks of something else' => "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        yield 'sends zeros' => str_repeat("\0", 1000);
        yield 'announces a frame of four gigabytes' => str_repeat("\xff", 100);
        yield 'sends megabytes' => str_repeat('x', 4 << 20);
        yield 'has a wrong proof' => $greeting($nonce . random_bytes(WorkerProtocol::PROOF_BYTES));
        yield 'has a proof of zeros' => $greeting(str_repeat(
            "\0",
            WorkerProtocol::NONCE_BYTES + WorkerProtocol::PROOF_BYTES,
        ));
        yield 'has a proof by a wrong secret' => WorkerProtocol::frame(
            WorkerProtocol::HELLO,
            1,
            WorkerProtocol::greeting(
                random_bytes(WorkerProtocol::SECRET_BYTES),
                $nonce,
                WorkerProtocol::HELLO,
                1,
                $words,
            ),
        );
        yield 'has a proof by no secret' => WorkerProtocol::frame(
            WorkerProtocol::HELLO,
            1,
            WorkerProtocol::greeting('', $nonce, WorkerProtocol::HELLO, 1, $words),
        );
        yield 'has half a proof' => WorkerProtocol::frame(WorkerProtocol::HELLO, 1, $nonce . random_bytes(10));
        yield 'has no proof' => $greeting('');
        yield 'has nothing but a header' => WorkerProtocol::frame(WorkerProtocol::HELLO, 1);
        yield 'sends a result of a task' => WorkerProtocol::frame(WorkerProtocol::RESULTS, 1, str_repeat("\1", 50));
    }

    /** @return resource a non-blocking connection to the pool's socket */
    private static function connectTo(WorkerPool $pool): mixed
    {
        self::assertNotSame(0, $pool->__debugInfo()['workers']);
        $address = Strangers::addresses()[0] ?? self::markTestSkipped('The name of the socket can not be found here');
        $stranger = stream_socket_client($address, timeout: 5.0);
        self::assertIsResource($stranger);
        stream_set_blocking($stranger, false);

        return $stranger;
    }

    private static function openDescriptors(): int
    {
        return \count(Text::names('/proc/self/fd'));
    }
}
