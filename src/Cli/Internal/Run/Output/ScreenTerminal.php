<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Revolt\EventLoop;
use Spindle\Internal\IgnoredSignals;
use Spindle\Internal\SignalWatch;
use Spindle\Internal\Warnings;

/**
 * The terminal of standard error: its size, and whether this process may draw in it. This process must not draw while
 * it is in the background, or if the terminal is gone or stopped by Ctrl-S.
 */
final class ScreenTerminal
{
    private const DEFAULT_COLUMNS = 80;
    private const DEFAULT_ROWS = 24;

    /** Nanoseconds between two checks whether this process is in the foreground again. */
    private const BACKGROUND_NANOSECONDS = 1_000_000_000;

    // Signal numbers, because the constants exist only with ext-pcntl.
    private const SIGHUP = 1;
    private const SIGINT = 2;
    private const SIGQUIT = 3;
    private const SIGWINCH = 28;
    private const SIGTSTP = \PHP_OS_FAMILY === 'Linux' ? 20 : 18;
    private const SIGCONT = \PHP_OS_FAMILY === 'Linux' ? 18 : 19;

    /** @var array{int<1, max>, int<1, max>}|null columns and rows; null if {@see size()} must ask stty */
    private ?array $size = null;

    private bool $isGone = false;

    private string $unsent = '';

    /** Time of the next foreground check, in nanoseconds of hrtime(); null while this process is in the foreground. */
    private int|float|null $nextCheck = 0;

    private bool $restoresSettings = false;

    /** The terminal's settings before {@see readKeys()}, as `stty -g` prints them; null while they are unchanged. */
    private ?string $settings = null;

    /** @var resource|false|null terminal, opened for reading; false if keys can't be read, null before the first try */
    private mixed $keys = null;

    private string $keyWatcher = '';

    /** @var list<string> ids of the event loop's watchers */
    private array $watchers = [];

    /** @param resource $stream */
    public function __construct(private readonly mixed $stream) {}

    /**
     * Calls the closures on changes that affect the terminal. Does nothing if ext-pcntl or ext-posix is missing.
     *
     * @param \Closure(): void $resized   called when the size has changed, so the terminal may have rewrapped lines
     * @param \Closure(): void $suspend   called when this process is about to be suspended
     * @param \Closure(): void $continued called when this process runs again; other programs may have used the terminal
     */
    public function watch(\Closure $resized, \Closure $suspend, \Closure $continued): void
    {
        $handlers = [
            self::SIGWINCH => function () use ($resized): void {
                $this->size = null;
                $resized();
            },
            self::SIGCONT => function () use ($continued): void {
                $this->forgetState();
                // SIGSTOP suspends this process without a call of $suspend. While this process is suspended, the
                // shell may replace the settings of readKeys(). Only after restore(), readKeys() sets them again.
                $this->restore();
                $continued();
            },
        ];
        $this->watchers = \function_exists('posix_kill') ? SignalWatch::start($handlers) : [];
        if ($this->watchers !== []) { // without watchers, readKeys() changes no settings
            $this->watchSuspension($suspend);
        }
    }

    /** Restores the terminal's settings when this process ends, even by SIGHUP or SIGQUIT. Call before readKeys(). */
    public function restoreSettingsAtEnd(): void
    {
        if ($this->watchers === []) {
            return; // ext-pcntl or ext-posix is missing
        }
        $this->restoresSettings = true;
        register_shutdown_function($this->restore(...));
        $signals = [self::SIGHUP, self::SIGQUIT];
        foreach (array_diff($signals, IgnoredSignals::among($signals)) as $signal) {
            $this->watchers[] = EventLoop::unreference(EventLoop::onSignal(
                $signal,
                function (string $watcher, int $signal): void {
                    $this->restore();
                    EventLoop::cancel($watcher);
                    posix_kill((int) getmypid(), $signal);
                },
            ));
        }
    }

    /**
     * Starts to read each key as soon as it is pressed, without an echo. Ctrl-C and Ctrl-Z still send signals. Does
     * nothing in the background, without ext-pcntl, or before a call of {@see restoreSettingsAtEnd()}.
     *
     * @param \Closure(string): void $press called with the bytes of keys
     *
     * @return bool whether keys are read
     */
    public function readKeys(\Closure $press): bool
    {
        if ($this->settings !== null) {
            return true;
        }
        if ($this->isGone || $this->keys === false || !$this->restoresSettings || !$this->isInForeground()) {
            return false;
        }
        $settings = (string) $this->stty('-g');
        $keys = $this->keys = $settings === '' ? false : $this->open();
        if ($keys === false) {
            return false;
        }
        $this->settings = $settings;
        $this->stty('-icanon', '-echo', 'min', '1', 'time', '0');
        $this->keyWatcher = EventLoop::unreference(EventLoop::onReadable(
            $keys,
            function () use ($keys, $press): void {
                $bytes = (string) Warnings::read($keys, 1024);
                $this->isGone = $this->isGone || ($bytes === '' && feof($keys));
                if ($this->isGone) {
                    EventLoop::cancel($this->keyWatcher);
                } elseif ($bytes !== '') {
                    $press($bytes);
                }
            },
        ));

        return true;
    }

