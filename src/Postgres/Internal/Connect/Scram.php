<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\ChannelBinding;

/**
 * Implements a login by SCRAM-SHA-256, or by SCRAM-SHA-256-PLUS with the channel binding tls-server-end-point.
 *
 * @see https://www.rfc-editor.org/rfc/rfc5802
 * @see https://www.rfc-editor.org/rfc/rfc7677
 */
final class Scram
{
    public const PLAIN = 'SCRAM-SHA-256';

    public const PLUS = 'SCRAM-SHA-256-PLUS';

    /** Maximum iterations. With more iterations, a malicious server could keep the client busy for many seconds. */
    private const MAX_ITERATIONS = 10_000_000;

    private string $serverFirst = '';

    /** The client's nonce, extended by the server. */
    private string $nonce = '';

    private ?SaltedPassword $salting = null;

    /** Signature by which the server proves that it knows the password. */
    private string $expectedSignature = '';

    /**
     * @param string $header GS2 header: RFC 5802, section 7
     * @param string $binding the header, followed by the channel binding data if there are any
     */
    private function __construct(
        public readonly string $mechanism,
        private readonly string $header,
        private readonly string $binding,
        private readonly LoginCredentials $credentials,
        private readonly string $clientNonce,
    ) {}

    /**
     * @param list<string> $offered mechanisms that the server offers
     * @param string|null $nonce fixed nonce for tests
     *
     * @throws AttemptFailedException when no mechanism is usable
     */
    public static function begin(array $offered, LoginCredentials $credentials, ?string $nonce = null): self
    {
        $nonce ??= base64_encode(random_bytes(18));
        $canBind = $credentials->tls
            && $credentials->certificateHash !== null
            && $credentials->channelBinding !== ChannelBinding::Disable;
        if ($canBind && \in_array(self::PLUS, $offered, true)) {
            return new self(
                self::PLUS,
                $header = 'p=tls-server-end-point,,',
                $header . $credentials->certificateHash,
                $credentials,
                $nonce,
            );
        }
        if ($credentials->channelBinding === ChannelBinding::Require) {
            throw AttemptFailedException::authentication('channel binding is required, and ' . match (true) {
                !$credentials->tls => 'the connection is not encrypted',
                !$canBind => "the signature of the server's certificate names no hash function",
                default => 'the server does not offer it',
            });
        }
        if (!\in_array(self::PLAIN, $offered, true)) {
            throw AttemptFailedException::authentication(
                'the server offers only unknown SASL mechanisms: ' . implode(
                    ', ',
                    array_map(
                        static fn(string $name): string => addcslashes(substr($name, 0, 40), "\0..\37\177..\377"),
                        $offered,
                    ),
                ),
            );
        }
        // The header "y" means that the client supports channel binding, but received no offer of it. If the server
        // did send an offer, an attacker has removed the offer. Then the server refuses the login because of the "y".
        $header = $canBind ? 'y,,' : 'n,,';

        return new self(self::PLAIN, $header, $header, $credentials, $nonce);
    }

    public function first(): string
    {
        return $this->header . $this->firstBare();
    }

    /** Processes the server's first message. Call {@see compute()} for the answer. */
    public function challenge(string $serverFirst): void
    {
        if (preg_match(
            '~^r=(?<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?<salt>[A-Za-z0-9+/]+={0,2}),i=(?<iterations>[1-9][0-9]*)(?:,|$)~D',
            $serverFirst,
            $part,
        ) !== 1) {
            throw AttemptFailedException::authentication("the server's SCRAM challenge is malformed");
        }
        if (!str_starts_with($part['nonce'], $this->clientNonce) || $part['nonce'] === $this->clientNonce) {
            throw AttemptFailedException::authentication(
                "the server's SCRAM challenge does not match this client's message",
            );
        }
        if (\strlen($part['iterations']) > 9 || (int) $part['iterations'] > self::MAX_ITERATIONS) {
            throw AttemptFailedException::authentication(
                'the server requests '
                    . substr($part['iterations'], 0, 20)
                    . ' SCRAM iterations, but the limit is '
                    . self::MAX_ITERATIONS,
            );
        }
        $salt = base64_decode($part['salt'], true);
        if ($salt === false || $salt === '') {
            throw AttemptFailedException::authentication("the server's SCRAM challenge has no salt");
        }
        $this->serverFirst = $serverFirst;
        $this->nonce = $part['nonce'];
        $this->salting = $this->credentials->salted->of(
            SaslPrep::prepare($this->credentials->password()),
            $salt,
            (int) $part['iterations'],
        );
    }

    /** Works for some milliseconds. Returns the answer to the challenge; null if further calls are needed. */
    public function compute(): ?string
    {
        $salted = $this->salting?->compute($this);
        if ($salted === null) {
            return null;
        }
        $this->salting = null;
        $withoutProof = 'c=' . base64_encode($this->binding) . ",r={$this->nonce}";
        $signed = "{$this->firstBare()},{$this->serverFirst},{$withoutProof}";
        $key = hash_hmac('sha256', 'Client Key', $salted, true);
        $proof = $key ^ hash_hmac('sha256', $signed, hash('sha256', $key, true), true);
        $this->expectedSignature = hash_hmac('sha256', $signed, hash_hmac('sha256', 'Server Key', $salted, true), true);

        return "{$withoutProof},p=" . base64_encode($proof);
    }

    /** @throws AttemptFailedException when the server does not prove that it knows the password */
    public function verify(string $serverFinal): void
    {
        if (preg_match('~^e=([^,]*)~', $serverFinal, $part) === 1) {
            throw AttemptFailedException::authentication(
                'the server aborted the SCRAM login: ' . addcslashes(substr($part[1], 0, 100), "\0..\37\177..\377"),
            );
        }
        $signature = preg_match('~^v=([A-Za-z0-9+/]+={0,2})(?:,|$)~D', $serverFinal, $part) === 1
            ? base64_decode($part[1], true)
            : false;
        if (
            $this->expectedSignature === ''
            || $signature === false
            || !hash_equals($this->expectedSignature, $signature)
        ) {
            throw AttemptFailedException::authentication(
                'the server did not prove that it knows the password. It may be an impostor',
            );
        }
    }

    /** Returns the first message without header. The user name is empty, because the startup message contains it. */
    private function firstBare(): string
    {
        return "n=,r={$this->clientNonce}";
    }
}
