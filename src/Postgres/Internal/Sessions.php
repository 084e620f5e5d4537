<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\Internal\Cancellable;
use Amp\Internal\FutureIterator;
use Amp\Internal\FutureIteratorQueue;
use Amp\Internal\FutureState;
use Amp\TimeoutCancellation;
use Amp\TimeoutException;
use Revolt\EventLoop\FiberLocal;
use Revolt\EventLoop\Internal\DriverSuspension;
use Revolt\EventLoop\Internal\StreamReadableCallback;
use Revolt\EventLoop\Internal\StreamWritableCallback;
use Spindle\Internal\Backoff;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\Preload;
use Spindle\Internal\Warnings;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\ConnectionAttempts;
use Spindle\Postgres\Internal\Connect\Connector;
use Spindle\Postgres\Internal\Connect\Deadline;
use Spindle\Postgres\Internal\Connect\DnsLookup;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Connect\HostSearch;
use Spindle\Postgres\Internal\Connect\SessionSetup;
use Spindle\Postgres\Internal\Connect\Socket;
use Spindle\Postgres\Internal\Connect\Tls;
use Spindle\Postgres\Internal\Native\Exchange;
use Spindle\Postgres\Internal\Native\NativeSession;
use Spindle\Postgres\Internal\Native\Pipeline;
use Spindle\Postgres\Internal\Native\PreparedStatements;
use Spindle\Postgres\Internal\Pgsql\PgsqlConnector;
use Spindle\Postgres\Internal\Pool\TransientFailures;
use Spindle\Postgres\Internal\Pool\WaitingFiber;
use Spindle\Postgres\Internal\Types\QuotedValues;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresDriver;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\TargetSession;
use Spindle\Postgres\TlsMode;

/** Opens sessions by the configured driver. Sessions of one server share its known types. */
final class Sessions
{
    private readonly Types $types;

    private readonly bool $areToWrite;

    private readonly Connector $connector;

    private int $opened = 0;

    public function __construct(private readonly PostgresOptions $options)
    {
        Preload::classes(
            AttemptFailedException::class,
            ConnectionAttempts::class,
            ConnectionClosedException::class,
            ConnectionFailedException::class,
            ConnectionLostException::class,
            CompositeCancellation::class,
            Deadline::class,
            DeferredFuture::class,
            DriverSuspension::class,
            StreamReadableCallback::class,
            StreamWritableCallback::class,
            Endpoint::class,
            Exchange::class,
            Backoff::class,
            Cancellable::class,
            CancelledException::class,
            FiberLocal::class,
            Future::class,
            FutureIterator::class,
            FutureIteratorQueue::class,
            FutureState::class,
            HostSearch::class,
            Listening::class,
            DnsLookup::class,
            LoopLimit::class,
            ConnectionSession::class,
            PendingCommit::class,
            PgsqlConnector::class,
            Pgsql\Conninfo::class,
            Pgsql\PgsqlErrors::class,
            Pgsql\Libpq::class,
            PoolTimeoutException::class,
            ProtocolException::class,
            QueryException::class,
            QuotedValues::class,
            ServerError::class,
            Socket::class,
            TimeoutCancellation::class,
            TimeoutException::class,
            Tls::class,
            TransactionRun::class,
            TransientFailures::class,
            WaitingFiber::class,
            Warnings::class,
            WeakTimer::class,
            TlsMode::class,
        );
        $this->areToWrite = \in_array(
            $options->targetSession,
            [TargetSession::ReadWrite, TargetSession::Primary],
            true,
        );
        $this->types = new Types($options->json);
        $this->connector = new Connector($options);
    }

    /** Whether a session accepts queries while others are in flight. */
    public function pipeline(): bool
    {
        return $this->options->driver === PostgresDriver::Native;
    }

    public function open(?Cancellation $cancellation): Session
    {
        return $this->options->driver === PostgresDriver::Native
            ? $this->openNative($cancellation)
            : (new PgsqlConnector($this->options, $this->types))->connect($cancellation);
    }

    public function readTimeout(): ?float
    {
        return $this->options->readTimeout;
    }

    /** Whether a session is still of the requested kind, as far as that is known. */
    public function suits(Session $session): bool
    {
        return !$this->areToWrite || !$session->isReadOnly();
    }

    private function openNative(?Cancellation $cancellation): NativeSession
    {
        $options = $this->options;
        $connector = $this->connector;
        $begun = hrtime(true);
        $established = $connector->connect($cancellation);
        $roundTrip = hrtime(true) - $begun;
        $steps = new StatementLog($options->logger, ++$this->opened, $established->pid);
        $steps->log("Connected to {$established->endpoint}" . ($established->tls ? ' with TLS' : ''));
        $pipeline = new Pipeline(
            $established->stream,
            $established->tls,
            static function () use ($connector, $established, $steps): void {
                $steps->log('Asking the server to cancel what it works at');
                $connector->cancel($established);
            },
            $options->readTimeout,
            new SizeLimits($options->maxValueBytes),
            $roundTrip,
        );
        $pipeline->take($established->leftover);
        $pipeline->onClose(
            static fn(?\Throwable $reason)
                => $steps->log($reason === null ? 'The connection is closed' : $reason->getMessage()),
        );
        $setup = new SessionSetup($options, TargetSession::Any, $established->parameters, $established->pid);

        return new NativeSession(
            $pipeline,
            new PreparedStatements($options->statementCache ?? ($established->isPooled ? 0 : PreparedStatements::MOST)),
            $this->types->of($established->started),
            $established->pid,
            new SessionChanges($setup->statements()),
            $steps,
        );
    }
}
