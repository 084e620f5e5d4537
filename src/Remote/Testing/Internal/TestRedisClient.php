<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Internal\Warnings;
use Spindle\Remote\Testing\RedisException;

/**
 * A blocking connection for single commands. It speaks RESP2.
 *
 * @see https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
final class TestRedisClient
{
    /** @var resource */
    private readonly mixed $stream;

    private string $command = 'CONNECT';

    /**
     * @param float $timeout in seconds, for the connection and for each answer
     *
     * @throws RedisException
     */
    public function __construct(string $socket, #[\SensitiveParameter] string $password, float $timeout)
    {
        [$stream, $warning] = Warnings::of(
            static fn() => stream_socket_client("unix://{$socket}", $code, $message, $timeout),
        );
        if ($stream === false) {
            throw RedisException::noAnswer($this->command, Warnings::clause($warning));
        }
        stream_set_timeout($stream, (int) $timeout, (int) (fmod($timeout, 1.0) * 1e6));
        $this->stream = $stream;
        $this->ask('AUTH', $password);
    }

    /**
     * @return mixed strings, integers, null, or lists of them
     *
     * @throws RedisException
     */
    public function ask(string $command, #[\SensitiveParameter] string ...$words): mixed
    {
        $this->command = $command;
        $request = '*' . (1 + \count($words)) . "\r\n";
        foreach ([$command, ...$words] as $word) {
            $request .= '$' . \strlen($word) . "\r\n{$word}\r\n";
        }
        for ($sent = 0; $sent < \strlen($request); $sent += $written) {
            $written = @fwrite($this->stream, substr($request, $sent));
            if ($written === false || $written === 0) {
                break; // an answer from before the connection was closed may be readable
            }
        }

        return $this->read();
    }

    /** @throws RedisException */
    private function read(): mixed
    {
        $line = fgets($this->stream);
        if ($line === false || !str_ends_with($line, "\r\n")) {
            throw $this->ended();
        }
        $rest = substr($line, 1, -2);

        return match ($line[0]) {
            '+' => $rest,
            '-' => throw RedisException::refused($this->command, $rest),
            ':' => (int) $rest,
            '$' => $rest === '-1' ? null : $this->bytes((int) $rest),
            '*' => $rest === '-1' ? null : $this->items((int) $rest),
            default => throw RedisException::noAnswer($this->command, 'it does not speak RESP2'),
        };
    }

    /** @throws RedisException */
    private function bytes(int $count): string
    {
        $bytes = (string) stream_get_contents($this->stream, $count + 2);

        return \strlen($bytes) === $count + 2 ? substr($bytes, 0, -2) : throw $this->ended();
    }

    /**
     * @return list<mixed>
     *
     * @throws RedisException
     */
    private function items(int $count): array
    {
        $items = [];
        while (\count($items) < $count) {
            $items[] = $this->read();
        }

        return $items;
    }

    private function ended(): RedisException
    {
        return RedisException::noAnswer(
            $this->command,
            stream_get_meta_data($this->stream)['timed_out'] ? 'it takes too long' : 'the connection was closed',
        );
    }
}
