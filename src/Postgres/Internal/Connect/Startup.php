<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ProtocolException;

/**
 * Implements the login, from the startup message to the first ReadyForQuery. It turns received bytes into bytes to
 * send, without a stream, an event loop or a clock.
 *
 * Three rules hold for any server. Only authentication messages are accepted before authentication is complete. An
 * authentication that has begun must finish before the server may declare success. No proof weaker than allowed is
 * sent.
 *
 * @see https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP
 */
final class Startup
{
    /** Maximum bytes of one message, and of all messages together until the login is done. */
    private const MAX_LOGIN_BYTES = 0x1_0000;

    /** Maximum bytes of messages between the login and ReadyForQuery; some kilobytes are usual. */
    private const MAX_SETUP_BYTES = 0x10_0000;

    /** Types of first messages: authentication, error, negotiation of the version, notice. */
    private const FIRST_MESSAGE_TYPES = 'REvN';

    /** The longest secret key of protocol 3.2, in bytes; in 3.0 it has 4. */
    private const MAX_KEY_BYTES = 256;

    private readonly MessageBuffer $buffer;

    private ?Scram $scram = null;

    private bool $hasChallenge = false;

    private bool $computing = false;

    /** Whether the server has proved that it knows the password. */
    private bool $isServerVerified = false;

    /** Method of the proof that was sent without SCRAM; null for none. */
    private ?AuthenticationMethod $sentMethod = null;

    private bool $authenticated = false;

    private bool $ready = false;

    private int $receivedBytes = 0;

    /** Whether a message has arrived. */
    private bool $hasReceived = false;

    private int $pid = 0;

    private string $secretKey = '';

    /** @var array<string, string> parameters that the server reports */
    private array $parameters = [];

    public function __construct(
        private readonly LoginCredentials $credentials,
        private readonly string $applicationName = '',
    ) {
        $this->buffer = new MessageBuffer(self::MAX_LOGIN_BYTES);
    }

    /** Returns the startup message. It has only parameters that poolers accept too. */
    public function begin(): string
    {
        return Messages::startup([
            'user' => $this->credentials->user,
            'database' => $this->credentials->database,
            'client_encoding' => 'UTF8',
            'DateStyle' => 'ISO, MDY',
            ...$this->applicationName === '' ? [] : ['application_name' => $this->applicationName],
        ]);
    }

