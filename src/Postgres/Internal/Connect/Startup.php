<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\Internal\Protocol\BackendMessages;
use Spindle\Postgres\Internal\Protocol\FrontendMessages;
use Spindle\Postgres\ProtocolException;

/**
 * Implements the login, from the startup message to the first ReadyForQuery. The caller passes received bytes, and
 * sends the bytes that are returned. This class itself uses no stream, no event loop and no clock.
 *
 * Three rules protect the client from a malicious server. Before the authentication is complete, only messages of the
 * login are accepted. A SCRAM login that has begun must be finished before the server can report success. The client
 * proves its password only by a method that the options allow.
 *
 * @see https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP
 */
final class Startup
{
    /** Maximum bytes of one message, and of all messages until the authentication is complete. */
    private const MAX_LOGIN_BYTES = 0x1_0000;

    /** Maximum bytes of all messages after the authentication, up to ReadyForQuery. Some kilobytes are usual. */
    private const MAX_SETUP_BYTES = 0x10_0000;

    /** Types of a server's first message: Authentication…, ErrorResponse, NegotiateProtocolVersion, NoticeResponse. */
    private const FIRST_MESSAGE_TYPES = 'REvN';

    /** Maximum bytes of the key for cancel requests in protocol 3.2. In protocol 3.0, the key has 4 bytes. */
    private const MAX_KEY_BYTES = 256;

    public readonly MessageBuffer $buffer;

    private ?Scram $scram = null;

    private bool $hasChallenge = false;

    /** Whether {@see compute()} must be called. Until compute() returns bytes, no messages are processed. */
    public bool $needsCompute = false;

    private bool $isServerVerified = false;

    /** Method by which the password was sent; null before that, and for a SCRAM login ({@see $scram}). */
    private ?AuthenticationMethod $sentMethod = null;

    private bool $authenticated = false;

    /** Whether the login is complete. Only this class writes the public properties. */
    public bool $isReady = false;

    /** Bytes received so far. Counting starts again at the end of the authentication. */
    private int $receivedBytes = 0;

    private bool $hasReceivedMessage = false;

    public int $pid = 0;

    public string $secretKey = '';

    /** @var array<string, string> parameters that the server has reported */
    public array $parameters = [];

    public function __construct(
        private readonly LoginCredentials $credentials,
        private readonly string $applicationName = '',
    ) {
        $this->buffer = new MessageBuffer(self::MAX_LOGIN_BYTES);
    }

    /** Returns the startup message, which contains only parameters that poolers also accept. */
    public function begin(): string
    {
        return FrontendMessages::startup([
            'user' => $this->credentials->user,
            'database' => $this->credentials->database,
            'client_encoding' => 'UTF8',
            'DateStyle' => 'ISO, MDY',
            ...$this->applicationName === '' ? [] : ['application_name' => $this->applicationName],
        ]);
    }

