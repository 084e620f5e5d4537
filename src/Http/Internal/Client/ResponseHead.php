<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\HeadReader;

/**
 * The head of a response, and how its body is delimited: RFC 9112, 4 to 6.
 *
 * @phpstan-import-type FieldMap from Fields
 */
final readonly class ResponseHead
{
    /** Maximum bytes of a head, and maximum number of its field lines. */
    public const MAX_BYTES = 65_536;
    private const MAX_FIELDS = 200;

    private const STATUS_LINE = '@^HTTP/1\.([01]) ([1-9]\d\d)(?: (' . HeadReader::VALUE . '))?$@D';
    private const FIELD_LINES = '@^(?:' . HeadReader::TOKEN . ':' . HeadReader::VALUE . '\r\n)*+$@D';

    /**
     * @param FieldMap $fields
     * @param int|null $length bytes of the body; null if chunks or the end of the connection delimit the body
     * @param bool $isPersistent whether the connection can be used again after the body
     */
    private function __construct(
        public int $status,
        public string $version,
        public string $reason,
        public array $fields,
        public ?int $length,
        public bool $isChunked,
        public bool $isPersistent,
    ) {}

    /**
     * @param string $head status line and field lines, each with CRLF, without the final empty line
     * @param bool $hasNoBody true for a response to HEAD or CONNECT
     *
     * @throws MalformedResponseException
     */
    public static function parse(string $head, bool $hasNoBody): self
    {
        $end = (int) strpos($head, "\r\n");
        if (preg_match(self::STATUS_LINE, substr($head, 0, $end), $match) !== 1) {
            throw new MalformedResponseException('the server did not answer with HTTP/1.1 or HTTP/1.0');
        }
        $status = (int) $match[2];
        $fields = self::fields(substr($head, $end + 2));
        $isHttp10 = $match[1] === '0';
        $hasNoBody = $hasNoBody || $status < 200 || $status === 204 || $status === 304;
        $coding = isset($fields['transfer-encoding']) ? strtolower(implode(',', $fields['transfer-encoding'][1])) : '';
        $isChunked = !$hasNoBody && $coding === 'chunked';
        if (!$hasNoBody && $coding !== '' && !$isChunked) {
            throw new MalformedResponseException('the response has an unsupported Transfer-Encoding');
        }
        $length = self::length($fields);
        // A proxy may see another end of the body if Transfer-Encoding occurs in HTTP/1.0 or together with
        // Content-Length (RFC 9112, 6.1 and 6.3). So this connection is not used for another request.
        $isAmbiguous = $coding !== '' && ($isHttp10 || $length !== null);
        $connectionOptions = isset($fields['connection']) ? Fields::members($fields['connection'][1]) : [];

        return new self(
            $status,
            $isHttp10 ? '1.0' : '1.1',
            $match[3] ?? '',
            $fields,
            $hasNoBody ? 0 : ($isChunked ? null : $length),
            $isChunked,
            !$isAmbiguous && ($isHttp10
                ? \in_array('keep-alive', $connectionOptions, true)
                : !\in_array('close', $connectionOptions, true)),
        );
    }

    /** @return FieldMap */
    private static function fields(string $lines): array
    {
        if (str_contains($lines, "\r\n ") || str_contains($lines, "\r\n\t")) {
            $lines = (string) preg_replace('/\r\n[ \t]++/', ' ', $lines); // obsolete line folding: RFC 9112, 5.2
        }
        if (preg_match(self::FIELD_LINES, $lines) !== 1) {
            throw new MalformedResponseException('a header line of the response is malformed');
        }
        if (substr_count($lines, "\n") > self::MAX_FIELDS) {
            throw new MalformedResponseException('the response has more than ' . self::MAX_FIELDS . ' header lines');
        }

        return Fields::parse($lines);
    }

    /** @param FieldMap $fields */
    private static function length(array $fields): ?int
    {
        if (!isset($fields['content-length'])) {
            return null;
        }
        $values = $fields['content-length'][1];
        if (\count($values) > 1 || str_contains($values[0], ',')) {
            $values = array_unique(Fields::members($values));
        }
        if (\count($values) > 1) {
            throw new MalformedResponseException('the values of Content-Length in the response differ');
        }
        if (\count($values) === 0 || preg_match('/^\d{1,18}$/D', $values[0]) !== 1) {
            throw new MalformedResponseException('the Content-Length of the response is malformed');
        }

        return (int) $values[0];
    }
}
