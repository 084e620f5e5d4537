<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\Socket\ClientTlsContext;
use Amp\Socket\ConnectException;
use Amp\Socket\DnsSocketConnector;
use Amp\TimeoutCancellation;
use Spindle\Internal\Backoff;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Clock;
use Spindle\Internal\Preload;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Internal\ReconnectBackoff;
use Spindle\Remote\Tier;

use function Amp\async;
use function Amp\Future\awaitFirst;

/** An engine and the connection for its scripts. A broken connection is replaced. */
final class Engine
{
    private const SCRIPT_DIRECTORY = __DIR__ . '/scripts';

    /**
     * Scripts that an engine without free memory refuses. The others run even then, because they end jobs and so free
     * memory. Each script runs completely or not at all.
     */
    private const SCRIPTS_NEEDING_MEMORY = ['submit', 'put-items'];
    private const SETTINGS = ['appendonly', 'appendfsync', 'no-appendfsync-on-rewrite', 'maxmemory-policy'];
    private const SCRIPT_NAMES = [
        'submit',
        'settle',
        'renew',
        'states',
        'drop-outcomes',
        'withdraw',
        'claimed-jobs',
        'leave',
        'put-items',
        'take-items',
        'leave-items',
        'report',
        'statistics',
        'list',
        'status',
        'revive',
        'delete',
        'repair',
    ];

    /** @var array<string, array{string, string}> */
    private static array $scripts = [];

    /** Id of the process that opened the connection. */
    private int $process;

    private ?RedisConnection $connection = null;

    /** Number of connections that were opened for scripts. */
    private int $connectionCount = 0;

    private ?Tier $tier = null;

    /** Whether each connection loads all scripts first. Agents do so, processes that dispatch a few jobs do not. */
    private bool $loadsScripts = false;

    /** @var Future<RedisConnection>|null while a connection is being opened */
    private ?Future $opening = null;

    /** @var array<int, Mailbox> mailboxes that were not tried yet or that the engine refuses, by object id */
    private array $unverified = [];

    public function __construct(
        public readonly Address $address,
        private readonly ?ClientTlsContext $tls,
        private readonly float $timeout,
    ) {
        $this->process = (int) getmypid();
        Preload::classes( // in case no file descriptor is free for loading classes
            Backoff::class,
            BrokerUnavailableException::class,
            CancelledException::class,
            ConnectException::class,
            DnsSocketConnector::class,
            ReconnectBackoff::class,
            TimeoutCancellation::class,
            WeakTimer::class,
        );
    }

    /**
     * Returns the tier. Also loads the scripts that the engine does not know, now and on later connections.
     *
     * @throws BrokerException
     */
    public function tier(): Tier
    {
        $connection = $this->connection();
        if (!$this->loadsScripts) {
            $this->loadsScripts = true;
            self::load($connection);
        }

        return $this->tier ?? throw new \LogicException('The tier is known once a connection is open');
    }

    /**
     * Returns the number of the current connection for scripts, 1 for the first.
     *
     * @throws BrokerException
     */
    public function connectionNumber(): int
    {
        $this->connection();

        return $this->connectionCount;
    }

    /** Makes {@see run()} wait for the first attempt to open this mailbox, and fail while it is refused. */
    public function addUnverified(Mailbox $mailbox): void
    {
        $this->unverified[spl_object_id($mailbox)] = $mailbox;
    }

    public function removeUnverified(Mailbox $mailbox): void
    {
        unset($this->unverified[spl_object_id($mailbox)]);
    }

    /**
     * Opens a separate connection.
     *
     * @throws BrokerException
     */
    public function open(): RedisConnection
    {
        return RedisConnection::open($this->address, $this->tls, $this->timeout);
    }

