<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerStartException;

/** Tests a process that pretends to be the pool of a worker. */
trait ImpostorFaults
{
    /** @return iterable<string, array{string}> bytes that an impostor sends before its orders */
    public static function impostures(): iterable
    {
        $secret = random_bytes(WorkerProtocol::SECRET_BYTES);

        yield 'nothing' => [''];
        yield 'a welcome by a wrong secret' => [
            WorkerProtocol::frame(WorkerProtocol::WELCOME, 1, WorkerProtocol::welcome($secret, '')),
        ];
        yield 'a welcome to the host by a wrong secret' => [
            WorkerProtocol::frame(WorkerProtocol::WELCOME, 0, WorkerProtocol::welcome($secret, '')),
        ];
        yield 'a welcome without a proof' => [WorkerProtocol::frame(WorkerProtocol::WELCOME, 1)];
        yield 'the beginning of a frame of four gigabytes' => [
            "\xff\xff\xff\xff" . \chr(WorkerProtocol::WELCOME) . "\1\0\0\0",
        ];
        yield 'a frame that is shorter than a welcome' => [WorkerProtocol::frame(WorkerProtocol::STOP, 0)];
    }

    /** Workers connect to any process that binds the name of a pool that is gone. */
    #[DataProvider('impostures')]
    public function testAnImpostorWithTheSocketNameGetsNoSecretAndIsNotObeyed(string $words): void
    {
        $secret = random_bytes(WorkerProtocol::SECRET_BYTES);
        [$ended, $printed, $told] = $this->impostor($secret, static fn(): string => $words)->deceive();

        self::assertFileDoesNotExist($this->path('obeyed'));
        self::assertTrue($ended, 'who was deceived goes');
        self::assertSame('', $printed, 'and says nothing');
        self::assertStringNotContainsString($secret, $told);
        self::assertNotSame('', $told, 'it has come');
    }

    /** Shows that a worker would obey the orders of the test above with the right secret. */
    public function testAProcessThatProvesTheSecretIsObeyedWithoutReceivingIt(): void
    {
        $secret = random_bytes(WorkerProtocol::SECRET_BYTES);
        [$ended, , $told] = $this->impostor($secret, static function (string $greeting) use ($secret): string {
            /** @var array{id: int} $header */
            $header = unpack('Vid', $greeting, 5);

            return WorkerProtocol::frame(
                WorkerProtocol::WELCOME,
                $header['id'],
                WorkerProtocol::welcome($secret, substr($greeting, 9, WorkerProtocol::NONCE_BYTES)),
            );
        })->deceive();

        self::assertFileExists($this->path('obeyed'));
        self::assertFalse($ended);
        self::assertStringNotContainsString($secret, $told);
    }

    public function testTheTraceOfAFailedStartContainsNoSecrets(): void
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
            array_walk_recursive(
                $arguments,
                static function (mixed $value, int|string $name) use (&$names, &$values): void {
                    $names[] = $name;
                    $values[] = \is_object($value) ? $value::class : $value;
                },
            );
        }
        self::assertNotContains('key', $names);
        self::assertNotContains('secret', $names);
        self::assertContains(\SensitiveParameterValue::class, $values, 'of arguments that the trace has');
    }

    /** @param \Closure(string): string $answer */
    private function impostor(string $secret, \Closure $answer): Impostor
    {
        return new Impostor(match ($this->context()) {
            WorkerContext::Process => null,
            WorkerContext::Fork => 'fork',
            WorkerContext::Thread => 'thread',
        }, $secret, $answer, $this->path('obeyed'));
    }
}
