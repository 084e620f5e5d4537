<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

/** The environment that commands inherit: reads it, and encodes it for launchers. */
final class Environment
{
    /** Bytes to which a variable is cut. Linux refuses such a variable anyway (execve(2)). */
    private const MAX_VARIABLE_BYTES = 4 << 20;

    /**
     * FPM and similar SAPIs add variables of the request to getenv(), so each variable is read by its name.
     *
     * @return array<string, string> environment variables of this process, including those of putenv()
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

    /** @param array<array-key, string> $variables encoded as an ENVIRONMENT frame */
    public static function frame(array $variables): string
    {
        $entries = [];
        foreach ($variables as $name => $value) {
            $entries[] = substr("{$name}={$value}", 0, self::MAX_VARIABLE_BYTES);
        }

        return LauncherProtocol::frame(LauncherProtocol::ENVIRONMENT, 0, implode("\0", $entries));
    }
}
