<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Amp\ByteStream\StreamException;
use Amp\Socket\BindContext;
use Amp\Socket\Certificate;
use Amp\Socket\ResourceServerSocket;
use Amp\Socket\ServerSocket;
use Amp\Socket\ServerTlsContext;
use Amp\Socket\Socket;
use Revolt\EventLoop;
use Spindle\Tests\Postgres\Certificates;

use function Amp\Socket\listen;

/** A server whose connections follow a script: the closure gets each accepted connection. */
final class ScriptedServer
{
    private readonly ResourceServerSocket|ServerSocket $listener;

    /** Number of accepted connections. */
    public int $accepted = 0;

    /** @var list<string> heads of the requests that {@see readRequest()} has read */
    public array $heads = [];

    /** @param \Closure(Socket, self): void $script runs in a fiber; the connection is closed after it */
    public function __construct(\Closure $script, string $address = '127.0.0.1:0', ?BindContext $context = null)
    {
        $this->listener = $listener = listen($address, $context);
        $weak = \WeakReference::create($this);
        EventLoop::queue(static function () use ($listener, $script, $weak): void {
            while (($socket = $listener->accept()) !== null) {
                $self = $weak->get();
                if ($self === null) {
                    return;
                }
                ++$self->accepted;
                EventLoop::queue(static function () use ($script, $socket, $self): void {
                    try {
                        $script($socket, $self);
                    } catch (StreamException) {
                        // The client has closed the connection.
                    } finally {
                        $socket->close();
                    }
                });
            }
        });
    }

    /** Returns a server for TLS 1.3 that refuses client certificates of other authorities. */
    public static function refusingCertificates(Certificates $certificates): self
    {
        $tls = (new ServerTlsContext())
            ->withDefaultCertificate(new Certificate(...$certificates->forServer('127.0.0.1')))
            ->withCaFile($certificates->authority)
            ->withPeerVerification()
            ->withMinimumVersion(ServerTlsContext::TLSv1_3);
        $script = static fn(Socket $socket) => $socket->setupTls();

        return new self($script, context: (new BindContext())->withTlsContext($tls));
    }

    public function url(string $target = '/'): string
    {
        return "http://{$this->address()}{$target}";
    }

    public function address(): string
    {
        return $this->listener->getAddress()->toString();
    }

    public function close(): void
    {
        $this->listener->close();
    }

    /** Returns a script that answers each request on a connection with these bytes. */
    public static function answering(string $bytes): \Closure
    {
        return static function (Socket $socket, self $server) use ($bytes): void {
            while ($server->readRequest($socket) !== null) {
                $socket->write($bytes);
            }
        };
    }

    /** @return string|null the head and the body as far as Content-Length says; null at the end of the connection */
    public function readRequest(Socket $socket): ?string
    {
        $bytes = '';
        while (!str_contains($bytes, "\r\n\r\n")) {
            $piece = $socket->read();
            if ($piece === null) {
                return null;
            }
            $bytes .= $piece;
        }
        [$head, $body] = explode("\r\n\r\n", $bytes, 2);
        $this->heads[] = $head;
        $length = preg_match('/^Content-Length: (\d+)$/mi', str_replace("\r", '', $head), $match) === 1
            && !str_contains($head, 'Expect:') ? (int) $match[1] : 0;
        while (\strlen($body) < $length && ($piece = $socket->read()) !== null) {
            $body .= $piece;
        }

        return "{$head}\r\n\r\n{$body}";
    }
}
