<?php

declare(strict_types=1);

namespace Spindle;

use Spindle\Internal\OwnLoop;

/**
 * A launcher (the helper process that starts a pool's commands) could not be started or has failed, or the pool was
 * closed or killed.
 */
final class LauncherException extends \RuntimeException implements SpindleException
{
    /**
     * @param list<mixed> $unfinished keys of the commands without an outcome
     * @param bool $mayHaveStarted whether some of these commands may have started
     * @param string|null $howItDied how the launcher died, such as `signal 9`; null for other failures
     */
    private function __construct(
        string $message,
        public readonly array $unfinished = [],
        public readonly bool $mayHaveStarted = true,
        public readonly ?string $howItDied = null,
    ) {
        parent::__construct($message);
    }

    /**
     * @param string $reason  why no binary is usable; ends with "set its path", to which this method adds "with …"
     * @param string $options class of options that has the option `php`
     */
    public static function noPhp(string $reason, string $options): self
    {
        return new self("The pool needs PHP's command-line binary: {$reason} with {$options}(php: '/usr/bin/php')");
    }

    public static function cannotStart(string $reason): self
    {
        return new self("The launcher could not be started: {$reason}");
    }

    public static function tooManyAtOnce(int $concurrency, int $maxConcurrency, string $startMethod): self
    {
        $advice = $startMethod === 'proc_open'
            ? 'Lower the concurrency, enable ext-ffi, or use several pools'
            : 'Lower the concurrency, or raise the limit (ulimit -n)';

        return new self(
            "{$concurrency} commands at once need more descriptors than the launcher may have."
                . " It can run {$maxConcurrency} at once with {$startMethod}. {$advice}",
        );
    }

    /** @param list<mixed> $unfinished */
    public static function died(string $how, array $unfinished): self
    {
        return new self(
            "The launcher died ({$how}). " . self::ended($unfinished) . ' without an outcome.'
                . ' CommandPoolOptions(rerunAfterCrash: true) runs such commands again',
            $unfinished,
            howItDied: $how,
        );
    }

    /** @param list<mixed> $unfinished */
    public static function neverReady(string $how, array $unfinished): self
    {
        return new self(
            "Launchers ended repeatedly before they were ready ({$how})"
                . ($unfinished === [] ? '' : '. ' . self::ended($unfinished))
                . '. Check that the option php of the pool names a command-line PHP',
            $unfinished,
            false,
        );
    }

    public static function failed(string $why): self
    {
        return new self("The launcher failed: {$why}");
    }

    /** @param list<mixed> $unfinished */
    public static function forked(array $unfinished = []): self
    {
        return new self(
            'This pool belongs to the parent process of this fork, and a launcher serves only one process. Create'
            . ' another pool after the fork',
            $unfinished,
        );
    }

    /** @param list<mixed> $unfinished */
    public static function otherCredentials(array $unfinished): self
    {
        return new self(
            'The user, groups or root directory of this process have changed since the command was submitted, and'
                . ' another attempt would run with the new ones. Submit the command again',
            $unfinished,
        );
    }

    public static function inOtherLoop(): self
    {
        return new self(OwnLoop::POOL_REFUSAL);
    }

    public static function closed(): self
    {
        return new self('The pool was closed and accepts no more commands. Create another CommandPool for them');
    }

    public static function closedBeforeInputEnd(): self
    {
        return new self(
            'The pool was closed before the run had read all of its input. The commands that it had read have results',
        );
    }

    /** @param list<mixed> $unfinished */
    public static function killed(array $unfinished): self
    {
        return new self('The pool was killed. ' . self::ended($unfinished), $unfinished);
    }

    /** @param list<mixed> $unfinished */
    public static function destroyed(array $unfinished): self
    {
        return new self(
            'PHP has destroyed the pool, because the script has ended. ' . self::ended($unfinished)
                . '. Wait for commands earlier, for example in a shutdown function',
            $unfinished,
        );
    }

    /** @param list<mixed> $unfinished */
    private static function ended(array $unfinished): string
    {
        $count = \count($unfinished);

        return $count === 1 ? '1 pending command was ended' : "{$count} pending commands were ended";
    }
}
