<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Revolt\EventLoop\Driver;
use Spindle\Http\BackgroundWork;
use Spindle\Http\Internal\Server\Connection;
use Spindle\Internal\Launcher\Process\Files;

/**
 * Describes the code that blocks the event loop: the function that blocks, its callers, and what to use instead. Reads
 * the backtrace of a signal handler.
 *
 * Up to PHP 8.3, a signal handler runs only after a PHP function such as sleep() has returned. The backtrace then lacks
 * that function, and has the line of the next operation. So this class searches near that line for a blocking call.
 *
 * @phpstan-type Frame array{function: string, class?: string, type?: string, file?: string, line?: int}
 */
final readonly class BlockTrace
{
    private const MAX_CALLERS = 10;

    private const HANDLER_CALLERS = [Connection::class, BackgroundWork::class];

    private const DELAY = 'Amp\delay()';
    private const HTTP = 'Spindle\Http\Client\HttpClient, or Guzzle with its GuzzleHandler';
    private const GUZZLE = 'Spindle\Http\Client\GuzzleHandler as the handler of the Guzzle client';
    private const URL = 'Spindle\Http\Client\HttpClient for a URL, or a Spindle\Worker\WorkerPool for slow files';
    private const COMMAND = 'Spindle\Command\CommandPool';
    private const LOCK = 'LOCK_NB with Amp\delay() between attempts, or a lock of PostgreSQL';
    private const DNS = 'Amp\Dns\resolve() of amphp/dns';
    private const POSTGRES = 'Spindle\Postgres\PostgresPool';
    private const MYSQL = 'amphp/mysql';
    private const DATABASE = self::POSTGRES . ' for PostgreSQL, or ' . self::MYSQL . ' for MySQL';
    private const OTHERWISE = 'If this is a long computation, run it in a Spindle\Worker\WorkerPool';

    private const FUNCTIONS = [
        self::DELAY => ['sleep', 'usleep', 'time_nanosleep', 'time_sleep_until'],
        self::HTTP => ['curl_exec', 'curl_multi_select'],
        self::URL => [
            'file_get_contents', 'fopen', 'file', 'readfile', 'copy', 'get_headers', 'fgets', 'fread',
            'stream_get_contents',
        ],
        self::LOCK => ['flock'],
        self::COMMAND => ['exec', 'shell_exec', '`', 'system', 'passthru', 'proc_close', 'pclose'],
        self::DNS => [
            'gethostbyname', 'gethostbynamel', 'gethostbyaddr', 'dns_get_record', 'dns_check_record', 'checkdnsrr',
            'dns_get_mx', 'getmxrr',
        ],
    ];

    private const PREFIXES = ['mysqli_' => self::MYSQL, 'pg_' => self::POSTGRES];

    private const CLASSES = [
        'pdo' => self::DATABASE,
        'pdostatement' => self::DATABASE,
        'mysqli' => self::MYSQL,
        'mysqli_stmt' => self::MYSQL,
        'mysqli_result' => self::MYSQL,
    ];

    /** Methods of {@see CLASSES} that wait for a server. {@see insteadOf()} uses them if a call's class is unknown. */
    private const METHODS = [
        'query', 'exec', 'execute', 'prepare', 'begintransaction', 'begin_transaction', 'commit', 'rollback', 'fetch',
        'fetchall', 'real_query', 'multi_query', 'real_connect',
    ];

    private const GUZZLE_HANDLER = '/^GuzzleHttp\\\\Handler\\\\(?:Curl\w*|StreamHandler)$/D';

    /**
     * @param list<Frame> $frames debug_backtrace() of the signal handler; the first frame is the call of this handler
     *
     * @return string|null null when the event loop waits for events, or the position of the code is unknown
     */
    public static function describe(array $frames): ?string
    {
        // If the first frame has no file, the signal has interrupted a built-in function, which the second frame names.
        $called = isset($frames[0]['file']) ? null : $frames[1] ?? null;
        $frames = \array_slice($frames, $called === null ? 0 : 1);
        $inner = $frames[1]['class'] ?? '';
        if (!isset($frames[0]['file'], $frames[0]['line']) || is_subclass_of($inner, Driver::class)) {
            return null;
        }
        [$file, $line] = [$frames[0]['file'], $frames[0]['line']];
        [$name, $line, $instead] = $called === null
            ? self::callAt($file, $line)
            : [self::name($called), $line, self::insteadOf($called['function'], $called['class'] ?? null)];
        $function = $name === '' ? '' : "{$name} ";
        $guzzle = self::guzzleHandler($frames);
        $advice = match (true) {
            $guzzle !== null => "Instead of {$guzzle}, use " . self::GUZZLE,
            $instead === '' => self::OTHERWISE,
            default => "Instead of {$name}, use {$instead}",
        };

        return "{$function}at {$file}:{$line}" . self::callers($frames) . ". {$advice}";
    }

    /**
     * Returns the file and line of the code that a signal has interrupted; '' if they are unknown. Up to PHP 8.3, the
     * signal may have ended a blocking call in the previous statement. Then the result also names this call.
     *
     * @param list<Frame> $frames debug_backtrace() of the signal handler
     */
    public static function position(array $frames): string
    {
        foreach ($frames as $i => $frame) {
            if (isset($frame['file'], $frame['line'])) {
                [$name, $line] = $i === 0 ? self::callAt($frame['file'], $frame['line']) : ['', $frame['line']];
                $before = $line < $frame['line'] ? ", after {$name} in line {$line}" : '';

                return "{$frame['file']}, line {$frame['line']}{$before}";
            }
        }

        return '';
    }

    /**
     * @param list<Frame> $frames
     *
     * @return string|null class of the handler that Guzzle called; null if Guzzle called none
     */
    private static function guzzleHandler(array $frames): ?string
    {
        $handler = null;
        foreach ($frames as $frame) {
            $class = $frame['class'] ?? '';
            $handler = preg_match(self::GUZZLE_HANDLER, $class) === 1 ? $class : $handler;
        }

        return $handler;
    }

    /** @param list<Frame> $frames the first frame has the position of the code that blocks */
    private static function callers(array $frames): string
    {
        $text = '';
        foreach (\array_slice($frames, 1, self::MAX_CALLERS) as $i => $frame) {
            $isCalledByServer = \in_array($frames[$i + 2]['class'] ?? '', self::HANDLER_CALLERS, true);
            $text .= ' in ' . self::name($frame);
            if ($isCalledByServer || !isset($frame['file'], $frame['line'])) {
                break;
            }
            $text .= ", called at {$frame['file']}:{$frame['line']}";
        }

        return $text;
    }

    /** @param Frame $frame */
    private static function name(array $frame): string
    {
        // Omits the class around a closure. Also omits file and line, which a closure's name has since PHP 8.4.
        return str_starts_with($frame['function'], '{closure')
            ? '{closure}()'
            : ($frame['class'] ?? '') . ($frame['type'] ?? '') . "{$frame['function']}()";
    }

    /**
     * Searches the statements of a line for a function that blocks. If there is none, searches the previous statement.
     *
     * @return array{string, int, string} name, line and replacement of the function; '', $line and '' if none blocks
     */
    private static function callAt(string $file, int $line): array
    {
        $before = ['', $line, ''];
        $found = null;
        foreach (self::statements($file) as [$first, $last, $call]) {
            if ($first > $line) {
                break;
            }
            if ($last < $line) {
                $before = $call ?? ['', $line, ''];
            } else {
                $found = $call ?? $found;
            }
        }

        return $found ?? $before;
    }

    /** @return iterable<array{int, int, array{string, int, string}|null}> first line, last line, last blocking call */
    private static function statements(string $file): iterable
    {
        if (!\extension_loaded('tokenizer')) {
            return;
        }
        $tokens = array_values(array_filter(
            \PhpToken::tokenize((string) Files::read($file)),
            static fn(\PhpToken $token): bool => !$token->isIgnorable(),
        ));
        [$first, $call] = [null, null];
        foreach ($tokens as $i => $token) {
            $first ??= $token->line;
            $instead = self::insteadOfToken($token, $tokens[$i - 1] ?? null, $tokens[$i + 1] ?? null);
            if ($instead !== '') {
                $call = [$token->text === '`' ? 'shell_exec()' : "{$token->text}()", $token->line, $instead];
            }
            if ($token->is([';', '{', '}'])) {
                yield [$first, $token->line, $call];
                [$first, $call] = [null, null];
            }
        }
    }

    private static function insteadOfToken(\PhpToken $token, ?\PhpToken $before, ?\PhpToken $after): string
    {
        $isCalled = $token->text === '`' || $after?->text === '(' && $before?->is(\T_FUNCTION) !== true;
        if (!$isCalled) {
            return '';
        }

        return match (true) {
            $before?->is([\T_OBJECT_OPERATOR, \T_NULLSAFE_OBJECT_OPERATOR, \T_DOUBLE_COLON]) === true
                => self::insteadOf($token->text, ''),
            $before?->is(\T_NEW) === true => self::CLASSES[strtolower(ltrim($token->text, '\\'))] ?? '',
            default => self::insteadOf(ltrim($token->text, '\\'), null),
        };
    }

    /** @param string|null $class class of the method, or '' if it is unknown; null for a function */
    private static function insteadOf(string $function, ?string $class): string
    {
        $function = strtolower($function);
        if ($class !== null) {
            return self::CLASSES[strtolower($class)]
                ?? ($class === '' && \in_array($function, self::METHODS, true) ? self::DATABASE : '');
        }
        foreach (self::PREFIXES as $prefix => $instead) {
            if (str_starts_with($function, $prefix)) {
                return $instead;
            }
        }
        foreach (self::FUNCTIONS as $instead => $functions) {
            if (\in_array($function, $functions, true)) {
                return $instead;
            }
        }

        return '';
    }
}
