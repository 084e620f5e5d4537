<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutException;
use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\HttpException;
use Spindle\Http\Middleware\ErrorHandler;
use Spindle\Tests\ReadsErrorLog;

final class ErrorHandlerTest extends TestCase
{
    use ReadsErrorLog;

    private const HOSTILE = '"><script>alert(1)</script>&';

    public function testWhatAHandlerAnswersGoesThrough(): void
    {
        $handler = new Handler();

        self::assertSame(
            'answer',
            (string) (new ErrorHandler())->process(new ServerRequest('GET', '/'), $handler)->getBody(),
        );
    }

    public function testAnHttpExceptionGivesStatusMessageAndHeaders(): void
    {
        $records = new Records();
        $response = self::answer(
            new HttpException(405, 'Only GET', ['Allow' => 'GET, HEAD']),
            errors: new ErrorHandler($records),
        );

        self::assertSame(405, $response->getStatusCode());
        self::assertSame('GET, HEAD', $response->getHeaderLine('Allow'));
        self::assertSame("405 Method Not Allowed\n\nOnly GET\n", (string) $response->getBody());
        self::assertSame([], $records->all);
    }

    public function testAnHttpExceptionDoesNotDecideOnTheFormOfThePage(): void
    {
        $headers = ['content-type' => 'image/png', 'Content-length' => '1', 'Vary' => 'Cookie'];
        $response = self::answer(new HttpException(400, 'no', $headers));

        self::assertSame(['text/plain; charset=utf-8'], $response->getHeader('Content-Type'));
        self::assertFalse($response->hasHeader('Content-Length'));
        self::assertSame('Cookie, Accept', $response->getHeaderLine('Vary'));
    }

    public function testAnHttpExceptionThatCantBeSentThrowsWhereItIsMade(): void
    {
        $this->expectException(\InvalidArgumentException::class);

        new HttpException(401, 'no', ['WWW-Authenticate' => "Basic\r\nSet-Cookie: a=b"]);
    }

    /** @return iterable<string, array{string}> */
    public static function forms(): iterable
    {
        yield 'plain text' => ['text/plain'];
        yield 'HTML' => ['text/html'];
        yield 'JSON' => ['application/json'];
    }

    #[DataProvider('forms')]
    public function testAFailureIsAnsweredWithoutAnyDetail(string $accept): void
    {
        $response = self::answer(new \PDOException('password=hunter2'), $accept);

        self::assertSame(500, $response->getStatusCode());
        self::assertStringContainsString('Internal Server Error', (string) $response->getBody());
        self::assertStringNotContainsString('hunter2', (string) $response->getBody());
        self::assertStringNotContainsString('PDO', (string) $response->getBody());
        self::assertStringNotContainsString(__DIR__, (string) $response->getBody());
    }

    public function testAFailureIsLoggedWithTheException(): void
    {
        $records = new Records();
        $failure = new \TypeError('so');
        $request = (new ServerRequest('POST', '/a?b=c'))->withAttribute('request-id', 'id7');
        (new ErrorHandler($records))->process($request, new Handler($failure));

        self::assertCount(1, $records->all);
        self::assertSame('error', $records->all[0]['level']);
        self::assertSame(
            ['exception' => $failure, 'method' => 'POST', 'target' => '/a?b=c', 'request_id' => 'id7'],
            $records->all[0]['context'],
        );
    }

    public function testThePreviousExceptionOfAServerErrorIsLogged(): void
    {
        $records = new Records();
        $cause = new \RuntimeException('The disk is full');
        $failure = new HttpException(507, 'Not kept', previous: $cause);
        $response = self::answer($failure, errors: new ErrorHandler($records));

        self::assertSame(
            [507, "507 Insufficient Storage\n\nNot kept\n"],
            [$response->getStatusCode(), (string) $response->getBody()],
        );
        self::assertSame(
            [['{method} {target} was answered with 507, because its handler failed', $cause]],
            array_map(
                static fn(array $record): array => [$record['message'], $record['context']['exception'] ?? null],
                $records->all,
            ),
        );
    }

    /** @return iterable<string, array{HttpException}> */
    public static function answersThatNobodyIsToldOf(): iterable
    {
        yield 'a refusal' => [new HttpException(400, 'no', previous: new \JsonException('Syntax error'))];
        yield 'what has no cause' => [new HttpException(503, 'later')];
        yield 'a client that left' => [
            new HttpException(503, 'later', previous: ClientDisconnectedException::closed()),
        ];
    }

    #[DataProvider('answersThatNobodyIsToldOf')]
    public function testNoOtherHttpExceptionIsLogged(HttpException $meant): void
    {
        $records = new Records();
        self::answer($meant, errors: new ErrorHandler($records));

        self::assertSame([], $records->all);
    }

