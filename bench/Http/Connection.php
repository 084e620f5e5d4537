<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** A persistent connection that waits for the answer to each request. */
final readonly class Connection
{
    /** Timeout for connecting and for each read, in seconds. */
    private const TIMEOUT = 10;

    /** @var resource */
    private mixed $stream;

    /** @throws \RuntimeException when no server listens */
    public function __construct(private Site $site)
    {
        $tls = ['cafile' => $site->certificate, 'peer_name' => Site::HOST];
        $context = stream_context_create($site->isTls() ? ['ssl' => $tls] : []);
        $stream = @stream_socket_client(
            ($site->isTls() ? 'tls' : 'tcp') . "://{$site->address()}",
            $code,
            $message,
            self::TIMEOUT,
            \STREAM_CLIENT_CONNECT,
            $context,
        );
        $this->stream = $stream !== false
            ? $stream
            : throw new \RuntimeException("Could not connect: {$message}");
        stream_set_timeout($stream, self::TIMEOUT);
    }

    /** Returns whether the answer is successful and has the expected body. */
    public function isAnswered(int $number): bool
    {
        $request = str_replace(Work::NUMBER, (string) $number, $this->site->work->request($this->site->address()));
        if (@fwrite($this->stream, $request) !== \strlen($request)) {
            return false;
        }

        return str_starts_with($this->line(), 'HTTP/1.1 200') && $this->body() === $this->site->work->answer($number);
    }

    private function body(): string
    {
        $length = null;
        $isGzip = false;
        while (($line = $this->line()) !== '') {
            $isGzip = $isGzip || strcasecmp($line, 'Content-Encoding: gzip') === 0;
            $length = preg_match('/^Content-Length: *(\d+)$/i', $line, $match) === 1 ? (int) $match[1] : $length;
        }
        if ($length !== null) {
            return (string) stream_get_contents($this->stream, $length);
        }
        $body = '';
        while (($size = (int) hexdec($this->line())) > 0) {
            $body .= stream_get_contents($this->stream, $size);
            $this->line();
        }
        $this->line();

        return $isGzip ? (string) gzdecode($body) : $body;
    }

    private function line(): string
    {
        return rtrim((string) fgets($this->stream), "\r\n");
    }
}
