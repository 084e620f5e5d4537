<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Run\Input\BadRecordException;

/**
 * The lines of --jsonl: tasks `{"id":...,"cmd":...}` and results `{"id":...,"status":...,"stdout":...,"stderr":...}`.
 * The PHP library TaskRunner.php (https://github.com/tomlau10/TaskRunner.php) uses the same format.
 *
 * JSON can contain only UTF-8. A value with other bytes is base64, and the member "base64" lists the key of that value.
 */
final class JsonLines
{
    private const ENCODE_FLAGS = \JSON_UNESCAPED_SLASHES
        | \JSON_UNESCAPED_UNICODE
        | \JSON_PRESERVE_ZERO_FRACTION
        | \JSON_THROW_ON_ERROR;

    /** Maximum depth of nesting in a task, including members that are ignored: PHP's default. */
    private const MAX_DEPTH = 512;

    /** Matches an incomplete UTF-8 character at the end of a text. */
    private const CUT_CHARACTER_PATTERN = '/(?:[\xC2-\xF4]|[\xE0-\xF4][\x80-\xBF]|[\xF0-\xF4][\x80-\xBF]{2})$/D';

    /** Size of the pieces in which output is encoded, in bytes. A multiple of 3, so that base64 can be concatenated. */
    private const PIECE_BYTES = 3 << 18;

    /**
     * Decodes a task. Unknown members are ignored.
     *
     * @return array{int|float|string, string} id and command line
     *
     * @throws BadRecordException when the line is not a valid task
     */
    public static function decodeTask(string $line): array
    {
        try {
            $task = json_decode($line, true, self::MAX_DEPTH, \JSON_THROW_ON_ERROR | \JSON_BIGINT_AS_STRING);
        } catch (\JsonException $exception) {
            throw new BadRecordException($exception->getCode() === \JSON_ERROR_DEPTH
                ? 'the JSON is nested too deeply; the limit is ' . self::MAX_DEPTH . ' levels'
                : "not JSON: {$exception->getMessage()}");
        }
        if (!\is_array($task) || array_is_list($task)) {
            throw new BadRecordException('not a JSON object such as {"id":1,"cmd":"true"}');
        }
        $id = self::decodeValue('id', $task);
        if (!\is_string($id) && !\is_int($id) && !\is_float($id)) {
            throw new BadRecordException('"id" must be a string or a number');
        }
        if (\is_float($id) && !is_finite($id)) {
            throw new BadRecordException('"id" is a number that is too large; give a string');
        }
        $command = self::decodeValue('cmd', $task);
        if (!\is_string($command)) {
            throw new BadRecordException('"cmd" must be a string, the command line');
        }

        return [$id, $command];
    }

    /**
     * Yields one line for a result. The line is in pieces, because an output may not fit into memory. Each output is
     * read twice: to check whether the output is UTF-8, and to encode the output.
     *
     * @param int      $status the exit code; 128 + n after signal n
     * @param resource $stdout seekable stream at its start
     * @param resource $stderr seekable stream at its start
     *
     * @return \Generator<int, string>
     */
    public static function encodeResult(int|float|string $id, int $status, mixed $stdout, mixed $stderr): \Generator
    {
        $base64 = [];
        if (\is_string($id) && !self::isText($id)) {
            $base64[] = 'id';
            $id = base64_encode($id);
        }
        yield '{"id":' . json_encode($id, self::ENCODE_FLAGS) . ",\"status\":{$status}";
        foreach (['stdout' => $stdout, 'stderr' => $stderr] as $key => $stream) {
            yield ",\"{$key}\":\"";
            if (self::isTextStream($stream)) {
                yield from self::textPieces($stream);
            } else {
                $base64[] = $key;
                yield from self::binaryPieces($stream);
            }
            yield '"';
        }
        yield $base64 === [] ? "}\n" : ',"base64":' . json_encode($base64, self::ENCODE_FLAGS) . "}\n";
    }

    /** @param array<mixed> $task */
    private static function decodeValue(string $key, array $task): mixed
    {
        if (!\array_key_exists($key, $task)) {
            throw new BadRecordException("\"{$key}\" is missing");
        }
        $value = $task[$key];
        $keys = $task['base64'] ?? [];
        if (!\is_array($keys) || !\in_array($key, $keys, true)) {
            return $value;
        }
        $bytes = \is_string($value) ? base64_decode($value, true) : false;

        return $bytes === false
            ? throw new BadRecordException("\"{$key}\" is listed in \"base64\", but is not valid base64")
            : $bytes;
    }

    private static function isText(string $bytes): bool
    {
        return preg_match('//u', $bytes) === 1;
    }

    /** @param resource $stream */
    private static function isTextStream(mixed $stream): bool
    {
        $isText = true;
        foreach (self::characters($stream) as $piece) {
            if (!self::isText($piece)) {
                $isText = false;
                break;
            }
        }
        rewind($stream);

        return $isText;
    }

    /**
     * @param resource $stream
     *
     * @return \Generator<int, string>
     */
    private static function textPieces(mixed $stream): \Generator
    {
        foreach (self::characters($stream) as $piece) {
            yield substr(json_encode($piece, self::ENCODE_FLAGS), 1, -1);
        }
    }

    /**
     * @param resource $stream
     *
     * @return \Generator<int, string>
     */
    private static function binaryPieces(mixed $stream): \Generator
    {
        while (($piece = (string) stream_get_contents($stream, self::PIECE_BYTES)) !== '') {
            yield base64_encode($piece);
        }
    }

    /**
     * @param resource $stream
     *
     * @return \Generator<int, string> pieces that don't split a UTF-8 character
     */
    private static function characters(mixed $stream): \Generator
    {
        $cut = '';
        while (($bytes = (string) stream_get_contents($stream, self::PIECE_BYTES)) !== '') {
            $piece = $cut . $bytes;
            $cut = '';
            if (preg_match(self::CUT_CHARACTER_PATTERN, substr($piece, -3), $match) === 1) {
                $cut = $match[0];
                $piece = substr($piece, 0, -\strlen($cut));
            }
            yield $piece;
        }
        if ($cut !== '') {
            yield $cut;
        }
    }
}
