<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\Http\ServerProcess;
use Spindle\Tests\Http\StartsServers;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

/** Uploads to a full disk. */
final class FullDiskTest extends TidyTestCase
{
    use OwnDirectory;
    use StartsServers;

    #[TestWith(['trap "" XFSZ; ulimit -f 200'])]
    #[TestWith(['ulimit -f 200'])]
    public function testAnUploadToAFullDiskIsAnsweredWithAnError(string $limits): void
    {
        $this->refusesLargeUploads(
            $this->startServer(limits: $limits, php: ['-d', "sys_temp_dir={$this->path()}"]),
            $this->path(),
        );
    }

    public function testAnUploadWithoutADirectoryIsAnsweredWithAnError(): void
    {
        $this->refusesLargeUploads(
            $this->startServer(php: ['-d', "sys_temp_dir={$this->path('missing')}"]),
            $this->path('missing'),
        );
    }

    private function refusesLargeUploads(ServerProcess $server, string $directory): void
    {
        self::assertSame('1000', self::upload($server, 1_000)->body, 'what is small needs no file');
        $descriptors = $server->descriptors();
        for ($i = 0; $i < 3; ++$i) {
            self::assertSame(507, self::upload($server, 2_000_000)->status);
        }
        Eventually::holds(
            static fn(): bool => str_contains(
                implode($server->log()),
                "Could not store an uploaded file in {$directory}: ",
            ),
            'the log says why',
        );

        self::assertSame('1000', self::upload($server, 1_000)->body);
        Eventually::holds(static fn(): bool => $server->descriptors() <= $descriptors, 'no file is left open');
        self::assertSame([], Text::names($this->path()), 'nor on the disk');
    }

    private static function upload(ServerProcess $server, int $size): ReceivedResponse
    {
        $body = "--mark\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
            . str_repeat('x', $size)
            . "\r\n--mark--\r\n";
        $client = $server->client();
        $client->sendConcurrently(
            "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=mark\r\nContent-Length: "
                . \strlen($body)
                . "\r\n\r\n{$body}",
        );
        $response = $client->response();
        $client->close();

        return $response;
    }
}
