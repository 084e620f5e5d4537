<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Sem;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\CommandTemplate;
use Spindle\Cli\Internal\Run\JobsOption;
use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Input\InputInterface;

final class SemOptions
{
    public const WORDS = 'words';

    /** Default of --id without a terminal, as in GNU parallel. With a terminal, the terminal's name is the default. */
    private const NO_TERMINAL = 'not a tty';

    /**
     * @param list<string> $command      a program and its arguments; empty to wait for the end of all commands
     * @param int          $limit        largest number of commands that run at the same time
     * @param float        $timeout      maximum seconds to wait for the semaphore; INF for no maximum
     * @param bool         $startsAnyway whether the command starts after $timeout even if the semaphore is not free
     */
    private function __construct(
        public readonly string $name,
        public readonly array $command,
        public readonly int $limit,
        public readonly float $timeout,
        public readonly bool $startsAnyway,
        public readonly bool $isForeground,
        public readonly bool $isUngrouped,
    ) {}

    /** @throws UsageException */
    public static function of(InputInterface $input): self
    {
        $given = new GivenOptions($input);
        $given->rejectTogether('bg', 'fg', 'which does not wait for the command');
        /** @var list<string> $words */
        $words = $input->getArgument(self::WORDS);
        if ($given->flag('wait') !== ($words === [])) {
            throw new UsageException($words === []
                ? 'give a command, or --wait to wait until all commands have ended'
                : 'option --wait: nothing is started; remove the command');
        }
        [$timeout, $startsAnyway] = self::timeout($given);

        return new self(
            $given->text('id') ?? self::terminal(),
            $words === [] ? [] : self::command($words),
            $given->flag('wait') ? 1 : self::limit($given),
            $timeout,
            $startsAnyway,
            $given->flag('fg'),
            $given->flag('ungroup'),
        );
    }

    private static function terminal(): string
    {
        $name = \function_exists('posix_ttyname') ? @posix_ttyname(0) : false;

        return $name === false ? self::NO_TERMINAL : $name;
    }

    /**
     * @param non-empty-list<string> $words
     *
     * @return list<string>
     */
    private static function command(array $words): array
    {
        $command = CommandTemplate::fromWords($words, addsValues: false)->command([], 1, 1);

        return $command->line === null ? $command->arguments : ['/bin/sh', '-c', '--', $command->line];
    }

    private static function limit(GivenOptions $given): int
    {
        $limit = JobsOption::parse($given->text('jobs') ?? '1')->current;
        if ($limit > Semaphore::MAX_HOLDERS) {
            throw UsageException::option('--jobs', (string) $limit, 'at most ' . Semaphore::MAX_HOLDERS);
        }

        return $limit === JobsOption::UNLIMITED ? Semaphore::MAX_HOLDERS : $limit;
    }

    /** @return array{float, bool} $timeout and $startsAnyway of the constructor */
    private static function timeout(GivenOptions $given): array
    {
        $value = $given->text('st') ?? '0';
        $startsAnyway = $value[0] !== '-';
        $allowed = Duration::FORM . '; write - before the time to start nothing after that time';
        $seconds = Duration::parse($startsAnyway ? $value : substr($value, 1))
            ?? throw UsageException::option('--st', $value, $allowed);

        return [$seconds > 0 ? $seconds : \INF, $startsAnyway];
    }
}
