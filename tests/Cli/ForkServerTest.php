<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\AssertionFailedError;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Fork\ForkServer;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\OwnDirectory;
use Symfony\Component\Process\Process;

/** Shows that test cases of this folder, which run in forks, find the same state as in a separate process. */
#[RequiresPhp('< 8.3')]
#[RequiresPhpExtension('pcntl')]
final class ForkServerTest extends TestCase
{
    use OwnDirectory;

    private const SCRIPT = <<<'PHP'
        <?php
        $kind = static fn($stream): int => fstat($stream)['mode'] & 0170000;
        fwrite(STDOUT, json_encode([
            array_map(bin2hex(...), $argv), $argc, $argv === $_SERVER['argv'],
            getenv('GIVEN'), $_SERVER['GIVEN'], getenv('PATH'), getcwd(), __FILE__,
            array_keys($GLOBALS), $kind(STDIN), $kind(STDOUT), $kind(STDERR), md5(stream_get_contents(STDIN)),
            ini_get('display_errors'), error_reporting(), class_exists('Spindle\Cli\ConsoleApplication', false),
        ]) . "\n");
        echo "echoed\n";
        echo getenv('GONE') === false ? "gone\n" : "there\n";
        file_put_contents('php://stderr', "error\n");
        echo $undefined;
        register_shutdown_function(static fn() => fwrite(STDERR, "the end\n"));
        exit(7);
        PHP;

    public function testAScriptFindsInAForkWhatAProcessOfItsOwnWouldGiveIt(): void
    {
        $script = $this->file('script.php', self::SCRIPT);
        $input = random_bytes(300_000);
        putenv('GONE=1');
        ForkServer::run($script, [], $this->path(), ['GIVEN' => 'before'], '');
        putenv('GONE');
        $options = ['error_reporting=-1', 'display_errors=stderr', 'log_errors=0', 'html_errors=0'];
        $prepended = \dirname(__DIR__, 2) . '/vendor/autoload.php';
        $command = [\PHP_BINARY, ...array_merge(...array_map(static fn(string $one): array => ['-d', $one], $options))];
        $process = new Process(
            [...$command, '-d', "auto_prepend_file={$prepended}", $script, 'a', "b\n\xff", ''],
            $this->path(),
            ['GIVEN' => 'value'],
            $input,
        );
        $process->run();

        $result = ForkServer::run($script, ['a', "b\n\xff", ''], $this->path(), ['GIVEN' => 'value'], $input);

        self::assertEquals(ProgramResult::of($process), $result);
        self::assertSame(7, $result->getExitCode());
        self::assertStringContainsString("\nechoed\ngone\n", $result->getOutput());
        self::assertStringContainsString('Undefined variable $undefined', $result->getErrorOutput());
    }

    public function testASignalThatEndsAScriptCountsAs128MoreThanItsNumber(): void
    {
        $script = $this->file('script.php', '<?php posix_kill(getmypid(), SIGKILL);');

        self::assertEquals(new ProgramResult(137, '', ''), ForkServer::run($script, [], $this->path()));
    }

    public function testMoreOutputThanAPipeHoldsComesWhole(): void
    {
        $body = 'for ($i = 0; $i < 99; ++$i) { echo str_repeat("o", 9999); fwrite(STDERR, str_repeat("e", 9999)); }';
        $script = $this->file('script.php', "<?php {$body}");

        self::assertEquals(
            new ProgramResult(0, str_repeat('o', 99 * 9999), str_repeat('e', 99 * 9999)),
            ForkServer::run($script, [], $this->path()),
        );
    }

    public function testAScriptThatEndsTheServerFailsAlone(): void
    {
        $fatal = $this->file('fatal.php', '<?php posix_kill(posix_getppid(), SIGKILL); sleep(60);');
        $script = $this->file('script.php', '<?php echo "there";');
        $failure = null;
        try {
            ForkServer::run($fatal, [], $this->path());
        } catch (AssertionFailedError $failure) {
        }

        self::assertStringContainsString('The fork server has ended', $failure?->getMessage() ?? '');
        self::assertEquals(new ProgramResult(0, 'there', ''), ForkServer::run($script, [], $this->path()));
    }
}
