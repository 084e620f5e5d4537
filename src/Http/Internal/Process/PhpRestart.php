<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Internal\IgnoredSignals;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;

/** Restarts this PHP program with other settings. Pid, descriptors, environment and ignored signals stay the same. */
final class PhpRestart
{
    /** Setting that marks the restarted PHP. Child processes inherit environment variables, but not this setting. */
    private const RESTARTED_SETTING = 'spindle.restarted';

    /** Signals that may have been ignored when PHP was started. For example, nohup ignores SIGHUP. */
    private const IGNORABLE_SIGNALS = [\SIGHUP, \SIGINT, \SIGQUIT, \SIGTERM, \SIGUSR1, \SIGUSR2];

    /**
     * Restarts PHP without the functions of {@see RequestFunctions}. Does not return after a successful restart.
     *
     * @return string|null null when PHP has none of these functions; otherwise why PHP could not be restarted
     */
    public static function withoutRequestFunctions(): ?string
    {
        if (RequestFunctions::areDisabled()) {
            return null;
        }
        if (\PHP_SAPI !== 'cli' || !\function_exists('pcntl_exec') || !\function_exists('pcntl_signal')) {
            return 'PHP can restart itself only on the command line, and needs pcntl_exec() and pcntl_signal() of'
                . ' the extension pcntl';
        }
        if (get_cfg_var(self::RESTARTED_SETTING) !== false) {
            return 'the restarted PHP still has these functions, because another disable_functions setting replaced'
                . ' that of Spindle';
        }
        $arguments = self::arguments(explode("\0", (string) Files::read('/proc/self/cmdline'), -1));
        if ($arguments === null) {
            return '/proc/self/cmdline can not be read, or has the command line of another program';
        }
        $defaultSignals = array_filter(
            self::IGNORABLE_SIGNALS,
            static fn(int $signal): bool => pcntl_signal_get_handler($signal) === \SIG_DFL,
        );
        foreach (IgnoredSignals::among(array_values($defaultSignals)) as $signal) {
            // At its start, PHP replaced SIG_IGN by its own handler, which also ignores the signal. pcntl_exec() would
            // reset this handler to SIG_DFL. But it keeps SIG_IGN, so the restarted PHP ignores the signal too.
            pcntl_signal($signal, \SIG_IGN);
        }
        [, $warning] = Warnings::of(static fn(): bool => pcntl_exec(\PHP_BINARY, $arguments));

        return 'PHP could not be restarted: ' . Warnings::socketReason($warning);
    }

    /**
     * @param list<string> $line the command line of this process
     *
     * @return list<string>|null arguments for pcntl_exec(), without the PHP binary; null when the command line does not
     *         contain this script and its arguments
     */
    private static function arguments(array $line): ?array
    {
        /** @var non-empty-list<string> $argv */
        $argv = $_SERVER['argv'] ?? [''];
        $scriptIndex = \count($line) - \count($argv);
        if (
            $scriptIndex > 0
            && \array_slice($line, $scriptIndex) === $argv
            && !\in_array($line[$scriptIndex - 1], ['-f', '--file'], true)
        ) {
            // If a setting is given twice, PHP uses the last one. So the new settings follow all other options.
            return [...\array_slice($line, 1, $scriptIndex - 1), ...self::options(), ...$argv];
        }
        $usesFileOption = $scriptIndex >= 0
            && \in_array($argv[0], $line, true)
            && \array_slice($line, $scriptIndex + 1) === \array_slice($argv, 1);

        return $usesFileOption ? [...self::options(), ...\array_slice($line, 1)] : null; // "php -f script -- arguments"
    }

    /** @return list<string> */
    private static function options(): array
    {
        $settings = [
            'disable_functions' => implode(
                ',',
                array_filter(
                    [\ini_get('disable_functions'), ...RequestFunctions::names()],
                    static fn(string|false $name): bool => $name !== '' && $name !== false,
                ),
            ),
            'session.auto_start' => '0',
            self::RESTARTED_SETTING => '1',
        ];
        if ((bool) \ini_get('opcache.enable_cli') && (string) \ini_get('opcache.file_cache') !== '') {
            // The file cache may have code that PHP compiled before these functions were disabled. If such code calls
            // one of these functions, the process ends.
            $settings += ['opcache.file_cache' => '', 'opcache.file_cache_only' => '0'];
        }
        $options = [];
        foreach ($settings as $name => $value) {
            array_push($options, '-d', "{$name}={$value}");
        }

        return $options;
    }
}
