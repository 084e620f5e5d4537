<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Spindle\Bench\Support\Program;

/** The pools of Python's standard library, if Python is installed. */
final class Python
{
    public const POOL = 'python-pool';
    public const EXECUTOR = 'python-executor';

    private static ?string $version = null;

    public static function missing(): ?string
    {
        return self::version() === '' ? 'python3 is not on PATH' : null;
    }

    public static function is(string $contestant): bool
    {
        return $contestant === self::POOL || $contestant === self::EXECUTOR;
    }

    public static function label(string $contestant): string
    {
        return \sprintf(
            'Python %s, %s',
            self::version(),
            $contestant === self::POOL ? 'multiprocessing.Pool' : 'ProcessPoolExecutor',
        );
    }

    /** @return list<string> */
    public static function command(
        string $contestant,
        TaskMeasurement $what,
        int $count,
        int $workers,
        int $bytes,
    ): array {
        $kind = substr($contestant, \strlen('python-'));

        return [
            'python3',
            \dirname(__DIR__) . '/peers.py',
            $what->value,
            $kind,
            (string) $count,
            (string) $workers,
            (string) $bytes,
        ];
    }

    private static function version(): string
    {
        if (self::$version === null) {
            $output = Program::find('python3') === null ? '' : Program::run(['python3', '--version'])[1];
            self::$version = preg_match('/^Python (3\.\d+\.\d+)/', $output, $match) === 1 ? $match[1] : '';
        }

        return self::$version;
    }
}