    public function testWithoutALoggerTheErrorLogGetsOneLine(): void
    {
        $lines = $this->errorLogOf(
            static fn() => self::answer(new \DomainException("so\nforged \xff"), errors: new ErrorHandler()),
        );

        self::assertCount(1, $lines);
        self::assertStringContainsString('GET /: DomainException: so\nforged', $lines[0]);
    }

    /** @return iterable<string, array{string, string}> */
    public static function acceptFields(): iterable
    {
        [$json, $html, $plain] = ['application/problem+json', 'text/html; charset=utf-8', 'text/plain; charset=utf-8'];
        yield 'nothing said' => ['', $plain];
        yield 'everything' => ['*/*', $plain];
        yield 'a browser' => [
            'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
            $html,
        ];
        yield 'a client of an API' => ['application/json, text/plain, */*', $json];
        yield 'JSON' => ['application/json', $json];
        yield 'JSON with a parameter' => ['Application/JSON; charset=UTF-8', $json];
        yield 'problems' => ['application/problem+json', $json];
        yield 'some other JSON' => ['application/vnd.api+json', $json];
        yield 'JSON by its weight' => ['text/html;q=0.8, application/json;q=0.9', $json];
        yield 'HTML by its weight' => ['application/json; q=0.5 , text/html;q=0.51', $html];
        yield 'the same weight, first named' => ['text/html, application/json', $html];
        yield 'text of any kind' => ['text/*', $plain];
        yield 'any application' => ['application/*, text/html;q=0.1', $json];
        yield 'a range with HTML taken out' => ['text/*, text/html;q=0', $plain];
        yield 'all but plain text and JSON' => [
            '*/*, text/plain;q=0, application/json;q=0, application/problem+json;q=0',
            $html,
        ];
        yield 'HTML a little' => ['text/html;q=0.001', $html];
        yield 'no HTML' => ['text/html;q=0', $plain];
        yield 'the same weight, written out' => ['text/html;q=1.000, application/json', $html];
        yield 'a kind after everything' => ['*/*, text/*', $plain];
        yield 'a type after a kind' => ['application/*, text/html', $html];
        yield 'a precise range after a wide one' => ['*/*;q=0.1, text/html', $html];
        yield 'nothing of ours' => ['image/png', $plain];
        yield 'nothing at all' => ['*/*;q=0', $plain];
        yield 'weights that are none' => ['application/json;q=2, text/html;q=0.1', $html];
        yield 'a weight with something before it' => ['application/json;q=x1, text/html;q=0.1', $html];
        yield 'a one of many digits' => ['application/json;q=1.0000, text/html;q=0.1', $html];
        yield 'a weight that ends early' => ['application/json;q=1., text/html;q=0., */*;q=0.1', $json];
        yield 'a blank in a type' => ['text/html x, x text/html, application/json;q=0.1', $json];
        yield 'a weight of many digits' => ['application/json;q=0.9999, text/html;q=0.1', $html];
        yield 'garbage' => [',;=,/,q=1,;q=1,text/html;q=x', $plain];
        yield 'an open quote' => ['text/html;x=",application/json', $html];
        yield 'a great deal' => [str_repeat('a/b;q=0.5,', 3000) . 'text/html', $html];
    }

    #[DataProvider('acceptFields')]
    public function testTheClientGetsTheFormThatItWouldRatherHave(string $accept, string $type): void
    {
        $response = self::answer(new HttpException(404), $accept);

        self::assertSame($type, $response->getHeaderLine('Content-Type'));
        self::assertSame('Accept', $response->getHeaderLine('Vary'));
        self::assertSame('nosniff', $response->getHeaderLine('X-Content-Type-Options'));
    }

    public function testAProblemIsJsonByItsRfc(): void
    {
        $response = self::answer(new HttpException(409, "Number taken: \"7\"\n\xff"), 'application/json');

        self::assertSame(
            ['title' => 'Conflict', 'status' => 409, 'detail' => "Number taken: \"7\"\n\u{fffd}"],
            json_decode((string) $response->getBody(), true, 2, \JSON_THROW_ON_ERROR),
        );
    }

    /** @return iterable<string, array{string, string}> */
    public static function preferencesWithJsonAsDefault(): iterable
    {
        yield 'no field' => ['', 'application/problem+json'];
        yield 'any type' => ['*/*', 'application/problem+json'];
        yield 'another type' => ['image/png', 'application/problem+json'];
        yield 'a browser' => ['text/html,application/xml;q=0.9,*/*;q=0.8', 'text/html; charset=utf-8'];
        yield 'plain text' => ['text/plain', 'text/plain; charset=utf-8'];
    }

    #[DataProvider('preferencesWithJsonAsDefault')]
    public function testJsonCanBeTheDefault(string $accept, string $type): void
    {
        foreach ([new HttpException(404), new \DomainException('no')] as $thrown) {
            $response = self::answer($thrown, $accept, new ErrorHandler(new Records(), json: true));

            self::assertSame($type, $response->getHeaderLine('Content-Type'));
        }
        $shown = self::answer(new HttpException(404), $accept, ErrorHandler::showingTraces(new Records(), json: true));

        self::assertSame($type, $shown->getHeaderLine('Content-Type'));
    }

