<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use PHPUnit\Framework\Assert;

use function Amp\delay;

/** A client's connection to a {@see FakeServer}, as the server's script sees it. Reads and writes suspend the fiber. */
final class FakeConnection
{
    public const STARTUP = 196_608; // protocol 3.0
    public const CANCEL_REQUEST = 80_877_102;
    public const SSL_REQUEST = 80_877_103;
    public const GSSENC_REQUEST = 80_877_104;

    private string $unread = '';

    /** @param int $number 0 for the first client of the server */
    public function __construct(public readonly Wire $wire, public readonly int $number) {}

    /**
     * Reads a client's first message, which has a code but no type byte.
     *
     * @return array{int, string} the code, such as SSL_REQUEST, and the payload
     *
     * @throws HungUpException
     */
    public function readRequest(): array
    {
        $length = self::int($this->readBytes(4));
        $code = self::int($this->readBytes(4));

        return [$code, $this->readBytes($length - 8)];
    }

    /**
     * Declines all requests for encryption, and reads the StartupMessage.
     *
     * @return array<string, string> the parameters of the StartupMessage, such as user
     *
     * @throws HungUpException
     */
    public function readStartup(): array
    {
        [$code, $payload] = $this->readRequest();
        while ($code === self::SSL_REQUEST || $code === self::GSSENC_REQUEST) {
            $this->write('N');
            [$code, $payload] = $this->readRequest();
        }
        Assert::assertSame(self::STARTUP, $code, 'what the client asks for');
        preg_match_all('/([^\0]+)\0([^\0]*)\0/', $payload, $pairs);

        return array_combine($pairs[1], $pairs[2]);
    }

    /**
     * Accepts the client without authentication.
     *
     * @return array<string, string> the parameters of its StartupMessage
     *
     * @throws HungUpException
     */
    public function welcome(int $pid = 4711, int $secret = 815): array
    {
        $parameters = $this->readStartup();
        $this->write(Message::welcome($pid, $secret));

        return $parameters;
    }

    /**
     * @return array{string, string} type byte and payload of the next message
     *
     * @throws HungUpException
     */
    public function read(): array
    {
        $type = $this->readBytes(1);

        return [$type, $this->readBytes(self::int($this->readBytes(4)) - 4)];
    }

    /**
     * Reads messages up to the first one of this type, such as 'S' (Sync).
     *
     * @return list<array{string, string}> all of them, including the last one
     *
     * @throws HungUpException
     */
    public function readUntil(string $type): array
    {
        $messages = [];
        do {
            $messages[] = $message = $this->read();
        } while ($message[0] !== $type);

        return $messages;
    }

    /**
     * @return string payload of the next message, which must have this type
     *
     * @throws HungUpException
     */
    public function expect(string $type): string
    {
        [$found, $payload] = $this->read();
        Assert::assertSame($type, $found, 'the type of the message');

        return $payload;
    }

    /** @throws HungUpException when the client closes the connection before all bytes have arrived */
    public function readBytes(int $length): string
    {
        while (\strlen($this->unread) < $length) {
            $bytes = $this->wire->read();
            if ($bytes === '') {
                throw new HungUpException();
            }
            $this->unread .= $bytes;
        }
        $bytes = substr($this->unread, 0, $length);
        $this->unread = substr($this->unread, $length);

        return $bytes;
    }

    /** Reads all bytes until the client closes the connection. */
    public function readToEnd(): string
    {
        $all = $this->unread;
        $this->unread = '';
        while (($bytes = $this->wire->read()) !== '') {
            $all .= $bytes;
        }

        return $all;
    }

    /** @throws HungUpException */
    public function write(string ...$messages): void
    {
        if (!$this->wire->write(implode('', $messages))) {
            throw new HungUpException();
        }
    }

    /**
     * Writes pieces of `$size` bytes, with a turn of the event loop after each piece.
     *
     * @throws HungUpException
     */
    public function writeInPieces(string $bytes, int $size = 1): void
    {
        foreach (str_split($bytes, max(1, $size)) as $piece) {
            $this->write($piece);
            delay(0);
        }
    }

    /** Accepts an SSL_REQUEST and performs the TLS handshake. Returns false when the handshake fails. */
    public function startTls(string $certificate, string $key, ?string $authority = null): bool
    {
        $this->write('S');

        return $this->wire->startTls($certificate, $key, $authority);
    }

    /** Suspends, without reading or writing, until the server is stopped. */
    public function stall(): void
    {
        $this->wire->stall();
    }

    public function close(): void
    {
        $this->wire->close();
    }

    /** Closes the connection with a TCP reset: the client gets ECONNRESET. */
    public function reset(): void
    {
        $this->wire->reset();
    }

    private static function int(string $bytes): int
    {
        $number = unpack('N', $bytes);
        \assert($number !== false && \is_int($number[1]));

        return $number[1];
    }
}
