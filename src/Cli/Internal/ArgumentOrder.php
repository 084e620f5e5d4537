<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Input\InputDefinition;

/**
 * Ends the options of a command line at the first word that is not an option, as xargs and GNU parallel do. Options
 * after that word belong to the program. Symfony's parser would need a `--` there. Each option gets the form --name or
 * --name=value. So a value can begin with a dash, and an option can be called -0, which Symfony's parser does not
 * support.
 */
final class ArgumentOrder
{
    /**
     * @param array<array-key, string> $aliases   names of options, by letters that the definition can't have
     * @param array<string, string>    $singleUse reason why an option can't be repeated, by its name
     */
    public function __construct(
        private readonly InputDefinition $definition,
        private readonly array $aliases = [],
        private readonly array $singleUse = [],
    ) {}

    /**
     * @param list<string> $tokens the words after the command's name
     *
     * @return list<string> the same words with normalised options and a `--` before the rest
     *
     * @throws UsageException when an option is repeated that can be given only once
     */
    public function normalise(array $tokens): array
    {
        $options = [];
        while (($token = array_shift($tokens)) !== null) {
            if ($token === '--') {
                break;
            }
            if ($token === '' || $token[0] !== '-' || $token === '-') {
                array_unshift($tokens, $token);
                break;
            }
            array_push(
                $options,
                ...(str_starts_with($token, '--') ? $this->long($token, $tokens) : $this->short($token, $tokens)),
            );
        }

        $this->rejectRepeated($options);

        return [...$options, '--', ...$tokens];
    }

    /** @param list<string> $options */
    private function rejectRepeated(array $options): void
    {
        foreach ($this->singleUse as $name => $reason) {
            $given = array_filter($options, static fn(string $option): bool => str_starts_with($option, "--{$name}="));
            if (\count($given) > 1) {
                throw new UsageException("option --{$name}: can be given only once, because {$reason}");
            }
        }
    }

    /**
     * @param list<string> $following words after the option; its value is removed from them
     *
     * @return list<string>
     */
    private function long(string $token, array &$following): array
    {
        $name = substr($token, 2);
        if (
            str_contains($name, '=')
            || !$this->definition->hasOption($name)
            || !$this->takesValue($name)
            || $following === []
        ) {
            return [$token];
        }

        return ["--{$name}=" . array_shift($following)];
    }

    /**
     * Splits a word such as -kj8 into its options. The last option can have the rest of the word as its value. A
     * shortcut of several letters, such as -vvv, stays whole.
     *
     * @param list<string> $following
     *
     * @return list<string>
     */
    private function short(string $token, array &$following): array
    {
        if (\strlen($token) > 2 && $this->definition->hasShortcut(substr($token, 1))) {
            return [$token];
        }
        $options = [];
        for ($i = 1, $length = \strlen($token); $i < $length; ++$i) {
            $name = $this->nameOf($token[$i]);
            if ($name === null) {
                return [$token]; // Symfony's parser reports the error.
            }
            if (!$this->takesValue($name)) {
                $options[] = "--{$name}";
            } elseif ($i + 1 < $length) {
                return [...$options, "--{$name}=" . substr($token, $i + 1)];
            } else {
                return [...$options, ...$this->long("--{$name}", $following)];
            }
        }

        return $options;
    }

    private function nameOf(string $letter): ?string
    {
        if (isset($this->aliases[$letter])) {
            return $this->aliases[$letter];
        }

        return $this->definition->hasShortcut($letter)
            ? $this->definition->getOptionForShortcut($letter)->getName()
            : null;
    }

    private function takesValue(string $name): bool
    {
        return $this->definition->getOption($name)->acceptValue();
    }
}
