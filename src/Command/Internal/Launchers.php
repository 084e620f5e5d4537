<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\CpuCount;
use Spindle\Internal\Launcher\Credentials;
use Spindle\Internal\Launcher\Protocol;
use Spindle\LauncherException;

/**
 * The launchers of one pool.
 *
 * A launcher waits while a process that it starts becomes the program; several wait side by side
 * (docs/decisions/0005-several-launchers.md). Each may run its share of the commands. When one has slots to spare and
 * another has commands that wait, these are asked back and move.
 */
final class Launchers implements Place
{
    /** A launcher for so many commands at once, as long as there are CPUs for more, and so many launchers at most. */
    private const SLOTS = 4;
    private const MOST = 4;

    /** When each has died so often, with no command finished in between, none is started again. */
    private const DEATHS = 3;

    /**
     * Failed starts per launcher, within this time in nanoseconds, after which none is started again. A start fails
     * when the launcher dies before it is ready.
     */
    private const FAILED_STARTS = 5;
    private const FAILED_STARTS_WITHIN = 10_000_000_000;

    /** @var list<Launcher> */
    private array $launchers = [];

    /** @var list<Launcher> with former credentials of this process; each ends when its commands have ended */
    private array $retired = [];

    /** The credentials that the launchers have. */
    private string $credentials = '';

    /** How many there are to be, decided when the first is started; more when the pool grows. */
    private int $wanted = 0;

    /** How often one has died since a command finished. */
    private int $deaths = 0;

    /** @var list<int|float> times of the last failed starts, on the monotonic clock */
    private array $failedStarts = [];

    /** How many commands each has descriptors for, and how it starts them, once one has said so. */
    private ?int $capacity = null;
    private string $means = '';

    /** @var list<Suspension<mixed>> of those that wait to hear so */
    private array $waiting = [];

    /**
     * @param string                                               $files what the paths of the pool's temporary files begin with
     * @param \Closure(Launcher, int, int, string, int, int): void $frame as {@see Launcher} has it
     * @param \Closure(Launcher, string): void                     $died  as {@see Launcher} has it
     * @param \Closure(Launcher): void                             $left  as {@see Launcher} has it
     */
    public function __construct(
        private readonly CommandPoolOptions $options,
        private readonly StepLog $log,
        private readonly string $files,
        private readonly \Closure $frame,
        private readonly \Closure $died,
        private readonly \Closure $left,
    ) {}

    /**
     * Replaces those that have died while there was nothing to do.
     *
     * @throws LauncherException
     */
    public function refresh(int $concurrency): void
    {
        foreach ($this->all() as $launcher) {
            if (!$launcher->isOurs()) {
                throw LauncherException::forked();
            }
            if ($launcher->tickets === []) {
                $launcher->read();
            }
        }
        $this->start($concurrency);
    }

    /**
     * Starts those that are missing, and replaces those that have other credentials than this process has now.
     *
     * @throws LauncherException
     */
    public function start(int $concurrency): void
    {
        if ($this->wanted === 0) {
            $this->wanted = self::countFor($concurrency);
        }
        $credentials = Credentials::current();
        if ($credentials !== $this->credentials) {
            $this->retire();
            $this->credentials = $credentials;
        }
        if (\count($this->launchers) === $this->wanted) {
            return;
        }
        while (\count($this->launchers) < $this->wanted) {
            $this->launchers[] = new Launcher($this->options, $this->files, $this->frame, $this->died, $this->left);
            $this->log->write('A launcher was started');
        }
        $this->share($concurrency);
    }

    /**
     * Gives a command to the one that it waits least with. It is on its way when {@see flush()} is called, or earlier.
     *
     * @throws LauncherException when one that is missing can't be started, or when the credentials have changed since
     *                           the command was given
     */
    public function assign(Ticket $ticket, int $concurrency): void
    {
        $this->start($concurrency);
        if (($ticket->credentials ??= $this->credentials) !== $this->credentials) {
            throw LauncherException::otherCredentials([$ticket->key]);
        }
        self::give($ticket, $this->freest());
    }

    /**
     * Gives a command that was asked back and has come to another one.
     *
     * @throws LauncherException as {@see assign()}
     */
    public function move(Ticket $ticket, int $concurrency): void
    {
        $launcher = $ticket->launcher;
        $launcher?->remove($ticket);
        $this->start($concurrency);
        if ($launcher !== null && \in_array($launcher, $this->retired, true)) {
            self::give($ticket, $launcher); // no other one has its credentials
        } else {
            $this->assign($ticket, $concurrency);
        }
    }

