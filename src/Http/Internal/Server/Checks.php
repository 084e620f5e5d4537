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
            } catch (CancelledException) {
                $result->ignore();
                $results[$name] = 'It took longer than ' . self::DEADLINE . ' s';
            } catch (\Throwable $failure) {
                $results[$name] = $failure->getMessage();
            }
        }

        return $results;
    }
}
