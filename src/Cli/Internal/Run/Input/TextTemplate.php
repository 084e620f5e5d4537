<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/** The value of an option that can contain replacement strings, such as --tag-string. */
final class TextTemplate
{
    /** @var non-empty-list<string|Replacement> result of {@see ReplacementStrings::split()} */
    private readonly array $parts;

    /**
     * @param string $option name of the option, with its dashes
     *
     * @throws UsageException when the text has a replacement string that is not supported
     */
    public function __construct(private readonly string $option, string $text, ReplacementStrings $strings)
    {
        $unsupported = $strings->unsupportedIn($text);
        if ($unsupported !== null) {
            throw new UsageException(
                "option {$option}: '{$text}' contains {$unsupported}, a replacement string of GNU parallel that spindle"
                . ' run does not support',
            );
        }
        $this->parts = $strings->split($text);
    }

    public function isConstant(): bool
    {
        return \count($this->parts) === 1;
    }

    /** @param string $name a constant of {@see Replacement}, such as {@see Replacement::SLOT} */
    public function uses(string $name): bool
    {
        $isUse = static fn(string|Replacement $part): bool => $part instanceof Replacement && $part->part === $name;

        return array_filter($this->parts, $isUse) !== [];
    }

    /** @throws BadRecordException when the text for the job contains a NUL byte, which a path can't contain */
    public function checkPath(InputJob $job): void
    {
        if (str_contains($this->text($job), "\0")) {
            throw new BadRecordException(
                "option {$this->option}: the path contains a NUL byte, so the system can't open it",
            );
        }
    }

    /**
     * Returns the text for a job. Several values have blanks between them.
     *
     * @param string $empty text in place of an empty or missing value
     */
    public function text(InputJob $job, string $empty = ''): string
    {
        $text = '';
        $values = $job->values->list();
        foreach ($this->parts as $part) {
            if (\is_string($part)) {
                $text .= $part;
                continue;
            }
            $texts = $part->texts($values, $values, $job->sequence, (string) $job->slot);
            $text .= implode(' ', array_map(
                static fn(string $value): string => $value === '' ? $empty : $value,
                $texts === [] ? [''] : $texts,
            ));
        }

        return $text;
    }
}
