<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\Backoff;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Clock;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Network\ClientStream;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Preload;
use Spindle\Internal\Warnings;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Internal\ProcessEnd;
use Spindle\Remote\Internal\ReconnectBackoff;
use Spindle\TlsOptions;

use function Amp\async;
use function Amp\Future\awaitFirst;

/**
 * A client of the engine, which is a Redis or Valkey server. The client runs the scripts in the folder scripts/ over
 * one connection, and opens a new connection when that one is broken.
 */
final class EngineClient
{
    private const SCRIPT_DIRECTORY = __DIR__ . '/scripts';

    /**
     * Scripts that the engine refuses to start while its memory is full. All other scripts run even then, because they
     * free memory or need little of it.
     */
    private const SCRIPTS_NEEDING_MEMORY = ['submit', 'put-items'];
    private const SCRIPT_NAMES = [
        'submit',
        'settle',
        'renew',
        'attach',
        'drop-outcomes',
        'cancel',
        'cancel-and-record',
        'claimed-jobs',
        'release-lease',
        'put-items',
        'take-items',
        'stop-taking-items',
        'report',
        'statistics',
        'list',
        'status',
        'retry-dead-letters',
        'delete',
        'repair',
    ];

    /** @var array<string, array{string, string}> source and SHA-1 hash, by name; empty until they are read */
    private static array $scripts = [];

    private int $ownerPid;
    private OwnLoop $loop;

    private ?RedisConnection $connection = null;

    /** Number of the last opened connection. The engine refuses submissions over older connections (submit.lua). */
    private int $connectionCount = 0;

    private ?EngineSettings $settings = null;

    /** Whether each new connection first loads the scripts. Agents load them; callers that submit a few jobs do not. */
    private bool $loadsScripts = false;

    /** @var Future<RedisConnection>|null the connection that is being opened; null if there is none */
    private ?Future $opening = null;

    /** @var array<int, Mailbox> mailboxes that are being opened for the first time, or were refused; by object id */
    private array $unopenedMailboxes = [];

    /** @param float $timeout seconds to connect, and seconds that the engine may be silent while an answer is due */
    public function __construct(
        public readonly Address $address,
        private readonly ?TlsOptions $tls,
        private readonly float $timeout,
    ) {
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
        Preload::load( // loading a class needs a file descriptor, and perhaps none is free later
            Backoff::class,
            BrokerRefusedException::class,
            BrokerUnavailableException::class,
            CancelledException::class,
            Codec::class,
            EngineSettings::class,
            Files::class,
            LauncherProtocol::class,
            ReconnectBackoff::class,
            TimeoutCancellation::class,
            ...ClientStream::PRELOADED,
        );
    }

    /**
     * Loads the scripts that the engine does not know. Each later connection also loads the scripts.
     *
     * @throws BrokerException
     */
    public function loadScripts(): void
    {
        $connection = $this->connection();
        if (!$this->loadsScripts) {
            $this->loadsScripts = true;
            $this->load($connection);
        }
    }

    /** @throws BrokerException */
    public function settings(): EngineSettings
    {
        $this->connection();

        return $this->settings ?? throw new \LogicException('An open connection has no known settings');
    }

    /** Returns the maximum bytes of an argument of a script; PHP_INT_MAX if unknown, as before the first connection. */
    public function maxKnownRequestBytes(): int
    {
        return $this->settings->maxRequestBytes ?? \PHP_INT_MAX;
    }

    /** Makes {@see run()} wait while the mailbox is being opened, and throw if the engine refuses the mailbox. */
    public function addUnopenedMailbox(Mailbox $mailbox): void
    {
        $this->unopenedMailboxes[spl_object_id($mailbox)] = $mailbox;
    }

    public function removeUnopenedMailbox(Mailbox $mailbox): void
    {
        unset($this->unopenedMailboxes[spl_object_id($mailbox)]);
    }

    /**
     * Opens a separate connection, for example for a mailbox.
     *
     * @throws BrokerException
     */
    public function open(): RedisConnection
    {
        return RedisConnection::open($this->address, $this->tls, $this->timeout);
    }

