<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Internal\UsableMemory;
use Spindle\Tests\Http\ServeTestCase;

/** The memory_limit of the processes of `spindle serve`. */
#[RequiresPhpExtension('pcntl')]
final class ServeMemoryTest extends ServeTestCase
{
    private const APP = 'return static fn($request) => Spindle\Http\Response::text(ini_get("memory_limit"));';

    public function testWithoutALimitAProcessHasAShareOfTheMemory(): void
    {
        $ini = $this->file('php.ini', "memory_limit = -1\n");
        $share = (int) ((int) (new UsableMemory())->bytes() * 0.75 / 3);
        $server = $this->serve(self::APP, ['--processes', '3'], ['-c', $ini]);

        self::assertSame(max(128, intdiv($share, 1 << 20)) . 'M', $limit = $this->get()->body);
        $server->signal(\SIGHUP);
        $this->awaitLogged('Reloaded');
        self::assertSame($limit, $this->get()->body);
    }

    /** @return iterable<string, array{list<string>, list<string>, string}> options, options of PHP, the limit */
    public static function limits(): iterable
    {
        yield 'the option' => [['--memory-limit', '77M'], [], '77M'];
        yield 'the option before that of PHP' => [['--memory-limit', '77M'], ['-d', 'memory_limit=99M'], '77M'];
        yield 'none by the option' => [['--memory-limit=-1'], ['-d', 'memory_limit=99M'], '-1'];
        yield 'that of PHP' => [[], ['-d', 'memory_limit=99M'], '99M'];
        yield 'none by that of PHP' => [[], ['-d', 'memory_limit=-1'], '-1'];
    }

    /**
     * @param list<string> $options
     * @param list<string> $php
     */
    #[DataProvider('limits')]
    public function testAGivenLimitIsUsed(array $options, array $php, string $limit): void
    {
        $this->serve(self::APP, ['--processes', '1', ...$options], $php);

        self::assertSame($limit, $this->get()->body);
    }
}
