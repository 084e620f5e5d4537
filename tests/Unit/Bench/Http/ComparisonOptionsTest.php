<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Http\ComparisonOptions;
use Spindle\Bench\Http\Contestant;
use Spindle\Bench\Http\Measurement;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

final class ComparisonOptionsTest extends TestCase
{
    private const DEFAULTS = [
        'only' => 'all',
        'n' => '1000',
        'connections' => '50',
        'rounds' => '5',
        'seconds' => '3',
        'peers' => 'all',
        'autoload' => [],
        'head-timeout' => '10',
    ];

    public function testAllIsMeasuredWithAllUnlessToldOtherwise(): void
    {
        $options = self::of();

        self::assertSame(Measurement::cases(), $options->only);
        self::assertSame(Contestant::cases(), $options->contestants());
    }

    public function testSpindleAlwaysTakesPartAndIsTheFirst(): void
    {
        self::assertSame([Contestant::Spindle], self::of('--peers', 'none')->contestants());
        self::assertSame(
            [Contestant::Spindle, Contestant::Fpm, Contestant::Bare],
            self::of('--peers', 'fpm,bare')->contestants(),
        );
    }

    public function testSecondsMayBeAPart(): void
    {
        self::assertSame(0.3, self::of('--seconds', '0.3')->seconds);
    }

    public function testAutoloadersAreWholePaths(): void
    {
        self::assertSame(
            [__FILE__, __FILE__],
            self::of('--autoload', __FILE__, '--autoload', __DIR__ . '/../Http/' . basename(__FILE__))->autoloaders,
        );
    }

    /** @return iterable<string, array{string, string, string}> */
    public static function mistakes(): iterable
    {
        yield 'measurement' => [
            '--only',
            'text,joins',
            "option --only: 'joins' is not allowed; give all, or some of text, text-same, json, echo, one, connections,"
            . ' two, wait, idle, soak, slow, tls',
        ];
        yield 'peer' => [
            '--peers',
            'spindle',
            "option --peers: 'spindle' is not allowed; give all, or some of bare, fpm, workerman, react, amp",
        ];
        yield 'no seconds' => [
            '--seconds',
            '0.01',
            "option --seconds: '0.01' is not allowed; give a number, at least 0.1",
        ];
        yield 'seconds in words' => [
            '--seconds',
            'few',
            "option --seconds: 'few' is not allowed; give a number, at least 0.1",
        ];
        yield 'autoloader' => [
            '--autoload',
            '/nowhere.php',
            "option --autoload: the file '/nowhere.php' does not exist",
        ];
        yield 'folder as autoloader' => ['--autoload', '/', "option --autoload: the file '/' does not exist"];
        yield 'requests' => ['-n', '9', "option -n: '9' is not allowed; give a whole number, at least 10"];
    }

    #[DataProvider('mistakes')]
    public function testAMistakeIsNamed(string $option, string $value, string $message): void
    {
        $this->expectExceptionObject(new UsageException($message));
        self::of($option, $value);
    }

    private static function of(string ...$arguments): ComparisonOptions
    {
        return ComparisonOptions::of(Options::parse(array_values($arguments), self::DEFAULTS));
    }
}
