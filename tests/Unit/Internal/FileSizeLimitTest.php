<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\TemporaryCopy;
use Spindle\Internal\FileSizeLimit;
use Spindle\Internal\LineFile;
use Spindle\Remote\Internal\OutcomeFile;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Symfony\Component\HttpClient\Exception\TransportException;

/** Writes of a process with a file size limit of 1000 bytes. */
final class FileSizeLimitTest extends TestCase
{
    use OwnDirectory;

    private const WITHIN = ['prlimit', '--fsize=1000'];

    public function testAWriteBeyondTheLimitFails(): void
    {
        $written = Host::call(self::class . '::write', [$this->path('file')], self::WITHIN);

        self::assertSame([900, false, 'File too large', 100, 2000], $written);
        self::assertSame(1000, filesize($this->path('file')));
    }

    /** @return list<int|string|false|null> */
    public static function write(string $path): array
    {
        $file = fopen($path, 'w+');
        $sockets = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \assert($file !== false && $sockets !== false);

        return [
            FileSizeLimit::write($file, str_repeat('x', 900)),
            FileSizeLimit::write($file, str_repeat('x', 101)),
            error_get_last()['message'] ?? null,
            FileSizeLimit::write($file, str_repeat('x', 100)),
            FileSizeLimit::write($sockets[0], str_repeat('x', 2000)),
        ];
    }

    /** @return iterable<string, array{string, int, int|false}> */
    public static function inheritedFiles(): iterable
    {
        yield 'appended' => ['3>>', 3, false];
        yield 'appended as standard error' => ['2>>', 2, false];
        yield 'overwritten' => ['3<>', 3, 100];
        yield 'whose position another process has changed' => ['3>', 3, false];
    }

    #[DataProvider('inheritedFiles')]
    public function testAWriteToAnInheritedFileIsCheckedWhereItBegins(
        string $how,
        int $descriptor,
        int|false $written,
    ): void {
        $path = $this->file('inherited', str_repeat('x', 950));
        $within = [...self::WITHIN, 'sh', '-c', "exec \"\$@\" {$how} \"\$0\"", $path];

        self::assertSame($written, Host::call(self::class . '::writeInherited', [$descriptor], $within));
        clearstatcache();
        self::assertSame(950, filesize($path));
    }

    public static function writeInherited(int $descriptor): int|false
    {
        $stream = $descriptor === 2 ? \STDERR : fopen("php://fd/{$descriptor}", 'w');
        \assert($stream !== false);
        if ((fstat($stream)['size'] ?? 0) === 0) {
            exec('head -c 950 /dev/zero >&3');
        }

        return FileSizeLimit::write($stream, str_repeat('x', 100));
    }

    public function testAWriteThatMovesATemporaryStreamToAFileBeyondTheLimitFails(): void
    {
        $written = Host::call(self::class . '::writeTemporary', within: self::WITHIN);

        self::assertSame([3000, false, 500, false, 2_000_000, false], $written);
    }

    /** @return list<int|false> */
    public static function writeTemporary(): array
    {
        $written = [];
        $pieces = ['/maxmemory:5000' => [3000, 2000], '/maxmemory:100' => [500, 501], '' => [2_000_000, 97_152]];
        foreach ($pieces as $options => $sizes) {
            $stream = fopen("php://temp{$options}", 'w+');
            \assert($stream !== false);
            foreach ($sizes as $bytes) {
                $written[] = FileSizeLimit::write($stream, str_repeat('x', $bytes));
            }
        }

        return $written;
    }

    public function testATemporaryStreamIsCheckedWhereItIs(): void
    {
        $written = Host::call(self::class . '::writeSpecialTemporary', within: self::WITHIN);

        self::assertSame(['appended in memory' => 3000, 'in a file' => false], $written);
    }

    /** @return array<string, int|false> */
    public static function writeSpecialTemporary(): array
    {
        $appended = fopen('php://temp', 'a+');
        $passed = fopen('php://temp', 'w+');
        \assert($appended !== false && $passed !== false);
        fwrite($passed, 'x');
        // PHP moves the stream to a file, because the program needs a descriptor.
        $program = proc_open(['true'], [$passed], $pipes);
        \assert($program !== false);
        proc_close($program);

        return [
            'appended in memory' => FileSizeLimit::write($appended, str_repeat('x', 3000)),
            'in a file' => FileSizeLimit::write($passed, str_repeat('x', 3000)),
        ];
    }

    public function testLinesOfAnInheritedFileBeyondTheLimitAreLost(): void
    {
        $path = $this->file('log', str_repeat('x', 990));
        $within = [...self::WITHIN, 'sh', '-c', 'exec "$@" 2>> "$0"', $path];

        self::assertSame('File too large', Host::call(self::class . '::appendToStandardError', within: $within));
        self::assertSame(990, filesize($path));
    }

    public static function appendToStandardError(): ?string
    {
        return LineFile::standardError()->append('a line of a log');
    }

    public function testLinesBeyondTheLimitAreLostUntilTheFileIsTruncated(): void
    {
        $path = $this->file('log', str_repeat('x', 990));

        self::assertSame(
            ['File too large', null],
            Host::call(self::class . '::appendLines', [$path], self::WITHIN),
        );
        self::assertStringEqualsFile($path, "a line of a log\n");
    }

    /** @return list<?string> */
    public static function appendLines(string $path): array
    {
        $stream = fopen($path, 'a');
        \assert($stream !== false);
        $file = new LineFile($stream);
        $first = $file->append('a line of a log');
        file_put_contents($path, '');
        clearstatcache();

        return [$first, $file->append('a line of a log')];
    }

    public function testAnOutcomeBeyondTheLimitIsNotStored(): void
    {
        self::assertSame([[0, 900], null], Host::call(self::class . '::storeOutcomes', within: self::WITHIN));
    }

    /** @return list<?array{int, int}> */
    public static function storeOutcomes(): array
    {
        $file = new OutcomeFile();

        return [$file->write(str_repeat('x', 900)), $file->write(str_repeat('x', 900))];
    }

    public function testACopyOfABodyBeyondTheLimitFails(): void
    {
        $message = Host::call(self::class . '::copyBody', within: self::WITHIN);

        self::assertIsString($message);
        self::assertStringContainsString("its temporary copy can't be written", $message);
    }

    public static function copyBody(): string
    {
        $copy = new TemporaryCopy();
        try {
            for ($i = 0; $i < 100; ++$i) {
                $copy->add(str_repeat('x', 100_000));
            }
        } catch (TransportException $exception) {
            return $exception->getMessage();
        }

        return '';
    }
}
