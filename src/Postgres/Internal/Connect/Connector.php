<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Network\ClientStream;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\ForkedSockets;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Protocol\FrontendMessages;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\TlsMode;

/** Opens connections to the first server whose session matches `PostgresOptions::$targetSessionAttrs`. */
final class Connector
{
    /** Maximum seconds of a cancel request, from opening its connection until the server closes that connection. */
    private const CANCEL_TIMEOUT = 5.0;

    /** Maximum seconds to check that an earlier HTTP request's session was reset and matches `targetSessionAttrs`. */
    private const RESET_TIMEOUT = 1.0;

    private readonly SaltedPasswords $salted;

    private readonly int $ownerPid;

    public function __construct(private readonly PostgresOptions $options)
    {
        $this->salted = new SaltedPasswords();
        $this->ownerPid = (int) getmypid();
    }

    /**
     * Suspends until a session is ready. Closes all sockets when connecting fails or is cancelled.
     *
     * @throws ConnectionFailedException|AuthenticationException|CancelledException see {@see HostSearch::find()}
     * @throws \LogicException in a fork of the process that created this object
     */
    public function connect(?Cancellation $cancellation = null): OpenedConnection
    {
        $opened = (new HostSearch($this->options, $this->attempt(...)))->find($cancellation);
        if ($this->ownerPid !== getmypid()) {
            ForkedSockets::detach([$opened->stream]);
        }
        $this->ensureSameProcess();

        return $opened;
    }

    /**
     * Sends a cancel request for the current statement of a session, over a separate connection to the same address.
     * When this method returns, the server has sent the stop signal to the session's process. So the request can't stop
     * a statement that is sent afterwards.
     *
     * @param bool $mayArrive set to true before the request is sent
     *
     * @throws ConnectionFailedException when the request was not sent, or not confirmed before the timeout
     * @throws CancelledException when `$cancellation` is requested; the server may have got the request
     */
    public function cancel(
        OpenedConnection $session,
        ?Cancellation $cancellation = null,
        bool &$mayArrive = false,
    ): void {
        $deadline = Deadline::in(min(self::CANCEL_TIMEOUT, $this->options->connectTimeout), $cancellation);
        $endpoint = $session->endpoint;
        try {
            $socket = $this->open(
                $endpoint,
                $session->tls ? $this->options->tlsFor($endpoint->host) : TlsMode::Disable,
                $deadline,
            );
            if ($session->tls && !$socket->isEncrypted) {
                throw NetworkException::because(
                    'the connection is encrypted, but the server does not offer TLS for the cancel request',
                );
            }
            $for = 'the cancel request';
            $mayArrive = true;
            if (!$socket->write(FrontendMessages::cancel($session->pid, $session->secretKey()), $deadline, $for)) {
                throw NetworkException::because('the server closed the connection');
            }
            // The server sends no answer. It closes the connection after it has signalled the session's process.
            $socket->awaitEnd($deadline, $for);
        } catch (NetworkException|ProtocolException $failure) {
            throw ConnectionFailedException::cancelNotSent("{$endpoint}: {$failure->getMessage()}", $failure);
        }
    }

    private function attempt(Endpoint $endpoint, TargetSessionAttrs $target, Deadline $deadline): OpenedConnection
    {
        $mode = $this->options->tlsFor($endpoint->host);
        $persistent = $this->options->persistent ? PersistentStream::reserve($this->options, $endpoint) : null;
        try {
            $socket = $this->open($endpoint, $mode, $deadline, $persistent);
            if ($persistent !== null && $socket->isReused) {
                $opened = $this->reuseSession($socket, $persistent, $endpoint, $target, $deadline);
                if ($opened !== null) {
                    return $opened;
                }
                $socket->close();
                $socket = $this->open($endpoint, $mode, $deadline, $persistent);
            }

            return $opened = $this->openSession($socket, $persistent, $endpoint, $target, $deadline);
        } finally {
            if (!isset($opened)) {
                $persistent?->release();
            }
        }
    }

    private function openSession(
        ClientStream $socket,
        ?PersistentStream $persistent,
        Endpoint $endpoint,
        TargetSessionAttrs $target,
        Deadline $deadline,
    ): OpenedConnection {
        try {
            $startup = $this->login($socket, $endpoint->host, $deadline);
            $setup = new SessionSetup($this->options, $target, $startup->parameters, $startup->pid);
            $answers = $this->query($socket, $setup->statements, $startup->buffer->rest, $deadline);
            $setup->check($answers);
            $deadline->throwIfCancelled();

            return new OpenedConnection(
                $socket->release(),
                $startup->pid,
                $startup->secretKey,
                [...$startup->parameters, ...$answers->parameters],
                $endpoint,
                $socket->isEncrypted,
                $answers->buffer->rest,
                $setup->isPooled($answers),
                $setup->serverStartTime($answers),
                $persistent,
            );
        } finally {
            $socket->close(isset($setup) ? FrontendMessages::TERMINATE : '');
        }
    }