    public function cancel(Ticket $ticket): void
    {
        $ticket->launcher?->gather(Protocol::frame(Protocol::CANCEL, $ticket->id));
    }

    public function withdraw(Ticket $ticket): void
    {
        $ticket->launcher?->gather(Protocol::frame(Protocol::WITHDRAW, $ticket->id));
    }

    /** Bytes that are gathered, or sent and not taken yet. */
    public function unsent(): int
    {
        $bytes = 0;
        foreach ($this->all() as $launcher) {
            $bytes += $launcher->unsent();
        }

        return $bytes;
    }

    public function flush(): void
    {
        foreach ($this->all() as $launcher) {
            $launcher->send();
        }
    }

    /** What one of them says when it starts. */
    public function ready(Launcher $launcher, string $payload): void
    {
        $launcher->isReady = true;
        /** @var array{pid: int, capacity: int} $ready */
        $ready = unpack('Vpid/Vcapacity', $payload);
        $this->capacity = $ready['capacity'];
        $this->means = substr($payload, 8);
        $this->wake();
        $this->log->write('The launcher {pid} is ready and uses {means}', ['pid' => $ready['pid'], 'means' => $this->means]);
    }

    public function tooMany(int $concurrency): LauncherException
    {
        return LauncherException::tooManyAtOnce($concurrency, (int) $this->capacity * $this->wanted, $this->means);
    }

    /** A command is over, and its slot is free. */
    public function release(Ticket $ticket): void
    {
        $this->deaths = 0;
        $launcher = $ticket->launcher;
        $launcher?->remove($ticket);
        $isIdle = $launcher !== null && $launcher->tickets === [];
        if ($isIdle && $this->retired !== [] && \in_array($launcher, $this->retired, true)) {
            $this->remove($launcher, null);
            $launcher->close();
        }
        $this->balance();
    }

    /** One that was asked back runs already; another may wait. */
    public function started(Ticket $ticket): void
    {
        $ticket->launcher?->started($ticket);
        $this->balance();
    }

    /** A launcher has no descriptors or processes for the command, and none of its commands runs that could free some. */
    public function refused(Ticket $ticket): void
    {
        $launcher = $ticket->launcher;
        $launcher?->remove($ticket);
        if ($launcher !== null) {
            $launcher->exhausted = true;
        }
    }

    /** Whether none of their commands runs, for want of descriptors or processes. */
    public function areStuck(): bool
    {
        foreach ($this->all() as $launcher) {
            if (!$launcher->exhausted && $launcher->tickets !== []) {
                return false;
            }
        }

        return true;
    }

    /** Forgets a launcher that is dead or has failed; {@see capacity()} then throws the reason, or asks another one. */
    public function remove(Launcher $launcher, ?LauncherException $why): void
    {
        $isOther = static fn(Launcher $other): bool => $other !== $launcher;
        $this->launchers = array_values(array_filter($this->launchers, $isOther));
        $this->retired = array_values(array_filter($this->retired, $isOther));
        $this->wake($why);
    }

    /** @return bool whether it may be replaced */
    public function died(Launcher $launcher, string $how): bool
    {
        $this->log->write('A launcher died: {how}', ['how' => $how]);
        $isReplaceable = ++$this->deaths <= self::DEATHS * $this->wanted
            && ($launcher->isReady || $this->mayFailToStart());
        $this->remove($launcher, $isReplaceable ? null : LauncherException::died($how, []));

        return $isReplaceable;
    }

    /** @return array<int, Ticket> all that they have, by id */
    public function tickets(): array
    {
        $tickets = [];
        foreach ($this->all() as $launcher) {
            $tickets += $launcher->tickets;
        }

        return $tickets;
    }

    /** A launcher starts its commands in the order in which it got them: the first ones run. */
    public function running(): array
    {
        $running = [];
        foreach ($this->all() as $launcher) {
            $running += \array_slice($launcher->tickets, 0, $launcher->share, true);
        }

        return $running;
    }

    /**
     * How many commands they have descriptors for together; waits until one has said so.
     *
     * @throws LauncherException when one can't be started, or ends
     */
    public function capacity(int $concurrency): int
    {
        $this->start($concurrency);
        while ($this->capacity === null) { // one that dies before it is ready is replaced
            $this->start($concurrency);
            $this->waiting[] = $suspension = EventLoop::getSuspension();
            $launcher = $this->launchers[0];
            $launcher->keepLoop();
            try {
                $suspension->suspend();
            } catch (\FiberError $blocked) {
                array_pop($this->waiting);

                throw CannotWaitException::because($blocked);
            } finally {
                $launcher->releaseLoop();
            }
        }

        return (int) $this->capacity * $this->wanted;
    }

