<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\Output;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Text;

/**
 * Captured output that is moved to files.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait KeepsLargeOutput
{
    public function testLargeOutputIsReadThroughStreamsOfTheirOwn(): void
    {
        $result = $this->execute($this->php('for ($i = 0; $i < 400_000; ++$i) { echo "line {$i}\n"; }'));
        $one = $result->stdoutStream();
        $other = $result->stdoutStream();

        self::assertSame("line 0\n", fgets($one));
        self::assertSame("line 1\n", fgets($one));
        self::assertSame("line 0\n", fgets($other), 'each stream starts at the beginning');
        fseek($one, -13, \SEEK_END);
        self::assertSame("\nline 399999\n", stream_get_contents($one));
        self::assertSame($result->stdout(), stream_get_contents($other, null, 0));
    }

    public function testAResultWithLargeOutputIsSerializedWithIt(): void
    {
        $result = $this->execute($this->php('echo str_repeat("ab", 1_000_000); fwrite(STDERR, "e");'));
        $copies = [unserialize(serialize($result)), clone $result];

        foreach ($copies as $copy) {
            self::assertInstanceOf(CommandResult::class, $copy);
            self::assertSame($result->stdout(), $copy->stdout());
            self::assertSame('e', $copy->stderr());
            self::assertSame($result->stdout(), stream_get_contents($copy->stdoutStream()));
        }
        self::assertSame(2_000_000, \strlen($result->stdout()));
    }

    public function testLargeOutputLeavesNoNameInTheTemporaryDirectory(): void
    {
        mkdir($this->path('spill'));
        $pool = $this->pool(1, temporaryDirectory: $this->path('spill'));
        $result = $pool->execute(Command::of('head', '-c', '3000000', '/dev/zero'));

        $held = array_filter(array_map(
            static fn(string $descriptor): string => (string) @readlink("/proc/self/fd/{$descriptor}"),
            Text::names('/proc/self/fd'),
        ), fn(string $target): bool => str_starts_with($target, $this->path('spill')));
        self::assertSame([], Text::names($this->path('spill')));
        self::assertCount(1, $held, 'it is in one file');
        self::assertStringEndsWith(' (deleted)', implode('', $held));
        self::assertSame(3_000_000, \strlen($result->stdout()));
    }

    public function testManyLargeResultsCanAllBeHeld(): void
    {
        $results = [];
        foreach ($this->pool(4)->run(array_fill(
            0,
            80,
            Command::of('head', '-c', '1100000', '/dev/zero'),
        )) as $key => $result) {
            $results[$key] = $result;
        }

        self::assertCount(80, $results);
        foreach ($results as $result) {
            self::assertSame(1_100_000, \strlen($result->stdout()));
        }
    }
}
