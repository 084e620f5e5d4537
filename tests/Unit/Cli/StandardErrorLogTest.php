<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;

final class StandardErrorLogTest extends TestCase
{
    public function testAJsonEntryHasTheRequestAndTheOutermostException(): void
    {
        $entry = json_decode(self::logged('true'), true, 3, \JSON_THROW_ON_ERROR);

        self::assertIsArray($entry);
        self::assertSame('id7', $entry['request_id'] ?? null);
        self::assertSame('GET', $entry['method'] ?? null);
        self::assertSame('/a', $entry['target'] ?? null);
        self::assertSame('192.0.2.7', $entry['client_ip'] ?? null);
        self::assertSame('DomainException', $entry['exception_class'] ?? null);
        self::assertSame('outer', $entry['exception_message'] ?? null);
        self::assertSame('Command line code', $entry['exception_file'] ?? null);
        self::assertSame(1, $entry['exception_line'] ?? null);
        self::assertIsString($entry['exception'] ?? null);
        self::assertStringStartsWith('RuntimeException: inner', $entry['exception']);
    }

    /** @param non-empty-string $end */
    #[TestWith(['id7', ' GET /a failed (request id id7)'])]
    #[TestWith(['', ' GET /a failed'])]
    public function testALineOfTextEndsWithTheRequestIdIfThereIsOne(string $id, string $end): void
    {
        self::assertStringEndsWith($end, explode("\n", self::logged('false', $id))[0]);
    }

    /** @param non-empty-string $duration */
    #[TestWith(['INF', 'INF'])]
    #[TestWith(['-INF', '-INF'])]
    #[TestWith(['NAN', 'NAN'])]
    #[TestWith(['0.12345678', 0.123457])]
    public function testANumberThatJsonLacksIsLoggedAsText(string $duration, string|float $logged): void
    {
        $entry = json_decode(self::logged('true', context: "'duration' => {$duration}"), true, 3, \JSON_THROW_ON_ERROR);

        self::assertIsArray($entry);
        self::assertSame(['GET /a failed', $logged], [$entry['message'] ?? null, $entry['duration'] ?? null]);
    }

    private static function logged(string $json, string $id = 'id7', string $context = "'duration' => 1"): string
    {
        $autoload = var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true);
        $code = "require {$autoload}; (new Spindle\\Cli\\Internal\\StandardErrorLog({$json}, false, false))->error("
            . "'{method} {target} failed', ['request_id' => '{$id}', 'method' => 'GET', 'target' => '/a',"
            . " 'client_ip' => '192.0.2.7', {$context},"
            . " 'exception' => new DomainException('outer', 0, new RuntimeException('inner'))]);";
        $process = proc_open([\PHP_BINARY, '-r', $code], [2 => ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        $text = (string) stream_get_contents($pipes[2]);
        proc_close($process);

        return $text;
    }
}
