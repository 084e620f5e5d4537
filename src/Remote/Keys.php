<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * Secrets that sign frames. A secret allows running any code on the agents. So keep secrets in a file that only its
 * owner can read, and never write them in a command line.
 */
final class Keys
{
    /** Minimum length of a secret in bytes. */
    private const MIN_SECRET_BYTES = 32;

    /** Byte order marks, which editors may write at the start of a file. */
    private const UTF8_MARK = "\xEF\xBB\xBF";
    private const UTF16_LE_MARK = "\xFF\xFE";
    private const UTF16_BE_MARK = "\xFE\xFF";

    /** @var array<string, \SensitiveParameterValue> derived keys by their names in frames; the first one signs */
    private array $secrets = [];

    /**
     * @param list<string> $secrets each of 32 bytes or more; the first signs, the others only verify
     *
     * @throws KeyFileException
     */
    public function __construct(#[\SensitiveParameter] array $secrets)
    {
        if (!\extension_loaded('sodium')) {
            throw KeyFileException::sodiumMissing();
        }
        foreach ($secrets as $secret) {
            if (\strlen($secret) < self::MIN_SECRET_BYTES) {
                throw KeyFileException::tooShort(self::MIN_SECRET_BYTES);
            }
            $this->secrets[substr(
                hash('sha256', "spindle key name\0{$secret}", true),
                0,
                4,
            )] = new \SensitiveParameterValue(sodium_crypto_generichash(
                $secret,
                '',
                \SODIUM_CRYPTO_GENERICHASH_KEYBYTES_MAX,
            ));
        }
        if ($this->secrets === []) {
            throw KeyFileException::noKey();
        }
    }

    /**
     * Reads one secret per line. Empty lines and lines that begin with # are ignored, and so is white space around a
     * secret. Lines may end with LF or CRLF, and the file may begin with a byte order mark of UTF-8.
     *
     * @throws KeyFileException when the file can't be read, is in UTF-16, or gives other users access by its mode
     */
    public static function fromFile(string $file): self
    {
        $mode = @fileperms($file);
        if ($mode === false) {
            throw KeyFileException::unreadable($file);
        }
        if (($mode & 0o077) !== 0) {
            throw KeyFileException::exposed($file, $mode & 0o777);
        }
        $lines = @file($file, \FILE_IGNORE_NEW_LINES | \FILE_SKIP_EMPTY_LINES);
        if ($lines === false) {
            throw KeyFileException::unreadable($file);
        }
        $first = $lines[0] ?? '';
        if (str_starts_with($first, self::UTF16_LE_MARK) || str_starts_with($first, self::UTF16_BE_MARK)) {
            throw KeyFileException::utf16($file);
        }
        if (str_starts_with($first, self::UTF8_MARK)) {
            $lines[0] = substr($first, \strlen(self::UTF8_MARK));
        }

        return new self(array_values(array_filter(
            array_map(trim(...), $lines),
            static fn(string $line): bool => $line !== '' && $line[0] !== '#',
        )));
    }

    /**
     * Reads the file that SPINDLE_KEY_FILE names.
     *
     * @throws KeyFileException
     */
    public static function fromEnvironment(): self
    {
        $file = getenv('SPINDLE_KEY_FILE');

        return $file === false || $file === '' ? throw KeyFileException::noFile() : self::fromFile($file);
    }

    /** @return array<string, mixed> without the secrets */
    public function __debugInfo(): array
    {
        return ['keys' => \count($this->secrets)];
    }

    /** @return array<string, mixed> */
    public function __serialize(): array
    {
        throw new \LogicException('Keys can\'t be serialized, so that they are not sent anywhere');
    }

    /**
     * Returns the key's name and the authentication code of the context and the body.
     *
     * @internal
     */
    public function sign(string $context, string $body): string
    {
        $name = array_key_first($this->secrets) ?? '';

        return $name . $this->code($name, $context . $body);
    }

    /** @internal */
    public function verify(string $name, string $code, string $context, string $body): bool
    {
        return isset($this->secrets[$name]) && hash_equals($this->code($name, $context . $body), $code);
    }

    private function code(string $name, string $text): string
    {
        $secret = $this->secrets[$name]->getValue();

        return sodium_crypto_generichash(
            $text,
            \is_string($secret) ? $secret : throw new \LogicException('It is a string'),
        );
    }
}
