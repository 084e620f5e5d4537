<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

use Spindle\Command\StartMethod;

/** Reads a script's options: `-n 5`, `-n5`, `--count 5` and `--count=5`. Unknown options are errors. */
final readonly class Options
{
    /** @param array<string, string|list<string>|null> $values */
    private function __construct(private array $values) {}

    /**
     * Reads options. For `-h` and `--help`, prints the usage and exits.
     *
     * @param list<string>                            $argv
     * @param array<string, string|list<string>|null> $defaults by name; one letter for `-n`, more for `--name`; null
     *                                                          for a flag, a list for an option that may be repeated
     *
     * @throws UsageException
     */
    public static function read(array $argv, array $defaults, string $usage): self
    {
        $arguments = \array_slice($argv, 1);
        if (array_intersect(['-h', '--help'], $arguments) !== []) {
            echo $usage;
            exit(0);
        }

        return self::parse($arguments, $defaults);
    }

    /**
     * @param list<string>                            $arguments
     * @param array<string, string|list<string>|null> $defaults  as for {@see read()}
     *
     * @throws UsageException
     */
    public static function parse(array $arguments, array $defaults): self
    {
        $values = $defaults;
        while (($argument = array_shift($arguments)) !== null) {
            if (preg_match(
                '/^(?:--(?<long>[a-z-]{2,})(?:=(?<text>.*))?|-(?<short>[a-z])(?<rest>.+)?)$/Ds',
                $argument,
                $match,
                \PREG_UNMATCHED_AS_NULL,
            ) !== 1) {
                throw new UsageException("option {$argument} does not exist; --help lists the options");
            }
            $name = $match['long'] ?? $match['short'] ?? '';
            $value = $match['text'] ?? $match['rest'] ?? null;
            if (!\array_key_exists($name, $defaults)) {
                throw new UsageException("option {$argument} does not exist; --help lists the options");
            }
            if ($defaults[$name] === null) {
                $values[$name] = 'yes';
                continue;
            }
            $value ??= array_shift($arguments)
                ?? throw new UsageException("option {$argument} needs a value; --help describes it");
            $values[$name] = \is_array($values[$name]) ? [...$values[$name], $value] : $value;
        }

        return new self($values);
    }

    public function text(string $name): string
    {
        return implode(',', $this->all($name));
    }

    /** @return list<string> all values of an option that may be repeated */
    public function all(string $name): array
    {
        return (array) ($this->values[$name] ?? []);
    }

    public function has(string $name): bool
    {
        return $this->text($name) !== '';
    }

    /**
     * Returns the file to write, '' for none. Creates the file.
     *
     * @throws UsageException when it can't be written
     */
    public function output(string $name): string
    {
        $file = $this->text($name);
        if ($file !== '' && !@touch($file)) {
            throw new UsageException(
                "option --{$name}: '{$file}' can't be written; give a file in an existing folder",
            );
        }

        return $file;
    }

    /** @throws UsageException when the value is not the name of a start method */
    public function start(): StartMethod
    {
        $name = $this->text('start-method');

        return StartMethod::tryFrom($name)
            ?? throw new UsageException(
                "option --start-method: '{$name}' is not allowed; give auto, posix_spawn or proc_open",
            );
    }

    /** @throws UsageException when the value is not a whole number of at least the minimum */
    public function int(string $name, int $minimum = 1): int
    {
        return self::toInt($name, $this->text($name), $minimum);
    }

    /** @return list<string> the parts between commas */
    public function list(string $name): array
    {
        return array_values(array_filter(
            array_map(trim(...), explode(',', $this->text($name))),
            static fn(string $part): bool => $part !== '',
        ));
    }

    /**
     * @return non-empty-list<int>
     *
     * @throws UsageException when there is none, or one is not a whole number of at least the minimum
     */
    public function ints(string $name, int $minimum = 0): array
    {
        $numbers = array_map(static fn(string $part): int => self::toInt($name, $part, $minimum), $this->list($name));

        return $numbers !== []
            ? $numbers
            : throw new UsageException(
                "option --{$name}: '' is not allowed; give one or more whole numbers, separated by commas",
            );
    }

    /**
     * @param non-empty-list<string> $allowed
     *
     * @return non-empty-list<string> the given names; all of them for "all"
     *
     * @throws UsageException
     */
    public function names(string $name, array $allowed): array
    {
        $names = $this->text($name) === 'all' ? $allowed : $this->list($name);
        $wrong = array_values(array_diff($names, $allowed));

        return $names !== [] && $wrong === []
            ? $names
            : throw new UsageException(\sprintf(
                "option --%s: '%s' is not allowed; give all, or some of %s",
                $name,
                $wrong[0] ?? '',
                implode(', ', $allowed),
            ));
    }

    /** @throws UsageException when the value is not a number of seconds */
    public function seconds(string $name): float
    {
        $text = $this->text($name);

        return preg_match('/^\d{1,6}(?:\.\d+)?$/D', $text) === 1 && (float) $text >= 0.1
            ? (float) $text
            : throw new UsageException("option --{$name}: '{$text}' is not allowed; give a number, at least 0.1");
    }

    private static function toInt(string $name, string $text, int $minimum): int
    {
        $dashes = \strlen($name) === 1 ? '-' : '--';
        if (preg_match('/^\d{1,15}$/D', $text) !== 1 || (int) $text < $minimum) {
            throw new UsageException(
                "option {$dashes}{$name}: '{$text}' is not allowed; give a whole number, at least {$minimum}",
            );
        }

        return (int) $text;
    }
}
