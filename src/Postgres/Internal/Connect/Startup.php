<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ProtocolException;

/**
 * A connection's start, from the startup message to the first ReadyForQuery: bytes in, bytes out, without a stream, a loop or a clock.
 *
 * What it holds to, whoever the other side is: nothing but authentication is listened to before it is done; an exchange that has
 * begun is finished before the server's word is taken that it was; nobody gets a weaker proof than was allowed.
 *
 * @see https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP
 */
final class Startup
{
    /** Bytes of one message, and of all that a server may send until the login is done. */
    private const LONGEST = 0x1_0000;

    /** Bytes that it may send afterwards until it is ready; some kilobytes are usual. */
    private const MOST = 0x10_0000;

    /** What a server may begin with: authentication, error, negotiation of the version, notice. */
    private const FIRST = 'REvN';

    /** The end of a secret key in protocol 3.2; in 3.0 it is 4 bytes. */
    private const LONGEST_KEY = 256;

    private readonly MessageBuffer $buffer;

    private ?Scram $scram = null;

    private bool $challenged = false;

    private bool $computing = false;

    /** The server has proved that it knows the password. */
    private bool $verified = false;

    /** What was sent that is no SCRAM; null for nothing. */
    private ?AuthenticationMethod $sent = null;

    private bool $authenticated = false;

    private bool $ready = false;

    private int $received = 0;

    /** There was a message at least. */
    private bool $heard = false;

    private int $pid = 0;

    private string $secretKey = '';

    /** @var array<string, string> as the server reports them */
    private array $parameters = [];

    public function __construct(private readonly Credentials $credentials, private readonly string $applicationName = '')
    {
        $this->buffer = new MessageBuffer(self::LONGEST);
    }

    /** The startup message. It has only the parameters that poolers, too, take from every client. */
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
     * Takes what the server sent, and says what to send in return.
     *
     * @throws ProtocolException      when it is not PostgreSQL's protocol
     * @throws AttemptFailedException when the server refuses, or this side does
     */
    public function receive(#[\SensitiveParameter] string $bytes): string
    {
        if ($this->received === 0 && $bytes !== '' && !str_contains(self::FIRST, $bytes[0])) {
            throw ProtocolException::notPostgres($bytes);
        }
        $this->received += \strlen($bytes);
        if ($this->received > ($this->authenticated ? self::MOST : self::LONGEST) && !$this->ready) {
            throw ProtocolException::malformed('the server sends much, and does not come to the end of the login');
        }
        $this->buffer->append($bytes);
        $answer = '';
        while (!$this->computing && !$this->ready && ($message = $this->next()) !== null) {
            $answer .= $this->authenticated ? $this->settle(...$message) : $this->authenticate(...$message);
        }

        return $answer;
    }

    /** Whether {@see compute()} has to be called before more is received. */
    public function isComputing(): bool
    {
        return $this->computing;
    }

    /** Some milliseconds of work on the proof; what to send in return, '' while it is not done. */
    public function compute(): string
    {
        $answer = $this->scram?->compute();
        if ($answer === null) {
            return '';
        }
        $this->computing = false;

        // What the server can't know yet to be an answer to this would be a forgery; it is judged as any other message.
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

    /** What came behind ReadyForQuery. */
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
            throw $this->heard ? $malformed : ProtocolException::notPostgres($this->buffer->rest());
        }
        $this->heard = $this->heard || $message !== null;

        return $message;
    }

    private function authenticate(string $type, string $payload): string
    {
        switch ($type) {
            case 'R':
                return $this->request(Messages::number($payload), substr($payload, 4));
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

    private function request(int $code, #[\SensitiveParameter] string $data): string
    {
        // Once begun, it goes on to its end: nothing else can be asked for in between.
        $expected = match (true) {
            $this->scram !== null && $this->verified, $this->sent !== null => [0],
            $this->scram !== null => [11, 12],
            default => [0, 3, 5, 10],
        };
        if ($this->scram !== null && !$this->verified && $code === 0) {
            throw AttemptFailedException::authentication('the server says that the login is done, but did not prove that it knows the password: something else may stand in its place');
        }
        if (!\in_array($code, [0, 3, 5, 10, 11, 12], true)) {
            throw AttemptFailedException::authentication("the server asks for an authentication that is not known here: {$this->name($code)}");
        }
        if (!\in_array($code, $expected, true)) {
            throw ProtocolException::unexpected('R', "with {$code}, which is not its turn");
        }

        return match ($code) {
            0 => $this->finish(),
            3 => $this->send(AuthenticationMethod::Password, fn(): string => $this->credentials->password()),
            5 => $this->send(AuthenticationMethod::Md5, fn(): string => $this->md5($data)),
            10 => $this->beginScram($data),
            11 => $this->challenge($data),
            12 => $this->verify($data),
        };
    }

    private function name(int $code): string
    {
        return match ($code) {
            2 => 'Kerberos',
            7, 8 => 'GSSAPI',
            9 => 'SSPI',
            default => "number {$code}",
        };
    }

    private function finish(): string
    {
        if ($this->scram === null && $this->sent === null) {
            $this->credentials->demand(AuthenticationMethod::None);
        }
        $this->authenticated = true;
        // What follows has a limit of its own.
        $this->received = 1;

        return '';
    }

    /** @param \Closure(): string $proof */
    private function send(AuthenticationMethod $method, \Closure $proof): string
    {
        $this->credentials->demand($method);
        $this->sent = $method;

        return Messages::password("{$proof()}\0");
    }

    private function md5(string $salt): string
    {
        if (\strlen($salt) !== 4) {
            throw ProtocolException::malformed('the salt of an MD5 login must have 4 bytes');
        }

        return 'md5' . md5(md5($this->credentials->password() . $this->credentials->user) . $salt);
    }

    private function beginScram(string $data): string
    {
        $this->credentials->demand(AuthenticationMethod::Scram);
        // Asked for before anything is sent, so that its absence is told as what it is.
        $this->credentials->password();
        $this->scram = Scram::begin(array_values(array_filter(Messages::texts($data), static fn(string $name): bool => $name !== '')), $this->credentials);
        $first = $this->scram->first();

        return Messages::password("{$this->scram->mechanism}\0" . pack('N', \strlen($first)) . $first);
    }

    private function challenge(string $data): string
    {
        if ($this->challenged) {
            throw ProtocolException::unexpected('R', 'with a second SCRAM challenge');
        }
        $this->challenged = true;
        $this->scram?->challenge($data);
        $this->computing = true;

        return '';
    }

    private function verify(string $data): string
    {
        $this->scram?->verify($data);
        $this->verified = true;

        return '';
    }

    private function negotiate(string $payload): void
    {
        // Nothing beyond version 3.0 was asked for, so there is nothing to take back. Servers tell the version with its major part.
        if (!\in_array(Messages::number($payload) >> 16, [0, 3], true) || Messages::number($payload, 4) !== 0) {
            throw AttemptFailedException::because('the server does not speak version 3.0 of the protocol');
        }
    }

    private function settle(string $type, #[\SensitiveParameter] string $payload): string
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
                $this->secretKey = substr($payload, 4, self::LONGEST_KEY);
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