    /**
     * Stops reading keys, and restores the terminal's settings. In the background, the settings stay as they are,
     * because the shell has changed them for the program in the foreground.
     */
    public function restore(): void
    {
        if ($this->settings !== null) {
            EventLoop::cancel($this->keyWatcher);
            [$settings, $this->settings] = [$this->settings, null];
            if ($this->isInForeground()) {
                $this->stty($settings);
            }
        }
    }

    public function close(): void
    {
        $this->restore();
        array_map(EventLoop::cancel(...), $this->watchers);
        $this->watchers = [];
    }

    /** @return array{int<1, max>, int<1, max>} columns and rows */
    public function size(): array
    {
        if ($this->size === null) {
            [$rows, $columns] = array_map(intval(...), explode(' ', (string) $this->stty('size'))) + [0, 0];
            $this->size = [$columns < 1 ? self::DEFAULT_COLUMNS : $columns, $rows < 1 ? self::DEFAULT_ROWS : $rows];
        }

        return $this->size;
    }

    /** Sends the rest of earlier writes. Returns whether this process may draw and the terminal accepts more bytes. */
    public function isReady(): bool
    {
        if ($this->isGone || !$this->isInForeground()) {
            return false;
        }
        $this->flush();
        $none = [];
        $streams = [$this->stream];

        return $this->unsent === ''
            && Warnings::suppressed(static fn(): int|false => stream_select($none, $streams, $none, 0)) === 1;
    }

    /** Writes the bytes that the terminal accepts at once. Later writes, or {@see isReady()}, send the other bytes. */
    public function write(string $bytes): void
    {
        $this->unsent .= $bytes;
        $this->flush();
    }

    /** Returns the unsent bytes, followed by $bytes, for the caller to write; '' if the terminal is gone. */
    public function prependUnsent(string $bytes): string
    {
        [$unsent, $this->unsent] = [$this->unsent, ''];

        return $this->isGone ? '' : $unsent . $bytes;
    }

    private function flush(): void
    {
        while ($this->unsent !== '' && !$this->isGone) {
            error_clear_last();
            $written = Warnings::write($this->stream, $this->unsent);
            $this->isGone = $written === false && error_get_last() !== null;
            $this->unsent = substr($this->unsent, (int) $written);
            if ($written === 0) {
                break;
            }
        }
    }

    private function forgetState(): void
    {
        [$this->size, $this->nextCheck] = [null, 0];
    }

    private function isInForeground(): bool
    {
        if ($this->nextCheck !== null && hrtime(true) >= $this->nextCheck) {
            $this->nextCheck = self::isForegroundProcess() ? null : hrtime(true) + self::BACKGROUND_NANOSECONDS;
        }

        return $this->nextCheck === null;
    }

    /** Returns whether this process is in the foreground of its terminal, or has no controlling terminal. */
    private static function isForegroundProcess(): bool
    {
        $stat = (string) Warnings::suppressed(static fn(): string|false => file_get_contents('/proc/self/stat'));
        $fields = explode(' ', substr($stat, (int) strrpos($stat, ')') + 2));
        [$group, $foreground] = [$fields[2] ?? '', $fields[5] ?? '-1'];

        return $foreground === '-1' || $group === $foreground;
    }

    private function watchSuspension(\Closure $suspend): void
    {
        $this->watchers[] = EventLoop::unreference(EventLoop::onSignal(
            self::SIGTSTP,
            function (string $watcher) use ($suspend): void {
                $suspend();
                $this->restore();
                EventLoop::cancel($watcher);
                $this->watchers = array_values(array_diff($this->watchers, [$watcher]));
                // A timer may draw before SIGCONT is handled. The size and the foreground must then be read again.
                $this->forgetState();
                // Suspends this process. The system ignores the signal if no shell could continue the process.
                posix_kill((int) getmypid(), self::SIGTSTP);
                $this->watchSuspension($suspend);
            },
        ));
    }

    /** @return resource|false the terminal, opened a second time, because non-blocking mode must not affect $stream */
    private function open(): mixed
    {
        $name = \function_exists('posix_ttyname') ? posix_ttyname($this->stream) : false;
        $keys = $name === false ? false : Warnings::suppressed(static fn(): mixed => fopen($name, 'r'));
        if (\is_resource($keys)) {
            stream_set_blocking($keys, false);
            stream_set_read_buffer($keys, 0);

            return $keys;
        }

        return false;
    }

    /**
     * Runs stty on the terminal. Returns the output of stty; null if stty fails. Ctrl-Z would suspend stty too, and
     * this method would wait forever. Therefore, the signals of keys are blocked until stty has ended.
     */
    private function stty(string ...$arguments): ?string
    {
        $mask = null;
        if (\function_exists('pcntl_sigprocmask')) {
            pcntl_sigprocmask(\SIG_BLOCK, [self::SIGINT, self::SIGQUIT, self::SIGTSTP], $mask); // stty inherits this
        }
        try {
            return Warnings::suppressed(function () use ($arguments): ?string {
                $descriptors = [$this->stream, ['pipe', 'w'], ['null']];
                $process = proc_open(['stty', ...array_values($arguments)], $descriptors, $pipes);
                if ($process === false) {
                    return null;
                }
                $output = (string) stream_get_contents($pipes[1]);

                return proc_close($process) === 0 ? trim($output) : null;
            });
        } finally {
            if (\is_array($mask)) {
                pcntl_sigprocmask(\SIG_SETMASK, $mask);
            }
        }
    }
}