    /**
     * @throws ProtocolException when the bytes violate PostgreSQL's protocol
     * @throws AttemptFailedException when the server refuses the login, or requests something that is not allowed
     */
    public function receive(#[\SensitiveParameter] string $bytes): string
    {
        if ($this->receivedBytes === 0 && $bytes !== '' && !str_contains(self::FIRST_MESSAGE_TYPES, $bytes[0])) {
            throw ProtocolException::notPostgres($bytes);
        }
        $this->receivedBytes += \strlen($bytes);
        $limit = $this->authenticated ? self::MAX_SETUP_BYTES : self::MAX_LOGIN_BYTES;
        if ($this->receivedBytes > $limit && !$this->isReady) {
            throw ProtocolException::malformed('the server sent too many bytes before the end of the login');
        }
        $this->buffer->rest .= $bytes;
        $answer = '';
        while (!$this->needsCompute && !$this->isReady && ($message = $this->next()) !== null) {
            $answer .= $this->authenticated
                ? $this->handleSessionMessage(...$message)
                : $this->authenticate(...$message);
        }

        return $answer;
    }

    /** Works on the SCRAM answer for some milliseconds. Returns the bytes to send; '' if further calls are needed. */
    public function compute(): string
    {
        $answer = $this->scram?->compute();
        if ($answer === null) {
            return '';
        }
        $this->needsCompute = false;

        // Messages that arrived during the computation are processed and checked like all others.
        return FrontendMessages::authenticationResponse($answer) . $this->receive('');
    }

    /** @return array{string, string}|null type and payload of the next message; null while it is incomplete */
    private function next(): ?array
    {
        try {
            $message = $this->buffer->next();
        } catch (ProtocolException $malformed) {
            throw $this->hasReceivedMessage ? $malformed : ProtocolException::notPostgres($this->buffer->rest);
        }
        $this->hasReceivedMessage = $this->hasReceivedMessage || $message !== null;

        return $message;
    }

    private function authenticate(string $type, string $payload): string
    {
        return match ($type) {
            'R' => $this->handleAuthentication(BackendMessages::number('N', $payload), substr($payload, 4)),
            'E' => throw AttemptFailedException::refused(BackendMessages::error($payload)),
            'v' => self::isSupportedVersion($payload) ? '' : throw AttemptFailedException::unsupportedVersion(),
            'N' => '',
            default => throw ProtocolException::unexpected($type, 'before the login was done'),
        };
    }

    /** @param int $code 0 Ok, 3 CleartextPassword, 5 MD5Password, 10 SASL, 11 SASLContinue, 12 SASLFinal */
    private function handleAuthentication(int $code, #[\SensitiveParameter] string $data): string
    {
        // While an authentication is in progress, the server must not request another one.
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
            3 => $this->passwordMessage(AuthenticationMethod::Password, fn(): string => $this->credentials->password()),
            5 => $this->passwordMessage(AuthenticationMethod::Md5, fn(): string => $this->md5($data)),
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
        // Later messages have another limit, so the count restarts. The count does not restart at 0, because receive()
        // would then expect the type of a first message.
        $this->receivedBytes = 1;

        return '';
    }

    /** @param \Closure(): string $password returns the password or its hash; called only if the method is allowed */
    private function passwordMessage(AuthenticationMethod $method, \Closure $password): string
    {
        $this->credentials->ensureAllowed($method);
        $this->sentMethod = $method;

        return FrontendMessages::authenticationResponse("{$password()}\0");
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
        // password() throws if there is no password. Without this call, a later failure could hide that reason.
        $this->credentials->password();
        $this->scram = Scram::begin(
            array_values(array_filter(BackendMessages::texts($data), static fn(string $name): bool => $name !== '')),
            $this->credentials,
        );
        $first = $this->scram->first();

        return FrontendMessages::authenticationResponse(
            "{$this->scram->mechanism}\0" . pack('N', \strlen($first)) . $first,
        );
    }

    /** Handles the server's SCRAM challenge. Then {@see compute()} must be called. */
    private function challenge(string $data): string
    {
        if ($this->hasChallenge) {
            throw ProtocolException::unexpected('R', 'with a second SCRAM challenge');
        }
        $this->hasChallenge = true;
        $this->scram?->challenge($data);
        $this->needsCompute = true;

        return '';
    }

    private function verify(string $data): string
    {
        $this->scram?->verify($data);
        $this->isServerVerified = true;

        return '';
    }

    private static function isSupportedVersion(string $payload): bool
    {
        // The client has requested version 3.0 and no protocol options, so a list of unknown options is an error. The
        // protocol says that the server sends only the minor version, but real servers also send the major version.
        $major = BackendMessages::number('N', $payload) >> 16;
        $optionCount = BackendMessages::number('N', $payload, 4);

        return \in_array($major, [0, 3], true) && $optionCount === 0;
    }

    /** Processes a message after the authentication, up to ReadyForQuery. Returns '', because no answer is needed. */
    private function handleSessionMessage(string $type, #[\SensitiveParameter] string $payload): string
    {
        match ($type) {
            'S' => [$name, $this->parameters[$name]] = BackendMessages::parameterStatus($payload),
            'K' => [$this->pid, $this->secretKey]
                = [BackendMessages::number('N', $payload), substr($payload, 4, self::MAX_KEY_BYTES)],
            'Z' => $this->isReady = true,
            'E' => throw AttemptFailedException::refused(BackendMessages::error($payload)),
            'N' => null,
            default => throw ProtocolException::unexpected($type, 'before the server was ready'),
        };

        return '';
    }
}
