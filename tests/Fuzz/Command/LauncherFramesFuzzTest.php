<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Command;

use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\LauncherException;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

/** The pool reads the same frames in any pieces. */
final class LauncherFramesFuzzTest extends TidyTestCase
{
    use OwnDirectory;

    private const COMMANDS = 4;

    public function testAnySplitOfTheBytesHasTheSameResults(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds() as $_) {
            [$answer, $expected] = self::answer();
            foreach ([1, 7, 500, 70_000] as $longest) {
                self::assertSame(
                    $expected,
                    $this->resultsOf($answer, array_map(\strlen(...), Splits::random($answer, $longest))),
                );
            }
        }
    }

    public function testATornFrameBeforeTheEndIsADeath(): void
    {
        mt_srand(Scale::seed());
        [$answer] = self::answer();
        $this->expectException(LauncherException::class);
        $this->resultsOf(substr($answer, 0, -1), [\strlen($answer)], false);
    }

    public function testWhatIsNoFrameIsADeath(): void
    {
        mt_srand(Scale::seed());
        $answer = LauncherProtocol::frame(LauncherProtocol::READY, 0, pack('VV', 1, 1000) . 'scripted')
            . 'PHP Warning: what is this?';
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessage('it wrote bytes that are not a frame: "PHP Warni');
        $this->resultsOf($answer, array_map(\strlen(...), Splits::random($answer, 70)));
    }

    /** @return array{string, list<array{int, string, string}>} bytes, and the results that the pool must return */
    private static function answer(): array
    {
        $out = $errors = array_fill(1, self::COMMANDS, '');
        $ended = [];
        $frames = LauncherProtocol::frame(LauncherProtocol::READY, 0, pack('VV', 1, 1000) . 'scripted');
        while (\count($ended) < self::COMMANDS) {
            $id = mt_rand(1, self::COMMANDS);
            $bytes = Splits::bytes(mt_rand(0, 50));
            if (isset($ended[$id])) {
                // The pool must ignore frames for a command that has ended.
                $frames .= LauncherProtocol::frame(LauncherProtocol::STDOUT, $id, 'late');
            } elseif (mt_rand(0, 3) > 0) {
                $isError = mt_rand(0, 1) === 1;
                $bytes = mt_rand(0, 50) === 0 ? str_repeat($bytes . 'x', 30_000) : $bytes;
                $frames .= LauncherProtocol::frame(
                    $isError ? LauncherProtocol::STDERR : LauncherProtocol::STDOUT,
                    $id,
                    $bytes,
                );
                $isError ? $errors[$id] .= $bytes : $out[$id] .= $bytes;
            } else {
                $ended[$id] = $code = mt_rand(0, 255);
                $frames .= LauncherProtocol::frame(
                    LauncherProtocol::EXITED,
                    $id,
                    pack('CllddPV', 0, $code, 0, 1.0, 2.0, 0, \strlen($bytes)) . "{$bytes}end",
                );
                $out[$id] .= $bytes;
                $errors[$id] .= 'end';
            }
        }
        ksort($ended);

        return [
            $frames,
            array_map(
                static fn(int $id, int $code): array => [$code, hash('xxh64', $out[$id]), hash('xxh64', $errors[$id])],
                array_keys($ended),
                $ended,
            ),
        ];
    }

    /**
     * @param list<int> $lengths lengths of the pieces
     * @param bool      $waits   whether the launcher runs until the pool is gone
     *
     * @return list<array{int|null, string, string}>
     */
    private function resultsOf(string $answer, array $lengths, bool $waits = true): array
    {
        $this->file('answer', $answer);
        $this->file('lengths', implode(',', $lengths));
        $script = escapeshellarg(__DIR__ . '/scripted-launcher.php');
        $php = $this->script(
            'php',
            ($waits ? 'exec ' : '')
                . escapeshellarg(\PHP_BINARY)
                . " {$script} {$this->path()} "
                . self::COMMANDS
                . ($waits ? '' : ' < /dev/null'),
        );
        $results = [];
        foreach ((new CommandPool(self::COMMANDS, 0, new CommandPoolOptions(php: $php)))->runInOrder(
            array_fill(0, self::COMMANDS, Command::of('true')),
        ) as $result) {
            $results[] = [$result->exitCode, hash('xxh64', $result->stdout()), hash('xxh64', $result->stderr())];
        }

        return $results;
    }
}
