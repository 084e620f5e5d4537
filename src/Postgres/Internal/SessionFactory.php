<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\Internal\Cancellable;
use Amp\Internal\FutureIterator;
use Amp\Internal\FutureIteratorQueue;
use Amp\Internal\FutureState;
use Amp\Internal\WrappedCancellation;
use Amp\TimeoutCancellation;
use Amp\TimeoutException;
use Revolt\EventLoop\FiberLocal;
use Revolt\EventLoop\Internal\DriverSuspension;
use Revolt\EventLoop\Internal\StreamReadableCallback;
use Revolt\EventLoop\Internal\StreamWritableCallback;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\CurrentFunction;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\Timeout;
use Spindle\Internal\Backoff;
use Spindle\Internal\CallStack;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Clock;
use Spindle\Internal\FreeMemory;
use Spindle\Internal\GarbageCycles;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Network\ClientStream;
use Spindle\Internal\OutputBuffers;
use Spindle\Internal\Preload;
use Spindle\Postgres\CheckViolationException;
use Spindle\Postgres\CommitUnknownException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\DeadlockException;
use Spindle\Postgres\ExclusionViolationException;
use Spindle\Postgres\ForeignKeyViolationException;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\ConnectionAttempts;
use Spindle\Postgres\Internal\Connect\Connector;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Connect\Handover;
use Spindle\Postgres\Internal\Connect\HostSearch;
use Spindle\Postgres\Internal\Connect\OpenedConnection;
use Spindle\Postgres\Internal\Connect\SessionSetup;
use Spindle\Postgres\Internal\Connect\Tls;
use Spindle\Postgres\Internal\Pool\KnownStatement;
use Spindle\Postgres\Internal\Pool\TransientFailures;
use Spindle\Postgres\Internal\Pool\WaitingFiber;
use Spindle\Postgres\Internal\Protocol\BusyTime;
use Spindle\Postgres\Internal\Protocol\CopyRunner;
use Spindle\Postgres\Internal\Protocol\EncodedRows;
use Spindle\Postgres\Internal\Protocol\Exchange;
use Spindle\Postgres\Internal\Protocol\FrontendMessages;
use Spindle\Postgres\Internal\Protocol\Pipeline;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Internal\Protocol\Portal;
use Spindle\Postgres\Internal\Protocol\PreparedStatement;
use Spindle\Postgres\Internal\Protocol\PreparedStatements;
use Spindle\Postgres\Internal\Protocol\SchemaChanges;
use Spindle\Postgres\Internal\Types\QuotedValues;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\NotificationsDropped;
use Spindle\Postgres\NotNullViolationException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Range;
use Spindle\Postgres\Result;
use Spindle\Postgres\ResultTooLargeException;
use Spindle\Postgres\SerializationFailureException;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\TlsMode;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\TransactionAbortedException;
use Spindle\Postgres\UniqueViolationException;

/** Opens sessions. Sessions of the same server share the types that were loaded from that server. */
final class SessionFactory
{
    /** Classes for failures and first statements. PHP could not load them while no file descriptor is free. */
    private const PRELOADED = [
        AttemptFailedException::class,
        Condition::class,
        ConnectionAttempts::class,
        ConnectionClosedException::class,
        ConnectionFailedException::class,
        ConnectionLostException::class,
        CompositeCancellation::class,
        DeferredCancellation::class,
        DeferredFuture::class,
        DriverSuspension::class,
        StreamReadableCallback::class,
        StreamWritableCallback::class,
        Endpoint::class,
        GarbageCycles::class,
        ErrorPlace::class,
        EncodedRows::class,
        Exchange::class,
        Backoff::class,
        CallerTrace::class,
        CallStack::class,
        Cancellable::class,
        CancellationLimit::class,
        CancelledException::class,
        Clock::class,
        CannotWaitException::class,
        FiberLocal::class,
        Future::class,
        FiberQueue::class,
        FreeMemory::class,
        FutureIterator::class,
        FutureIteratorQueue::class,
        FutureState::class,
        HostSearch::class,
        FrontendMessages::class,
        Channels::class,
        Listening::class,
        ListeningGroup::class,
        NotificationReader::class,
        NotificationsDropped::class,
        SharedListening::class,
        ConnectionSession::class,
        PendingCommit::class,
        PoolTimeoutException::class,
        ProtocolException::class,
        QueryException::class,
        QuotedValues::class,
        ServerError::class,
        SessionChanges::class,
        Timeout::class,
        TimeoutCancellation::class,
        TimeoutException::class,
        Tls::class,
        TransactionRun::class,
        TransientFailures::class,
        WaitingFiber::class,
        WrappedCancellation::class,
        TlsMode::class,
        CheckViolationException::class,
        CommitUnknownException::class,
        DeadlockException::class,
        ExclusionViolationException::class,
        ForeignKeyViolationException::class,
        InvalidParameterException::class,
        NotNullViolationException::class,
        QueryCancelledException::class,
        ResultTooLargeException::class,
        SerializationFailureException::class,
        Transaction::class,
        TransactionAbortedException::class,
        UniqueViolationException::class,
        KnownStatement::class,
        CopyRunner::class,
        CurrentFunction::class,
        Portal::class,
        BusyTime::class,
        MultipleStatementsException::class,
        OutputBuffers::class,
        Files::class,
        PreparedStatement::class,
        Result::class,
        Columns::class,
        Range::class,
        PooledConnection::class,
        SessionLease::class,
        RowObjects::class,
        CopyRows::class,
        TransactionEndDetector::class,
        ...ClientStream::PRELOADED,
        ...Types::PRELOADED,
    ];

