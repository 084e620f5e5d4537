<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\ConnectionLostException;
use Spindle\Http\Client\HttpClientException;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\RequestRetryPolicy;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\Internal\Answer\HttpDate;
use Spindle\Http\Internal\Client\Call;
use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Http\Response;

final class RequestRetryPolicyTest extends TestCase
{
    /**
     * @return iterable<string, array{RequestRetryPolicy, ResponseInterface|HttpClientException, string, int, bool}>
     *     policy, outcome, method, attempts, whether to retry
     */
    public static function decisions(): iterable
    {
        $failed = 0;
        $request = OutgoingRequest::of('GET', 'http://a.example/', [], '', new Call($failed));
        $unsent = ConnectFailedException::of($request, 'refused');
        $lost = ConnectionLostException::of($request, 'lost');
        $late = RequestTimeoutException::of($request, 'late');
        $malformed = InvalidResponseException::of($request, 'malformed');
        $closed = ClientClosedException::of($request, 'closed');
        $busy = new Response(503);
        $policy = new RequestRetryPolicy(2);
        $never = new RequestRetryPolicy(2, onFailure: false, onStatus: []);
        $all = new RequestRetryPolicy(2, methods: [...RequestRetryPolicy::METHODS, 'POST']);
        yield 'none' => [new RequestRetryPolicy(0), $busy, 'GET', 1, false];
        yield 'the second of two' => [$policy, $busy, 'GET', 2, true];
        yield 'a third of two' => [$policy, $busy, 'GET', 3, false];
        yield 'a status of no list' => [$policy, new Response(500), 'GET', 1, false];
        yield 'the only status' => [new RequestRetryPolicy(2, onStatus: 500), new Response(500), 'GET', 1, true];
        yield 'no status' => [$never, $busy, 'GET', 1, false];
        yield 'success' => [$policy, new Response(200), 'GET', 1, false];
        yield 'not sent' => [$policy, $unsent, 'GET', 1, true];
        yield 'POST, not sent' => [$policy, $unsent, 'POST', 1, true];
        yield 'lost' => [$policy, $lost, 'PUT', 1, true];
        yield 'POST, lost' => [$policy, $lost, 'POST', 1, false];
        yield 'late' => [$policy, $late, 'DELETE', 1, true];
        yield 'POST, late' => [$policy, $late, 'POST', 1, false];
        yield 'POST, busy' => [$policy, $busy, 'POST', 1, false];
        yield 'a POST that may be sent twice, busy' => [$all, $busy, 'POST', 1, true];
        yield 'a POST that may be sent twice, lost' => [$all, $lost, 'POST', 1, true];
        yield 'no failure' => [$never, $unsent, 'GET', 1, false];
        yield 'malformed' => [$all, $malformed, 'GET', 1, false];
        yield 'closed' => [$all, $closed, 'GET', 1, false];
        yield 'a pause that is short enough' => [$policy, new Response(429, ['Retry-After' => '60']), 'GET', 1, true];
        yield 'a long pause' => [$policy, new Response(429, ['Retry-After' => '61']), 'GET', 1, false];
    }

    #[DataProvider('decisions')]
    public function testDecidesByOutcomeAndMethod(
        RequestRetryPolicy $policy,
        ResponseInterface|HttpClientException $outcome,
        string $method,
        int $attempts,
        bool $retries,
    ): void {
        self::assertSame($retries, $policy->shouldRetry($outcome, $method, $attempts));
    }

    public function testPausesAtLeastAsLongAsTheServerAsks(): void
    {
        $policy = new RequestRetryPolicy(3, delay: 0.5, jitter: 0.0);
        self::assertSame(2.0, $policy->delayAfter(3));
        self::assertSame(3.0, $policy->delayAfter(3, new Response(503, ['Retry-After' => '1'])));
        self::assertSame(9.0, $policy->delayAfter(3, new Response(503, ['Retry-After' => '7'])));
        self::assertSame(2.0, $policy->delayAfter(3, new Response(503, ['Retry-After' => 'soon'])));
        self::assertSame(2.0, $policy->delayAfter(3, new Response(503, ['Retry-After' => HttpDate::of(0)])));
        $date = new Response(503, ['Retry-After' => HttpDate::of(time() + 1_000)]);
        self::assertEqualsWithDelta(1_000, $policy->delayAfter(3, $date), 100);
    }

    /** @param array<string, mixed> $options */
    #[TestWith([['onStatus' => 199]])]
    #[TestWith([['onStatus' => [503, 600]]])]
    #[TestWith([['onStatus' => ['503']]])]
    #[TestWith([['methods' => ['get']]])]
    #[TestWith([['methods' => ['']]])]
    #[TestWith([['methods' => [1]]])]
    #[TestWith([['retries' => -1]])]
    #[TestWith([['delay' => -1.0]])]
    public function testRefusesValuesOutOfRange(array $options): void
    {
        $this->expectException(\ValueError::class);
        // @phpstan-ignore argument.type (the values are wrong)
        new RequestRetryPolicy(...$options + ['retries' => 1]);
    }
}
