<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Spindle\Bench\Http\Child;
use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Signals;

/** Runs scripts of the benchmark as separate processes. */
final class PhpProcess
{
    /** Time limit of a script, in seconds. */
    private const TIMEOUT = 900.0;

    private const POLL_INTERVAL = 0.02;

    private const LOG = 'log';

    /**
     * @param PrivateDirectory $directory folder for its output
     * @param Checkout         $checkout  the Spindle that it uses
     */
    public static function start(
        PrivateDirectory $directory,
        Checkout $checkout,
        string $file,
        string ...$arguments,
    ): Child {
        $script = \dirname(__DIR__) . "/{$file}";
        $command = $checkout->command([\PHP_BINARY, ...Program::PHP_OPTIONS, $script, ...array_values($arguments)]);

        return Signals::withoutInterruption(
            static fn(): Child => new Child($command, "{$directory->path}/" . self::LOG, $directory->path),
        );
    }

    /**
     * Runs the benchmark's script for a measurement, and waits for it.
     *
     * @return array<string, mixed> its figures
     *
     * @throws \RuntimeException when it printed none
     */
    public static function figures(
        PrivateDirectory $directory,
        Checkout $checkout,
        Measurement $what,
        int $tasks,
        string ...$options,
    ): array {
        $result = "{$directory->path}/result";
        $script = self::start(
            $directory,
            $checkout,
            'remote-script.php',
            '--what',
            $what->value,
            "-n{$tasks}",
            '--result',
            $result,
            ...array_values($options),
        );
        for ($end = hrtime(true) + self::TIMEOUT * 1e9; $script->isRunning() && hrtime(true) < $end;) {
            usleep((int) (self::POLL_INTERVAL * 1e6));
        }
        $script->stop();
        $figures = json_decode((string) @file_get_contents($result), true);
        if (!\is_array($figures)) {
            throw new \RuntimeException('the script printed no result: ' . self::log($directory));
        }
        /** @var array<string, mixed> $figures */
        return $figures;
    }

    public static function log(PrivateDirectory $directory): string
    {
        return trim((string) @file_get_contents("{$directory->path}/" . self::LOG));
    }
}
