<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Predis\Command\RawCommand;
use Predis\Connection\Parameters;
use Predis\Connection\StreamConnection;
use Predis\Response\ErrorInterface;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\Async\OneShot;
use Spindle\Internal\Clock;
use Spindle\Internal\Network\ClientStream;
use Spindle\Internal\Network\ClientTls;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\NetworkException;
use Spindle\Internal\Network\TlsException;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\TlsOptions;

/** A connection to the engine (Redis or Valkey). Fibers can share it: answers have the order of the commands. */
final class RedisConnection
{
    private const CHECK_INTERVAL = 0.5;

    private const PASSWORD_ADVICE = 'put the user and the password into the address, as redis://user:password@host '
        . '(SPINDLE_BROKER, or the file of --broker-file)';
    private const TLS_ADVICE = ' (set trusted authorities with TlsOptions, --tls-ca or the variable SSL_CERT_FILE)';

    /** @var \SplQueue<array{OneShot<mixed>, float}> receiver and deadline of each expected answer */
    private \SplQueue $waiting;

    private bool $isReading = false;
    private bool $hasAnswered = false;
    private ?string $closeReason = null;

    /** Timer that calls {@see checkForTimeout()} while a command is pending, and keeps this object in memory. */
    private string $watchdog = '';

    /** @var (\Closure(mixed): void)|null receives published messages, and null when the connection closes */
    private ?\Closure $listener = null;

    private function __construct(
        private readonly Address $address,
        public readonly EngineStream $stream,
        private readonly StreamConnection $connection,
        private readonly float $timeout,
    ) {
        $this->waiting = new \SplQueue();
    }

    /**
     * @param float $timeout seconds to connect, and seconds that the engine may be silent while a command is pending
     *
     * @throws BrokerException
     */
    public static function open(Address $address, ?TlsOptions $tls, float $timeout): self
    {
        // PHP creates an object before it evaluates the arguments, and calls its destructor at the end of the script.
        $connected = self::connect($address, $tls, Deadline::in($timeout, null));
        $stream = new EngineStream($connected->release());
        $connection = new StreamConnection(new Parameters(['scheme' => 'tcp', 'host' => $address->host]), $stream);
        $self = new self($address, $stream, $connection, $timeout);
        $self->authenticate();

        return $self;
    }

    private static function connect(Address $address, ?TlsOptions $options, Deadline $deadline): ClientStream
    {
        $tls = $address->tls ? ClientTls::of($options ?? new TlsOptions(), $address->host, self::TLS_ADVICE) : null;
        try {
            // A single attempt to connect is enough, because the callers of open() retry.
            $stream = $address->path !== ''
                ? ClientStream::open($address->uri(), null, $deadline)
                : ClientStream::connectToHost($address->host, $address->port, $tls, $deadline);
        } catch (NetworkException $failure) {
            throw BrokerUnavailableException::at((string) $address, $failure->getMessage() . match (true) {
                str_contains($failure->getMessage(), 'connection refused') => '; is Redis or Valkey running there?',
                str_contains($failure->getMessage(), 'no such file') && str_contains($address->path, '%')
                    => '; write the path without percent-encoding',
                str_contains($failure->getMessage(), 'too many open files')
                    => '; has this process reached its limit of open files (ulimit -n)?',
                default => '',
            }, $failure);
        }
        try {
            if ($tls !== null) {
                $stream->encrypt($deadline);
            }
        } catch (TlsException $failure) {
            throw BrokerRefusedException::at(
                (string) $address,
                $failure->getMessage(),
                match (true) {
                    str_contains($failure->getMessage(), 'for another host')
                        => 'use a host name of the certificate in the address, or set TlsOptions::$serverName',
                    preg_match('/unable to set|no valid certs/', $failure->getMessage()) === 1
                        => 'check that this file is in PEM format; a key must belong to the certificate, and must have '
                            . 'no passphrase',
                    default => 'check that the server accepts TLS at this address, and that its certificate is trusted',
                },
                $failure,
            );
        } catch (NetworkException $failure) {
            throw BrokerUnavailableException::at(
                (string) $address,
                "{$failure->getMessage()} (TLS usually has its own port)",
                $failure,
            );
        }

        return $stream;
    }

