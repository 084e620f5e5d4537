<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench\Http;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Http\WrkResult;

final class WrkResultTest extends TestCase
{
    private const OUTPUT = <<<'TEXT'
        Running 1m test @ http://127.0.0.1:8080/
          1 threads and 50 connections
          Thread Stats   Avg      Stdev     Max   +/- Stdev
            Latency    44.05us   10.67us 151.00us   68.20%%
            Req/Sec    78.76k   799.63    79.47k    75.00%%
          31191 requests in 402.02ms, 3.84MB read
        Requests/sec:  77585.69
        Transfer/sec:      9.54MB
        {"requests":31191,"us":402020,"p50":42,"p99":1072,"connect":%d,"read":%d,"write":0,"timeout":0,"status":%d}

        TEXT;

    public function testTheFiguresAreInTheLineOfTheScript(): void
    {
        $result = WrkResult::of(\sprintf(self::OUTPUT, 0, 0, 0));

        self::assertSame(
            [31_191, 0.40202, 0.042, 1.072],
            [$result->requests, $result->seconds, $result->p50, $result->p99],
        );
        self::assertEqualsWithDelta(77_585.69, $result->rate(), 0.01);
        self::assertSame([], $result->problems());
    }

    public function testEveryKindOfErrorIsTold(): void
    {
        self::assertSame(
            ['2 reads failed', '7 answers were not successful'],
            WrkResult::of(\sprintf(self::OUTPUT, 0, 2, 7))->problems(),
        );
    }

    public function testNoRequestAtAllIsAProblem(): void
    {
        $result = WrkResult::of(
            '{"requests":0,"us":0,"p50":0,"p99":0,"connect":50,"read":0,"write":0,"timeout":0,"status":0}',
        );

        self::assertSame(0.0, $result->rate());
        self::assertSame(['50 connections failed', 'no request was answered'], $result->problems());
    }

    #[TestWith(['unable to connect to 127.0.0.1:8080 Connection refused'])]
    #[TestWith([''])]
    #[TestWith(['{"requests":31191,"us":402020}'])]
    #[TestWith(['{"requests":31191,"us":402020,"p50":42,"p99":72,"connect":0}'])]
    #[TestWith(
        ['{"requests":nan,"us":402020,"p50":42,"p99":72,"connect":0,"read":0,"write":0,"timeout":0,"status":0}'],
    )]
    public function testWithoutFiguresWhatItSaidIsTold(string $output): void
    {
        $this->expectExceptionObject(new \RuntimeException("wrk printed no result: {$output}"));
        WrkResult::of("{$output}\n");
    }
}
