<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Composer\Autoload\ClassLoader;
use Spindle\Internal\Launcher\ProcessCredentials;
use Spindle\Internal\Warnings;
use Spindle\Worker\WorkerStartException;

/**
 * The workers of one {@see Context}. Each has the user, groups, root directory and Composer autoloaders that this
 * process had when the group was created. When this process changes any of these, the pool creates a new group.
 */
final class WorkerGroup implements ContextEvents
{
    public readonly Context $context;
    public readonly WorkerStartup $startup;

    /** @var array<int, WorkerHandle> workers by number */
    public array $workers = [];

    /** Minimum nanoseconds between two comparisons of all credentials, while the effective ids stay the same. */
    private const COMPARE_INTERVAL_NANOSECONDS = 1_000_000;

    public readonly bool $isOfRoot;

    private readonly string $credentials;
    private readonly int $effective;

    /** @var array<string, ClassLoader> Composer autoloaders of this process */
    private array $autoloaders;

    /** @var list<string> files that the workers load to get $autoloaders */
    private readonly array $autoloaderFiles;

    /** Earliest time at which {@see hasUserChanged()} compares all credentials again, in nanoseconds of hrtime(). */
    private int $nextComparison = 0;

    /** @param \Closure(ContextEvents): Context $context */
    public function __construct(
        \Closure $context,
        WorkerSettings $settings,
        float $startTimeout,
        public readonly WorkerEvents $events,
    ) {
        $this->credentials = ProcessCredentials::current();
        $this->isOfRoot = ProcessCredentials::areOfRoot($this->credentials);
        $this->effective = ProcessCredentials::effective();
        $this->autoloaders = self::registeredAutoloaders();
        $this->autoloaderFiles = self::autoloaderFiles();
        $this->context = $context($this);
        $this->startup = new WorkerStartup($this->context, $settings, $startTimeout, $events);
    }

    public function hasFormerCredentials(): bool
    {
        return ProcessCredentials::current() !== $this->credentials;
    }

    /**
     * Returns whether the effective user or group of this process has changed. If the workers run as root, also
     * compares all other credentials, but at most once a millisecond, because a comparison takes a tenth of the time of
     * a tiny task.
     */
    public function hasUserChanged(): bool
    {
        if (ProcessCredentials::effective() !== $this->effective) {
            return true;
        }
        if (!$this->isOfRoot || hrtime(true) < $this->nextComparison) {
            return false;
        }
        $this->nextComparison = hrtime(true) + self::COMPARE_INTERVAL_NANOSECONDS;

        return $this->hasFormerCredentials();
    }

    /**
     * Returns whether the workers run as root and this process has changed its credentials since their start. If so,
     * the workers must not get more tasks. Workers that do not run as root may still run tasks submitted earlier.
     */
    public function hasFormerPrivileges(): bool
    {
        return $this->isOfRoot && $this->hasUserChanged();
    }

    /**
     * Returns whether a new worker would load other autoloader files than the workers of this group. The pool calls
     * this method for each submission. If no autoloader is new, the call is fast, because ClassLoader returns the same
     * array again, and PHP compares no elements.
     */
    public function haveAutoloadersChanged(): bool
    {
        $autoloaders = self::registeredAutoloaders();
        if ($autoloaders === $this->autoloaders) {
            return false;
        }
        $this->autoloaders = $autoloaders;

        return self::autoloaderFiles() !== $this->autoloaderFiles;
    }

    /** @return list<string> files that load the Composer autoloaders of this process */
    public static function autoloaderFiles(): array
    {
        $files = array_map(
            static fn(string $vendor): string => "{$vendor}/autoload.php",
            array_keys(self::registeredAutoloaders()),
        );

        // open_basedir may hide loaded files from is_file().
        $loaded = (string) \ini_get('open_basedir') === '' ? [] : array_flip(get_included_files());
        $exists = static fn(string $file): bool => isset($loaded[$file]) || is_file($file);

        return Warnings::suppressed(static fn(): array => array_values(array_filter($files, $exists)));
    }

    /** @return array<string, ClassLoader> by vendor directory */
    private static function registeredAutoloaders(): array
    {
        return class_exists(ClassLoader::class, false) ? ClassLoader::getRegisteredLoaders() : [];
    }

    public function close(bool $readsOutput = false): void
    {
        if ($readsOutput) {
            $this->context->drain();
        }
        $this->startup->close();
        $this->context->close();
    }

    public function onEnded(int $id, ?int $exitCode, ?int $signal, int $memoryPeak): void
    {
        $worker = $this->workers[$id] ?? null;
        if ($worker !== null) {
            $worker->exit = [$exitCode, $signal, $memoryPeak];
            $this->events->ended($worker);
        }
    }

    public function onNotStarted(int $id, WorkerStartException $why): void
    {
        $worker = $this->workers[$id] ?? null;
        if ($worker !== null) {
            $worker->startFailure ??= $why;
            $this->onEnded($id, null, null, 0);
        }
    }

    public function onPrinted(int $id, string $bytes, bool $isError): void
    {
        if ($isError && isset($this->workers[$id])) {
            $this->workers[$id]->appendStderr($bytes);
        }
        $this->events->printed($bytes, $isError);
    }

    public function onLost(string $how): void
    {
        foreach ($this->workers as $id => $worker) {
            $worker->loss = "the process that starts workers died ({$how})";
            $this->onEnded($id, null, 9, 0);
        }
    }

    public function onDestroyed(): void
    {
        $this->events->partDestroyed();
    }
}
