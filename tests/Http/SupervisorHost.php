<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Http\ServerClosedException;
use Spindle\Http\Supervisor;
use Spindle\Http\SupervisorOptions;
use Spindle\Lifecycle;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Symfony\Component\Process\InputStream;
use Symfony\Component\Process\Process;

use function Amp\async;

/**
 * A supervisor in another process, because it forks. A call is a line of that process's input with a number and a
 * method, and "cancel" cancels the call with this number. The answer is a line of output: the number, and the class of
 * the exception if there is one.
 */
final class SupervisorHost implements Lifecycle
{
    private const TIMEOUT = 15.0;

    private readonly Process $process;
    private readonly InputStream $calls;
    private int $lastNumber = 0;

    /**
     * @param string       $app    path of a file
     * @param string       $socket path of a Unix socket
     * @param list<string> $php    options for PHP
     */
    public function __construct(string $app, string $socket, array $php = [])
    {
        $this->calls = new InputStream();
        $this->process = Host::prepare(self::class . '::main', [$app, $socket], options: $php);
        $this->process->setInput($this->calls);
        $this->process->start();
        Eventually::holds(fn(): bool => str_contains($this->log(), 'Listening on'), 'it serves', self::TIMEOUT);
    }

    /** Runs in the other process. */
    public static function main(string $app, string $socket): void
    {
        $options = new SupervisorOptions(processes: 1);
        $supervisor = new Supervisor($app, ["unix://{$socket}"], $options, ServerProcess::logger());
        $GLOBALS['supervisor'] = $supervisor; // so that the application can call it in a fork
        /** @var array<string, DeferredCancellation> $cancellations */
        $cancellations = [];
        stream_set_blocking(\STDIN, false);
        EventLoop::onReadable(
            \STDIN,
            static function (string $watcher) use ($supervisor, &$cancellations): void {
                while (($line = fgets(\STDIN)) !== false) {
                    [$number, $method] = explode(' ', trim($line)) + ['', ''];
                    if ($method === 'cancel') {
                        $cancellations[$number]->cancel();
                        continue;
                    }
                    $cancellations[$number] = new DeferredCancellation();
                    async(self::answer(...), $supervisor, $number, $method, $cancellations[$number]->getCancellation());
                }
                if (feof(\STDIN)) {
                    EventLoop::cancel($watcher);
                }
            },
        );
        $supervisor->run();
        EventLoop::run(); // for calls after the end, until the input ends
    }

    public function close(?Cancellation $cancellation = null): void
    {
        $this->call('close', $cancellation);
    }

    public function kill(): void
    {
        $this->call('kill');
    }

    /** Calls {@see Supervisor::run()} again, in a callback of the event loop. */
    public function run(): void
    {
        $this->call('run');
    }

    public function pid(): int
    {
        return (int) $this->process->getPid();
    }

    public function log(): string
    {
        return $this->process->getErrorOutput();
    }

    /** Ends the process if nothing keeps its event loop running, and returns its exit code. */
    public function end(): ?int
    {
        $this->calls->close();
        Eventually::holds(fn(): bool => !$this->process->isRunning(), 'the process has ended', self::TIMEOUT);

        return $this->process->getExitCode();
    }

    public function __destruct()
    {
        $this->process->stop(0, \SIGKILL);
    }

    private static function answer(
        Supervisor $supervisor,
        string $number,
        string $method,
        Cancellation $cancellation,
    ): void {
        $thrown = '';
        try {
            match ($method) {
                'close' => $supervisor->close($cancellation),
                'kill' => $supervisor->kill(),
                default => $supervisor->run(),
            };
        } catch (\Throwable $failure) {
            $thrown = $failure::class;
        }
        fwrite(\STDOUT, "{$number} {$thrown}\n"); // the output of PHP is captured if the supervisor does not fork
    }

    private function call(string $method, ?Cancellation $cancellation = null): void
    {
        $number = ++$this->lastNumber;
        $this->calls->write("{$number} {$method}\n");
        $subscription = $cancellation?->subscribe(fn() => $this->calls->write("{$number} cancel\n"));
        $answer = [];
        Eventually::holds(function () use ($number, &$answer): bool {
            return preg_match("/^{$number} (.*)$/m", $this->process->getOutput(), $answer) === 1;
        }, "there is an answer of {$method}() among: {$this->log()}", self::TIMEOUT);
        if ($cancellation !== null) {
            $cancellation->unsubscribe((string) $subscription);
        }
        match ($answer[1] ?? '') {
            '' => null,
            CancelledException::class => throw new CancelledException(),
            ServerClosedException::class => throw ServerClosedException::supervisor(),
            default => throw new \RuntimeException("{$method}() threw {$answer[1]}"),
        };
    }
}
