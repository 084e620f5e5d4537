<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\Clock;
use Spindle\Internal\Launcher\Descriptors;
use Spindle\Internal\Launcher\PhpBinary;
use Spindle\LauncherException;

/**
 * A helper process that kills all processes that this one has started, unless their time is extended in time.
 *
 * A stopped process can't end anything. Its workers would go on while another agent runs the same jobs.
 */
final class LeaseGuard
{
    /** @var resource|null */
    private mixed $process = null;

    /** @var resource|null */
    private mixed $pipe = null;

    private float $until = \INF;

    private function __clone() {}

    public function __destruct()
    {
        $this->close();
    }

    /**
     * Starts the helper process, unless it runs.
     *
     * @throws LauncherException
     */
    public function start(): void
    {
        if ($this->process !== null) {
            return;
        }
        $none = ['file', '/dev/null', 'r+'];
        // PHP does not close descriptors in a child, and a socket that the helper has stays open in the engine, too.
        $replaced = array_fill_keys(Descriptors::toReplace(), $none);
        $command = [PhpBinary::find(null), ...PhpBinary::options(), __DIR__ . '/lease-guard.php', (string) getmypid()];
        $process = @proc_open($command, [['pipe', 'r'], $none, $none] + $replaced, $pipes, '/');
        if ($process === false) {
            throw LauncherException::cannotStart(error_get_last()['message'] ?? 'proc_open failed');
        }
        stream_set_blocking($pipes[0], false);
        [$this->process, $this->pipe] = [$process, $pipes[0]];
        $this->extend($this->until);
    }

    /** @param float $until in seconds of {@see Clock::now()}; INF while nothing runs */
    public function extend(float $until): void
    {
        $this->until = $until;
        if ($this->pipe === null) {
            return;
        }
        $time = is_finite($until) ? hrtime(true) + (int) (($until - Clock::now()) * 1e9) : \PHP_INT_MAX;
        if (@fwrite($this->pipe, "{$time}\n") === false) { // the helper was killed
            $this->close();
            $this->start();
        }
    }

    public function close(): void
    {
        if ($this->pipe !== null) {
            fclose($this->pipe);
        }
        if ($this->process !== null) {
            proc_close($this->process);
        }
        $this->process = $this->pipe = null;
    }
}