    private readonly Types $types;

    private readonly bool $mustWrite;

    private readonly Connector $connector;

    private readonly SchemaChanges $schemaChanges;

    private int $openedCount = 0;

    public function __construct(public readonly PostgresOptions $options)
    {
        Preload::load(...self::PRELOADED);
        $this->mustWrite = \in_array(
            $options->targetSessionAttrs,
            [TargetSessionAttrs::ReadWrite, TargetSessionAttrs::Primary],
            true,
        );
        $this->types = new Types($options->json);
        $this->connector = new Connector($options);
        $this->schemaChanges = new SchemaChanges();
    }

    public function open(?Cancellation $cancellation): PipelinedSession
    {
        $options = $this->options;
        $startedAt = hrtime(true);
        $opened = $this->connector->connect($cancellation);
        $roundTrip = $opened->roundTrip ?? hrtime(true) - $startedAt;
        $setup = (new SessionSetup(
            $options,
            TargetSessionAttrs::Any,
            $opened->parameters,
            $opened->pid,
            hasRefusedCheck: $opened->serverStartTime === null,
        ))->statements;
        $log = new StatementLog($options->logger, ++$this->openedCount, $opened->pid);
        $verb = $opened->roundTrip === null ? 'Connected' : 'Reusing the connection';
        $log->log("{$verb} to {$opened->endpoint}" . ($opened->tls ? ' with TLS' : ''));
        $pipeline = $this->pipeline($opened, $roundTrip, $setup, $log);

        return new PipelinedSession(
            $pipeline,
            new PreparedStatements(
                $options->statementCache ?? ($opened->isPooled ? 0 : PreparedStatements::MAX_STATEMENTS),
            ),
            $this->types->forServer($opened->serverStartTime),
            $opened->pid,
            new SessionChanges($setup),
            $log,
            $this->schemaChanges,
        );
    }

    /** @param list<string> $setup statements that set up the session */
    private function pipeline(OpenedConnection $opened, int $roundTrip, array $setup, StatementLog $log): Pipeline
    {
        $options = $this->options;
        $connector = $this->connector;
        $pipeline = new Pipeline(
            $opened->stream,
            $opened->tls,
            static function (bool &$mayArrive) use ($connector, $opened, $log): void {
                $log->log('Sending a cancel request');
                $connector->cancel($opened, mayArrive: $mayArrive);
            },
            $options->readTimeout,
            new SizeLimits($options->maxRowBytes),
            $roundTrip,
            $opened->persistent === null ? null : new Handover($opened->persistent, $opened, $setup),
        );
        $conformingStrings = $opened->parameters['standard_conforming_strings'] ?? 'on';
        $pipeline->conversation->mustWrite = $this->mustWrite;
        $pipeline->conversation->escapesWithBackslash = $conformingStrings === 'off';
        $pipeline->receiveBytes($opened->leftover, hrtime(true));
        $pipeline->onClose(
            static fn(?\Throwable $reason)
                => $log->log($reason === null ? 'The connection is closed' : $reason->getMessage()),
        );

        return $pipeline;
    }
}
