<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\HaltRule;
use Spindle\Cli\Internal\Run\JobsOption;
use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\Run\TimeLimit;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\CpuCount;
use Spindle\Tests\OwnDirectory;

final class OptionValuesTest extends TestCase
{
    use OwnDirectory;

    /** @return iterable<string, array{string|null, int}> */
    public static function concurrencies(): iterable
    {
        yield 'none' => [null, 4];
        yield 'a number' => ['12', 12];
        yield 'as many as possible' => ['0', JobsOption::UNLIMITED];
        yield 'a percentage' => ['200%', 8];
        yield 'a small percentage' => ['1%', 1];
        yield 'the smallest percentage' => ['0%', 1];
        yield 'a broken percentage' => ['62.5%', 3];
        yield 'more than the CPUs' => ['+2', 6];
        yield 'less than the CPUs' => ['-1', 3];
        yield 'less than one' => ['-9', 1];
    }

    #[DataProvider('concurrencies')]
    public function testTheConcurrencyIsANumberOrAPercentageOfTheUsableCpus(?string $value, int $expected): void
    {
        self::assertSame($expected, JobsOption::parse($value, $this->cpus(4))->current);
    }

    public function testTheConcurrencyIsRereadFromAFile(): void
    {
        $file = $this->file('jobs', "50%\n");
        $concurrency = JobsOption::parse($file, $this->cpus(4));

        self::assertTrue($concurrency->isFile());
        self::assertSame(2, $concurrency->current);
        self::assertNull($concurrency->reread(), 'Nothing has changed');

        file_put_contents($file, '7');
        self::assertSame(7, $concurrency->reread());

        file_put_contents($file, 'many');
        self::assertNull($concurrency->reread(), 'What it holds is no number');
        self::assertSame(7, $concurrency->current);

        unlink($file);
        self::assertNull($concurrency->reread());
    }

    /** @return iterable<string, array{string}> */
    public static function badConcurrencies(): iterable
    {
        yield 'a word' => ['many'];
        yield 'only a sign' => ['+'];
        yield 'a fraction' => ['1.5'];
        yield 'only a percent sign' => ['%'];
        yield 'nothing' => [''];
        yield 'too much' => ['99999999999999999999'];
    }

    #[DataProvider('badConcurrencies')]
    public function testAnInvalidConcurrencyIsRefusedWithTheAllowedValues(string $value): void
    {
        $this->expectExceptionObject(UsageException::option(
            '--jobs',
            $value,
            'a number of jobs, 0 for the maximum, +N or -N for more or less than the CPUs, or a percentage of the CPUs'
                . ' such as 200%, or a file that contains one',
        ));

        JobsOption::parse($value, $this->cpus(4));
    }

    public function testAFileWithoutAConcurrencyIsRefused(): void
    {
        $file = $this->file('jobs', 'many');
        $this->expectExceptionMessage("jobs' contains 'many'; write into it a number of jobs");

        JobsOption::parse($file, $this->cpus(4));
    }

    public function testAnEmptyFileIsReportedAsEmpty(): void
    {
        $file = $this->file('jobs', '');
        $this->expectExceptionMessage("jobs' contains nothing; write into it a number of jobs");

        JobsOption::parse($file, $this->cpus(4));
    }

    public function testALongFileIsNotReadAsTheNumberAtItsBeginning(): void
    {
        $file = $this->file('jobs', '7' . str_repeat(' ', 63) . 'jobs at once');
        $this->expectExceptionMessage("jobs' contains more than 64 bytes; write into it a number of jobs");

        JobsOption::parse($file, $this->cpus(4));
    }

    public function testAFileThatCannotBeReadIsReportedAsUnreadable(): void
    {
        $file = $this->file('jobs', '7');
        chmod($file, 0);
        if (@file_get_contents($file) !== false) {
            self::markTestSkipped('Root can read every file');
        }
        $this->expectExceptionMessage("option --jobs: can't read the file '{$file}'; check its permissions");

        JobsOption::parse($file, $this->cpus(4));
    }

    /** @return iterable<string, array{string, int, int, bool}> rule, succeeded and failed of 40, whether reached */
    public static function halts(): iterable
    {
        yield 'a failure' => ['soon,fail=1', 5, 1, true];
        yield 'no failure' => ['soon,fail=1', 5, 0, false];
        yield 'too few failures' => ['now,fail=3', 5, 2, false];
        yield 'a share of all jobs failed' => ['soon,fail=10%', 27, 4, true];
        yield 'less than the share' => ['soon,fail=10%', 0, 3, false];
        yield 'a broken share' => ['soon,fail=2.6%', 0, 2, true];
        yield 'less than a broken share' => ['soon,fail=2.6%', 0, 1, false];
        yield 'a success' => ['now,success=1', 1, 9, true];
        yield 'a share of successes' => ['now,success=50%', 20, 3, true];
        yield 'too few successes' => ['now,success=50%', 19, 20, false];
        yield 'done' => ['now,done=4', 2, 2, true];
        yield 'not done' => ['now,done=4', 2, 1, false];
        yield 'a share done' => ['now,done=10%', 2, 2, true];
        yield 'less than the share done' => ['now,done=10%', 2, 1, false];
    }

