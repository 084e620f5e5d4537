<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;

/** Time for which exceptional operations block the event loop. */
final readonly class Gaps
{
    /** A name that no name server resolves. https://www.rfc-editor.org/rfc/rfc6761#section-6.4 */
    private const NO_HOST = 'no-such-host.invalid';

    /** Connect timeout for all hosts together, in seconds. The silent host gets a share of it. */
    private const CONNECT = 1.5;

    /** Seconds after which a running query is cancelled. */
    private const CANCEL_AFTER = 0.02;

    public function __construct(private Job $job, private Target $target) {}

    /** @return array<string, mixed> milliseconds: the longest gap of all, and the median of the whole operation */
    public function figures(): array
    {
        $work = match ($this->job->variant) {
            Variant::Parameter => $this->parameter(),
            Variant::CancelledQuery => $this->cancelledQuery(),
            Variant::Reconnect => $this->reconnect(),
            Variant::Lookup => $this->lookup(),
            Variant::Tls => $this->tls(),
            default => throw new \LogicException("Gaps are not measured for {$this->job->variant->value}"),
        };
        $samples = new Samples();
        [$gaps, $right] = [[], 0];
        for ($i = 0; $i < $this->job->count; ++$i) {
            $isRight = false;
            $samples->take(static function () use ($work, &$gaps, &$isRight): void {
                $gaps[] = 1e3 * Ticks::during(static function () use ($work, &$isRight): void {
                    $isRight = $work();
                });
            });
            $right += (int) $isRight;
        }

        return [
            'figure' => max([0.0, ...$gaps]),
            'took' => $samples->median(),
            'results' => $right,
            'right' => $right === $this->job->count,
        ];
    }

    /** @return \Closure(): bool */
    private function parameter(): \Closure
    {
        $client = new SpindleBulk($this->target);
        $bytes = str_repeat(random_bytes(1 << 10), max(1, $this->job->bytes >> 10));

        return static fn(): bool => \strlen($client->echo($bytes)) === \strlen($bytes);
    }

    /** @return \Closure(): bool */
    private function cancelledQuery(): \Closure
    {
        $connection = PostgresConnection::connect($this->options());

        return static function () use ($connection): bool {
            $cancellation = new DeferredCancellation();
            EventLoop::delay(self::CANCEL_AFTER, static fn() => $cancellation->cancel());
            try {
                $connection->query('SELECT pg_sleep(60)', [], $cancellation->getCancellation());
            } catch (CancelledException) {
                return $connection->query('SELECT 1')->value() === 1;
            }

            return false;
        };
    }

    /** @return \Closure(): bool */
    private function reconnect(): \Closure
    {
        $pool = new PostgresPool($this->options(), 1);
        $activity = new Activity($this->target);

        return static function () use ($pool, $activity): bool {
            $borrowed = $pool->acquire();
            $backend = $borrowed->backendPid();
            $activity->terminate($backend);
            try {
                $borrowed->query('SELECT pg_sleep(60)');
            } catch (ConnectionLostException) {
                $borrowed->release();

                return $pool->query('SELECT pg_backend_pid()')->value() !== $backend;
            }

            return false;
        };
    }

    /** @return \Closure(): bool */
    private function lookup(): \Closure
    {
        $silent = stream_socket_server('tcp://127.0.0.1:0');
        \assert($silent !== false);
        $port = (int) substr((string) strrchr((string) stream_socket_get_name($silent, false), ':'), 1);
        $options = $this->options();
        $options = $options->with([
            'hosts' => [new PostgresHost(self::NO_HOST), new PostgresHost('127.0.0.1', $port), ...$options->hosts],
            'connectTimeout' => self::CONNECT,
        ]);

        return static fn(): bool => \is_resource($silent) && self::answers($options);
    }

    /** @return \Closure(): bool */
    private function tls(): \Closure
    {
        $options = PostgresOptions::fromDsn($this->target->tlsDsn());

        return static fn(): bool => self::answers($options);
    }

    private static function answers(PostgresOptions $options): bool
    {
        $connection = PostgresConnection::connect($options);
        $answers = $connection->query('SELECT 1')->value() === 1;
        $connection->close();

        return $answers;
    }

    private function options(): PostgresOptions
    {
        return PostgresOptions::fromDsn($this->target->dsn());
    }
}