    /**
     * Runs a script, and returns its answer. If the process is ending, only sends the request over an open connection,
     * and returns null.
     *
     * @throws BrokerException
     */
    public function runOrSend(string $script, string $queue, string ...$arguments): ?string
    {
        if (!ProcessEnd::isSending() || $this->connection?->stream->belongsToThisProcess() !== true) {
            return $this->run($script, $queue, ...$arguments);
        }
        $source = $this->scripts()[$script][0];
        $this->connection->send('EVAL', [$source, '1', self::keyPrefix($queue), ...array_values($arguments)]);

        return null;
    }

    /** @throws BrokerException */
    public function run(string $script, string $queue, #[\SensitiveParameter] string ...$arguments): string
    {
        [$source, $hash] = $this->scripts()[$script];
        $connection = $this->connection();
        $rest = ['1', self::keyPrefix($queue), ...array_values($arguments)];
        if ($script === 'submit') {
            $rest[] = (string) $this->connectionCount;
        }
        foreach ($this->unopenedMailboxes as $mailbox) {
            $mailbox->ensureNotRefused();
        }
        try {
            try {
                $answer = $connection->call('EVALSHA', [$hash, ...$rest]);
            } catch (EngineError $error) {
                if ($error->kind !== 'NOSCRIPT') {
                    throw $error;
                }
                $answer = $connection->call('EVAL', [$source, ...$rest]);
            }
        } catch (EngineError $error) {
            throw BrokerUnavailableException::at((string) $this->address, $error->getMessage(), $error);
        }

        return \is_scalar($answer)
            ? (string) $answer
            : throw BrokerUnavailableException::at(
                (string) $this->address,
                "it answered {$script} with " . get_debug_type($answer),
            );
    }

    /**
     * Runs a script as {@see run()} does. If no answer arrives within $hedgeDelay seconds, runs the script a second
     * time over a new connection, because the network may have dropped the old connection silently. So it must be safe
     * to run the script twice. Returns the first answer, or throws the first failure. Closes the old connection if it
     * has been silent since the first request.
     *
     * @throws BrokerException
     */
    public function runHedged(float $hedgeDelay, string $script, string $queue, string ...$arguments): string
    {
        $connection = $this->connection();
        $sentAt = Clock::now();
        $run = fn(): string => $this->run($script, $queue, ...$arguments);
        /** @var Future<string> $first */
        $first = async($run);
        $first->ignore();
        try {
            return $first->await(new TimeoutCancellation($hedgeDelay));
        } catch (CancelledException) {
            // The connection is silent or slow, so the code below sends the script over another connection.
        }
        if ($this->connection !== $connection || $connection->isBroken()) {
            return $first->await();
        }
        $this->connection = null;
        /** @var string $answer */
        $answer = awaitFirst([$first, async($run)]);
        if (!$first->isComplete() && $connection->stream->isSilentSince($sentAt)) {
            $connection->close('the connection was silent, while the engine answered on another connection');
        }

        return $answer;
    }

    /**
     * @template T
     *
     * @param \Closure(string): T $decode
     *
     * @return T
     */
    public function decode(\Closure $decode, string $script, string $answer): mixed
    {
        try {
            return $decode($answer);
        } catch (MalformedAnswerException $malformed) {
            throw BrokerUnavailableException::at(
                (string) $this->address,
                "it answered {$script} with a malformed value",
                $malformed,
            );
        }
    }

    /**
     * @return list<string>
     *
     * @throws BrokerException
     */
    public function queueNames(): array
    {
        return QueueNames::scan($this->connection(), (string) $this->address, self::keyPrefix('*'));
    }

    private static function keyPrefix(string $queue): string
    {
        return "spindle:{{$queue}}:";
    }

    /** Opens the connection if necessary, and returns it. Throws if the caller can't wait for an answer. */
    private function connection(): RedisConnection
    {
        if (ProcessEnd::isSending()) {
            throw BrokerRefusedException::at(
                (string) $this->address,
                'the process is ending, and no longer waits for answers',
                'send requests before the script ends, not in a destructor',
            );
        }
        FiberSwitch::ensurePossible();
        if ($this->ownerPid !== getmypid() || !$this->loop->isCurrent()) {
            $this->forgetConnection();
        }
        if ($this->connection !== null && !$this->connection->isBroken()) {
            return $this->connection;
        }
        if ($this->opening !== null) {
            return $this->opening->await();
        }
        /** @var DeferredFuture<RedisConnection> $deferred */
        $deferred = new DeferredFuture();
        $this->opening = $deferred->getFuture();
        $this->opening->ignore();
        try {
            $connection = $this->open();
            $this->settings = EngineSettings::of($connection, (string) $this->address);
            if ($this->loadsScripts) {
                $this->load($connection);
            }
            $this->connection = $connection;
            ++$this->connectionCount;
            $deferred->complete($connection);

            return $connection;
        } catch (\Throwable $failure) {
            if ($failure instanceof EngineError) { // for example, too many clients
                $failure = BrokerUnavailableException::at((string) $this->address, $failure->getMessage(), $failure);
            } elseif ($failure instanceof \FiberError) { // thrown by Amp, which looks up the host name
                $failure = CannotWaitException::because($failure);
            }
            $deferred->error($failure);

            throw $failure;
        } finally {
            $this->opening = null;
        }
    }

    /**
     * Loads the scripts that the engine does not know. Otherwise, {@see run()} would send a request for such a script
     * twice, and later requests could overtake the repeated request.
     */
    private function load(RedisConnection $connection): void
    {
        $scripts = array_values($this->scripts());
        try {
            $known = $connection->call('SCRIPT', ['EXISTS', ...array_column($scripts, 1)]);
            foreach ($scripts as $i => [$source]) {
                if (!\is_array($known) || ($known[$i] ?? 0) !== 1) {
                    $connection->call('SCRIPT', ['LOAD', $source]);
                }
            }
        } catch (EngineError) {
            // If the engine has no command SCRIPT, run() sends the source of each script that the engine does not know.
        }
    }

    private function forgetConnection(): void
    {
        $this->connection?->close(OwnLoop::REPLACED); // does nothing in a fork
        [$this->ownerPid, $this->loop] = [(int) getmypid(), new OwnLoop()];
        $this->connection = $this->opening = null;
        $this->unopenedMailboxes = [];
    }

    /** @return array<string, array{string, string}> source and SHA-1 hash, by name */
    private function scripts(): array
    {
        if (self::$scripts === []) {
            $prelude = $this->source('prelude');
            if (!str_starts_with($prelude, '-- Spindle ' . LauncherProtocol::VERSION . "\n")) {
                throw $this->refuseScripts('are of another version of Spindle');
            }
            $scripts = [];
            foreach (self::SCRIPT_NAMES as $name) {
                $flags = \in_array($name, self::SCRIPTS_NEEDING_MEMORY, true) ? '' : ' flags=allow-oom';
                $source = "#!lua{$flags}\n{$prelude}" . $this->source($name);
                $scripts[$name] = [$source, sha1($source)];
            }
            self::$scripts = $scripts;
        }

        return self::$scripts;
    }

    private function source(string $script): string
    {
        $file = self::SCRIPT_DIRECTORY . "/{$script}.lua";
        $source = Files::read($file);
        if ($source === false) {
            $mayBeHidden = (string) \ini_get('open_basedir') !== '';
            throw $mayBeHidden || Warnings::suppressed(static fn(): bool => is_file($file))
                ? BrokerUnavailableException::at((string) $this->address, "the script {$file} can't be read now")
                : $this->refuseScripts('were removed');
        }

        return $source;
    }

    private function refuseScripts(string $why): BrokerRefusedException
    {
        return BrokerRefusedException::at(
            (string) $this->address,
            'the scripts in ' . self::SCRIPT_DIRECTORY . " {$why}, as after a deployment",
            'restart this process, or PHP-FPM',
        );
    }
}