    /**
     * Processes bytes from the server, and returns the bytes to send in return.
     *
     * @throws ProtocolException when the bytes do not follow PostgreSQL's protocol
     * @throws AttemptFailedException when the server or the client refuses
     */
    public function receive(#[\SensitiveParameter] string $bytes): string
    {
        if ($this->receivedBytes === 0 && $bytes !== '' && !str_contains(self::FIRST_MESSAGE_TYPES, $bytes[0])) {
            throw ProtocolException::notPostgres($bytes);
        }
        $this->receivedBytes += \strlen($bytes);
        $limit = $this->authenticated ? self::MAX_SETUP_BYTES : self::MAX_LOGIN_BYTES;
        if ($this->receivedBytes > $limit && !$this->ready) {
            throw ProtocolException::malformed('the server sent too many bytes before the end of the login');
        }
        $this->buffer->append($bytes);
        $answer = '';
        while (!$this->computing && !$this->ready && ($message = $this->next()) !== null) {
            $answer .= $this->authenticated
                ? $this->handleSessionMessage(...$message)
                : $this->authenticate(...$message);
        }

        return $answer;
    }

    /** Whether {@see compute()} must be called before more bytes are processed. */
    public function isComputing(): bool
    {
        return $this->computing;
    }

    /** Works on the proof for some milliseconds. Returns the bytes to send, '' while the proof is not done. */
    public function compute(): string
    {
        $answer = $this->scram?->compute();
        if ($answer === null) {
            return '';
        }
        $this->computing = false;

        // Messages that arrived before the proof was sent can't be an answer to it. They are checked like all others.
        return Messages::password($answer) . $this->receive('');
    }

    public function isReady(): bool
    {
        return $this->ready;
    }

    public function pid(): int
    {
        return $this->pid;
    }

    public function secretKey(): string
    {
        return $this->secretKey;
    }

    /** @return array<string, string> */
    public function parameters(): array
    {
        return $this->parameters;
    }

    /** Returns the bytes after ReadyForQuery. */
    public function rest(): string
    {
        return $this->buffer->rest();
    }

    /** @return array{string, string}|null */
    private function next(): ?array
    {
        try {
            $message = $this->buffer->next();
        } catch (ProtocolException $malformed) {
            throw $this->hasReceived ? $malformed : ProtocolException::notPostgres($this->buffer->rest());
        }
        $this->hasReceived = $this->hasReceived || $message !== null;

        return $message;
    }

    private function authenticate(string $type, string $payload): string
    {
        switch ($type) {
            case 'R':
                return $this->handleAuthentication(Messages::number($payload), substr($payload, 4));
            case 'E':
                throw AttemptFailedException::refused(Messages::error($payload));
            case 'v':
                $this->negotiate($payload);

                return '';
            case 'N':
                return '';
            default:
                throw ProtocolException::unexpected($type, 'before the login was done');
        }
    }

    private function handleAuthentication(int $code, #[\SensitiveParameter] string $data): string
    {
        // An authentication that has begun must finish: the server can't ask for anything else in between.
        $expected = match (true) {
            $this->scram !== null && $this->isServerVerified, $this->sentMethod !== null => [0],
            $this->scram !== null => [11, 12],
            default => [0, 3, 5, 10],
        };
        if ($this->scram !== null && !$this->isServerVerified && $code === 0) {
            throw AttemptFailedException::authentication(
                'the server ended the login without a proof that it knows the password. '
                    . 'It may be an impostor',
            );
        }
        if (!\in_array($code, [0, 3, 5, 10, 11, 12], true)) {
            throw AttemptFailedException::authentication(
                "the server requests an unknown authentication method: {$this->methodName($code)}",
            );
        }
        if (!\in_array($code, $expected, true)) {
            throw ProtocolException::unexpected('R', "with the unexpected code {$code}");
        }

        return match ($code) {
            0 => $this->finishAuthentication(),
            3 => $this->send(AuthenticationMethod::Password, fn(): string => $this->credentials->password()),
            5 => $this->send(AuthenticationMethod::Md5, fn(): string => $this->md5($data)),
            10 => $this->beginScram($data),
            11 => $this->challenge($data),
            12 => $this->verify($data),
        };
    }

    private function methodName(int $code): string
    {
        return match ($code) {
            2 => 'Kerberos',
            7, 8 => 'GSSAPI',
            9 => 'SSPI',
            default => "number {$code}",
        };
    }

    private function finishAuthentication(): string
    {
        if ($this->scram === null && $this->sentMethod === null) {
            $this->credentials->ensureAllowed(AuthenticationMethod::None);
        }
        $this->authenticated = true;
        // Messages after the login have their own limit. 0 would stand for no bytes at all.
        $this->receivedBytes = 1;

        return '';
    }

    /** @param \Closure(): string $proof */
    private function send(AuthenticationMethod $method, \Closure $proof): string
    {
        $this->credentials->ensureAllowed($method);
        $this->sentMethod = $method;

        return Messages::password("{$proof()}\0");
    }

    private function md5(string $salt): string
    {
        if (\strlen($salt) !== 4) {
            throw ProtocolException::malformed('the salt for an MD5 login does not have 4 bytes');
        }

        return 'md5' . md5(md5($this->credentials->password() . $this->credentials->user) . $salt);
    }

    private function beginScram(string $data): string
    {
        $this->credentials->ensureAllowed(AuthenticationMethod::Scram);
        // Checked before anything is sent, so that a missing password is the reported cause.
        $this->credentials->password();
        $this->scram = Scram::begin(
            array_values(array_filter(Messages::texts($data), static fn(string $name): bool => $name !== '')),
            $this->credentials,
        );
        $first = $this->scram->first();

        return Messages::password("{$this->scram->mechanism}\0" . pack('N', \strlen($first)) . $first);
    }

    private function challenge(string $data): string
    {
        if ($this->hasChallenge) {
            throw ProtocolException::unexpected('R', 'with a second SCRAM challenge');
        }
        $this->hasChallenge = true;
        $this->scram?->challenge($data);
        $this->computing = true;

        return '';
    }

    private function verify(string $data): string
    {
        $this->scram?->verify($data);
        $this->isServerVerified = true;

        return '';
    }

    private function negotiate(string $payload): void
    {
        // The client asked for version 3.0 without options, so the server can't drop any. By the protocol, the server
        // sends only its minor version, but real servers send the major version too.
        if (!\in_array(Messages::number($payload) >> 16, [0, 3], true) || Messages::number($payload, 4) !== 0) {
            throw AttemptFailedException::because('the server does not speak version 3.0 of the protocol');
        }
    }

    private function handleSessionMessage(string $type, #[\SensitiveParameter] string $payload): string
    {
        switch ($type) {
            case 'S':
                $texts = Messages::texts($payload);
                if (\count($texts) !== 2) {
                    throw ProtocolException::unexpected('S', 'without a name and a value');
                }
                $this->parameters[$texts[0]] = $texts[1];
                break;
            case 'K':
                $this->pid = Messages::number($payload);
                $this->secretKey = substr($payload, 4, self::MAX_KEY_BYTES);
                break;
            case 'Z':
                $this->ready = true;
                break;
            case 'E':
                throw AttemptFailedException::refused(Messages::error($payload));
            case 'N':
                break;
            default:
                throw ProtocolException::unexpected($type, 'before the server was ready');
        }

        return '';
    }
}
