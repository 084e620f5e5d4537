<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Command\Command;

/**
 * A command with replacement strings, as GNU parallel has them: {} the input, {.} without its extension, {/} its base
 * name, {//} its folder, {/.} the base name without extension, {#} the job's number, {%} the number of its slot.
 *
 * Several words are a program and its arguments; no shell sees them. A single word with white space or with a character
 * that is special to a shell is a line for the shell; what is put into it is quoted.
 */
final class CommandTemplate
{
    private const REPLACEMENT = '~\{(//|/\.|/|\.|#|%|)\}~';
    private const OF_THE_SHELL = "~[\\s|&;<>()$`\\\\\"'*?[\\]#\\~!]~";
    private const SLOT = '%';

    /** The number of a slot where there is none: in the job log. */
    private const ANY_SLOT = '{%}';

    /** @param non-empty-list<list<string>> $words each as text, replacement, text, replacement, ... */
    private function __construct(
        private readonly array $words,
        private readonly bool $isShellLine,
        private readonly bool $usesSlot,
    ) {}

    /** @param non-empty-list<string> $words */
    public static function fromWords(array $words): self
    {
        $isShellLine = \count($words) === 1
            && preg_match(self::OF_THE_SHELL, (string) preg_replace(self::REPLACEMENT, '', $words[0])) === 1;
        if (preg_match(self::REPLACEMENT, implode(' ', $words)) !== 1) {
            $isShellLine ? $words[0] .= ' {}' : $words[] = '{}';
        }

        return new self(
            array_map(self::parse(...), $words),
            $isShellLine,
            str_contains(implode(' ', $words), '{%}'),
        );
    }

    public function isShellLine(): bool
    {
        return $this->isShellLine;
    }

    public function usesSlot(): bool
    {
        return $this->usesSlot;
    }

    /**
     * @throws \ValueError when the system can't run it: it holds a NUL byte, or no program
     */
    public function command(string $input, int $sequence, int $slot): Command
    {
        return $this->expand($input, $sequence, (string) $slot);
    }

    /** What the job log has for a command: the same whatever slot it runs in. */
    public function text(string $input, int $sequence): string
    {
        return $this->expand($input, $sequence, self::ANY_SLOT)->toString();
    }

    public static function quote(string $text): string
    {
        return preg_match('~^[\w@%+=:,./-]+$~D', $text) === 1 ? $text : "'" . str_replace("'", "'\\''", $text) . "'";
    }

    private function expand(string $input, int $sequence, string $slot): Command
    {
        $words = [];
        foreach ($this->words as $parts) {
            $word = $parts[0];
            for ($i = 1, $count = \count($parts); $i < $count; $i += 2) {
                $value = self::value($parts[$i], $input, $sequence, $slot);
                $word .= ($this->isShellLine ? self::quote($value) : $value) . $parts[$i + 1];
            }
            $words[] = $word;
        }

        return $this->isShellLine ? Command::shell($words[0]) : Command::of(...$words);
    }

    private static function value(string $replacement, string $input, int $sequence, string $slot): string
    {
        return match ($replacement) {
            '' => $input,
            '.' => self::withoutExtension($input),
            '/' => self::baseName($input),
            '//' => $input === '' ? '.' : \dirname($input),
            '/.' => self::withoutExtension(self::baseName($input)),
            '#' => (string) $sequence,
            self::SLOT => $slot,
            default => throw new \LogicException("There is no replacement string {{$replacement}}"),
        };
    }

    private static function baseName(string $path): string
    {
        $slash = strrpos($path, '/');

        return $slash === false ? $path : substr($path, $slash + 1);
    }

    private static function withoutExtension(string $path): string
    {
        return (string) preg_replace('~\.[^/.]*$~D', '', $path);
    }

    /** @return list<string> */
    private static function parse(string $word): array
    {
        $parts = preg_split(self::REPLACEMENT, $word, -1, \PREG_SPLIT_DELIM_CAPTURE);

        return $parts === false ? [$word] : $parts;
    }
}
