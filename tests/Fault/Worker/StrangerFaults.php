<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Text;
use Spindle\Worker\Internal\Protocol;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerStartException;

/** Somebody on the machine who has found the socket that a pool's workers come to, and is none of them. */
trait StrangerFaults
{
    /** @return iterable<string, array{string}> */
    public static function strangers(): iterable
    {
        $words = "\0";
        $greeting = static fn(string $proof): string => Protocol::frame(Protocol::HELLO, 1, $proof . $words);
        $nonce = random_bytes(Protocol::NONCE_SIZE);

        yield 'talks of something else' => ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"];
        yield 'sends zeros' => [str_repeat("\0", 1000)];
        yield 'announces a frame of four gigabytes' => [str_repeat("\xff", 100)];
        yield 'sends megabytes' => [str_repeat('x', 4 << 20)];
        yield 'has a wrong proof' => [$greeting($nonce . random_bytes(Protocol::PROOF_SIZE))];
        yield 'has a proof of zeros' => [$greeting(str_repeat("\0", Protocol::NONCE_SIZE + Protocol::PROOF_SIZE))];
        yield 'has a proof by a wrong token' => [Protocol::frame(Protocol::HELLO, 1, Protocol::greeting(random_bytes(Protocol::TOKEN_SIZE), $nonce, Protocol::HELLO, 1, $words))];
        yield 'has a proof by no token' => [Protocol::frame(Protocol::HELLO, 1, Protocol::greeting('', $nonce, Protocol::HELLO, 1, $words))];
        yield 'has half a proof' => [Protocol::frame(Protocol::HELLO, 1, $nonce . random_bytes(10))];
        yield 'has no proof' => [$greeting('')];
        yield 'has nothing but a header' => [Protocol::frame(Protocol::HELLO, 1)];
        yield 'sends a result of a task' => [Protocol::frame(Protocol::RESULTS, 1, str_repeat("\1", 50))];
    }

    #[DataProvider('strangers')]
    public function testAStrangerIsSentAwayAndThePoolIsNotDisturbed(string $words): void
    {
        $pool = $this->pool(2);
        $running = $pool->submit(new Call('sleep', $this->path('begun'), 0.2));
        self::pidIn($this->path('begun'));
        $descriptors = self::openDescriptors();
        $stranger = self::connectTo($pool);
        @fwrite($stranger, $words);
        Eventually::holds(static function () use ($stranger): bool {
            fread($stranger, 1000);

            return feof($stranger);
        }, 'it is sent away');
        fclose($stranger);

        self::assertSame('slept', self::outcome($running));
        self::assertUsable($pool);
        Eventually::holds(static fn(): bool => self::openDescriptors() <= $descriptors + 2, 'its descriptor is closed'); // two for a worker that was started since
    }

    public function testStrangersThatSayNothingOrComeAndGoDoNotDisturbThePool(): void
    {
        $pool = $this->pool(2, maxTasks: 1);
        self::assertUsable($pool);
        $strangers = [];
        for ($i = 0; $i < 100; ++$i) {
            $stranger = self::connectTo($pool);
            if ($i % 2 === 0) {
                $strangers[] = $stranger;
            } else {
                @fwrite($stranger, substr(Protocol::frame(Protocol::HELLO, 1, random_bytes(20)), 0, $i));
                fclose($stranger);
            }
        }
        $futures = array_map(static fn(int $number): Future => $pool->submit(new Call('square', $number)), range(0, 19));

        self::assertSame(array_map(Deeds::square(...), range(0, 19)), self::outcomes($futures), 'by workers that come in between');
        $pool->close();
        foreach ($strangers as $stranger) {
            stream_set_blocking($stranger, true);
            self::assertSame('', fread($stranger, 1), 'it is told nothing');
            self::assertTrue(feof($stranger));
            fclose($stranger);
        }
    }

    /** A stranger that says nothing holds a descriptor for ten seconds. */
    public function testAStrangerThatSaysNothingIsSentAwayInTime(): void
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

    /** Each that was let in would hold a descriptor of this process for ten seconds. */
    public function testOfManyStrangersThatSayNothingOnlySomeAreLetInAndWorkersStillAre(): void
    {
        $pool = $this->pool(2, maxTasks: 1);
        self::assertUsable($pool);
        $address = Strangers::addresses()[0] ?? self::markTestSkipped('The name of the socket can not be found here');
        $strangers = [];
        for ($i = 0; $i < 400; ++$i) {
            $strangers[] = stream_socket_client($address, timeout: 5.0);
        }
        $descriptors = self::openDescriptors();
        for ($number = 0; $number < 20; ++$number) {
            self::assertSame($number ** 2, self::outcome($pool->submit(new Call('square', $number))), 'by a worker that comes after them');
            self::assertLessThan($descriptors + 150, self::openDescriptors());
        }
        array_map(fclose(...), array_filter($strangers, \is_resource(...)));
        Eventually::holds(static fn(): bool => self::openDescriptors() <= $descriptors - 390, 'all are sent away');
    }

