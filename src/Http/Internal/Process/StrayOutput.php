<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Http\Internal\Server\RequestName;
use Spindle\Internal\OutputBuffers;
use Spindle\Internal\Warnings;

/**
 * Logs what handlers print: echo, var_dump(), PHP's warnings with display_errors. Such output is not part of any
 * response, and standard output may have no reader. So the outermost output buffer captures the output.
 *
 * Output in buffers of handlers (ob_start()) is not logged. {@see closeBuffers()} drops buffers that were left open.
 */
final class StrayOutput
{
    private const MAX_TEXT_BYTES = 1_000;

    /** Maximum number of requests whose output one {@see report()} logs separately. */
    private const MAX_PRINTERS = 10;

    private const OTHERS = '*';

    /** Maximum number of log entries per time window, and nanoseconds of that window. */
    private const MAX_ENTRIES = 10;
    private const WINDOW_NANOSECONDS = 60_000_000_000;

    /** A buffer that has held more bytes than this is replaced, because PHP does not make a large buffer smaller. */
    private const MAX_BUFFER_BYTES = 1_048_576;

    /**
     * Keys: name and log context of the request. Values: number of printed bytes, the first bytes, name, context.
     *
     * @var array<string, array{int, string, string, array<string, string>}>
     */
    private array $printed = [];

    private bool $capturing = false;

    private bool $queued = false;

    private bool $reporting = false;

    private bool $released = false;

    private bool $hasLargeBuffer = false;

    /** Number of log entries in the current time window, and the start of this window by hrtime(). */
    private int $entries = 0;
    private int $windowStart = 0;

    /** Number of log entries that were dropped since the last logged entry. */
    private int $droppedEntries = 0;

    public function __construct(private readonly LoggerInterface $logger) {}

    /** Flushes and closes the buffers that are open at the start, such as those of PHP's setting output_buffering. */
    public static function closeEarlierBuffers(): void
    {
        while (ob_get_level() > 0 && Warnings::suppressed(ob_end_flush(...)));
    }

    public function capture(): void
    {
        ob_start($this->onOutput(...), 1);
        $this->capturing = true;
        OutputBuffers::$sharedLevel = 1;
    }

    /** Closes buffers that a handler left open, and opens this object's buffer again if a handler closed it. */
    public function closeBuffers(): void
    {
        if ($this->released) {
            return;
        }
        $own = $this->capturing ? 1 : 0;
        $open = ob_get_level() - $own;
        if ($open > 0) {
            // If a handler has opened a buffer that can't be removed, ob_end_clean() fails, this loop ends, and the
            // buffer stays open.
            while (ob_get_level() > $own && Warnings::suppressed(ob_end_clean(...)));
            $this->log(
                '{printer} left output buffers of ob_start() open. They were closed, and their contents were dropped',
                ['printer' => self::printer(RequestName::current())] + RequestName::logFields(),
            );
        }
        if (!$this->capturing) {
            $this->capture();
        }
    }

    public function report(): void
    {
        $this->queued = false;
        [$printed, $this->printed] = [$this->printed, []];
        $this->reporting = true;
        try {
            foreach ($printed as [$bytes, $text, $name, $request]) {
                $this->log('{printer} printed {bytes} outside of a response: {text}', [
                    'printer' => self::printer($name),
                    'bytes' => $bytes === 1 ? '1 byte' : "{$bytes} bytes",
                    'text' => $text . ($bytes > \strlen($text) ? '...' : ''),
                ] + $request);
            }
        } finally {
            $this->reporting = false;
        }
        if ($this->hasLargeBuffer && $this->capturing && ob_get_level() === 1) {
            $this->hasLargeBuffer = false;
            ob_end_clean();
            $this->capture();
        }
    }

    /** Logs captured output at the end of the process, and the number of dropped entries. */
    public function close(): void
    {
        $this->report();
        if ($this->droppedEntries > 0) {
            $this->logger->warning("{$this->droppedEntries} more entries about printed output were left out");
        }
    }

    /** Logs captured output, and ends the capture. All buffers are closed, and later output is printed. */
    public function release(): void
    {
        $this->released = true;
        while (ob_get_level() > 0 && Warnings::suppressed(ob_end_clean(...)));
        OutputBuffers::$sharedLevel = null;
        $this->close();
    }

    /** Captures output. PHP calls this method, and does not allow the method to print or suspend. */
    private function onOutput(string $bytes, int $phase): string
    {
        if (($phase & \PHP_OUTPUT_HANDLER_FINAL) !== 0) {
            $this->capturing = false; // all buffers are closed, by a handler or by this class
            OutputBuffers::$sharedLevel = 0;
            EventLoop::queue($this->closeBuffers(...));
        }
        if ($this->reporting) {
            return $bytes; // the logger has printed these bytes during a report; they must not be logged again
        }
        if ($bytes !== '') {
            $this->record($bytes);
        }

        return '';
    }

    private function record(string $bytes): void
    {
        [$name, $request] = [RequestName::current(), RequestName::logFields()];
        $key = "{$name} " . implode(' ', $request);
        if (!isset($this->printed[$key]) && \count($this->printed) >= self::MAX_PRINTERS) {
            [$name, $request, $key] = [self::OTHERS, [], self::OTHERS];
        }
        [$count, $text] = $this->printed[$key] ?? [0, ''];
        $text .= substr($bytes, 0, max(0, self::MAX_TEXT_BYTES - \strlen($text)));
        $this->printed[$key] = [$count + \strlen($bytes), $text, $name, $request];
        $this->hasLargeBuffer = $this->hasLargeBuffer || \strlen($bytes) > self::MAX_BUFFER_BYTES;
        if (!$this->queued) {
            $this->queued = true;
            EventLoop::queue($this->report(...));
        }
    }

    /** @param array<string, string> $context */
    private function log(string $message, array $context): void
    {
        $now = (int) hrtime(true);
        if ($now - $this->windowStart > self::WINDOW_NANOSECONDS) {
            [$this->entries, $this->windowStart] = [0, $now];
        }
        if ($this->entries === self::MAX_ENTRIES) {
            ++$this->droppedEntries;

            return;
        }
        ++$this->entries;
        $more = $this->droppedEntries === 0 ? '' : " ({$this->droppedEntries} more such entries were left out before)";
        $this->droppedEntries = 0;
        $this->logger->warning($message . $more, $context);
    }

    private static function printer(string $name): string
    {
        return match ($name) {
            '' => 'Code outside of a request',
            self::OTHERS => 'Code of several requests',
            default => "The handler of {$name}",
        };
    }
}
