<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http;

use Nyholm\Psr7\Request;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\CookieJar;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\InvalidRequestException;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Client\Call;
use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Http\Internal\Client\Url;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;

/** Exceptions and options do not show the secrets that were given to them. */
final class SecretValuesTest extends TestCase
{
    use CatchesThrown;

    private const URL = 'http://127.0.0.1:1/';

    #[TestWith(["secret\n", 'a line feed at the end, which trim() removes'])]
    #[TestWith(["secret\r\n", 'a carriage return at the end, which trim() removes'])]
    #[TestWith(["secret\0", 'a NUL byte at the end, which trim() removes'])]
    #[TestWith(["\tsecret\n\t", 'a line feed at the end, which trim() removes'])]
    #[TestWith(["secret\nX: y", 'a line feed at offset 6'])]
    #[TestWith(["se\tcret \e[1m\n", 'the byte 0x1B at offset 8'])]
    #[TestWith(["secret\x7F", 'the byte 0x7F at offset 6'])]
    #[TestWith(["secret\x08", 'the byte 0x08 at offset 6'])]
    public function testTheFaultOfAHeaderIsDescribedWithoutItsValue(string $value, string $fault): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessageMatches(
            '/^The header X-A can not have a control character: its value has ' . preg_quote($fault) . '$/D',
        );
        new Response(200, ['X-A' => $value]);
    }

    public function testADumpOfAUsedClientDoesNotShowThePasswordOfTheProxy(): void
    {
        $proxy = new Proxy(http: 'http://user:password@127.0.0.1:1');
        $client = new HttpClient(new HttpClientOptions(request: new RequestOptions(proxy: $proxy)));
        self::thrown(ConnectFailedException::class, static fn() => $client->get('http://a.test/'));
        $dump = print_r($client, true);
        self::assertStringContainsString('http://a.test http://127.0.0.1:1 ', $dump);
        self::assertStringNotContainsString(base64_encode('user:password'), $dump);
    }

    /** @param \Closure(): mixed $call */
    #[DataProvider('failing')]
    public function testAnInvalidValueIsNotShown(\Closure $call): void
    {
        $before = (string) ini_set('zend.exception_ignore_args', '0');
        try {
            $call();
            self::fail('Nothing was thrown');
        } catch (\InvalidArgumentException|\JsonException|TransportExceptionInterface $failure) {
            $frames = array_filter(
                $failure->getTrace(),
                static fn(array $frame): bool => str_starts_with($frame['class'] ?? '', 'Spindle\Http\\')
                    || str_contains($frame['file'] ?? '', '/src/Http/'),
            );

            self::assertNotSame([], array_column($frames, 'args'));
            self::assertStringNotContainsString('secret', print_r(array_column($frames, 'args', 'function'), true));
            self::assertStringNotContainsString('secret', $failure->getMessage());
        } finally {
            ini_set('zend.exception_ignore_args', $before);
        }
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function failing(): iterable
    {
        $headers = ['X-A' => "secret\n"];
        $body = 'the secret body';
        yield 'a request' => [static fn() => (new HttpClient())->request('GET', self::URL, $headers, $body)];
        yield 'events' => [static fn() => (new HttpClient())->serverSentEvents(self::URL, $headers)->current()];
        yield 'an option of Symfony' => [static fn() => (new SymfonyClient())->request('GET', self::URL . '?secret', [
            'auth_bearer' => 'secret',
            'bindto' => '127.0.0.2',
        ])];
        yield 'JSON' => [static fn() => RequestBody::json(['secret', \NAN])];
        yield 'a multipart form' => [static fn() => RequestBody::multipart(['a' => 'secret', '' => 'b'])];
        yield 'a response' => [static fn() => new Response(200, $headers, $body)];
        yield 'a changed header' => [static fn() => (new Response())->withHeader('X-A', "secret\n")];
        yield 'an added header' => [static fn() => (new Response())->withAddedHeader('X-A', ["secret\n"])];
        yield 'a text response' => [static fn() => Response::text('', 200, $headers)];
        yield 'an HTML response' => [static fn() => Response::html('', 200, $headers)];
        yield 'a JSON response' => [static fn() => Response::json($body, 200, $headers)];
        yield 'a value that is no JSON' => [static fn() => Response::json(['secret', \NAN])];
        yield 'a binary response' => [static fn() => Response::binary('', headers: $headers)];
        yield 'a redirect' => [static fn() => Response::redirect('/', headers: $headers)];
        yield 'a stream' => [static fn() => Response::stream([], headers: $headers)];
        yield 'a stream of events' => [static fn() => Response::serverSentEvents([], $headers)];
        yield 'an exception' => [static fn() => new HttpException(503, headers: ['X-A' => "secret\n"])];
    }

    #[DataProvider('holders')]
    public function testAnObjectHidesItsSecrets(object $object): void
    {
        self::assertStringNotContainsString('secret', print_r($object, true));
        self::assertStringNotContainsString('secret', var_export($object, true));
        self::assertStringNotContainsString('secret', print_r((array) $object, true));
    }

    /** @return iterable<string, array{object}> */
    public static function holders(): iterable
    {
        $proxy = new Proxy('http://user:secret@proxy:3128');
        $jar = new CookieJar();
        $jar->store('http://a.test/', ['a=secret']);
        yield 'a proxy' => [$proxy];
        $options = new RequestOptions(proxy: $proxy);
        yield 'options of a request' => [$options];
        yield 'options of a client' => [new HttpClientOptions(request: $options, cookies: $jar)];
        yield 'a client' => [new HttpClient(new HttpClientOptions(cookies: $jar))];
        yield 'a jar' => [$jar];
        yield 'a failure' => [self::failure()];
        $response = new Response(200, ['Set-Cookie' => 'a=secret']);
        yield 'a failure with a response' => [
            self::withoutArguments(static fn() => InvalidResponseException::ofResponse(self::request(), $response, '')),
        ];
        $request = new Request('GET', self::URL, ['X-A' => 'secret'], 'secret');
        $invalid = self::withoutArguments(static fn() => new \InvalidArgumentException('The URL is malformed'));
        yield 'a failure with a PSR-7 request' => [
            self::withoutArguments(static fn() => InvalidRequestException::of($request, $invalid)),
        ];
    }

    public function testOptionsWithAPasswordAreNotSerialized(): void
    {
        $options = static fn(string $proxy): HttpClientOptions => new HttpClientOptions(
            request: new RequestOptions(proxy: new Proxy($proxy)),
        );

        self::assertEquals($options('http://proxy:3128'), unserialize(serialize($options('http://proxy:3128'))));
        $this->expectExceptionMessage("Serialization of 'SensitiveParameterValue' is not allowed");
        serialize($options('http://user:secret@proxy:3128'));
    }

    public function testASerializedFailureHasItsRequestWithoutSecrets(): void
    {
        $failure = self::failure();
        $serialized = serialize($failure);
        $restored = unserialize($serialized);

        self::assertStringNotContainsString('secret', $serialized);
        self::assertInstanceOf(RequestTimeoutException::class, $restored);
        self::assertSame($failure->getMessage(), $restored->getMessage());
        $request = $restored->getRequest();
        self::assertSame(['POST', 'http://a.test/path'], [$request->getMethod(), (string) $request->getUri()]);
        self::assertSame('secret', (string) $failure->getRequest()->getBody());
        self::assertStringContainsString('POST http://a.test/path', print_r($restored, true));
    }

    private static function failure(): RequestTimeoutException
    {
        return self::withoutArguments(
            static fn() => RequestTimeoutException::of(self::request(), 'it took too long'),
        );
    }

    private static function request(): OutgoingRequest
    {
        $url = Url::parse('http://user:secret@a.test/path?token=secret');
        \assert($url !== null);

        $failedTotal = 0;

        return new OutgoingRequest('POST', $url, ['x-a' => ['X-A', ['secret']]], 'secret', new Call($failedTotal));
    }

    /**
     * Creates an exception whose trace has no arguments. Those of PHPUnit can't be serialized.
     *
     * @template T of \Throwable
     *
     * @param \Closure(): T $create
     *
     * @return T
     */
    private static function withoutArguments(\Closure $create): \Throwable
    {
        $before = (string) ini_set('zend.exception_ignore_args', '1');
        try {
            return $create();
        } finally {
            ini_set('zend.exception_ignore_args', $before);
        }
    }
}
