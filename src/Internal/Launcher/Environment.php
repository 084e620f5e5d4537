<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\Launcher\Process\Files;

/** Reads the environment that commands inherit, and encodes this environment for launchers. */
final class Environment
{
    /** Longer variables are cut to this length. No command gets a cut value: execve(2) refuses values above 128 KiB. */
    private const MAX_VARIABLE_BYTES = 4 << 20;

    /** @var list<string>|null result of {@see unlistedNames()}; null before the first use */
    private static ?array $unlistedNames = null;

    /**
     * Returns the environment variables of this process, including those of putenv(). Under FPM and similar SAPIs,
     * getenv() also returns variables of the request. Only getenv($name, true) ignores them.
     *
     * @return array<string, string>
     */
    public static function variables(): array
    {
        $environment = getenv();
        foreach (self::$unlistedNames ??= self::unlistedNames() as $name) {
            $value = getenv($name, true);
            if ($value !== false) {
                $environment[$name] = $value;
            }
        }
        if (\PHP_SAPI === 'cli') {
            return $environment;
        }
        foreach ($environment as $name => $_) {
            $value = getenv("{$name}", true);
            if ($value === false) {
                unset($environment[$name]);
            } else {
                $environment[$name] = $value;
            }
        }

        return $environment;
    }

    /**
     * Returns the names of variables that this process got at its start, and that getenv() does not list: those with a
     * blank, a dot or a bracket. On systems without /proc/self/environ, returns none.
     *
     * @return list<string>
     */
    private static function unlistedNames(): array
    {
        $names = [];
        foreach (explode("\0", (string) Files::read('/proc/self/environ')) as $variable) {
            $name = substr($variable, 0, (int) strpos($variable, '='));
            if (strpbrk($name, ' .[') !== false) {
                $names[] = $name;
            }
        }

        return $names;
    }

    /** @param array<array-key, string> $variables values by name, for the returned ENVIRONMENT frame */
    public static function frame(array $variables): string
    {
        $entries = [];
        foreach ($variables as $name => $value) {
            $entries[] = substr("{$name}={$value}", 0, self::MAX_VARIABLE_BYTES);
        }

        return LauncherProtocol::frame(LauncherProtocol::ENVIRONMENT, 0, implode("\0", $entries));
    }
}
