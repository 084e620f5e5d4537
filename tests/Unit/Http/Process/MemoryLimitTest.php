<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\SupervisorOptions;
use Spindle\Tests\OwnDirectory;

/** Each case runs in a separate PHP, because it needs certain PHP options. */
final class MemoryLimitTest extends TestCase
{
    use OwnDirectory;

    private const DEBIAN = "memory_limit = -1\n";

    /**
     * @return iterable<string, array{string, string, int, array<string, mixed>, int, string}> php.ini, options of PHP,
     *         processes, options, megabytes of the machine, the limit
     */
    public static function cases(): iterable
    {
        yield 'an equal share' => [self::DEBIAN, '', 4, [], 8_192, '1536M'];
        yield 'without php.ini' => ['', '', 4, [], 8_192, '1536M'];
        yield 'one process' => [self::DEBIAN, '', 1, [], 1_024, '768M'];
        yield 'never less than this' => [self::DEBIAN, '', 16, [], 512, '128M'];
        yield 'room above the size at which a process is replaced' => [
            self::DEBIAN,
            '',
            4,
            ['maxMemoryBytes' => 1 << 30],
            4_096,
            '2048M',
        ];
        yield 'twice the size at which a process is replaced would be no int' => [
            self::DEBIAN,
            '',
            4,
            ['maxMemoryBytes' => \PHP_INT_MAX],
            4_096,
            '8796093022207M',
        ];
        yield 'a limit in php.ini' => ["memory_limit = 99M\n", '', 4, [], 8_192, 'null'];
        yield 'a limit on the command line' => [self::DEBIAN, '-d memory_limit=99M', 4, [], 8_192, 'null'];
        yield 'no limit on the command line' => [self::DEBIAN, '-d memory_limit=-1', 4, [], 8_192, 'null'];
        yield 'no limit on the command line, in one word' => [self::DEBIAN, '-dmemory_limit=-1', 4, [], 8_192, 'null'];
        yield 'a limit that was set at run time' => [
            self::DEBIAN,
            '-d auto_prepend_file=prepended.php',
            4,
            [],
            8_192,
            'null',
        ];
        yield 'a machine that does not say' => [self::DEBIAN, '', 4, [], 0, 'null'];
        yield 'the maximum of PHP 8.5' => [
            '',
            '-d max_memory_limit=256M',
            4,
            [],
            8_192,
            \PHP_VERSION_ID >= 80500 ? '256M' : '1536M',
        ];
        yield 'an option' => ["memory_limit = 99M\n", '-d memory_limit=98M', 4, ['memoryLimit' => '64M'], 8_192, '64M'];
        yield 'an option without a limit' => [self::DEBIAN, '', 4, ['memoryLimit' => '-1'], 8_192, '-1'];
    }

    /** @param array<string, mixed> $options */
    #[DataProvider('cases')]
    public function testTheLimitIsTheGivenOneOrAShareOfTheMemory(
        string $ini,
        string $php,
        int $processes,
        array $options,
        int $megabytes,
        string $expected,
    ): void {
        $configuration = $ini === '' ? '-n' : '-c ' . escapeshellarg($this->file('php.ini', $ini));
        mkdir($this->path('proc'));
        $this->file('proc/meminfo', $megabytes === 0 ? '' : 'MemTotal: ' . $megabytes * 1024 . " kB\n");
        $this->file('prepended.php', '<?php ini_set("memory_limit", "97M");');
        $script = $this->file(
            'script.php',
            '<?php require ' . var_export(\dirname(__DIR__, 4) . '/vendor/autoload.php', true) . ';'
                . '$options = new Spindle\Http\SupervisorOptions(...' . var_export($options, true) . ');'
                . 'echo Spindle\Http\Internal\Process\MemoryLimit::of($options, '
                    . $processes
                    . ', new Spindle\Internal\UsableMemory(__DIR__)) ?? "null";',
        );

        self::assertSame(
            $expected,
            shell_exec(
                'cd '
                    . escapeshellarg($this->path())
                    . '; '
                    . escapeshellarg(\PHP_BINARY)
                    . " {$configuration} {$php} "
                    . escapeshellarg($script)
                    . ' 2>&1',
            ),
        );
    }

    public function testALimitThatCanNotBeSetIsRefused(): void
    {
        $autoload = var_export(\dirname(__DIR__, 4) . '/vendor/autoload.php', true);
        $code = "require {$autoload}; try {"
            . '$options = new Spindle\Http\SupervisorOptions(memoryLimit: "64M");'
            . 'Spindle\Http\Internal\Process\MemoryLimit::of($options, 1);'
            . '} catch (Spindle\Http\SupervisorException $refused) { echo $refused->getMessage(); }';
        $php = escapeshellarg(\PHP_BINARY) . ' -n -d disable_functions=ini_set -r ' . escapeshellarg($code);

        self::assertSame(
            'The option memoryLimit needs ini_set(), which disable_functions in php.ini disables. Set memory_limit '
                . 'in php.ini instead',
            shell_exec("{$php} 2>&1"),
        );
    }

    /** @return iterable<string, array{string}> */
    public static function mistakes(): iterable
    {
        yield 'nothing' => [''];
        yield 'a word' => ['all'];
        yield 'too little' => ['31M'];
        yield 'too little in bytes' => ['1000000'];
        yield 'another negative number' => ['-2'];
        yield 'too much' => ['9999999999G'];
        yield 'more behind it' => ["64M\n"];
    }

    #[DataProvider('mistakes')]
    public function testAnInvalidLimitIsRefused(string $limit): void
    {
        $this->expectException(\ValueError::class);

        new SupervisorOptions(memoryLimit: $limit);
    }
}
