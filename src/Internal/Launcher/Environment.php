<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

/** The environment that commands start from. */
final class Environment
{
    /** Bytes of a variable that are sent. Longer ones may be cut, because Linux refuses more than 2 MiB (execve(2)). */
    private const MAX_VARIABLE_BYTES = 4 << 20;

    /**
     * Returns the variables of the system and of putenv(). Under FPM and similar SAPIs, a list would contain variables
     * of the request, so each is read by its name.
     *
     * @return array<string, string>
     */
    public static function variables(): array
    {
        $environment = getenv();
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

    /** @param array<array-key, string> $variables */
    public static function frame(array $variables): string
    {
        $entries = [];
        foreach ($variables as $name => $value) {
            $entries[] = substr("{$name}={$value}", 0, self::MAX_VARIABLE_BYTES);
        }

        return LauncherProtocol::frame(LauncherProtocol::ENVIRONMENT, 0, implode("\0", $entries));
    }
}
