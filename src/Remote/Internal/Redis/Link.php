<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Amp\CancelledException;
use Amp\Socket\ClientTlsContext;
use Amp\Socket\ConnectContext;
use Amp\Socket\ConnectException;
use Amp\Socket\DnsSocketConnector;
use Amp\Socket\ResourceSocket;
use Amp\Socket\Socket;
use Amp\Socket\TlsException;
use Amp\TimeoutCancellation;
use Predis\Command\RawCommand;
use Predis\Connection\Parameters;
use Predis\Connection\StreamConnection;
use Predis\Response\ErrorInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;

/**
 * One connection to the engine. Many fibers may ask at once: their commands are sent one after the other without waiting,
 * and answered in the same order.
 */
final class Link
{
    /** Seconds between two looks at whether an answer is late. */
    private const LOOK = 0.5;

    /** ECONNREFUSED. */
    private const REFUSED = 111;

    /** @var array<int, self> those of which an answer is awaited: who waits may be in a fiber to which nothing else leads */
    private static array $busy = [];

    /** @var \SplQueue<array{Suspension<mixed>|null, float}> who waits for an answer, null where nobody can, and until when */
    private \SplQueue $waiting;

    private bool $reading = false;
    private bool $hasSpoken = false;
    private ?string $broken = null;

    private readonly string $watchdog;

    /** @var (\Closure(mixed): void)|null gets what the engine says without being asked */
    private ?\Closure $listener = null;

    /** @param Socket $socket held so that it is not closed */
    private function __construct(
        private readonly Address $address,
        private readonly Socket $socket,
        private readonly EngineStream $stream,
        private readonly StreamConnection $connection,
        private readonly float $timeout,
    ) {
        $this->waiting = new \SplQueue();
        $weak = \WeakReference::create($this);
        $this->watchdog = EventLoop::disable(EventLoop::unreference(EventLoop::repeat(self::LOOK, static fn() => $weak->get()?->look())));
    }

    public function __destruct()
    {
        $this->waiting = new \SplQueue(); // who waits holds this, but when the process ends: then nobody does
        $this->close('the connection was let go');
    }

    /**
     * Connects and says who asks.
     *
     * @param float $timeout seconds for this, and for each answer later, unless the engine sends or takes bytes meanwhile
     *
     * @throws BrokerException
     */
    public static function open(Address $address, ?ClientTlsContext $tls, float $timeout): self
    {
        $deadline = new TimeoutCancellation($timeout);
        $late = 'no connection';
        try {
            $context = (new ConnectContext())->withTcpNoDelay();
            if ($address->tls) {
                $context = $context->withTlsContext($tls ?? new ClientTlsContext($address->host));
            }
            $socket = (new DnsSocketConnector())->connect($address->uri, $context, $deadline); // once: the callers of this try again
            if (!$socket instanceof ResourceSocket) {
                throw new \LogicException('A socket of the system is a resource');
            }
            if ($address->tls) {
                $late = 'no answer to TLS, for which there is a port of its own,';
                $socket->setupTls($deadline);
            }
        } catch (TlsException $failure) {
            throw BrokerRefusedException::at((string) $address, 'TLS fails: ' . preg_replace('/\s+/', ' ', $failure->getMessage()), 'check that the engine listens with TLS there, and that its certificate is one that is trusted', $failure);
        } catch (ConnectException $failure) {
            $why = match (true) {
                $failure->getCode() === self::REFUSED => 'connection refused; is Redis or Valkey running there?',
                // PHP does not tell why it can't make a socket.
                str_contains($failure->getMessage(), 'Unknown error') => 'no socket can be made; does this process have as many files open as it may (ulimit -n)?',
                default => $failure->getMessage(),
            };

            throw BrokerUnavailableException::at((string) $address, $why, $failure);
        } catch (CancelledException $failure) {
            throw BrokerUnavailableException::at((string) $address, "{$late} within {$timeout} seconds", $failure);
        }
        $resource = $socket->getResource();
        if (!\is_resource($resource)) {
            throw BrokerUnavailableException::at((string) $address, 'the connection was closed');
        }
        $stream = new EngineStream($resource);
        $connection = new StreamConnection(new Parameters(['scheme' => 'tcp', 'host' => $address->host]), $stream);
        $link = new self($address, $socket, $stream, $connection, $timeout);
        $link->introduce();

        return $link;
    }

    /** @throws BrokerException also when the engine answers with an error that has to do with the connection */
    public function introduce(): void
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
            $isOurs = preg_match('/DB index|SELECT is not allowed/', $error->getMessage()) === 1;