    public function testStrangersThatComeAgainAndAgainDoNotKeepWorkersOut(): void
    {
        $pool = $this->pool(2, maxTasks: 1);
        self::assertUsable($pool);
        [$siege, $end] = Strangers::besiege(Strangers::addresses()[0] ?? self::markTestSkipped('The name of the socket can not be found here'), 300);
        $descriptors = self::openDescriptors();
        for ($round = 0; $round < 5; ++$round) {
            self::assertUsable($pool);
            self::assertLessThan($descriptors + 150, self::openDescriptors());
        }
        fclose($end);
        proc_close($siege);
    }

    public function testStrangersThatTakeTheLastDescriptorsHaveToGiveWay(): void
    {
        $outcomes = Host::call(HostPrograms::class . '::resistStrangers', [$this->context()->name], ['sh', '-c', 'ulimit -n 80 && exec "$@"', 'sh']);

        self::assertSame(array_fill(0, 6, 'done'), $outcomes);
    }

    /** @return iterable<string, array{string}> what an impostor says before it gives orders */
    public static function impostures(): iterable
    {
        $token = random_bytes(Protocol::TOKEN_SIZE);

        yield 'nothing' => [''];
        yield 'a welcome by a wrong token' => [Protocol::frame(Protocol::WELCOME, 1, Protocol::welcome($token, ''))];
        yield 'a welcome to the host by a wrong token' => [Protocol::frame(Protocol::WELCOME, 0, Protocol::welcome($token, ''))];
        yield 'a welcome without a proof' => [Protocol::frame(Protocol::WELCOME, 1)];
        yield 'the beginning of a frame of four gigabytes' => ["\xff\xff\xff\xff" . \chr(Protocol::WELCOME) . "\1\0\0\0"];
        yield 'a frame that is shorter than a welcome' => [Protocol::frame(Protocol::STOP, 0)];
    }

    /** Workers come to whoever binds the name of a pool that is gone. */
    #[DataProvider('impostures')]
    public function testAnImpostorWhoHasTheNameOfTheSocketIsToldNoTokenAndObeyedInNothing(string $words): void
    {
        $token = random_bytes(Protocol::TOKEN_SIZE);
        [$ended, $printed, $told] = $this->impostor($token, static fn(): string => $words)->deceive();

        self::assertFileDoesNotExist($this->path('obeyed'));
        self::assertTrue($ended, 'who was deceived goes');
        self::assertSame('', $printed, 'and says nothing');
        self::assertStringNotContainsString($token, $told);
        self::assertNotSame('', $told, 'it has come');
    }

    /** So the orders of the test above are such that would be obeyed. */
    public function testWhoProvesToKnowTheTokenIsObeyedAndNotToldItEither(): void
    {
        $token = random_bytes(Protocol::TOKEN_SIZE);
        [$ended, , $told] = $this->impostor($token, static function (string $greeting) use ($token): string {
            /** @var array{id: int} $header */
            $header = unpack('Vid', $greeting, 5);

            return Protocol::frame(Protocol::WELCOME, $header['id'], Protocol::welcome($token, substr($greeting, 9, Protocol::NONCE_SIZE)));
        })->deceive();

        self::assertFileExists($this->path('obeyed'));
        self::assertFalse($ended);
        self::assertStringNotContainsString($token, $told);
    }

    public function testTheExceptionOfAStartThatFailsHasNoSecretsForStrangersInItsTrace(): void
    {
        $pool = $this->pool(1);
        $directory = (string) getcwd();
        mkdir($this->path('gone'));
        chdir($this->path('gone'));
        rmdir($this->path('gone'));
        $before = ini_set('zend.exception_ignore_args', '0');
        try {
            $outcome = self::outcome($pool->submit(new Call('square', 1)));
        } finally {
            ini_set('zend.exception_ignore_args', (string) $before);
            chdir($directory);
        }

        self::assertInstanceOf(WorkerStartException::class, $outcome);
        $names = $values = [];
        foreach ($outcome->getTrace() as $frame) {
            $arguments = $frame['args'] ?? [];
            array_walk_recursive($arguments, static function (mixed $value, int|string $name) use (&$names, &$values): void {
                $names[] = $name;
                $values[] = \is_object($value) ? $value::class : $value;
            });
        }
        self::assertNotContains('key', $names);
        self::assertNotContains('token', $names);
        self::assertContains(\SensitiveParameterValue::class, $values, 'of arguments that the trace has');
    }

    /** @param \Closure(string): string $answer */
    private function impostor(string $token, \Closure $answer): Impostor
    {
        return new Impostor(match ($this->context()) {
            WorkerContext::Process => null,
            WorkerContext::Fork => 'fork',
            WorkerContext::Thread => 'thread',
        }, $token, $answer, $this->path('obeyed'));
    }

    /** @return resource that does not block, on the other side of the pool's socket */
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
