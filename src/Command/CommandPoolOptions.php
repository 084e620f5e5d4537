<?php

declare(strict_types=1);

namespace Spindle\Command;

use Psr\Log\LoggerInterface;
use Spindle\Internal\NumberRange;
use Spindle\LauncherException;

/**
 * What a pool can be told beyond its concurrency and retries. The defaults need no thought.
 */
final class CommandPoolOptions
{
    /**
     * @param HaltPolicy|null      $halt      ends a run early; null runs everything
     * @param float                $grace     seconds between TERM and KILL for a command that is ended
     * @param int                  $lookahead commands handed to the launcher, or results waiting in this process, beyond
     *                                        the running ones: they keep the pool busy while the caller's loop body runs.
     *                                        There are none while commands and their inputs have 16 MiB or more
     * @param bool                 $redispatch run again what a launcher that died had started, instead of failing with
     *                                        {@see LauncherException}: such a command may run twice. One that four
     *                                        launchers have died with fails nevertheless
     * @param StartMethod          $start     how the launcher starts processes
     * @param string|null          $php       the PHP command-line binary that runs the launcher; null finds it
     * @param string|null          $temporaryDirectory where large output is kept, unlinked; null for the system's own
     * @param LoggerInterface|null $logger    gets each step at debug level, never output or environment
     * @param CommandCarrier|null  $on        has the commands run elsewhere, such as on other machines, by processes that
     *                                        have a grace, a start and a PHP of their own; null for here
     * @param float                $delay     seconds from one start to the next at least, across all runs and attempts
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly ?HaltPolicy $halt = null,
        public readonly float $grace = 2.0,
        public readonly int $lookahead = 256,
        public readonly bool $redispatch = false,
        public readonly StartMethod $start = StartMethod::Auto,
        public readonly ?string $php = null,
        public readonly ?string $temporaryDirectory = null,
        public readonly ?LoggerInterface $logger = null,
        public readonly ?CommandCarrier $on = null,
        public readonly float $delay = 0.0,
    ) {
        NumberRange::seconds('The grace', $grace);
        NumberRange::seconds('The delay', $delay);
        NumberRange::count('The lookahead', $lookahead, 0);
    }
}
