<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LogLevel;

/** The log of `spindle serve` and of its processes: a line on standard error for each entry, written at once. */
final class ServeLog extends AbstractLogger
{
    private const LESS_THAN_A_WARNING = [LogLevel::DEBUG, LogLevel::INFO, LogLevel::NOTICE];
    private const COLOURS = [LogLevel::INFO => '32', LogLevel::NOTICE => '32', LogLevel::DEBUG => '2', LogLevel::WARNING => '33'];
    private const RED = '31';

    /** @param bool $quiet whether only warnings and what is worse are written */
    public function __construct(private readonly bool $json, private readonly bool $colours, private readonly bool $quiet) {}

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
        $message = self::interpolate((string) $message, $context);
        $exception = ($context['exception'] ?? null) instanceof \Throwable ? $context['exception'] : null;
        // Nothing is left to be told where this can't be written.
        @fwrite(\STDERR, $this->json ? self::jsonLine($level, $message, $exception) : $this->textLine($level, $message, $exception));
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

    private static function jsonLine(string $level, string $message, ?\Throwable $exception): string
    {
        $entry = ['time' => self::time(), 'level' => $level, 'pid' => getmypid(), 'message' => $message]
            + ($exception === null ? [] : ['exception' => (string) $exception]);

        return json_encode($entry, \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE) . "\n";
    }

    /** An exception's trace follows in lines of its own, which begin with white space. */
    private function textLine(string $level, string $message, ?\Throwable $exception): string
    {
        $shown = $this->colours ? "\e[" . (self::COLOURS[$level] ?? self::RED) . "m{$level}\e[0m" : $level;
        $line = self::time() . ' [' . getmypid() . "] {$shown} " . self::escape($message) . "\n";
        foreach ($exception === null ? [] : explode("\n", (string) $exception) as $more) {
            $line .= '    ' . self::escape($more) . "\n";
        }

        return $line;
    }

    private static function time(): string
    {
        return (new \DateTimeImmutable())->format('Y-m-d\TH:i:s.vP');
    }

    private static function escape(string $text): string
    {
        return addcslashes($text, "\0..\37\177");
    }
}
