<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Opens streams, and fails with the reason if that is not possible. */
final class Streams
{
    /** @return resource */
    public static function open(string $path, string $mode): mixed
    {
        $stream = fopen($path, $mode);

        return $stream !== false ? $stream : throw new \RuntimeException("{$path} can't be opened");
    }

    /** @return array{resource, resource} */
    public static function pair(): array
    {
        $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \assert($pair !== false && isset($pair[0], $pair[1]));

        return [$pair[0], $pair[1]];
    }

    /** Returns whether a server accepts a connection at an address such as `tcp://127.0.0.1:80`. */
    public static function accepts(string $address): bool
    {
        return @stream_socket_client($address) !== false;
    }

    /** Returns the host and port of an address of the loopback interface at which nothing listens. */
    public static function unusedAddress(): string
    {
        $socket = self::server();
        $address = (string) stream_socket_get_name($socket, false);
        fclose($socket);

        return $address;
    }

    /** @return resource a listening socket */
    public static function server(): mixed
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');

        return $server !== false ? $server : throw new \RuntimeException('No socket can listen');
    }
}
