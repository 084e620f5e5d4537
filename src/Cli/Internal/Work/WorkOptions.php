<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

use Spindle\Cli\Internal\AdminHostOption;
use Spindle\Cli\Internal\BrokerOptions;
use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\CpuCount;
use Spindle\Internal\DefaultMemoryLimit;
use Spindle\Internal\WorkingDirectory;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Broker;
use Spindle\Remote\SigningKeys;
use Spindle\Worker\WorkerPoolOptions;
use Symfony\Component\Console\Input\InputInterface;

/** Reads and validates the options of `spindle work`. Opens no connection and starts no worker. */
final class WorkOptions
{
    /** Maximum number of workers. Each worker is a process, and more would not fit into the memory of a machine. */
    private const MAX_WORKERS = 10_000;

    private const ADDRESS_PATTERN = '~^(?:(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+):(\d{1,5})|unix://.+)$~Ds';
    private const ALLOWED_BYTES = 'a number of bytes from 1 to 999999999';
    private const ALLOWED_DEAD_LETTERS = 'a number of dead letters from 1 to 999999999';

    /** Default of --stop-timeout, in seconds: less than Kubernetes (30 s) and systemd (90 s) wait before SIGKILL. */
    private const DEFAULT_STOP_TIMEOUT = 25.0;

    private const MAX_PORT = 65_535;

    /**
     * @param non-empty-array<array-key, positive-int> $queues number of workers by queue name
     * @param list<string> $adminHosts further host names that the admin address accepts in the Host field
     */
    private function __construct(
        public readonly array $queues,
        public readonly Broker $broker,
        public readonly SigningKeys $keys,
        public readonly AgentOptions $agent,
        public readonly ?string $admin,
        public readonly array $adminHosts,
        public readonly bool $json,
        public readonly bool $quiet,
    ) {}

    /** @throws UsageException for an invalid or missing option, file or package, or for root without --allow-root */
    public static function of(InputInterface $input): self
    {
        $given = new GivenOptions($input);
        $queues = self::distribute(self::weights($input), self::workers($given));
        $broker = BrokerOptions::broker($given);
        self::rejectRoot($given);

        return new self(
            $queues,
            $broker,
            BrokerOptions::keys(),
            self::agent($given, array_sum($queues)),
            self::admin($given),
            AdminHostOption::names($input),
            $given->logsJson(),
            $given->flag('quiet'),
        );
    }

    /** @return non-empty-array<array-key, positive-int> weights by queue name */
    private static function weights(InputInterface $input): array
    {
        /** @var list<string> $queues */
        $queues = $input->getOption('queue');
        $weights = [];
        foreach ($queues as $queue) {
            $weight = preg_match('/^([^=]*)=([1-9]\d{0,3})$/D', $queue, $match) === 1 ? (int) $match[2] : 1;
            if ($match === [] && str_contains($queue, '=')) {
                throw UsageException::option('--queue', $queue, 'NAME=N, with a weight N from 1 to 9999');
            }
            $name = BrokerOptions::queueName('option --queue', $match[1] ?? $queue);
            if (isset($weights[$name])) {
                throw new UsageException(
                    "option --queue: '{$name}' is given twice; give each queue once, with a weight for more workers "
                        . "(--queue {$name}=2)",
                );
            }
            $weights[$name] = max(1, $weight);
        }

        return $weights === []
            ? throw new UsageException('option --queue: give the name of the queue to serve (--queue thumbnails)')
            : $weights;
    }

    /**
     * Gives each queue one worker. Each further worker goes to the queue with the fewest workers per unit of weight.
     *
     * @param non-empty-array<array-key, positive-int> $weights by queue name
     *
     * @return non-empty-array<array-key, positive-int> number of workers by queue name
     */
    private static function distribute(array $weights, int $workers): array
    {
        if ($workers < \count($weights)) {
            throw new UsageException(
                'option --workers: ' . \count($weights) . " queues need at least as many workers, not {$workers}",
            );
        }
        $shares = array_map(static fn(): int => 1, $weights);
        for ($remaining = $workers - \count($weights); $remaining > 0; --$remaining) {
            $ratios = array_map(static fn(int $share, int $weight): float => $share / $weight, $shares, $weights);
            $queue = array_keys($weights)[(int) array_search(min($ratios), $ratios, true)];
            ++$shares[$queue];
        }

        return $shares;
    }

