<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\UploadedFileInterface;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;

use function Amp\delay;

/** The code of a response body can use the request until the code has ended, also if the client leaves before. */
final class UnfinishedResponseTest extends HttpServerTestCase
{
    private const FORM = "--m\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ncontent\r\n"
        . "--m\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nvalue\r\n--m--\r\n";

    /** The uploaded file and the fields that the generator saw in its `finally` block, or the message of a failure. */
    private mixed $seen = null;

    private ?UploadedFileInterface $file = null;

    private int $pieces = 0;

    #[TestWith(['events', 'client'])]
    #[TestWith(['events', 'server'])]
    #[TestWith(['short pieces', 'client'])]
    #[TestWith(['long pieces', 'client'])]
    public function testAGeneratorCanUseTheRequestWhileItEnds(string $kind, string $ends): void
    {
        $server = $this->serve(fn(ServerRequestInterface $request): Response => $kind === 'events'
            ? Response::serverSentEvents($this->work($request, 'event'))
            : Response::stream($this->work($request, $kind === 'long pieces' ? str_repeat('a', 1 << 20) : 'a')));
        $client = $this->client();
        $client->sendConcurrently("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=m\r\n"
            . 'Content-Length: ' . \strlen(self::FORM) . "\r\n\r\n" . self::FORM);
        $kind === 'long pieces'
            ? Eventually::standsStill(fn(): int => $this->pieces, 'the generator waits for the client')
            : Eventually::holds(fn(): bool => $this->pieces > 0, 'the generator runs');
        $closing = $ends === 'server' ? Async::run(static fn() => $server->close()) : null;
        $ends === 'client' ? $client->close() : null;
        Eventually::holds(fn(): bool => $this->seen !== null, 'the generator has ended');
        $client->close();
        $closing?->await();

        self::assertSame(['content', ['field' => 'value']], $this->seen);
        Eventually::holds(fn(): bool => $this->isReleased(), 'the file is closed');
    }

    /** @return \Generator<string> */
    private function work(ServerRequestInterface $request, string $piece): \Generator
    {
        $file = $request->getUploadedFiles()['file'] ?? null;
        \assert($file instanceof UploadedFileInterface);
        $this->file = $file;
        try {
            for (;;) {
                ++$this->pieces;
                yield $piece;
                delay(0.005);
            }
        } finally {
            delay(0.01);
            try {
                $this->seen = [(string) $file->getStream(), $request->getParsedBody()];
            } catch (\Throwable $failure) {
                $this->seen = $failure->getMessage();
            }
        }
    }

    private function isReleased(): bool
    {
        try {
            $this->file?->getStream();
        } catch (\RuntimeException) {
            return true;
        }

        return false;
    }
}
