<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Sapi;

use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Sapi\ServerVariables;
use Spindle\Http\Internal\Sapi\UploadedFiles;

final class ServerVariablesTest extends TestCase
{
    public function testARequestIsMadeOfWhatTheServerSays(): void
    {
        $head = (new ServerVariables([
            'REQUEST_METHOD' => 'PUT',
            'REQUEST_URI' => '/a?b=c',
            'SERVER_PROTOCOL' => 'HTTP/1.0',
            'HTTP_HOST' => 'example.org',
            'HTTP_X_SOME' => 'thing',
            'CONTENT_TYPE' => 'text/plain',
            'HTTP_CONTENT_TYPE' => 'text/plain',
            'CONTENT_LENGTH' => '3',
            'PATH' => '/bin',
            'argc' => 1,
        ]))->head();

        self::assertSame(
            ['PUT', '/a?b=c', '1.0', 'example.org', 3],
            [$head->method, $head->target, $head->version, $head->host, $head->length],
        );
        self::assertSame(
            "Host: example.org\r\nX-Some: thing\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n",
            $head->fields,
        );
    }

    public function testVariablesThatAreNoValidHeadersAreLeftOut(): void
    {
        $head = (new ServerVariables(
            [
                'HTTP_GOOD' => 'a',
                'HTTP_BAD' => "a\r\nX: y",
                'CONTENT_TYPE' => '',
                'CONTENT_LENGTH' => '',
                'HTTP_PROXY' => '',
                'HTTP_B()' => 'a',
            ],
        ))->head();

        self::assertSame(
            ["Good: a\r\n", 0, 'GET', '/', '1.1'],
            [$head->fields, $head->length, $head->method, $head->target, $head->version],
        );
    }

    public function testAHeaderMayBeEmpty(): void
    {
        self::assertSame("X-Empty: \r\n", (new ServerVariables(['HTTP_X_EMPTY' => '']))->head()->fields);
    }

    public function testAMalformedHostIsRefused(): void
    {
        foreach (['localhost/admin?', 'x?', 'x#', 'a b', 'user@a', '[1:2:3]', 'a:b', "a\n"] as $host) {
            try {
                (new ServerVariables(['HTTP_HOST' => $host]))->checkHost();
                self::fail("{$host} is accepted");
            } catch (HttpException $refusal) {
                self::assertSame([400, 'The Host field is malformed'], [$refusal->status, $refusal->getMessage()]);
            }
        }
    }

    public function testAHostMayHaveAPortOrBeMissing(): void
    {
        $this->expectNotToPerformAssertions();
        foreach (['', 'localhost', 'example.org:8080', '[::1]:80'] as $host) {
            (new ServerVariables(['HTTP_HOST' => $host]))->checkHost();
        }
        (new ServerVariables([]))->checkHost();
    }

    public function testTheConnectionHasTheAddressesOfClientAndServer(): void
    {
        $peer = (new ServerVariables(
            [
                'REMOTE_ADDR' => '::1',
                'REMOTE_PORT' => '5',
                'SERVER_ADDR' => '192.0.2.1',
                'SERVER_PORT' => 443,
                'HTTPS' => 'on',
            ],
        ))->connection();
        $plain = (new ServerVariables(['HTTPS' => 'off', 'REMOTE_ADDR' => 'unix:']))->connection();

        self::assertSame(
            ['::1', 5, '192.0.2.1', 443, true],
            [$peer->address, $peer->port, $peer->localAddress, $peer->localPort, $peer->secure],
        );
        self::assertSame(['unix:', 0, false], [$plain->address, $plain->port, $plain->secure]);
    }

    public function testTheTimeIsWhenTheRequestCame(): void
    {
        self::assertSame(12.5, (new ServerVariables(['REQUEST_TIME_FLOAT' => 12.5]))->requestTime());
        self::assertEqualsWithDelta(microtime(true), (new ServerVariables([]))->requestTime(), 60);
    }

    public function testFilesAreATreeByTheirNames(): void
    {
        $files = UploadedFiles::of([
            'one' => [
                'name' => 'a.txt',
                'full_path' => 'dir/a.txt',
                'type' => 'text/plain',
                'tmp_name' => '/tmp/x',
                'error' => 0,
                'size' => 3,
            ],
            'many' => [
                'name' => ['x' => ['b', '']], 'full_path' => ['x' => ['b', '']], 'type' => ['x' => ['', '']],
                'tmp_name' => ['x' => ['/tmp/y', '']], 'error' => ['x' => [0, 4]], 'size' => ['x' => [1, 0]],
            ],
        ]);

        self::assertIsArray($files['many']);
        self::assertIsArray($files['many']['x']);
        self::assertSame([0, 1], array_keys($files['many']['x']));
        self::assertSame(['a.txt', 'text/plain', 3, 0], self::told($files['one']));
        self::assertSame(['b', null, 1, 0], self::told($files['many']['x'][0]));
        self::assertSame([null, null, 0, 4], self::told($files['many']['x'][1]));
    }

    /** @return list<mixed> */
    private static function told(mixed $file): array
    {
        self::assertInstanceOf(\Psr\Http\Message\UploadedFileInterface::class, $file);

        return [$file->getClientFilename(), $file->getClientMediaType(), $file->getSize(), $file->getError()];
    }
}
