<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Input\InputDefinition;

/**
 * Ends the options of a command line where xargs and GNU parallel do: at the first word that is none, so that the options
 * after it are the program's own. Symfony's parser would take them for its own unless there is a `--`.
 *
 * On the way each option gets the form --name or --name=value, so that a value may begin with a dash, and an option may
 * be called -0, which Symfony's parser can't.
 */
final class ArgumentOrder
{
    /**
     * @param array<array-key, string> $aliases names of options by letters that the definition can't have
     * @param array<string, string>    $once    why an option cannot be repeated, by its name; of others the last counts
     */
    public function __construct(
        private readonly InputDefinition $definition,
        private readonly array $aliases = [],
        private readonly array $once = [],
    ) {}

    /**
     * @param list<string> $tokens what follows the command's name
     *
     * @return list<string>
     *
     * @throws UsageException when an option is repeated that cannot be
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
            array_push($options, ...(str_starts_with($token, '--') ? $this->long($token, $tokens) : $this->short($token, $tokens)));
        }

        $this->refuseRepeated($options);

        return [...$options, '--', ...$tokens];
    }

    /** @param list<string> $options */
    private function refuseRepeated(array $options): void
    {
        foreach ($this->once as $name => $reason) {
            $given = array_filter($options, static fn(string $option): bool => str_starts_with($option, "--{$name}="));
            if (\count($given) > 1) {
                throw new UsageException("option --{$name}: it can be given once; {$reason}");
            }
        }
    }

    /**
     * @param list<string> $following where a value is taken from
     *
     * @return list<string>
     */
    private function long(string $token, array &$following): array
    {
        $name = substr($token, 2);
        if (str_contains($name, '=') || !$this->definition->hasOption($name) || !$this->takesValue($name) || $following === []) {
            return [$token];
        }

        return ["--{$name}=" . array_shift($following)];
    }

    /**
     * A letter, or several in one word, of which the last may take the rest of the word for its value; or a shortcut of
     * several letters, such as -vvv.
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
                return [$token]; // For Symfony's parser to complain about.
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

        return $this->definition->hasShortcut($letter) ? $this->definition->getOptionForShortcut($letter)->getName() : null;
    }

    private function takesValue(string $name): bool
    {
        return $this->definition->getOption($name)->acceptValue();
    }
}
