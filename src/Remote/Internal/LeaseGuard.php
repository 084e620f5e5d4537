<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\Clock;
use Spindle\Internal\Launcher\Descriptors;
use Spindle\Internal\Launcher\LauncherChild;
use Spindle\Internal\Launcher\PhpBinary;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\Warnings;
use Spindle\LauncherException;

/**
 * Starts and controls a helper process, which kills all other descendants of this process shortly before the agent's
 * lease ends. After each renewal of the lease, {@see extend()} sets a later time.
 *
 * An agent that is suspended, for example by SIGSTOP, can't end its own workers. Without the helper, the workers would
 * continue while another agent runs the same jobs.
 */
final class LeaseGuard
{
    use NotCopyable;

    private const READY = '+';

    private const START_TIMEOUT = 30.0;

    /** @var resource|null the helper process; null while it is not running */
    private mixed $process = null;

    /** @var resource|null the helper's standard input */
    private mixed $pipe = null;

    /** @var resource|null stream on which the helper reports that it is ready; null after that report */
    private mixed $startReport = null;

    private float $startedAt = 0.0;

    /** Id of the process that has started the helper. A fork must not end the helper. */
    private int $ownerPid = 0;

    /** Time of {@see Clock::now()} at which the helper kills the processes; INF for never. */
    private float $until = \INF;

    /** @param string|null $php PHP command-line binary for the helper; null to search for one */
    public function __construct(private readonly ?string $php = null) {}

    public function __destruct()
    {
        $this->close();
    }

    /** @throws LauncherException */
    public function start(): void
    {
        if ($this->process !== null) {
            return;
        }
        LauncherChild::checkFunctions();
        $none = ['null'];
        // The helper inherits no descriptors. Otherwise it would keep sockets open that this process has closed.
        $replaced = array_fill_keys(Descriptors::toReplace(), $none);
        $php = PhpBinary::find($this->php, 'WorkerPoolOptions');
        $main = PhpBinary::script(__DIR__ . '/lease-guard.php');
        $command = [$php, ...PhpBinary::options(), ...$main, (string) getmypid()];
        $descriptors = [['pipe', 'r'], ['socket'], $none] + $replaced;
        $pipes = [];
        $process = Warnings::suppressed(static function () use ($command, $descriptors, &$pipes): mixed {
            return proc_open($command, $descriptors, $pipes, '/');
        });
        if ($process === false) {
            throw LauncherException::cannotStart(error_get_last()['message'] ?? 'proc_open failed');
        }
        stream_set_blocking($pipes[0], false);
        stream_set_blocking($pipes[1], false);
        [$this->process, $this->pipe, $this->startReport] = [$process, ...$pipes];
        [$this->startedAt, $this->ownerPid] = [Clock::now(), (int) getmypid()];
        $this->extend($this->until);
    }

    /**
     * Sets a new time for the kill. Replaces the helper if it has ended or no longer reads its input.
     *
     * @param float $until time of {@see Clock::now()} at which the processes are killed; INF while no job runs
     *
     * @throws LauncherException when the helper has not become ready, or can't be started again
     */
    public function extend(float $until): void
    {
        $this->until = $until;
        $pipe = $this->pipe;
        if ($pipe === null) {
            return;
        }
        $this->checkReady();
        $time = is_finite($until) ? hrtime(true) + (int) (($until - Clock::now()) * 1e9) : \PHP_INT_MAX;
        $written = Warnings::write($pipe, "{$time}\n");
        if ($written === false || ($written === 0 && $this->startReport === null)) { // the helper has ended or hangs
            $this->startReport === null ? $this->close() : $this->failStart();
            $this->start();
        }
    }

    public function close(): void
    {
        if ($this->pipe !== null) {
            fclose($this->pipe);
        }
        if ($this->startReport !== null) {
            fclose($this->startReport);
        }
        if ($this->process !== null) {
            if ($this->ownerPid === getmypid()) {
                proc_terminate($this->process, 9); // SIGKILL, because the helper may be suspended
            }
            proc_close($this->process);
        }
        $this->process = $this->pipe = $this->startReport = null;
    }

    /** Notes whether the helper is ready. Does not wait, because the agent must renew its lease in time. */
    private function checkReady(): void
    {
        $ready = $this->startReport;
        if ($ready === null) {
            return;
        }
        if (Warnings::suppressed(static fn(): string|false => fread($ready, 1)) === self::READY) {
            fclose($ready);
            $this->startReport = null;
        } elseif (feof($ready) || Clock::now() > $this->startedAt + self::START_TIMEOUT) {
            $this->failStart();
        }
    }

    private function failStart(): never
    {
        $this->close();
        $reason = 'the process of the lease guard did not become ready. Check that WorkerPoolOptions(php:) names a'
            . ' command-line PHP';

        throw LauncherException::cannotStart($reason);
    }
}
