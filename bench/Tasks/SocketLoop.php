<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** The lower bound for sending values to another process and back: one fork, one socket pair, one value at a time. */
final readonly class SocketLoop implements TaskPool
{
    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        [$here, $there] = Forks::socketPair();
        Forks::start(static function () use ($task, $here, $there): void {
            fclose($here);
            while (self::receive($there, $input)) {
                self::send($there, $task($input));
            }
        });
        fclose($there);
        foreach ($inputs as $input) {
            self::send($here, $input);
            self::receive($here, $result);
            $take($result);
        }
        fclose($here);
        pcntl_wait($status);
    }

    public function close(): void {}

    /** @param resource $stream */
    private static function send(mixed $stream, mixed $value): void
    {
        $bytes = serialize($value);
        Forks::write($stream, pack('V', \strlen($bytes)));
        Forks::write($stream, $bytes);
    }

    /** @param resource $stream */
    private static function receive(mixed $stream, mixed &$value): bool
    {
        $head = unpack('Vlength', str_pad(Forks::read($stream, 4), 4, "\0"));
        $length = $head === false ? 0 : $head['length'];
        $value = \is_int($length) && $length > 0 ? unserialize(Forks::read($stream, $length)) : null;

        return $length > 0;
    }
}
