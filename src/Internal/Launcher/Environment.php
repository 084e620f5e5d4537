<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

/** The environment that commands start from. */
final class Environment
{
    /** Bytes of a variable that are sent. Linux allows 2 MiB at most (execve(2)): a longer one is refused all the same. */
    private const LONGEST = 4 << 20;

    /**
     * What the system or putenv() set. Under FPM and its kin, a list has the request's variables as well, which must not
     * reach commands: each is asked for by its name.
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
            $entries[] = substr("{$name}={$value}", 0, self::LONGEST);
        }

        return Protocol::frame(Protocol::ENVIRONMENT, 0, implode("\0", $entries));
    }
}
