<?php

declare(strict_types=1);

namespace Spindle\Command;

use Psr\Log\LoggerInterface;
use Spindle\Internal\CommandTransport;
use Spindle\Internal\NumberRange;
use Spindle\LauncherException;

/** Settings of a command pool that most callers leave unchanged. */
final class CommandPoolOptions
{
    /**
     * @param HaltPolicy|null $halt condition that ends a run early; null runs all commands
     * @param float $gracePeriod seconds between SIGTERM and SIGKILL when the pool ends a command
     * @param int $lookahead maximum number of commands that a run reads in addition to the running commands, so that
     *        the pool is busy while the caller's loop body runs. A command counts until the caller has read its result.
     *        With a halt policy, the lookahead is 0. The lookahead is also 0 while the counted commands and their input
     *        strings have 16 MiB or more in total, and while more than 64 outputs have their own temporary files
     * @param bool $rerunAfterCrash whether to run the commands of a dead launcher again. A command may then run up to
     *        four times. The command fails when four launchers have died while they ran the command. If false,
     *        commands that a dead launcher may have started fail with {@see LauncherException}
     * @param StartMethod $startMethod how launchers start processes
     * @param string|null $php path of the PHP command-line binary that runs launchers; null to search for a binary
     * @param string|null $temporaryDirectory directory for the unlinked files that hold large outputs; null for the
     *        system's temporary directory
     * @param LoggerInterface|null $logger gets debug messages, without output and environment of commands
     * @param CommandTransport|null $transport runs the commands on other machines, such as a
     *        {@see \Spindle\Remote\RemoteCommands}; null for launchers. With a transport, `$gracePeriod`,
     *        `$rerunAfterCrash`, `$startMethod` and `$php` have no effect
     * @param float $delay minimum seconds from the start of one command to the start of the next, in all runs together;
     *        each attempt counts as a start
     *
     * @throws \ValueError when a number is negative, or above 1,000,000,000
     */
    public function __construct(
        public readonly ?HaltPolicy $halt = null,
        public readonly float $gracePeriod = 2.0,
        public readonly int $lookahead = 256,
        public readonly bool $rerunAfterCrash = false,
        public readonly StartMethod $startMethod = StartMethod::Auto,
        public readonly ?string $php = null,
        public readonly ?string $temporaryDirectory = null,
        public readonly ?LoggerInterface $logger = null,
        public readonly ?CommandTransport $transport = null,
        public readonly float $delay = 0.0,
    ) {
        NumberRange::checkSeconds('The grace period', $gracePeriod);
        NumberRange::checkSeconds('The delay', $delay);
        NumberRange::checkCount('The lookahead', $lookahead, 0);
    }
}
