<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\HttpServerOptions;
use Spindle\Http\ListenException;
use Spindle\Internal\Network\CloseOnExec;
use Spindle\Internal\Network\KeepAlive;
use Spindle\Internal\Warnings;

final class Listeners
{
    /** Maximum connections that the kernel queues for a busy server, unless net.core.somaxconn is lower. */
    private const BACKLOG = 4_096;

    /** Maximum port. PHP would treat 65,536 as port 0, which stands for any free port. */
    private const MAX_PORT = 65_535;

    /**
     * @param list<string> $addresses "127.0.0.1:8080", "[::1]:8080", "tls://0.0.0.0:8443", "unix:///run/app.sock"
     *
     * @return array<string, resource> the sockets by address, with the assigned port in place of port 0
     *
     * @throws ListenException when a socket can't be opened, or the limit of open files is too low; then no socket
     *         stays open
     */
    public static function open(array $addresses, HttpServerOptions $options): array
    {
        $sockets = [];
        try {
            foreach ($addresses as $address) {
                [$actualAddress, $socket] = self::openOne($address, $options);
                $sockets[$actualAddress] = $socket;
            }
            self::checkDescriptors($addresses);

            return $sockets;
        } catch (ListenException $exception) {
            self::close($sockets);
            throw $exception;
        }
    }

    /**
     * @param list<string> $addresses
     *
     * @throws ListenException when the limit of open files is too low to accept connections
     */
    public static function checkDescriptors(array $addresses): void
    {
        $missing = SpareDescriptors::missing();
        if ($missing > 0) {
            $limit = \function_exists('posix_getrlimit') ? posix_getrlimit()['soft openfiles'] ?? null : null;
            throw ListenException::tooFewDescriptors($addresses, \is_int($limit) ? $limit : null, $missing);
        }
    }

    /**
     * Closes the sockets that are still open, and removes the files of Unix sockets.
     *
     * @param array<string, resource> $sockets by address
     */
    public static function close(array $sockets): void
    {
        foreach (array_filter($sockets, \is_resource(...)) as $address => $socket) {
            self::removeSocketFile($address);
            fclose($socket);
        }
    }

    /** Removes the file of an open Unix socket, unless another server has replaced the file. */
    public static function removeSocketFile(string $address): void
    {
        if (str_starts_with($address, 'unix://')) {
            UnixSocketFile::remove(substr($address, \strlen('unix://')));
        }
    }

    /** @return array{string, resource} */
    private static function openOne(string $address, HttpServerOptions $options): array
    {
        [$scheme, $rest] = preg_match('~^(tcp|tls|unix)://(.+)$~Ds', $address, $match) === 1
            ? [$match[1], $match[2]]
            : ['tcp', $address];
        if (
            $scheme !== 'unix'
            && (
                preg_match('/^(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]\/]+):(\d{1,5})$/D', $rest, $match) !== 1
                || (int) $match[1] > self::MAX_PORT
            )
        ) {
            throw ListenException::malformed($address);
        }
        if ($scheme === 'unix') {
            UnixSocketFile::prepare($rest, $address);
        }
        $context = stream_context_create([
            'socket' => ['backlog' => self::BACKLOG, 'tcp_nodelay' => $scheme !== 'unix', 'ipv6_v6only' => true],
            'ssl' => $scheme === 'tls' ? Certificates::context($options, $address) : [],
        ]);
        [$socket, $warning] = Warnings::of(
            static fn() => CloseOnExec::call(static fn() => stream_socket_server(
                ($scheme === 'unix' ? 'unix' : 'tcp') . "://{$rest}",
                $code,
                $message,
                \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN,
                $context,
            )),
        );
        if ($socket === false) {
            throw ListenException::because($address, Warnings::socketReason($warning));
        }
        stream_set_blocking($socket, false);
        $scheme === 'unix' ? UnixSocketFile::recordCreated($rest) : KeepAlive::set($socket, 15, 4);

        return [
            "{$scheme}://" . ($scheme === 'unix' ? $rest : (string) stream_socket_get_name($socket, false)),
            $socket,
        ];
    }
}
