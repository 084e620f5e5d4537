<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * Secret keys that sign jobs and outcomes. Anyone with a key can run any code on the agents. So keep the keys in a file
 * that only its owner can read, and never pass them on a command line.
 */
final class SigningKeys
{
    private const MIN_SECRET_BYTES = 32;

    /** Byte order marks, which some editors write at the start of a file. */
    private const UTF8_MARK = "\xEF\xBB\xBF";
    private const UTF16_LE_MARK = "\xFF\xFE";
    private const UTF16_BE_MARK = "\xFE\xFF";

    /** @var array<array-key, \SensitiveParameterValue> derived keys by name; PHP turns a name of digits into an int */
    private array $keys = [];

    /**
     * @param list<string> $secrets each of at least 32 bytes; the first one signs, and all of them verify
     *
     * @throws KeyFileException when a secret is too short, the list is empty, or ext-sodium is missing
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
            $this->keys[substr(
                hash('sha256', "spindle key name\0{$secret}", true),
                0,
                4,
            )] = new \SensitiveParameterValue(sodium_crypto_generichash(
                $secret,
                '',
                \SODIUM_CRYPTO_GENERICHASH_KEYBYTES_MAX,
            ));
        }
        if ($this->keys === []) {
            throw KeyFileException::noKey();
        }
    }

    /**
     * Reads a file with one secret per line. Removes white space around each line, and ignores empty lines and lines
     * that begin with #. Lines end with LF or CRLF. A byte order mark of UTF-8 is accepted.
     *
     * @throws KeyFileException when the file can't be read, its mode permits access by other users, it begins with a
     *                          byte order mark of UTF-16, it has no secret or a secret of less than 32 bytes, or
     *                          ext-sodium is missing
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
        return ['keys' => \count($this->keys)];
    }

    /** @return array<string, mixed> never, because keys can't be serialized */
    public function __serialize(): array
    {
        throw new \LogicException('Signing keys can\'t be serialized, so that they are not sent anywhere');
    }

    /**
     * Returns the name of the first key (4 bytes), followed by the authentication code of $context . $body (32 bytes).
     *
     * @internal
     */
    public function sign(string $context, string $body): string
    {
        $name = (string) array_key_first($this->keys);

        return $name . $this->authenticationCode($name, $context . $body);
    }

    /** @internal Returns whether $authenticationCode is that of $context . $body with the key of this name. */
    public function verify(string $name, string $authenticationCode, string $context, string $body): bool
    {
        return isset($this->keys[$name])
            && hash_equals($this->authenticationCode($name, $context . $body), $authenticationCode);
    }

    private function authenticationCode(string $name, string $text): string
    {
        $key = $this->keys[$name]->getValue();

        return sodium_crypto_generichash(
            $text,
            \is_string($key) ? $key : throw new \LogicException('A key is a string'),
        );
    }
}
