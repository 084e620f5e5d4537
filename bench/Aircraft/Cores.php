<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Support\Program;

/**
 * Assigns processes to cores.
 *
 * The measured server runs on the first usable core. This process, the client and PostgreSQL run on the second. With
 * one core, or without taskset, all processes share the usable cores.
 */
final readonly class Cores
{
    /** Niceness of processes with the lowest priority. */
    private const LOWEST_PRIORITY = '19';

    private const MAX_ATTEMPTS = 20;

    /** Microseconds between two attempts. */
    private const RETRY_MICROSECONDS = 110_000;

    /** @param list<int> $usable */
    private function __construct(private array $usable) {}

    public static function find(): self
    {
        $status = (string) @file_get_contents('/proc/self/status');

        return new self(
            preg_match('/^Cpus_allowed_list:\s*(\S+)$/m', $status, $match) === 1 && Program::find('taskset') !== null
                ? self::list($match[1])
                : [],
        );
    }

    /**
     * Moves processes, and all that they start later, to the second core.
     *
     * @param list<int> $pids
     */
    public function move(array $pids): void
    {
        foreach ($this->areDivided() ? $pids : [] as $pid) {
            Program::run(['taskset', '-cp', (string) $this->usable[1], (string) $pid]);
        }
    }

    public function areDivided(): bool
    {
        return \count($this->usable) > 1;
    }

    public function describe(): string
    {
        return $this->areDivided()
            ? "server, nginx and all workers on core {$this->usable[0]};"
                . " PostgreSQL, client and this process on core {$this->usable[1]}"
            : 'shared by server, client and PostgreSQL, because only one core is usable or taskset is missing';
    }

    public function describeBackground(): string
    {
        return 'they and their Redis simulate other machines: with idle priority they use the remaining CPU time'
            . ($this->areDivided() ? " of core {$this->backgroundCores()}" : '');
    }

    /** @return list<string> prefix of a command that runs on the first core, or on both */
    public function before(bool $both): array
    {
        return $this->areDivided()
            ? ['taskset', '-c', implode(',', \array_slice($this->usable, 0, $both ? 2 : 1))]
            : [];
    }

    /**
     * @return list<string> prefix of a command that stands for another machine: its own session, and only the idle time
     *                     of the cores that the server does not use
     */
    public function background(): array
    {
        $taskset = $this->areDivided() ? ['taskset', '-c', $this->backgroundCores()] : [];

        return ['setsid', ...$taskset, 'chrt', '--idle', '0'];
    }

    /**
     * Applies the settings of {@see background()} to a running process with all its threads. The process leads its own
     * session.
     *
     * @throws \RuntimeException
     */
    public function moveToBackground(int $pid): void
    {
        foreach ([
            ['chrt', '--idle', '--all-tasks', '--pid', '0'],
            ...($this->areDivided() ? [['taskset', '--all-tasks', '-cp', $this->backgroundCores()]] : []),
        ] as $command) {
            if (Program::run([...$command, (string) $pid])[0] !== 0) {
                throw new \RuntimeException("{$command[0]} could not move process {$pid}");
            }
        }
        self::yieldSession($pid);
    }

    /**
     * Gives the session of a process the lowest priority among sessions.
     *
     * With autogroups, the kernel divides CPU time among sessions. Scheduling classes then count only within a session.
     */
    public static function yieldSession(int $pid): void
    {
        $file = "/proc/{$pid}/autogroup";
        // The kernel lets unprivileged users set one value per tenth of a second.
        for ($try = 0; $try < self::MAX_ATTEMPTS && is_file($file) && @file_put_contents(
            $file,
            self::LOWEST_PRIORITY,
        ) === false; ++$try) {
            usleep(self::RETRY_MICROSECONDS);
        }
    }

    /** Returns the second core, or the cores after it when there are more. */
    private function backgroundCores(): string
    {
        return implode(',', \array_slice($this->usable, \count($this->usable) > 2 ? 2 : 1));
    }

    /** @return list<int> the numbers in a list such as 0-2,5 */
    private static function list(string $text): array
    {
        return array_merge(...array_map(static function (string $part): array {
            $ends = explode('-', $part);

            return range((int) $ends[0], (int) ($ends[1] ?? $ends[0]));
        }, explode(',', $text)));
    }
}
