<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\LauncherException;

/** Refuses to start a launcher after a deployment has replaced the source files, perhaps by incompatible ones. */
final class LauncherCode
{
    /** Hash of the files' contents at the start of the first launcher; null before that. */
    private static ?string $loaded = null;

    /** @throws LauncherException when the files have changed since the first launcher of this process */
    public static function check(): void
    {
        $context = hash_init('xxh128');
        foreach (self::files() as $file) {
            hash_update($context, (string) Files::read($file) . "\0");
        }
        $present = hash_final($context);
        if ($present !== (self::$loaded ??= $present)) {
            throw LauncherException::cannotStart(
                'its source files in '
                    . \dirname(__DIR__, 2)
                    . ' have changed since this process loaded them, or can\'t be'
                . ' read, as after a deployment. Restart this process',
            );
        }
    }

    /** @return list<string> */
    private static function files(): array
    {
        $files = [
            __DIR__ . '/LauncherProtocol.php',
            \dirname(__DIR__) . '/FrameHandler.php',
            \dirname(__DIR__) . '/FrameReader.php',
            \dirname(__DIR__) . '/MalformedFrameException.php',
        ];
        foreach (Files::in(__DIR__ . '/Process') as $name) {
            if (preg_match('/^\w+\.php$/D', $name) === 1) { // otherwise a file of an editor or of macOS
                $files[] = __DIR__ . "/Process/{$name}";
            }
        }

        return $files;
    }
}