    /**
     * Returns the session that an earlier HTTP request left on the stream. This method sends nothing before the answer
     * to the queries of {@see Handover::send()} proves that the session was reset.
     *
     * @return OpenedConnection|null null when the session can't be used; the caller must close the stream
     *
     * @throws AttemptFailedException when the server does not match `$target` any more
     */
    private function reuseSession(
        ClientStream $socket,
        PersistentStream $persistent,
        Endpoint $endpoint,
        TargetSessionAttrs $target,
        Deadline $deadline,
    ): ?OpenedConnection {
        $answers = Handover::answers();
        $limit = $deadline->within(self::RESET_TIMEOUT);
        try {
            while (!$answers->isDone()) {
                $answers->receive($socket->read($limit, 'the reset of the session'));
            }
            $facts = Handover::facts($answers, $persistent);
            if ($facts === null || !$socket->hasNothingToRead()) {
                return null;
            }
            $leftover = $target === TargetSessionAttrs::Any ? '' : $this->checkRole($socket, $target, $facts, $limit);
        } catch (NetworkException|ProtocolException $failure) {
            return $failure instanceof AttemptFailedException && $failure->isUnsuitable ? throw $failure : null;
        }
        $deadline->throwIfCancelled();

        return new OpenedConnection(
            $socket->release(),
            $facts['pid'],
            $facts['key'],
            $facts['parameters'],
            $endpoint,
            $socket->isEncrypted,
            $leftover,
            serverStartTime: $facts['serverStartTime'],
            persistent: $persistent,
            roundTrip: $facts['roundTrip'],
        );
    }

    /**
     * Checks again that the server matches `$target`. For example, a standby may have become a primary since the login.
     *
     * @param array{pid: int, parameters: array<string, string>, ...} $facts result of {@see Handover::facts()}
     *
     * @return string bytes received after the answer
     *
     * @throws AttemptFailedException when the server does not match `$target` any more
     * @throws NetworkException when the server does not answer
     */
    private function checkRole(
        ClientStream $socket,
        TargetSessionAttrs $target,
        array $facts,
        Deadline $deadline,
    ): string {
        $parameters = array_diff_key($facts['parameters'], array_flip(SessionSetup::ROLE_PARAMETERS));
        $setup = new SessionSetup($this->options, $target, $parameters, $facts['pid']);
        $answers = $this->query($socket, $setup->statements, '', $deadline);
        $setup->check($answers);

        return $answers->buffer->rest;
    }

    /** Opens a connection, and encrypts it as `$mode` says. Returns a stream of an earlier HTTP request unchanged. */
    private function open(
        Endpoint $endpoint,
        TlsMode $mode,
        Deadline $deadline,
        ?PersistentStream $persistent = null,
    ): ClientStream {
        $this->ensureSameProcess();
        if (!\extension_loaded('openssl') && $mode !== TlsMode::Disable) {
            $mode = $mode === TlsMode::Prefer
                ? TlsMode::Disable
                : throw NetworkException::because(
                    "encryption was requested ('{$mode->value}'), but ext-openssl is missing",
                );
        }
        $socket = ClientStream::open(
            $endpoint->uri(),
            Tls::settings($mode, $endpoint->host, $this->options),
            $deadline,
            $persistent === null ? null : $persistent->open(...),
        );
        if ($socket->isReused || $mode === TlsMode::Disable) {
            return $socket;
        }
        if (Tls::request($socket, $deadline)) {
            $socket->encrypt($deadline);
        } elseif ($mode !== TlsMode::Prefer) {
            throw NetworkException::because("the server does not offer TLS, but '{$mode->value}' was requested");
        }

        return $socket;
    }

    /** Throws in a fork. Call this method after each wait during which no ClientStream is open. */
    private function ensureSameProcess(): void
    {
        // A fork also resumes the fibers of its parent process. If a ClientStream is open during a wait, this method
        // is not needed, because the ClientStream itself throws in a fork.
        if ($this->ownerPid !== getmypid()) {
            throw new \LogicException(
                'A PostgreSQL connection can not be opened in a fork of the process that requested it. '
                    . 'Open another connection in the fork',
            );
        }
    }

    private function login(ClientStream $socket, PostgresHost $host, Deadline $deadline): Startup
    {
        $startup = new Startup($this->credentials($socket, $host), $this->options->applicationName);
        $answer = $startup->begin();
        while (!$startup->isReady) {
            if ($answer !== '') {
                $socket->write($answer, $deadline, 'the login');
            } elseif ($startup->needsCompute) {
                $deadline->awaitTurn('the proof of the password');
            }
            $answer = $startup->needsCompute
                ? $startup->compute()
                : $startup->receive($socket->read($deadline, 'the login'));
        }

        return $startup;
    }

    private function credentials(ClientStream $socket, PostgresHost $host): LoginCredentials
    {
        $file = $this->options->passwordFile;
        $password = $this->options->password()
            ?? ($file === null ? null : PasswordFile::find(
                $file,
                $host,
                $this->options->database,
                $this->options->user,
            ));

        return new LoginCredentials(
            $this->options->user,
            $this->options->database,
            $password === null ? null : new \SensitiveParameterValue($password),
            $file === null || PasswordFile::isPrivate($file)
                ? ''
                : ": the password file {$file} is ignored, because it does not exist or other users have access to it. "
                    . 'It must exist with mode 0600',
            $this->options->authentication,
            $this->options->channelBinding,
            $socket->isEncrypted,
            $socket->isEncrypted ? Tls::channelBindingHash($socket->certificate()) : null,
            $this->salted,
        );
    }

    /**
     * @param list<string> $statements
     * @param string $rest bytes received before the statements were sent
     */
    private function query(ClientStream $socket, array $statements, string $rest, Deadline $deadline): SimpleQueries
    {
        $queries = new SimpleQueries($statements, $rest);
        if ($statements !== []) {
            $socket->write($queries->begin(), $deadline, 'the session to be set up');
            $queries->receive('');
        }
        while (!$queries->isDone()) {
            $queries->receive($socket->read($deadline, 'the session to be set up'));
        }

        return $queries;
    }
}
