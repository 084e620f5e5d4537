<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\LauncherException;
use Spindle\Tests\DestroysPoolFirst;
use Spindle\Tests\EndsInTime;

/** Tests destructors that use a pool whose launcher PHP has already destroyed. */
final class DestructorTest extends TestCase
{
    use DestroysPoolFirst;
    use EndsInTime;

    /** @return iterable<string, array{string, string}> use in the destructor, output */
    public static function uses(): iterable
    {
        yield 'close()' => ['$this->pool->close()', ''];
        yield 'statistics()' => ['$this->pool->statistics()["in_use"]', '0'];
        if (\PHP_VERSION_ID >= 80400) {
            $destroyed = LauncherException::destroyed([null])->getMessage();
            $closed = LauncherException::closed()->getMessage();
            yield 'await()' => ['$this->future->await()', $destroyed];
            yield 'execute()' => ['$this->pool->execute(Command::of("true"))->exitCode', $closed];
            yield 'maxConcurrency()' => ['$this->pool->maxConcurrency()', $closed];
        }
    }

    #[DataProvider('uses')]
    public function testADestructorAtTheEndOfTheScriptLearnsThatTheLauncherIsDestroyed(
        string $use,
        string $output,
    ): void {
        self::assertSame($output, $this->printed($use, '$owner = null;'));
    }

    /** @return iterable<string, array{string, string}> use in the destructor, output */
    public static function usesInFork(): iterable
    {
        yield 'close()' => ['$this->pool->close()', ''];
        if (\PHP_VERSION_ID >= 80400) {
            yield 'await()' => ['$this->future->await()', LauncherException::forked()->getMessage()];
        }
    }

    #[DataProvider('usesInFork')]
    #[RequiresPhpExtension('pcntl')]
    public function testADestructorOfAForkLearnsThatTheCommandsBelongToTheParentProcess(
        string $use,
        string $output,
    ): void {
        $end = <<<'PHP'
            if (pcntl_fork() === 0) {
                $owner = null;
                exit;
            }
            pcntl_wait($status);
            echo ' ', $owner->pool->statistics()['in_use'];
            pcntl_exec('/bin/true'); // ends the process without destructors
            PHP;

        self::assertSame("{$output} 1", $this->printed($use, $end));
    }

    /** Returns the output of a script at whose end PHP destroys the launcher before the pool's owner. */
    private function printed(string $use, string $end): string
    {
        $work = <<<'PHP'
            $owner->pool->execute(Command::of('true'));
            $command = static fn(CommandPool $pool) => $pool->execute(Command::of('sleep', '60'));
            $owner->future = Amp\async($command, $owner->pool)->ignore();
            unset($command);
            Amp\delay(0);
            PHP;
        $imports = 'Spindle\Command\{Command, CommandPool}';
        $process = $this->destroying($imports, 'new CommandPool(1)', "{$work}\n{$end}", $use);
        self::assertSame('', $process->getErrorOutput());

        return $process->getOutput();
    }
}
