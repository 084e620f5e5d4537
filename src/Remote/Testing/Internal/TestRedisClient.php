<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Internal\Warnings;
use Spindle\Remote\Testing\TemporaryRedisException;

/**
 * A blocking connection that sends one command at a time in the protocol RESP2.
 *
 * @see https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
final class TestRedisClient
{
    /** @var resource */
    private readonly mixed $stream;

    private string $command = 'CONNECT';

    /**
     * @param string $socket  path of the Unix socket
     * @param float  $timeout maximum seconds to connect, and to wait for each answer
     *
     * @throws TemporaryRedisException
     */
    public function __construct(string $socket, #[\SensitiveParameter] string $password, float $timeout)
    {
        [$stream, $warning] = Warnings::of(
            static fn() => stream_socket_client("unix://{$socket}", $code, $message, $timeout),
        );
        if ($stream === false) {
            throw TemporaryRedisException::noAnswer($this->command, Warnings::socketReason($warning));
        }
        stream_set_timeout($stream, (int) $timeout, (int) (fmod($timeout, 1.0) * 1e6));
        $this->stream = $stream;
        $this->call('AUTH', $password);
    }

    /**
     * @return mixed a string, an integer, null, or a list of these
     *
     * @throws TemporaryRedisException
     */
    public function call(string $command, #[\SensitiveParameter] string ...$arguments): mixed
    {
        $this->command = $command;
        $request = '*' . (1 + \count($arguments)) . "\r\n";
        foreach ([$command, ...$arguments] as $argument) {
            $request .= '$' . \strlen($argument) . "\r\n{$argument}\r\n";
        }
        for ($sent = 0; $sent < \strlen($request); $sent += $written) {
            $written = Warnings::write($this->stream, substr($request, $sent));
            if ($written === false || $written === 0) {
                break; // closed by the server, perhaps after an error, or the time limit is over
            }
        }

        return $this->read();
    }

    private function read(): mixed
    {
        $line = fgets($this->stream);
        if ($line === false || !str_ends_with($line, "\r\n")) {
            throw $this->closed();
        }
        $rest = substr($line, 1, -2);

        return match ($line[0]) {
            '+' => $rest,
            '-' => throw TemporaryRedisException::errorReply($this->command, $rest),
            ':' => (int) $rest,
            '$' => $rest === '-1' ? null : $this->bytes((int) $rest),
            '*' => $rest === '-1' ? null : $this->items((int) $rest),
            default => throw TemporaryRedisException::malformedAnswer($this->command),
        };
    }

    private function bytes(int $count): string
    {
        $bytes = (string) stream_get_contents($this->stream, $count + 2);

        return \strlen($bytes) === $count + 2 ? substr($bytes, 0, -2) : throw $this->closed();
    }

    /** @return list<mixed> */
    private function items(int $count): array
    {
        $items = [];
        while (\count($items) < $count) {
            $items[] = $this->read();
        }

        return $items;
    }

    private function closed(): TemporaryRedisException
    {
        $isTimedOut = stream_get_meta_data($this->stream)['timed_out'];

        return TemporaryRedisException::noAnswer(
            $this->command,
            $isTimedOut ? 'the time limit was exceeded' : 'the connection was closed',
        );
    }
}
