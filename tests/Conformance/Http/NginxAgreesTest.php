<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http;

use Spindle\Http\Internal\Message\Head;
use Spindle\Tests\Conformance\Http\Vectors\Reading;
use Spindle\Tests\Conformance\Http\Vectors\Vectors;
use Spindle\Tests\Fuzz\Http\Mutator;
use Spindle\Tests\Fuzz\Http\Pipeline;
use Spindle\Tests\Nginx;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

/**
 * nginx and the parser accept and refuse the same bytes, with known exceptions. They never find different requests in
 * the same bytes.
 */
final class NginxAgreesTest extends TidyTestCase
{
    use Nginx;
    use OwnDirectory;

    /** Forwards each request to itself, which makes nginx read the whole body, and returns how it was understood. */
    private const SERVER = <<<'NGINX'
        client_max_body_size 0;
        keepalive_requests 1000000;
        lingering_close always;
        location / {
            if ($http_x_passed) {
                add_header X-Seen "$request_method $request_uri $http_content_length";
                return 204;
            }
            proxy_ignore_client_abort on;
            proxy_pass http://$server_addr:$server_port$request_uri;
            proxy_set_header Host passed;
            proxy_set_header X-Passed yes;
        }
        NGINX;

    /** Vectors whose verdicts differ, by reason. */
    private const DIFFERENCES = [
        'nginx knows methods of capital letters only, and no TRACE' => [
            'any token is a method',
            'methods differ by case',
            'TRACE is left to the handler',
        ],
        'nginx does not know OPTIONS *' => [
            'OPTIONS of the server as a whole is accepted',
        ],
        'nginx refuses a Host without a name' => [
            'a Host that is empty is a Host',
        ],
        'nginx takes no tab for a blank' => [
            'blanks around a host are none of it',
            'blanks around a length are none of it',
            'blanks around a coding are none of it',
        ],
        'nginx ends a line at LF alone' => [
            'LF alone after the version is refused',
            'LF alone between fields is refused',
            'LF alone after the last field is refused',
            'LF alone at the end of a head is refused',
            'a head of LF alone is refused',
            'a request behind LF alone is refused',
            'LF alone after a coding is refused',
            'a coding behind LF in another field is refused',
            'LF alone after a size is refused',
            'LF alone after the last size is refused',
            'LF alone after the data is refused',
            'data shorter than its size is refused',
            'LF alone after an extension is refused',
            'LF alone after a semicolon is refused',
            'LF alone after a trailer field is refused',
            'LF alone after the trailer fields is refused',
            'LF alone instead of trailer fields is refused',
            'LF alone after a body is refused',
            'an empty line of LF alone before a request is refused',
        ],
        'nginx takes several CR for one, and skips those before a request' => [
            'CR before a request is refused',
            'two CR in an empty line before a request are refused',
            'CR at the end of a value is refused',
            'CR after a length is refused',
            'CR after a coding is refused',
        ],
        'nginx takes several blanks in a request line for one' => [
            'two blanks before the target are refused',
            'two blanks after the target are refused',
            'a blank after the version is refused',
        ],
        'nginx speaks HTTP/0.9' => [
            'a line end after the target is refused',
            'a request of HTTP/0.9 is refused',
        ],
        'nginx reads a minor version of several digits' => [
            'a zero before the minor version is refused',
            'a minor version of two digits is refused',
        ],
        'nginx takes a fragment for a part of the path, any scheme, and any byte beyond ASCII' => [
            'a fragment is refused',
            'a fragment of an absolute target is refused',
            'another scheme is refused',
            'letters beyond ASCII in a path are refused',
        ],
        'nginx looks for little in a Host, and at no port' => [
            'a host with a query is refused',
            'a host with a fragment is refused',
            'a host with a backslash is refused',
            'a host with a name before it is refused',
            'a port that is no number is refused in a Host',
            'a port with a sign is refused',
            'a port of six digits is refused',
            'two ports are refused',
            'a bracket that is not closed is refused',
            'a name in brackets is refused',
            'an address of IPv6 of three groups is refused',
            'an absolute target with an address of IPv6 of three groups is refused',
            'an address of IPv6 of nine groups is refused',
            'an address of IPv6 with a group of five digits is refused',
            'an address of IPv6 that is shortened twice is refused',
            'an address of IPv6 of colons is refused',
            'an address of IPv4 in brackets is refused',
            'an address of IPv6 with a wrong address of IPv4 is refused',
            'an address of IPv6 with a zone is refused',
            'an address of a future version is refused',
            'a name after brackets is refused',
            'half of an encoded byte in a host is refused',
            'letters beyond ASCII in a host are refused',
            'a quoted host is refused',
            'markup in a host is refused',
        ],
        'nginx leaves out the lines whose names it does not understand' => [
            'a line without a colon is refused',
            'a parenthesis in a name is refused',
            'a slash in a name is refused',
            'a comma in a name is refused',
            'a quote in a name is refused',
            'a bracket in a name is refused',
            'an equals sign in a name is refused',
            'an at sign in a name is refused',
            'letters beyond ASCII in a name are refused',
            'a semicolon after the name of a coding is refused',
        ],
        'nginx looks for no control bytes but NUL, CR and LF in a value' => [
            'a vertical tab in a value is refused',
            'a form feed in a value is refused',
            'a bell in a value is refused',
            'ESC in a value is refused',
            'DEL in a value is refused',
        ],
        'nginx stops at a value, and not at a number of digits' => [
            'a length of many zeros is refused',
            'a size of sixteen digits is refused',
            'a last size of sixteen digits is refused',
        ],
        'nginx skips what follows a size up to the end of the line' => [
            'a blank after a size is refused',
            'a blank in a size is refused',
            'a tab after a size is refused',
            'a blank after the last size is refused',
            'a semicolon alone is refused',
            'a semicolon at the end is refused',
            'two semicolons are refused',
            'an extension without a name is refused',
            'an extension without a value is refused',
            'an extension with two values is refused',
            'an extension without a semicolon is refused',
            'a blank after an extension is refused',
            'a blank in the name of an extension is refused',
            'a quote that is not closed is refused',
            'a quote whose end is escaped is refused',
            'text after a quote is refused',
            'a quoted name is refused',
            'bytes beyond ASCII outside quotes are refused',
            'NUL in an extension is refused',
            'NUL in quotes is refused',
            'an extension of the last size that is malformed is refused',
        ],
        'nginx skips what follows the last size up to an empty line' => [
            'data of the last chunk is refused',
            'a request within the last chunk is refused',
            'a blank before the colon of a trailer field is refused',
            'a trailer field without a name is refused',
            'a trailer field without a colon is refused',
            'a trailer field that goes on on the next line is refused',
            'a blank before the first trailer field is refused',
            'a blank in the line after the trailer fields is refused',
            'NUL in a trailer field is refused',
            'the next request instead of trailer fields is refused',
            'DEL in a trailer field is refused',
            'a parenthesis in the name of a trailer field is refused',
        ],
        'nginx overlooks an expectation that it does not know' => [
            'another expectation is refused',
            'another expectation beside the known one is refused',
            'an empty expectation is refused',
            'an expectation with a parameter is refused',
        ],
    ];

