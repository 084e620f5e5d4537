<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LogLevel;
use Spindle\Internal\LineFile;

/**
 * The log of `spindle serve` and of its processes, and of `spindle work`: a line on standard error for each entry, written at once or not at all.
 * How many are missing is said as soon as there is room again.
 */
final class ServeLog extends AbstractLogger
{
    private const LESS_THAN_A_WARNING = [LogLevel::DEBUG, LogLevel::INFO, LogLevel::NOTICE];
    private const COLOURS = [LogLevel::INFO => '32', LogLevel::NOTICE => '32', LogLevel::DEBUG => '2', LogLevel::WARNING => '33'];
    private const RED = '31';

    /** Bytes of a message, and of an exception: it may hold what a client has sent, and all requests wait until it is written. */
    private const LONGEST = 16_384;

    private readonly LineFile $file;

    /** @var array<int, int> entries that could not be written, by the process whose they were: its forks have this object too */
    private array $lost = [];

    /** @param bool $quiet whether only warnings and what is worse are written */
    public function __construct(private readonly bool $json, private readonly bool $colours, private readonly bool $quiet)
    {
        $this->file = LineFile::standardError();
    }

    /**
     * @param mixed              $level
     * @param string|\Stringable $message
     * @param array<mixed>       $context
     */
    public function log($level, $message, array $context = []): void
    {
        $level = \is_string($level) ? $level : LogLevel::ERROR;
        if ($this->quiet && \in_array($level, self::LESS_THAN_A_WARNING, true)) {
            return;
        }
        $message = self::shorten(self::interpolate((string) $message, $context));
        $exception = ($context['exception'] ?? null) instanceof \Throwable ? self::shorten((string) $context['exception']) : null;
        $this->write($this->entry($level, $message, $exception));
    }

    /** Leaves out the middle: an exception's class is at the beginning, and its trace at the end. */
    private static function shorten(string $text): string
    {
        $more = \strlen($text) - self::LONGEST;
        [$begin, $end] = [intdiv(self::LONGEST, 4), intdiv(self::LONGEST, 4) * 3];

        return $more <= 0 ? $text : substr($text, 0, $begin) . " … {$more} bytes are left out … " . substr($text, -$end);
    }

    /**
     * @see https://www.php-fig.org/psr/psr-3/#12-message
     *
     * @param array<mixed> $context
     */
    private static function interpolate(string $message, array $context): string
    {
        $values = [];
        foreach ($context as $name => $value) {
            if (\is_scalar($value) || $value instanceof \Stringable && !$value instanceof \Throwable) {
                $values["{{$name}}"] = (string) $value;
            }
        }

        return strtr($message, $values);
    }

    private function write(string $entry): void
    {
        $pid = (int) getmypid();
        $lost = $this->lost[$pid] ?? 0;
        if ($lost > 0 && $this->file->append($this->entry(LogLevel::WARNING, "{$lost} " . ($lost === 1 ? 'entry is' : 'entries are') . ' missing here: the log could not be written', null)) === null) {
            $lost = 0;
        }
        $this->lost = [$pid => $lost === 0 && $this->file->append($entry) === null ? 0 : $lost + 1];
    }

    private function entry(string $level, string $message, ?string $exception): string
    {
        return $this->json ? self::jsonLine($level, $message, $exception) : $this->textLine($level, $message, $exception);
    }

    private static function jsonLine(string $level, string $message, ?string $exception): string
    {
        $entry = ['time' => self::time(), 'level' => $level, 'pid' => getmypid(), 'message' => $message]
            + ($exception === null ? [] : ['exception' => $exception]);

        return TerminalText::escapeJson((string) json_encode($entry, \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE));
    }

    /** An exception's trace follows in lines of its own, which begin with white space. */
    private function textLine(string $level, string $message, ?string $exception): string
    {
        $shown = $this->colours ? "\e[" . (self::COLOURS[$level] ?? self::RED) . "m{$level}\e[0m" : $level;
        $line = self::time() . ' [' . getmypid() . "] {$shown} " . TerminalText::escape($message);
        foreach ($exception === null ? [] : explode("\n", $exception) as $more) {
            $line .= "\n    " . TerminalText::escape($more);
        }

        return $line;
    }

    private static function time(): string
    {
        return (new \DateTimeImmutable())->format('Y-m-d\TH:i:s.vP');
    }
}
