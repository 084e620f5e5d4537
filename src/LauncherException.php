<?php

declare(strict_types=1);

namespace Spindle;

/** A launcher, which starts the commands of a pool, could not be started, or died. */
final class LauncherException extends \RuntimeException implements SpindleException
{
    /** @param list<mixed> $unfinished keys of the commands without an outcome */
    private function __construct(string $message, public readonly array $unfinished = [])
    {
        parent::__construct($message);
    }

    public static function noPhp(string $reason): self
    {
        return new self(
            "The launcher needs PHP's command-line binary: {$reason}. Name it by CommandPoolOptions(php: '/usr/bin/php')",
        );
    }

    public static function cannotStart(string $reason): self
    {
        return new self("The launcher could not be started: {$reason}");
    }

    public static function tooManyAtOnce(int $concurrency, int $capacity, string $means): self
    {
        $advice = $means === 'proc_open'
            ? 'Use fewer at once, enable ext-ffi, or use several pools'
            : 'Use fewer at once or raise the limit (ulimit -n)';

        return new self(
            "{$concurrency} commands at once need more descriptors than the launcher may have: it can run {$capacity} at once through {$means}. {$advice}",
        );
    }

    /** @param list<mixed> $unfinished */
    public static function died(string $how, array $unfinished): self
    {
        $count = \count($unfinished);

        return new self(
            "The launcher died ({$how}) with {$count} commands under way; they were ended and have no outcome. CommandPoolOptions(redispatch: true) runs such commands again",
            $unfinished,
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
            'This pool belongs to the process that this one was forked from, and a launcher serves one process only:'
            . ' make a pool of your own after a fork',
            $unfinished,
        );
    }

    /** @param list<mixed> $unfinished */
    public static function otherCredentials(array $unfinished): self
    {
        return new self(
            'The user, groups or root directory of this process have changed since it gave the command to the pool:'
            . ' another attempt would run with the new ones. Give it to the pool again',
            $unfinished,
        );
    }

    /** @param list<mixed> $unfinished */
    public static function closed(array $unfinished): self
    {
        return new self(
            \sprintf('The pool was closed with %d commands under way; they were ended', \count($unfinished)),
            $unfinished,
        );
    }
}