    public function testAPageIsEscaped(): void
    {
        $body = (string) self::answer(new HttpException(400, self::HOSTILE . "\xff'"), 'text/html')->getBody();

        self::assertStringContainsString(
            "<p>&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;\u{fffd}&apos;</p>",
            $body,
        );
        self::assertStringNotContainsString('<script', $body);
        self::assertStringContainsString('<title>400 Bad Request</title>', $body);
    }

    public function testAPageLoadsNothing(): void
    {
        $response = self::answer(new HttpException(404), 'text/html');

        self::assertStringStartsWith("default-src 'none';", $response->getHeaderLine('Content-Security-Policy'));
        self::assertDoesNotMatchRegularExpression('/(?:src|href|url\()/', (string) $response->getBody());
    }

    public function testAStatusWithoutANameIsItsNumber(): void
    {
        self::assertSame("499\n\nso\n", (string) self::answer(new HttpException(499, 'so'))->getBody());
        self::assertSame(
            '{"status":499}' . "\n",
            (string) self::answer(new HttpException(499), 'application/json')->getBody(),
        );
    }

    #[DataProvider('forms')]
    public function testATraceIsShownOnlyIfConfiguredAndWithoutArguments(string $accept): void
    {
        $errors = ErrorHandler::showingTraces(new Records());
        $body = (string) self::answer(self::failure('hunter2'), $accept, $errors)->getBody();

        self::assertStringContainsString('DomainException: outer', $body);
        self::assertStringContainsString('Caused by RuntimeException: inner', $body);
        self::assertStringContainsString('ErrorHandlerTest::failure()', strtr($body, ['-&gt;' => '::']));
        self::assertStringContainsString(__FILE__ . ':', $body);
        self::assertStringNotContainsString('hunter2', $body);
    }

    public function testATraceIsEscapedToo(): void
    {
        $body = (string) self::answer(
            new \DomainException(self::HOSTILE . "\xff"),
            'text/html',
            ErrorHandler::showingTraces(new Records()),
        )->getBody();

        self::assertStringNotContainsString('<script', $body);
        self::assertStringContainsString('&lt;script', $body);
    }

    public function testATraceHasAnEnd(): void
    {
        try {
            self::deep(5000);
            self::fail('It came back');
        } catch (\DomainException $deep) {
        }

        self::assertLessThan(
            50_000,
            \strlen((string) self::answer($deep, errors: ErrorHandler::showingTraces(new Records()))->getBody()),
        );
    }

    public function testAnAnonymousClassShowsNoBytesOfItsOwn(): void
    {
        $body = (string) self::answer(
            new class ('so') extends \Exception {},
            errors: ErrorHandler::showingTraces(new Records()),
        )->getBody();

        self::assertStringContainsString('Exception@anonymous: so', $body);
        self::assertStringNotContainsString("\0", $body);
    }

    /** @return iterable<string, array{\Throwable}> */
    public static function departures(): iterable
    {
        $cancellation = new DeferredCancellation();
        $cancellation->cancel(ClientDisconnectedException::closed());
        try {
            $cancellation->getCancellation()->throwIfRequested();
        } catch (CancelledException $cancelled) {
            yield 'a cancellation' => [$cancelled];
            yield 'what came of one' => [new \RuntimeException('The query was cancelled', 0, $cancelled)];
        }
        yield 'itself' => [ClientDisconnectedException::bodyIncomplete()];
    }

    #[DataProvider('departures')]
    public function testAClientThatLeavesIsNoError(\Throwable $thrown): void
    {
        $records = new Records();
        try {
            self::answer($thrown, errors: new ErrorHandler($records));
            self::fail('It was answered');
        } catch (\Throwable $caught) {
            self::assertSame($thrown, $caught);
        }

        self::assertSame([], $records->all);
    }

    public function testACancellationForAnotherReasonIsAnError(): void
    {
        $records = new Records();
        $late = new CancelledException(new TimeoutException());

        self::assertSame(500, self::answer($late, errors: new ErrorHandler($records))->getStatusCode());
        self::assertCount(1, $records->all);
    }

    private static function answer(
        \Throwable $thrown,
        string $accept = '',
        ?ErrorHandler $errors = null,
    ): ResponseInterface {
        $request = new ServerRequest('GET', '/', $accept === '' ? [] : ['Accept' => $accept]);

        return ($errors ?? new ErrorHandler(new Records()))->process($request, new Handler($thrown));
    }

    private static function deep(int $calls): void
    {
        $calls === 0 ? throw new \DomainException('deep') : self::deep($calls - 1);
    }

    private static function failure(string $secret): \DomainException
    {
        return new \DomainException('outer', 0, new \RuntimeException('inner of ' . \strlen($secret)));
    }
}
