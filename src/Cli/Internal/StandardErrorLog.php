<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LogLevel;
use Spindle\Internal\LineFile;
use Spindle\Internal\NumberRange;
use Spindle\Internal\ThrownText;

/**
 * Writes the log of `spindle serve` or `spindle work` to standard error. An entry is lost if the disk is full or the
 * reader of a pipe is too slow. The number of lost entries is logged before the next entry that can be written.
 */
final class StandardErrorLog extends AbstractLogger
{
    private const LEVELS_BELOW_WARNING = [LogLevel::DEBUG, LogLevel::INFO, LogLevel::NOTICE];
    private const COLOURS = [
        LogLevel::INFO => '32',
        LogLevel::NOTICE => '32',
        LogLevel::DEBUG => '2',
        LogLevel::WARNING => '33',
    ];
    private const RED = '31';

    /** Keys of context values that become fields of a JSON entry. */
    private const FIELDS = [
        'request_id', 'method', 'target', 'client_ip', 'status', 'bytes', 'duration', 'user_agent', 'referer', 'queue',
        'job',
    ];

    /** Maximum bytes of one text in an entry. Clients can cause long texts, and writing them delays all requests. */
    private const MAX_TEXT_BYTES = 16_384;

    private readonly LineFile $file;

    /** @var array<int, int> number of lost entries by pid: a fork must not report entries that its parent lost */
    private array $lost = [];

    /** @param bool $quiet whether only warnings and errors are written */
    public function __construct(
        private readonly bool $json,
        private readonly bool $colours,
        private readonly bool $quiet,
    ) {
        $this->file = LineFile::standardError();
    }

    /** @param string|\Stringable $message */
    public function log($level, $message, array $context = []): void
    {
        $level = \is_string($level) ? $level : LogLevel::ERROR;
        if ($this->quiet && \in_array($level, self::LEVELS_BELOW_WARNING, true)) {
            return;
        }
        $message = self::shorten(self::interpolate((string) $message, $context));
        $exception = ($context['exception'] ?? null) instanceof \Throwable ? $context['exception'] : null;
        $description = $exception === null ? null : self::shorten(ExceptionText::of($exception));
        $this->write($this->entry($level, $message, $description, self::fields($context, $exception)));
    }

    /**
     * Returns the fields about the request, the queue and the exception. Previous exceptions have no fields.
     *
     * @param array<mixed> $context
     *
     * @return array<string, string|int|float>
     */
    private static function fields(array $context, ?\Throwable $exception): array
    {
        $fields = [];
        foreach (self::FIELDS as $name) {
            $value = $context[$name] ?? '';
            if (\is_int($value) || \is_float($value) && is_finite($value)) {
                $fields[$name] = \is_int($value) ? $value : round($value, 6);
            } elseif (\is_float($value)) {
                $fields[$name] = NumberRange::text($value); // JSON has no INF and NAN
            } elseif (\is_string($value) && $value !== '') {
                $fields[$name] = self::shorten($value);
            }
        }

        return $exception === null ? $fields : $fields + [
            'exception_class' => $exception::class,
            'exception_message' => self::shorten(ThrownText::message($exception)),
            'exception_file' => $exception->getFile(),
            'exception_line' => $exception->getLine(),
        ];
    }

    /** Removes the middle of a long text: an exception has its class at the beginning and its trace at the end. */
    private static function shorten(string $text): string
    {
        $surplus = \strlen($text) - self::MAX_TEXT_BYTES;
        [$begin, $end] = [intdiv(self::MAX_TEXT_BYTES, 4), intdiv(self::MAX_TEXT_BYTES, 4) * 3];

        return $surplus <= 0
            ? $text
            : substr($text, 0, $begin) . " … {$surplus} bytes are left out … " . substr($text, -$end);
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
                $values["{{$name}}"] = \is_float($value) ? NumberRange::text($value) : (string) $value;
            }
        }

        return strtr($message, $values);
    }

    private function write(string $entry): void
    {
        $pid = (int) getmypid();
        $lost = $this->lost[$pid] ?? 0;
        if (
            $lost > 0
            && $this->file->append($this->entry(
                LogLevel::WARNING,
                "{$lost} " . ($lost === 1 ? 'entry is' : 'entries are')
                    . ' missing here, because the log could not be written',
                null,
            )) === null
        ) {
            $lost = 0;
        }
        $this->lost = [$pid => $lost === 0 && $this->file->append($entry) === null ? 0 : $lost + 1];
    }

    /** @param array<string, string|int|float> $fields */
    private function entry(string $level, string $message, ?string $exception, array $fields = []): string
    {
        return $this->json
            ? self::jsonLine($level, $message, $exception, $fields)
            : $this->textLine($level, $message, $exception, (string) ($fields['request_id'] ?? ''));
    }

    /** @param array<string, string|int|float> $fields */
    private static function jsonLine(string $level, string $message, ?string $exception, array $fields): string
    {
        $entry = ['time' => self::time(), 'level' => $level, 'pid' => getmypid(), 'message' => $message]
            + $fields
            + ($exception === null ? [] : ['exception' => $exception]);

        return TerminalText::escapeJson(
            (string) json_encode(
                $entry,
                \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE,
            ),
        );
    }

    /** Formats an entry as text. The exception and its trace follow on further lines, which begin with white space. */
    private function textLine(string $level, string $message, ?string $exception, string $id): string
    {
        $label = $this->colours ? "\e[" . (self::COLOURS[$level] ?? self::RED) . "m{$level}\e[0m" : $level;
        $line = self::time() . ' [' . getmypid() . "] {$label} "
            . TerminalText::escape($id === '' ? $message : "{$message} (request id {$id})");
        foreach ($exception === null ? [] : explode("\n", $exception) as $exceptionLine) {
            $line .= "\n    " . TerminalText::escape($exceptionLine);
        }

        return $line;
    }

    private static function time(): string
    {
        return (new \DateTimeImmutable())->format('Y-m-d\TH:i:s.vP');
    }
}
