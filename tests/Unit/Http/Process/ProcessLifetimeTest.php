<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Process\ProcessLifetime;
use Spindle\Http\Response;

final class ProcessLifetimeTest extends TestCase
{
    /** @var list<string> */
    private array $asked = [];

    private ?bool $tooSoon = null;

    public function testAProcessRequestsItsReplacementAfterMaxRequestsAndContinues(): void
    {
        foreach (range(1, 50) as $_) {
            $this->asked = [];
            $handler = ProcessLifetime::of(
                static fn(): Response => Response::text('answer'),
                100,
                null,
                $this->ask(...),
            );
            $count = 0;
            while ($this->asked === [] && $count < 100) {
                self::assertSame('answer', (string) $handler(new ServerRequest('GET', '/'))->getBody());
                ++$count;
            }
            self::assertSame(["it has handled {$count} requests"], $this->asked);
            self::assertGreaterThanOrEqual(90, $count);

            $handler(new ServerRequest('GET', '/'));
            self::assertCount(1, $this->asked);
        }
    }

    public function testALimitOfOneIsNotReduced(): void
    {
        ProcessLifetime::of(
            static fn(): Response => Response::text(''),
            1,
            null,
            $this->ask(...),
        )(new ServerRequest('GET', '/'));

        self::assertSame(['it has handled 1 request'], $this->asked);
    }

    public function testAProcessRequestsItsReplacementAtItsMemoryLimit(): void
    {
        $handler = ProcessLifetime::of(
            static fn(): Response => Response::text(''),
            null,
            memory_get_usage() + 10_000_000,
            $this->ask(...),
        );
        $handler(new ServerRequest('GET', '/'));
        self::assertSame([], $this->asked);

        $held = str_repeat('x', 20_000_000);
        $handler(new ServerRequest('GET', '/'));

        self::assertMatchesRegularExpression(
            '/^it uses \d{8,} bytes of memory after 2 requests$/D',
            implode("\n", $this->asked),
        );
        self::assertSame(20_000_000, \strlen($held));
    }

    public function testALimitThatIsReachedEarlyIsReportedAsTooLow(): void
    {
        foreach ([10 => true, 11 => false] as $requests => $tooSoon) {
            [$held, $this->tooSoon] = ['', null];
            $handler = ProcessLifetime::of(
                static fn(): Response => Response::text(''),
                null,
                memory_get_usage() + 10_000_000,
                $this->ask(...),
            );
            foreach (range(1, $requests) as $request) {
                self::assertNull($this->tooSoon);
                $held = str_repeat('x', $request === $requests ? 20_000_000 : 1);
                $handler(new ServerRequest('GET', '/'));
            }
            self::assertSame($tooSoon, $this->tooSoon);
        }
        ProcessLifetime::of(
            static fn(): Response => Response::text(''),
            1,
            null,
            $this->ask(...),
        )(new ServerRequest('GET', '/'));
        self::assertFalse($this->tooSoon, 'As many requests as it may have are its share');
    }

    private function ask(string $why, bool $tooSoon): void
    {
        $this->asked[] = $why;
        $this->tooSoon = $tooSoon;
    }
}
