<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Spindle\Http\AppException;
use Spindle\Http\Internal\Server\Listeners;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Backoff;
use Spindle\Internal\Launcher\Process\Signals;

/**
 * The supervisor's processes: forked, watched, replaced, and ended with it. It loads nothing of the application, has no
 * event loop, and sleeps until a signal, a message or a moment that something is due at.
 */
final class Fleet
{
    /** A process that has served for so long did not end soon, in nanoseconds. */
    private const SOON = 10_000_000_000;

    /** No wait is longer, in nanoseconds: it does not see a signal that came in the instant before it. */
    private const LONGEST_WAIT = 1_000_000_000;

    /** Without an answer to so many pings a process is killed. */
    private const PINGS = 4;

    private const SIGKILL = 9;

    /** @var array<int, Child> by pid; those that were told to end, too */
    private array $children = [];

    /** @var list<Slot> */
    private readonly array $slots;

    private readonly Succession $succession;
    private readonly Surveys $surveys;
    private readonly Backoff $backoff;

    /** Until all serve for the first time: a process that does not ends it all. */
    private bool $starting = true;

    private bool $stopping = false;

    /** The second signal to stop, which ends all at once. */
    private int $killedBy = 0;

    /** When pings are sent next, and when files are looked at, by hrtime(). */
    private int $pingAt;
    private int $lookAt = 0;

    /**
     * @param list<Duty>       $duties
     * @param string           $ready what is logged when all serve
     * @param FileWatch|null   $files whose changes are new code
     */
    public function __construct(
        array $duties,
        private readonly string $ready,
        private readonly SupervisorOptions $options,
        private readonly LoggerInterface $logger,
        private readonly ?FileWatch $files = null,
    ) {
        $this->slots = array_map(static fn(Duty $duty): Slot => new Slot($duty), $duties);
        $this->succession = new Succession(array_filter($this->slots, static fn(Slot $slot): bool => $slot->duty->runsApplication));
        $this->surveys = new Surveys();
        $this->backoff = new Backoff(0.2, 2.0, 30.0, 0.2);
        $this->pingAt = $this->nextPing();
    }

    /**
     * Works until it is told to stop, and returns when no process is left. Each process does so as well: it never returns.
     *
     * @return int the signal that made it end all at once, or 0
     *
     * @throws AppException when a process does not come up at the start; then none is left
     */
    public function run(): int
    {
        $signals = new SignalInbox();
        try {
            while (!$this->stopping || $this->children !== []) {
                array_map($this->obey(...), $signals->take());
                $this->keepTime((int) hrtime(true));
                $this->startWhatIsDue((int) hrtime(true));
                $this->wait($signals);
                $this->reap();
            }
        } finally {
            $this->killAll();
            $signals->close();
        }

        return $this->killedBy;
    }

    private function obey(int $signal): void
    {
        if ($signal === \SIGHUP) {
            $this->reload('');
        } elseif ($signal !== \SIGCHLD && !$this->stopping) {
            $this->stop();
        } elseif ($signal !== \SIGCHLD) {
            $this->killedBy = $signal;
            $this->killAll();
        }
    }

    private function reload(string $why): void
    {
        if (!$this->starting && !$this->stopping) {
            $this->logger->info($this->succession->reload() ? "Reloading{$why}" : "Reloading again after this{$why}");
        }
    }

    private function stop(): void
    {
        $this->stopping = true;
        $this->logger->info('Stopping');
        foreach ($this->slots as $slot) {
            if ($slot->duty->runsApplication) {
                $this->closeSockets($slot->duty);
            }
        }
        foreach ($this->children as $child) {
            if ($child->slot->duty->runsApplication) {
                $this->end($child, Message::Stop);
            }
        }
    }

    private function closeSockets(Duty $duty): void
    {
        foreach ($duty->sockets as $name => $socket) {
            if (\is_resource($socket)) {
                Listeners::remove($name);
                fclose($socket);
            }
        }
    }

    private function end(Child $child, Message $how, string $payload = ''): void
    {
        $child->ending = true;
        $child->readyAt === null ? $this->kill($child, '') : $child->channel->send($how, 0, $payload);
    }

    private function kill(Child $child, string $why): void
    {
        $child->why = $why;
        Signals::send($child->pid, self::SIGKILL);
    }

    private function keepTime(int $now): void
    {
        foreach ($this->children as $child) {
            if ($child->startUntil <= $now) {
                $child->startUntil = \PHP_INT_MAX;
                $this->kill($child, "It did not come up within {$this->options->startTimeout} s");
            }
        }
        if ($this->pingAt <= $now) {
            array_map($this->ping(...), $this->children);
            $this->pingAt = $this->nextPing();
        }
        if ($this->files !== null && $this->lookAt <= $now) {
            $changes = $this->files->changes();
            $changes === [] ? null : $this->reload(': ' . implode(', ', \array_slice($changes, 0, 5)) . (\count($changes) > 5 ? ' and more' : ''));
            $this->lookAt = (int) hrtime(true) + FileWatch::INTERVAL;
        }
        $this->surveys->expire($now);
    }

    /** One ping for each beat of this process: when it was stopped for a while, nobody is late but itself. */
    private function ping(Child $child): void
    {
        if ($child->readyAt === null) {
            return;
        }
        if ($child->unanswered === self::PINGS) {
            $this->kill($child, "Its event loop did not turn for {$this->options->stallTimeout} s, so it was killed: a handler blocks it, or never returns");
        } else {
            $child->channel->send(Message::Ping);
        }
        ++$child->unanswered;
    }

    private function nextPing(): int
    {
        return (int) hrtime(true) + (int) min($this->options->stallTimeout / self::PINGS * 1e9, 1e18);
    }

    private function startWhatIsDue(int $now): void
    {
        if ($this->stopping) {
            $this->stopWhatIsLeft();

            return;
        }
        foreach ($this->slots as $index => $slot) {
            if ($slot->current === null && $slot->successor === null && $slot->startAt <= $now) {
                $slot->current = $this->fork($slot);
            }
            if ($this->starting && $slot->current?->readyAt === null) {
                return; // one after the other, so that what is wrong is told once
            }
        }
        if ($this->starting) {
            $this->starting = false;
            $this->logger->info($this->ready);
        }
        $slot = $this->succession->next();
        if ($slot !== null) {
            $slot->successor = $this->fork($slot);
        }
    }

    /** What does not run the application ends after all that does. */
    private function stopWhatIsLeft(): void
    {
        foreach ($this->children as $child) {
            if ($child->slot->duty->runsApplication) {
                return;
            }
        }
        foreach ($this->children as $child) {
            if (!$child->ending) {
                $this->closeSockets($child->slot->duty);
                $this->end($child, Message::Stop);
            }
        }
    }

    private function fork(Slot $slot): Child
    {
        [$ours, $theirs] = Channel::pair();
        $pid = pcntl_fork();
        if ($pid === 0) {
            $this->becomeWorker($slot->duty, $ours, $theirs);
        }
        $theirs->close();
        if ($pid < 0) {
            ...
        }
        $child = $this->children[$pid] = new Child($slot, $pid, $ours);
        $child->startUntil = (int) hrtime(true) + (int) min($this->options->startTimeout * 1e9, 1e18);

        return $child;
    }
}
