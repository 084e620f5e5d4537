<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Work;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Work\OptionNames;
use Spindle\LauncherException;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerStartException;

final class OptionNamesTest extends TestCase
{
    /** @return iterable<string, array{\Throwable, string}> */
    public static function messages(): iterable
    {
        $advice = 'Check WorkerPoolOptions(bootstrap:)';
        yield 'a bootstrap that exits' => [
            WorkerStartException::ended('exit code 3', 'Oops', $advice),
            'A worker ended before it began a task (exit code 3). Check --bootstrap; its standard error ended with:'
                . ' Oops',
        ];
        yield 'a bootstrap that hangs' => [
            WorkerStartException::late(30.0, $advice),
            'A worker was not ready within 30 seconds. Check --bootstrap',
        ];
        yield 'a slow machine' => [
            WorkerStartException::late(30.0, ''),
            'A worker was not ready within 30 seconds',
        ];
        yield 'no PHP' => [
            LauncherException::noPhp('none of a, b is there. Install it; or set its path', 'WorkerPoolOptions'),
            "The pool needs PHP's command-line binary: none of a, b is there. Install it",
        ];
        yield 'launchers that end' => [
            LauncherException::neverReady('exit code 1', []),
            'Launchers ended repeatedly before they were ready (exit code 1)',
        ];
        yield 'a large result' => [
            UnserializableException::at('$x', 'long', advice: 'raise WorkerPoolOptions::$maxResultBytes'),
            "\$x is long, which can't be sent to another process: raise --max-result",
        ];
        yield 'another message' => [
            LauncherException::cannotStart('no (processes)'),
            'The launcher could not be started: no (processes)',
        ];
    }

    #[DataProvider('messages')]
    public function testAMessageNamesTheOptionsOfTheCommandAndNoneOfPhpCode(\Throwable $thrown, string $message): void
    {
        self::assertSame($message, OptionNames::in($thrown->getMessage()));
    }
}
