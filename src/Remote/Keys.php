<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * Secrets that sign what is sent. Whoever has one can have any code run on the agents; so they are in a file that only its
 * owner can read, and never in a command line.
 */
final class Keys
{
    /** Bytes that a secret has at least. */
    private const SHORTEST = 32;

    /** @var array<string, \SensitiveParameterValue> what is made of the secrets, by what a frame calls them; the first one signs */
    private array $secrets = [];

    /**
     * @param list<string> $secrets each of 32 bytes or more; the first signs, and what was signed with another one is accepted
     *
     * @throws KeyFileException
     */
    public function __construct(#[\SensitiveParameter] array $secrets)
    {
        if (!\extension_loaded('sodium')) {
            throw KeyFileException::notUsable();
        }
        foreach ($secrets as $secret) {
            if (\strlen($secret) < self::SHORTEST) {
                throw KeyFileException::tooShort(self::SHORTEST);
            }
            $this->secrets[substr(hash('sha256', "spindle key name\0{$secret}", true), 0, 4)] = new \SensitiveParameterValue(sodium_crypto_generichash($secret, '', \SODIUM_CRYPTO_GENERICHASH_KEYBYTES_MAX));
        }
        if ($this->secrets === []) {
            throw KeyFileException::none();
        }
    }

    /**
     * A secret on each line, empty lines and those that begin with # aside.
     *
     * @throws KeyFileException when it can't be read, or when others than its owner can
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

        return new self(array_values(array_filter(array_map(trim(...), $lines), static fn(string $line): bool => $line !== '' && $line[0] !== '#')));
    }

    /**
     * From the file that SPINDLE_KEY_FILE names.
     *
     * @throws KeyFileException
     */
    public static function fromEnvironment(): self
    {
        $file = getenv('SPINDLE_KEY_FILE');

        return $file === false || $file === '' ? throw KeyFileException::unnamed() : self::fromFile($file);
    }

    /** @return array<string, mixed> nothing of the secrets */
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
     * A frame's head: the key's name and the code of what it is said of.
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

        return sodium_crypto_generichash($text, \is_string($secret) ? $secret : throw new \LogicException('It is a string'));
    }
}
