<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\HttpException;
use Spindle\Http\Response;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;

/** An exception for an invalid value does not show the value, neither in its message nor in its trace. */
final class SecretValuesTest extends TestCase
{
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
}
