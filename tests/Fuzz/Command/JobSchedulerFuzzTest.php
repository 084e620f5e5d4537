<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Command;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\Process\JobScheduler;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Scale;

/** The launcher reads the same frames in any pieces. */
final class JobSchedulerFuzzTest extends TestCase
{
    use EndsInTime;

    public function testAnySplitOfTheBytesHasTheSameEffect(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds() as $_) {
            $frames = self::frames();
            $whole = self::transcript([$frames]);
            foreach ([1, 3, 40, 1000, 70_000] as $longest) {
                self::assertSame($whole, self::transcript(Splits::random($frames, $longest)));
            }
        }
    }

    public function testATornFrameHasNoEffect(): void
    {
        mt_srand(Scale::seed());
        $frames = self::frames();
        $torn = substr(LauncherProtocol::frame(LauncherProtocol::RUN, 1000, self::job(['true'])), 0, -1);

        self::assertSame(self::transcript([$frames]), self::transcript([$frames . $torn]));
    }

    public function testAFrameOfNoKnownTypeEndsTheLauncher(): void
    {
        $this->expectException(\UnexpectedValueException::class);
        $this->expectExceptionMessage('unknown type 99');
        self::transcript([LauncherProtocol::frame(99, 1, 'x')]);
    }

    public function testWhatIsSaidOfCommandsThatAreNotThereIsPassedOver(): void
    {
        $frames = '';
        foreach ([
            [LauncherProtocol::INPUT, 'x'],
            [LauncherProtocol::INPUT_END, ''],
            [LauncherProtocol::CANCEL, ''],
            [LauncherProtocol::WITHDRAW, ''],
            [LauncherProtocol::OUTPUT_TAKEN, pack('V', 5)],
        ] as [$type, $payload]) {
            $frames .= LauncherProtocol::frame($type, 7, $payload);
        }

        self::assertSame(self::transcript([]), self::transcript([$frames]));
    }

    /** Returns frames of every type. Commands start after the last one, which sets how many may run at once. */
    private static function frames(): string
    {
        $frames = LauncherProtocol::frame(LauncherProtocol::ENVIRONMENT, 0, "A=1\0B=\xFF");
        $ids = range(1, 12);
        foreach ($ids as $id) {
            $flags = [
                0,
                LauncherProtocol::INPUT_INLINE,
                LauncherProtocol::INPUT_FOLLOWS,
                LauncherProtocol::STREAM_STDOUT,
                LauncherProtocol::DISCARD_STDERR,
            ][mt_rand(0, 4)];
            $arguments = [['program', Splits::argument(), ''], ['missing'], []][mt_rand(0, 2)];
            $frames .= LauncherProtocol::frame(
                LauncherProtocol::RUN,
                $id,
                self::job(
                    $arguments,
                    $flags,
                    $flags === LauncherProtocol::INPUT_INLINE ? Splits::bytes(mt_rand(0, 300)) : '',
                ),
            );
            for ($i = mt_rand(0, 2); $i > 0; --$i) {
                $frames .= self::remark(mt_rand(1, 12));
            }
        }

        return $frames
            . LauncherProtocol::frame(
                LauncherProtocol::CONFIGURE,
                0,
                pack('VVeCV', mt_rand(1, 5), 5, 0.5, mt_rand(0, 1), mt_rand(1, 100_000)),
            );
    }

    /** @param list<string> $arguments */
    private static function job(array $arguments, int $flags = 0, string $input = ''): string
    {
        $changes = mt_rand(0, 1) === 0 ? [] : ['X=' . Splits::argument(), 'Y'];
        $strings = implode("\0", ['/directory', 'the line', ...$changes, ...$arguments]);

        return pack(
            'VveeVVv',
            mt_rand(1, 3),
            $flags,
            mt_rand(0, 1) * 100.0,
            mt_rand(0, 1) * 50.0,
            \count($changes),
            \strlen($strings),
            0o022,
        ) . $strings . $input;
    }

    private static function remark(int $id): string
    {
        return match (mt_rand(0, 4)) {
            0 => LauncherProtocol::frame(LauncherProtocol::INPUT, $id, Splits::bytes(mt_rand(0, 3000))),
            1 => LauncherProtocol::frame(LauncherProtocol::INPUT_END, $id),
            2 => LauncherProtocol::frame(LauncherProtocol::CANCEL, $id),
            3 => LauncherProtocol::frame(LauncherProtocol::WITHDRAW, $id),
            default => LauncherProtocol::frame(LauncherProtocol::OUTPUT_TAKEN, $id, pack('V', mt_rand(0, 1000))),
        };
    }

    /**
     * @param list<string> $pieces
     *
     * @return array{list<string>, list<string>} calls of the backend, and frames for the pool without their times
     */
    private static function transcript(array $pieces): array
    {
        $backend = null;
        $scheduler = new JobScheduler(
            static function (JobScheduler $scheduler) use ($pieces, &$backend): ScriptedBackend {
                return $backend = new ScriptedBackend($scheduler, $pieces);
            },
            'token',
        );
        $scheduler->run();
        \assert($backend instanceof ScriptedBackend);
        $told = [];
        for ($at = 0; $at < \strlen($backend->sent); $at += 4 + $frame['length']) {
            /** @var array{length: int, type: int, job: int} $frame */
            $frame = unpack('Vlength/Ctype/Vjob', $backend->sent, $at);
            $payload = substr($backend->sent, $at + LauncherProtocol::HEADER_BYTES, $frame['length'] - 5);
            if ($frame['type'] === LauncherProtocol::EXITED) {
                $payload = substr_replace($payload, '', 9, 16);
            }
            $told[] = "{$frame['type']} {$frame['job']} " . bin2hex($payload);
        }

        return [$backend->asked, $told];
    }
}
