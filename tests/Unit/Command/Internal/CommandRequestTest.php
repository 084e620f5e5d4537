<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command\Internal;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\Internal\CaptureStore;
use Spindle\Command\Internal\CommandRequest;
use Spindle\Command\Internal\Execution;
use Spindle\Command\Internal\PendingCommand;
use Spindle\Internal\Launcher\Environment;

final class CommandRequestTest extends TestCase
{
    #[DataProvider('largeCommands')]
    public function testALauncherDoesNotGetACommandThatNoSystemAllows(Command $command): void
    {
        $pending = new PendingCommand(
            1,
            1,
            null,
            $command->withInput('input'),
            new Execution(),
            new CaptureStore(null),
            [],
        );

        self::assertLessThan(100, \strlen(CommandRequest::runFrame($pending)));
    }

    /** @return array<string, array{Command}> */
    public static function largeCommands(): array
    {
        $large = str_repeat('x', 9 << 20);

        return [
            'argument' => [Command::of('true', $large)],
            'arguments' => [Command::of('true', ...array_fill(0, 100, substr($large, 0, 100_000)))],
            'empty arguments' => [Command::of('true', ...array_fill(0, 1_100_000, ''))],
            'joined arguments' => [Command::ofJoined('true', str_repeat("\0", 1_100_000))],
            'shell line' => [Command::shell($large)],
            'variable' => [Command::of('true')->withEnvironment(['LARGE' => $large])],
        ];
    }

    public function testALauncherGetsOnlyAPartOfAVariableThatNoSystemAllows(): void
    {
        self::assertLessThan(
            5 << 20,
            \strlen(Environment::frame(['LARGE' => str_repeat('x', 9 << 20), 'SMALL' => '1'])),
        );
    }
}
