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
            throw KeyFileException::notUsable();
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
            throw KeyFileException::none();
        }
    }

    /**
     * Reads one secret per line. Empty lines and lines that begin with # are ignored.
     *
     * @throws KeyFileException when the file can't be read, or when its mode gives other users access
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

        return $file === false || $file === '' ? throw KeyFileException::unnamed() : self::fromFile($file);
    }

    /** @return array<string, mixed> without the secrets */
    public function __debugInfo(): array
    {
        return ['keys' => \count($this->secrets)];
    }

    /** @return array<string, mixed> */
    public function __serialize(): array
    {
        throw new \LogicException('Keys are not sent anywhere');
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
