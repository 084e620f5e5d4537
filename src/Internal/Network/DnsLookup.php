<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeException;
use Amp\Dns\DnsException;
use Amp\Dns\DnsRecord;
use Spindle\Internal\NullDevice;
use Spindle\Internal\Warnings;

use function Amp\Dns\resolve;

/** Resolves host names with amphp/dns, because PHP's own functions block the process. */
final class DnsLookup
{
    /** Classes of amphp/dns and its libraries for which PHP 8.4 reports a deprecation while it compiles them. */
    private const DEPRECATED_CLASSES = [
        'Amp\Cache\LocalCache',
        'LibDNS\Decoder\DecoderFactory',
        'LibDNS\Encoder\EncodingContext',
        'LibDNS\Messages\Message',
        'LibDNS\Messages\MessageFactory',
        'LibDNS\Packets\Packet',
        'LibDNS\Records\ResourceBuilderFactory',
        'LibDNS\Records\Types\BitMap',
        'LibDNS\Records\Types\Type',
        'LibDNS\Records\Types\TypeFactory',
    ];

    /**
     * Returns all IP addresses of a host. Suspends only to look up a name other than "localhost".
     *
     * @param string $host name or IP address
     *
     * @return non-empty-list<string>
     *
     * @throws NetworkException when the name can't be resolved before the deadline
     * @throws CancelledException
     */
    public static function addresses(string $host, Deadline $deadline): array
    {
        return match (true) {
            filter_var($host, \FILTER_VALIDATE_IP) !== false => [$host],
            strcasecmp($host, 'localhost') === 0 => ['127.0.0.1', '::1'],
            default => self::resolve($host, $deadline),
        };
    }

    /** @return non-empty-list<string> */
    private static function resolve(string $name, Deadline $deadline): array
    {
        try {
            $records = self::query($name, $deadline->asCancellation());
        } catch (CancelledException $cancelled) {
            throw $deadline->failureOf($cancelled, "the look-up of '{$name}'");
        } catch (DnsException $failure) {
            throw NetworkException::because(self::reason($name, $failure), $failure);
        } catch (\Error $failure) {
            // Without a free file descriptor, PHP can't load the classes of amphp/dns, and throws an \Error.
            throw NullDevice::lacksDescriptor()
                ? NetworkException::because("the look-up of '{$name}' failed: too many open files", $failure)
                : $failure;
        }
        $ips = array_values(array_unique(array_map(
            static fn(DnsRecord $record): string => $record->getValue(),
            $records,
        )));

        return $ips !== [] ? $ips : throw NetworkException::because("the look-up of '{$name}' returned no address");
    }

    /** @return list<DnsRecord> */
    private static function query(string $name, Cancellation $cancellation): array
    {
        Warnings::suppressed(static fn(): array => array_map(class_exists(...), self::DEPRECATED_CLASSES));
        try {
            /** @var list<DnsRecord> */
            return resolve($name, null, $cancellation);
        } catch (DnsException $failure) {
            $cancellation->throwIfRequested(); // amphp/dns throws a DnsException after a cancellation, too

            throw $failure;
        }
    }

    /** Returns why a look-up has failed. Equal messages for IPv4 and IPv6 appear only once. */
    private static function reason(string $name, DnsException $failure): string
    {
        if (str_contains($failure->getMessage(), '(NXDomain)')) {
            return "the look-up failed: no host has the name '{$name}'; check its spelling";
        }
        $each = $failure->getPrevious();
        $messages = $each instanceof CompositeException
            ? array_map(static fn(\Throwable $one): string => $one->getMessage(), $each->getReasons())
            : [$failure->getMessage()];

        return 'the look-up failed: ' . implode(', ', array_unique($messages));
    }
}
