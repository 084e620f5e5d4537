<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\TerminalText;

final class ScreenStyle
{
    private const SEQUENCE_PATTERN = '/\e\[[\d;]*m/';

    public function __construct(public readonly bool $colours, public readonly bool $unicode) {}

    /** @param bool $colours whether the command line allows colours */
    public static function fromEnvironment(bool $colours): self
    {
        // The first of these variables that is not empty is the locale: setlocale(3).
        $locales = array_diff([(string) getenv('LC_ALL'), (string) getenv('LC_CTYPE'), (string) getenv('LANG')], ['']);

        return new self(
            $colours && \in_array(getenv('NO_COLOR'), [false, ''], true),
            preg_match('/utf-?8/i', (string) reset($locales)) === 1,
        );
    }

    public function red(string $text): string
    {
        return $this->coloured($text, 31);
    }

    public function green(string $text): string
    {
        return $this->coloured($text, 32);
    }

    public function faint(string $text): string
    {
        return $this->coloured($text, 2);
    }

    public function inverse(string $text): string
    {
        return $this->coloured($text, 7);
    }

    public static function width(string $line): int
    {
        return TerminalText::width((string) preg_replace(self::SEQUENCE_PATTERN, '', $line));
    }

    private function coloured(string $text, int $code): string
    {
        return $this->colours && $text !== '' ? "\e[{$code}m{$text}\e[0m" : $text;
    }
}