    private static function rejectRoot(GivenOptions $given): void
    {
        $isRoot = \function_exists('posix_geteuid') ? posix_geteuid() === 0 : @fileowner('/proc/self') === 0;
        if ($isRoot && !$given->flag('allow-root')) {
            throw new UsageException(
                'spindle work runs as root, so anyone with a key could run any code as root; run it as another user, '
                    . 'or, in a container whose root has no more rights than other users, give --allow-root',
            );
        }
    }

    private static function workers(GivenOptions $given): int
    {
        $allowed = 'a number of workers from 1 to ' . self::MAX_WORKERS;

        return $given->number('workers', $allowed, 1, self::MAX_WORKERS) ?? (new CpuCount())->usable();
    }

    private static function agent(GivenOptions $given, int $workers): AgentOptions
    {
        $defaults = new AgentOptions();
        $pool = self::pool($given, $workers);
        [$lease, $heartbeat, $leaseMargin] = self::leaseTimes($given, $defaults);
        try {
            return new AgentOptions(
                $pool,
                $lease,
                $heartbeat,
                $leaseMargin,
                $given->duration('outcome-retention') ?? $defaults->outcomeRetention,
                $given->number('max-result', self::ALLOWED_BYTES) ?? $defaults->maxResultBytes,
                $given->duration('stop-timeout') ?? self::DEFAULT_STOP_TIMEOUT,
                !$given->flag('no-lease-guard'),
                $given->number('max-dead-letters', self::ALLOWED_DEAD_LETTERS) ?? $defaults->maxDeadLetters,
                $given->duration('dead-retention') ?? $defaults->deadLetterRetention,
            );
        } catch (\ValueError $invalid) {
            throw new UsageException(
                'options --outcome-retention, --max-result, --max-dead-letters, --dead-retention: '
                    . lcfirst($invalid->getMessage()),
            );
        }
    }

    private static function pool(GivenOptions $given, int $workers): WorkerPoolOptions
    {
        $bootstrap = $given->text('bootstrap');
        if ($bootstrap !== null && (!is_file($bootstrap) || !is_readable($bootstrap))) {
            throw new UsageException(
                "option --bootstrap: '{$bootstrap}' is not a readable file; give a PHP file that each worker loads",
            );
        }
        $memory = $given->text('memory-limit') ?? DefaultMemoryLimit::of($workers);
        $pool = new WorkerPoolOptions(bootstrap: $bootstrap === null ? null : WorkingDirectory::absolute($bootstrap));
        try {
            return $pool->with(memoryLimit: $memory);
        } catch (\ValueError) {
            throw UsageException::option(
                '--memory-limit',
                (string) $memory,
                'a number of bytes, at least 8M, optionally with K, M or G, or -1 for no limit',
            );
        }
    }

    /** @return array{float, float, float} lease, heartbeat and lease margin, in seconds */
    private static function leaseTimes(GivenOptions $given, AgentOptions $defaults): array
    {
        $lease = $given->duration('lease') ?? $defaults->lease;
        $heartbeat = $given->duration('heartbeat') ?? $defaults->heartbeat;
        $leaseMargin = $given->duration('lease-margin') ?? $defaults->leaseMargin;
        foreach (['heartbeat' => $heartbeat, 'lease-margin' => $leaseMargin] as $name => $seconds) {
            $seconds > 0 || throw UsageException::option(
                "--{$name}",
                (string) $given->text($name),
                Duration::FORM . ', more than 0',
            );
        }
        if ($lease <= $heartbeat + $leaseMargin) {
            throw UsageException::option(
                '--lease',
                $given->text('lease') ?? (string) $lease,
                Duration::FORM . ', more than ' . ($heartbeat + $leaseMargin)
                    . ', which is --heartbeat and --lease-margin together',
            );
        }

        return [$lease, $heartbeat, $leaseMargin];
    }

    private static function admin(GivenOptions $given): ?string
    {
        $address = $given->text('admin');
        if (
            $address !== null
            && (preg_match(self::ADDRESS_PATTERN, $address, $match) !== 1 || (int) ($match[1] ?? 0) > self::MAX_PORT)
        ) {
            throw UsageException::option(
                '--admin',
                $address,
                'host:port, [IPv6]:port, with a port from 0 to ' . self::MAX_PORT . ', or unix:///path',
            );
        }

        return $address;
    }
}
