<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Internal\Warnings;

/** Process-wide state of a worker before its first task. {@see restore()} undoes the changes that tasks made. */
final class InitialState
{
    private readonly string|false $directory;
    private readonly int $umask;
    private readonly string|false $locale;
    private readonly string $timeZone;

    /** @var array<array-key, string> */
    private readonly array $environment;

    /** @var array<string, string|null> */
    private readonly array $settings;

    /** @var list<array<array-key, mixed>> superglobals that libraries change together with the environment */
    private readonly array $variables;

    /** @param bool $isThread whether the worker is a thread, which shares umask, locale and environment with others */
    public function __construct(private readonly bool $isThread)
    {
        $this->directory = getcwd();
        $this->umask = umask();
        $this->locale = setlocale(\LC_ALL, '0');
        $this->timeZone = date_default_timezone_get();
        $this->environment = getenv();
        $this->settings = self::settings();
        $this->variables = [$_ENV, $_SERVER];
    }

    public function restore(): void
    {
        $settings = self::settings();
        if ($settings !== $this->settings) {
            foreach ($this->settings as $name => $value) {
                if (\array_key_exists($name, $settings) && $settings[$name] !== $value) {
                    // ini_set() fails for settings that can only be made stricter, such as open_basedir
                    Warnings::suppressed(static fn(): string|false => ini_set($name, $value ?? ''));
                }
            }
        }
        date_default_timezone_set($this->timeZone);
        if ($this->directory !== false && getcwd() !== $this->directory) {
            // chdir() fails if the directory no longer exists
            Warnings::suppressed(fn(): bool => chdir($this->directory));
        }
        [$_ENV, $_SERVER] = $this->variables;
        if ($this->isThread) {
            return;
        }
        if ($this->locale !== false && setlocale(\LC_ALL, '0') !== $this->locale) {
            setlocale(\LC_ALL, $this->locale);
        }
        umask($this->umask);
        $this->restoreEnvironment(getenv());
    }

    /** @param array<array-key, string> $environment current environment */
    private function restoreEnvironment(array $environment): void
    {
        if ($environment === $this->environment) {
            return;
        }
        foreach (array_diff_key($environment, $this->environment) as $name => $_) {
            putenv("{$name}");
        }
        foreach ($this->environment as $name => $value) {
            if (($environment[$name] ?? null) !== $value) {
                putenv("{$name}={$value}");
            }
        }
    }

    /** @return array<string, string|null> php.ini settings */
    private static function settings(): array
    {
        /** @var array<string, string|null> */
        return ini_get_all(null, false);
    }
}
