<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Psr\Log\AbstractLogger;
use Spindle\Remote\Internal\FailedJobLog;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\VirtualTime;

use function Amp\delay;

final class FailedJobLogTest extends TidyTestCase
{
    use VirtualTime;

    /** @var list<string> */
    private array $lines = [];

    private FailedJobLog $log;

    protected function setUp(): void
    {
        $write = function (string $line): void {
            $this->lines[] = $line;
        };
        $this->log = new FailedJobLog(new class ($write) extends AbstractLogger {
            /** @param \Closure(string): void $write */
            public function __construct(private readonly \Closure $write) {}

            /** @param array<mixed> $context */
            public function log(mixed $level, string|\Stringable $message, array $context = []): void
            {
                $values = [];
                foreach ($context as $name => $value) {
                    $values["{{$name}}"] = \is_scalar($value) ? (string) $value : '';
                }
                ($this->write)(strtr((string) $message, $values));
            }
        }, 'mails');
    }

    public function testAFailureIsLoggedWithTheReasonAndTheNextAttempt(): void
    {
        $this->log->add('order-7', 2, "DomainException: no stock.\n#0 shop.php(3)", 1.25);
        $this->log->add('#8', 5, str_repeat('länger ', 200), null);
        $this->log->add('order-9', 1, 'no stock', 0.0);
        $this->log->add('#8', 5, str_repeat('länger ', 200), null, ' (shop.php:3)');

        self::assertSame(
            'Attempt 2 of the job order-7 of the queue mails has failed: DomainException: no stock.'
                . ' The job is tried again after 1.3 s',
            $this->lines[0],
        );
        self::assertStringEndsWith('no stock. The job is tried again now', $this->lines[2]);
        self::assertStringStartsWith('Attempt 5 of the job 8 of the queue mails has failed: länger ', $this->lines[1]);
        self::assertStringEndsWith('. The job is a dead letter now; see spindle queue show mails 8', $this->lines[1]);
        self::assertLessThan(700, \strlen($this->lines[1]));
        self::assertSame(1, preg_match('//u', $this->lines[1]));
        self::assertStringContainsString('… (shop.php:3). The job is a dead letter now', $this->lines[3]);
    }

    public function testOnlyTheFirstFailuresOfASecondAreLogged(): void
    {
        for ($i = 1; $i <= 12; ++$i) {
            $this->log->add("job {$i}", 1, 'failed', 0.0);
        }
        self::assertCount(10, $this->takeLines());
        delay(1.5);
        self::assertSame(['2 more attempts of jobs of the queue mails have failed'], $this->takeLines());
        for ($i = 1; $i <= 12; ++$i) {
            $this->log->add("job {$i}", 1, 'failed', $i < 12 ? 0.0 : null);
        }
        $this->takeLines();
        delay(1.5);
        self::assertSame(
            [
                '2 more attempts of jobs of the queue mails have failed; 1 of the jobs are dead letters now,'
                    . ' see spindle queue show mails',
            ],
            $this->takeLines(),
        );
        $this->log->add('later', 1, 'failed', 0.0);

        $lines = $this->takeLines();
        self::assertCount(1, $lines);
        self::assertStringContainsString('the job later', $lines[0]);
    }

    /** @return list<string> lines since the last call */
    private function takeLines(): array
    {
        $lines = $this->lines;
        $this->lines = [];

        return $lines;
    }
}