    /** @throws BrokerException also when the engine answers with an error */
    private function authenticate(): void
    {
        try {
            $password = $this->address->password?->getValue();
            if (\is_string($password)) {
                $this->call('AUTH', $this->address->user === null ? [$password] : [$this->address->user, $password]);
            }
            if ($this->address->database !== 0) {
                $this->call('SELECT', [(string) $this->address->database]);
            }
        } catch (EngineError $error) {
            $isWrongDatabase = preg_match('/DB index|SELECT is not allowed/', $error->getMessage()) === 1;

            throw $isWrongDatabase
                ? BrokerRefusedException::at(
                    (string) $this->address,
                    $error->getMessage(),
                    'correct the database number in the address',
                    $error,
                )
                : BrokerUnavailableException::at((string) $this->address, $error->getMessage(), $error);
        }
    }

    /** Returns whether the connection is closed. If it is idle, first checks whether the engine has closed it. */
    public function isBroken(): bool
    {
        $isIdle = $this->closeReason === null && !$this->isReading && $this->waiting->isEmpty();
        if ($isIdle && $this->stream->belongsToThisProcess() && $this->stream->hasEnded()) {
            $this->close($this->stream->failure());
        }

        return $this->closeReason !== null;
    }

    /**
     * @param list<string> $arguments
     *
     * @throws EngineError                when the engine answers with an error other than those below
     * @throws BrokerRefusedException     when authentication fails, or the user lacks a permission
     * @throws BrokerUnavailableException when the answer is a temporary error or does not arrive; without an answer,
     *                                    the command may have run
     */
    public function call(string $command, #[\SensitiveParameter] array $arguments): mixed
    {
        if ($this->closeReason !== null) {
            throw BrokerUnavailableException::at((string) $this->address, $this->closeReason);
        }
        FiberSwitch::ensurePossible();
        /** @var OneShot<mixed> $answered */
        $answered = new OneShot();
        if ($this->waiting->isEmpty()) {
            $check = $this->checkForTimeout(...);
            $this->watchdog = EventLoop::unreference(EventLoop::repeat(self::CHECK_INTERVAL, $check));
        }
        $this->waiting->enqueue([$answered, Clock::now() + $this->timeout]);
        $this->send($command, $arguments);
        $this->startReading();
        $answer = $answered->await();
        if ($answer instanceof ErrorInterface) {
            $error = new EngineError($answer->getMessage());
            if ($error->kind === 'READONLY') {
                // After a failover, the host name may point to the new primary. So the next command must reconnect.
                $this->close($error->explanation());
            }

            throw $this->toException($error);
        }

        return $answer;
    }

    /**
     * Sends a command, and does not wait for the answer.
     *
     * @param list<string> $arguments
     */
    public function send(string $command, #[\SensitiveParameter] array $arguments): void
    {
        $this->stream->setKeepsLoopRunning(true);
        $this->connection->writeRequest(new RawCommand($command, $arguments));
    }

    /** @param \Closure(mixed): void $listener receives published messages, and null when the connection closes */
    public function listen(\Closure $listener): void
    {
        $this->listener = $listener;
        $this->stream->setKeepsLoopRunning(false);
        $this->startReading();
    }

    /** Closes the connection, and passes null to the listener. Pending commands fail with $refusal, or else $reason. */
    public function close(string $reason, ?BrokerRefusedException $refusal = null): void
    {
        if ($this->closeReason !== null || !$this->stream->belongsToThisProcess()) {
            return;
        }
        $this->closeReason = $reason;
        $this->stream->loop->cancel($this->watchdog);
        $this->stream->fail($reason);
        while (!$this->waiting->isEmpty()) {
            [$answered] = $this->waiting->dequeue();
            $answered->fail($refusal ?? BrokerUnavailableException::at((string) $this->address, $reason));
        }
        if ($this->listener !== null) {
            $listener = $this->listener;
            $this->listener = null;
            $listener(null);
        }
    }

    private function startReading(): void
    {
        if (!$this->isReading) {
            $this->isReading = true;
            $weak = \WeakReference::create($this);
            EventLoop::queue(static fn() => $weak->get()?->read());
        }
    }

    private function read(): void
    {
        try {
            while ($this->listener !== null || !$this->waiting->isEmpty()) {
                $answer = $this->connection->read();
                $this->hasAnswered = true;
                if ($this->waiting->isEmpty() || \is_array($answer) && ($answer[0] ?? null) === 'message') {
                    if ($this->listener !== null) {
                        ($this->listener)($answer);
                    }

                    continue;
                }
                [$answered] = $this->waiting->dequeue();
                if ($this->waiting->isEmpty() && $this->closeReason === null) {
                    EventLoop::cancel($this->watchdog);
                    $this->stream->setKeepsLoopRunning(false);
                }
                $answered->complete($answer);
            }
        } catch (\RuntimeException) {
            $this->close($this->stream->failure());
        } catch (\Throwable) {
            $this->stream->eof()
                ? $this->closeAtEof()
                : $this->close('its answer does not follow the Redis protocol' . $this->tlsAdvice());
        } finally {
            $this->isReading = false;
        }
    }

    private function closeAtEof(): void
    {
        $reason = $this->stream->failure();
        if (ClientTls::isCertificateAlert($reason)) {
            $advice = 'set TlsOptions::$certificate, or --tls-cert, to a certificate that the server accepts';
            $this->close($reason, BrokerRefusedException::at((string) $this->address, $reason, $advice));
        } else {
            $this->close($reason . ($this->hasAnswered ? '' : ' before its first answer' . $this->tlsAdvice()));
        }
    }

    private function tlsAdvice(): string
    {
        return $this->address->tls ? '' : '; if the server accepts only TLS, use an address that begins with rediss://';
    }

    private function checkForTimeout(): void
    {
        if (!$this->stream->belongsToThisProcess()) {
            EventLoop::disable($this->watchdog);
        } elseif (
            !$this->waiting->isEmpty()
            && $this->waiting->bottom()[1] < Clock::now()
            && $this->stream->isSilentSince(Clock::now() - $this->timeout)
        ) {
            $this->close("no answer within {$this->timeout} seconds; is it overloaded, suspended or cut off?");
        }
    }

    private function permissionAdvice(string $error): string
    {
        $isCommand = preg_match("/permissions to run the '([^']+)' command/", $error, $command) === 1;
        $missing = match (true) {
            $isCommand && str_starts_with($command[1], 'script|') => '+script|exists +script|load', // both are needed
            $isCommand => "+{$command[1]}",
            str_contains($error, ' key') => '"~spindle:*"',
            str_contains($error, ' channel') => '"&spindle:*"',
            default => '', // when a script lacks a permission, the error of Redis 7.0 does not name the command
        };
        $advice = $missing === ''
            ? 'its ACL LOG names the missing permission'
            : 'run ACL SETUSER ' . ($this->address->user ?? 'default') . " {$missing}";

        return "{$advice}; docs/reference/remote.md lists all commands, keys and channels that the user needs";
    }

    private function toException(EngineError $error): \RuntimeException
    {
        $message = $error->getMessage();
        $refusal = match (true) {
            $error->kind === 'NOAUTH'
                => ["it requires a password, and its address has none ({$message})", self::PASSWORD_ADVICE],
            $error->kind === 'WRONGPASS'
                || str_contains($message, 'invalid password')
                || str_contains($message, 'AUTH <password>')
                => ["it does not accept the user or the password ({$message})", self::PASSWORD_ADVICE],
            $error->kind === 'NOPERM'
                || str_contains($message, 'The user executing the script ')
                || str_contains($message, 'ACL failure in script') => [$message, $this->permissionAdvice($message)],
            default => null,
        };

        return match (true) {
            $refusal !== null => BrokerRefusedException::at((string) $this->address, $refusal[0], $refusal[1], $error),
            $error->isTemporary()
                => BrokerUnavailableException::at((string) $this->address, $error->explanation(), $error),
            default => $error,
        };
    }
}
