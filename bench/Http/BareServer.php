<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/**
 * The limit: a loop that reads bytes, searches the end of the request, and writes the response at once.
 *
 * The loop answers every request as if it were the expected one, without limits or deadlines.
 */
final class BareServer
{
    public static function serve(Site $site): never
    {
        $options = ['backlog' => Site::BACKLOG, 'tcp_nodelay' => true];
        $listener = stream_socket_server(
            "tcp://{$site->address()}",
            $code,
            $message,
            \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN,
            stream_context_create(['socket' => $options]),
        );
        \assert($listener !== false);
        stream_set_blocking($listener, false);
        $answer = self::answer($site->work);
        [$streams, $parts, $second, $date] = [[(int) $listener => $listener], [], 0, ''];
        for (;;) {
            [$readable, $writable, $exceptional] = [$streams, null, null];
            stream_select($readable, $writable, $exceptional, null);
            if (time() !== $second) {
                $second = time();
                $date = gmdate('D, d M Y H:i:s', $second);
            }
            foreach ($readable as $id => $stream) {
                if ($stream === $listener) {
                    $client = @stream_socket_accept($listener, 0);
                    if ($client !== false) {
                        stream_set_blocking($client, false);
                        stream_set_read_buffer($client, 0);
                        $streams[(int) $client] = $client;
                    }
                    continue;
                }
                $data = ($parts[$id] ?? '') . fread($stream, 65_536);
                unset($parts[$id]);
                $response = $answer($data, $date);
                if ($response !== null) {
                    fwrite($stream, $response);
                } elseif (feof($stream)) {
                    unset($streams[$id]);
                    fclose($stream);
                } else {
                    $parts[$id] = $data;
                }
            }
        }
    }

    /** @return \Closure(string, string): ?string the response to a request at a date; null for an incomplete request */
    private static function answer(Work $work): \Closure
    {
        return match ($work) {
            Work::Text => static fn(string $request, string $date): ?string => str_ends_with($request, "\r\n\r\n")
                ? self::response($date, 'text/plain; charset=utf-8', Work::TEXT)
                : null,
            Work::Json => static function (string $request, string $date): ?string {
                if (!str_ends_with($request, "\r\n\r\n")) {
                    return null;
                }

                return self::response($date, 'application/json', json_encode(Work::JSON, \JSON_THROW_ON_ERROR));
            },
            Work::Echo => static function (string $request, string $date): ?string {
                $end = strpos($request, "\r\n\r\n");
                if (
                    $end === false
                    || preg_match('/\r\nContent-Length: *(\d+)\r\n/i', $request, $match) !== 1
                    || \strlen($request) < $end + 4 + (int) $match[1]
                ) {
                    return null;
                }

                return self::response($date, 'application/octet-stream', substr($request, $end + 4));
            },
            Work::Wait, Work::Burn, Work::Nyholm, Work::Collide, Work::Crowd,
            Work::Pieces, Work::PiecesGzip, Work::PiecesLarge
                => throw new \LogicException("The bare loop has no handler for {$work->value}"),
        };
    }

    private static function response(string $date, string $type, string $body): string
    {
        return "HTTP/1.1 200 OK\r\nDate: {$date} GMT\r\nContent-Type: {$type}\r\nContent-Length: "
            . \strlen($body)
            . "\r\n\r\n{$body}";
    }
}