    /** @throws LauncherException when they have not the descriptors for so many */
    public function resize(int $concurrency, int $before): void
    {
        if ($this->launchers !== []) {
            $this->capacity($before);
        }
        $wanted = max($this->wanted, self::countFor($concurrency));
        if ($this->capacity !== null && $concurrency > $this->capacity * $wanted) {
            throw LauncherException::tooManyAtOnce($concurrency, $this->capacity * $wanted, $this->means);
        }
        if ($this->launchers !== []) {
            $this->wanted = $wanted;
            $this->start($concurrency);
            $this->share($concurrency);
            $this->balance();
        }
    }

    /** Ends them all, side by side, and returns when they have ended. */
    public function close(): void
    {
        $launchers = $this->all();
        $this->launchers = $this->retired = [];
        foreach ($launchers as $launcher) {
            $launcher->hangUp();
        }
        foreach ($launchers as $launcher) {
            $launcher->close();
        }
        $this->wake(LauncherException::closed([]));
    }

    public function awaitEnd(): void {}

    /** @return list<Launcher> */
    private function all(): array
    {
        return $this->retired === [] ? $this->launchers : [...$this->launchers, ...$this->retired];
    }

    private static function give(Ticket $ticket, Launcher $launcher): void
    {
        $launcher->add($ticket);
        $ticket->connect();
        $launcher->useEnvironment($ticket->environment);
        $launcher->gather(Request::run($ticket));
    }

    /** Replaces all launchers. One that has commands ends when these have ended. */
    private function retire(): void
    {
        foreach ($this->launchers as $launcher) {
            if ($launcher->tickets === []) {
                $launcher->close();
            } else {
                $launcher->send();
                $this->retired[] = $launcher;
            }
        }
        $this->launchers = [];
        $this->wake();
    }

    private function mayFailToStart(): bool
    {
        $now = hrtime(true);
        $this->failedStarts[] = $now;
        $this->failedStarts = array_values(array_filter(
            $this->failedStarts,
            static fn(int|float $at): bool => $at > $now - self::FAILED_STARTS_WITHIN,
        ));

        return \count($this->failedStarts) <= self::FAILED_STARTS * $this->wanted;
    }

    private static function countFor(int $concurrency): int
    {
        return max(1, min(self::MOST, (new CpuCount())->usable(), intdiv($concurrency, self::SLOTS)));
    }

    /** Tells each how many commands it may run. */
    private function share(int $concurrency): void
    {
        $count = \count($this->launchers);
        $largest = intdiv($concurrency + $count - 1, $count);
        foreach ($this->launchers as $i => $launcher) {
            $launcher->share = intdiv($concurrency + $i, $count);
            // All are told the largest share, so that all of them refuse it or none.
            $launcher->send(Protocol::frame(Protocol::CONFIGURE, 0, pack('VVeC', $launcher->share, $largest, $this->options->grace, (int) $this->options->redispatch)));
        }
    }

    /** The one that a command waits least with; none without a slot, of which there are some after {@see resize()}. */
    private function freest(): Launcher
    {
        $freest = null;
        foreach ($this->launchers as $launcher) {
            if ($launcher->share > 0 && ($freest === null || $launcher->excess() < $freest->excess())) {
                $freest = $launcher;
            }
        }

        return $freest ?? throw new \LogicException('No launcher has a slot');
    }

    /** Of those that wait for {@see capacity()}. */
    private function wake(?LauncherException $why = null): void
    {
        $waiting = $this->waiting;
        $this->waiting = [];
        foreach ($waiting as $suspension) {
            $why === null ? $suspension->resume() : $suspension->throw($why);
        }
    }

    /** Where slots are free, commands that wait elsewhere are asked back. */
    private function balance(): void
    {
        foreach ($this->launchers as $idle) {
            if ($idle->excess() < 0 && \count($this->launchers) > 1) {
                $this->askBackFor($idle);
            }
        }
    }

    private function askBackFor(Launcher $idle): void
    {
        $free = -$idle->excess();
        foreach ($this->launchers as $launcher) {
            $free -= $launcher->moving(); // these are to come
        }
        foreach ($this->launchers as $busy) {
            // Half of what waits, so that both have as much to do.
            for ($wanted = min($free, intdiv($busy->waiting() + 1, 2)); $wanted > 0 && $busy->askBack(); --$wanted) {
                --$free;
            }
            $busy->send();
        }
    }
}