    public function testTheVectorsHaveTheSameVerdicts(): void
    {
        $address = $this->startNginx(self::SERVER);
        $known = array_merge(...array_values(self::DIFFERENCES));
        $vectors = iterator_to_array(Vectors::all());
        self::assertSame([], array_diff($known, array_keys($vectors)));
        $different = [];
        foreach ($vectors as $claim => $vector) {
            // nginx has its own limits.
            if ($vector->limits === null) {
                $ours = self::simplified(Reading::of([$vector->bytes]));
                $theirs = self::ask($address, $vector->bytes);
                if ($ours !== $theirs && !\in_array($claim, $known, true)) {
                    $different[$claim] = [$ours, $theirs];
                }
            }
        }

        self::assertSame([], $different, 'parser, nginx');
    }

    public function testFuzzedRequestsAreTheSameRequests(): void
    {
        $address = $this->startNginx(self::SERVER);
        mt_srand(Scale::seed());
        [$agreed, $rounds] = [0, 0];
        foreach (Scale::rounds(0.5, 200) as $_) {
            ++$rounds;
            [$bytes] = Pipeline::random();
            $bytes = mt_rand(0, 2) === 0 ? $bytes : Mutator::of($bytes);
            $reading = Reading::of([$bytes]);
            $ours = self::simplified($reading);
            $theirs = self::ask($address, $bytes);
            $agreed += $ours === $theirs ? 1 : 0;
            $both = min(self::accepted($ours), self::accepted($theirs));
            self::assertSame(
                \array_slice($ours, 0, $both),
                \array_slice($theirs, 0, $both),
                addcslashes($bytes, "\0..\37\177..\377"),
            );
            if (isset($reading->requests[$both]) && $theirs[$both] === 'refused') {
                self::assertTrue(
                    self::isRefusedByNginx($reading->requests[$both][0], $bytes),
                    addcslashes($bytes, "\0..\37\177..\377"),
                );
            }
        }

        self::assertGreaterThan($rounds / 3, $agreed);
    }

