<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/** The same request from several clients at once, each on its own connection. */
final class Requests
{
    private const TIMEOUT = 120.0;

    /**
     * @return list<string> the bodies of the answers with status 200
     *
     * @throws \RuntimeException when the connection fails
     */
    public static function get(string $address, string $target, int $count): array
    {
        [$clients, $answers] = [[], []];
        for ($i = 0; $i < $count; ++$i) {
            $client = @stream_socket_client("tcp://{$address}", $code, $message, self::TIMEOUT);
            if ($client === false) {
                throw new \RuntimeException("Only {$i} clients were connected: {$message}");
            }
            [$clients[$i], $answers[$i]] = [$client, ''];
        }
        foreach ($clients as $client) {
            fwrite($client, "GET {$target} HTTP/1.0\r\nHost: {$address}\r\n\r\n");
            stream_set_blocking($client, false);
        }
        for ($end = hrtime(true) + self::TIMEOUT * 1e9; $clients !== [] && hrtime(true) < $end;) {
            [$read, $write, $except] = [$clients, null, null];
            @stream_select($read, $write, $except, 1);
            foreach ($read as $i => $client) {
                $answers[$i] .= fread($client, 65_536);
                if (feof($client)) {
                    fclose($client);
                    unset($clients[$i]);
                }
            }
        }

        return array_values(array_map(
            static fn(string $answer): string => substr($answer, (int) strpos($answer, "\r\n\r\n") + 4),
            array_filter($answers, static fn(string $answer): bool => preg_match('~^HTTP/1\.\d 200 ~', $answer) === 1),
        ));
    }
}
