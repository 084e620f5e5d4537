<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\UploadedFileInterface;
use Spindle\Http\Client\FormFile;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Response;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerPool;

/** Messages that refer to a connection or file can not be copied, and do not show the secrets of the request. */
final class SerializedMessagesTest extends TestCase
{
    use EndsInTime;
    use ServesHttp;

    private ?HttpClient $httpClient = null;

    protected function tearDown(): void
    {
        $this->httpClient?->kill();
    }

    #[DataProvider('encodings')]
    public function testAResponseIsNeitherSerializedNorShownWithSecrets(string $encoding, string $contents): void
    {
        $headers = $encoding === '' ? [] : ['Content-Encoding' => $encoding];
        $response = $this->exchange(new Response(200, $headers, $contents), ['Authorization' => 'Bearer secret']);
        self::assertSame('hello', (string) $response->getBody());

        self::assertStringNotContainsString('secret', print_r($response, true) . print_r((array) $response, true));
        self::assertStringNotContainsString('secret', var_export($response, true));
        self::assertFalse((new \ReflectionObject($response->getBody()))->isCloneable());
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('Use values of the message instead, such as (string) $response->getBody(), the');
        serialize($response);
    }

    /** @return iterable<string, array{string, string}> */
    public static function encodings(): iterable
    {
        yield 'plain' => ['', 'hello'];
        yield 'gzip' => ['gzip', (string) gzencode('hello')];
    }

    public function testAWorkerDoesNotGetAResponse(): void
    {
        $response = $this->exchange(new Response(200, ['Connection' => 'close'], 'hello'));
        self::assertSame('hello', (string) $response->getBody());
        $pool = new WorkerPool(workers: 1);
        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessage('such as (string) $response->getBody()');
        try {
            $pool->submit(static fn(): string => (string) $response->getBody())->await();
        } finally {
            $pool->kill();
        }
    }

    public function testTheBodyOfAResponseIsNotUnserialized(): void
    {
        $class = ($this->exchange(Response::text('hello'))->getBody())::class;
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage("{$class} can not be unserialized");
        unserialize(\sprintf('O:%d:"%s":0:{}', \strlen($class), $class));
    }

    public function testARequestOfTheServerAndItsFilesAreNotSerialized(): void
    {
        $failures = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$failures): Response {
            $file = $request->getUploadedFiles()['file'] ?? null;
            self::assertInstanceOf(UploadedFileInterface::class, $file);
            foreach ([$request, $request->getBody(), $file, $file->getStream()] as $value) {
                try {
                    serialize($value);
                } catch (\LogicException $failure) {
                    $failures[] = explode(', ', $failure->getMessage())[0];
                    self::assertStringStartsWith($value::class, $failure->getMessage());
                }
            }

            return Response::text('ok');
        });
        $body = RequestBody::multipart(['file' => new FormFile(__FILE__)]);
        self::assertSame(200, $this->http()->request('POST', $this->url(), [], $body)->getStatusCode());

        self::assertCount(4, $failures);
    }

    /** @param array<string, string> $headers of the request */
    private function exchange(Response $answer, array $headers = []): ResponseInterface
    {
        $this->serve(static fn(): Response => $answer);

        return $this->http()->get($this->url() . '?token=secret', $headers);
    }

    private function http(): HttpClient
    {
        return $this->httpClient ??= new HttpClient();
    }

    private function url(): string
    {
        return strtr($this->address, ['tcp://' => 'http://']) . '/';
    }
}