            throw $isOurs
                ? BrokerRefusedException::at((string) $this->address, $error->getMessage(), 'correct the number of the database in its address', $error)
                : BrokerUnavailableException::at((string) $this->address, $error->getMessage(), $error);
        }
    }

    public function isBroken(): bool
    {
        return $this->broken !== null;
    }

    /** Whether this is not a fork of the process that has connected. */
    public function isOfThisProcess(): bool
    {
        return $this->stream->isOfThisProcess();
    }

    /** Holds it until the process ends. */
    public function keep(): void
    {
        self::$busy[spl_object_id($this)] = $this;
    }

    /** Whether the engine has sent or taken nothing since that time, in seconds of {@see Clock::now()}. */
    public function isSilentSince(float $time): bool
    {
        return $this->stream->isSilentSince($time);
    }

    /**
     * Asks the engine and waits for its answer.
     *
     * @param list<string> $arguments
     *
     * @throws EngineError                what the engine answers
     * @throws BrokerRefusedException     when it does not let this user
     * @throws BrokerUnavailableException when there is no answer, or it is that there is none now; what was asked may have been done
     */
    public function call(string $command, #[\SensitiveParameter] array $arguments): mixed
    {
        if ($this->broken !== null) {
            throw BrokerUnavailableException::at((string) $this->address, $this->broken);
        }
        $suspension = EventLoop::getSuspension();
        if ($this->waiting->isEmpty()) {
            EventLoop::enable($this->watchdog);
            self::$busy[spl_object_id($this)] = $this;
        }
        $this->waiting->enqueue([$suspension, Clock::now() + $this->timeout]);
        $this->stream->keepLoop(true);
        $this->connection->writeRequest(new RawCommand($command, $arguments));
        $this->readOn();
        try {
            $answer = $suspension->suspend();
        } catch (\FiberError $blocked) {
            $this->waiting->push([null, $this->waiting->pop()[1]]); // the loop has not turned since; the answer is dropped

            throw CannotWaitException::because($blocked);
        }
        if ($answer instanceof ErrorInterface) {
            $error = new EngineError($answer->getMessage());
            if ($error->kind === 'READONLY') {
                $this->close($error->explanation()); // its name may lead to another one by now
            }

            throw $this->explain($error);
        }

        return $answer;
    }

    /**
     * From now on it is for what the engine says of itself, after SUBSCRIBE.
     *
     * @param \Closure(mixed): void $listener
     */
    public function listen(\Closure $listener): void
    {
        $this->listener = $listener;
        $this->stream->keepLoop(false);
        $this->readOn();
    }

    public function close(string $reason): void
    {
        if ($this->broken !== null || !$this->isOfThisProcess()) {
            return;
        }
        $this->broken = $reason;
        unset(self::$busy[spl_object_id($this)]);
        EventLoop::cancel($this->watchdog);
        $this->stream->fail($reason);
        $this->socket->close();
        while (!$this->waiting->isEmpty()) {
            [$suspension] = $this->waiting->dequeue();
            $suspension?->throw(BrokerUnavailableException::at((string) $this->address, $reason));
        }
        if ($this->listener !== null) {
            $listener = $this->listener;
            $this->listener = null;
            $listener(null);
        }
    }

    private function readOn(): void
    {
        if (!$this->reading) {
            $this->reading = true;
            $weak = \WeakReference::create($this);
            EventLoop::queue(static fn() => $weak->get()?->read());
        }
    }

    private function read(): void
    {
        try {
            while ($this->listener !== null || !$this->waiting->isEmpty()) {
                $answer = $this->connection->read();
                $this->hasSpoken = true;
                if ($this->waiting->isEmpty() || \is_array($answer) && ($answer[0] ?? null) === 'message') {
                    if ($this->listener !== null) {
                        ($this->listener)($answer);
                    }

                    continue;
                }
                [$suspension] = $this->waiting->dequeue();
                if ($this->waiting->isEmpty() && $this->broken === null) {
                    EventLoop::disable($this->watchdog);
                    $this->stream->keepLoop(false);
                    unset(self::$busy[spl_object_id($this)]);
                }
                $suspension?->resume($answer);
            }
            $this->reading = false;
        } catch (\RuntimeException) {
            $this->reading = false;
            $this->close($this->stream->failure());
        } catch (\Throwable) {
            $this->reading = false;
            $isCut = $this->stream->eof();
            $this->close($isCut ? $this->stream->failure() . ($this->hasSpoken ? '' : ' before its first answer: if it speaks only TLS, the address begins with rediss://') : 'it does not speak the protocol of Redis, or only over TLS, for which an address begins with rediss://');
        }
    }

    private function look(): void
    {
        if (!$this->isOfThisProcess()) {
            EventLoop::disable($this->watchdog);
        } elseif (!$this->waiting->isEmpty() && $this->waiting->bottom()[1] < Clock::now() && $this->isSilentSince(Clock::now() - $this->timeout)) {
            $this->close("no answer within {$this->timeout} seconds");
        }
    }

    private function explain(EngineError $error): \RuntimeException
    {
        $where = (string) $this->address;

        return match (true) {
            \in_array($error->kind, ['NOAUTH', 'WRONGPASS'], true) || str_contains($error->getMessage(), 'invalid password') || str_contains($error->getMessage(), 'AUTH <password>')
                => BrokerRefusedException::at($where, "it does not accept who asks ({$error->getMessage()})", 'put the user and the password into SPINDLE_BROKER, as redis://user:password@host', $error),
            $error->kind === 'NOPERM' || str_contains($error->getMessage(), 'The user executing the script ') || str_contains($error->getMessage(), 'ACL failure in script')
                => BrokerRefusedException::at($where, $error->getMessage(), 'give the user the commands and keys that docs/reference/remote.md lists', $error),
            $error->passes() => BrokerUnavailableException::at($where, $error->explanation(), $error),
            default => $error,
        };
    }
}
