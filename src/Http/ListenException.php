<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\SpindleException;

/** A server can't listen on an address. */
final class ListenException extends \RuntimeException implements SpindleException
{
    private function __construct(public readonly string $address, string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function malformed(string $address): self
    {
        return new self(
            $address,
            "\"{$address}\" is not an address to listen on. Use host:port, [IPv6]:port,"
                . ' tls://host:port or unix:///path',
        );
    }

    /** @internal */
    public static function because(string $address, string $reason): self
    {
        $advice = str_contains($reason, 'already in use')
            ? '. Another program listens there: stop it, or choose another address'
            : '';

        return new self($address, "The server can't listen on {$address}: {$reason}{$advice}");
    }

    /**
     * @internal
     *
     * @param list<string> $addresses
     * @param int|null     $limit     limit of open files; null if it is unknown
     * @param int          $missing   number by which the limit is too low
     */
    public static function tooFewDescriptors(array $addresses, ?int $limit, int $missing): self
    {
        $numbers = $limit === null
            ? "the limit of open files is too low by {$missing}"
            : "the limit of open files is {$limit}, and the process needs at least " . ($limit + $missing);

        return new self(
            $addresses[0] ?? '',
            'The server can\'t listen on ' . implode(', ', $addresses)
                . ": {$numbers}. Raise the limit (ulimit -n): each connection needs one file",
        );
    }

    /** @internal */
    public static function withoutCertificate(string $address): self
    {
        return new self(
            $address,
            "The server can't listen on {$address} without a certificate. Set the option certificate of"
                . ' HttpServerOptions, or of SupervisorOptions for a Supervisor',
        );
    }
}
