<?php

declare(strict_types=1);

namespace Spindle\Command;

use Psr\Log\LoggerInterface;
use Spindle\Internal\NumberRange;
use Spindle\LauncherException;

/** Settings of a pool that rarely have to be changed. */
final class CommandPoolOptions
{
    /**
     * @param HaltPolicy|null      $halt      condition that ends a run early; null runs everything
     * @param float                $grace     seconds between SIGTERM and SIGKILL for a command that is ended
     * @param int                  $lookahead commands passed to the launchers, or results waiting in this process, in
     *                                        addition to the running commands. They keep the pool busy while the
     *                                        caller's loop body runs. There is no lookahead while commands and their
     *                                        inputs have 16 MiB or more
     * @param bool                 $redispatch run again the commands that a launcher had started when it died, instead
     *                                         of failing with {@see LauncherException}. Such a command may run twice.
     *                                         The command fails after four launchers have died with it
     * @param StartMethod          $start     way in which launchers start processes
     * @param string|null          $php       the PHP command-line binary that runs launchers; null finds it
     * @param string|null          $temporaryDirectory directory of the unlinked files that keep large output; null for
     *                                                 the system's own
     * @param LoggerInterface|null $logger    gets each step at debug level, never output or environment
     * @param CommandCarrier|null  $on        runs the commands in another place, such as on other machines, with its
     *                                        own `$grace`, `$start` and `$php`; null for here
     * @param float                $delay     minimum seconds from one start to the next, across all runs and attempts
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
