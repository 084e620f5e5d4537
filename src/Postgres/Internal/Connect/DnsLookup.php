<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Amp\CancelledException;
use Amp\Dns\DnsException;
use Amp\Dns\DnsRecord;
use Spindle\Postgres\PostgresHost;

use function Amp\Dns\resolve;

/** Resolves host names with amphp/dns, because PHP's own functions block the process. */
final class DnsLookup
{
    /**
     * Returns all addresses of a host. Suspends only to look up a name other than "localhost".
     *
     * @return non-empty-list<Endpoint>
     *
     * @throws AttemptFailedException when the name can't be resolved before the deadline
     * @throws CancelledException
     */
    public static function endpoints(PostgresHost $host, Deadline $deadline): array
    {
        $address = $host->address ?? $host->host;
        $ips = match (true) {
            $host->isSocket() => [null],
            filter_var($address, \FILTER_VALIDATE_IP) !== false => [$address],
            strcasecmp($address, 'localhost') === 0 => ['127.0.0.1', '::1'],
            default => self::resolve($address, $deadline),
        };

        return array_map(static fn(?string $ip) => new Endpoint($host, $ip), $ips);
    }

    /** @return non-empty-list<string> */
    private static function resolve(string $name, Deadline $deadline): array
    {
        try {
            /** @var list<DnsRecord> $records */
            $records = resolve($name, null, $deadline->asCancellation());
        } catch (CancelledException $cancelled) {
            throw $deadline->failureOf($cancelled, "the look-up of '{$name}'");
        } catch (DnsException $failure) {
            throw AttemptFailedException::because("the look-up failed: {$failure->getMessage()}", $failure);
        } catch (\Error $failure) {
            // Without a free file descriptor, PHP can't load the classes of amphp/dns, and throws an \Error.
            throw @fopen('/dev/null', 'r') === false
                ? AttemptFailedException::because("the look-up of '{$name}' failed: too many open files", $failure)
                : $failure;
        }
        $ips = array_values(array_unique(array_map(
            static fn(DnsRecord $record): string => $record->getValue(),
            $records,
        )));

        return $ips !== []
            ? $ips
            : throw AttemptFailedException::because("the look-up of '{$name}' returned no address");
    }
}