    #[DataProvider('halts')]
    public function testAHaltIsReachedByCountsAndShares(string $value, int $succeeded, int $failed, bool $reached): void
    {
        $rule = HaltRule::parse($value);

        self::assertNotNull($rule);
        self::assertSame(str_starts_with($value, 'now'), $rule->now);
        self::assertSame($reached, $rule->isReached($succeeded, $failed, 40));
    }

    public function testAHaltHasTheShortFormsOfGnuParallel(): void
    {
        foreach (['1' => 'soon,fail=1', '2' => 'now,fail=1', '-1' => 'soon,success=1', '-2' => 'now,success=1',
            '30%' => 'soon,fail=30%'] as $short => $long) {
            self::assertEquals(HaltRule::parse($long), HaltRule::parse((string) $short));
        }
        self::assertNull(HaltRule::parse('0'));
    }

    public function testNeverMeansNoHaltRule(): void
    {
        self::assertNull(HaltRule::parse('never'));
        self::assertNull(HaltRule::parse(null));
    }

    /** @return iterable<string, array{string}> */
    public static function badHalts(): iterable
    {
        foreach ([
            '',
            'soon',
            'now',
            'fail=1',
            'soon,fail',
            'soon,fail=',
            'soon,fail=0',
            'soon,fail=0%',
            'soon,fail=101%',
            'soon,fail=-1',
            'soon,done=101%',
            'later,fail=1',
            'soon,fail=1.5',
            'soon,fail=1 ',
            "soon,fail=1\n",
        ] as $value) {
            yield addcslashes("'{$value}'", "\n") => [$value];
        }
    }

    #[DataProvider('badHalts')]
    public function testAnotherHaltIsRefusedByName(string $value): void
    {
        $this->expectException(UsageException::class);
        $this->expectExceptionMessageMatches(
            '/^option --halt: .* is not allowed; give never, N%, soon,CONDITION or now,CONDITION, /',
        );

        HaltRule::parse($value);
    }

    public function testATimeLimitInSecondsIsThereFromTheStart(): void
    {
        self::assertSame(90.0, TimeLimit::parse('1.5m')->seconds());
        self::assertNull(TimeLimit::parse(null)->seconds());
    }

    public function testATimeLimitByTheMedianComesAfterThreeSuccesses(): void
    {
        $limit = TimeLimit::parse('200%');
        self::assertTrue($limit->isAdaptive());

        $limit->observe(1.0);
        $limit->observe(100.0);
        self::assertNull($limit->seconds());

        $limit->observe(2.0);
        self::assertEqualsWithDelta(4.0, $limit->seconds(), 0.04);
    }

    public function testATimeLimitByTheMedianIsInMillisecondsAtLeastOne(): void
    {
        foreach (['123.456%' => [0.1, 7.0, 86_400.0], '1%' => [1e-4, 0.01]] as $value => $runtimes) {
            foreach ($runtimes as $runtime) {
                $limit = TimeLimit::parse($value);
                array_map($limit->observe(...), [$runtime, $runtime, $runtime]);
                $seconds = $limit->seconds();

                self::assertEqualsWithDelta(
                    max(0.001, (float) $value / 100 * $runtime),
                    $seconds,
                    0.001 + 0.01 * $runtime,
                );
                self::assertMatchesRegularExpression('/^(?=.*[1-9])\d+(?:\.\d{1,3})?$/D', (string) $seconds);
            }
        }
    }

    /** @return iterable<string, array{string}> */
    public static function badTimeLimits(): iterable
    {
        foreach (['', '0', '0%', '-5', 'x', '%', 'x%', '5%%'] as $value) {
            yield "'{$value}'" => [$value];
        }
    }

    #[DataProvider('badTimeLimits')]
    public function testAnotherTimeLimitIsRefusedByName(string $value): void
    {
        $this->expectException(UsageException::class);
        $this->expectExceptionMessageMatches('/^option --timeout: .* is not allowed; give a number of seconds/');

        TimeLimit::parse($value);
    }

    public function testAnotherProgressIsRefusedByName(): void
    {
        self::assertSame(ProgressMode::None, ProgressMode::parse(null));
        self::assertSame(ProgressMode::Json, ProgressMode::parse('json'));
        $this->expectExceptionObject(UsageException::option('--progress', 'pie', 'bar, screen, plain, json or none'));

        ProgressMode::parse('pie');
    }

    private function cpus(int $count): CpuCount
    {
        mkdir($this->path('proc'));
        mkdir($this->path('proc/self'));
        $this->file('proc/self/status', 'Cpus_allowed_list:	0-' . ($count - 1) . "\n");

        return new CpuCount($this->path());
    }
}