    /**
     * Returns whether nginx refuses a request for the reason of some vectors, or because of encoded bytes in its path.
     */
    private static function isRefusedByNginx(Head $head, string $bytes): bool
    {
        return preg_match('/[^A-Z_]|^TRACE$/', $head->method) === 1
            || preg_match('@^\*|^https?://[^/?]*[^A-Z0-9.:\[\]/?-]|%(?![0-9A-F]{2})|%00|/\.\.@i', $head->target) === 1
            || $head->host === '' || str_contains($head->host, '..')
            || preg_match(
                '/^Host:(?:[ \t]*+\r$|.*\.\.)|^(?:Host|Content-Length|Transfer-Encoding):.*\t/im',
                $bytes,
            ) === 1
            || preg_match('/^Expect:(?s:.*)^Expect:/im', $head->fields) === 1;
    }

    /**
     * @return list<string> accepted requests as 'GET /path 5', with the length of the body, then 'refused' if the next
     *         one was
     */
    private static function simplified(Reading $reading): array
    {
        $seen = [];
        foreach ($reading->requests as [$head, $body]) {
            $path = (string) preg_replace('@^https?://[^/?]*@i', '', $head->target);
            $seen[] = "{$head->method} "
                . ($path === '' || $path[0] === '?' ? "/{$path}" : $path)
                . ' '
                . \strlen($body);
        }

        return str_starts_with($reading->end, 'refused') ? [...$seen, 'refused'] : $seen;
    }

    /** @return list<string> the same for nginx */
    private static function ask(string $address, string $bytes): array
    {
        $client = stream_socket_client("tcp://{$address}");
        \assert($client !== false);
        stream_set_timeout($client, 10);
        fwrite($client, $bytes);
        stream_socket_shutdown($client, \STREAM_SHUT_WR);
        $answers = (string) stream_get_contents($client);
        self::assertFalse(stream_get_meta_data($client)['timed_out'], addcslashes($bytes, "\0..\37\177..\377"));
        fclose($client);

        return self::seen($answers);
    }

    /** @return list<string> */
    private static function seen(string $answers): array
    {
        $seen = [];
        for ($at = 0; preg_match(
            '@\GHTTP/1\.1 (\d++)[^\r\n]*+\r\n(?:X-Seen: (\S++) (\S++) ?+(\d*+)\r\n|[^\r\n]++\r\n)*+\r\n@',
            $answers,
            $match,
            0,
            $at,
        ) === 1; $at += \strlen($match[0])) {
            if ((int) $match[1] >= 400) {
                return [...$seen, 'refused'];
            }
            if (isset($match[2], $match[3], $match[4])) {
                $seen[] = "{$match[2]} {$match[3]} " . (int) $match[4];
            }
        }

        return $seen;
    }

    /** @param list<string> $seen */
    private static function accepted(array $seen): int
    {
        return \count(array_diff($seen, ['refused']));
    }
}
