<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

/** The server's side of SCRAM-SHA-256 by RFC 5802 and RFC 7677, without code of the classes under test. */
final class ScramServer
{
    private readonly string $salt;

    private readonly string $salted;

    private string $clientFirst = '';

    private string $challenge = '';

    /** @param int<1, max> $iterations */
    public function __construct(#[\SensitiveParameter] string $password, private readonly int $iterations = 4096)
    {
        $this->salt = random_bytes(16);
        $this->salted = hash_pbkdf2('sha256', $password, $this->salt, $iterations, 32, true);
    }

    /** Returns the server-first-message for a client-first-message, which includes its GS2 header. */
    public function challenge(string $clientFirst): string
    {
        $this->clientFirst = (string) preg_replace('~^[^,]*,[^,]*,~', '', $clientFirst);
        $nonce = substr((string) strstr($this->clientFirst, 'r='), 2) . bin2hex(random_bytes(9));

        return $this->challenge = "r={$nonce},s=" . base64_encode($this->salt) . ",i={$this->iterations}";
    }

    /** Returns whether the proof in a client-final-message is right. */
    public function canSend(string $clientFinal): bool
    {
        $key = hash_hmac('sha256', 'Client Key', $this->salted, true);
        $proof = base64_decode(substr((string) strstr($clientFinal, ',p='), 3), true);

        return $proof === ($key ^ hash_hmac('sha256', $this->signed($clientFinal), hash('sha256', $key, true), true));
    }

    /** Returns the server-final-message. */
    public function signature(string $clientFinal): string
    {
        return 'v=' . base64_encode(hash_hmac(
            'sha256',
            $this->signed($clientFinal),
            hash_hmac('sha256', 'Server Key', $this->salted, true),
            true,
        ));
    }

    private function signed(string $clientFinal): string
    {
        return "{$this->clientFirst},{$this->challenge}," . strstr($clientFinal, ',p=', true);
    }
}
