<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Input\InputOption;

/** One option of `spindle run`, `spindle sem`, GNU parallel or xargs, with all its spellings. */
final class KnownOption
{
    private const TEXT_COLUMNS = 45;

    /**
     * @param non-empty-list<string> $names    without dashes; the first is the main name; one letter is a short option
     * @param string                 $value    name of the value; '' for a flag
     * @param string                 $text     effect of the option; for a refused option, what to use instead
     * @param string                 $note     difference from GNU parallel, or an addition to the text; '' for none
     * @param list<string>           $xargs    spellings that xargs has
     * @param string                 $xargsNote difference from xargs; '' for none
     */
    private function __construct(
        public readonly array $names,
        public readonly string $value,
        public readonly Meaning $meaning,
        public readonly string $text,
        public readonly string $note,
        public readonly array $xargs,
        public readonly string $xargsNote,
    ) {}

    /** @param list<string|Meaning> $row the constructor's arguments; $names and $xargs have blanks between the names */
    public static function of(array $row): self
    {
        [$names, $value, $meaning, $text, $note, $xargs, $xargsNote] = $row + ['', '', Meaning::Own, '', '', '', ''];
        \assert(\is_string($names) && \is_string($value) && $meaning instanceof Meaning && \is_string($text));
        \assert(\is_string($note) && \is_string($xargs) && \is_string($xargsNote));
        $spellings = $xargs === '' ? [] : explode(' ', $xargs);

        return new self(explode(' ', $names), $value, $meaning, $text, $note, $spellings, $xargsNote);
    }

    /** Returns whether the command itself defines the option. The application defines --help and --version. */
    public function isDefined(): bool
    {
        return !\in_array($this->meaning, [Meaning::Refused, Meaning::Ignored], true)
            && !\in_array($this->name(), ['help', 'version'], true);
    }

    /** @param bool $isList whether the option can be given several times */
    public function definition(bool $isList = false): InputOption
    {
        $mode = match (true) {
            $isList => InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY,
            $this->takesValue() => InputOption::VALUE_REQUIRED,
            default => InputOption::VALUE_NONE,
        };
        $letter = $this->letter();
        // Symfony's console accepts no digit as a shortcut, and uses -v itself. OptionParser rewrites -0 and -v.
        $isPossible = $letter !== '0' && $letter !== 'v';

        return new InputOption(
            $this->name(),
            $isPossible ? $letter : null,
            $mode,
            wordwrap($this->text, self::TEXT_COLUMNS),
        );
    }

    public function name(): string
    {
        return $this->names[0];
    }

    public function letter(): ?string
    {
        foreach ($this->names as $name) {
            if (\strlen($name) === 1) {
                return $name;
            }
        }

        return null;
    }

    public function takesValue(): bool
    {
        return $this->value !== '';
    }

    /** @param string $spelling with dashes */
    public function refusal(string $spelling): UsageException
    {
        return new UsageException("option {$spelling}: not supported; {$this->text}");
    }
}
