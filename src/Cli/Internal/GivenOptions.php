<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Input\InputInterface;

/** Typed access to the options of a command line. */
final class GivenOptions
{
    /** Argument of `spindle run`: the command template, and ::: with a list of arguments. */
    public const WORDS = 'template';

    /** Separates the command template from its arguments. */
    private const ARGUMENT_SEPARATOR = ':::';

    /** GNU parallel's words for further lists of arguments. Without a check, they would be used as arguments. */
    private const UNSUPPORTED_SEPARATORS = ['::::', ':::+', '::::+'];

    public function __construct(private readonly InputInterface $input) {}

    /**
     * @return array{list<string>, list<string>|null} the command template; the arguments after `:::`, null without it
     *
     * @throws UsageException when there are several lists of arguments
     */
    public function words(): array
    {
        /** @var list<string> $words */
        $words = $this->input->getArgument(self::WORDS);
        foreach ($words as $word) {
            if (\in_array($word, self::UNSUPPORTED_SEPARATORS, true)) {
                throw self::severalLists($word);
            }
        }
        $position = array_search(self::ARGUMENT_SEPARATOR, $words, true);
        if ($position === false) {
            return [$words, null];
        }
        $arguments = \array_slice($words, $position + 1);

        return \in_array(self::ARGUMENT_SEPARATOR, $arguments, true)
            ? throw self::severalLists(self::ARGUMENT_SEPARATOR)
            : [\array_slice($words, 0, $position), $arguments];
    }

    public function flag(string $name): bool
    {
        return $this->input->getOption($name) === true;
    }

    /** @throws UsageException when the value is empty */
    public function text(string $name): ?string
    {
        $value = $this->input->getOption($name);
        if ($value === '') {
            throw new UsageException("option --{$name}: the value is empty; give a value");
        }

        return \is_string($value) ? $value : null;
    }

    /** @throws UsageException when the value is not a natural number of at most nine digits */
    public function number(string $name, string $allowed): ?int
    {
        $value = $this->text($name);
        if ($value !== null && preg_match('/^\d{1,9}$/D', $value) !== 1) {
            throw UsageException::option("--{$name}", $value, $allowed);
        }

        return $value === null ? null : (int) $value;
    }

    /** @throws UsageException when the value is not a duration */
    public function duration(string $name): ?float
    {
        $value = $this->text($name);

        return $value === null
            ? null
            : Duration::parse($value) ?? throw UsageException::option("--{$name}", $value, Duration::FORM);
    }

    /**
     * Returns whether the log is JSON.
     *
     * @throws UsageException
     */
    public function json(): bool
    {
        $format = $this->text('log-format') ?? 'text';

        return match ($format) {
            'text' => false,
            'json' => true,
            default => throw UsageException::option('--log-format', $format, 'text or json'),
        };
    }

    /** @throws UsageException when both flags are given */
    public function rejectTogether(string $name, string $other, string $reason): void
    {
        if ($this->flag($name) && $this->flag($other)) {
            throw new UsageException("option --{$other}: can't be combined with --{$name}, {$reason}");
        }
    }

    private static function severalLists(string $word): UsageException
    {
        return new UsageException(
            "argument '{$word}': only one list of arguments is supported; give it after one :::,"
            . ' or as a file with -a FILE',
        );
    }
}
