<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** Thrown when no usable signing key is available. */
final class KeyFileException extends \RuntimeException implements SpindleException
{
    private const ADVICE = 'make one with: (umask 077; head -c 32 /dev/urandom | base64 > spindle.key)';

    public static function unnamed(): self
    {
        return new self(
            'SPINDLE_KEY_FILE does not name the file with the keys that sign what is sent to the broker; '
                . self::ADVICE,
        );
    }

    public static function unreadable(string $file): self
    {
        return new self("The key file '{$file}' can't be read; " . self::ADVICE);
    }

    public static function utf16(string $file): self
    {
        return new self(
            "The key file '{$file}' is in UTF-16, so its keys differ from those of other machines: save it as ASCII or UTF-8",
        );
    }

    public static function exposed(string $file, int $mode): self
    {
        return new self(\sprintf(
            "Others than its owner can get at the key file '%s' (its mode is %04o): make new keys, and set the mode to 0600",
            $file,
            $mode,
        ));
    }

    public static function tooShort(int $bytes): self
    {
        return new self("A key has less than {$bytes} bytes; " . self::ADVICE);
    }

    public static function notUsable(): self
    {
        return new self(
            'Keys can\'t be used by this PHP, which is without ext-sodium: what is sent to the broker is signed with its BLAKE2b',
        );
    }

    public static function none(): self
    {
        return new self('There is no key; ' . self::ADVICE);
    }
}
