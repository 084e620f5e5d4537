<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Amp\CancelledException;
use Amp\TimeoutCancellation;

use function Amp\async;

/** Whether what a server depends on works. */
final class Checks
{
    /** Seconds after which a check is late. */
    private const DEADLINE = 1.0;

    /** Said of one that is late. */
    public const LATE = 'It took longer than ' . self::DEADLINE . ' s';

    private function __construct() {}

    /**
     * @param array<string, \Closure(): void> $checks run side by side, each in a fiber of its own
     *
     * @return array<string, string|null> by name: why it failed, or null
     */
    public static function run(array $checks): array
    {
        $deadline = new TimeoutCancellation(self::DEADLINE);
        $results = [];
        foreach (array_map(async(...), $checks) as $name => $result) {
            try {
                $result->await($deadline);
                $results[$name] = null;
            } catch (CancelledException $cancelled) {
                $result->ignore();
                $results[$name] = $result->isComplete() ? $cancelled->getMessage() : self::LATE;
            } catch (\Throwable $failure) {
                $results[$name] = $failure->getMessage();
            }
        }

        return $results;
    }
}
