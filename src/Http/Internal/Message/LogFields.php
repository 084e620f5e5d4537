<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** The context of log entries about one request: method, target, address of the client, and fields of middleware. */
final class LogFields
{
    /**
     * @param array<string, string> $added fields that middleware has added; they replace others of the same name
     *
     * @return array<string, string>
     */
    public static function of(Head $head, Peer $peer, array $added): array
    {
        $client = $peer->port === 0 ? [] : ['client_ip' => $peer->address]; // port 0: a client of a Unix socket

        return $added + ['method' => $head->method, 'target' => $head->target] + $client;
    }
}