    /**
     * Runs a script for a queue.
     *
     * @return string the script's return value
     *
     * @throws BrokerException
     */
    public function run(string $script, string $queue, #[\SensitiveParameter] string ...$arguments): string
    {
        [$source, $hash] = self::scripts()[$script];
        $rest = ['1', "spindle:{{$queue}}:", ...array_values($arguments)];
        $connection = $this->connection();
        foreach ($this->unverified as $mailbox) {
            $mailbox->check();
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
     * Runs a script that may run twice, as {@see run()} does. When no answer arrives within `$seconds` seconds, it is
     * also sent on a new connection, because a network may drop a connection silently. The first answer counts, and a
     * connection that stays silent is closed.
     *
     * @throws BrokerException
     */
    public function runHedged(float $seconds, string $script, string $queue, string ...$arguments): string
    {
        $connection = $this->connection();
        $sentAt = Clock::now();
        $run = fn(): string => $this->run($script, $queue, ...$arguments);
        /** @var Future<string> $first */
        $first = async($run);
        $first->ignore();
        try {
            return $first->await(new TimeoutCancellation($seconds));
        } catch (CancelledException) {
            // The connection is silent or slow.
        }
        if ($this->connection !== $connection || $connection->isBroken()) {
            return $first->await();
        }
        $this->connection = null;
        /** @var string $answer */
        $answer = awaitFirst([$first, async($run)]);
        if (!$first->isComplete() && $connection->isSilentSince($sentAt)) {
            $connection->close('it is silent, while another connection is answered');
        }

        return $answer;
    }

    /** @throws BrokerException */
    private function connection(): RedisConnection
    {
        if ($this->process !== getmypid()) {
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
            $this->tier = $this->checkSettings($connection);
            if ($this->loadsScripts) {
                self::load($connection);
            }
            $this->connection = $connection;
            ++$this->connectionCount;
            $deferred->complete($connection);

            return $connection;
        } catch (\Throwable $failure) {
            if ($failure instanceof EngineError) { // for example, too many clients
                $failure = BrokerUnavailableException::at((string) $this->address, $failure->getMessage(), $failure);
            } elseif ($failure instanceof \FiberError) { // thrown by Amp, which opens the socket
                $failure = CannotWaitException::because($failure);
            }
            $deferred->error($failure);

            throw $failure;
        } finally {
            $this->opening = null;
        }
    }

    /**
     * Loads the scripts that the engine does not know, so that requests run in their order. Where SCRIPT is not
     * available, a request with an unknown script is sent again, behind later requests.
     *
     * @throws BrokerException
     */
    private static function load(RedisConnection $connection): void
    {
        $scripts = array_values(self::scripts());
        try {
            $known = $connection->call('SCRIPT', ['EXISTS', ...array_column($scripts, 1)]);
            foreach ($scripts as $i => [$source]) {
                if (!\is_array($known) || ($known[$i] ?? 0) !== 1) {
                    $connection->call('SCRIPT', ['LOAD', $source]);
                }
            }
        } catch (EngineError) {
            // Each script is sent when the engine does not know it.
        }
    }

    /** Forgets the connection in a fork, so that this process opens its own. */
    private function forgetConnection(): void
    {
        $this->connection?->keepUntilExit(); // closing it would end the other process's TLS session
        $this->process = (int) getmypid();
        $this->connection = $this->opening = null;
        $this->unverified = [];
    }

    /**
     * Returns the tier, and refuses an engine that would lose jobs.
     *
     * @throws BrokerException
     */
    private function checkSettings(RedisConnection $connection): Tier
    {
        $where = (string) $this->address;
        $info = self::info($connection, 'server', 'persistence');
        $settings = $this->settings($connection);
        if (version_compare($info['redis_version'] ?? '0', '7.0.0', '<')) {
            throw BrokerRefusedException::at(
                $where,
                'it is Redis ' . ($info['redis_version'] ?? 'of an unknown version'),
                'use Redis 7.0 or newer, or Valkey',
            );
        }
        if (($info['loading'] ?? '0') !== '0') {
            throw BrokerUnavailableException::at($where, 'it is loading its data');
        }
        if ($settings === []) {
            $policy = self::info($connection, 'memory')['maxmemory_policy'] ?? '';
            $settings = [
                'appendonly' => ($info['aof_enabled'] ?? '0') === '1' ? 'yes' : 'no',
                'maxmemory-policy' => $policy,
            ];
        }
        if (($settings['appendonly'] ?? '') !== 'yes') {
            throw BrokerRefusedException::at(
                $where,
                'it has no append-only file, so a crash would lose jobs',
                'set "appendonly yes"',
            );
        }
        $policy = $settings['maxmemory-policy'] ?? '';
        if ($policy !== 'noeviction') {
            throw BrokerRefusedException::at(
                $where,
                "its maxmemory-policy is {$policy}, so it would drop jobs when its memory is full",
                'set "maxmemory-policy noeviction"',
            );
        }

        return match ($settings['appendfsync'] ?? null) {
            'always' => ($settings['no-appendfsync-on-rewrite'] ?? '') === 'no' ? Tier::Durable : Tier::Fast,
            'no' => throw BrokerRefusedException::at(
                $where,
                'its appendfsync is no, so the system decides when jobs are written to disk',
                'set "appendfsync everysec", or "appendfsync always" for the durable tier',
            ),
            default => Tier::Fast,
        };
    }

    /**
     * @return array<string, string>
     *
     * @throws BrokerException
     */
    private static function info(RedisConnection $connection, string ...$sections): array
    {
        $answer = $connection->call('INFO', array_values($sections));
        preg_match_all('/^(\w+):(.*?)\r?$/m', \is_string($answer) ? $answer : '', $lines);

        return array_combine($lines[1], $lines[2]);
    }

    /**
     * @return array<string, string> empty when the user may not read them; then the lowest tier is assumed
     *
     * @throws BrokerException
     */
    private function settings(RedisConnection $connection): array
    {
        try {
            $answer = $connection->call('CONFIG', ['GET', ...self::SETTINGS]);
        } catch (BrokerRefusedException|EngineError) {
            return [];
        }
        $settings = [];
        $words = \is_array($answer) ? array_values(array_filter($answer, \is_string(...))) : [];
        for ($i = 1; $i < \count($words); $i += 2) {
            $settings[$words[$i - 1]] = $words[$i];
        }

        return $settings;
    }

    /** @return array<string, array{string, string}> source and hash, by name */
    private static function scripts(): array
    {
        if (self::$scripts === []) {
            $prelude = file_get_contents(self::SCRIPT_DIRECTORY . '/prelude.lua');
            foreach (self::SCRIPT_NAMES as $name) {
                $flags = \in_array($name, self::SCRIPTS_NEEDING_MEMORY, true) ? '' : ' flags=allow-oom';
                $source = "#!lua{$flags}\n{$prelude}" . file_get_contents(self::SCRIPT_DIRECTORY . "/{$name}.lua");
                self::$scripts[$name] = [$source, sha1($source)];
            }
        }

        return self::$scripts;
    }
}
