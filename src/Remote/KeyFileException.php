<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;
use Spindle\Worker\PortableTask;

/** No usable signing key is available. */
final class KeyFileException extends \RuntimeException implements SpindleException
{
    private const ADVICE = 'Create one: (umask 077; head -c 32 /dev/urandom | base64 > spindle.key)';

    public static function noFile(): self
    {
        return new self('No key file is given: ' . (PortableTask::isInWorker()
            ? 'the environment variable SPINDLE_KEY_FILE of an agent (spindle work) is not passed on to its '
                . 'workers. Pass the keys as SigningKeys::fromFile($file)'
            : 'set SPINDLE_KEY_FILE to the file with the keys that sign jobs and outcomes. ' . self::ADVICE));
    }

    public static function unreadable(string $file): self
    {
        return new self("The key file '{$file}' does not exist or can't be read. " . self::ADVICE);
    }

    public static function utf16(string $file): self
    {
        return new self(
            "The key file '{$file}' is in UTF-16, so its keys have other bytes than the same text in "
                . 'ASCII or UTF-8. Save the file as ASCII or UTF-8.',
        );
    }

    public static function exposed(string $file, int $mode): self
    {
        return new self(\sprintf(
            "Users other than the owner can access the key file '%s' (mode %04o). Set the mode to 0600, or copy the "
                . 'file (install -m 600) if another user owns it. If other users may have read the keys, replace '
                . 'the keys.',
            $file,
            $mode,
        ));
    }

    /** @param string $file the file of the key; '' for a key that is not from a file */
    public static function tooShort(int $bytes, string $file = ''): self
    {
        $of = $file === '' ? '' : " of the key file '{$file}'";

        return new self("A key{$of} is shorter than {$bytes} bytes. " . self::ADVICE);
    }

    public static function sodiumMissing(): self
    {
        return new self('The PHP extension sodium is missing. It signs jobs and outcomes. Install ext-sodium.');
    }

    /** @param string $file the file without a key; '' if no file was read */
    public static function noKey(string $file = ''): self
    {
        return new self(($file === '' ? 'No signing key was given. ' : "The key file '{$file}' has no key. ")
            . self::ADVICE);
    }
}
