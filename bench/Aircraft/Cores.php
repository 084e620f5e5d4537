<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Support\Program;

/**
 * Who runs on which core: what is measured on the first that this process may use, this process with the client and PostgreSQL
 * on the second. With one core, or without taskset, all share what there is.
 */
final readonly class Cores
{
    /** The niceness of those that others come before. */
    private const LAST = '19';

    private const TRIES = 20;

    /** Microseconds. */
    private const PAUSE = 110_000;

    /** @param list<int> $usable */
    private function __construct(private array $usable) {}

    public static function find(): self
    {
        $status = (string) @file_get_contents('/proc/self/status');

        return new self(preg_match('/^Cpus_allowed_list:\s*(\S+)$/m', $status, $match) === 1 && Program::find('taskset') !== null ? self::list($match[1]) : []);
    }

    /**
     * Moves these processes to the second core, and so all that they start from now on.
     *
     * @param list<int> $pids
     */
    public function move(array $pids): void
    {
        foreach ($this->areTwo() ? $pids : [] as $pid) {
            Program::run(['taskset', '-cp', (string) $this->usable[1], (string) $pid]);
        }
    }

    public function areTwo(): bool
    {
        return \count($this->usable) > 1;
    }

    public function describe(): string
    {
        return $this->areTwo()
            ? "server with nginx and all workers on core {$this->usable[0]}; PostgreSQL, client and this process on core {$this->usable[1]}"
            : 'not divided: there is one core, or no taskset, and server, client and PostgreSQL share what there is';
    }

    public function describeAway(): string
    {
        return 'they and their Redis stand for other machines: with idle priority they take what others leave' . ($this->areTwo() ? " of core {$this->others()}" : '');
    }

    /** @return list<string> what stands before a command that is to run on the first core, or on both */
    public function before(bool $both): array
    {
        return $this->areTwo() ? ['taskset', '-c', implode(',', \array_slice($this->usable, 0, $both ? 2 : 1))] : [];
    }

    /**
     * @return list<string> what stands before the command of a process that is there for another machine: it takes what is left of
     *                      the cores that are not the server's, in a session of its own
     */
    public function away(): array
    {
        return ['setsid', ...($this->areTwo() ? ['taskset', '-c', $this->others()] : []), 'chrt', '--idle', '0'];
    }

    /**
     * The same for one that runs, in a session of its own, with all its threads.
     *
     * @throws \RuntimeException
     */
    public function moveAway(int $pid): void
    {
        foreach ([['chrt', '--idle', '--all-tasks', '--pid', '0'], ...($this->areTwo() ? [['taskset', '--all-tasks', '-cp', $this->others()]] : [])] as $command) {
            if (Program::run([...$command, (string) $pid])[0] !== 0) {
                throw new \RuntimeException("{$command[0]} could not move process {$pid}");
            }
        }
        self::yieldSession($pid);
    }

    /** Has the session of a process yield to others where the kernel gives each its share, within which alone scheduling classes count: autogroups. */
    public static function yieldSession(int $pid): void
    {
        $file = "/proc/{$pid}/autogroup";
        // Without privileges one of these may be set in a tenth of a second.
        for ($try = 0; $try < self::TRIES && is_file($file) && @file_put_contents($file, self::LAST) === false; ++$try) {
            usleep(self::PAUSE);
        }
    }

    /** The second, or where there are more those behind it. */
    private function others(): string
    {
        return implode(',', \array_slice($this->usable, \count($this->usable) > 2 ? 2 : 1));
    }

    /** @return list<int> of a list such as 0-2,5 */
    private static function list(string $text): array
    {
        return array_merge(...array_map(static function (string $part): array {
            $ends = explode('-', $part);

            return range((int) $ends[0], (int) ($ends[1] ?? $ends[0]));
        }, explode(',', $text)));
    }
}
