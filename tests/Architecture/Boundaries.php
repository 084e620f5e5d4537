<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPat\Selector\Selector;
use PHPat\Test\Attributes\TestRule;
use PHPat\Test\Builder\Rule;
use PHPat\Test\PHPat;

/** Rules for which namespace may use which. PHPStan checks them (composer stan). */
final class Boundaries
{
    public const CAPABILITIES = ['Command', 'Worker', 'Postgres', 'Http', 'Remote', 'Cli'];

    /** Folders of Spindle\Cli\Internal with the classes of one command. */
    private const CLI_COMMANDS = ['Run', 'Serve', 'Work', 'Queue', 'Bench'];

    /** Capabilities that a capability may use; none by default. */
    public const MAY_USE = [
        'Remote' => ['Worker', 'Command'],
        'Cli' => self::CAPABILITIES,
    ];

    /** @return iterable<string, Rule> */
    #[TestRule]
    public function internalsAreUsedOnlyInside(): iterable
    {
        foreach (self::CAPABILITIES as $capability) {
            yield $capability => PHPat::rule()
                ->classes(Selector::inNamespace('Spindle'))
                ->excluding(Selector::inNamespace("Spindle\\{$capability}"), Selector::inNamespace('Spindle\Tests'))
                ->shouldNot()->dependOn()
                ->classes(Selector::inNamespace("Spindle\\{$capability}\\Internal"))
                ->because("Spindle\\{$capability}\\Internal is the machinery of Spindle\\{$capability} alone");
        }
    }

    /** @return iterable<string, Rule> */
    #[TestRule]
    public function capabilitiesDoNotKnowEachOther(): iterable
    {
        foreach (self::CAPABILITIES as $capability) {
            $others = array_diff(self::CAPABILITIES, [$capability], self::MAY_USE[$capability] ?? []);
            if ($others !== []) {
                yield $capability => PHPat::rule()
                    ->classes(Selector::inNamespace("Spindle\\{$capability}"))
                    ->shouldNot()->dependOn()
                    ->classes(...self::namespaces($others))
                    ->because('a capability stands on its own; Remote and Cli are where they meet');
            }
        }
    }

    /** @return iterable<string, Rule> */
    #[TestRule]
    public function onlyTheConsoleApplicationKnowsTheCommandsOfTheCli(): iterable
    {
        foreach (self::CLI_COMMANDS as $command) {
            yield $command => PHPat::rule()
                ->classes(Selector::inNamespace('Spindle\Cli\Internal'))
                ->excluding(Selector::inNamespace("Spindle\\Cli\\Internal\\{$command}"))
                ->shouldNot()->dependOn()
                ->classes(Selector::inNamespace("Spindle\\Cli\\Internal\\{$command}"))
                ->because('what several commands use is in Spindle\Cli\Internal itself');
        }
    }

    #[TestRule]
    public function whatIsSharedKnowsNoCapability(): Rule
    {
        return PHPat::rule()
            ->classes(Selector::inNamespace('Spindle\Internal'), Selector::classname('/^Spindle\\\\[^\\\\]+$/', true))
            ->shouldNot()->dependOn()
            ->classes(...self::namespaces(self::CAPABILITIES))
            ->because('all capabilities stand on it');
    }

    #[TestRule]
    public function theLibraryKnowsNeitherItsTestsNorItsBenchmarks(): Rule
    {
        return PHPat::rule()
            ->classes(Selector::inNamespace('Spindle'))
            ->excluding(Selector::inNamespace('Spindle\Tests'), Selector::inNamespace('Spindle\Bench'))
            ->shouldNot()->dependOn()
            ->classes(Selector::inNamespace('Spindle\Tests'), Selector::inNamespace('Spindle\Bench'))
            ->because('neither is there where Spindle is installed');
    }

    /**
     * @param array<string> $capabilities
     * @return list<\PHPat\Selector\SelectorInterface>
     */
    private static function namespaces(array $capabilities): array
    {
        return array_values(array_map(
            static fn(string $capability) => Selector::inNamespace("Spindle\\{$capability}"),
            $capabilities,
        ));
    }
}
