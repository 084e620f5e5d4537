<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\SecretFile;
use Spindle\Internal\Warnings;
use Spindle\Remote\Internal\FrameKind;

/**
 * Holds the secret keys that sign jobs and outcomes. Anyone with a key can run any code on the agents. So keep the keys
 * in a file that only its owner can read, and never pass keys on a command line.
 *
 * The engine (Redis or Valkey) stores signed frames, which have these fields:
 *
 *     u8 version | u8 kind | u32 claim number, 0 in a job | 4 bytes key name | 32 bytes authentication code | body
 *
 * The authentication code is a keyed BLAKE2b hash (RFC 7693) of version, kind, claim number, the lengths of queue and
 * job id, queue, job id, and body. So a frame that was moved to another job or queue is refused before its body is
 * decoded. The engine accepts only outcomes of a job's current claim, so this class does not check the claim number.
 */
final class SigningKeys
{
    private const MIN_SECRET_BYTES = 32;

    private const FRAME_VERSION = 1;
    private const FRAME_HEAD_BYTES = 42;

    /** Byte order marks, which some editors write at the start of a file. */
    private const UTF8_MARK = "\xEF\xBB\xBF";
    private const UTF16_LE_MARK = "\xFF\xFE";
    private const UTF16_BE_MARK = "\xFE\xFF";

    /** @var array<array-key, \SensitiveParameterValue> keys by name (4 bytes); PHP converts a name of digits to int */
    private array $keys = [];

    /**
     * @param list<string> $secrets secrets of at least 32 bytes each; the first secret signs, and all secrets verify
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
     * @throws KeyFileException when the file can't be read, other users have access to it (except that a group may read
     *                          a file of root), it begins with a byte order mark of UTF-16, it has no secret or a
     *                          secret of less than 32 bytes, or ext-sodium is missing
     */
    public static function fromFile(string $file): self
    {
        clearstatcache();
        $mode = Warnings::suppressed(static fn(): int|false => fileperms($file));
        if ($mode === false) {
            throw KeyFileException::unreadable($file);
        }
        if (SecretFile::isExposed($file, $mode)) {
            throw KeyFileException::exposed($file, $mode & 0o777);
        }
        $contents = SecretFile::contents($file);
        if ($contents === false) {
            throw KeyFileException::unreadable($file);
        }
        $lines = explode("\n", $contents);
        $first = $lines[0];
        if (str_starts_with($first, self::UTF16_LE_MARK) || str_starts_with($first, self::UTF16_BE_MARK)) {
            throw KeyFileException::utf16($file);
        }
        if (str_starts_with($first, self::UTF8_MARK)) {
            $lines[0] = substr($first, \strlen(self::UTF8_MARK));
        }

        $isKey = static fn(string $line): bool => $line !== '' && $line[0] !== '#';
        $secrets = array_values(array_filter(array_map(trim(...), $lines), $isKey));
        if ($secrets === []) {
            throw KeyFileException::noKey($file);
        }
        if (min(array_map(\strlen(...), $secrets)) < self::MIN_SECRET_BYTES) {
            throw KeyFileException::tooShort(self::MIN_SECRET_BYTES, $file);
        }

        return new self($secrets);
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

    /** @return array<string, mixed> no value: keys can't be serialized, so this method always throws */
    public function __serialize(): array
    {
        throw new \LogicException('Signing keys can\'t be serialized, so that they are not sent anywhere');
    }

    /**
     * Returns a frame: the body, signed with the first key for one job of one queue.
     *
     * @internal
     *
     * @param int $claimNumber 0 if the frame is a job
     */
    public function seal(
        FrameKind $kind,
        string $queue,
        string $id,
        int $claimNumber,
        #[\SensitiveParameter]
        string $body,
    ): string {
        $head = pack('CCV', self::FRAME_VERSION, $kind->value, $claimNumber);
        $name = (string) array_key_first($this->keys);

        return $head . $name . $this->authenticationCode($name, self::context($head, $queue, $id) . $body) . $body;
    }

    /**
     * Verifies a frame, and returns its body.
     *
     * @internal
     *
     * @throws InvalidSignatureException
     */
    public function open(FrameKind $kind, string $queue, string $id, #[\SensitiveParameter] string $frame): string
    {
        if (\strlen($frame) < self::FRAME_HEAD_BYTES) {
            throw InvalidSignatureException::of($id, 'it is too short', $kind);
        }
        if (\ord($frame[0]) !== self::FRAME_VERSION) {
            throw InvalidSignatureException::of(
                $id,
                'it has format version ' . \ord($frame[0]) . ', and this process reads version ' . self::FRAME_VERSION,
                $kind,
            );
        }
        $body = substr($frame, self::FRAME_HEAD_BYTES);
        $name = substr($frame, 6, 4);
        $text = self::context(substr($frame, 0, 6), $queue, $id) . $body;
        $isVerified = \ord($frame[1]) === $kind->value
            && isset($this->keys[$name])
            && hash_equals($this->authenticationCode($name, $text), substr($frame, 10, 32));

        return $isVerified ? $body : throw InvalidSignatureException::of(
            $id,
            'it is not signed for this job and queue with a key of this process\'s key file. '
                . 'Use the same key file for callers and agents',
            $kind,
        );
    }

    private static function context(string $head, string $queue, string $id): string
    {
        return $head . pack('VV', \strlen($queue), \strlen($id)) . $queue . $id;
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
